//! How long leaders linger.

use super::*;
use crate::testing::parcels;
use proptest::prelude::*;
use serde_json::json;

const NOW: Timestamp = Timestamp(10_000_000);

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn linger(changes: serde_json::Value) -> Linger {
    Linger::of(&parcels(changes))
}

/// How long a leader waits on if the last task came so many seconds ago.
fn on(linger: Linger, lingered: u64, newest: u64) -> u64 {
    let seen = Seen { members: 7, at_once: false, newest: Some(NOW.minus(seconds(newest))) };
    let wait = linger.on(seconds(lingered), seen, NOW);
    assert_eq!(linger.on(seconds(lingered), Seen { at_once: true, ..seen }, NOW), Duration::ZERO);
    wait.as_secs()
}

#[test]
fn without_more_fields_it_is_the_linger() {
    let plain = linger(json!({"linger": 60}));
    assert_eq!((plain.first(), plain.longest()), (seconds(60), seconds(60)));
    assert_eq!([0, 60, 70].map(|lingered| on(plain, lingered, 1)), [60, 0, 0]);
    assert_eq!(linger(json!({"linger": 0})), Linger::NONE);
}

#[test]
fn nobody_lingers_in_a_lane_that_drains() {
    let policy = parcels(json!({"linger": 3}));
    let draining = Hold { draining: true, ..Hold::default() };
    assert_eq!(
        [Hold::default(), draining].map(|hold| Linger::under(&policy, hold).longest()),
        [seconds(3), seconds(0)]
    );
}

#[test]
fn a_lane_that_was_quiet_waits_no_longer() {
    let quiet = linger(json!({"linger": 60, "quiet": 5}));
    assert_eq!((quiet.first(), quiet.longest()), (seconds(5), seconds(60)));
    assert_eq!([0, 2, 4, 5, 90].map(|newest| on(quiet, 5, newest)), [5, 3, 1, 0, 0]);
    assert_eq!([56, 58, 60, 61].map(|lingered| on(quiet, lingered, 0)), [4, 2, 0, 0], "at the latest after the linger");
    let nobody = Seen { members: 0, at_once: false, newest: None };
    assert_eq!(quiet.on(seconds(5), nobody, NOW), Duration::ZERO, "nothing came that is known");
    let ahead = Seen { newest: Some(NOW.plus(seconds(900))), ..nobody };
    assert_eq!(quiet.on(seconds(5), ahead, NOW), seconds(5), "by a clock that is ahead");
}

/// The longest that a leader may wait before it looks at its lane again, rounded as [`Linger::delay`] does.
fn looks_within(linger: Linger) -> Duration {
    let least = if linger.counts() { linger.looks_less_often(linger.most) } else { Duration::ZERO };
    let longest = linger.first().max(linger.least_wait).max(least).max(linger.between_looks(linger.most));
    let (delay, rest) = linger.delay(longest);
    delay + rest
}

#[test]
fn a_batch_that_is_too_small_waits_on_for_some_time() {
    let few = linger(json!({"linger": 60, "min_batch": 8, "min_batch_wait": 30}));
    assert_eq!((few.first(), few.longest(), looks_within(few)), (seconds(60), seconds(90), seconds(60)));
    assert_eq!([0, 59, 60, 80, 90, 99].map(|lingered| on(few, lingered, 0)), [60, 1, 30, 10, 0, 0]);
    let enough = linger(json!({"linger": 60, "min_batch": 7, "min_batch_wait": 30}));
    assert_eq!([0, 60, 80].map(|lingered| on(enough, lingered, 0)), [60, 0, 0]);
    let elected = NOW.minus(seconds(60));
    assert_eq!([elected, elected.plus(seconds(1))].map(|at| few.over(at, NOW)), [Some(seconds(60)), None]);
    assert_eq!(linger(json!({"linger": 60})).over(Timestamp(0), NOW), None);
    // Without a linger it is only as many as this, or the time.
    let only = linger(json!({"linger": 0, "min_batch": 8, "min_batch_wait": 30}));
    assert_eq!((only.first(), on(only, 0, 0), on(only, 30, 0)), (seconds(0), 30, 0));
    // Below it, it does not matter that the lane is quiet; a leader still looks, ever more rarely.
    let both = linger(json!({"linger": 60, "quiet": 5, "min_batch": 8, "min_batch_wait": 30}));
    assert_eq!([5, 40, 58, 60].map(|lingered| on(both, lingered, 100)), [5, 10, 2, 30]);
    let nobody = Seen { members: 0, at_once: false, newest: None };
    assert_eq!([40, 60].map(|lingered| both.on(seconds(lingered), nobody, NOW)), [seconds(10), Duration::ZERO]);
    assert_eq!(linger(json!({"linger": 0, "min_batch": 1, "min_batch_wait": 30})), Linger::NONE);
}

