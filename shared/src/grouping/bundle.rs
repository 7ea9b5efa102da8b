//! Bundles: tasks of one lane that were registered together wait, and are claimed, as one record.

use uuid::Uuid;

use crate::bits::Bits;
use crate::clock::Timestamp;
use crate::grouping::{Loads, Rank};
use crate::ids::TaskId;
use crate::lane::Lane;
use crate::masks::Masks;
use crate::members::Members;
use crate::policy::HeadStart;

/// How far a bundle has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BundleState {
    /// Its tasks are being stored; no batch may claim them yet.
    Filling,
    /// Tasks of it wait.
    Waiting,
    /// No task of it waits any more.
    Taken,
    /// The worker that stored its tasks took too long. Each of them is made a task that waits on its own.
    Dead,
}

impl BundleState {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [Self::Filling, Self::Waiting, Self::Taken, Self::Dead];

    /// The state as it is stored.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Filling => "filling",
            Self::Waiting => "waiting",
            Self::Taken => "taken",
            Self::Dead => "dead",
        }
    }

    /// Reads what [`Self::as_str`] gives.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// Slots that are claimed for it were cancelled: no batch has this id.
pub(crate) const NO_BATCH: Uuid = Uuid::nil();

/// A bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    /// Its id.
    pub id: Uuid,
    /// The lane of all its tasks.
    pub lane: Lane,
    /// How far it has come.
    pub state: BundleState,
    /// Its tasks; slots are positions in this list. While it fills, and when it is dead, some may not be stored, or belong to
    /// other bundles.
    pub members: Members,
    /// What each slot takes of a batch.
    pub loads: Loads,
    /// Slots that wait.
    pub free: Bits,
    /// Slots that batches have claimed, and those that were cancelled.
    pub claims: Masks,
    /// Until when its tasks are kept, if that was postponed.
    pub kept_until: Option<Timestamp>,
    /// When it was begun.
    pub created_at: Timestamp,
    /// The head start that all its tasks have in the order of their lane.
    pub head_start: HeadStart,
}

/// The result of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// There is nothing to write: the batch has these slots, perhaps none.
    Stands(Bits),
    /// A write on condition that the bundle is as it was read.
    Takes {
        /// What the batch has then.
        won: Bits,
        /// The bundle then.
        after: Box<Bundle>,
    },
}

impl Bundle {
    /// A bundle that is to be filled with these tasks; `loads`: what each slot takes of a batch.
    #[must_use]
    pub fn filling(id: Uuid, lane: Lane, (members, loads): (Members, Loads), now: Timestamp) -> Self {
        Self {
            id,
            lane,
            state: BundleState::Filling,
            members,
            loads,
            free: Bits::default(),
            claims: Masks::default(),
            kept_until: None,
            created_at: now,
            head_start: HeadStart::NONE,
        }
    }

    /// The same, with a head start.
    #[must_use]
    pub fn ahead(self, head_start: HeadStart) -> Self {
        Self { head_start, ..self }
    }

    /// Its place in the order of its lane.
    #[must_use]
    pub fn rank(&self) -> Rank {
        Rank::new(self.created_at, self.head_start)
    }

    /// The tasks at these slots.
    pub fn tasks(&self, slots: &Bits) -> impl Iterator<Item = TaskId> {
        slots.iter().filter_map(|slot| self.members.ids().get(slot)).copied()
    }

    /// The same bundle, opened: of its tasks, those at these slots were stored for it.
    #[must_use]
    pub fn opened(&self, stored: Bits) -> Self {
        let state = if stored.is_zero() { BundleState::Taken } else { BundleState::Waiting };
        Self { state, free: stored, ..self.clone() }
    }

    /// Whether a slot waits.
    #[must_use]
    pub fn waits(&self, slot: usize) -> bool {
        self.state == BundleState::Waiting && self.free.get(slot)
    }

    /// How many of its tasks wait.
    #[must_use]
    pub fn waiting(&self) -> u16 {
        let free = if self.state == BundleState::Waiting { self.free.count() } else { 0 };
        u16::try_from(free).unwrap_or(u16::MAX)
    }

    /// The slots whose tasks were cancelled.
    #[must_use]
    pub fn cancelled(&self) -> Bits {
        self.claims.get(NO_BATCH).cloned().unwrap_or_default()
    }

    /// Cancels tasks, if they wait: their slots are claimed for no batch. None: there is nothing to write.
    #[must_use]
    pub(crate) fn cancel(&self, wanted: &Bits) -> Option<Self> {
        let won = self.free.and(wanted);
        (self.state == BundleState::Waiting && !won.is_zero()).then(|| self.taken(NO_BATCH, &won))
    }

    /// The bundle once these slots are claimed.
    fn taken(&self, batch: Uuid, won: &Bits) -> Self {
        let (free, mut claims) = (self.free.minus(won), self.claims.clone());
        claims.add(batch, won);
        let state = if free.is_zero() { BundleState::Taken } else { BundleState::Waiting };
        Self { state, free, claims, ..self.clone() }
    }

