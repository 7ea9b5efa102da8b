//! The sweep of a local stack: on the schedule of the template, and more often while a kind stands still or has just gone on.

use std::sync::Arc;
use std::time::Duration;

use fanfold::aws::StoreError;
use fanfold::clock::{Timestamp, World};
use fanfold::config::{ConfigError, Surroundings, variables};
use fanfold::store::gates::Gates;
use fanfold::store::policies::Policies;
use fanfold_local::Engine;
use fanfold_sweep::{Sweep, SweepRequest};

/// The schedule of `sweep` in the template.
const EVERY: Duration = Duration::from_secs(60);

/// Between two looks whether to sweep before that: the batches of a kind that resumed wait for the sweep.
const LOOK: Duration = Duration::from_secs(5);

/// Sweeps from one deletion of expired items to the next.
const EXPIRE_EVERY: u64 = 60;

/// What a local stack sweeps with.
#[derive(Debug)]
pub(crate) struct Sweeping {
    sweep: Arc<Sweep>,
    policies: Policies,
    gates: Gates,
    engine: Engine,
    world: World,
}

impl Sweeping {
    /// Sweeps the tables of `engine`, as the function with these surroundings does.
    pub(crate) fn new(sweep: Arc<Sweep>, surroundings: &Surroundings, engine: Engine) -> Result<Self, ConfigError> {
        Ok(Self {
            sweep,
            policies: Policies::new(surroundings.table(variables::POLICIES_TABLE)?),
            gates: Gates::new(surroundings.table(variables::LOCKS_TABLE)?),
            engine,
            world: surroundings.world.clone(),
        })
    }

    /// Sweeps until it is dropped, and lets expired items go as DynamoDB does.
    pub(crate) async fn keep_on(self) {
        let mut began = self.world.now();
        for sweeps in 1_u64.. {
            self.rest(began).await;
            began = self.world.now();
            // Every item is looked at for this.
            if sweeps.is_multiple_of(EXPIRE_EVERY)
                && let Err(error) = self.engine.expire_items()
            {
                tracing::error!(%error, "expired items stay");
            }
            match self.sweep.sweep(SweepRequest::default()).await {
                Ok(report) => tracing::info!(?report, "swept"),
                Err(error) => tracing::error!(%error, "the sweep broke off"),
            }
        }
    }

    /// Waits until the next sweep is due, after the one that began at `began`.
    async fn rest(&self, began: Timestamp) {
        let due = tokio::time::Instant::now() + EVERY;
        while tokio::time::Instant::now() < due {
            tokio::time::sleep(LOOK).await;
            match self.stands(began).await {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => tracing::warn!(%error, "whether a kind stands still cannot be read"),
            }
        }
    }

    /// Whether a kind stands still, or resumed after `since`.
    async fn stands(&self, since: Timestamp) -> Result<bool, StoreError> {
        let kinds = self.policies.kinds().await?;
        let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
        let gates = self.gates.get_many(&kinds).await?;
        Ok(gates.iter().any(|gate| gate.stopped.is_some() || gate.resumed_at >= Some(since)))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use fanfold::store::gates::{Gate, RefusedCall};
    use fanfold::store::places::{Party, Place};
    use uuid::Uuid;

    use super::*;
    use crate::stack::EmbeddedStack;

    /// Stops the kind `parcel`, and lets it go on if `resumes`.
    async fn refuse(sweeping: &Sweeping, resumes: bool) {
        let now = sweeping.world.now();
        let place = Place {
            party: Party::Kind("parcel".to_owned()),
            record: 0,
            holder: Uuid::from_u128(1),
            until: now.plus(LOOK),
        };
        let refusal = RefusedCall { target: "NY", version: Uuid::nil(), answer: "404" };
        assert!(sweeping.gates.take(&place, 5, now).await.unwrap().is_done());
        let gate: Gate = sweeping.gates.refuse(&place, refusal).await.unwrap().unwrap();
        assert!(sweeping.gates.stop(&gate, "404", now, None).await.unwrap());
        if resumes {
            let gate = sweeping.gates.get_many(&["parcel"]).await.unwrap().remove(0);
            let stopped = gate.stopped.clone().unwrap();
            assert!(sweeping.gates.take_probe(&place, &gate, &stopped, 5, None).await.unwrap().is_some());
            assert!(sweeping.gates.resume(&place, &gate, None).await.unwrap());
        }
    }

    #[tokio::test]
    async fn a_kind_that_stands_still_or_has_just_gone_on_is_a_reason_to_sweep() {
        for resumes in [false, true] {
            let stack = EmbeddedStack::open(None).await.unwrap();
            let surroundings = stack.surroundings("SweepFunction");
            let sweep = Arc::new(Sweep::from_environment(&surroundings).unwrap());
            let sweeping = Sweeping::new(sweep, &surroundings, stack.engine.clone()).unwrap();
            let policy = serde_json::json!({"kind": "parcel", "target": "content.to", "batch_api": {"command": ["x"]}});
            sweeping.policies.put(&serde_json::from_value(policy).unwrap()).await.unwrap();
            let before = sweeping.world.now();
            assert!(!sweeping.stands(before).await.unwrap());
            refuse(&sweeping, resumes).await;
            assert!(sweeping.stands(before).await.unwrap());
            let later = sweeping.world.now().plus(LOOK);
            assert_eq!(sweeping.stands(later).await.unwrap(), !resumes, "a sweep since then has seen it");
        }
    }
}
