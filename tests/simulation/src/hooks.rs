//! What is known of notices: how often each was delivered, when a webhook may be called again, and by how many invocations
//! a receiver is called at once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fanfold::limits::{NOTICE_PAUSES, NOTICE_RETRY_AFTER_MAX};
use fanfold::messages::NotifyMessage;
use tokio::time::Instant;
use uuid::Uuid;

use crate::lock;
use crate::request::{Record, Request};
use crate::sim::Sim;

/// Where faults may lose what a receiver answered, the notice comes again when the lease of its try is over, which began some
/// time before the call.
const UNHEARD: Duration = Duration::from_secs(10);

/// What a webhook answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReceiverAnswer {
    Takes,
    Refuses(Duration),
    Gone,
}

/// What a notice came to.
#[derive(Clone, Debug, Default)]
struct Known {
    calls: u32,
    called_at: Option<Instant>,
    next: Option<Instant>,
    over: Option<&'static str>,
}

/// What is known of notices.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hooks {
    notices: BTreeMap<Uuid, Known>,
    hints: BTreeMap<String, u32>,
    calling: BTreeMap<String, BTreeMap<String, u32>>,
    /// Notices of which a dead letter was sent.
    letters: BTreeSet<Uuid>,
    /// The keys of the records that they are about.
    dead: BTreeSet<String>,
    gone: u32,
}

/// How strictly a run is looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strictness {
    /// Nothing fails and clocks are right: what the receiver answers is heard.
    pub(crate) exact: bool,
    /// How wrong two clocks may be.
    pub(crate) slack: Duration,
    /// Invocations that may call one receiver at once.
    pub(crate) calls_max: usize,
}

impl Hooks {
    /// A notice is delivered; what is wrong with that.
    pub(crate) fn called(&mut self, id: Uuid, strictness: Strictness) -> Option<String> {
        let known = self.notices.entry(id).or_default();
        known.calls += 1;
        let now = Instant::now();
        let next = match known.next {
            Some(next) if strictness.exact => Some(next),
            Some(next) => known.called_at.map(|at| next.min(at + UNHEARD)),
            None => None,
        };
        known.called_at = Some(now);
        if strictness.exact
            && let Some(over) = known.over
        {
            return Some(format!("notice {id} is delivered again, which was {over}, although nothing failed"));
        }
        let early = next?.saturating_duration_since(now + strictness.slack);
        (!early.is_zero())
            .then(|| format!("notice {id} is delivered {early:?} too early, the call is number {}", known.calls))
    }

    /// It was answered.
    pub(crate) fn answered(&mut self, id: Uuid, answer: ReceiverAnswer) {
        let known = self.notices.entry(id).or_default();
        match answer {
            ReceiverAnswer::Takes => known.over = Some("taken"),
            ReceiverAnswer::Gone => {
                known.over = Some("refused for good");
                self.gone += 1;
            }
            ReceiverAnswer::Refuses(asked) => {
                let least = NOTICE_PAUSES.after(known.calls, 0).max(asked.min(NOTICE_RETRY_AFTER_MAX));
                known.next = Some(Instant::now() + least);
            }
        }
    }

    /// Whether a receiver said of a notice that it wants no more of it.
    pub(crate) fn gone(&self, id: &Uuid) -> bool {
        self.notices.get(id).is_some_and(|known| known.over == Some("refused for good"))
    }

    /// A message came to the dead-letter queue of notices.
    pub(crate) fn letter(&mut self, body: &str) {
        let Ok(letter) = serde_json::from_str::<NotifyMessage>(body) else { return };
        self.dead.insert(letter.about.key());
        self.letters.extend(letter.undelivered.map(|undelivered| undelivered.notice.id));
    }

    /// Whether of a notice, which its receiver wants no more of, there is no dead letter.
    pub(crate) fn no_letter(&self, id: &Uuid) -> bool {
        self.gone(id) && !self.letters.contains(id)
    }

    /// An invocation calls a receiver; what is wrong with that.
    pub(crate) fn enter(&mut self, receiver: &str, who: &str, strictness: Strictness) -> Option<String> {
        let calling = self.calling.entry(receiver.to_owned()).or_default();
        *calling.entry(who.to_owned()).or_default() += 1;
        (strictness.exact && calling.len() > strictness.calls_max)
            .then(|| format!("{} invocations call {receiver} at once, {} may", calling.len(), strictness.calls_max))
    }

    /// The call is over.
    pub(crate) fn leave(&mut self, receiver: &str, who: &str) {
        if let Some(calling) = self.calling.get_mut(receiver)
            && let Some(calls) = calling.get_mut(who)
        {
            *calls = calls.saturating_sub(1);
            calling.retain(|_, calls| *calls > 0);
        }
    }

    /// A message asks for the first try of a notice, of which there are so many at most; what is wrong with that.
    pub(crate) fn hinted(&mut self, body: &str, most: u32) -> Option<String> {
        let hints = self.hints.entry(body.to_owned()).or_default();
        *hints += 1;
        (*hints > most).then(|| format!("notify is asked {hints} times for {body}, although nothing failed"))
    }
}

/// What is wrong with a write that gives a notice up: its dead letter is to be sent before.
pub(crate) fn given_up(sim: &Sim, request: &Request, record: &Record) -> Option<String> {
    let gives_up = !request.body["ExpressionAttributeValues"][":undeliverable"].is_null();
    let early = gives_up && !lock(&sim.model).hooks.dead.contains(&record.1);
    early.then(|| format!("a notice of {record:?} is given up before its dead letter is sent: {}", request.body))
}
