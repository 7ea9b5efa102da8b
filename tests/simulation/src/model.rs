//! The reference: what was asked of Fanfold, what the batch API was sent and answered, and which notices users got.

mod calls;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fanfold::backoff::Backoff;
use fanfold::ids::{ItemId, TaskId};
use fanfold::messages::TaskRequest;
use fanfold::notice::Notice;
use fanfold::store::fanouts::{IdleLimit, NotifyOn, Tolerance};
use tokio::time::Instant;
use uuid::Uuid;

use crate::control::ControlModel;
use crate::dev::DevModel;
use crate::estimated::EstimatedModel;
use crate::filled::Filled;
use crate::hooks::Hooks;
use crate::later::LaterModel;
use crate::lingering::Waits;
use crate::notices::Heard;
use crate::pace::Pace;
use crate::produced::Produced;
use crate::rates::{Counted, Seen};
use crate::working::Working;

/// Within this time a task gets to the batch API that waits for its own kind only, in a run in which nothing else hangs.
const UNHINDERED: Duration = Duration::from_secs(150);

/// What holds for a kind over all versions of its policy.
#[derive(Clone, Debug)]
pub(crate) struct KindModel {
    pub(crate) max_batch: usize,
    pub(crate) filling: Filled,
    /// How long its leaders may wait, and must.
    pub(crate) waits: Waits,
    pub(crate) max_in_flight: usize,
    pub(crate) max_attempts: u32,
    pub(crate) backoff: Backoff,
    pub(crate) keyed: bool,
    /// Into how many partitions its targets are split, in every version.
    pub(crate) partitions: u32,
    /// The expression of its scope, if it has one: `kind` or `content.t`.
    pub(crate) scope: Option<String>,
    /// Whether keys of failed tasks are released.
    pub(crate) releases: bool,
    pub(crate) notify: bool,
    /// Whether results are kept.
    pub(crate) keeps: bool,
    pub(crate) lane_rate: Option<Counted>,
    pub(crate) kind_rate: Option<Counted>,
    pub(crate) max_calls: usize,
    /// How long after a call it may be answered, if it may be answered later.
    pub(crate) answers_within: Option<Duration>,
    /// Whether its calls are messages of a queue.
    pub(crate) queued: bool,
}

/// Scope and value of a key.
pub(crate) type Key = (String, String);

/// A task that somebody asked for.
#[derive(Clone, Debug)]
pub(crate) struct TaskModel {
    pub(crate) kind: String,
    pub(crate) content: serde_json::Value,
    pub(crate) key: Option<Key>,
    /// What another request under the same idempotency key asked for in its place.
    pub(crate) instead: Option<serde_json::Value>,
    /// Whether the request was accepted: from then on it must be handled.
    pub(crate) accepted: bool,
    /// Whether the user was answered with its id: from then on it can be asked for.
    pub(crate) answered: bool,
    /// When it was asked for.
    pub(crate) asked_at: Instant,
}

/// What calls are held to.
#[derive(Clone, Debug)]
pub(crate) struct CallLimits {
    /// How far clocks are apart at most.
    pub(crate) apart: Duration,
    /// The kind whose batch API hangs, where nothing else delays the tasks of others.
    pub(crate) hangs: Option<String>,
}

/// A fan-out.
#[derive(Clone, Debug, Default)]
pub(crate) struct FanoutModel {
    pub(crate) user_key: String,
    pub(crate) notify: bool,
    /// The ends and shares that are reported, if not each end.
    pub(crate) notify_on: NotifyOn,
    pub(crate) items: BTreeSet<ItemId>,
    /// Whether its user was answered.
    pub(crate) opened: bool,
    /// The items that its tasks are, if it is opened with tasks. They are among its items once its header is written.
    pub(crate) brought: Vec<ItemId>,
    /// Whether sealing was asked for.
    pub(crate) sealing: bool,
    /// For how long nothing may happen to it, if its user says so; and when something last did.
    pub(crate) idle_limit: Option<IdleLimit>,
    pub(crate) active_at: Option<Instant>,
    /// Whether cancelling was asked for, and since when it is answered.
    pub(crate) cancelling: bool,
    pub(crate) cancelled_at: Option<Instant>,
    /// Whether it expired.
    pub(crate) expired: bool,
    /// Whether a write has cut it short, in whichever way.
    pub(crate) cut_short: bool,
    /// How many items may fail, and whether it was decided that more did.
    pub(crate) tolerated: Option<Tolerance>,
    pub(crate) failing: bool,
    /// The fan-outs whose ends ack items of it.
    pub(crate) children: BTreeMap<ItemId, Uuid>,
    /// How it ended, once it has.
    pub(crate) ended: Option<String>,
    /// The task that follows from its end.
    pub(crate) then: Option<TaskId>,
    /// Items that users ack themselves, and whether as failed.
    pub(crate) acked: BTreeMap<ItemId, bool>,
}

