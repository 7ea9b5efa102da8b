//! The breaker: what a call shows of its kind's batch API, and whether the kind stops or resumes.

use std::time::Duration;

use fanfold::aws::StoreError;
use fanfold::clock::Timestamp;
use fanfold::limits::{PROBE_PAUSE_MAX, PROBE_PAUSES};
use fanfold::messages::{About, NotifyMessage};
use fanfold::metrics::{CALLS_REFUSED, KINDS_RESUMED, KINDS_STOPPED};
use fanfold::policy::{Policy, Refusals};
use fanfold::store::batches::Batch;
use fanfold::store::gates::{Gate, RefusedCall, Stopped};
use fanfold_batch_api::{Answer, CallError, Cause};

use crate::Handle;
use crate::places::Pass;

/// What a call shows of the batch API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Says {
    /// It takes calls, even if it refused this one.
    Works,
    /// It would refuse every batch: the caller is wrong or must wait.
    Refused,
    /// Nothing: there was no answer, or the answer reports a fault.
    Nothing,
}

/// What a call shows of the batch API.
pub(crate) fn says(result: &Result<Answer, CallError>) -> Says {
    match result {
        Ok(_) => Says::Works,
        Err(error) if error.cause.concerns_every_batch() => Says::Refused,
        Err(error) => match error.cause {
            // The request did not arrive as a whole: the batch API did not judge it.
            Cause::Status(408) => Says::Nothing,
            Cause::Status(status) if status < 500 => Says::Works,
            Cause::Members => Says::Works,
            _ => Says::Nothing,
        },
    }
}

/// When the next probe is due, after `probes` that failed.
fn next_probe(probes: u32, result: &Result<Answer, CallError>, now: Timestamp, random: u64) -> Timestamp {
    let asked = result.as_ref().err().and_then(|error| error.retry_after).map(|asked| asked.delay(now));
    now.plus(PROBE_PAUSES.after(probes + 1, random).max(asked.unwrap_or(Duration::ZERO).min(PROBE_PAUSE_MAX)))
}

/// A call that is over.
pub(crate) struct Called<'a> {
    pub(crate) pass: &'a Pass,
    pub(crate) batch: &'a Batch,
    pub(crate) policy: &'a Policy,
    pub(crate) result: &'a Result<Answer, CallError>,
}

impl<'a> Called<'a> {
    fn kind(&self) -> &'a str {
        &self.batch.lane.kind
    }

    /// Whether its attempt does not count.
    fn put_off(&self) -> bool {
        let says = says(self.result);
        (says == Says::Refused && self.policy.refusals == Refusals::Wait) || (self.pass.probes && says != Says::Works)
    }

    fn refusal(&self) -> RefusedCall<'a> {
        let answer = self.result.as_ref().err().map(|error| error.message.as_str()).unwrap_or_default();
        RefusedCall { target: &self.batch.lane.target, version: self.policy.version(), answer }
    }
}

impl Handle {
    /// After a call: releases its place, and records what the call shows of the batch API. If the attempt does not count,
    /// returns when the batch may be called again.
    pub(crate) async fn leave(&self, called: &Called<'_>) -> Option<Timestamp> {
        match self.record_call(called).await {
            Ok(probe_at) => called.put_off().then_some(probe_at.unwrap_or_default()),
            Err(error) => {
                tracing::warn!(%error, kind = called.kind(), "the kind's breaker could not be updated after a call");
                called.put_off().then_some(Timestamp::default())
            }
        }
    }

    /// Records what a call shows. Returns when the kind's next probe is due, if it stands still.
    async fn record_call(&self, called: &Called<'_>) -> Result<Option<Timestamp>, StoreError> {
        let (place, says) = (&called.pass.place, says(called.result));
        if says == Says::Refused && called.put_off() {
            metrics::counter!(CALLS_REFUSED).increment(1);
        }
        match (says, called.pass.probes) {
            (Says::Works, true) => self.resume_kind(called).await.map(|()| None),
            (_, true) => self.probe_later(called).await.map(Some),
            (Says::Works, false) => self.gates.works(place).await.map(|()| None),
            (Says::Refused, false) if called.put_off() => self.refused(called).await,
            (Says::Refused | Says::Nothing, false) => self.gates.release(place).await.map(|()| None),
        }
    }

    /// A probe worked: the kind resumes.
    async fn resume_kind(&self, called: &Called<'_>) -> Result<(), StoreError> {
        let (kind, now) = (called.kind(), self.world.now());
        let notice_at = notice_at(&called.pass.gate, called.policy, now);
        if self.gates.resume(&called.pass.place, &called.pass.gate, notice_at).await? {
            tracing::warn!(kind, "the batch API works again: the kind resumes");
            metrics::counter!(KINDS_RESUMED).increment(1);
            self.hint_notice(kind, notice_at, now).await;
        }
        Ok(())
    }

