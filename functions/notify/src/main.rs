//! The Lambda function `notify`.

use std::sync::Arc;

use fanfold_http_client::Guard;
use fanfold_lambda::Error;
use fanfold_notify::{HttpWebhooks, Notify};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let surroundings = fanfold_lambda::start();
    let webhooks = Arc::new(HttpWebhooks::from_environment(&surroundings, Guard::deployed(&surroundings))?);
    fanfold_lambda::queue(Notify::from_environment(&surroundings, webhooks)?).await
}
