//! The step `group`: the leader claims the lane's tasks and forms a batch of them.

mod led;
mod step;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use fanfold::aws::{Queue, QueueError, StoreError, Write};
use fanfold::clock::{Timestamp, World};
use fanfold::config::{ConfigError, Surroundings, variables};
use fanfold::control::Hold;
use fanfold::grouping::{BatchSize, Bundle, Candidates, Load, Rest, Seen, forms_at_rest, rests};
use fanfold::ids::{TaskId, derived};
use fanfold::lane::Lane;
use fanfold::limits::BUNDLE_FILLING_MAX;
use fanfold::messages::{ElectMessage, GroupMessage, HandleMessage};
use fanfold::metrics::{BATCH_SIZE, BATCHES_FORMED, TASKS_BATCHED};
use fanfold::policy::no_policy;
use fanfold::store::batches::{Batch, BatchStatus, Batches};
use fanfold::store::locks::{Leader, Locks};
use fanfold::store::policies::Policies;
use fanfold::store::tasks::{Search, Tasks, WaitingRecord};
use fanfold::waiting::Waiting;

/// The messages that follow from forming a batch.
#[derive(Debug, Default)]
struct Outbox {
    handle: Vec<(HandleMessage, Lane)>,
    group: Vec<(GroupMessage, Duration)>,
    elect: Vec<ElectMessage>,
}

/// Forms batches.
#[derive(Debug)]
pub struct Group {
    tasks: Tasks,
    locks: Locks,
    batches: Batches,
    policies: Policies,
    elect: Queue<ElectMessage>,
    group: Queue<GroupMessage>,
    handle: Queue<HandleMessage>,
    world: World,
}

/// A batch could not be formed; its message is delivered again, and continues where this one stopped.
#[derive(Debug, thiserror::Error)]
enum GroupError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Queue(#[from] QueueError),
}

impl Group {
    /// The step in the tables and queues that the environment names.
    ///
    /// # Errors
    /// A variable is missing.
    pub fn from_environment(surroundings: &Surroundings) -> Result<Self, ConfigError> {
        Ok(Self {
            tasks: Tasks::from_environment(surroundings)?,
            locks: Locks::from_environment(surroundings)?,
            batches: Batches::from_environment(surroundings)?,
            policies: Policies::from_environment(surroundings)?,
            elect: surroundings.queue(variables::ELECT_QUEUE_URL)?,
            group: surroundings.queue(variables::GROUP_QUEUE_URL)?,
            handle: surroundings.handle_queue()?,
            world: surroundings.world.clone(),
        })
    }

    /// Forms the batch of one leader. Every step can be repeated: by a redelivery, or by two workers at once in the name of
    /// the same leader. Returns what is to be sent.
    async fn form(&self, message: &GroupMessage) -> Result<Outbox, GroupError> {
        let kind = &message.lane.kind;
        let policy = self.policies.get(kind).await?;
        // Once its intent is written, it goes on without a policy: tasks that it claimed are kept once its lane's lock names the batch.
        if policy.is_none() && !forms_at_rest(self.batches.get(message.batch).await?.as_ref()) {
            tracing::warn!(lane = %message.lane, "{}; the leader waits, and its message is sent again once there is one", no_policy(kind));
            return Ok(Outbox::default());
        }
        let hold = self.policies.hold(&message.lane).await?;
        let rests = rests(hold, policy.is_some());
        let size = policy.as_deref().map_or(BatchSize::NONE, |policy| BatchSize::under(policy, hold));
        let lock = self.locks.get(&message.lane).await?;
        if lock.holder != Some(message.batch) {
            return self.led(message, &lock, hold).await;
        }
        // The leader of a paused lane writes an empty intent. If its intent is written already, its batch is formed, and waits.
        let (candidates, newest, freed) =
            if rests { (Candidates::none(size), None, false) } else { self.candidates(message, size).await? };
        if !rests && let Some(waits) = self.waits(message, size, &candidates, newest).await? {
            return Ok(self.and_wake(message, freed, waits));
        }
        let Candidates { chosen, bundles, weight, .. } = &candidates;
        let batch = self.batches.intend(message.batch, &message.lane, chosen, bundles, *weight).await?;
        let rest = candidates.rest(&batch.members);
        let batch = if batch.status == BatchStatus::Grouping { self.claim(batch, &candidates).await? } else { batch };
        if batch.status == BatchStatus::Done {
            // If this batch won none of its intent, other batches may have won it: no other message names what waits beside it.
            let beside = if batch.members.is_empty() { rest.to_name() } else { Waiting::default() };
            let outbox = self.resign(message, &beside, hold).await?;
            return Ok(self.and_wake(message, freed, outbox));
        }
        let max_in_flight = policy.map_or(1, |policy| policy.max_in_flight);
        let (mut outbox, in_flight) = self.step_down(message, max_in_flight, size, &rest).await?;
        let led = !outbox.group.is_empty();
        let first = HandleMessage::first_of(&batch, in_flight, !rest.is_empty(), led);
        outbox.handle.extend(first.map(|first| (first, batch.lane)));
        Ok(self.and_wake(message, freed, outbox))
    }

