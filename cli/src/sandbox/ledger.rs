//! What the sandbox has done, and what it does with the next call. No I/O and no clock: the time is handed in.

use std::collections::HashMap;
use std::time::Duration;

use fanfold_batch_api::{MemberOutcome, Reply, SentCall, Shape};

use super::behaviour::{Behaviour, CallFate};
use super::counts::Counts;

/// A call that can be read.
#[derive(Debug)]
pub(super) struct Call<'a> {
    /// Its `Idempotency-Key`; none if it has none.
    pub(super) key: Option<&'a str>,
    /// Its body as it was sent.
    pub(super) body: &'a [u8],
    /// What was sent.
    pub(super) sent: SentCall,
}

/// What goes back.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Taken {
    /// The answer.
    pub(super) reply: Reply,
    /// Why, in a word, for the log.
    pub(super) because: &'static str,
    /// What became of its members, if it was done.
    pub(super) outcomes: Vec<MemberOutcome>,
    /// When it goes back: after this time, or never.
    pub(super) when: Option<Duration>,
}

#[derive(Debug, Default)]
struct Key {
    times: u32,
    done: Option<(Vec<u8>, Reply)>,
}

#[derive(Debug, Default)]
struct Member {
    times: u32,
    outcome: Option<MemberOutcome>,
}

/// What the sandbox has done.
#[derive(Debug)]
pub(super) struct Ledger {
    behaviour: Behaviour,
    shape: Shape,
    remembers_keys: bool,
    keys: HashMap<String, Key>,
    members: HashMap<String, Member>,
    /// Numbers that were given to members.
    numbers: u64,
    counts: Counts,
    /// The second of the last call, and how many calls were taken in it.
    second: (u64, u32),
}

