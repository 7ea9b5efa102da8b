//! As much of SQS as a dev session needs, on a port.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fanfold::clock::World;
use serde_json::{Value, json};
use tokio::time::Instant;

#[derive(Debug)]
struct Message {
    handle: String,
    sent: Value,
    sent_at: u64,
    visible_at: Instant,
}

/// How many messages were sent so far: what is deleted must not be what another message's handle names.
static SENT: AtomicU64 = AtomicU64::new(0);

type Queues = Arc<Mutex<BTreeMap<String, Vec<Message>>>>;

/// SQS.
pub(super) struct Sqs {
    pub(super) endpoint: String,
    queues: Queues,
}

impl Sqs {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let queues = Queues::default();
        let served = Arc::clone(&queues);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let queues = Arc::clone(&served);
                std::thread::spawn(move || serve(stream.unwrap(), &queues));
            }
        });
        Self { endpoint, queues }
    }

    /// The names of the queues, each with how many messages it has.
    pub(super) fn queues(&self) -> Vec<(String, usize)> {
        self.queues.lock().unwrap().iter().map(|(name, messages)| (name.clone(), messages.len())).collect()
    }
}

/// Serves one request.
fn serve(mut stream: TcpStream, queues: &Queues) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut action, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let line = line.trim_end().to_owned();
        let lower = line.to_lowercase();
        if let Some(value) = lower.strip_prefix("content-length: ") {
            length = value.parse().unwrap();
        } else if lower.starts_with("x-amz-target: ") {
            action = line.rsplit('.').next().unwrap().to_owned();
        } else if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let (status, answer) = answer(&action, &serde_json::from_slice(&body).unwrap(), queues);
    let answer = answer.to_string();
    let _ = write!(
        stream,
        "HTTP/1.1 {status} X\r\ncontent-type: application/x-amz-json-1.0\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{answer}",
        answer.len()
    );
}

fn answer(action: &str, asked: &Value, queues: &Queues) -> (u16, Value) {
    let text = |name: &str| asked[name].as_str().unwrap_or_default().to_owned();
    let name = text("QueueUrl").rsplit('/').next().unwrap_or_default().to_owned();
    if action == "CreateQueue" {
        queues.lock().unwrap().insert(text("QueueName"), Vec::new());
        return (200, json!({"QueueUrl": format!("https://sqs.local/000000000000/{}", text("QueueName"))}));
    }
    let until = Instant::now() + Duration::from_secs(asked["WaitTimeSeconds"].as_u64().unwrap_or(0));
    loop {
        let mut queues = queues.lock().unwrap();
        let Some(messages) = queues.get_mut(&name) else {
            return (400, json!({"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "no such queue"}));
        };
        let found = |message: &Message| message.handle == text("ReceiptHandle");
        match action {
            "DeleteQueue" => drop(queues.remove(&name)),
            "SendMessage" => {
                let handle = format!("{name}-{}", SENT.fetch_add(1, Ordering::Relaxed));
                let sent_at = World::system().now().0;
                messages.push(Message { handle, sent: asked.clone(), sent_at, visible_at: Instant::now() });
                return (200, json!({"MessageId": "1"}));
            }
            "DeleteMessage" => messages.retain(|message| !found(message)),
            "ChangeMessageVisibility" => {
                let more = Duration::from_secs(asked["VisibilityTimeout"].as_u64().unwrap());
                messages.iter_mut().filter(|it| found(it)).for_each(|it| it.visible_at = Instant::now() + more);
            }
            "ReceiveMessage" => {
                let most = asked["MaxNumberOfMessages"].as_u64().unwrap() as usize;
                let visible = messages.iter_mut().filter(|message| message.visible_at <= Instant::now()).take(most);
                let received: Vec<Value> = visible.map(received).collect();
                if received.is_empty() && Instant::now() < until {
                    drop(queues);
                    std::thread::sleep(Duration::from_millis(20));
                    continue;
                }
                return (200, if received.is_empty() { json!({}) } else { json!({ "Messages": received }) });
            }
            other => panic!("{other}"),
        }
        return (200, json!({}));
    }
}

fn received(message: &mut Message) -> Value {
    message.visible_at = Instant::now() + Duration::from_secs(60);
    json!({
        "MessageId": "1", "ReceiptHandle": message.handle, "Body": message.sent["MessageBody"],
        "MessageAttributes": message.sent["MessageAttributes"],
        "Attributes": {"SentTimestamp": message.sent_at.to_string()},
    })
}
