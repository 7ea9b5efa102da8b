//! Lanes that rest: they are paused, or their kind has no policy. What waits in them is in the tables.

use crate::control::Hold;
use crate::store::batches::Batch;

/// Whether nothing is begun in a lane: it is paused, or its kind has no policy.
#[must_use]
pub fn rests(hold: Hold, has_policy: bool) -> bool {
    hold.paused || !has_policy
}

/// Whether a leader forms its batch although its lane rests: it has written its intent. It may have claimed tasks, which are
/// kept only once the lane's lock names the batch. `intended`: the batch's record, if there is one.
#[must_use]
pub fn forms_at_rest(intended: Option<&Batch>) -> bool {
    intended.is_some()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::members::Members;
    use uuid::Uuid;

    #[test]
    fn a_lane_rests_while_it_is_paused_or_has_no_policy() {
        let paused = Hold { paused: true, ..Hold::default() };
        let draining = Hold { draining: true, ..Hold::default() };
        assert_eq!([paused, draining, Hold::default()].map(|hold| rests(hold, true)), [true, false, false]);
        assert_eq!([paused, draining, Hold::default()].map(|hold| rests(hold, false)), [true; 3]);
    }

    #[test]
    fn only_a_leader_with_an_intent_goes_on() {
        let lane = "parcel:0:NY".parse().unwrap();
        let batch = Batch::intended(Uuid::from_u128(9), lane, Members::default(), Timestamp(5));
        assert!(forms_at_rest(Some(&batch)) && !forms_at_rest(None));
    }
}
