//! Takes jobs from a queue until SIGTERM, and acks them over the ack queue. Every seventh job fails whenever it comes.
//! Usage: `fanfold-e2e-worker JOBS_QUEUE_URL ACK_QUEUE_URL API_URL FANOUT`

use std::error::Error;

use fanfold_client::{Consumer, Fanfold, Message, SqsAcks, State};
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [jobs, acks, url, fanout] = arguments.as_slice() else {
        return Err("usage: fanfold-e2e-worker JOBS_QUEUE_URL ACK_QUEUE_URL API_URL FANOUT".into());
    };
    let config = fanfold_lambda::sdk_config();
    let fanout = Fanfold::new(url)?.signed(&config)?.get(fanout.parse()?).await?;
    if fanout.state != State::Sealed {
        return Err(format!("the fan-out is {:?}", fanout.state).into());
    }
    let sqs = aws_sdk_sqs::Client::new(&config);
    let consumer = Consumer::new(SqsAcks::new(sqs.clone(), acks), 2, async |message: Message| {
        let job: serde_json::Value = serde_json::from_str(&message.body).map_err(|error| error.to_string())?;
        match job["page"].as_u64() {
            Some(page) if page % 7 != 0 => Ok(()),
            page => Err(format!("no such page: {page:?}")),
        }
    });
    let mut terminated = signal(SignalKind::terminate())?;
    let stop = async { terminated.recv().await.unwrap_or_default() };
    consumer.poll(&sqs, jobs, stop).await
}
