//! Why a table could not be read or written.

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};

use crate::text::causes;

/// DynamoDB's codes for a partition, table or account that takes no more for now.
pub(crate) const THROTTLED: [&str; 3] =
    ["ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded"];

/// A table could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// DynamoDB refused, or could not be reached.
    #[error("DynamoDB {operation} on {table}: {message}")]
    Service {
        /// The operation.
        operation: &'static str,
        /// The table.
        table: String,
        /// DynamoDB's code and message.
        message: String,
        /// The SDK's error.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A record does not hold what it should.
    #[error("record {id} in {table}: `{attribute}` {problem}")]
    Corrupt {
        /// The record type.
        table: &'static str,
        /// The record's key.
        id: String,
        /// The attribute.
        attribute: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// A request breaks a rule of the SDK, so that it was not sent.
    #[error("a request to {table} cannot be built: {problem}")]
    Unbuilt {
        /// The table.
        table: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Others changed a record faster than it could be changed here, or DynamoDB throttled for too long.
    #[error("gave up {what}: other workers changed it again and again, or it was throttled")]
    Contended {
        /// What was tried.
        what: String,
    },
}

impl StoreError {
    pub(crate) fn service<E, R>(operation: &'static str, table: &str, error: SdkError<E, R>) -> Self
    where
        E: std::error::Error + ProvideErrorMetadata + Send + Sync + 'static,
        R: std::fmt::Debug + Send + Sync + 'static,
    {
        if error.code().is_some_and(|code| THROTTLED.contains(&code)) {
            return Self::Contended { what: format!("{operation} on {table} ({})", said(&error)) };
        }
        Self::Service { operation, table: table.to_owned(), message: said(&error), source: Box::new(error) }
    }
}

/// What a service said, or why it said nothing.
pub(crate) fn said<E, R>(error: &SdkError<E, R>) -> String
where
    E: std::error::Error + ProvideErrorMetadata + 'static,
    R: std::fmt::Debug,
{
    match (error.code(), error.message()) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(code), None) => code.to_owned(),
        // Not an answer of the service: the connection, a time-out. The causes say it best.
        _ => causes(error),
    }
}
