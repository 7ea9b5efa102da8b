//! What a sweep sees on its way that a person may have to know: it is recorded for `GET /health`, and measured.

use std::collections::BTreeMap;

use fanfold::clock::Timestamp;
use fanfold::limits::{CALLS_FAIL_AFTER, CALLS_FAIL_ATTEMPTS, HINT_LOST_AFTER, TASKS_STALE_AFTER, WORK_STALE_AFTER};
use fanfold::metrics::{FINDINGS, OLDEST_BATCH, OLDEST_WAITING};
use fanfold::store::batches::{Batch, BatchStatus};
use fanfold::store::fanouts::Fanout;
use fanfold::store::findings::{Findings, What};
use fanfold::store::gates::Gate;
use fanfold::store::producers::Partition;
use uuid::Uuid;

use crate::switches::Oldest;
use crate::{Round, Sweep};

/// What a sweep saw.
#[derive(Debug)]
pub(crate) struct Seen {
    /// When the sweep began: ages are counted up to then.
    now: Timestamp,
    /// What is stale or in error.
    pub(crate) findings: Findings,
    /// When the oldest task was registered that waits, paused lanes left out.
    waiting: Option<Timestamp>,
    /// When the oldest batch was formed that is not done, paused lanes left out.
    batch: Option<Timestamp>,
    /// The kinds whose calls fail: the oldest batch that waits for another one, and why.
    failing: BTreeMap<String, (Timestamp, String)>,
    /// The fan-outs whose producers failed: since when, and why.
    producers: BTreeMap<Uuid, (Timestamp, String)>,
}

impl Seen {
    pub(crate) fn new(now: Timestamp) -> Self {
        Self {
            now,
            findings: Findings::default(),
            waiting: None,
            batch: None,
            failing: BTreeMap::new(),
            producers: BTreeMap::new(),
        }
    }

    /// Adds a finding if it has stood for long.
    fn add(&mut self, what: What, since: Timestamp, name: &str, error: Option<&str>) {
        if self.now.since(since) >= WORK_STALE_AFTER {
            self.findings.add(what, since, name, error);
        }
    }

    /// A batch. One that `stays` where it is, since it is paused or has no policy, may wait for long, and so may that of a kind
    /// that stands still.
    pub(crate) fn batch(&mut self, batch: &Batch, stays: bool, gate: Option<&Gate>) {
        if stays || batch.status == BatchStatus::Done || gate.is_some_and(|gate| gate.stopped.is_some()) {
            return;
        }
        let since = batch.waits_since();
        self.batch = Some(self.batch.map_or(since, |oldest| oldest.min(since)));
        // Until its deadline, nothing is late.
        if batch.later.as_ref().is_none_or(|later| later.until < self.now) {
            self.add(What::BatchUnfinished, since, &batch.id.to_string(), batch.last_error.as_deref());
        }
        if let Some(error) = calls_fail(batch, self.now) {
            keep_first(&mut self.failing, batch.lane.kind.clone(), since, error);
        }
    }

    /// A batch of which only its notice is left.
    pub(crate) fn not_notified(&mut self, batch: &Batch) {
        let error = batch.notice.error.as_deref();
        self.add(What::NoticeUndelivered, batch.updated_at, &batch.id.to_string(), error);
    }

    /// A fan-out that has an end ahead, or work after it.
    pub(crate) fn fanout(&mut self, fanout: &Fanout) {
        let name = fanout.id.to_string();
        if fanout.nothing_left() || fanout.to_fail() || fanout.ending_early() {
            self.add(What::FanoutUnfinished, fanout.updated_at, &name, None);
        } else if let Some(since) = fanout.undelivered_since() {
            self.add(What::NoticeUndelivered, since, &name, fanout.notice.error.as_deref());
        }
    }

    /// A partition that failed, of a fan-out that is open.
    pub(crate) fn failed(&mut self, partition: &Partition) {
        let error = partition.error.as_deref().unwrap_or_default();
        keep_first(&mut self.producers, partition.fanout, partition.updated_at, error);
    }

    /// Everything was seen: what is found of kinds and producers is known, and the gauges are set.
    pub(crate) fn finish(&mut self) {
        for (kind, (since, error)) in std::mem::take(&mut self.failing) {
            self.findings.add(What::CallsFail, since, &kind, Some(&error));
        }
        for (fanout, (since, error)) in std::mem::take(&mut self.producers) {
            self.findings.add(What::ProducerFailed, since, &fanout.to_string(), Some(&error));
        }
        self.measure();
    }

    fn measure(&self) {
        let age = |since: Option<Timestamp>| since.map_or(0.0, |since| self.now.since(since).as_secs_f64());
        metrics::gauge!(OLDEST_WAITING).set(age(self.waiting));
        metrics::gauge!(OLDEST_BATCH).set(age(self.batch));
        metrics::gauge!(FINDINGS).set(self.findings.count() as f64);
    }
}

/// Of several that have the same name, the first counts.
fn keep_first<T: Ord>(all: &mut BTreeMap<T, (Timestamp, String)>, name: T, since: Timestamp, error: &str) {
    let first = all.entry(name).or_insert_with(|| (since, error.to_owned()));
    if since < first.0 {
        *first = (since, error.to_owned());
    }
}

/// Why the calls of a batch failed, if they have for so long that a person may have to know. Its members have attempts left.
fn calls_fail(batch: &Batch, now: Timestamp) -> Option<&str> {
    let failing =
        batch.attempts_that_count() >= CALLS_FAIL_ATTEMPTS && now.since(batch.waits_since()) >= CALLS_FAIL_AFTER;
    batch.last_error.as_deref().filter(|_| failing)
}

impl Sweep {
    /// Judges the lanes in which tasks wait. Paused ones may do so for long.
    pub(crate) async fn judge_waiting(&self, round: &Round, oldest: &Oldest, seen: &mut Seen) {
        for (lane, since) in oldest.iter().filter(|(lane, _)| !round.switches.hold(lane).paused) {
            seen.waiting = Some(seen.waiting.map_or(*since, |before| before.min(*since)));
            let age = seen.now.since(*since);
            if !round.known.has(&lane.kind) {
                if age >= HINT_LOST_AFTER {
                    seen.findings.add(What::NoPolicy, *since, &lane.to_string(), None);
                }
            } else if age >= TASKS_STALE_AFTER && age >= TASKS_STALE_AFTER + self.linger(lane, round).await {
                seen.findings.add(What::TasksWait, *since, &lane.to_string(), None);
            }
        }
    }
}
