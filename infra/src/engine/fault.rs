//! A seam at the connector, through which tests delay, lose or answer requests.

use std::fmt;

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt};

/// An embedded service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Service {
    /// DynamoDB.
    DynamoDb,
    /// SQS.
    Sqs,
}

impl Service {
    /// How it is named in a usage report.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Self::DynamoDb => "dynamodb",
            Self::Sqs => "sqs",
        }
    }
}

/// One request on its way to an embedded service.
#[derive(Clone, Debug)]
pub struct ServiceRequest {
    /// Who is asked.
    pub service: Service,
    /// The operation, such as `PutItem`.
    pub operation: String,
    /// The JSON body.
    pub body: Bytes,
}

/// An answer to a request.
#[derive(Clone, Debug)]
pub struct ServiceAnswer {
    /// The HTTP status.
    pub status: u16,
    /// The JSON body.
    pub body: Bytes,
}

/// What becomes of a request or of its answer.
#[derive(Clone, Debug, Default)]
pub enum Fate {
    /// It continues.
    #[default]
    Pass,
    /// It is lost: the caller sees a broken connection. Lost after it was applied, the caller cannot know that it was.
    Lost,
    /// The caller gets this instead.
    Answered(ServiceAnswer),
}

/// Decides the fate of requests. Either method may wait before it returns.
pub trait Interceptor: fmt::Debug + Send + Sync {
    /// Before the request is applied.
    fn before<'a>(&'a self, call: &'a ServiceRequest) -> BoxFuture<'a, Fate> {
        let _ = call;
        async { Fate::Pass }.boxed()
    }

    /// After the request was applied and answered.
    fn after<'a>(&'a self, call: &'a ServiceRequest, reply: &'a ServiceAnswer) -> BoxFuture<'a, Fate> {
        let _ = (call, reply);
        async { Fate::Pass }.boxed()
    }
}

impl ServiceAnswer {
    /// An error answer as AWS writes it; `kind` as in `ProvisionedThroughputExceededException`.
    pub fn error(status: u16, kind: &str, message: &str) -> Self {
        let body = serde_json::json!({ "__type": kind, "message": message });
        Self { status, body: Bytes::from(body.to_string()) }
    }
}
