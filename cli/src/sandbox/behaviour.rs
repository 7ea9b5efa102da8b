//! How the sandbox behaves: what becomes of a call and of each member. All of it is drawn from the seed and the request.

use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

use fanfold::share::share;
use fanfold_batch_api::MemberOutcome;

use super::percent::Percent;

/// How long answers take, from the first to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Latency(Duration, Duration);

impl FromStr for Latency {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |_| "a time such as `20ms`, or a range such as `20ms..200ms` is expected".to_owned();
        let time = |text: &str| humantime::parse_duration(text).map_err(wrong);
        match text.split_once("..") {
            None => time(text).map(|time| Self(time, time)),
            Some((from, to)) => match (time(from)?, time(to)?) {
                (from, to) if from <= to => Ok(Self(from, to)),
                (from, to) => Err(format!("{from:?} is longer than {to:?}: the shorter time comes first")),
            },
        }
    }
}

/// How the sandbox behaves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Behaviour {
    /// How long answers take.
    pub(super) latency: Latency,
    /// Calls per second.
    pub(super) rate: Option<NonZeroU32>,
    /// Members that fail for good.
    pub(super) fail: Percent,
    /// Members that are to be sent again.
    pub(super) retry: Percent,
    /// Members that spoil a call.
    pub(super) poison: Percent,
    /// Calls that are answered with 500.
    pub(super) errors: Percent,
    /// Calls that are done and not answered.
    pub(super) lose: Percent,
    /// Calls that are done and answered late.
    pub(super) slow: Percent,
    /// How late that is.
    pub(super) slow_for: Duration,
    /// Calls that are done and answered later, by an address.
    pub(super) later: Percent,
    /// How much later that is.
    pub(super) later_for: Duration,
    /// Whether a member that does not succeed keeps its whole call from being done.
    pub(super) strict: bool,
    /// What everything is drawn from.
    pub(super) seed: u64,
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallFate {
    /// It is done, and answered after this time.
    Answered(Duration),
    /// It is done, and not answered.
    Lost,
    /// It is not done, and answered with 500.
    Error,
}

impl Behaviour {
    /// What becomes of a call that comes under its key for this time, from 1.
    pub(super) fn call(&self, key: &str, time: u32) -> CallFate {
        let to = format!("{key}/{time}");
        if self.happens("errors", &to, self.errors) {
            CallFate::Error
        } else if self.happens("lose", &to, self.lose) {
            CallFate::Lost
        } else if self.happens("slow", &to, self.slow) {
            CallFate::Answered(self.slow_for)
        } else {
            let Latency(from, until) = self.latency;
            CallFate::Answered(from + (until - from) * self.draw("latency", &to) / Percent::WHOLE)
        }
    }

    /// When the answer to a call under this key is there, if it comes later than the call's.
    pub(super) fn answers_later(&self, key: &str) -> Option<Duration> {
        self.happens("later", key, self.later).then_some(self.later_for)
    }

    /// What becomes of a member that comes for this time, from 1.
    pub(super) fn member(&self, id: &str, content: &str, time: u32) -> MemberOutcome {
        if self.happens("fail", content, self.fail) {
            MemberOutcome::Failed
        } else if self.happens("retry", &format!("{id}/{time}"), self.retry) {
            MemberOutcome::Retry
        } else {
            MemberOutcome::Succeeded
        }
    }

    /// Whether this content spoils every call.
    pub(super) fn spoils(&self, content: &str) -> bool {
        self.happens("poison", content, self.poison)
    }

    fn happens(&self, what: &str, to: &str, percent: Percent) -> bool {
        percent.has(self.draw(what, to))
    }

    fn draw(&self, what: &str, to: &str) -> u32 {
        share(&format!("{}/{what}/{to}", self.seed), Percent::WHOLE)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(super) mod tests {
    use super::*;

    /// One that does everything at once.
    pub(in crate::sandbox) fn kind() -> Behaviour {
        let none = Percent::default();
        Behaviour {
            latency: "0ms".parse().unwrap(),
            rate: None,
            fail: none,
            retry: none,
            poison: none,
            errors: none,
            lose: none,
            slow: none,
            slow_for: Duration::from_secs(30),
            later: none,
            later_for: Duration::from_secs(10),
            strict: false,
            seed: 1,
        }
    }

    #[test]
    fn a_latency_is_a_time_or_a_range() {
        let millis = Duration::from_millis;
        assert_eq!("20ms".parse(), Ok(Latency(millis(20), millis(20))));
        assert_eq!("20ms..1s".parse(), Ok(Latency(millis(20), millis(1_000))));
        assert!("1s..20ms".parse::<Latency>().unwrap_err().contains("the shorter time comes first"));
        for text in ["", "20", "..", "20ms..", "20ms...1s", "fast"] {
            assert!(text.parse::<Latency>().unwrap_err().contains("`20ms..200ms`"), "{text}");
        }
    }

    #[test]
    fn so_many_percent_of_calls_and_members_are_hit() {
        let percent = |text: &str| text.parse::<Percent>().unwrap();
        let behaviour = Behaviour {
            fail: percent("5%"),
            retry: percent("10%"),
            poison: percent("1%"),
            errors: percent("2%"),
            lose: percent("3%"),
            latency: "10ms..20ms".parse().unwrap(),
            ..kind()
        };
        let count = |hit: &dyn Fn(&str) -> bool| (0..20_000).filter(|n| hit(&n.to_string())).count();
        let fails = count(&|n| behaviour.member(n, n, 1) == MemberOutcome::Failed);
        let retries = count(&|n| behaviour.member(n, n, 1) == MemberOutcome::Retry);
        let spoils = count(&|n| behaviour.spoils(n));
        let errors = count(&|n| behaviour.call(n, 1) == CallFate::Error);
        let lost = count(&|n| behaviour.call(n, 1) == CallFate::Lost);
        for (found, expected) in [(fails, 1_000), (retries, 1_900), (spoils, 200), (errors, 400), (lost, 588)] {
            assert!(found.abs_diff(expected) < expected / 5, "{found}, and not about {expected}");
        }
        for n in 0..1_000 {
            if let CallFate::Answered(latency) = behaviour.call(&n.to_string(), 1) {
                assert!((Duration::from_millis(10)..=Duration::from_millis(20)).contains(&latency), "{latency:?}");
            }
        }
    }

    #[test]
    fn a_repeated_call_is_drawn_anew_and_a_failing_content_stays_so() {
        let half = Behaviour { errors: "50%".parse().unwrap(), fail: "50%".parse().unwrap(), ..kind() };
        assert!((1..20).any(|time| half.call("key", time) == CallFate::Error));
        assert!((1..20).any(|time| half.call("key", time) != CallFate::Error));
        let fates: Vec<_> = (1..20).map(|time| half.member(&time.to_string(), r#"{"n":1}"#, time)).collect();
        assert!(fates.windows(2).all(|two| two[0] == two[1]), "{fates:?}");
    }
}
