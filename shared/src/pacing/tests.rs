//! The rule alone: it lets no span see too much, and uses most of what it may.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn allowance(rate: Value) -> Allowance {
    Allowance::of(&serde_json::from_value(rate).unwrap()).unwrap()
}

fn tasks(tasks: usize) -> Spends {
    Spends { tasks, weight: Weight::default() }
}

/// A bucket as its record is written.
#[derive(Default)]
struct Kept {
    bucket: Bucket,
    given: u128,
}

impl Kept {
    fn write(&mut self, ask: &Ask, full: Micros) -> CallTime {
        self.given += 1;
        let by = Uuid::from_u128(self.given);
        self.bucket =
            Bucket { name: Some(ask.name.clone()), full: Some(full), by: Some(by), ..self.bucket.by_rate_of(ask) };
        self.bucket.given(ask, by).unwrap()
    }

    fn take(&mut self, ask: &Ask) -> Option<CallTime> {
        (self.bucket.verdict(ask) == Verdict::Go).then(|| {
            let full = ask.after(self.bucket.by_rate_of(ask).full);
            self.write(ask, full)
        })
    }

    /// Releases a time, if it is the latest.
    fn release(&mut self, given: &CallTime) {
        if self.bucket.by == Some(given.by) {
            self.bucket = Bucket { full: Some(given.full - given.ask.cost()), by: None, ..self.bucket.clone() };
        }
    }

    /// Replaces a time that was missed by a later one.
    fn again(&mut self, given: &CallTime, ask: &Ask) -> Option<CallTime> {
        self.release(given);
        self.take(ask)
    }

    fn promise(&mut self, ask: &Ask) -> Micros {
        let (turn, promised) = self.bucket.turn(ask);
        let name = Some(ask.name.clone());
        self.bucket = Bucket { name, promised: Some(promised), ..self.bucket.by_rate_of(ask) };
        turn
    }
}

/// What happens to a call that asks for a time.
#[derive(Clone, Copy, Debug)]
struct Asks {
    /// When it asks, in milliseconds after the one before.
    after: u64,
    /// By how much its worker's clock is ahead.
    off: u64,
    tasks: usize,
    /// How late it is made, in hundredths of its grace.
    late: u64,
    has_turn: bool,
    /// 0: it is not made after all; 1: it misses its time.
    fate: u8,
}

fn any_asks(most: usize, spread: u64) -> impl Strategy<Value = Asks> {
    (0_u64..800, 0..=spread, 1..=most, 0_u64..=100, any::<bool>(), 0_u8..8)
        .prop_map(|(after, off, tasks, late, has_turn, fate)| Asks { after, off, tasks, late, has_turn, fate })
}

/// The calls that are made: when, and of how many tasks.
fn made(allowance: &Allowance, asks: &[Asks]) -> Vec<(Micros, usize)> {
    let (mut kept, mut now, mut calls) = (Kept::default(), 1_000_000_u64, Vec::new());
    for asks in asks {
        now += asks.after;
        let clock = Timestamp(now + asks.off);
        let ask = allowance.ask(tasks(asks.tasks), asks.has_turn).at(clock, 0);
        let Some(mut given) = kept.take(&ask) else {
            if !asks.has_turn {
                kept.promise(&ask);
            }
            continue;
        };
        match asks.fate {
            0 => {
                kept.release(&given);
                continue;
            }
            1 => {
                let late = timestamp(given.until).plus(Duration::from_millis(1 + asks.late));
                let Some(later) = kept.again(&given, &given.ask.clone().again(late)) else { continue };
                given = later;
            }
            _ => {}
        }
        calls.push((given.at - asks.off * 1_000 + given.ask.grace * asks.late / 100, asks.tasks));
    }
    calls.sort_unstable();
    calls
}

