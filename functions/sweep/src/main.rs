//! The Lambda function `sweep`.

use fanfold_lambda::Error;
use fanfold_sweep::{Sweep, SweepRequest};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let surroundings = fanfold_lambda::start();
    let sweep = Sweep::from_environment(&surroundings)?;
    fanfold_lambda::schedule(async || Box::pin(sweep.sweep(SweepRequest::default())).await).await
}
