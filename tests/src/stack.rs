//! The stack under test.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use fanfold::clock::World;
use fanfold::config::Surroundings;
use fanfold::control::{Cancelling, Control};
use fanfold::policy::Policy;
use fanfold::producing::Producing;
use fanfold::store::batches::Batches;
use fanfold::store::gates::Gates;
use fanfold::store::locks::Locks;
use fanfold::store::places::Spread;
use fanfold::store::policies::Policies;
use fanfold::store::tasks::Tasks;
use fanfold::tracking::Tracking;
use fanfold_ack::Ack;
use fanfold_elect::Elect;
use fanfold_group::Group;
use fanfold_handle::Handle;
use fanfold_local::{Engine, Template};
use fanfold_notify::Notify;
use fanfold_produce::Produce;
use fanfold_register::Register;
use fanfold_stack::{Outside, Steps};
use fanfold_sweep::Sweep;

use crate::api::ScriptedApi;
use crate::crash::Crash;
use crate::dev::DEV_QUEUES;
use crate::partitions::{Partitions, Throughput};
use crate::policies::policy;
use crate::queues::QueueName;
use crate::sources::ScriptedSources;
use crate::webhooks::ScriptedWebhooks;
use crate::world::{TestClock, world};

/// Every step of a stack over one engine; their requests pass by a [`Crash`].
pub struct TestStack {
    pub crash: Arc<Crash>,
    pub api: Arc<ScriptedApi>,
    pub webhooks: Arc<ScriptedWebhooks>,
    pub sources: Arc<ScriptedSources>,
    pub produce: Arc<Produce>,
    pub register: Arc<Register>,
    pub elect: Arc<Elect>,
    pub group: Arc<Group>,
    pub handle: Arc<Handle>,
    pub ack: Arc<Ack>,
    pub notify: Arc<Notify>,
    pub sweeper: Arc<Sweep>,
    /// Tracking and producing as the steps see them.
    pub tracking: Tracking,
    pub producing: Producing,
    /// Pausing, draining and cancelling as the API does it.
    pub control: Control,
    pub cancelling: Cancelling,
    /// Stores whose requests always come through.
    pub tasks: Tasks,
    pub locks: Locks,
    pub gates: Gates,
    pub batches: Batches,
    pub world: World,
    pub clock: Arc<TestClock>,
    pub(crate) engine: Engine,
    worker: Engine,
    pub(crate) dynamodb: aws_sdk_dynamodb::Client,
    pub(crate) sqs: aws_sdk_sqs::Client,
    pub(crate) urls: BTreeMap<QueueName, String>,
    surroundings: Surroundings,
}

/// The tables' and queues' names, as `template.yaml` gives them to functions.
fn variables(template: &Template) -> BTreeMap<String, String> {
    let functions = ["Api", "Produce", "Register", "Elect", "Group", "Handle", "Ack", "Notify", "Sweep"];
    functions.iter().flat_map(|function| template.environment(&format!("{function}Function")).unwrap()).collect()
}

pub(crate) fn outside(
    api: &Arc<ScriptedApi>,
    webhooks: &Arc<ScriptedWebhooks>,
    sources: &Arc<ScriptedSources>,
) -> Outside {
    Outside {
        batch_apis: Arc::<ScriptedApi>::clone(api),
        webhooks: Arc::<ScriptedWebhooks>::clone(webhooks),
        sources: Arc::<ScriptedSources>::clone(sources),
        commands: false,
        call_by_call: false,
    }
}

/// The template.
pub(crate) fn template() -> &'static Template {
    static TEMPLATE: LazyLock<Template> =
        LazyLock::new(|| Template::parse(include_str!("../../template.yaml")).unwrap());
    &TEMPLATE
}

/// Stores a policy.
async fn put(observer: &Surroundings, policy: serde_json::Value) {
    let policy: Policy = serde_json::from_value(policy).unwrap();
    policy.check().unwrap();
    Policies::new(observer.table("POLICIES_TABLE").unwrap()).put(&policy).await.unwrap();
}

/// The parts of a stack in tables and queues with these names.
fn surroundings(engine: &Engine, world: &World, variables: &BTreeMap<String, String>, spread: Spread) -> Surroundings {
    let names = variables.clone();
    let look_up = move |name: &str| names.get(name).cloned();
    let mut surroundings = engine.surroundings(world.clone(), look_up);
    surroundings.spread = spread;
    surroundings
}

impl TestStack {
    /// A fresh stack with one policy.
    pub async fn new(policy: serde_json::Value, api: Arc<ScriptedApi>, crash: Crash) -> Self {
        Self::deployed(policy, api, crash, &[]).await
    }

    /// The same, with some variables other than the template's defaults say.
    pub async fn deployed(
        policy: serde_json::Value,
        api: Arc<ScriptedApi>,
        crash: Crash,
        parameters: &[(&str, &str)],
    ) -> Self {
        Self::built(policy, api, crash, parameters, Spread::default()).await
    }

