//! Lanes are woken when tasks wait in them: by an election, or, where batches linger for less than a second, by making a leader at
//! once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::aws::{StoreError, Write};
use crate::control::Hold;
use crate::grouping::BatchSize;
use crate::ids::derived;
use crate::lane::Lane;
use crate::limits::LED_BY_REQUEST_MAX;
use crate::messages::{ElectMessage, GroupMessage};
use crate::store::locks::Lock;
use crate::waiting::Waiting;
use futures::{StreamExt, TryFutureExt, stream};

use super::bundles::Awake;
use super::{RegisterError, Registrar};

impl Registrar {
    /// One message per lane, naming what waits there. A paused lane gets none: when it is resumed, it is woken for all that
    /// waits.
    /// `flushing`: the lanes in which one of the tasks ends the linger.
    pub(crate) async fn wake(&self, awake: Awake, flushing: &BTreeSet<Lane>) -> Result<(), RegisterError> {
        let lanes: Vec<(Lane, Vec<Waiting>)> =
            awake.lanes().map(|(lane, waiting)| (lane, waiting.portions())).collect();
        let lanes = self.policies.perhaps_not_paused(lanes, |(lane, _)| lane).await;
        let leaders = self.leaders(&lanes).await;
        let mut messages = Vec::new();
        for ((lane, portions), _) in &lanes {
            let led = usize::from(leaders.contains_key(lane));
            let flushes = flushing.contains(lane);
            let message = |portion: &Waiting| {
                ElectMessage::stored(lane.clone(), portion.clone(), self.world.uuid()).flushing(flushes)
            };
            messages.extend(portions.iter().skip(led).map(message));
        }
        self.group.send_all(leaders.values().map(|(message, delay)| (message, *delay))).await?;
        Ok(self.elect.send_all(messages.iter().map(|message| (message, Duration::ZERO))).await?)
    }

    /// Makes leaders of lanes whose batches do not linger for as much as a second, if a request is about few of them. Returns their
    /// messages, each with its delay; other lanes hold elections, which are gathered first and so cost less.
    async fn leaders(&self, lanes: &[((Lane, Vec<Waiting>), Hold)]) -> BTreeMap<Lane, (GroupMessage, Duration)> {
        let mut hasty = BTreeMap::new();
        for ((lane, portions), hold) in lanes.iter().filter(|_| lanes.len() <= LED_BY_REQUEST_MAX) {
            let policy = self.policies.get(&lane.kind).await.ok().flatten();
            let Some(compiled) = policy else { continue };
            let size = BatchSize::under(&compiled.policy, *hold);
            if size.linger().is_hasty() {
                let waiting = portions.first().cloned().unwrap_or_default();
                hasty.insert(lane, (compiled.policy.max_in_flight, waiting, size));
            }
        }
        let names: Vec<Lane> = hasty.keys().copied().cloned().collect();
        let locks = self.locks.get_many(&names, false).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "locks cannot be read; the tasks wait for an election");
            Vec::new()
        });
        let mut seen: BTreeMap<Lane, Lock> = locks.into_iter().map(|lock| (lock.lane.clone(), lock)).collect();
        let leads = hasty.into_iter().map(|(lane, (max_in_flight, waiting, size))| {
            let lock = seen.remove(lane).unwrap_or_else(|| Lock::free(lane.clone()));
            self.lead(lock, max_in_flight, waiting).map_ok(move |led| led.map(|message| message.first(size, true)))
        });
        let mut leads = stream::iter(leads.collect::<Vec<_>>()).buffer_unordered(LED_BY_REQUEST_MAX);
        let mut leaders = BTreeMap::new();
        while let Some(led) = leads.next().await {
            match led {
                Ok(led) => leaders.extend(led.map(|(message, delay)| (message.lane.clone(), (message, delay)))),
                Err(error) => tracing::warn!(%error, "no leader was made; there is an election"),
            }
        }
        leaders
    }

    /// Makes the leader of a lane, or has the lane's next batch led on to when one ends. `lock`: as it was seen.
    async fn lead(&self, lock: Lock, max_in_flight: u32, waiting: Waiting) -> Result<Option<GroupMessage>, StoreError> {
        let (lane, batch) = (lock.lane.clone(), derived::batch(self.world.uuid(), 0));
        let lock = match self.locks.acquire_if_open(lock, batch, max_in_flight).await? {
            Write::Done(lock) => return Ok(Some(GroupMessage::elected(&lock, batch, waiting))),
            Write::Refused(lock) => lock,
        };
        // A leader may have looked before these tasks came.
        if !lock.waiting {
            self.locks.wait(&lane).await?;
        }
        Ok(None)
    }
}
