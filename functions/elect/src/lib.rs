//! The step `elect`: elects one leader per lane.

mod step;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use fanfold::aws::{Queue, QueueError, StoreError, Write};
use fanfold::clock::World;
use fanfold::config::{ConfigError, Surroundings, variables};
use fanfold::control::Hold;
use fanfold::grouping::{BatchSize, Candidacy, Patience, wake_leader};
use fanfold::ids::derived;
use fanfold::lane::Lane;
use fanfold::limits::{ELECTION_PAUSES, ELECTIONS_AT_ONCE_MAX};
use fanfold::messages::{ElectMessage, GroupMessage};
use fanfold::policy::{Policy, no_policy};
use fanfold::store::locks::{Lock, Locks};
use fanfold::store::policies::Policies;
use fanfold::store::tasks::Tasks;
use fanfold::waiting::Waiting;
use futures::{FutureExt, StreamExt, stream};

/// The messages that follow from an election.
#[derive(Debug, Default)]
struct Outbox {
    group: Vec<(GroupMessage, Duration)>,
    elect: Vec<(ElectMessage, Duration)>,
}

/// Elects one leader per lane.
#[derive(Debug)]
pub struct Elect {
    tasks: Tasks,
    locks: Locks,
    policies: Policies,
    elect: Queue<ElectMessage>,
    group: Queue<GroupMessage>,
    world: World,
}

/// An election could not be held; its messages are delivered again.
#[derive(Debug, thiserror::Error)]
enum ElectError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error("{0}")]
    Policy(String),
}

impl Elect {
    /// The step in the tables and queues that the environment names.
    ///
    /// # Errors
    /// A variable is missing.
    pub fn from_environment(surroundings: &Surroundings) -> Result<Self, ConfigError> {
        Ok(Self {
            tasks: Tasks::from_environment(surroundings)?,
            locks: Locks::from_environment(surroundings)?,
            policies: Policies::from_environment(surroundings)?,
            elect: surroundings.queue(variables::ELECT_QUEUE_URL)?,
            group: surroundings.queue(variables::GROUP_QUEUE_URL)?,
            world: surroundings.world.clone(),
        })
    }

    /// Holds the elections of an invocation. Returns what is to be sent, by lane. Workflows of paused lanes end: when a lane
    /// is resumed, it is woken for all that waits.
    async fn hold_all(
        &self,
        lanes: &BTreeMap<Lane, Candidacy>,
    ) -> Result<Vec<(Lane, Result<Outbox, ElectError>)>, StoreError> {
        let lanes = self.policies.perhaps_not_paused(lanes.iter().collect(), |(lane, _)| lane).await;
        let names: Vec<Lane> = lanes.iter().map(|((lane, _), _)| (*lane).clone()).collect();
        let locks = self.locks(&names).await?;
        let mut policies = HashMap::new();
        let mut doubtful = Waiting::default();
        for ((lane, candidacy), _) in &lanes {
            if !policies.contains_key(&lane.kind) {
                policies
                    .insert(lane.kind.clone(), self.policies.get(&lane.kind).await.map_err(|error| error.to_string()));
            }
            // Nothing is read for lanes where no leader can be elected. If a lane had a leader before, that one may have
            // claimed the tasks already.
            let lock = locks.get(lane);
            let free = policy_of(&policies, lane)
                .ok()
                .flatten()
                .is_some_and(|policy| lock.is_none_or(|lock| lock.open(policy.max_in_flight)));
            if free && (candidacy.tried() || lock.is_some_and(|lock| lock.epoch > 0)) {
                doubtful = doubtful.union(&candidacy.waiting());
            }
        }
        let taken = self.tasks.taken(&doubtful).await?;
        let mut elections = Vec::with_capacity(lanes.len());
        for ((lane, candidacy), hold) in lanes {
            if let Some(waiting) = candidacy.open(&taken) {
                let lock = locks.get(lane).cloned().unwrap_or_else(|| Lock::free(lane.clone()));
                let policy = policy_of(&policies, lane).map(|policy| policy.map(|policy| (policy, hold)));
                elections.push(
                    self.elect_leader(lane, policy, candidacy, waiting, lock).map(|result| (lane.clone(), result)),
                );
            }
        }
        Ok(stream::iter(elections).buffer_unordered(ELECTIONS_AT_ONCE_MAX).collect().await)
    }

