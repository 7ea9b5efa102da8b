//! The embedded DynamoDB: dispatch of its operations, each metered.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use dynoxide::Database;
use dynoxide::errors::DynoxideError;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::EngineError;
use super::connector::Answer;
use super::folder::Folder;
use super::metering::{self, Ask};
use crate::usage::{Meter, Units};

/// The tables of an engine.
#[derive(Clone)]
pub(crate) struct Tables {
    database: Database,
    _folder: Option<Arc<Folder>>,
}

impl std::fmt::Debug for Tables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tables").finish_non_exhaustive()
    }
}

/// An operation's answer with what it cost.
type Answered = (Result<Bytes, DynoxideError>, Units);

impl Tables {
    pub(crate) fn memory() -> Result<Self, EngineError> {
        Ok(Self { database: Database::memory().map_err(failed)?, _folder: None })
    }

    pub(crate) fn open(folder: &Path) -> Result<Self, EngineError> {
        let folder = Folder::open(folder)?;
        let path = folder.database();
        let database = Database::new(&path.to_string_lossy()).map_err(failed)?;
        // Leaving bulk loading sets `synchronous = NORMAL`: commits survive the end of the process, not a power cut, and
        // are seven times faster than with the full sync a database starts with.
        database.enable_bulk_loading().and_then(|()| database.disable_bulk_loading()).map_err(failed)?;
        Ok(Self { database, _folder: Some(Arc::new(folder)) })
    }

    pub(crate) fn database(&self) -> &Database {
        &self.database
    }

    pub(crate) fn expire_items(&self) -> Result<usize, EngineError> {
        self.database.sweep_ttl().map_err(failed)
    }

    pub(crate) fn answer(&self, operation: &str, body: &[u8], meter: &Meter) -> Answer {
        let Some((operation, (result, units))) = self.dispatch(operation, body) else {
            let error =
                DynoxideError::ValidationException(format!("the embedded DynamoDB has no operation {operation}"));
            return refusal(&error);
        };
        meter.dynamodb(operation, units);
        match result {
            Ok(json) => Answer::new(200, json),
            Err(error) => refusal(&error),
        }
    }

    fn dispatch(&self, operation: &str, body: &[u8]) -> Option<(&'static str, Answered)> {
        let db = &self.database;
        Some(match operation {
            "GetItem" => ("GetItem", metered(body, |request| db.get_item(request))),
            "PutItem" => ("PutItem", metered(body, |request| db.put_item(request))),
            "UpdateItem" => ("UpdateItem", metered(body, |request| db.update_item(request))),
            "DeleteItem" => ("DeleteItem", metered(body, |request| db.delete_item(request))),
            "BatchGetItem" => ("BatchGetItem", metered(body, |request| db.batch_get_item(request))),
            "BatchWriteItem" => ("BatchWriteItem", metered(body, |request| db.batch_write_item(request))),
            "Query" => ("Query", metered(body, |request| db.query(request))),
            "Scan" => ("Scan", metered(body, |request| db.scan(request))),
            "TransactWriteItems" => ("TransactWriteItems", metered(body, |request| db.transact_write_items(request))),
            "TransactGetItems" => ("TransactGetItems", metered(body, |request| db.transact_get_items(request))),
            "ExecuteStatement" => ("ExecuteStatement", metered(body, |request| db.execute_statement(request))),
            "BatchExecuteStatement" => {
                ("BatchExecuteStatement", metered(body, |request| db.batch_execute_statement(request)))
            }
            "CreateTable" => ("CreateTable", free(body, |request| db.create_table(request))),
            "DeleteTable" => ("DeleteTable", free(body, |request| db.delete_table(request))),
            "DescribeTable" => ("DescribeTable", free(body, |request| db.describe_table(request))),
            "ListTables" => ("ListTables", free(body, |request| db.list_tables(request))),
            "UpdateTimeToLive" => ("UpdateTimeToLive", free(body, |request| db.update_time_to_live(request))),
            "DescribeTimeToLive" => ("DescribeTimeToLive", free(body, |request| db.describe_time_to_live(request))),
            _ => return None,
        })
    }
}

/// Answers an operation that consumes request units.
fn metered<Request, Response>(body: &[u8], run: impl FnOnce(Request) -> Result<Response, DynoxideError>) -> Answered
where
    Request: DeserializeOwned + Ask,
    Response: Serialize + metering::Report,
{
    let mut request: Request = match read(body) {
        Ok(request) => request,
        Err(error) => return (Err(error), Units::default()),
    };
    let bill = metering::ask(&mut request);
    match run(request) {
        Ok(mut response) => {
            let units = bill.charge(&mut response);
            (write(&response), units)
        }
        Err(mut error) => {
            let units = bill.charge_failure(&mut error);
            (Err(error), units)
        }
    }
}

/// Answers an operation that consumes no request units.
fn free<Request: DeserializeOwned, Response: Serialize>(
    body: &[u8],
    run: impl FnOnce(Request) -> Result<Response, DynoxideError>,
) -> Answered {
    let result = read(body).and_then(run).and_then(|response| write(&response));
    (result, Units::default())
}

/// What serde says of values that DynamoDB calls invalid, and not malformed.
const INVALID: [&str; 5] =
    ["Supplied AttributeValue", "empty AttributeValue", "missing field", "unknown variant", "invalid type: null"];

/// Reads a request. The engine's request types mark what DynamoDB calls a validation error in the text of serde's error.
fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, DynoxideError> {
    serde_json::from_slice(body).map_err(|error| {
        let text = error.to_string();
        let text = text.split(" at line ").next().unwrap_or_default();
        match text.split_once(':') {
            Some(("VALIDATION" | "VALIDATION_AS_READ" | "VALIDATION_REQUEST", rest)) => {
                DynoxideError::ValidationException(rest.to_owned())
            }
            Some(("SERIALIZATION" | "SERIALIZATION_AS_READ", rest)) => {
                DynoxideError::SerializationException(rest.to_owned())
            }
            _ if INVALID.iter().any(|mark| text.contains(mark)) => DynoxideError::ValidationException(text.to_owned()),
            _ => DynoxideError::SerializationException(text.to_owned()),
        }
    })
}

fn write<T: Serialize>(response: &T) -> Result<Bytes, DynoxideError> {
    let json = serde_json::to_vec(response).map_err(|error| DynoxideError::InternalServerError(error.to_string()))?;
    Ok(Bytes::from(json))
}

fn refusal(error: &DynoxideError) -> Answer {
    Answer::new(error.status_code(), error.to_json())
}

fn failed(error: DynoxideError) -> EngineError {
    EngineError::Database(error.to_string())
}
