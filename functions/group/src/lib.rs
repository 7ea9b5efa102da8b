//! The step `group`: the leader claims the lane's tasks into a batch and dispatches it.

mod candidates;

use std::time::Duration;

use fanfold::clock::World;
use fanfold::config::{ConfigError, Surroundings, variables};
use fanfold::delivery::{Delivery, Failures, Step, parse};
use fanfold::ids::{TaskId, derived};
use fanfold::members::Members;
use fanfold::messages::{ElectMessage, GroupMessage, HandleMessage};
use fanfold::metrics::{BATCHES_DISPATCHED, TASKS_BATCHED};
use fanfold::policy::Policy;
use fanfold::queue::{Queue, QueueError};
use fanfold::store::batches::{Batch, BatchStatus, Batches};
use fanfold::store::locks::{Leader, Locks};
use fanfold::store::policies::Policies;
use fanfold::store::tasks::Tasks;
use fanfold::store::{StoreError, Write};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use uuid::Uuid;

use crate::candidates::{Candidates, Rest};

/// Batches formed at once by one invocation.
const CONCURRENT_BATCHES: usize = 8;

/// Forms batches and dispatches them.
#[derive(Debug)]
pub struct Grouper {
    tasks: Tasks,
    locks: Locks,
    batches: Batches,
    policies: Policies,
    elect: Queue<ElectMessage>,
    group: Queue<GroupMessage>,
    handle: Queue<HandleMessage>,
    world: World,
}

/// A batch could not be formed; its message comes again and goes on where this one stopped.
#[derive(Debug, thiserror::Error)]
enum GroupError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error("there is no policy of kind `{0}`")]
    NoPolicy(String),
}

impl Grouper {
    /// The step in the tables and queues that the environment names.
    ///
    /// # Errors
    /// A variable is missing.
    pub fn from_environment(surroundings: &Surroundings) -> Result<Self, ConfigError> {
        let world = surroundings.world.clone();
        Ok(Self {
            tasks: Tasks::new(surroundings.table(variables::TASKS_TABLE)?, world.clone()),
            locks: Locks::new(surroundings.table(variables::LOCKS_TABLE)?),
            batches: Batches::new(surroundings.table(variables::BATCHES_TABLE)?, world.clone()),
            policies: Policies::new(surroundings.table(variables::POLICIES_TABLE)?, world.clone()),
            elect: surroundings.queue(variables::ELECT_QUEUE_URL)?,
            group: surroundings.queue(variables::GROUP_QUEUE_URL)?,
            handle: surroundings.queue(variables::HANDLE_QUEUE_URL)?,
            world,
        })
    }

    /// Forms the batch of one leader. Every step can be repeated: by a redelivery, or by two workers at once in the name of
    /// the same leader.
    async fn form(&self, message: &GroupMessage) -> Result<(), GroupError> {
        let kind = &message.lane.kind;
        let policy = self.policies.get(kind).await?.ok_or_else(|| GroupError::NoPolicy(kind.clone()))?;
        let policy = &policy.policy;
        let candidates = self.candidates(message, policy).await?;
        let batch = self.batches.intend(message.batch, &message.lane, &candidates.chosen).await?;
        let rest = candidates.rest(&batch.members);
        let batch = if batch.status == BatchStatus::Grouping { self.claim(batch).await? } else { batch };
        if batch.status == BatchStatus::Done {
            return self.resign(message, &batch).await;
        }
        self.step_down(message, policy, &rest).await?;
        if batch.status == BatchStatus::Dispatched {
            self.handle.send(&HandleMessage { batch: batch.id, attempt: 1 }).await?;
        }
        Ok(())
    }

    /// Tasks for the batch: the lane's oldest, and those the message names.
    async fn candidates(&self, message: &GroupMessage, policy: &Policy) -> Result<Candidates, GroupError> {
        let max = policy.max_batch as usize;
        let named = message.tasks.ids();
        // Twice as many tell whether the next batch is full, too. Fewer named ones do not tell that there are no others.
        let enough = 2 * max;
        let pending =
            if named.len() >= enough { Vec::new() } else { self.tasks.pending(&message.lane, enough).await? };
        Ok(Candidates::choose(named, pending, max))
    }

