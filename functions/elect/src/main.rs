//! The Lambda function `elect`.

use fanfold_elect::Elect;
use fanfold_lambda::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let surroundings = fanfold_lambda::start();
    fanfold_lambda::queue(Elect::from_environment(&surroundings)?).await
}
