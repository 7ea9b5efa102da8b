//! The lease of a kind's dev session is in the record of its policy, which may change or go meanwhile.

use std::sync::{Arc, PoisonError};

use super::{KIND, POLICY, Policies};
use crate::aws::attributes::{Reader, text};
use crate::aws::{Item, StoreError};
use crate::clock::Timestamp;
use crate::control::{DevLease, NotHeld};
use crate::limits::CONTENTION_TRIES_MAX;
use crate::policy::no_policy;

const DEV: &str = "dev";

/// A lease could not be taken or given back.
#[derive(Debug, thiserror::Error)]
pub enum DevError {
    /// There is no such kind.
    #[error("{}", no_policy(.0))]
    UnknownKind(String),
    /// Another session has it, or it was given back.
    #[error(transparent)]
    NotHeld(#[from] NotHeld),
    /// The table could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Policies {
    /// The lease that holds on the calls of a kind. If there is one, it is so now; that there is none may be some seconds old.
    ///
    /// # Errors
    /// The table cannot be read, or the record is corrupt.
    pub async fn dev(&self, kind: &str) -> Result<Option<Arc<DevLease>>, StoreError> {
        let holds = |lease: &Arc<DevLease>| lease.holds(self.table.world.now());
        match self.known(kind).await?.dev.filter(holds) {
            None => Ok(None),
            Some(_) => Ok(self.read_both(kind).await?.dev.filter(holds)),
        }
    }

    /// Changes the lease on a kind, on condition that it is as it was read. Returns it as it is then. A change can be repeated.
    ///
    /// # Errors
    /// Another session's lease holds, there is no such kind, or the table cannot be read or written.
    pub async fn change_dev(
        &self,
        kind: &str,
        change: impl Fn(Option<&DevLease>, Timestamp) -> Result<Option<DevLease>, NotHeld>,
    ) -> Result<Option<DevLease>, DevError> {
        for _ in 0..CONTENTION_TRIES_MAX {
            let item = self.table.get(KIND, kind.to_owned(), true).await?;
            let item = item.filter(|item| item.contains_key(POLICY) || item.contains_key(DEV));
            let item = item.ok_or_else(|| DevError::UnknownKind(kind.to_owned()))?;
            let before = decode(&item)?;
            let after = change(before.as_ref(), self.table.world.now())?;
            // Without a policy nothing is called. A lease can be given back all the same.
            if after.is_some() && !item.contains_key(POLICY) {
                return Err(DevError::UnknownKind(kind.to_owned()));
            }
            if after == before || self.write_dev(kind, before.as_ref(), after.as_ref()).await? {
                return Ok(after);
            }
        }
        Err(StoreError::Contended { what: format!("the lease on kind `{kind}`") }.into())
    }

    async fn write_dev(
        &self,
        kind: &str,
        before: Option<&DevLease>,
        after: Option<&DevLease>,
    ) -> Result<bool, StoreError> {
        let change = self.table.change(KIND, kind).put([(DEV, after.map(encode).transpose()?.map(text))]);
        let change = change.when_present(KIND).when_same(DEV, before.map(encode).transpose()?.map(text));
        let written = change.send().await?.is_done();
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).remove(kind);
        Ok(written)
    }
}

fn encode(lease: &DevLease) -> Result<String, StoreError> {
    lease.encode().map_err(|error| StoreError::Unbuilt {
        table: "policies".to_owned(),
        problem: format!("a lease cannot be written as JSON: {error}"),
    })
}

/// The lease in a record.
pub(super) fn decode(item: &Item) -> Result<Option<DevLease>, StoreError> {
    let reader = Reader::new("policies", KIND, item);
    let lease = reader.optional_text(DEV)?.map(DevLease::decode).transpose();
    lease.map_err(|error| reader.corrupt(DEV, error))
}
