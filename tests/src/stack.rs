//! The stack under test.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_sqs::types::Message;
use fanfold::clock::{Clock, Random, Timestamp, World};
use fanfold::config::Surroundings;
use fanfold::delivery::{Delivery, Step};
use fanfold::ids::{ItemGroup, ItemId, TaskId, expand};
use fanfold::messages::TaskRequest;
use fanfold::policy::{Destination, NoticesQueue, Policy};
use fanfold::store::batches::Batches;
use fanfold::store::gates::Gates;
use fanfold::store::locks::Locks;
use fanfold::store::policies::Policies;
use fanfold::store::tasks::Tasks;
use fanfold::tracking::{OpenRequest, Tracking};
use fanfold_ack::Ack;
use fanfold_elect::Elect;
use fanfold_group::Group;
use fanfold_handle::Handle;
use fanfold_local::{Engine, Template};
use fanfold_notify::Notify;
use fanfold_register::{Register, RegisterError};
use fanfold_stack::{Outside, Steps};
use fanfold_sweep::{Sweep, SweepRequest};
use uuid::Uuid;

use crate::api::ScriptedApi;
use crate::crash::Crash;
use crate::webhooks::ScriptedWebhooks;

/// Tokio's time as the time of the steps.
struct TestClock(tokio::time::Instant);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp(1_800_000_000_000).plus(self.0.elapsed())
    }
}

/// Numbers from a seed.
struct TestRandom(std::sync::Mutex<fastrand::Rng>);

impl Random for TestRandom {
    fn next(&self) -> u64 {
        self.0.lock().unwrap().u64(..)
    }
}

/// A queue of the template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum QueueName {
    Register,
    Elect,
    Group,
    Handle,
    Ack,
    Notify,
    Notices,
}

impl QueueName {
    /// Those with a step behind them.
    pub const STEPS: [Self; 6] = [Self::Register, Self::Elect, Self::Group, Self::Handle, Self::Ack, Self::Notify];

    fn variable(self) -> &'static str {
        match self {
            Self::Register => "REGISTER_QUEUE_URL",
            Self::Elect => "ELECT_QUEUE_URL",
            Self::Group => "GROUP_QUEUE_URL",
            Self::Handle => "HANDLE_QUEUE_URL",
            Self::Ack => "ACK_QUEUE_URL",
            Self::Notify => "NOTIFY_QUEUE_URL",
            Self::Notices => "NOTICES_QUEUE_URL",
        }
    }
}

/// Every step of a stack over one engine; their requests pass by a [`Crash`].
pub struct Stack {
    pub crash: Arc<Crash>,
    pub api: Arc<ScriptedApi>,
    pub webhooks: Arc<ScriptedWebhooks>,
    pub register: Arc<Register>,
    pub elect: Arc<Elect>,
    pub group: Arc<Group>,
    pub handle: Arc<Handle>,
    pub ack: Arc<Ack>,
    pub notify: Arc<Notify>,
    pub sweeper: Arc<Sweep>,
    /// Tracking as the steps see it.
    pub tracking: Tracking,
    /// Stores whose requests always come through.
    pub tasks: Tasks,
    pub locks: Locks,
    pub gates: Gates,
    pub batches: Batches,
    pub world: World,
    pub(crate) engine: Engine,
    pub(crate) dynamodb: aws_sdk_dynamodb::Client,
    sqs: aws_sdk_sqs::Client,
    urls: BTreeMap<QueueName, String>,
    surroundings: Surroundings,
}

/// The tables' and queues' names, as `template.yaml` gives them to functions.
fn variables(template: &Template) -> BTreeMap<String, String> {
    let functions = ["Api", "Register", "Elect", "Group", "Handle", "Ack", "Notify", "Sweep"];
    functions.iter().flat_map(|function| template.environment(&format!("{function}Function")).unwrap()).collect()
}

pub(crate) fn outside(api: &Arc<ScriptedApi>, webhooks: &Arc<ScriptedWebhooks>) -> Outside {
    Outside {
        batch_apis: Arc::<ScriptedApi>::clone(api),
        webhooks: Arc::<ScriptedWebhooks>::clone(webhooks),
        commands: false,
    }
}

