//! The account and region that the embedded services report, and the names that follow from them.

/// The region of everything embedded.
pub(crate) const REGION: &str = "us-east-1";
/// The account of everything embedded.
pub(crate) const ACCOUNT: &str = "000000000000";
/// Host of queue URLs. `.localhost` is reserved, so such a URL can never leave this machine.
pub(crate) const QUEUE_HOST: &str = "sqs.localhost";
/// Port of queue URLs. Nothing listens there: the connector never opens a socket.
pub(crate) const QUEUE_PORT: u16 = 80;

/// The URL the embedded SQS gives a queue of this name.
pub(crate) fn queue_url(name: &str) -> String {
    format!("http://{QUEUE_HOST}:{QUEUE_PORT}/{ACCOUNT}/{name}")
}

/// The ARN of a queue.
pub(crate) fn queue_arn(name: &str) -> String {
    format!("arn:aws:sqs:{REGION}:{ACCOUNT}:{name}")
}

/// The ARN of a table.
pub(crate) fn table_arn(name: &str) -> String {
    format!("arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{name}")
}

/// The ARN of a function.
pub(crate) fn function_arn(name: &str) -> String {
    format!("arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}")
}
