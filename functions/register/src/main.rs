//! The Lambda function `register`.

use std::sync::Arc;

use fanfold_lambda::Error;
use fanfold_register::{Register, router};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let surroundings = fanfold_lambda::start();
    let step = Arc::new(Register::from_environment(&surroundings)?);
    fanfold_lambda::queue_or_http(step.as_ref(), router(Arc::clone(&step))).await
}