    /// A probe did not work: the next one is due later.
    async fn probe_later(&self, called: &Called<'_>) -> Result<Timestamp, StoreError> {
        let gate = &called.pass.gate;
        let probes = gate.stopped.as_ref().map_or(0, |stopped| stopped.probes);
        let probe_at = next_probe(probes + 1, called.result, self.world.now(), self.world.random.next());
        self.gates.still_stopped(&called.pass.place, gate, called.refusal(), probe_at).await?;
        Ok(probe_at)
    }

    /// A call was refused: after a few in a row the kind stands still.
    async fn refused(&self, called: &Called<'_>) -> Result<Option<Timestamp>, StoreError> {
        let (kind, now, refusal) = (called.kind(), self.world.now(), called.refusal());
        let Some(gate) = self.gates.refuse(&called.pass.place, refusal).await? else { return Ok(None) };
        let places_max = called.policy.calls_at_once(self.places_max);
        if !self.gates.refused_enough(&gate, places_max, now).await? {
            return Ok(None);
        }
        let probe_at = next_probe(0, called.result, now, self.world.random.next());
        let notice_at = notice_at(&gate, called.policy, now);
        if self.gates.stop(&gate, refusal.answer, probe_at, notice_at).await? {
            tracing::error!(kind, answer = refusal.answer, "the kind stands still: its batch API refuses every call");
            metrics::counter!(KINDS_STOPPED).increment(1);
            self.hint_notice(kind, notice_at, now).await;
        }
        Ok(Some(probe_at))
    }

    /// The kind was stopped under another version of its policy: it resumes.
    pub(crate) async fn forget(&self, gate: &Gate, stopped: &Stopped, policy: &Policy) -> Result<(), StoreError> {
        let now = self.world.now();
        let notice_at = notice_at(gate, policy, now);
        if self.gates.forget(gate, stopped, notice_at).await? {
            tracing::warn!(kind = gate.kind, "the policy has changed: the kind resumes");
            metrics::counter!(KINDS_RESUMED).increment(1);
            self.hint_notice(&gate.kind, notice_at, now).await;
        }
        Ok(())
    }

    /// Sends the message of the notice of a kind's change, due at `notice_at`. If it is lost, `sweep` sends it again.
    async fn hint_notice(&self, kind: &str, notice_at: Option<Timestamp>, now: Timestamp) {
        let Some(at) = notice_at else { return };
        let message = NotifyMessage::due(About::Kind(kind.to_owned()), notice_at);
        if let Err(error) = self.notify.send_all([(&message, at.since(now))]).await {
            tracing::warn!(%error, kind, "the message of the kind's notice was not sent");
        }
    }
}

/// When the notice of a kind's change that happens now is due, if its policy names a destination.
fn notice_at(gate: &Gate, policy: &Policy, now: Timestamp) -> Option<Timestamp> {
    policy.notify.as_ref().map(|_| gate.next_notice_at(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_answers_and_silence_are_distinguished() {
        let of = |cause| says(&Err(CallError::new(cause, "no")));
        assert_eq!(says(&Ok(Answer::AllSucceeded)), Says::Works);
        for status in [301, 308, 401, 403, 404, 405, 415, 429, 503] {
            assert_eq!(of(Cause::Status(status)), Says::Refused, "{status}");
        }
        for status in [400, 409, 413, 422] {
            assert_eq!(of(Cause::Status(status)), Says::Works, "{status}");
        }
        for cause in [
            Cause::Status(408),
            Cause::Status(500),
            Cause::Status(504),
            Cause::Silence,
            Cause::BadAnswer,
            Cause::NotSent,
            Cause::NotMade,
        ] {
            assert_eq!(of(cause), Says::Nothing, "{cause:?}");
        }
    }

    #[test]
    fn probes_come_ever_later_and_as_asked() {
        let now = Timestamp(1_000_000);
        let silent = Err(CallError::new(Cause::Silence, "no"));
        assert!(next_probe(0, &silent, now, 0) <= now.plus(Duration::from_secs(5)));
        assert!(next_probe(30, &silent, now, u64::MAX) <= now.plus(Duration::from_secs(120)));
        let day = fanfold::retry_after::RetryAfter::Delay(Duration::from_secs(86_400));
        let busy = Err(CallError { retry_after: Some(day), ..CallError::new(Cause::Status(429), "busy") });
        assert_eq!(next_probe(0, &busy, now, 0), now.plus(PROBE_PAUSE_MAX));
    }
}
