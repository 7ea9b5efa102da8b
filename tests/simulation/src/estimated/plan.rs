//! What the users of an estimated fan-out do. All of it follows from the seed.

use std::time::Duration;

use fanfold::policy::Span;
use fanfold::store::fanouts::{IdleLimit, Tolerance};

use crate::dice::Dice;
use crate::webhooks::RECEIVERS;

/// An estimated fan-out, and what is counted of it.
#[derive(Clone, Debug)]
pub(crate) struct EstimatedPlan {
    pub(crate) name: String,
    pub(crate) start: Duration,
    /// What it begins with, and whether it is sealed then.
    pub(crate) items: u32,
    pub(crate) sealed_at_once: bool,
    /// How long after it was opened it is sealed otherwise, if it is.
    pub(crate) seal: Option<Duration>,
    /// Requests: what each adds, and counts as succeeded and as failed.
    pub(crate) counts: Vec<[u32; 3]>,
    /// Share of them that goes by messages, in ten-thousandths.
    pub(crate) by_queue: u32,
    /// How many count at once, and their pauses between two requests at most.
    pub(crate) workers: usize,
    pub(crate) pace: Duration,
    pub(crate) notify: bool,
    pub(crate) webhook: Option<&'static str>,
    pub(crate) tolerated: Option<Tolerance>,
    pub(crate) idle_limit: Option<IdleLimit>,
    pub(crate) cancel: Option<Duration>,
}

impl EstimatedPlan {
    /// Those of a run: most have none.
    pub(crate) fn draw_all(dice: &Dice, busy: Duration) -> Vec<Self> {
        let few = if dice.chance(4_000) { 1 + dice.below(3) } else { 0 };
        (0..few).map(|n| Self::draw(dice, n, busy)).collect()
    }

    fn draw(dice: &Dice, n: usize, busy: Duration) -> Self {
        let sealed_at_once = dice.chance(4_000);
        let items = dice.pick(&[0, 1, 2, 6]) + u32::from(sealed_at_once);
        let mut counts: Vec<[u32; 3]> = (0..dice.below(4)).map(|_| [1 + dice.below(3) as u32, 0, 0]).collect();
        let mut left = items + counts.iter().map(|[add, ..]| add).sum::<u32>();
        while left > 0 {
            let done = (1 + dice.below(3) as u32).min(left);
            let failed = if dice.chance(2_000) { 1 } else { 0 };
            // Some find more to do by what they do.
            let found = if dice.chance(1_500) { 1 } else { 0 };
            counts.push([found, done - failed, failed]);
            left = left - done + found;
        }
        // Counted once too often, or not at all.
        if dice.chance(1_500) {
            counts.push([0, 1, 0]);
        } else if dice.chance(1_000) {
            counts.pop();
        }
        dice.shuffle(&mut counts);
        // Most are through within the time in which things fail; some count all at once.
        let pause = dice.skewed(Duration::from_millis(20), busy / 8);
        let limit = || Some(Span(dice.skewed(Duration::from_secs(600), busy.max(Duration::from_secs(1_200)))));
        Self {
            name: format!("estimated{n}"),
            start: dice.millis(0, busy.as_millis() as u64 / 2),
            items,
            sealed_at_once,
            seal: (!sealed_at_once && dice.chance(9_000)).then(|| dice.skewed(Duration::from_millis(1), pause * 4)),
            workers: 1 + dice.below(5),
            by_queue: dice.pick(&[0, 0, 5_000, 10_000]),
            counts,
            pace: pause,
            notify: dice.chance(8_000),
            webhook: dice.pick(&[None, None, Some(RECEIVERS[0]), Some(RECEIVERS[1])]),
            tolerated: dice.chance(3_000).then(|| {
                let share = dice.chance(3_000);
                if share { Tolerance::Percentage(2_500) } else { Tolerance::Count(dice.pick(&[0, 0, 1, 2])) }
            }),
            idle_limit: dice.chance(2_000).then(|| IdleLimit { open: limit(), sealed: limit() }),
            cancel: dice.chance(2_000).then(|| dice.skewed(Duration::from_millis(1), busy)),
        }
    }
}
