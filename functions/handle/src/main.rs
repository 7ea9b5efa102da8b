//! The Lambda function `handle`.

use std::sync::Arc;

use fanfold_batch_api::Callers;
use fanfold_handle::{Handle, router};
use fanfold_lambda::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let surroundings = fanfold_lambda::start();
    let step = Arc::new(Handle::from_environment(&surroundings, Arc::new(Callers::deployed(&surroundings)))?);
    fanfold_lambda::queue_or_http(step.as_ref(), router(Arc::clone(&step))).await
}
