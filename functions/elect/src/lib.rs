//! The step `elect`: elects one leader a lane.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use fanfold::backoff::Backoff;
use fanfold::clock::World;
use fanfold::config::{ConfigError, Surroundings, variables};
use fanfold::delivery::{Delivery, Failures, Step, parse};
use fanfold::ids::{TaskId, derived};
use fanfold::lane::Lane;
use fanfold::limits::{LEASE, NAMED_TASKS};
use fanfold::members::Members;
use fanfold::messages::{ElectMessage, GroupMessage};
use fanfold::policy::Policy;
use fanfold::queue::{Queue, QueueError};
use fanfold::store::StoreError;
use fanfold::store::locks::{Lock, Locks};
use fanfold::store::policies::Policies;
use fanfold::store::tasks::Tasks;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};

/// Elections run at once by one invocation.
const CONCURRENT_ELECTIONS: usize = 8;

/// Delays of a workflow that lost.
const RETRY: Backoff = Backoff { base: Duration::from_secs(2), max: Duration::from_secs(30) };

/// Elects one leader a lane.
#[derive(Debug)]
pub struct Elect {
    tasks: Tasks,
    locks: Locks,
    policies: Policies,
    elect: Queue<ElectMessage>,
    group: Queue<GroupMessage>,
    world: World,
}

/// An election could not be held; its messages come again.
#[derive(Debug, thiserror::Error)]
enum ElectError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error("there is no policy of kind `{0}`")]
    NoPolicy(String),
}

/// The workflows of one lane in one invocation: they hold one election together.
struct Candidacy {
    messages: Vec<(String, ElectMessage)>,
}

impl Candidacy {
    fn tasks(&self) -> Vec<TaskId> {
        let mut tasks: Vec<TaskId> =
            self.messages.iter().flat_map(|(_, message)| message.tasks.ids()).copied().collect();
        tasks.sort_unstable();
        tasks.dedup();
        tasks
    }

    /// A workflow that has tried before may find its tasks claimed; a new one has just stored them.
    fn tried(&self) -> bool {
        self.messages.iter().any(|(_, message)| message.tries > 0)
    }

    /// All of the workflows that stand for tasks, as one; a repeated delivery of the same messages gives the same one.
    fn merged(&self, tasks: Vec<TaskId>) -> Vec<ElectMessage> {
        let Some((_, first)) = self.messages.iter().min_by_key(|(_, message)| message.workflow) else {
            return Vec::new();
        };
        let tries = self.messages.iter().map(|(_, message)| message.tries).max().unwrap_or(0);
        let chunks: Vec<&[TaskId]> = if tasks.is_empty() { vec![&[]] } else { tasks.chunks(NAMED_TASKS).collect() };
        let message = |(at, chunk): (usize, &[TaskId])| ElectMessage {
            lane: first.lane.clone(),
            tasks: Members::new(chunk.iter().copied()),
            workflow: if at == 0 {
                first.workflow
            } else {
                derived("workflow", &[first.workflow.as_bytes(), &at.to_be_bytes()])
            },
            tries,
        };
        chunks.into_iter().enumerate().map(message).collect()
    }
}

impl Elect {
    /// The step in the tables and queues that the environment names.
    ///
    /// # Errors
    /// A variable is missing.
    pub fn from_environment(surroundings: &Surroundings) -> Result<Self, ConfigError> {
        let world = surroundings.world.clone();
        Ok(Self {
            tasks: Tasks::new(surroundings.table(variables::TASKS_TABLE)?, world.clone()),
            locks: Locks::new(surroundings.table(variables::LOCKS_TABLE)?),
            policies: Policies::new(surroundings.table(variables::POLICIES_TABLE)?, world.clone()),
            elect: surroundings.queue(variables::ELECT_QUEUE_URL)?,
            group: surroundings.queue(variables::GROUP_QUEUE_URL)?,
            world,
        })
    }