    /// Claims slots for a batch. A batch that has claimed before has what it got then, and no more.
    #[must_use]
    pub(crate) fn claim(&self, batch: Uuid, wanted: &Bits) -> Claim {
        if let Some(has) = self.claims.get(batch) {
            return Claim::Stands(has.clone());
        }
        let won = self.free.and(wanted);
        if self.state != BundleState::Waiting || won.is_zero() {
            return Claim::Stands(Bits::default());
        }
        let after = Box::new(self.taken(batch, &won));
        Claim::Takes { won, after }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::lane;
    use proptest::prelude::*;

    const BATCH: Uuid = Uuid::from_u128(7);
    const OTHER: Uuid = Uuid::from_u128(8);

    fn tasks(number: usize) -> Members {
        (0..number).map(|id| TaskId::Single(Uuid::from_u128(id as u128))).collect()
    }

    fn bundle(size: usize) -> Bundle {
        let bundle = Bundle::filling(Uuid::from_u128(1), lane(), (tasks(size), Loads::default()), Timestamp(0));
        bundle.opened(Bits::ones(size))
    }

    /// The bundle after a claim, and what the batch got.
    fn claimed(bundle: &Bundle, batch: Uuid, wanted: &Bits) -> (Bundle, Bits) {
        match bundle.claim(batch, wanted) {
            Claim::Stands(has) => (bundle.clone(), has),
            Claim::Takes { won, after } => (*after, won),
        }
    }

    #[test]
    fn a_batch_claims_what_is_free_once() {
        let (after, won) = claimed(&bundle(10), BATCH, &Bits::ones(4));
        assert_eq!((won.count(), after.waiting()), (4, 6));
        // The same claim again, and a later one that wants more.
        assert_eq!(after.claim(BATCH, &Bits::ones(4)), Claim::Stands(won.clone()));
        assert_eq!(after.claim(BATCH, &Bits::ones(10)), Claim::Stands(won));
        let (after, won) = claimed(&after, OTHER, &Bits::ones(10));
        assert_eq!((won.iter().collect::<Vec<_>>(), after.waiting()), ((4..10).collect(), 0));
        assert_eq!(after.state, BundleState::Taken);
        assert_eq!(
            [0, 3, 4, 9].map(|slot| after.claims.holder(slot)),
            [Some(BATCH), Some(BATCH), Some(OTHER), Some(OTHER)]
        );
    }

    #[test]
    fn only_what_waits_can_be_claimed() {
        for state in [BundleState::Filling, BundleState::Taken, BundleState::Dead] {
            let bundle = Bundle { state, ..bundle(3) };
            assert_eq!(bundle.claim(BATCH, &Bits::ones(3)), Claim::Stands(Bits::default()), "{state:?}");
            assert_eq!((bundle.waiting(), bundle.waits(0)), (0, false));
        }
    }

    #[test]
    fn states_are_read_as_they_are_stored() {
        for state in BundleState::ALL {
            assert_eq!(BundleState::parse(state.as_str()), Some(state));
        }
        assert_eq!(BundleState::parse("created"), None);
    }

    #[test]
    fn what_is_cancelled_is_claimed_for_no_batch() {
        let waits = bundle(4);
        let slots = |slots: &[usize]| slots.iter().copied().collect::<Bits>();
        let (after, _) = claimed(&waits, Uuid::from_u128(1), &slots(&[0]));
        let after = after.cancel(&slots(&[0, 2])).unwrap();
        assert_eq!((after.cancelled(), after.waiting()), (slots(&[2]), 2));
        assert_eq!(after.cancel(&slots(&[0, 2])), None);
        let (after, won) = claimed(&after, Uuid::from_u128(2), &Bits::ones(4));
        assert_eq!(won, slots(&[1, 3]));
        assert_eq!((after.state, after.cancel(&Bits::ones(4))), (BundleState::Taken, None));
        let rest = waits.cancel(&slots(&[1])).and_then(|after| after.cancel(&Bits::ones(4))).unwrap();
        assert_eq!((rest.cancelled(), rest.state), (Bits::ones(4), BundleState::Taken));
        for state in [BundleState::Filling, BundleState::Dead] {
            assert_eq!(Bundle { state, ..waits.clone() }.cancel(&Bits::ones(4)), None);
        }
    }

    proptest! {
        #[test]
        fn every_slot_goes_to_one_batch_whatever_they_want(
            size in 1_usize..80,
            wants in prop::collection::vec((0_u128..6, prop::collection::btree_set(0_usize..80, 0..40)), 0..20),
        ) {
            let mut bundle = bundle(size);
            let mut owners = std::collections::BTreeMap::new();
            for (batch, wanted) in wants {
                let (batch, wanted) = (Uuid::from_u128(batch), wanted.into_iter().collect::<Bits>());
                let (after, won) = claimed(&bundle, batch, &wanted);
                for slot in won.iter() {
                    prop_assert!(slot < size);
                    prop_assert_eq!(*owners.entry(slot).or_insert(batch), batch);
                }
                prop_assert_eq!(usize::from(after.waiting()) + owners.len(), size);
                bundle = after;
            }
        }
    }
}
