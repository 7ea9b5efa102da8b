//! Fan-outs that fetch their tasks themselves: their users, and what is known of them.

mod again;
mod beside;
mod check;
mod plan;
mod reissue;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aws_smithy_types::base64;
use fanfold::ids::{ItemId, TaskId, derived, expand};
use fanfold::messages::TaskRequest;
use fanfold::producing::{Given, ResumeError};
use fanfold::store::fanouts::Tolerance;
use fanfold::store::producers::decompress;
use fanfold::tracking::page_groups;
use fanfold_produce::{SourceAnswer, SourceError, SourceRequest};
use futures::FutureExt;
use futures::future::join;
use serde_json::Value;
use uuid::Uuid;

pub(crate) use self::check::check;
pub(crate) use self::plan::ProducedPlan;
use crate::clients::{Clients, Passing};
use crate::dice::Dice;
use crate::faults::LATE_MAX;
use crate::lock;
use crate::model::{FanoutModel, Model};
use crate::objects::{Texts, page_of};
use crate::producer::cancel;
use crate::request::{Request, text};
use crate::shares::share;
use crate::sources::fixed_page;
use crate::steps::Steps;

/// A kind without a policy: a row of it is bad.
const NOBODY: &str = "nobody";

/// What is known of a fan-out with a producer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Produced {
    rows: Vec<Value>,
    partitions: u32,
    picks: bool,
    by_position: bool,
    strict: Option<Tolerance>,
    texts: Option<Texts>,
    /// Whether its rows are of a kind of their own.
    own: bool,
    /// The fan-out whose items it reissues.
    of: Option<Uuid>,
    /// How many members a batch with an item of it may have, if it is a reissue for small batches.
    max_batch: Option<usize>,
    /// Whether a further reissue of it was refused after the latest one was cut short: nothing is left to reissue.
    nothing_left: bool,
    /// The items of each page, by partition and number: of those that were written down, or, of objects, of all there will be.
    pages: BTreeMap<(u32, u64), Vec<ItemId>>,
}

impl Passing for ResumeError {
    fn passing(&self) -> bool {
        matches!(self, Self::Store(_) | Self::Queue(_))
    }
}

/// Its user: opens it, and lets it go on when a partition failed; and cancels it in the end, if one has too many bad rows.
pub(crate) async fn user(clients: Arc<Clients>, plan: ProducedPlan) {
    tokio::time::sleep(plan.start).await;
    // Nothing is cancelled in a calm run.
    let strict = plan.strict.filter(|_| !clients.cluster.sim.plan.calm);
    let plan = ProducedPlan { strict, ..plan };
    let Some(id) = open(&clients, &plan).await else { return };
    clients.spawn(cancel(Arc::clone(&clients), plan.cancel, id));
    let calm: fn(&Clients) -> bool = |clients| clients.cluster.sim.healed();
    join(resume(&clients, id, calm), change_key(&clients, &plan, id)).await;
    if plan.own.is_some() {
        // By then the key is put back.
        resume(&clients, id, calm).await;
    }
    again::user(&clients, &plan, id).await;
}

