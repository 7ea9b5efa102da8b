//! The Lambda function `produce`.

use std::sync::Arc;

use fanfold_lambda::Error;
use fanfold_produce::{HttpSources, Produce};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let surroundings = fanfold_lambda::start();
    fanfold_lambda::queue(Produce::from_environment(&surroundings, Arc::new(HttpSources::default()))?).await
}
