//! What the sandbox has done, and what it does with the next call. No I/O and no clock: the time is handed in.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use super::behaviour::{Behaviour, CallFate, MemberFate};

/// A call that can be read.
#[derive(Debug)]
pub(super) struct Call<'a> {
    /// Its `Idempotency-Key`; none if it has none.
    pub(super) key: Option<&'a str>,
    /// Its body as it was sent.
    pub(super) body: &'a [u8],
    /// Ids and contents, the latter as JSON.
    pub(super) members: Vec<(String, String)>,
}

/// What goes back.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reply {
    /// The HTTP status.
    pub(super) status: u16,
    /// The body.
    pub(super) body: Value,
    /// Why, in a word, for the log.
    pub(super) because: &'static str,
}

/// When it goes back: after this time, or never.
pub(super) type When = Option<Duration>;

/// What has been counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Counts {
    /// All calls.
    calls: u64,
    /// Calls that were done.
    done: u64,
    /// Those of them whose answer was lost.
    lost: u64,
    /// Calls answered with 429.
    busy: u64,
    /// Calls answered with 500.
    errors: u64,
    /// Calls refused because of a member.
    refused: u64,
    /// Calls that could not be read.
    unreadable: u64,
    /// Calls that got the answer of an earlier one again.
    repeated: u64,
    /// Calls under the key of an earlier one, with another body.
    key_conflicts: u64,
    /// Members that succeeded.
    succeeded: u64,
    /// Members that failed.
    failed: u64,
    /// How often a member was done again after it had succeeded.
    done_again: u64,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { calls, done, lost, busy, errors, refused, unreadable, repeated, key_conflicts, .. } = self;
        writeln!(f, "calls      {calls}, of them {done} done ({lost} answers lost), {busy} busy, {errors} errors,")?;
        writeln!(
            f,
            "           {refused} refused, {unreadable} unreadable, {repeated} repeated, {key_conflicts} key conflicts"
        )?;
        let Self { succeeded, failed, done_again, .. } = self;
        write!(f, "members    {succeeded} succeeded, {failed} failed, {done_again} done again after they had succeeded")
    }
}

#[derive(Debug, Default)]
struct Key {
    times: u32,
    done: Option<(Vec<u8>, Reply)>,
}

#[derive(Debug, Default)]
struct Member {
    times: u32,
    outcome: Option<MemberFate>,
}

/// What the sandbox has done.
#[derive(Debug)]
pub(super) struct Ledger {
    behaviour: Behaviour,
    remembers_keys: bool,
    keys: HashMap<String, Key>,
    members: HashMap<String, Member>,
    counts: Counts,
    /// The second of the last call, and how many calls were taken in it.
    second: (u64, u32),
}

impl Ledger {
    pub(super) fn new(behaviour: Behaviour, remembers_keys: bool) -> Self {
        let counts = Counts::default();
        Self { behaviour, remembers_keys, keys: HashMap::new(), members: HashMap::new(), counts, second: (0, 0) }
    }

    /// When the answer to a call that is done is there, if it is answered later.
    pub(super) fn answers_later(&self, key: &str) -> Option<Duration> {
        self.behaviour.answers_later(key)
    }

    /// What has been counted.
    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Takes a call, so long after the start.
    pub(super) fn take(&mut self, call: &Call<'_>, now: Duration) -> (Reply, When) {
        self.counts.calls += 1;
        if self.is_busy(now) {
            self.counts.busy += 1;
            return at_once(429, "too many calls per second, call again in a second", "busy");
        }
        let name = call.key.map_or_else(|| format!("call {}", self.counts.calls), str::to_owned);
        let key = self.keys.entry(name.clone()).or_default();
        key.times += 1;
        if let Some((body, reply)) = &key.done {
            if body != call.body {
                self.counts.key_conflicts += 1;
                return at_once(422, "an earlier call had this Idempotency-Key and another body", "key conflict");
            }
            self.counts.repeated += 1;
            return (Reply { because: "repeated", ..reply.clone() }, Some(Duration::ZERO));
        }
        let fate = self.behaviour.call(&name, key.times);
        if fate == CallFate::Error {
            self.counts.errors += 1;
            return at_once(500, "the sandbox is set to fail", "error");
        }
        if call.members.iter().any(|(_, content)| self.behaviour.spoils(content)) {
            self.counts.refused += 1;
            return at_once(400, "a member cannot be used, and nothing was done", "refused");
        }
        let reply = self.carry_out(&call.members);
        if self.remembers_keys && call.key.is_some() {
            self.keys.entry(name).or_default().done = Some((call.body.to_vec(), reply.clone()));
        }
        match fate {
            CallFate::Answered(latency) => (reply, Some(latency)),
            CallFate::Lost | CallFate::Error => {
                self.counts.lost += 1;
                (Reply { because: "lost", ..reply }, None)
            }
        }
    }

    /// Refuses a call that cannot be read.
    pub(super) fn refuse(&mut self, problem: &str) -> (Reply, When) {
        self.counts.calls += 1;
        self.counts.unreadable += 1;
        at_once(400, problem, "unreadable")
    }

    fn is_busy(&mut self, now: Duration) -> bool {
        let Some(rate) = self.behaviour.rate else { return false };
        if self.second.0 != now.as_secs() {
            self.second = (now.as_secs(), 0);
        }
        self.second.1 = self.second.1.saturating_add(1);
        self.second.1 > rate.get()
    }