    /// Holds the election of one lane.
    async fn elect_leader(
        &self,
        lane: &Lane,
        policy: Result<Option<(Arc<Policy>, Hold)>, ElectError>,
        candidacy: &Candidacy,
        waiting: Waiting,
        lock: Lock,
    ) -> Result<Outbox, ElectError> {
        let mut outbox = Outbox::default();
        let Some((policy, hold)) = policy? else {
            tracing::warn!(%lane, "{}; its tasks wait until there is one, and are found by the sweep", no_policy(&lane.kind));
            return Ok(outbox);
        };
        let size = BatchSize::under(&policy, hold);
        let candidates = candidacy.merged(&waiting);
        let Some(candidate) = candidates.first() else { return Ok(outbox) };
        let batch = derived::batch(candidate.workflow, candidate.tries);
        // A wake-up is not repeated, so it does not rely on a view of the lock that may be old.
        let acquired = if candidacy.wakes() {
            self.locks.acquire(lane, batch, policy.max_in_flight).await?
        } else {
            self.locks.acquire_if_open(lock, batch, policy.max_in_flight).await?
        };
        let lock = match acquired {
            Write::Done(lock) => {
                let message = GroupMessage::elected(&lock, batch, candidate.waiting.clone());
                // A wake-up does not know how many tasks wait.
                outbox.group.push(message.first(size, !candidacy.wakes()));
                self.follow(candidates.get(1..).unwrap_or_default(), &mut outbox);
                return Ok(outbox);
            }
            Write::Refused(lock) => lock,
        };
        outbox.group.extend(self.send_again(size.linger().longest(), hold, &lock).await?);
        if outbox.group.is_empty() {
            let lingered = lock.acquired_at.and_then(|elected| candidacy.hurries(size, elected, self.world.now()));
            let hurried =
                lingered.and_then(|lingered| GroupMessage::hurried(&lock, candidate.waiting.clone(), lingered));
            outbox.group.extend(hurried.map(|message| (message, Duration::ZERO)));
        }
        if lock.holder.is_none() && lock.full(policy.max_in_flight) && !lock.waiting {
            self.locks.wait(lane).await?;
        }
        // A wake-up that finds a leader has done its work.
        if !waiting.is_empty() {
            self.follow(&candidates, &mut outbox);
        }
        Ok(outbox)
    }

    /// Workflows that were not elected retry later: the leader may not have seen their tasks.
    fn follow(&self, candidates: &[ElectMessage], outbox: &mut Outbox) {
        for message in candidates {
            let again = message.again();
            let delay = ELECTION_PAUSES.after(again.tries, self.world.random.next());
            outbox.elect.push((again, delay));
        }
    }

    /// Sends a leader's message again, if the leader was silent for longer than its lease.
    async fn send_again(
        &self,
        linger: Duration,
        hold: Hold,
        lock: &Lock,
    ) -> Result<Option<(GroupMessage, Duration)>, ElectError> {
        let now = self.world.now();
        let Some(message) = wake_leader(lock, linger, hold, Patience::Lease, now) else { return Ok(None) };
        let Some(message) = self.locks.renewed(lock, message).await? else { return Ok(None) };
        tracing::warn!(lane = %lock.lane, batch = %message.batch, "the leader was silent; its message is sent again");
        Ok(Some((message, Duration::ZERO)))
    }

    async fn send(&self, outboxes: impl IntoIterator<Item = Outbox>) -> Result<(), QueueError> {
        let mut all = Outbox::default();
        for outbox in outboxes {
            all.group.extend(outbox.group);
            all.elect.extend(outbox.elect);
        }
        self.group.send_all(all.group.iter().map(|(message, delay)| (message, *delay))).await?;
        self.elect.send_all(all.elect.iter().map(|(message, delay)| (message, *delay))).await
    }

    /// Reads the locks of all lanes of an invocation at once.
    async fn locks(&self, lanes: &[Lane]) -> Result<HashMap<Lane, Lock>, StoreError> {
        Ok(self.locks.get_many(lanes, false).await?.into_iter().map(|lock| (lock.lane.clone(), lock)).collect())
    }
}

/// The policy of a lane, if its kind has one, or why it could not be read.
fn policy_of(
    policies: &HashMap<String, Result<Option<Arc<Policy>>, String>>,
    lane: &Lane,
) -> Result<Option<Arc<Policy>>, ElectError> {
    policies.get(&lane.kind).cloned().transpose().map(Option::flatten).map_err(ElectError::Policy)
}
