//! The embedded database: one connection, one request at a time.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use dynoxide::actions::transact_write_items::{self, TransactWriteItemsRequest, TransactWriteItemsResponse};
use dynoxide::actions::vector_lifecycle::VectorIndexLifecycle;
use dynoxide::actions::{create_table, delete_table, describe_table};
use dynoxide::errors::DynoxideError;
use dynoxide::storage::Storage;
use futures::FutureExt;

use super::EngineError;
use super::direct::Known;
use super::tokens::Tokens;

/// Settings of a database in a file. Commits survive the end of the process, not a power cut, and are seven times faster than
/// with a sync each. The folder is this process's alone, so no locks are taken for others, transaction by transaction. 64 MiB of
/// the file are kept in memory. The log goes into the file every 64 MiB: a page that changed many times is then written once, and
/// a million tasks take a sixth less time than with SQLite's 4 MiB.
const SETTINGS: &str = "PRAGMA locking_mode = EXCLUSIVE;
    PRAGMA synchronous = NORMAL;
    PRAGMA cache_size = -65536;
    PRAGMA wal_autocheckpoint = 16384;
    PRAGMA temp_store = MEMORY;";

/// Bytes of a page in a file. Each write logs every page that it changes, whole. In memory, where nothing is logged, pages are
/// larger (`.cargo/config.toml`): after most writes that split a page, SQLite goes through its list of all pages in memory.
const FILE_PAGE_BYTES: i64 = 4_096;

/// Statements that are kept prepared.
const STATEMENTS: usize = 128;

/// The result of an operation.
pub(super) type DatabaseResult<T> = Result<T, DynoxideError>;

/// A database.
pub(crate) struct Database {
    storage: Mutex<(Storage, Known)>,
    tokens: Mutex<Tokens>,
    vectors: VectorIndexLifecycle,
}

impl Database {
    /// A database that is forgotten when it is dropped.
    pub(crate) fn memory() -> DatabaseResult<Self> {
        Ok(Self::new(Storage::memory()?))
    }

    /// A database in a file, which is made if it is not there.
    pub(crate) fn open(path: &Path) -> DatabaseResult<Self> {
        let storage = Storage::new(&path.to_string_lossy())?;
        storage.conn().execute_batch(SETTINGS)?;
        with_small_pages(&storage)?;
        Ok(Self::new(storage))
    }

    fn new(storage: Storage) -> Self {
        storage.conn().set_prepared_statement_cache_capacity(STATEMENTS);
        Self {
            storage: Mutex::new((storage, Known::default())),
            tokens: Mutex::default(),
            vectors: VectorIndexLifecycle::new(),
        }
    }

    /// Runs an operation. Its future never waits. After a panic in the middle of one, which may have left a transaction open,
    /// there are only errors.
    pub(crate) fn run<T>(&self, operation: impl AsyncFnOnce(&Storage) -> DatabaseResult<T>) -> DatabaseResult<T> {
        let internal = |problem: &str| DynoxideError::InternalServerError(problem.to_owned());
        let storage = self.storage.lock().map_err(|_| internal("an operation of the database panicked"))?;
        operation(&storage.0).now_or_never().unwrap_or_else(|| Err(internal("the database waited")))
    }

    /// Runs operations in one transaction, of which nothing stays if they fail. Nobody else may use the database meanwhile.
    pub(crate) fn all_or_nothing<T>(
        &self,
        operations: impl FnOnce() -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let failed = |error: DynoxideError| EngineError::Database(error.to_string());
        self.run(async |storage| storage.begin_transaction()).map_err(failed)?;
        let done = operations();
        let ended = self.run(async |storage| if done.is_ok() { storage.commit() } else { storage.rollback() });
        done.and_then(|done| ended.map(|()| done).map_err(failed))
    }

    /// Runs what is done without the engine; none if the engine has to. Every error left everything as it was: the
    /// engine finds it again and says what is wrong.
    pub(super) fn direct<T>(
        &self,
        operation: impl FnOnce(&Storage, &mut Known) -> DatabaseResult<Option<T>>,
    ) -> Option<T> {
        let mut database = self.storage.lock().ok()?;
        let (storage, known) = &mut *database;
        operation(storage, known).ok().flatten()
    }

    /// Notes what is known of tables and expressions.
    pub(super) fn with_known(&self, note: impl FnOnce(&mut Known)) {
        // After a panic nothing is run any more, and nothing need be known.
        if let Ok(mut database) = self.storage.lock() {
            note(&mut database.1);
        }
    }

    /// Makes a table.
    pub(crate) fn create_table(
        &self,
        request: create_table::CreateTableRequest,
    ) -> DatabaseResult<create_table::CreateTableResponse> {
        let answer = self.run(async |storage| create_table::execute(storage, request).await);
        self.with_known(Known::forget_tables);
        answer
    }

    /// Deletes a table.
    pub(crate) fn delete_table(
        &self,
        request: delete_table::DeleteTableRequest,
    ) -> DatabaseResult<delete_table::DeleteTableResponse> {
        let answer = self.run(async |storage| delete_table::execute(storage, request, &self.vectors).await);
        self.with_known(Known::forget_tables);
        answer
    }

    /// Describes a table.
    pub(crate) fn describe_table(
        &self,
        request: describe_table::DescribeTableRequest,
    ) -> DatabaseResult<describe_table::DescribeTableResponse> {
        self.run(async |storage| describe_table::execute(storage, request, &self.vectors).await)
    }

    /// Writes all of a transaction or nothing; one that is repeated under its token is not applied again.
    pub(crate) fn transact_write_items(
        &self,
        request: TransactWriteItemsRequest,
    ) -> DatabaseResult<TransactWriteItemsResponse> {
        let Some(token) = request.client_request_token.clone() else {
            return self.run(async |storage| transact_write_items::execute(storage, request).await);
        };
        // Held until the transaction is through: a repetition meanwhile waits for its answer.
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = tokens.answer(&token, &request)? {
            return Ok(answer);
        }
        let repeated = request.clone();
        let answer = self.run(async |storage| transact_write_items::execute(storage, request).await)?;
        tokens.remember(token, &repeated)?;
        Ok(answer)
    }
}

/// Gives a new file its page size. One of an earlier process has it.
fn with_small_pages(storage: &Storage) -> DatabaseResult<()> {
    if page_bytes(storage)? == FILE_PAGE_BYTES {
        return Ok(());
    }
    let change = format!("PRAGMA page_size = {FILE_PAGE_BYTES}; VACUUM;");
    // It cannot be changed while there is a write-ahead log.
    storage.conn().execute_batch(&format!("PRAGMA journal_mode = DELETE; {change} PRAGMA journal_mode = WAL;"))?;
    Ok(())
}

fn page_bytes(storage: &Storage) -> DatabaseResult<i64> {
    Ok(storage.conn().pragma_query_value(None, "page_size", |row| row.get(0))?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn told<T>(database: &Database, tell: impl FnOnce(&Storage) -> T) -> T {
        tell(&database.storage.lock().unwrap().0)
    }

    #[test]
    fn pages_are_small_in_a_file_only() {
        let folder = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            let file = Database::open(&folder.path().join("db")).unwrap();
            let mode = |storage: &Storage| -> String {
                storage.conn().pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap()
            };
            assert_eq!((told(&file, page_bytes).unwrap(), told(&file, mode)), (FILE_PAGE_BYTES, "wal".to_owned()));
        }
        assert_eq!(told(&Database::memory().unwrap(), page_bytes).unwrap(), 16_384);
    }
}
