//! A fan-out of a run, drawn from the seed.

use std::time::Duration;

use fanfold::ids::ItemId;
use fanfold::limits::THEN_RESULTS_MAX;
use fanfold::policy::Span;
use fanfold::store::fanouts::{IdleLimit, NotifyOn, Then, Tolerance};
use serde_json::json;

use super::KindPlan;
use crate::dice::Dice;
use crate::webhooks::RECEIVERS;

/// When a fan-out is sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seal {
    /// With its opening.
    AtOnce,
    /// After its items were added, before any work on them.
    Early,
    /// Some time while its items are worked on.
    Meanwhile,
    /// After everything else.
    Late,
    /// Never.
    Never,
}

/// A fan-out and what becomes of its items.
#[derive(Clone, Debug)]
pub(crate) struct FanoutPlan {
    pub(crate) name: String,
    pub(crate) start: Duration,
    pub(crate) items: u32,
    /// Whether it is opened with its tasks, one per item.
    pub(crate) brings: bool,
    pub(crate) adds: Vec<u32>,
    pub(crate) seal: Seal,
    pub(crate) notify: bool,
    /// The webhook that gets the notices; otherwise the stack's own queue does.
    pub(crate) webhook: Option<&'static str>,
    /// The ends and shares that are reported, if not each end.
    pub(crate) notify_on: NotifyOn,
    /// Share of items that users ack themselves, in ten-thousandths.
    pub(crate) own: u32,
    /// Share of these that failed.
    pub(crate) own_failed: u32,
    /// Items that no worker ever has.
    pub(crate) left: usize,
    /// Pause between two requests at most.
    pub(crate) pace: Duration,
    /// Items in one request at most.
    pub(crate) chunk: usize,
    /// Pause before the last request.
    pub(crate) straggles: Duration,
    /// For how long nothing may happen to it, if its user says so.
    pub(crate) idle_limit: Option<IdleLimit>,
    /// How many items may fail before it fails itself.
    pub(crate) tolerated: Option<Tolerance>,
    /// How long after it was opened a user cancels it, if one does.
    pub(crate) cancel: Option<Duration>,
    /// Fan-outs that are opened under items of it, and the item that its own end acks.
    pub(crate) children: Vec<FanoutPlan>,
    pub(crate) parent: Option<ItemId>,
    /// The task that is registered when it ends.
    pub(crate) then: Option<Then>,
}

impl FanoutPlan {
    pub(super) fn draw(dice: &Dice, n: usize, busy: Duration) -> Self {
        let huge = dice.chance(200);
        let seal = dice.pick(&[Seal::AtOnce, Seal::AtOnce, Seal::Early, Seal::Meanwhile, Seal::Late, Seal::Late]);
        let at_once = seal == Seal::AtOnce;
        let few = 1 + dice.below(12) as u32;
        let items = match (at_once, huge) {
            (true, true) => 7_170,
            (true, false) => few.saturating_sub(u32::from(dice.chance(500))),
            (false, _) => dice.pick(&[0, 0, few]),
        };
        let adds = if at_once { 0 } else { dice.below(4) };
        let adds = (0..adds).map(|_| if huge { 7_169 } else { 1 + dice.below(8) as u32 }).collect();
        // One that straggles is quick before, so that its last request comes while faults last.
        let straggles = dice.chance(4_000);
        let pause = busy.as_millis() as u64 / if straggles { 100 } else { 12 };
        Self {
            name: format!("fanout{n}"),
            start: dice.millis(0, busy.as_millis() as u64 / if straggles { 10 } else { 2 }),
            items,
            brings: at_once && !huge && items > 0 && dice.chance(4_500),
            adds,
            seal: if dice.chance(500) && !at_once { Seal::Never } else { seal },
            notify: dice.chance(8_000),
            webhook: dice.pick(&[None, Some(RECEIVERS[0]), Some(RECEIVERS[1])]),
            notify_on: NotifyOn::default(),
            own: if huge { 10_000 } else { dice.pick(&[0, 0, 5_000, 10_000]) },
            own_failed: dice.pick(&[0, 1_000, 5_000]),
            left: if dice.chance(600) { 1 } else { 0 },
            pace: dice.skewed(Duration::from_millis(50), Duration::from_millis(pause.max(50))),
            chunk: if huge { 2_000 } else { 1 + dice.below(8) },
            straggles: if straggles { dice.skewed(Duration::from_secs(15), busy / 2) } else { Duration::ZERO },
            idle_limit: dice.chance(3_000).then(|| {
                let limit = || Some(Span(dice.skewed(Duration::from_secs(600), busy.max(Duration::from_secs(1_200)))));
                IdleLimit { open: limit(), sealed: limit() }
            }),
            tolerated: None,
            cancel: dice.chance(2_500).then(|| dice.skewed(Duration::from_millis(1), busy)),
            children: Vec::new(),
            parent: None,
            then: None,
        }
    }

    /// Draws what follows from its end, and fan-outs under items of it, so many levels deep.
    pub(super) fn lead_on(&mut self, dice: &Dice, kinds: &[KindPlan], busy: Duration, levels: usize) {
        if dice.chance(3_000) {
            let kind = &kinds[dice.below(kinds.len())].versions[0].1.kind;
            let key = format!("k{}", dice.below(40));
            let content = json!({"t": format!("t{}", dice.below(2)), "k": key, "n": 1_000});
            let results = self.items as usize <= THEN_RESULTS_MAX && dice.chance(6_000);
            self.then = Some(Then { results, ..Then::new(kind, content) });
        }
        let children = if levels > 0 && !self.brings && dice.chance(3_500) { 1 + dice.below(2) } else { 0 };
        for n in 0..children {
            let mut child = Self::draw(dice, n, busy);
            child.name = format!("{}-{}", self.name, child.name);
            child.start = dice.skewed(Duration::from_millis(1), busy / 4);
            child.tolerated = dice.chance(5_000).then(|| Tolerance::Count(dice.pick(&[0, 0, 1])));
            child.lead_on(dice, kinds, busy, levels - 1);
            self.children.push(child);
        }
    }
}