    /// A fresh stack with so many places per record.
    pub async fn with_places_per_record(
        policy: serde_json::Value,
        api: Arc<ScriptedApi>,
        crash: Crash,
        per_record: u32,
    ) -> Self {
        Self::built(policy, api, crash, &[], Spread::of(per_record)).await
    }

    async fn built(
        policy: serde_json::Value,
        api: Arc<ScriptedApi>,
        crash: Crash,
        parameters: &[(&str, &str)],
        spread: Spread,
    ) -> Self {
        let template = template();
        let engine = Engine::memory().unwrap();
        engine.provision(template).await.unwrap();
        let mut variables = variables(template);
        variables.insert("REGISTER_QUEUE_URL".to_owned(), template.queue("RegisterQueue").unwrap().url());
        variables.insert("DEV_QUEUES".to_owned(), DEV_QUEUES.to_owned());
        variables.extend(parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let crash = Arc::new(crash);
        let (world, clock) = world();
        let worker = crash.worker(&engine);
        let observer = surroundings(&engine, &world, &variables, spread);
        let surroundings = surroundings(&worker, &world, &variables, spread);
        let webhooks = Arc::new(ScriptedWebhooks::default());
        let sources = Arc::new(ScriptedSources::default());
        let steps = Steps::new(|_| surroundings.clone(), outside(&api, &webhooks, &sources)).unwrap();
        let all = QueueName::STEPS.into_iter().chain([QueueName::Notices]);
        let stack = Self {
            produce: steps.produce,
            register: steps.register,
            elect: steps.elect,
            group: steps.group,
            handle: steps.handle,
            ack: steps.ack,
            notify: steps.notify,
            sweeper: steps.sweep,
            tracking: Tracking::from_environment(&surroundings).unwrap(),
            producing: Producing::from_environment(&surroundings).unwrap(),
            control: Control::from_environment(&surroundings).unwrap(),
            cancelling: Cancelling::from_environment(&surroundings).unwrap(),
            tasks: Tasks::new(observer.table("TASKS_TABLE").unwrap()),
            locks: Locks::new(observer.table("LOCKS_TABLE").unwrap()),
            gates: Gates::from_environment(&observer).unwrap(),
            batches: Batches::new(observer.table("BATCHES_TABLE").unwrap()),
            urls: all.map(|queue| (queue, variables[queue.variable()].clone())).collect(),
            dynamodb: engine.dynamodb(),
            sqs: engine.sqs(),
            engine,
            worker,
            world: world.clone(),
            clock,
            crash,
            api,
            webhooks,
            sources,
            surroundings,
        };
        put(&observer, policy).await;
        stack
    }

    /// A fresh stack with the policy of parcels, changed, whose batch API and requests always succeed.
    pub async fn with(changes: serde_json::Value) -> Self {
        Self::new(policy(changes), ScriptedApi::always_succeeds(), Crash::never()).await
    }

    /// The same over tables whose partitions take only so much.
    pub async fn throttled(
        changes: serde_json::Value,
        api: Arc<ScriptedApi>,
        limits: Throughput,
        parameters: &[(&str, &str)],
    ) -> (Self, Arc<Partitions>) {
        let partitions = Arc::new(Partitions::new(limits));
        let crash = Crash::meeting(Arc::<Partitions>::clone(&partitions));
        let stack = Self::deployed(policy(changes), api, crash, parameters).await;
        partitions.watch(stack.dynamodb.clone());
        (stack, partitions)
    }

    /// What the steps are made of, for another one beside them.
    pub fn surroundings(&self) -> &Surroundings {
        &self.surroundings
    }

    /// What the steps have asked for so far.
    pub fn usage(&self) -> fanfold_local::Usage {
        self.worker.usage()
    }

    /// Deletes a record, as DynamoDB does some time after its `ttl`.
    pub async fn delete_record(&self, table: &str, id: &str) {
        let key = aws_sdk_dynamodb::types::AttributeValue::S(id.to_owned());
        self.dynamodb.delete_item().table_name(table).key("id", key).send().await.unwrap();
    }

    /// So many days pass, with a sweep on each, and what has expired is deleted. Messages are delivered only by the caller.
    pub async fn days(&self, days: u32) {
        for _ in 0..days {
            self.clock.skip(Duration::from_secs(24 * 3_600));
            self.sweep().await;
            self.delete_expired().await;
        }
    }

    /// Deletes every record whose `ttl` is over. DynamoDB does it some time after that, and nothing may depend on when.
    pub async fn delete_expired(&self) {
        let now = self.world.now().seconds();
        for table in ["TasksTable", "BatchesTable", "GroupsTable", "FanoutsTable", "ProducersTable"] {
            for item in self.scan(table).await {
                let ttl = item.get("ttl").map(|ttl| ttl.as_n().unwrap().parse::<u64>().unwrap());
                if ttl.is_some_and(|ttl| ttl <= now) {
                    self.delete_record(table, item["id"].as_s().unwrap()).await;
                }
            }
        }
    }
}