    fn carry_out(&mut self, members: &[(String, String)]) -> Reply {
        self.counts.done += 1;
        let entries: Vec<Value> = members.iter().map(|(id, content)| self.carry_out_one(id, content)).collect();
        Reply { status: 200, body: json!({"members": entries}), because: "done" }
    }

    fn carry_out_one(&mut self, id: &str, content: &str) -> Value {
        let member = self.members.entry(id.to_owned()).or_default();
        member.times += 1;
        let fate = self.behaviour.member(id, content, member.times);
        if member.outcome == Some(MemberFate::Succeeds) {
            self.counts.done_again += 1;
        } else if member.outcome.is_none() {
            match fate {
                MemberFate::Succeeds => self.counts.succeeded += 1,
                MemberFate::Fails => self.counts.failed += 1,
                MemberFate::Retries => {}
            }
        }
        match fate {
            MemberFate::Succeeds => {
                member.outcome = Some(fate);
                json!({"id": id, "outcome": "succeeded"})
            }
            MemberFate::Fails => {
                member.outcome.get_or_insert(fate);
                json!({"id": id, "outcome": "failed", "error": "the sandbox is set to fail this content"})
            }
            MemberFate::Retries => {
                json!({"id": id, "outcome": "retry", "error": "the sandbox is set to return `retry`"})
            }
        }
    }
}

fn at_once(status: u16, error: &str, because: &'static str) -> (Reply, When) {
    (Reply { status, body: json!({"error": error}), because }, Some(Duration::ZERO))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::behaviour::tests::kind;
    use super::*;

    const NOW: Duration = Duration::ZERO;

    fn call<'a>(key: &'a str, body: &'a [u8], members: &[(&str, &str)]) -> Call<'a> {
        let members = members.iter().map(|(id, content)| ((*id).to_owned(), (*content).to_owned())).collect();
        Call { key: Some(key), body, members }
    }

    #[test]
    fn a_call_under_a_known_key_gets_its_answer_again_and_does_nothing() {
        let mut ledger = Ledger::new(kind(), true);
        let first = ledger.take(&call("k", b"1", &[("a", "1"), ("b", "2")]), NOW);
        let again = ledger.take(&call("k", b"1", &[("a", "1"), ("b", "2")]), NOW);
        assert_eq!((first.0.status, &first.0.body), (200, &again.0.body));
        let counts = ledger.counts();
        assert_eq!((counts.calls, counts.done, counts.repeated, counts.succeeded, counts.done_again), (2, 1, 1, 2, 0));
    }

    #[test]
    fn a_key_with_another_body_is_refused() {
        let mut ledger = Ledger::new(kind(), true);
        ledger.take(&call("k", b"1", &[("a", "1")]), NOW);
        assert_eq!(ledger.take(&call("k", b"2", &[("b", "1")]), NOW).0.status, 422);
        assert_eq!((ledger.counts().key_conflicts, ledger.counts().succeeded), (1, 1));
    }

    #[test]
    fn without_keys_members_are_done_again_and_counted() {
        let mut ledger = Ledger::new(kind(), false);
        ledger.take(&call("k", b"1", &[("a", "1")]), NOW);
        ledger.take(&call("k", b"1", &[("a", "1")]), NOW);
        assert_eq!((ledger.counts().succeeded, ledger.counts().done_again), (1, 1));
    }

    #[test]
    fn more_calls_than_the_rate_in_a_second_are_turned_away() {
        let mut ledger = Ledger::new(Behaviour { rate: Some(2.try_into().unwrap()), ..kind() }, true);
        let mut status = |millis| {
            let members = [("a", "1")];
            ledger.take(&Call { key: None, ..call("", b"1", &members) }, Duration::from_millis(millis)).0.status
        };
        assert_eq!([0, 500, 999, 1_000].map(&mut status), [200, 200, 429, 200]);
    }

    #[test]
    fn a_spoilt_call_and_an_error_do_nothing_and_a_lost_answer_follows_its_work() {
        let all = || "100%".parse().unwrap();
        for (behaviour, status, done, lost) in [
            (Behaviour { poison: all(), ..kind() }, 400, 0, 0),
            (Behaviour { errors: all(), ..kind() }, 500, 0, 0),
            (Behaviour { lose: all(), ..kind() }, 200, 1, 1),
        ] {
            let mut ledger = Ledger::new(behaviour, true);
            let (reply, when) = ledger.take(&call("k", b"1", &[("a", "1")]), NOW);
            assert_eq!((reply.status, when.is_none()), (status, lost == 1));
            assert_eq!((ledger.counts().succeeded, ledger.counts().lost), (done, lost));
        }
    }

    #[test]
    fn a_lost_answer_is_there_under_its_key() {
        let mut ledger = Ledger::new(Behaviour { lose: "100%".parse().unwrap(), ..kind() }, true);
        assert!(ledger.take(&call("k", b"1", &[("a", "1")]), NOW).1.is_none());
        let (reply, when) = ledger.take(&call("k", b"1", &[("a", "1")]), NOW);
        assert_eq!((reply.status, when), (200, Some(NOW)));
        assert_eq!(ledger.counts().succeeded, 1);
    }
}
