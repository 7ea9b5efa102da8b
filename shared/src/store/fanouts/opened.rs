//! The index of fan-outs by when they were opened, partitioned by state: unfinished ones are found without reading those
//! that ended, and those that were cut short without reading those that completed.

use aws_sdk_dynamodb::types::AttributeValue;
use uuid::Uuid;

use super::list::IndexRange;
use super::{Fanout, FanoutState, IdleLimit, Listing};
use crate::clock::Timestamp;
use crate::limits::FEW_SHARDS;
use crate::store::shards::{few_of, nth_of};

/// The index, which is named after its sort key, and its partition key. Two writes of a fan-out cost one or two units more: the
/// one that opens it, and the one that decides its end.
pub(super) const OPENED: &str = "opened";
pub(super) const STANDS: &str = "stands";

/// Bytes of a sort key: the time, the id.
pub(super) const OPENED_BYTES: usize = 8 + 16;

/// How a fan-out stands in this index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IndexState {
    /// Its end is not decided, and no sweep has looked at it. Its sort key shows when one looks first: after the usual limit.
    /// Most have ended by then, and never are in the index of watched ones.
    New,
    /// Its end is not decided, and the index of watched ones shows when a sweep looks next.
    Watched,
    /// It is complete.
    Completed,
    /// It was cut short: it has ended, or some of its items are left.
    Cut,
}

impl IndexState {
    const UNFINISHED: [Self; 2] = [Self::New, Self::Watched];

    pub(super) fn of(fanout: &Fanout) -> Self {
        match fanout.state {
            FanoutState::Completed => Self::Completed,
            state if state.cut_short() => Self::Cut,
            _ if fanout.look_at == Some(IdleLimit::default().first_look(fanout.created_at)) => Self::New,
            _ => Self::Watched,
        }
    }

    /// The states in the index of fan-outs in this state.
    fn in_state(state: FanoutState) -> &'static [Self] {
        match state {
            FanoutState::Open | FanoutState::Sealed => &Self::UNFINISHED,
            FanoutState::Completed => &[Self::Completed],
            FanoutState::Cancelled | FanoutState::Failed | FanoutState::Expired => &[Self::Cut],
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Watched => "watched",
            Self::Completed => "completed",
            Self::Cut => "cut",
        }
    }

    /// The partition key of a fan-out in this state.
    pub(super) fn key(self, id: Uuid) -> AttributeValue {
        few_of(self.name(), id)
    }

    /// The n-th of the [`FEW_SHARDS`] partition keys of those that stand so.
    pub(super) fn nth(self, shard: u64) -> AttributeValue {
        nth_of(self.name(), shard)
    }
}

/// New fan-outs that are due for a look by now have a sort key below this one.
pub(super) fn looked_at_by(now: Timestamp) -> Vec<u8> {
    from(after(now.minus(IdleLimit::default().least())))
}

/// The sort key of a fan-out.
pub(super) fn sort_key(created_at: Timestamp, id: Uuid) -> Vec<u8> {
    [created_at.0.to_be_bytes().as_slice(), id.as_bytes()].concat()
}

/// Fan-outs opened then or later have sort keys above this one, earlier ones below it.
fn from(opened: Timestamp) -> Vec<u8> {
    opened.0.to_be_bytes().to_vec()
}

fn after(moment: Timestamp) -> Timestamp {
    Timestamp(moment.0.saturating_add(1))
}

/// The part of the index for a list of all fan-outs, or of those in some states.
pub(super) fn index_range(listing: &Listing) -> IndexRange {
    let asked = if listing.states.is_empty() { &FanoutState::ALL } else { listing.states.as_slice() };
    let mut stand: Vec<IndexState> = Vec::new();
    for state in asked.iter().flat_map(|state| IndexState::in_state(*state)) {
        if !stand.contains(state) {
            stand.push(*state);
        }
    }
    let shards = stand.into_iter().flat_map(|state| (0..FEW_SHARDS).map(move |shard| state.nth(shard)));
    IndexRange {
        index: OPENED,
        key: STANDS,
        partitions: shards.collect(),
        low: from(listing.opened_after.map_or(Timestamp(0), after)),
        high: from(listing.opened_before.unwrap_or(Timestamp(u64::MAX))),
        lengths: OPENED_BYTES..=OPENED_BYTES,
        backward: !listing.oldest_first,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::limits::IDLE_OPEN;

    #[test]
    fn a_bound_is_between_those_opened_before_and_then() {
        let (earlier, then) = (Timestamp(1_795_244_646_753), Timestamp(1_795_244_646_754));
        assert!(sort_key(earlier, Uuid::max()) < from(then));
        assert!(from(then) < sort_key(then, Uuid::nil()));
        assert_eq!(sort_key(then, Uuid::nil()).len(), OPENED_BYTES);
    }

    #[test]
    fn a_new_one_is_looked_at_when_the_usual_limit_is_over() {
        let opened = Timestamp(1_795_244_646_754);
        let looked_at = |after: Duration| sort_key(opened, Uuid::nil()) < looked_at_by(opened.plus(after));
        assert!(looked_at(IDLE_OPEN));
        assert!(!looked_at(IDLE_OPEN - Duration::from_millis(1)));
        assert_eq!(IdleLimit::default().first_look(opened), opened.plus(IDLE_OPEN));
    }

    #[test]
    fn every_state_stands_somewhere() {
        let all = Listing { states: Vec::new(), ..Listing::default() };
        let each = Listing { states: FanoutState::ALL.to_vec(), ..Listing::default() };
        assert_eq!(index_range(&all).partitions, index_range(&each).partitions);
        assert_eq!(index_range(&all).partitions.len() as u64, 4 * FEW_SHARDS);
        let unfinished = Listing { states: vec![FanoutState::Sealed, FanoutState::Open], ..Listing::default() };
        assert_eq!(index_range(&unfinished).partitions.len() as u64, 2 * FEW_SHARDS);
    }
}
