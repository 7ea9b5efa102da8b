//! The Lambda function `ack`.

use std::sync::Arc;

use fanfold_ack::{Ack, router};
use fanfold_lambda::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let surroundings = fanfold_lambda::start();
    let step = Arc::new(Ack::from_environment(&surroundings)?);
    fanfold_lambda::queue_or_http(step.as_ref(), router(Arc::clone(&step))).await
}