    /// What is to be sent if the leader waits for more tasks. It does not once its intent is written: an earlier delivery may have
    /// claimed tasks.
    async fn waits(
        &self,
        message: &GroupMessage,
        size: BatchSize,
        candidates: &Candidates,
        newest: Option<Timestamp>,
    ) -> Result<Option<Outbox>, GroupError> {
        let at_once = candidates.full || candidates.flushes;
        let seen = Seen { members: candidates.chosen.len(), at_once, newest };
        let wait = size.linger().on(message.lingered(), seen, self.world.now());
        let may_wait = (message.lingers || message.hurries) && !wait.is_zero();
        if !may_wait || self.batches.get(message.batch).await?.is_some() {
            return Ok(None);
        }
        // A message that hurries is not sent again: the leader's own message is on its way.
        let own = (!message.hurries).then(|| message.after(wait, size.linger()));
        Ok(Some(Outbox { group: own.into_iter().collect(), ..Outbox::default() }))
    }

    /// Tasks for the batch: the lane's first, and those the message names. Fewer named ones do not mean that there are no
    /// others. Also returns when the last one came, and whether tasks were freed, which the index does not show yet.
    async fn candidates(
        &self,
        message: &GroupMessage,
        size: BatchSize,
    ) -> Result<(Candidates, Option<Timestamp>, bool), GroupError> {
        let (enough, by_rank, least) = (size.with_next(), size.goes_by_rank(), size.linger().counts());
        // Other batches may have claimed what a hint names; it counts only if it waits.
        let named = match message.hurries || least {
            true => {
                let enough = if by_rank { usize::MAX } else { enough };
                self.tasks.enough_of(&message.waiting, &message.lane, enough).await?
            }
            false => message.waiting.clone(),
        };
        let search = Search { enough, by_rank, counts: false };
        let (candidates, newest, freed) = self.look(message, named.clone(), size, search).await?;
        // The same of what the index shows. Reading costs, and only makes them fewer: it matters if they seem enough.
        let enough = candidates.full || candidates.flushes || size.linger().is_enough(candidates.chosen.len());
        let counts = least && (message.lingers || message.hurries) && enough && candidates.any_alone();
        if !counts {
            return Ok((candidates, newest, freed));
        }
        let (candidates, newest, again) = self.look(message, named, size, Search { counts, ..search }).await?;
        Ok((candidates, newest, freed || again))
    }

    /// Looks once for tasks for the batch.
    async fn look(
        &self,
        message: &GroupMessage,
        named: Waiting,
        size: BatchSize,
        search: Search,
    ) -> Result<(Candidates, Option<Timestamp>, bool), GroupError> {
        let found = self.tasks.find(&message.lane, &named, search).await?;
        let stuck = self.world.now().minus(BUNDLE_FILLING_MAX);
        let mut freed = false;
        for bundle in found.unfilled.iter().filter(|bundle| bundle.created_at < stuck) {
            freed = true;
            tracing::warn!(lane = %bundle.lane, bundle = %bundle.id, "a worker was lost while it stored tasks; they wait on their own");
            self.tasks.bury(bundle).await?;
        }
        let loads = self.loads(&found.records, size).await?;
        let candidates = Candidates::choose(message.own(named), found.records, loads, size);
        Ok((candidates.beside(message.own(found.unread)), found.newest, freed))
    }

    /// What tasks on their own take of a batch; bundles hold it for theirs. Read only where it matters.
    async fn loads(&self, records: &[WaitingRecord], size: BatchSize) -> Result<HashMap<TaskId, Load>, GroupError> {
        let alone = |record: &WaitingRecord| match record {
            WaitingRecord::Task(id) => Some(*id),
            WaitingRecord::Bundle(_) => None,
        };
        let alone: Vec<TaskId> = records.iter().filter_map(alone).collect();
        let tasks = records.iter().map(WaitingRecord::waiting).sum();
        if alone.is_empty() || !size.depends_on_loads(tasks) {
            return Ok(HashMap::new());
        }
        Ok(self.tasks.loads(&alone).await?)
    }

