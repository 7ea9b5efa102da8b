//! Where the schedules of a case begin: tables, queues and what was asked for, prepared once and put back before each.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{AttributeValue, DeleteRequest, PutRequest, WriteRequest};
use aws_smithy_types::base64;
use fanfold::store::places::Spread;
use fanfold_local::{Engine, Template};
use serde_json::Value;

use super::stage::{Actor, Scene, Stage};
use crate::api::Mood;
use crate::check;
use crate::faults::FaultPlan;
use crate::lock;
use crate::request::{Record, key_name};
use crate::run::template;
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
    pub(crate) template: &'static Template,
    pub(crate) engine: Engine,
    pub(crate) scenario: Scenario,
    pub(crate) actors: Vec<Actor>,
    client: Client,
    /// How it begins; none while it is prepared.
    scene: Option<Scene>,
    /// How the tables were left.
    left: BTreeMap<Record, Value>,
}

impl Ground {
    /// Prepares a case.
    pub(crate) async fn new(case: &Case) -> Result<Self, String> {
        let template = template()?;
        let engine = Engine::memory().map_err(text)?;
        engine.provision_tables(template).map_err(text)?;
        let policy = serde_json::from_value((case.policy)()).map_err(text)?;
        let scenario = Scenario {
            // Three at most in a case, and one that makes it rest.
            workers: 4,
            kinds: vec![KindPlan { versions: vec![(Duration::ZERO, policy)] }],
            fanouts: Vec::new(),
            singles: Vec::new(),
            produced: Vec::new(),
            estimated: Vec::new(),
            targets: 1,
            keys: 1,
            doomed: 0,
            poison: 0,
            mood: Mood::default(),
        };
        let client = engine.dynamodb();
        let (actors, left) = (Vec::new(), BTreeMap::new());
        let mut ground = Self { template, engine, scenario, actors, client, scene: None, left };
        let stage = Stage::new(&ground, Arc::default())?;
        check::put_policies(&ground.engine, &stage.sim, &ground.scenario).await?;
        lock(&stage.sim.model).kinds = ground.scenario.kind_models();
        ground.actors = (case.prepare)(&stage).await?;
        if let Some(problem) = stage.sim.violations().first() {
            return Err(format!("{}: {problem}", case.name));
        }
        ground.leave(&stage);
        ground.scene = Some(stage.scene());
        Ok(ground)
    }

    /// The faults of a case: none by chance. Clocks differ as its workers' do.
    pub(crate) fn plan(&self) -> FaultPlan {
        let skew = self.actors.iter().map(|actor| actor.ahead).max().unwrap_or_default();
        FaultPlan { skew, sweep_every: Duration::from_secs(60), ..FaultPlan::default() }
    }

    /// How the places of its kind are spread: where a case limits its calls, each has a record of its own.
    pub(crate) fn spread(&self) -> Spread {
        let limits =
            self.scenario.kinds.iter().flat_map(|kind| &kind.versions).any(|(_, policy)| policy.max_calls.is_some());
        if limits { Spread::of(1) } else { Spread::default() }
    }

    /// Begins a schedule. The tables are still as the one before left them.
    pub(crate) fn begin(&self) -> Result<Stage, String> {
        let stage = Stage::new(self, Arc::default())?;
        self.scene.iter().for_each(|scene| stage.set(scene.clone()));
        Ok(stage)
    }

    /// Goes on from a scene, or from the beginning.
    pub(crate) async fn go_on_from(&self, stage: &Stage, scene: Option<&Scene>) -> Result<(), String> {
        if let Some(scene) = scene.or(self.scene.as_ref()) {
            self.put_back(&scene.passed.records).await?;
            stage.set(scene.clone());
        }
        Ok(())
    }

    /// The tables were left like this by a schedule.
    pub(crate) fn leave(&mut self, stage: &Stage) {
        self.left = stage.gate.records();
    }

    async fn put_back(&self, records: &BTreeMap<Record, Value>) -> Result<(), String> {
        let mut writes: HashMap<&str, Vec<WriteRequest>> = HashMap::new();
        for (table, key) in self.left.keys().filter(|record| !records.contains_key(record)) {
            let delete = DeleteRequest::builder().key(key_name(table), AttributeValue::S(key.clone()));
            let delete = WriteRequest::builder().delete_request(delete.build().map_err(text)?).build();
            writes.entry(table).or_default().push(delete);
        }
        for (record, item) in records.iter().filter(|(record, item)| self.left.get(*record) != Some(item)) {
            let fields = item.as_object().into_iter().flatten();
            let item = fields.filter_map(|(name, value)| Some((name.clone(), attribute(value)?))).collect();
            let put = PutRequest::builder().set_item(Some(item)).build().map_err(text)?;
            writes.entry(&record.0).or_default().push(WriteRequest::builder().put_request(put).build());
        }
        for (table, writes) in writes {
            for writes in writes.chunks(WRITES) {
                self.client.batch_write_item().request_items(table, writes.to_vec()).send().await.map_err(text)?;
            }
        }
        Ok(())
    }
}

/// DynamoDB: writes in one batch.
const WRITES: usize = 25;

/// A value as the SDK has it; none for what Fanfold does not store.
fn attribute(value: &Value) -> Option<AttributeValue> {
    let (sort, value) = value.as_object()?.iter().next()?;
    let texts = || value.as_array()?.iter().map(|text| text.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>();
    let blob = |text: &str| base64::decode(text).ok().map(Blob::new);
    Some(match sort.as_str() {
        "S" => AttributeValue::S(value.as_str()?.to_owned()),
        "N" => AttributeValue::N(value.as_str()?.to_owned()),
        "B" => AttributeValue::B(blob(value.as_str()?)?),
        "BOOL" => AttributeValue::Bool(value.as_bool()?),
        "NULL" => AttributeValue::Null(true),
        "SS" => AttributeValue::Ss(texts()?),
        "NS" => AttributeValue::Ns(texts()?),
        "BS" => AttributeValue::Bs(texts()?.iter().map(|text| blob(text)).collect::<Option<_>>()?),
        "L" => AttributeValue::L(value.as_array()?.iter().map(attribute).collect::<Option<_>>()?),
        "M" => {
            let fields = value.as_object()?.iter();
            AttributeValue::M(
                fields.map(|(name, value)| Some((name.clone(), attribute(value)?))).collect::<Option<_>>()?,
            )
        }
        _ => return None,
    })
}

pub(crate) fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
