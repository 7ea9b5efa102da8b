//! The Lambda function `handle`.

use std::sync::Arc;

use fanfold_batch_api::Callers;
use fanfold_handle::Handle;
use fanfold_lambda::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let surroundings = fanfold_lambda::start();
    fanfold_lambda::queue(Handle::from_environment(&surroundings, Arc::new(Callers::deployed(&surroundings)))?).await
}