    /// Claims the intended members, and forms the batch of those that were won.
    async fn claim(&self, batch: Batch, candidates: &Candidates) -> Result<Batch, GroupError> {
        let bundles = self.tasks.claim_bundles(&batch.bundles, candidates.read(), &batch.lane, batch.id).await?;
        let intended = |bundle: &Bundle| batch.bundles.get(bundle.id).cloned().unwrap_or_default();
        let of_bundles: HashSet<TaskId> =
            bundles.iter().flat_map(|(bundle, _)| bundle.tasks(&intended(bundle)).collect::<Vec<_>>()).collect();
        let alone: Vec<TaskId> = batch.members.ids().iter().filter(|id| !of_bundles.contains(id)).copied().collect();
        let alone = self.tasks.claim(&alone, &batch.lane, batch.id).await?;
        let won = bundles.iter().flat_map(|(bundle, won)| bundle.tasks(won));
        let batch = self.batches.form(&batch, won.chain(alone).collect()).await?;
        if batch.status == BatchStatus::Formed {
            metrics::counter!(BATCHES_FORMED).increment(1);
            metrics::counter!(TASKS_BATCHED).increment(batch.members.len() as u64);
            metrics::histogram!(BATCH_SIZE).record(batch.members.len() as f64);
        }
        Ok(batch)
    }

    /// The batch is empty or ended long ago: releases the lock. Named tasks that are still unclaimed hold an election again,
    /// and so do those that were found beside its intent.
    async fn resign(&self, message: &GroupMessage, beside: &Waiting, hold: Hold) -> Result<Outbox, GroupError> {
        let left = self.left(&message.waiting, message, hold).await?;
        let left = left.union(&self.left(beside, message, hold).await?);
        self.locks.resign(&leader(message)).await?;
        Ok(self.wake(message, left))
    }

    /// The named tasks that still wait and need another election. In a paused lane there are none: when it is resumed, it is
    /// woken for all that waits.
    async fn left(&self, named: &Waiting, message: &GroupMessage, hold: Hold) -> Result<Waiting, GroupError> {
        if hold.paused {
            return Ok(Waiting::default());
        }
        Ok(self.tasks.waiting(named, &message.lane).await?)
    }

    /// The batch is formed: hands the lock to the lane's next batch if more tasks wait and there is room, else frees it.
    /// The same write records the batch as in flight. Returns whether the lock names the batch.
    async fn step_down(
        &self,
        message: &GroupMessage,
        max_in_flight: u32,
        size: BatchSize,
        rest: &Rest,
    ) -> Result<(Outbox, bool), GroupError> {
        let leader = leader(message);
        let next = derived::next_batch(message.batch);
        let more = !rest.is_empty();
        if more
            && max_in_flight > 1
            && let Some(epoch) = self.locks.hand_over(&leader, next, max_in_flight).await?
        {
            return Ok((lead(message.taken_over(next, epoch, rest, size)), true));
        }
        match self.locks.step_down(&leader, more).await? {
            Write::Done(()) => Ok((self.wake(message, rest.named.clone()), true)),
            // An earlier delivery handed the lock over, but died before it sent the message.
            Write::Refused(lock) if lock.holder == Some(next) => {
                Ok((lead(message.taken_over(next, lock.epoch, rest, size)), lock.names(message.batch)))
            }
            Write::Refused(lock) => Ok((self.wake(message, rest.named.clone()), lock.names(message.batch))),
        }
    }

    /// Has the lane elect another leader if anything waits.
    fn wake(&self, message: &GroupMessage, waiting: Waiting) -> Outbox {
        if waiting.is_empty() {
            return Outbox::default();
        }
        let message = |portion| ElectMessage::left(message.lane.clone(), portion, self.world.uuid());
        Outbox { elect: waiting.portions().into_iter().map(message).collect(), ..Outbox::default() }
    }

    /// Also wakes the lane for tasks that were freed.
    fn and_wake(&self, message: &GroupMessage, freed: bool, mut outbox: Outbox) -> Outbox {
        outbox.elect.extend(freed.then(|| ElectMessage::wake(message.lane.clone(), self.world.uuid())));
        outbox
    }

    async fn send(&self, outboxes: impl IntoIterator<Item = Outbox>) -> Result<(), QueueError> {
        let mut all = Outbox::default();
        for outbox in outboxes {
            all.handle.extend(outbox.handle);
            all.group.extend(outbox.group);
            all.elect.extend(outbox.elect);
        }
        self.handle.send_for(all.handle.iter().map(|(message, lane)| (message, Duration::ZERO, lane))).await?;
        self.group.send_all(all.group.iter().map(|(message, delay)| (message, *delay))).await?;
        self.elect.send_all(all.elect.iter().map(|message| (message, Duration::ZERO))).await
    }
}

/// The leader in whose name a message acts.
fn leader(message: &GroupMessage) -> Leader<'_> {
    Leader { lane: &message.lane, batch: message.batch, epoch: message.epoch }
}

/// Only the message to the lane's next leader is to be sent.
fn lead(next: (GroupMessage, Duration)) -> Outbox {
    Outbox { group: vec![next], ..Outbox::default() }
}
