//! The examples of the client's README compile: they stand here as they stand there.

use std::error::Error;
use std::time::Duration;

use fanfold_client::{Fanfold, Fanout};

const README: &str = include_str!("../../../../clients/rust/README.md");

/// The configuration of the AWS SDK, for the examples: that crate is not needed otherwise.
mod aws_config {
    pub(super) async fn load_from_env() -> aws_types::SdkConfig {
        aws_types::SdkConfig::builder().build()
    }
}

#[rustfmt::skip]
#[allow(dead_code)]
async fn producer(url: String, jobs: String) -> Result<Fanout, Box<dyn Error>> {
    use std::time::Duration;

    use fanfold_client::{Fanfold, OpenFanout};

    let config = aws_config::load_from_env().await;
    let fanfold = Fanfold::new(&url)?.signed(&config)?; // the API of `fanfold up` needs no signature
    let (sqs, user_key) = (aws_sdk_sqs::Client::new(&config), Some("order 4711".to_owned()));
    let fanout = fanfold.open(&OpenFanout { items: 3, seal: true, user_key, ..OpenFanout::default() }).await?;
    for (item, page) in fanout.items().zip(["a", "b", "c"]) {
        let body = serde_json::json!({"item": item, "page": page}).to_string();
        sqs.send_message().queue_url(&jobs).message_body(body).send().await?;
    }
    let end = fanfold.wait(fanout.id, Duration::from_secs(600)).await?;
    Ok(end)
}

#[rustfmt::skip]
#[allow(dead_code)]
async fn worker(ack_queue_url: String) -> Result<(), lambda_runtime::Error> {
    use fanfold_client::{Consumer, Message, SqsAcks, SqsEvent};
    use lambda_runtime::{LambdaEvent, run, service_fn};

    let sqs = aws_sdk_sqs::Client::new(&aws_config::load_from_env().await);
    let consumer = Consumer::new(SqsAcks::new(sqs.clone(), ack_queue_url), 4, async |message: Message| {
        println!("rendering {}", message.body); // if it fails, SQS delivers the message again
        Ok::<(), String>(())
    });
    run(service_fn(async |event: LambdaEvent<SqsEvent>| Ok::<_, lambda_runtime::Error>(consumer.event(event.payload).await))).await?;
    // Or anywhere else, by polling: consumer.poll(&sqs, &jobs, stop).await?;
    Ok(())
}

#[rustfmt::skip]
async fn buffer(fanfold: &Fanfold, fanout: &Fanout) -> Result<(), Box<dyn Error>> {
    use fanfold_client::{AckBuffer, HttpAcks};

    let acks = AckBuffer::new(HttpAcks(fanfold.clone())); // or SqsAcks::new(sqs, queue_url)
    for item in fanout.items() {
        acks.succeeded(item).await?;
    }
    acks.flush().await?;
    Ok(())
}

#[rustfmt::skip]
async fn counters(fanfold: &Fanfold) -> Result<bool, Box<dyn Error>> {
    use fanfold_client::{Count, Mode, OpenFanout};

    let catalog = OpenFanout { mode: Some(Mode::Estimated), user_key: Some("catalog 7".into()), ..OpenFanout::default() };
    let fanout = fanfold.open(&catalog).await?.id;
    fanfold.count(&[Count { fanout, add: 500, ..Count::default() }]).await?;
    fanfold.seal(fanout).await?;
    let answer = fanfold.count(&[Count { fanout, succeeded: 499, failed: 1, ..Count::default() }]).await?;
    println!("complete: {}", answer.fanouts[0].complete);
    Ok(answer.fanouts[0].complete)
}

#[tokio::test]
async fn what_needs_no_queue_runs() {
    let (_stack, client) = super::stack().await;
    let request = fanfold_client::OpenFanout { items: 3, seal: true, ..Default::default() };
    let fanout = client.open(&request).await.unwrap();
    buffer(&client, &fanout).await.unwrap();
    assert_eq!(client.wait(fanout.id, Duration::from_secs(60)).await.unwrap().succeeded, 3);
    assert!(counters(&client).await.unwrap());
}

#[test]
fn each_example_stands_here() {
    let lines = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
    };
    let here = lines(include_str!("readme.rs"));
    let examples: Vec<&str> = README.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(examples.len(), 4);
    for example in examples {
        let example = lines(example);
        assert!(here.windows(example.len()).any(|window| window == example), "{example:#?}");
    }
}
