//! The embedded DynamoDB: dispatch of its operations, each metered.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use dynoxide::actions::{
    batch_execute_statement, batch_get_item, batch_write_item, delete_item, describe_time_to_live, execute_statement,
    get_item, list_tables, put_item, query, scan, transact_get_items, update_item, update_time_to_live,
};
use dynoxide::errors::DynoxideError;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::EngineError;
use super::connector::EngineAnswer;
use super::database::Database;
use super::direct::{self, Direct};
use super::expiry;
use super::folder::Folder;
use super::metering::{self, Metered};
use super::statements;
use crate::usage::{Meter, Units};

/// The operation of which a run makes most.
const STATEMENTS: &str = "BatchExecuteStatement";

/// The most items of a page of a scan.
const SCAN_PAGE: usize = 1_000;

/// The tables of an engine.
#[derive(Clone)]
pub(crate) struct Tables {
    database: Arc<Database>,
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
        Ok(Self { database: Arc::new(Database::memory().map_err(failed)?), _folder: None })
    }

    pub(crate) fn open(folder: &Path) -> Result<Self, EngineError> {
        let folder = Folder::open(folder)?;
        let database = Arc::new(Database::open(&folder.database()).map_err(failed)?);
        Ok(Self { database, _folder: Some(Arc::new(folder)) })
    }

    pub(crate) fn database(&self) -> &Database {
        &self.database
    }

    pub(crate) fn expire_items(&self) -> Result<usize, EngineError> {
        expiry::expire(&self.database).map_err(failed)
    }

    pub(crate) fn answer(&self, operation: &str, body: &[u8], meter: &Meter) -> EngineAnswer {
        if operation == STATEMENTS
            && let Some((json, units)) = statements::answer(&self.database, body)
        {
            meter.dynamodb(STATEMENTS, units);
            return EngineAnswer::new(200, json);
        }
        let Direct { operation, result, units } = match direct::answer(&self.database, operation, body) {
            Some(answered) => answered,
            None => {
                let Some((operation, (result, units))) = self.dispatch(operation, body) else {
                    let error = DynoxideError::ValidationException(format!(
                        "the embedded DynamoDB has no operation {operation}"
                    ));
                    return refusal(&error);
                };
                if !matches!(result, Err(DynoxideError::ValidationException(_))) {
                    direct::learn(&self.database, operation, body);
                }
                Direct { operation, result, units }
            }
        };
        meter.dynamodb(operation, units);
        match result {
            Ok(json) => EngineAnswer::new(200, json),
            Err(error) => refusal(&error),
        }
    }

    pub(super) fn dispatch(&self, operation: &str, body: &[u8]) -> Option<(&'static str, Answered)> {
        let db = &self.database;
        /// An operation of the engine's, which takes the storage and a request.
        macro_rules! run {
            ($operation:ident) => {
                |request| db.run(async |storage| $operation::execute(storage, request).await)
            };
        }
        Some(match operation {
            "GetItem" => ("GetItem", metered(body, run!(get_item))),
            "PutItem" => ("PutItem", metered(body, run!(put_item))),
            "UpdateItem" => ("UpdateItem", metered(body, run!(update_item))),
            "DeleteItem" => ("DeleteItem", metered(body, run!(delete_item))),
            "BatchGetItem" => ("BatchGetItem", metered(body, run!(batch_get_item))),
            "BatchWriteItem" => ("BatchWriteItem", metered(body, run!(batch_write_item))),
            "Query" => ("Query", metered(body, run!(query))),
            "Scan" => {
                ("Scan", metered(body, |request| db.run(async |storage| scan::execute(storage, paged(request)).await)))
            }
            "TransactWriteItems" => ("TransactWriteItems", metered(body, |request| db.transact_write_items(request))),
            "TransactGetItems" => ("TransactGetItems", metered(body, run!(transact_get_items))),
            "ExecuteStatement" => ("ExecuteStatement", metered(body, run!(execute_statement))),
            STATEMENTS => (STATEMENTS, metered(body, run!(batch_execute_statement))),
            "CreateTable" => ("CreateTable", free(body, |request| db.create_table(request))),
            "DeleteTable" => ("DeleteTable", free(body, |request| db.delete_table(request))),
            "DescribeTable" => ("DescribeTable", free(body, |request| db.describe_table(request))),
            "ListTables" => ("ListTables", free(body, run!(list_tables))),
            "UpdateTimeToLive" => ("UpdateTimeToLive", free(body, run!(update_time_to_live))),
            "DescribeTimeToLive" => ("DescribeTimeToLive", free(body, run!(describe_time_to_live))),
            _ => return None,
        })
    }
}

/// A scan that says how long its pages may be: for one that does not, the engine would read everything that is left for every
/// page, and then cut it off.
fn paged(mut request: scan::ScanRequest) -> scan::ScanRequest {
    request.limit.get_or_insert(SCAN_PAGE);
    request
}

/// Answers an operation that consumes request units.
fn metered<Request, Response>(body: &[u8], run: impl FnOnce(Request) -> Result<Response, DynoxideError>) -> Answered
where
    Request: DeserializeOwned + Metered,
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

fn refusal(error: &DynoxideError) -> EngineAnswer {
    EngineAnswer::new(error.status_code(), error.to_json())
}

fn failed(error: DynoxideError) -> EngineError {
    EngineError::Database(error.to_string())
}