/// What the batch API said of a task.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Said {
    pub(crate) succeeded: bool,
    pub(crate) failed: bool,
}

/// Everything asked and answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) kinds: BTreeMap<String, KindModel>,
    /// Whether a policy was ever deleted.
    pub(crate) ever_missing: bool,
    pub(crate) tasks: BTreeMap<TaskId, TaskModel>,
    pub(crate) by_key: BTreeMap<Key, BTreeSet<TaskId>>,
    pub(crate) fanouts: BTreeMap<Uuid, FanoutModel>,
    /// Those of them that have a producer.
    pub(crate) produced: BTreeMap<Uuid, Produced>,
    pub(crate) estimated: BTreeMap<Uuid, EstimatedModel>,
    /// What was counted, by the worker and its request.
    pub(crate) counted: BTreeSet<(String, String)>,
    pub(crate) said: BTreeMap<TaskId, Said>,
    pub(crate) notices: BTreeMap<Uuid, Notice>,
    /// The bytes of calls by idempotency key.
    calls: BTreeMap<String, String>,
    /// The idempotency key of each batch with each of its sets of members.
    keys: BTreeMap<(Uuid, Vec<TaskId>), String>,
    /// The batch a task was handed to the batch API in.
    batch_of: BTreeMap<TaskId, Uuid>,
    /// The content a task was handed to the batch API with.
    pub(crate) handled_as: BTreeMap<TaskId, serde_json::Value>,
    /// The tasks that had each key before.
    pub(crate) had: BTreeMap<String, BTreeSet<TaskId>>,
    /// Tasks that are duplicates.
    pub(crate) dropped: BTreeSet<TaskId>,
    /// The highest attempt of each batch that reached the batch API.
    attempts: BTreeMap<Uuid, u32>,
    /// How many calls with a task reached the batch API.
    tried: BTreeMap<TaskId, u32>,
    /// Members that succeeded by the answer to an attempt, by batch and attempt.
    worked: BTreeMap<(Uuid, u32), Vec<TaskId>>,
    /// The same, once the batch's record has it: they may not be called again.
    pub(crate) recorded: BTreeSet<TaskId>,
    /// Fan-outs whose failed items users asked to be called again.
    pub(crate) reissuing: BTreeSet<Uuid>,
    /// The results that the batch API returned, by batch and attempt.
    returned: BTreeMap<(Uuid, u32), BTreeMap<TaskId, String>>,
    /// Attempts whose outcomes were written down, by batch.
    pub(crate) counted_attempts: BTreeSet<(Uuid, u32)>,
    /// Batches that were split.
    pub(crate) split: BTreeSet<Uuid>,
    /// How many calls with a task reached the batch API after its batch was split.
    tried_in_parts: BTreeMap<TaskId, u32>,
    /// Members of an attempt that got no answer, by batch and attempt.
    unanswered: BTreeMap<(Uuid, u32), Vec<TaskId>>,
    /// The same, by batch, once the end of that attempt was written down, or the next call came without that. They are
    /// called again as they are, also after faults that may pass.
    repeated: BTreeMap<Uuid, Vec<TaskId>>,
    /// Attempts that were answered with a fault that may pass, by batch and attempt.
    passing: BTreeSet<(Uuid, u32)>,
    /// Members of the latest call of a batch, until its end is written down: whoever calls next repeats it.
    pending: BTreeMap<Uuid, Vec<TaskId>>,
    /// When attempts began, by batch and number.
    pub(crate) begun: BTreeMap<(Uuid, u32), Instant>,
    /// The fan-outs that were cut short before attempts began.
    pub(crate) cut_before: BTreeMap<(Uuid, u32), BTreeSet<Uuid>>,
    /// What a reader was shown that may not change any more: fan-outs that are complete, tasks that ended.
    pub(crate) shown: BTreeMap<String, String>,
    /// The lane of each batch.
    pub(crate) lanes: BTreeMap<Uuid, String>,
    /// The calls that work at the batch API now.
    pub(crate) working: Working,
    /// Notices as they are delivered.
    pub(crate) hooks: Hooks,
    /// When batches may be called again.
    pub(crate) pace: Pace,
    /// The calls, as a batch API counts them that limits their rates.
    rates: Seen,
    /// How far fan-outs had come as users know.
    pub(crate) heard: Heard,
    /// What operators did.
    pub(crate) control: ControlModel,
    /// Calls that are answered later.
    pub(crate) later: LaterModel,
    /// Dev sessions.
    pub(crate) dev: DevModel,
}

impl FanoutModel {
    /// Whether so many failures of so many items are more than it tolerates.
    pub(crate) fn exceeded(&self, failures: u64, total: u64) -> bool {
        match self.tolerated {
            None => false,
            Some(Tolerance::Count(most)) => failures > most,
            Some(Tolerance::Percentage(share)) => failures as f64 / total as f64 > f64::from(share) / 10_000.0 + 1e-9,
        }
    }
}

