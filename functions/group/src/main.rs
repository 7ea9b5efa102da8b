//! The Lambda function `group`.

use fanfold_group::Group;
use fanfold_lambda::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let surroundings = fanfold_lambda::start();
    fanfold_lambda::queue(Group::from_environment(&surroundings)?).await
}
