//! The Lambda function `api`.

use std::sync::Arc;

use fanfold_api::{Api, router};
use fanfold_lambda::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let surroundings = fanfold_lambda::start();
    fanfold_lambda::http(router(Arc::new(Api::from_environment(&surroundings)?))).await
}