/// Whether some span saw more than a burst (or one call) plus what the rate allows in that span and `spread`.
fn exceeded(calls: &[(Micros, usize)], burst: u64, tasks_a_second: u64, spread: u64) -> Option<String> {
    for (first, (from, _)) in calls.iter().enumerate() {
        let (mut sum, mut largest) = (0, 0);
        for (to, tasks) in &calls[first..] {
            (sum, largest) = (sum + *tasks as u64, largest.max(*tasks as u64));
            let span = u128::from(to - from) + u128::from(spread) * 1_000;
            let allowed = u128::from(burst.max(largest)) * 1_000_000 + u128::from(tasks_a_second) * span;
            if u128::from(sum) * 1_000_000 > allowed {
                return Some(format!("{sum} tasks within {span} us"));
            }
        }
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_span_sees_more_than_the_burst_and_what_comes_in_it(
        (rate, burst) in (1_u64..60, 1_u64..40),
        asks in prop::collection::vec(any_asks(50, 0), 1..60),
    ) {
        let allowance = allowance(json!({"tasks": rate, "per": "second", "burst": burst}));
        prop_assert_eq!(exceeded(&made(&allowance, &asks), burst, rate, 0), None);
    }

    /// If clocks differ, a span sees at most what the rate allows in the difference more.
    #[test]
    fn clocks_that_are_apart_cost_what_comes_in_that_time(
        (rate, burst) in (1_u64..60, 1_u64..40),
        asks in prop::collection::vec(any_asks(50, 3_000), 1..60),
    ) {
        let allowance = allowance(json!({"tasks": rate, "per": "second", "burst": burst}));
        prop_assert_eq!(exceeded(&made(&allowance, &asks), burst, rate, 3_000), None);
    }

    /// If there is always work, and workers are some milliseconds late, at least 85 % of a rate is used, however large its
    /// batches are, and also if the times are promised first.
    #[test]
    fn a_rate_is_used(
        rate in 1_u64..3_000, largest in 1_usize..5_000, sizes in prop::collection::vec(any::<prop::sample::Index>(), 9), late in 0_u64..15,
    ) {
        let allowance = allowance(json!({"tasks": rate, "per": "second"}));
        let (mut kept, mut now, mut used, begun) = (Kept::default(), 1_000_000_u64, 0, 1_000_000_u64);
        let mut last = 0;
        for at in 0..400 {
            last = sizes[at % sizes.len()].index(largest) + 1;
            let ask = allowance.ask(tasks(last), true);
            let given = loop {
                let ask = ask.clone().at(Timestamp(now), 0);
                match kept.take(&ask) {
                    Some(given) => break given,
                    None => {
                        let Verdict::Wait(at) = kept.bucket.verdict(&ask) else { panic!("it has its turn") };
                        now = timestamp(at - ask.lead).0;
                    }
                }
            };
            prop_assert!(late * 1_000 <= given.ask.grace);
            used += last as u64;
            // The next batch asks when this one, at best, would have asked. Rounded up, each call would take a millisecond.
            now = now.max(given.at.saturating_sub(given.ask.lead) / 1_000);
        }
        let ready = (used - last as u64) as f64;
        let came = rate as f64 * (now - begun) as f64 / 1_000.0;
        prop_assert!(came < 1.0 || ready >= 0.85 * came, "{ready} of {came}");
    }

    /// Turns come one after the other, as far apart as the calls must be.
    #[test]
    fn turns_come_in_order(sizes in prop::collection::vec(1_usize..20, 2..40)) {
        let allowance = allowance(json!({"tasks": 10, "per": "second", "burst": 5}));
        let (mut kept, mut before) = (Kept::default(), 0);
        for size in sizes {
            let ask = Ask { lead: 0, ..allowance.ask(tasks(size), false) };
            let turn = kept.promise(&ask.at(Timestamp(1_000_000), 0));
            prop_assert!(turn >= before);
            before = turn;
        }
    }
}

#[test]
fn a_burst_goes_at_once_and_then_one_after_the_other() {
    let allowance = allowance(json!({"tasks": 2, "per": "second", "burst": 4}));
    let mut kept = Kept::default();
    let ask = |now, has_turn| allowance.ask(tasks(1), has_turn).at(Timestamp(now), 0);
    let times: Vec<_> = (0..3).map(|_| kept.take(&ask(10_000, false)).unwrap().at).collect();
    assert_eq!(times, [10_150_100; 3]);
    assert_eq!(kept.bucket.verdict(&ask(10_000, false)), Verdict::Queue);
    // The fourth is late by the grace.
    assert_eq!(kept.bucket.verdict(&ask(10_000, true)), Verdict::Wait(10_300_100));
    assert_eq!(kept.take(&ask(10_200, true)).unwrap().at, 10_350_100);
    assert_eq!(kept.bucket.verdict(&ask(10_200, true)), Verdict::Wait(10_800_100));
    assert_eq!(kept.take(&ask(99_000, false)).unwrap().at, 99_150_100);
}

#[test]
fn a_new_batch_does_not_overtake_those_that_wait() {
    let allowance = allowance(json!({"calls": 1, "per": "second", "burst": 1}));
    let mut kept = Kept::default();
    let ask = |now, has_turn| allowance.ask(tasks(9), has_turn).at(Timestamp(now), 0);
    kept.take(&ask(10_000, false)).unwrap();
    let turn = timestamp(kept.promise(&ask(10_100, false)));
    assert!((11_150..11_300).contains(&turn.0), "{turn:?}");
    assert_eq!(kept.bucket.verdict(&ask(turn.0, false)), Verdict::Queue);
    assert!(kept.take(&ask(turn.0, true)).is_some());
    // A promised turn that no batch took delays no other batch after its time.
    kept.promise(&ask(turn.0, false));
    assert!(kept.take(&ask(turn.0 + 5_000, false)).is_some());
}

#[test]
fn what_is_larger_than_a_burst_goes_when_the_bucket_is_full() {
    let allowance = allowance(json!({"weight": 10, "per": "second", "burst": 5}));
    let weighs = |weight, now| {
        let spends = Spends { tasks: 1, weight: Weight::from_whole(weight).unwrap() };
        allowance.ask(spends, true).at(Timestamp(now), 0)
    };
    let mut kept = Kept::default();
    let first = kept.take(&weighs(40, 10_000)).unwrap();
    assert_eq!(timestamp(first.at).0, 10_151);
    let Verdict::Wait(at) = kept.bucket.verdict(&weighs(40, 10_000)) else { panic!("4 s have to come") };
    assert!((14_150..14_400).contains(&timestamp(at).0), "{at}");
    assert!(kept.take(&weighs(40, timestamp(at).0)).is_some());
}

#[test]
fn another_rate_holds_from_the_next_call_on() {
    let slow = allowance(json!({"calls": 1, "per": "hour", "burst": 1}));
    let fast = allowance(json!({"calls": 10, "per": "second", "burst": 1}));
    let mut kept = Kept::default();
    let ask = |allowance: &Allowance| allowance.ask(tasks(1), false).at(Timestamp(10_000_000), 0);
    kept.take(&ask(&slow)).unwrap();
    kept.promise(&ask(&slow));
    let at = kept.take(&ask(&fast)).unwrap().at;
    assert_eq!(
        timestamp(at).0,
        10_000_251,
        "promises are void, and of what was spent a whole burst at most is still to come"
    );
}

#[test]
fn a_rate_that_says_no_burst_has_a_quarter_of_a_second_or_one() {
    let whole = |rate: Value| allowance(rate).ask(tasks(1), false).whole;
    assert_eq!(whole(json!({"tasks": 100, "per": "second"})), 250_000);
    assert_eq!(whole(json!({"tasks": 1, "per": "second"})), 1_000_000);
    assert_eq!(whole(json!({"calls": 60, "per": "hour"})), 60_000_000);
    assert_eq!(whole(json!({"weight": 0.5, "per": "second"})), 250_000);
}
