use proptest::prelude::*;

use super::*;
use crate::grouping::any_parts;
use crate::ids::{ItemId, TaskId};
use crate::pacing::Turn;
use crate::results::tests::any_results;
use crate::store::notices::any_notice;
use crate::testing::{any_bits, any_id, any_time};

/// Any batch whose calls are answered at once.
fn any_answered_batch() -> impl Strategy<Value = Batch> {
    let items = (any_id(), any_id(), prop::collection::btree_set(0_u16..7_168, 0..20));
    let texts = || prop::collection::btree_map(".{0,9}", any_bits(), 0..4);
    (
        (any_id(), "[a-z]{1,9}:(0|[1-9][0-9]?):[a-zA-Z:]{0,9}", any_status(), items),
        any::<[u32; 4]>(),
        prop::array::uniform7(prop::option::of(any_time())),
        prop::array::uniform5(any_bits()),
        (texts(), texts(), any_results(), prop::option::of(".{0,9}"), any_notice()),
        (prop::array::uniform2(any_time()), any_turns(), any::<u64>(), any_parts()),
    )
        .prop_map(|(named, counts, times, slots, said, (dates, turns, weight, parts))| {
            let (id, lane, status, (fanout, group, items)) = named;
            let [attempts, ended, lost, refused] = counts;
            let [refused_since, begun_at, lease_until, retry_at, woken_at, held_at, kept_at] = times;
            let [succeeded, failed, dropped, silent, freed] = slots;
            let ((errors, codes, results, last_error, notice), [created_at, updated_at]) = (said, dates);
            let members = items.into_iter().map(|index| TaskId::Item(ItemId { fanout, group, index }));
            let members = Members::new(members);
            let (errors, codes) = (errors.into_iter().collect(), codes.into_iter().collect());
            Batch {
                status,
                bundles: [(group, Bits::ones(ended as usize % 9 + 1))].into_iter().collect(),
                attempts,
                ended,
                lost,
                refused,
                refused_since,
                begun_at,
                lease_until,
                retry_at,
                turns,
                weight: Weight(weight),
                woken_at,
                held_at,
                kept_at,
                parts,
                succeeded,
                failed,
                dropped,
                silent,
                freed,
                errors,
                codes,
                results,
                last_error,
                notice,
                updated_at,
                ..Batch::intended(id, lane.parse().unwrap(), members, created_at)
            }
        })
}

/// Any batch, which may be answered later.
fn any_batch() -> impl Strategy<Value = Batch> {
    let secret = prop::option::of(any_id().prop_map(TokenSecret::new));
    let ids = prop::array::uniform2(prop::option::of(any_id()));
    let later = (prop::option::of(any_later()), any_bits(), prop::option::of(any_time()), secret, ids);
    (any_answered_batch(), later).prop_map(|(batch, (later, again, again_at, secret, [worker, dev_session]))| Batch {
        worker,
        later,
        again,
        again_at,
        secret,
        dev_session,
        ..batch
    })
}

fn any_status() -> impl Strategy<Value = BatchStatus> {
    use BatchStatus::{Done, Formed, Grouping, InProgress};
    prop::sample::select(vec![Grouping, Formed, InProgress, Done])
}

fn any_later() -> impl Strategy<Value = Later> {
    let poll = prop::option::of(("https://[a-z]{1,9}", any_time()).prop_map(|(url, at)| Poll { url, at }));
    (any_time(), any_bits(), poll).prop_map(|(until, asked, poll)| Later { until, asked, poll })
}

fn any_turns() -> impl Strategy<Value = Turns> {
    let turn = || prop::option::of((any_time(), "[a-z]{1,5} [0-9]{1,5}").prop_map(|(at, rate)| Turn { at, rate }));
    (turn(), turn()).prop_map(|(lane, kind)| Turns { lane, kind })
}

proptest! {
    #[test]
    fn what_is_written_is_read(batch in any_batch()) {
        prop_assert_eq!(Batch::decode(&batch.encode(Retention::default())).unwrap(), batch);
    }
}