/// Stores the other policy of the kind of its rows once some were shared out by the first one, and puts that one back
/// after a while. Meanwhile its partitions fail.
async fn change_key(clients: &Clients, plan: &ProducedPlan, id: Uuid) {
    let sim = &clients.cluster.sim;
    let Some([(_, first), (_, other)]) = plan.own.as_ref().map(|own| &own.versions[..]) else { return };
    // With another key from the beginning on, that one would count.
    while !lock(&sim.model).has_items(id) {
        if again::at_rest(clients) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    sim.count("keys of policies changed");
    clients.put_policy(other.clone()).await;
    // A write whose answer was lost may be applied after its end.
    let dice = Dice::new(sim.seed, &format!("{} by another key", plan.name));
    tokio::time::sleep(dice.skewed(LATE_MAX * 2, Duration::from_secs(120))).await;
    clients.put_policy(first.clone()).await;
}

/// Lets its producer go on when it failed, until its fan-out is not open any more, or for a while once it is to be `calm`.
async fn resume(clients: &Arc<Clients>, id: Uuid, calm: fn(&Clients) -> bool) {
    // Sweeps, which heal what is lost, follow when users have nothing to do any more; by then sources do not fail any more.
    let mut left = 5;
    while left > 0 {
        left -= usize::from(calm(clients));
        tokio::time::sleep(clients.dice.skewed(Duration::from_secs(1), Duration::from_secs(300))).await;
        let resume = move |steps: Arc<Steps>| {
            async move {
                let Some(fanout) = steps.tracking.fanouts.get(id).await? else { return Ok(false) };
                match steps.producing.resume(&fanout).await {
                    Err(ResumeError::NotOpen { .. }) => Ok(false),
                    answer => answer.map(|_| true),
                }
            }
            .boxed()
        };
        let what = format!("POST /fanouts/{id}/producer/resume");
        if clients.until_done("api", &what, resume).await != Some(true) {
            return;
        }
    }
    let hopeless = lock(&clients.cluster.sim.model).hopeless(id);
    if hopeless {
        clients.cluster.sim.count("fan-outs with too many bad rows");
        cancel(Arc::clone(clients), Some(Duration::ZERO), id).await;
    }
}

async fn open(clients: &Arc<Clients>, plan: &ProducedPlan) -> Option<Uuid> {
    let (sim, id, request) = (&clients.cluster.sim, derived::fanout(&plan.name), plan.request()?);
    {
        let mut model = lock(&sim.model);
        let fanout = FanoutModel {
            user_key: plan.name.clone(),
            notify: plan.notify,
            sealing: true,
            tolerated: plan.tolerated,
            ..FanoutModel::default()
        };
        model.fanouts.insert(id, fanout);
        let ProducedPlan { rows, partitions, picks, by_position, kept, strict, texts, own, .. } = plan.clone();
        let own = own.is_some();
        let produced = Produced { rows, partitions, picks, by_position, strict, texts, own, ..Produced::default() };
        model.produced.insert(id, produced);
        if by_position && !kept {
            (0..partitions).for_each(|partition| model.expect_pages(id, partition, partitions));
        }
    }
    sim.count("fan-outs with a producer");
    let (key, what) = (plan.name.clone(), format!("POST /fanouts {}: {} rows", plan.name, plan.rows.len()));
    for _ in 0..1 + usize::from(clients.repeat().is_some()) {
        let (request, key) = (request.clone(), key.clone());
        let call = move |steps: Arc<Steps>| {
            let (request, key) = (request.clone(), key.clone());
            async move { steps.producing.open(&steps.tracking, request, Some(&key)).await }.boxed()
        };
        let opened = clients.until_done("api", &what, call).await?;
        if opened.fanout.id != id {
            sim.violate(format!("{what} answered another fan-out: {opened:?}"));
        }
    }
    if let Some(fanout) = lock(&sim.model).fanouts.get_mut(&id) {
        fanout.opened = true;
    }
    Some(id)
}

impl Model {
    /// Whether a page with items of a fan-out was written down.
    fn has_items(&self, fanout: Uuid) -> bool {
        self.produced.get(&fanout).is_some_and(|produced| produced.pages.values().any(|items| !items.is_empty()))
    }

    /// Whether the rows of a fan-out are of a kind of their own, whose policy shares them out.
    pub(crate) fn shares_by_policy(&self, fanout: Uuid) -> bool {
        self.produced.get(&fanout).is_some_and(|produced| produced.own)
    }

    /// The rows that a source has for a question.
    pub(crate) fn rows_for(&self, ask: &SourceRequest) -> Vec<Value> {
        let Some(produced) = self.produced.get(&ask.fanout) else { return Vec::new() };
        let position = |row: &Value| row["content"]["row"].as_u64().unwrap_or(0) * u64::from(ask.of);
        let theirs = |row: &&Value| match produced.by_position {
            true => position(row) / produced.rows.len() as u64 == u64::from(ask.partition),
            false => share(&row["content"]["row"].to_string(), ask.of) == ask.partition,
        };
        produced.rows.iter().filter(|row| !produced.picks || theirs(row)).cloned().collect()
    }

    /// Foresees the pages of a partition of an object, which are not written down: its source always cuts it in the same way.
    fn expect_pages(&mut self, fanout: Uuid, partition: u32, of: u32) {
        let mut ask = SourceRequest { fanout, partition, of, cursor: Value::Null };
        for page in 0.. {
            let Ok(SourceAnswer { rows, cursor }) = self.fixed_page(&ask) else { return };
            let task = |given: Given| serde_json::from_value::<TaskRequest>(given.row.ok()?).ok();
            let tasks: Vec<TaskRequest> = rows.into_iter().filter_map(task).collect();
            self.expect(fanout, partition, page, &tasks);
            let Some(cursor) = cursor else { return };
            ask.cursor = cursor;
        }
    }

    /// A page of an object: the same whenever it is asked for.
    pub(crate) fn fixed_page(&self, ask: &SourceRequest) -> Result<SourceAnswer, SourceError> {
        match self.produced.get(&ask.fanout).and_then(|produced| produced.texts.as_ref()) {
            Some(texts) => page_of(texts, ask),
            None => SourceAnswer::read(fixed_page(&self.rows_for(ask), ask).to_string().as_bytes(), ask),
        }
    }

    /// The tasks of a page, which are to have its items.
    fn expect(&mut self, fanout: Uuid, partition: u32, page: u64, tasks: &[TaskRequest]) {
        let groups = page_groups(fanout, partition, page, tasks.len() as u32);
        let items: Vec<ItemId> = expand(fanout, &groups).collect();
        items.iter().zip(tasks).for_each(|(item, task)| self.ask(TaskId::Item(*item), task));
        if let Some(produced) = self.produced.get_mut(&fanout) {
            produced.pages.insert((partition, page), items);
        }
    }

    /// Remembers what an applied write says: a page was written down, its items were added, or a partition moved on behind it.
    pub(crate) fn produces(&mut self, request: &Request) {
        for (of, key) in &request.writes {
            match of.as_str() {
                "ProducersTable" => self.moves(request, key),
                "GroupsTable" => self.adds(key),
                _ => None,
            };
        }
    }

    fn moves(&mut self, request: &Request, key: &str) -> Option<()> {
        let mut parts = key.split('/');
        let (fanout, partition): (Uuid, u32) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let Some(page) = parts.next() else {
            // Each such write has the page that the partition is at in its condition.
            let page = request.body["ExpressionAttributeValues"][":page"]["N"].as_str()?.parse::<u64>().ok()?;
            let pages = &self.produced.get(&fanout)?.pages;
            let behind: Vec<ItemId> =
                pages.range((partition, 0)..(partition, page)).flat_map(|(_, items)| items.clone()).collect();
            behind.into_iter().for_each(|item| self.accept(&TaskId::Item(item)));
            return Some(());
        };
        let page: u64 = page.parse().ok()?;
        let compressed = base64::decode(request.body["Item"]["tasks"]["B"].as_str()?).ok()?;
        let tasks = decompress(&compressed).ok()?;
        self.expect(fanout, partition, page, &tasks);
        Some(())
    }

    fn adds(&mut self, key: &str) -> Option<()> {
        let group: Uuid = key.parse().ok()?;
        for (id, produced) in &self.produced {
            let items = produced.pages.values().flatten().filter(|item| item.group == group);
            self.fanouts.get_mut(id)?.items.extend(items);
        }
        Some(())
    }
}

/// A partition that runs is in the index of those that sweeps look at, as long as its fan-out goes on.
pub(crate) fn is_lost(model: &Model, key: &str, now: &Value) -> Option<&'static str> {
    let fanout: Uuid = key.split('/').next()?.parse().ok()?;
    let runs = text(now, "state") == "running" && !model.fanouts.get(&fanout)?.cut_short;
    (runs && now["unfinished"].is_null()).then_some("runs, and no sweep looks at it")
}

/// A partition goes on from page to page, and stays as it is once it is done; a page is written once.
pub(crate) fn transition(earlier: &Value, now: &Value) -> Option<String> {
    let page = |record: &Value| record["page"]["N"].as_str().and_then(|page| page.parse::<u64>().ok());
    let done = text(earlier, "state") == "done" && text(now, "state") != "done";
    let kept = earlier["tasks"] == now["tasks"];
    (page(now) < page(earlier) || done || !kept).then(|| "went back".to_owned())
}