#[test]
fn a_worker_waits_where_messages_cannot_be_delayed() {
    let millis = Duration::from_millis;
    let moment = linger(json!({"linger": "300ms"}));
    assert_eq!((moment.first(), moment.longest()), (millis(300), millis(300)));
    assert_eq!(moment.delay(moment.first()), (seconds(0), millis(300)));
    let longer = linger(json!({"linger": "2300ms"}));
    assert_eq!(longer.delay(longer.first()), (seconds(2), millis(300)));
    assert_eq!(longer.delay(Duration::from_micros(1_500)), (seconds(0), millis(2)));
    for changes in [json!({"linger": 9, "quiet": "500ms"}), json!({"min_batch": 2, "min_batch_wait": "500ms"})] {
        assert_eq!(linger(changes).delay(millis(1_500)), (seconds(1), millis(500)));
    }
    // Where a policy has whole seconds only, no worker waits.
    let whole = linger(json!({"linger": 9, "quiet": 2, "min_batch": 2, "min_batch_wait": 3}));
    assert_eq!(whole.delay(millis(1_500)), (seconds(2), seconds(0)));
}

#[test]
fn requests_make_leaders_that_wait_for_less_than_an_election() {
    let hasty = |changes| linger(changes).is_hasty();
    assert!(hasty(json!({"linger": 0})) && hasty(json!({"linger": "999ms", "quiet": "5ms"})));
    assert!(!hasty(json!({"linger": 1})) && !hasty(json!({"linger": "1ms", "min_batch": 2, "min_batch_wait": "1ms"})));
}

/// How often a leader looks after its first wait, and for how long it has waited then, if tasks come all the time.
fn looks(linger: Linger, members: usize) -> (usize, Duration) {
    let (mut lingered, mut looks) = (linger.first(), 0);
    loop {
        looks += 1;
        let wait = linger.on(lingered, Seen { members, at_once: false, newest: Some(NOW) }, NOW);
        if wait.is_zero() {
            return (looks, lingered);
        }
        let (delay, rest) = linger.delay(wait);
        assert!(delay + rest <= looks_within(linger));
        lingered += delay + rest;
    }
}

/// However short `quiet` is, however many tasks come, and however few.
#[test]
fn a_leader_looks_some_hundred_times_at_most() {
    for quiet in ["1ms", "50ms", "999ms"] {
        let plain = linger(json!({"linger": "15m", "quiet": quiet}));
        let (most, lingered) = looks(plain, 1);
        assert_eq!(lingered, plain.longest());
        assert!((130..=225).contains(&most), "{quiet}: {most}");
        let counting = linger(json!({"linger": "15m", "quiet": quiet, "min_batch": 2, "min_batch_wait": "1ms"}));
        let (fewer, lingered) = looks(counting, 1);
        assert_eq!(lingered, counting.longest());
        assert!((20..=45).contains(&fewer), "{quiet}: {fewer}");
    }
}

/// Each look is a message, whose time adds to the linger.
#[test]
fn looks_below_a_second_are_some_time_apart() {
    let busy = linger(json!({"linger": "900ms", "quiet": "10ms"}));
    assert_eq!(looks(busy, 1), (10, Duration::from_millis(900)));
    let counting = linger(json!({"linger": "900ms", "quiet": "10ms", "min_batch": 2, "min_batch_wait": "1ms"}));
    assert!(looks(counting, 1).0 <= 11);
    let seconds = linger(json!({"linger": 4, "quiet": 1}));
    assert_eq!(seconds.between_looks(Duration::from_secs(3)), Duration::ZERO);
}

proptest! {
    #[test]
    fn all_waits_together_are_no_longer_than_the_longest(
        unit in prop::sample::select(vec![1_u64, 7, 1_000]),
        (most, quiet, least_wait) in (0_u64..900, prop::option::of(1_u64..900), 0_u64..900),
        looks in prop::collection::vec((0_u64..2_000_000, any::<bool>(), 0_usize..4), 0..2_000),
    ) {
        let time = |units: u64| Duration::from_millis(units * unit);
        let quiet = quiet.filter(|quiet| *quiet < most).map(time);
        let linger = Linger { most: time(most), quiet, least: 3, least_wait: time(least_wait) };
        let mut lingered = linger.first();
        for (ago, ahead, members) in looks {
            let ago = Duration::from_millis(ago);
            let newest = Some(if ahead { NOW.plus(ago) } else { NOW.minus(ago) });
            let wait = linger.on(lingered, Seen { members, at_once: false, newest }, NOW);
            if wait.is_zero() {
                break;
            }
            let (delay, rest) = linger.delay(wait);
            prop_assert!(delay + rest <= looks_within(linger));
            prop_assert!(delay + rest >= wait && delay.subsec_nanos() == 0 && rest < DELAY_MIN);
            lingered += delay + rest;
        }
        prop_assert!(lingered <= linger.longest(), "{:?}", lingered);
    }
}
