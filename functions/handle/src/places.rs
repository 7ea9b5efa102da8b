//! Places: only so many calls of a kind's batch API run at once.

use std::time::Duration;

use fanfold::limits::ATTEMPT_MARGIN;
use fanfold::store::StoreError;
use fanfold::store::gates::Place;

use crate::{Handle, pace};

/// Looks for a place while the calls of its kind are short: one is free soon.
const LOOKS: u32 = 4;

impl Handle {
    /// Takes a place for a call of this kind that may last for `timeout`. `Err`: none is free for so long.
    pub(crate) async fn take_place(
        &self,
        kind: &str,
        timeout: Duration,
    ) -> Result<Result<Place, Duration>, StoreError> {
        let lease = timeout + ATTEMPT_MARGIN;
        let holder = self.world.uuid();
        let mut looks = 1;
        loop {
            let now = self.world.now();
            let place = Place { kind: kind.to_owned(), holder, until: now.plus(lease) };
            let gate = match self.gates.take(&place, self.share, now).await? {
                Ok(()) => return Ok(Ok(place)),
                Err(gate) => gate,
            };
            let random = self.world.random.next();
            match pace::look(pace::oldest(&gate, lease, now), random) {
                Some(pause) if looks < LOOKS => tokio::time::sleep(pause).await,
                _ => return Ok(Err(pace::wait(pace::oldest(&gate, lease, now), random))),
            }
            looks += 1;
        }
    }

    /// Gives a place back. If that fails, its lease ends it.
    pub(crate) async fn give_back(&self, place: &Place) {
        if let Err(error) = self.gates.give_back(place).await {
            tracing::warn!(%error, kind = %place.kind, "a place was not given back; it is free when its lease ends");
        }
    }
}
