//! Fan-outs that fetch their tasks themselves: their users, and what is known of them.

mod again;
mod check;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aws_smithy_types::base64;
use fanfold::ids::{ItemId, TaskId, derived, expand};
use fanfold::messages::TaskRequest;
use fanfold::policy::{Destination, NoticesQueue};
use fanfold::producing::{Given, Producer, ResumeError};
use fanfold::share::share;
use fanfold::store::fanouts::Tolerance;
use fanfold::store::producers::decompress;
use fanfold::tracking::{OpenRequest, page_groups};
use fanfold_produce::{SourceAnswer, SourceError, SourceRequest};
use futures::FutureExt;
use serde_json::{Value, json};
use uuid::Uuid;

use self::again::AgainPlan;
pub(crate) use self::check::check;
use crate::clients::{Clients, Passing};
use crate::dice::Dice;
use crate::lock;
use crate::model::{FanoutModel, Model};
use crate::objects::{page_of, text_of};
use crate::producer::cancel;
use crate::request::{Request, text};
use crate::scenario::KindPlan;
use crate::sources::fixed_page;
use crate::steps::Steps;

/// A kind without a policy: a row of it is bad.
const NOBODY: &str = "nobody";

/// A fan-out with a producer.
#[derive(Clone, Debug)]
pub(crate) struct ProducedPlan {
    name: String,
    start: Duration,
    rows: Vec<Value>,
    partitions: u32,
    /// Whether its source picks the rows of a partition; otherwise it answers all.
    picks: bool,
    /// Whether it picks them by their position, as objects of S3 are read, whatever their keys are.
    by_position: bool,
    /// Whether its pages are written down although they are always the same: bad rows are tolerated.
    kept: bool,
    /// Whether some rows may be bad.
    spoiled: bool,
    /// Its rows as an object has them, where it is cut into pages as objects of S3 are.
    text: Option<String>,
    notify: bool,
    tolerated: Option<Tolerance>,
    cancel: Option<Duration>,
    again: Option<AgainPlan>,
}

/// What is known of one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Produced {
    rows: Vec<Value>,
    partitions: u32,
    picks: bool,
    by_position: bool,
    text: Option<String>,
    /// The fan-out whose items it reissues.
    of: Option<Uuid>,
    /// The items of each page, by partition and number: of those that were written down, or, of objects, of all there will be.
    pages: BTreeMap<(u32, u64), Vec<ItemId>>,
}

impl ProducedPlan {
    /// Of dice of their own: everything else is drawn as it is without them.
    pub(crate) fn draw(seed: u64, kinds: &[KindPlan], busy: Duration) -> Vec<Self> {
        let dice = Dice::new(seed, "produced");
        let positions = Dice::new(seed, "produced by place");
        let (bad, cut) = (Dice::new(seed, "bad rows"), Dice::new(seed, "objects"));
        let again = Dice::new(seed, "again");
        let count = if dice.chance(4_000) { 1 + dice.below(2) } else { 0 };
        let plan = |n: usize| {
            let rows = (0..dice.below(25)).map(|row| Self::row(&dice, kinds, row)).collect();
            let by_position = positions.chance(3_000);
            Self {
                name: format!("produced{n}"),
                start: dice.millis(0, busy.as_millis() as u64 / 2),
                rows,
                partitions: 1 + dice.below(4) as u32,
                picks: dice.chance(5_000) || by_position,
                by_position,
                kept: positions.chance(3_000),
                spoiled: false,
                text: None,
                notify: dice.chance(8_000),
                tolerated: dice
                    .chance(3_000)
                    .then(|| dice.pick(&[Tolerance::Count(1), Tolerance::Percentage(0), Tolerance::Percentage(2_500)])),
                cancel: dice.chance(2_000).then(|| dice.skewed(Duration::from_millis(1), busy)),
                again: None,
            }
        };
        let mut plans: Vec<Self> = (0..count).map(plan).collect();
        for plan in &mut plans {
            plan.spoil(&bad);
            plan.again = AgainPlan::draw(&again, &mut plan.rows);
            if plan.by_position && cut.chance(6_000) {
                plan.text = Some(text_of(&plan.rows, &cut));
            }
        }
        plans
    }

    /// Makes some rows bad, where bad rows are tolerated.
    fn spoil(&mut self, dice: &Dice) {
        self.spoiled = dice.chance(4_000) && (self.kept || !self.by_position);
        let bad: Vec<&mut Value> = self.rows.iter_mut().filter(|_| self.spoiled && dice.chance(2_000)).collect();
        bad.into_iter().for_each(|row| row["kind"] = json!(NOBODY));
    }

    fn row(dice: &Dice, kinds: &[KindPlan], row: usize) -> Value {
        let kind = &kinds[dice.below(kinds.len())].versions[0].1.kind;
        let (target, key) = (format!("t{}", dice.below(3)), format!("k{}", dice.below(60)));
        json!({"kind": kind, "content": {"t": target, "k": key, "row": row}})
    }

    fn request(&self) -> Option<OpenRequest> {
        let producer = match self.by_position {
            true => json!({
                "source": {"s3": {"bucket": "rows", "key": "a.ndjson"}},
                "partitions": self.partitions,
                "tolerated_bad_rows": self.kept.then_some(self.rows.len()),
            }),
            false => json!({
                "source": {"url": "https://rows.example/"},
                "partitions": self.partitions,
                "key": "content.row",
                "tolerated_bad_rows": self.spoiled.then_some(self.rows.len()),
            }),
        };
        let producer: Producer = serde_json::from_value(producer).ok()?;
        Some(OpenRequest {
            user_key: Some(self.name.clone()),
            notify: self.notify.then_some(Destination::Queue(NoticesQueue::Notices)),
            producer: Some(producer),
            tolerated_failures: self.tolerated,
            ..OpenRequest::default()
        })
    }
}

impl Passing for ResumeError {
    fn passing(&self) -> bool {
        matches!(self, Self::Store(_) | Self::Queue(_))
    }
}

/// Its user: opens it, and lets it go on when a partition failed.
pub(crate) async fn user(clients: Arc<Clients>, plan: ProducedPlan) {
    tokio::time::sleep(plan.start).await;
    let Some(id) = open(&clients, &plan).await else { return };
    clients.spawn(cancel(Arc::clone(&clients), plan.cancel, id));
    resume(&clients, id, |clients| clients.cluster.sim.healed()).await;
    again::user(&clients, &plan, id).await;
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
        let ProducedPlan { rows, partitions, picks, by_position, kept, text, .. } = plan.clone();
        let produced = Produced { rows, partitions, picks, by_position, text, ..Produced::default() };
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
        match self.produced.get(&ask.fanout).and_then(|produced| produced.text.as_ref()) {
            Some(text) => page_of(text, ask),
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

/// A partition goes on from page to page, and stays as it is once it is done; a page is written once.
pub(crate) fn transition(earlier: &Value, now: &Value) -> Option<String> {
    let page = |record: &Value| record["page"]["N"].as_str().and_then(|page| page.parse::<u64>().ok());
    let done = text(earlier, "state") == "done" && text(now, "state") != "done";
    let kept = earlier["tasks"] == now["tasks"];
    (page(now) < page(earlier) || done || !kept).then(|| "went back".to_owned())
}