impl Ledger {
    /// One that has done nothing yet. `forgets`: it remembers no keys, also if its API does.
    pub(super) fn new(behaviour: Behaviour, shape: Shape, forgets: bool) -> Self {
        let remembers_keys = shape.keeps_keys() && !forgets;
        let (keys, members, counts) = (HashMap::new(), HashMap::new(), Counts::default());
        Self { behaviour, shape, remembers_keys, keys, members, numbers: 0, counts, second: (0, 0) }
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
    pub(super) fn take(&mut self, call: &Call<'_>, now: Duration) -> Taken {
        self.counts.calls += 1;
        if self.is_busy(now) {
            return self.busy("too many calls per second, call again in a second");
        }
        let name = call.key.map_or_else(|| format!("call {}", self.counts.calls), str::to_owned);
        let key = self.keys.entry(name.clone()).or_default();
        key.times += 1;
        if let Some((body, reply)) = &key.done {
            if body != call.body {
                self.counts.key_conflicts += 1;
                let reply = self.shape.conflict("an earlier call had this Idempotency-Key and another body");
                return at_once(reply, "key conflict");
            }
            self.counts.repeated += 1;
            return at_once(reply.clone(), "repeated");
        }
        let fate = self.behaviour.call(&name, key.times);
        if fate == CallFate::Error {
            self.counts.errors += 1;
            return at_once(self.shape.broken("the sandbox is set to fail"), "error");
        }
        if call.sent.members.iter().any(|member| self.behaviour.spoils(&member.content.to_string())) {
            self.counts.refused += 1;
            return at_once(self.shape.refused("a member cannot be used, and nothing was done"), "refused");
        }
        self.carry_out(call, name, fate)
    }

    /// Does a call, unless one of its members keeps it from being done.
    fn carry_out(&mut self, call: &Call<'_>, name: String, fate: CallFate) -> Taken {
        let outcomes = self.draw(&call.sent);
        // What the API cannot say of a member, it says of the call.
        let unsaid = |outcome| outcomes.contains(&outcome) && !self.shape.says(outcome);
        if unsaid(MemberOutcome::Failed) {
            self.counts.refused += 1;
            return at_once(self.shape.refused(FAILED), "refused");
        }
        if unsaid(MemberOutcome::Retry) {
            return self.busy(RETRY);
        }
        if self.behaviour.strict && outcomes.iter().any(|outcome| *outcome != MemberOutcome::Succeeded) {
            self.counts.refused += 1;
            let undone = |outcome: &MemberOutcome| match outcome {
                MemberOutcome::Succeeded => MemberOutcome::Retry,
                other => *other,
            };
            self.count_members(&call.sent, &outcomes.iter().map(undone).collect::<Vec<_>>());
            return at_once(self.answer(&call.sent, &outcomes), "refused");
        }
        self.counts.done += 1;
        self.count_members(&call.sent, &outcomes);
        let reply = self.answer(&call.sent, &outcomes);
        // Where every member is to be sent again nothing was done that a repetition could do twice.
        let any_ended = outcomes.iter().any(|outcome| *outcome != MemberOutcome::Retry);
        if self.remembers_keys && call.key.is_some() && any_ended {
            self.keys.entry(name).or_default().done = Some((call.body.to_vec(), reply.clone()));
        }
        match fate {
            CallFate::Answered(latency) => Taken { outcomes, when: Some(latency), ..at_once(reply, "done") },
            CallFate::Lost | CallFate::Error => {
                self.counts.lost += 1;
                Taken { outcomes, when: None, ..at_once(reply, "lost") }
            }
        }
    }

    /// Refuses a call that cannot be read.
    pub(super) fn refuse(&mut self, problem: &str) -> Taken {
        self.counts.calls += 1;
        self.counts.unreadable += 1;
        at_once(self.shape.refused(problem), "unreadable")
    }

    fn is_busy(&mut self, now: Duration) -> bool {
        let Some(rate) = self.behaviour.rate else { return false };
        if self.second.0 != now.as_secs() {
            self.second = (now.as_secs(), 0);
        }
        self.second.1 = self.second.1.saturating_add(1);
        self.second.1 > rate.get()
    }

    fn busy(&mut self, why: &str) -> Taken {
        self.counts.busy += 1;
        at_once(self.shape.busy(why), "busy")
    }

    /// Draws what becomes of the members of a call.
    fn draw(&mut self, sent: &SentCall) -> Vec<MemberOutcome> {
        let mut outcomes = Vec::with_capacity(sent.members.len());
        for member in &sent.members {
            let name = member.name();
            let times = &mut self.members.entry(name.clone()).or_default().times;
            *times += 1;
            outcomes.push(self.behaviour.member(&name, &member.content.to_string(), *times));
        }
        outcomes
    }

    fn count_members(&mut self, sent: &SentCall, outcomes: &[MemberOutcome]) {
        for (member, outcome) in sent.members.iter().zip(outcomes) {
            let member = self.members.entry(member.name()).or_default();
            match (member.outcome, outcome) {
                (Some(MemberOutcome::Succeeded), _) => self.counts.done_again += 1,
                (None, MemberOutcome::Succeeded) => self.counts.succeeded += 1,
                (None, MemberOutcome::Failed) => self.counts.failed += 1,
                _ => {}
            }
            match outcome {
                MemberOutcome::Succeeded => member.outcome = Some(*outcome),
                MemberOutcome::Failed => _ = member.outcome.get_or_insert(*outcome),
                MemberOutcome::Retry | MemberOutcome::Unclear | MemberOutcome::Unnamed => {}
            }
        }
    }

    fn answer(&mut self, sent: &SentCall, outcomes: &[MemberOutcome]) -> Reply {
        let because = |outcome: &MemberOutcome| match outcome {
            MemberOutcome::Failed => (*outcome, FAILED),
            other => (*other, RETRY),
        };
        let outcomes: Vec<(MemberOutcome, &str)> = outcomes.iter().map(because).collect();
        let reply = self.shape.done(sent, &outcomes, self.numbers);
        self.numbers += outcomes.len() as u64;
        reply
    }
}

const FAILED: &str = "the sandbox is set to fail this content";
const RETRY: &str = "the sandbox is set to return `retry`";

fn at_once(reply: Reply, because: &'static str) -> Taken {
    Taken { reply, because, outcomes: Vec::new(), when: Some(Duration::ZERO) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::behaviour::tests::kind;
    use super::*;

    const NOW: Duration = Duration::ZERO;
    const ONE: &[u8] = br#"{"members": [{"id": "a", "content": 1}]}"#;
    const TWO: &[u8] = br#"{"members": [{"id": "a", "content": 1}, {"id": "b", "content": 2}]}"#;

    fn ledger(behaviour: Behaviour, forgets: bool) -> Ledger {
        Ledger::new(behaviour, Shape::own().unwrap(), forgets)
    }

    fn take(ledger: &mut Ledger, body: &[u8], now: Duration) -> Taken {
        let sent = ledger.shape.read(body).unwrap();
        ledger.take(&Call { key: Some("k"), body, sent }, now)
    }

    fn all() -> super::super::percent::Percent {
        "100%".parse().unwrap()
    }

    #[test]
    fn a_call_under_a_known_key_gets_its_answer_again_and_does_nothing() {
        let mut ledger = ledger(kind(), false);
        let first = take(&mut ledger, TWO, NOW);
        let again = take(&mut ledger, TWO, NOW);
        assert_eq!((first.reply.status, &first.reply.body), (200, &again.reply.body));
        let counts = ledger.counts();
        assert_eq!((counts.calls, counts.done, counts.repeated, counts.succeeded, counts.done_again), (2, 1, 1, 2, 0));
    }

    #[test]
    fn a_key_with_another_body_is_refused() {
        let mut ledger = ledger(kind(), false);
        take(&mut ledger, ONE, NOW);
        assert_eq!(take(&mut ledger, TWO, NOW).reply.status, 422);
        assert_eq!((ledger.counts().key_conflicts, ledger.counts().succeeded), (1, 1));
    }

    #[test]
    fn without_keys_members_are_done_again_and_counted() {
        let mut ledger = ledger(kind(), true);
        take(&mut ledger, ONE, NOW);
        take(&mut ledger, ONE, NOW);
        assert_eq!((ledger.counts().succeeded, ledger.counts().done_again), (1, 1));
    }

    #[test]
    fn more_calls_than_the_rate_in_a_second_are_turned_away() {
        let mut ledger = ledger(Behaviour { rate: Some(2.try_into().unwrap()), ..kind() }, true);
        let statuses = [0, 500, 999, 1_000].map(|now| take(&mut ledger, ONE, Duration::from_millis(now)).reply.status);
        assert_eq!(statuses, [200, 200, 429, 200]);
    }

    #[test]
    fn a_spoilt_call_and_an_error_do_nothing_and_a_lost_answer_follows_its_work() {
        for (behaviour, status, done, lost) in [
            (Behaviour { poison: all(), ..kind() }, 400, 0, 0),
            (Behaviour { errors: all(), ..kind() }, 500, 0, 0),
            (Behaviour { lose: all(), ..kind() }, 200, 1, 1),
        ] {
            let mut ledger = ledger(behaviour, false);
            let Taken { reply, when, .. } = take(&mut ledger, ONE, NOW);
            assert_eq!((reply.status, when.is_none()), (status, lost == 1));
            assert_eq!((ledger.counts().succeeded, ledger.counts().lost), (done, lost));
        }
    }

    #[test]
    fn a_strict_call_is_done_for_all_of_its_members_or_for_none_and_then_it_is_not_remembered() {
        let half = "50%".parse().unwrap();
        let behaviour = Behaviour { strict: true, retry: half, ..kind() };
        let drawn: Vec<bool> = (1..20)
            .map(|time| ["a", "b"].iter().all(|id| behaviour.member(id, "", time) == MemberOutcome::Succeeded))
            .collect();
        let refused = drawn.iter().take_while(|all| !**all).count();
        assert!((1..19).contains(&refused), "{drawn:?}");
        let mut ledger = ledger(behaviour, false);
        for _ in 0..refused {
            let Taken { reply, because, .. } = take(&mut ledger, TWO, NOW);
            assert_eq!((reply.status, because), (200, "refused"));
            assert!(reply.body.to_string().contains("retry"), "{reply:?}");
            assert_eq!((ledger.counts().succeeded, ledger.counts().done), (0, 0));
        }
        assert_eq!(take(&mut ledger, TWO, NOW).because, "done");
        assert_eq!(take(&mut ledger, TWO, NOW).because, "repeated");
        assert_eq!((ledger.counts().succeeded, ledger.counts().done_again), (2, 0));
    }

    #[test]
    fn a_call_is_remembered_once_one_of_its_members_has_ended() {
        let mut never = ledger(Behaviour { retry: all(), ..kind() }, false);
        assert_eq!([(); 2].map(|()| take(&mut never, TWO, NOW).because), ["done"; 2]);
        assert_eq!((never.counts().done, never.counts().repeated), (2, 0));
        let half = Behaviour { retry: "50%".parse().unwrap(), ..kind() };
        let all_again = |time: &u32| ["a", "b"].iter().all(|id| half.member(id, "", *time) == MemberOutcome::Retry);
        let forgotten = (1..20).take_while(all_again).count();
        let mut at_last = ledger(half, false);
        for _ in 0..=forgotten {
            assert_eq!(take(&mut at_last, TWO, NOW).because, "done");
        }
        assert_eq!(take(&mut at_last, TWO, NOW).because, "repeated");
    }

    #[test]
    fn a_lost_answer_is_there_under_its_key() {
        let mut ledger = ledger(Behaviour { lose: all(), ..kind() }, false);
        assert!(take(&mut ledger, ONE, NOW).when.is_none());
        let Taken { reply, when, .. } = take(&mut ledger, ONE, NOW);
        assert_eq!((reply.status, when), (200, Some(NOW)));
        assert_eq!(ledger.counts().succeeded, 1);
    }

    /// Algolia does all of a call, or nothing.
    #[test]
    fn what_an_api_cannot_say_of_a_member_it_says_of_the_call() {
        let body = br#"{"requests": [{"action": "addObject", "body": {"objectID": "a"}}]}"#;
        for (behaviour, status) in
            [(Behaviour { fail: all(), ..kind() }, 400), (Behaviour { retry: all(), ..kind() }, 429), (kind(), 200)]
        {
            let mut ledger = Ledger::new(behaviour, Shape::of_preset("algolia").unwrap(), false);
            assert_eq!(take(&mut ledger, body, NOW).reply.status, status);
            let Counts { done, refused, busy, .. } = *ledger.counts();
            assert_eq!(
                (done, refused, busy),
                (u64::from(status == 200), u64::from(status == 400), u64::from(status == 429))
            );
            // It knows no keys.
            assert_eq!((take(&mut ledger, body, NOW).reply.status, ledger.counts().repeated), (status, 0));
        }
    }
}