    /// Holds the election of one lane.
    async fn hold(&self, lane: &Lane, candidacy: &Candidacy, lock: Lock) -> Result<(), ElectError> {
        let policy = self.policies.get(&lane.kind).await?.ok_or_else(|| ElectError::NoPolicy(lane.kind.clone()))?;
        let policy = &policy.policy;
        let mut tasks = candidacy.tasks();
        if candidacy.tried() && !tasks.is_empty() {
            tasks = self.tasks.unclaimed(&tasks).await?;
            if tasks.is_empty() {
                return Ok(());
            }
        }
        let wakes = tasks.is_empty();
        let candidates = candidacy.merged(tasks);
        let Some(candidate) = candidates.first() else { return Ok(()) };
        let batch = derived("batch", &[candidate.workflow.as_bytes(), &candidate.tries.to_be_bytes()]);
        let now = self.world.now();
        let lock = if lock.open_to(batch, policy.max_in_flight) {
            match self.locks.acquire(lane, batch, policy.max_in_flight, now).await? {
                Ok(lock) => {
                    self.lead(policy, candidate, &lock).await?;
                    return self.follow(candidates.get(1..).unwrap_or_default()).await;
                }
                Err(lock) => lock,
            }
        } else {
            lock
        };
        self.remind(policy, &lock).await?;
        if lock.holder.is_none() && lock.full(policy.max_in_flight) && !lock.waiting {
            self.locks.wait(lane).await?;
        }
        // A mere wake-up that finds the lane led has done its work.
        if wakes { Ok(()) } else { self.follow(&candidates).await }
    }

    /// The winner's batch is formed at once if it is full, else after the linger.
    async fn lead(&self, policy: &Policy, candidate: &ElectMessage, lock: &Lock) -> Result<(), ElectError> {
        let Some(batch) = lock.holder else { return Ok(()) };
        let full = candidate.tasks.len() >= policy.max_batch as usize;
        let linger = if full { Duration::ZERO } else { policy.linger.0 };
        let message =
            GroupMessage { lane: lock.lane.clone(), batch, epoch: lock.epoch, tasks: candidate.tasks.clone() };
        Ok(self.group.send_all([(&message, linger)]).await?)
    }

    /// The losers try again later: the leader may not have seen their tasks.
    async fn follow(&self, candidates: &[ElectMessage]) -> Result<(), ElectError> {
        let again = |message: &ElectMessage| ElectMessage { tries: message.tries.saturating_add(1), ..message.clone() };
        let messages: Vec<ElectMessage> = candidates.iter().map(again).collect();
        let delayed = messages.iter().map(|message| (message, RETRY.after(message.tries, self.world.random.next())));
        Ok(self.elect.send_all(delayed).await?)
    }

    /// A leader that was silent for longer than the lease, its linger aside, is sent its message again: any worker can go on in its name.
    async fn remind(&self, policy: &Policy, lock: &Lock) -> Result<(), ElectError> {
        let now = self.world.now();
        let (Some(batch), Some(acquired_at)) = (lock.holder, lock.acquired_at) else { return Ok(()) };
        if now.since(acquired_at) > LEASE + policy.linger.0 && self.locks.renew(lock, now).await? {
            tracing::warn!(lane = %lock.lane, %batch, "the leader was silent; its message is sent again");
            let message = GroupMessage { lane: lock.lane.clone(), batch, epoch: lock.epoch, tasks: Members::default() };
            self.group.send(&message).await?;
        }
        Ok(())
    }

    /// Reads the locks of all lanes of an invocation at once.
    async fn locks(&self, lanes: &[Lane]) -> Result<HashMap<Lane, Lock>, StoreError> {
        Ok(self.locks.get_many(lanes, false).await?.into_iter().map(|lock| (lock.lane.clone(), lock)).collect())
    }
}

impl Step for Elect {
    fn deliver<'a>(&'a self, deliveries: Vec<Delivery>) -> BoxFuture<'a, Failures> {
        async move {
            let (messages, mut failures) = parse::<ElectMessage>(deliveries);
            let mut lanes: BTreeMap<Lane, Candidacy> = BTreeMap::new();
            for (delivery, message) in messages {
                let candidacy = lanes.entry(message.lane.clone()).or_insert_with(|| Candidacy { messages: Vec::new() });
                candidacy.messages.push((delivery.message_id, message));
            }
            let names: Vec<Lane> = lanes.keys().cloned().collect();
            let locks = match self.locks(&names).await {
                Ok(locks) => locks,
                Err(error) => {
                    tracing::error!(%error, lanes = names.len(), "locks could not be read");
                    failures.extend(lanes.into_values().flat_map(|candidacy| candidacy.messages).map(|(id, _)| id));
                    return failures;
                }
            };
            let elections = lanes.into_iter().map(|(lane, candidacy)| {
                let lock = locks.get(&lane).cloned().unwrap_or_else(|| Lock::free(lane.clone()));
                async move {
                    let result = self.hold(&lane, &candidacy, lock).await;
                    (lane, candidacy, result)
                }
            });
            let mut held = stream::iter(elections).buffer_unordered(CONCURRENT_ELECTIONS);
            while let Some((lane, candidacy, result)) = held.next().await {
                if let Err(error) = result {
                    tracing::error!(%error, %lane, "the election was not held");
                    failures.extend(candidacy.messages.into_iter().map(|(message_id, _)| message_id));
                }
            }
            failures
        }
        .boxed()
    }
}
