//! The Lambda function `produce`.

use std::sync::Arc;

use fanfold_http_client::Guard;
use fanfold_lambda::Error;
use fanfold_produce::{AllSources, Produce};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let surroundings = fanfold_lambda::start();
    let sources = Arc::new(AllSources::from_environment(&surroundings, Guard::deployed(&surroundings)));
    fanfold_lambda::queue(Produce::from_environment(&surroundings, sources)?).await
}