impl Stack {
    /// A fresh stack with one policy.
    pub async fn new(policy: serde_json::Value, api: Arc<ScriptedApi>, crash: Crash) -> Self {
        let template = Template::parse(include_str!("../../template.yaml")).unwrap();
        let engine = Engine::memory().unwrap();
        engine.provision(&template).await.unwrap();
        let mut variables = variables(&template);
        variables.insert("REGISTER_QUEUE_URL".to_owned(), template.queue("RegisterQueue").unwrap().url());
        let crash = Arc::new(crash);
        let world = World {
            clock: Arc::new(TestClock(tokio::time::Instant::now())),
            random: Arc::new(TestRandom(std::sync::Mutex::new(fastrand::Rng::with_seed(7)))),
        };
        let worker = engine.with_interceptor(crash.clone());
        let lookup = variables.clone();
        let surroundings =
            Surroundings::new(worker.dynamodb(), worker.sqs(), world.clone(), move |name| lookup.get(name).cloned());
        let lookup = variables.clone();
        let observer =
            Surroundings::new(engine.dynamodb(), engine.sqs(), world.clone(), move |name| lookup.get(name).cloned());
        let webhooks = Arc::new(ScriptedWebhooks::default());
        let steps = Steps::new(|_| surroundings.clone(), outside(&api, &webhooks)).unwrap();
        let all = QueueName::STEPS.into_iter().chain([QueueName::Notices]);
        let stack = Self {
            register: steps.register,
            elect: steps.elect,
            group: steps.group,
            handle: steps.handle,
            ack: steps.ack,
            notify: steps.notify,
            sweeper: steps.sweep,
            tracking: Tracking::from_environment(&surroundings).unwrap(),
            tasks: Tasks::new(observer.table("TASKS_TABLE").unwrap()),
            locks: Locks::new(observer.table("LOCKS_TABLE").unwrap()),
            gates: Gates::new(observer.table("LOCKS_TABLE").unwrap()),
            batches: Batches::new(observer.table("BATCHES_TABLE").unwrap()),
            urls: all.map(|queue| (queue, variables[queue.variable()].clone())).collect(),
            dynamodb: engine.dynamodb(),
            sqs: engine.sqs(),
            engine,
            world: world.clone(),
            crash,
            api,
            webhooks,
            surroundings,
        };
        let policy: Policy = serde_json::from_value(policy).unwrap();
        policy.check().unwrap();
        Policies::new(observer.table("POLICIES_TABLE").unwrap()).put(&policy).await.unwrap();
        stack
    }

    /// What the steps are made of, for another one beside them.
    pub fn surroundings(&self) -> &Surroundings {
        &self.surroundings
    }

    fn step(&self, queue: QueueName) -> &dyn Step {
        match queue {
            QueueName::Register => &*self.register,
            QueueName::Elect => &*self.elect,
            QueueName::Group => &*self.group,
            QueueName::Handle => &*self.handle,
            QueueName::Ack => &*self.ack,
            QueueName::Notify | QueueName::Notices => &*self.notify,
        }
    }

    pub fn url(&self, queue: QueueName) -> &str {
        &self.urls[&queue]
    }

    /// Puts a message in a queue.
    pub async fn send(&self, queue: QueueName, body: impl ToString) {
        self.sqs.send_message().queue_url(self.url(queue)).message_body(body.to_string()).send().await.unwrap();
    }

    /// Deletes a record, as DynamoDB does some time after its `ttl`.
    pub async fn delete_record(&self, table: &str, id: &str) {
        let key = aws_sdk_dynamodb::types::AttributeValue::S(id.to_owned());
        self.dynamodb.delete_item().table_name(table).key("id", key).send().await.unwrap();
    }

    /// Receives what is visible now. The messages stay in the queue until they are deleted.
    pub async fn receive(&self, queue: QueueName) -> Vec<Message> {
        let mut messages = Vec::new();
        loop {
            let receive = self.sqs.receive_message().queue_url(self.url(queue)).max_number_of_messages(10);
            let got = receive.wait_time_seconds(0).send().await.unwrap().messages.unwrap_or_default();
            if got.is_empty() {
                return messages;
            }
            messages.extend(got);
        }
    }

    /// Takes what is visible now out of the queue.
    pub async fn take(&self, queue: QueueName) -> Vec<Delivery> {
        let messages = self.receive(queue).await;
        for message in &messages {
            self.delete(queue, message).await;
        }
        messages.iter().map(delivery).collect()
    }

    async fn delete(&self, queue: QueueName, message: &Message) {
        let delete = self.sqs.delete_message().queue_url(self.url(queue));
        delete.receipt_handle(message.receipt_handle().unwrap()).send().await.unwrap();
    }

    /// Hands deliveries to the step behind a queue; if the worker dies over it, another one takes over.
    pub async fn hand(&self, queue: QueueName, deliveries: Vec<Delivery>) -> Vec<String> {
        let failed = self.step(queue).deliver(deliveries).await;
        self.crash.revive();
        failed
    }