    /// Claims the intended members, and dispatches those that were won.
    async fn claim(&self, batch: Batch) -> Result<Batch, GroupError> {
        let claimed = self.tasks.claim(batch.members.ids(), batch.id).await?;
        let batch = self.batches.dispatch(&batch, &Members::new(claimed)).await?;
        if batch.status == BatchStatus::Dispatched {
            metrics::counter!(BATCHES_DISPATCHED).increment(1);
            metrics::counter!(TASKS_BATCHED).increment(batch.members.len() as u64);
        }
        Ok(batch)
    }

    /// The batch is empty or ended long ago: the lock is given back. Named tasks that are still unclaimed run again.
    async fn resign(&self, message: &GroupMessage, batch: &Batch) -> Result<(), GroupError> {
        let left: Vec<TaskId> =
            message.tasks.ids().iter().filter(|id| batch.members.slot(id).is_none()).copied().collect();
        let left = self.tasks.unclaimed(&left).await?;
        self.locks.resign(&self.leader(message)).await?;
        if left.is_empty() { Ok(()) } else { self.wake(message, &left).await }
    }

    /// The batch is dispatched: the lock goes to the next batch of the lane if there is more and room for it, else it is
    /// free. The batch is known as in flight from the same write on.
    async fn step_down(&self, message: &GroupMessage, policy: &Policy, rest: &Rest) -> Result<(), GroupError> {
        let leader = self.leader(message);
        let next = derived("next", &[message.batch.as_bytes()]);
        let more = !rest.is_empty();
        let handed = more
            && policy.max_in_flight > 1
            && matches!(self.locks.hand_over(&leader, next, policy.max_in_flight).await?, Write::Done(()));
        if handed {
            return self.lead_next(message, policy, next, rest).await;
        }
        // Refused, the lock tells what an earlier delivery did before it died: perhaps it handed over, but told nobody.
        if let Write::Refused(_) = self.locks.step_down(&leader, more).await?
            && self.locks.get(&message.lane).await?.holder == Some(next)
        {
            return self.lead_next(message, policy, next, rest).await;
        }
        if rest.named.is_empty() { Ok(()) } else { self.wake(message, &rest.named).await }
    }

    /// Tells the next batch of the lane to form, at once if it is full.
    async fn lead_next(
        &self,
        message: &GroupMessage,
        policy: &Policy,
        next: Uuid,
        rest: &Rest,
    ) -> Result<(), GroupError> {
        let full = rest.len() >= policy.max_batch as usize;
        let linger = if full { Duration::ZERO } else { policy.linger.0 };
        let lane = message.lane.clone();
        let next = GroupMessage { lane, batch: next, epoch: message.epoch + 1, tasks: rest.to_name() };
        Ok(self.group.send_all([(&next, linger)]).await?)
    }

    /// Has the lane elect another leader for these tasks.
    async fn wake(&self, message: &GroupMessage, tasks: &[TaskId]) -> Result<(), GroupError> {
        let tasks = Members::new(tasks.iter().copied());
        let workflow = self.world.uuid();
        Ok(self.elect.send(&ElectMessage { lane: message.lane.clone(), tasks, workflow, tries: 1 }).await?)
    }

    fn leader<'a>(&self, message: &'a GroupMessage) -> Leader<'a> {
        Leader { lane: &message.lane, batch: message.batch, epoch: message.epoch, now: self.world.now() }
    }
}

impl Step for Grouper {
    fn deliver<'a>(&'a self, deliveries: Vec<Delivery>) -> BoxFuture<'a, Failures> {
        async move {
            let (messages, mut failures) = parse::<GroupMessage>(deliveries);
            let formed = messages.into_iter().map(|(delivery, message)| async move {
                let result = self.form(&message).await;
                (delivery.message_id, message, result)
            });
            let mut formed = stream::iter(formed).buffer_unordered(CONCURRENT_BATCHES);
            while let Some((message_id, message, result)) = formed.next().await {
                if let Err(error) = result {
                    tracing::error!(%error, batch = %message.batch, lane = %message.lane, "the batch was not formed");
                    failures.push(message_id);
                }
            }
            failures
        }
        .boxed()
    }
}
