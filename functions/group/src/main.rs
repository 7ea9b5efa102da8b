//! The Lambda function `group`.

use fanfold_group::Grouper;
use fanfold_lambda::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let surroundings = fanfold_lambda::start().await;
    fanfold_lambda::queue(Grouper::from_environment(&surroundings)?).await
}
