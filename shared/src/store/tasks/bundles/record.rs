//! A bundle, and how it is stored.

use uuid::Uuid;

use crate::aws::attributes::{Reader, binary, bits, expiry, item, text, time};
use crate::aws::{Item, StoreError};
use crate::clock::Timestamp;
use crate::grouping::{Bundle, BundleState, Rank};
use crate::masks::Masks;
use crate::members::Members;
use crate::store::tasks::record::{ID, LANE, PENDING, RANK, TTL, decode_loads, decode_rank, encode_loads, encode_rank};

const CLAIMS: &str = "claims";
const FREE: &str = "free";
const KEPT_UNTIL: &str = "kept_until";
const MEMBERS: &str = "members";
const STATE: &str = "state";

/// Attributes that must be unchanged for a bundle to be opened, closed, declared dead or kept.
pub(super) const SAME_STATE: [&str; 2] = [ID, STATE];
/// Attributes that must be unchanged for a bundle to be claimed from.
pub(in crate::store::tasks) const SAME_SLOTS: [&str; 3] = [ID, STATE, FREE];

/// The prefix of the id of a bundle's record.
pub(in crate::store::tasks) const PREFIX: &str = "bundle:";

/// The id of a bundle's record.
pub(in crate::store::tasks) fn record_id(id: Uuid) -> String {
    format!("{PREFIX}{id}")
}

/// The record. Once no task of it waits, it expires at that time.
pub(in crate::store::tasks) fn encode(bundle: &Bundle, expires: Timestamp) -> Item {
    let taken = bundle.state == BundleState::Taken;
    let record = item([
        (ID, Some(text(record_id(bundle.id)))),
        (LANE, Some(text(&bundle.lane))),
        (STATE, Some(text(bundle.state.as_str()))),
        (MEMBERS, Some(binary(&bundle.members.pack()))),
        (FREE, bits(&bundle.free)),
        (CLAIMS, (!bundle.claims.is_empty()).then(|| binary(&bundle.claims.pack()))),
        (KEPT_UNTIL, bundle.kept_until.map(time)),
        (RANK, Some(encode_rank(bundle.rank()))),
        (PENDING, (!taken).then(|| text(&bundle.lane))),
        (TTL, taken.then(|| expiry(expires))),
    ]);
    record.into_iter().chain(encode_loads(&bundle.loads)).collect()
}

/// What a bundle of which no task waits has in any case.
pub(in crate::store::tasks) fn taken(id: Uuid) -> Item {
    item([(ID, Some(text(record_id(id)))), (STATE, Some(text(BundleState::Taken.as_str())))])
}

pub(in crate::store::tasks) fn decode(item: &Item) -> Result<Bundle, StoreError> {
    let reader = Reader::new("bundles", ID, item);
    let id = reader.text(ID)?;
    let state = reader.text(STATE)?;
    let Rank { created_at, head_start } = decode_rank(&reader)?;
    Ok(Bundle {
        id: id
            .strip_prefix(PREFIX)
            .and_then(|id| id.parse().ok())
            .ok_or_else(|| reader.corrupt(ID, format!("is `{id}`")))?,
        lane: reader.parsed(LANE)?,
        state: BundleState::parse(state).ok_or_else(|| reader.corrupt(STATE, format!("is `{state}`")))?,
        members: Members::unpack(reader.bytes(MEMBERS)?).map_err(|error| reader.corrupt(MEMBERS, error))?,
        loads: decode_loads(&reader)?,
        free: reader.bits(FREE)?,
        claims: Masks::unpack(reader.bytes(CLAIMS)?).map_err(|error| reader.corrupt(CLAIMS, error))?,
        kept_until: reader.time(KEPT_UNTIL)?,
        created_at,
        head_start,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::grouping::{any_loads, any_rank};
    use crate::testing::{any_bits, any_id, any_lane, any_task, any_time};

    proptest! {
        #[test]
        fn what_is_written_is_read(
            (id, lane, free, loads) in (any_id(), any_lane(), any_bits(), any_loads()),
            state in prop::sample::select(BundleState::ALL.to_vec()),
            members in prop::collection::vec(any_task(), 0..9),
            claims in prop::collection::vec((any_id(), any_bits()), 0..4),
            kept_until in prop::option::of(any_time()),
            rank in any_rank(),
        ) {
            let (members, claims) = (members.into_iter().collect(), claims.into_iter().collect());
            let Rank { created_at, head_start } = rank;
            let bundle = Bundle { id, lane, state, members, loads, free, claims, kept_until, created_at, head_start };
            prop_assert_eq!(decode(&encode(&bundle, created_at)).unwrap(), bundle);
        }
    }
}
