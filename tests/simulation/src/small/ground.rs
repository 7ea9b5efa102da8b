//! Where the schedules of a case begin: tables, queues and what was asked for, prepared once and put back before each.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::types::{AttributeValue, DeleteRequest, PutRequest, WriteRequest};
use fanfold_local::{Engine, Template};
use serde_json::Value;

use super::gate::Gate;
use super::stage::{Actor, Stage};
use crate::api::Mood;
use crate::check;
use crate::faults::FaultPlan;
use crate::lock;
use crate::model::Model;
use crate::request::{Record, key_name};
use crate::run::TEMPLATE;
use crate::scenario::{KindPlan, Scenario};

/// A case: what is prepared, and who then works at once.
#[derive(Clone, Copy)]
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// What meets what.
    pub about: &'static str,
    /// The policy of its kind, beside what all cases have.
    pub(crate) policy: fn() -> Value,
    pub(crate) prepare: super::Prepare,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Case").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A case, prepared.
pub(crate) struct Ground {
    pub(crate) template: Template,
    pub(crate) engine: Engine,
    pub(crate) scenario: Scenario,
    pub(crate) actors: Vec<Actor>,
    records: BTreeMap<Record, Value>,
    items: HashMap<Record, HashMap<String, AttributeValue>>,
    model: Model,
    messages: Vec<(String, String, String)>,
    /// How the tables were left.
    left: BTreeMap<Record, Value>,
}

impl Ground {
    /// Prepares a case.
    pub(crate) async fn new(case: &Case) -> Result<Self, String> {
        let template = Template::parse(TEMPLATE).map_err(text)?;
        let engine = Engine::memory().map_err(text)?;
        engine.provision_tables(&template).map_err(text)?;
        let policy = serde_json::from_value((case.policy)()).map_err(text)?;
        let scenario = Scenario {
            // Three at most in a case, and one that makes it rest.
            workers: 4,
            kinds: vec![KindPlan { versions: vec![(Duration::ZERO, policy)] }],
            fanouts: Vec::new(),
            singles: Vec::new(),
            targets: 1,
            keys: 1,
            doomed: 0,
            mood: Mood::default(),
        };
        let mut ground = Self {
            template,
            engine,
            scenario,
            actors: Vec::new(),
            records: BTreeMap::new(),
            items: HashMap::new(),
            model: Model::default(),
            messages: Vec::new(),
            left: BTreeMap::new(),
        };
        let stage = Stage::new(&ground, Arc::default())?;
        check::put_policies(&ground.engine, &stage.sim, &ground.scenario).await?;
        lock(&stage.sim.model).kinds = ground.scenario.kind_models();
        ground.actors = (case.prepare)(&stage).await?;
        if let Some(problem) = stage.sim.violations().first() {
            return Err(format!("{}: {problem}", case.name));
        }
        ground.records = stage.gate.records();
        ground.left = ground.records.clone();
        for name in stage.sim.queues.names() {
            while let Some((id, body)) = stage.sim.queues.take(&name) {
                ground.messages.push((name.clone(), id, body));
            }
        }
        ground.model = lock(&stage.sim.model).clone();
        ground.items = ground.items().await?;
        Ok(ground)
    }

    /// The faults of a case: none by chance. Clocks differ as its workers' do.
    pub(crate) fn plan(&self) -> FaultPlan {
        let skew = self.actors.iter().map(|actor| actor.ahead).max().unwrap_or_default();
        FaultPlan { skew, sweep_every: Duration::from_secs(60), ..FaultPlan::default() }
    }

    /// Puts everything back, and begins a schedule.
    pub(crate) async fn begin(&self) -> Result<Stage, String> {
        self.put_back().await?;
        let gate = Arc::new(Gate::default());
        gate.begin_with(self.records.clone());
        let stage = Stage::new(self, gate)?;
        *lock(&stage.sim.model) = self.model.clone();
        for (queue, id, body) in &self.messages {
            stage.sim.queues.send(queue, id.clone(), body.clone(), Duration::ZERO, true);
        }
        Ok(stage)
    }

    /// The tables were left like this by a schedule.
    pub(crate) fn leave(&mut self, stage: &Stage) {
        self.left = stage.gate.records();
    }

    async fn put_back(&self) -> Result<(), String> {
        let mut writes: HashMap<String, Vec<WriteRequest>> = HashMap::new();
        for (table, key) in self.left.keys().filter(|record| !self.records.contains_key(record)) {
            let delete = DeleteRequest::builder().key(key_name(table), AttributeValue::S(key.clone()));
            let delete = WriteRequest::builder().delete_request(delete.build().map_err(text)?).build();
            writes.entry(table.clone()).or_default().push(delete);
        }
        for (record, _) in self.records.iter().filter(|(record, item)| self.left.get(*record) != Some(item)) {
            let put = PutRequest::builder().set_item(self.items.get(record).cloned());
            let put = WriteRequest::builder().put_request(put.build().map_err(text)?).build();
            writes.entry(record.0.clone()).or_default().push(put);
        }
        let client = self.engine.dynamodb();
        for (table, writes) in writes {
            for writes in writes.chunks(25) {
                client.batch_write_item().request_items(&table, writes.to_vec()).send().await.map_err(text)?;
            }
        }
        Ok(())
    }

    async fn items(&self) -> Result<HashMap<Record, HashMap<String, AttributeValue>>, String> {
        let client = self.engine.dynamodb();
        let mut items = HashMap::new();
        for (table, key) in self.records.keys() {
            let get = client.get_item().table_name(table).key(key_name(table), AttributeValue::S(key.clone()));
            let item = get.consistent_read(true).send().await.map_err(text)?.item;
            items.insert((table.clone(), key.clone()), item.unwrap_or_default());
        }
        Ok(items)
    }
}

pub(crate) fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