    /// Delivers what is visible now, as an event source would. Answers how many messages there were.
    pub async fn deliver(&self, queue: QueueName) -> usize {
        let messages = self.receive(queue).await;
        if messages.is_empty() {
            return 0;
        }
        let failed = self.hand(queue, messages.iter().map(delivery).collect()).await;
        for message in &messages {
            if failed.iter().any(|id| Some(id.as_str()) == message.message_id()) {
                let visible = self.sqs.change_message_visibility().queue_url(self.url(queue)).visibility_timeout(1);
                visible.receipt_handle(message.receipt_handle().unwrap()).send().await.unwrap();
            } else {
                self.delete(queue, message).await;
            }
        }
        messages.len()
    }

    /// Delivers everything until no queue holds a message, however delayed. Panics if that takes two days.
    pub async fn drain(&self) {
        for _ in 0..200_000 {
            let (mut visible, mut total) = (0, 0);
            for queue in QueueName::STEPS {
                let backlog = self.engine.backlog(self.url(queue)).await.unwrap();
                total += backlog.total();
                if backlog.visible > 0 {
                    visible += self.deliver(queue).await;
                }
            }
            if total == 0 {
                return;
            }
            if visible == 0 {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
        panic!("the queues do not drain");
    }

    /// Messages in the queues of the steps.
    pub async fn backlog(&self) -> u64 {
        let mut messages = 0;
        for queue in QueueName::STEPS {
            let backlog = self.engine.backlog(self.url(queue)).await.unwrap();
            messages += backlog.total();
        }
        messages
    }

    /// Opens a fan-out of `items` items with a completion notice. The producer repeats a call that fails.
    pub async fn open(&self, items: u32, seal: bool) -> (Uuid, Vec<ItemId>) {
        loop {
            let request = OpenRequest {
                items,
                seal,
                user_key: Some("test".to_owned()),
                notify: Some(Destination::Queue(NoticesQueue::Notices)),
            };
            let opened = self.tracking.open(request, Some("open")).await;
            self.crash.revive();
            if let Ok(opened) = opened {
                return (opened.fanout.id, expand(opened.fanout.id, &opened.groups).collect());
            }
        }
    }

    /// Adds items to a fan-out. The producer repeats a call that fails.
    pub async fn add(&self, fanout: Uuid, items: u32, key: &str) -> Vec<ItemId> {
        loop {
            let added = self.tracking.add(fanout, items, Some(key)).await;
            self.crash.revive();
            if let Ok(groups) = added {
                let groups: Vec<ItemGroup> = groups;
                return expand(fanout, &groups).collect();
            }
        }
    }

    /// Seals a fan-out. The producer repeats a call that fails.
    pub async fn seal(&self, fanout: Uuid) {
        while self.tracking.seal(fanout).await.is_err() {
            self.crash.revive();
        }
        self.crash.revive();
    }

    /// Registers tasks. The producer repeats a request that fails.
    pub async fn register(&self, tasks: Vec<TaskRequest>) {
        while let Err(error) = self.register.register(tasks.clone(), "request").await {
            assert!(!matches!(error, RegisterError::Refused(_)), "{error}");
            self.crash.revive();
        }
        self.crash.revive();
    }

    /// Runs a sweep as the schedule does, some time after the last message.
    pub async fn sweep(&self) {
        tokio::time::sleep(Duration::from_secs(300)).await;
        while self.sweeper.sweep(SweepRequest::default()).await.is_err() {
            self.crash.revive();
        }
        self.crash.revive();
    }
}

fn delivery(message: &Message) -> Delivery {
    Delivery {
        message_id: message.message_id().unwrap().to_owned(),
        body: message.body().unwrap().to_owned(),
        receive_count: 1,
    }
}

/// A task: order `number` for `depot`.
pub fn order(id: Option<ItemId>, depot: &str, number: usize) -> TaskRequest {
    TaskRequest {
        id: id.map(TaskId::Item),
        kind: "parcel".to_owned(),
        content: serde_json::json!({ "depot": depot, "order": format!("ORD-{number}") }),
    }
}

impl Stack {
    /// Hands one message to `handle`.
    pub async fn handle_message(&self, message: fanfold::messages::HandleMessage) {
        let body = serde_json::to_string(&message).unwrap();
        let delivery = Delivery { message_id: "message".to_owned(), body, receive_count: 1 };
        assert!(self.hand(QueueName::Handle, vec![delivery]).await.is_empty());
    }
}