impl Model {
    /// A task is about to be asked for.
    pub(crate) fn ask(&mut self, id: TaskId, request: &TaskRequest) {
        let kind = self.kinds.get(&request.kind);
        let keyed = kind.is_some_and(|kind| kind.keyed);
        let scope = match (kind.and_then(|kind| kind.scope.as_deref()), id) {
            (Some("kind"), _) => format!("{} everywhere", request.kind),
            (Some(_), _) => format!("{} for {}", request.kind, request.content["t"]),
            (None, TaskId::Item(item)) => format!("{}:{}", request.kind, item.fanout),
            (None, TaskId::Single(_)) => request.kind.clone(),
        };
        let key = keyed.then(|| (scope, request.content["k"].as_str().unwrap_or("").to_owned()));
        if let Some(key) = &key {
            self.by_key.entry(key.clone()).or_default().insert(id);
        }
        let (kind, content) = (request.kind.clone(), request.content.clone());
        let asked_at = Instant::now();
        let task = TaskModel { kind, content, key, instead: None, accepted: false, answered: false, asked_at };
        self.tasks.entry(id).or_insert(task);
    }

    /// Its request was accepted.
    pub(crate) fn accept(&mut self, id: &TaskId) {
        if let Some(task) = self.tasks.get_mut(id) {
            task.accepted = true;
        }
    }

    /// The user was answered with its id.
    pub(crate) fn answer(&mut self, id: &TaskId) {
        if let Some(task) = self.tasks.get_mut(id) {
            task.answered = true;
        }
    }

    /// Whether another task may have the key of this one: it failed, and did not work as far as is known by now.
    pub(crate) fn may_be_released(&self, id: &TaskId) -> bool {
        let kind = self.tasks.get(id).and_then(|task| self.kinds.get(&task.kind));
        let said = self.said.get(id).copied().unwrap_or_default();
        let unknown = !said.succeeded || self.later.retried.contains(id);
        kind.is_some_and(|kind| kind.releases) && unknown && (said.failed || self.used_up(id))
    }

    /// Whether tasks of other fan-outs may have the key of this one: its fan-out was cut short, and it did not work.
    pub(crate) fn may_be_released_to_others(&self, id: &TaskId) -> bool {
        let kind = self.tasks.get(id).and_then(|task| self.kinds.get(&task.kind));
        let scoped = kind.is_some_and(|kind| kind.scope.is_some());
        let said = self.said.get(id).copied().unwrap_or_default();
        scoped && !said.succeeded && matches!(id, TaskId::Item(item) if self.may_be_missing(item))
    }

    /// Whether users want it called again, as an item of another fan-out or because they reset it, so that another task
    /// may have its key: it did not succeed.
    pub(crate) fn may_be_reissued(&self, id: &TaskId) -> bool {
        let reissued = matches!(id, TaskId::Item(item) if self.reissuing.contains(&item.fanout));
        (reissued || self.control.resets.contains_key(id)) && !self.recorded.contains(id)
    }

    /// Whether a call with a task reached the batch API.
    pub(crate) fn was_called(&self, id: &TaskId) -> bool {
        self.batch_of.contains_key(id)
    }

    /// Tasks that share a task's key; itself, if it has none.
    pub(crate) fn rivals(&self, id: &TaskId) -> BTreeSet<TaskId> {
        let key = self.tasks.get(id).and_then(|task| task.key.as_ref());
        key.and_then(|key| self.by_key.get(key)).cloned().unwrap_or_else(|| BTreeSet::from([*id]))
    }

    /// Whether an item may be done by now: its user acked it, the batch API settled its task or used up its attempts, or
    /// another task has its key.
    pub(crate) fn may_be_done(&self, item: &ItemId) -> bool {
        let id = TaskId::Item(*item);
        self.fanouts.get(&item.fanout).is_some_and(|fanout| fanout.acked.contains_key(item))
            || self.child(item).is_some_and(|child| child.ended.is_some())
            || self.said.contains_key(&id)
            || self.used_up(&id)
            || self.may_be_cancelled(&id)
            || self.rivals(&id).len() > 1
    }

    /// Whether an item may be missing by now: its fan-out is cut short.
    pub(crate) fn may_be_missing(&self, item: &ItemId) -> bool {
        self.fanouts.get(&item.fanout).is_some_and(|fanout| fanout.cancelling || fanout.expired || fanout.failing)
    }

    /// Whether every attempt that a task's policy allows reached the batch API.
    pub(crate) fn used_up(&self, id: &TaskId) -> bool {
        let most = self.tasks.get(id).and_then(|task| self.kinds.get(&task.kind)).map(|kind| kind.max_attempts);
        let split = self.batch_of.get(id).is_some_and(|batch| self.split.contains(batch));
        let tried = if split { &self.tried_in_parts } else { &self.tried };
        most.zip(tried.get(id)).is_some_and(|(most, tried)| *tried >= most)
    }
}
