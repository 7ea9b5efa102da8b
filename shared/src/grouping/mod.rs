//! The rules of lanes and batches, each in one place. No I/O: steps and `sweep` read, ask here, and write.

mod bundle;
mod candidacy;
mod candidates;
mod cut;
mod giving_up;
mod hints;
mod lingering;
mod load;
mod outcome;
mod parts;
mod rank;
mod resting;
mod silence;
mod size;
mod splitting;
mod succession;

pub use self::bundle::{Bundle, BundleState};
pub(crate) use self::bundle::{Claim, NO_BATCH};
pub use self::candidacy::Candidacy;
pub use self::candidates::{Candidates, Rest};
pub use self::cut::cut;
pub use self::giving_up::{gave_up_waiting, waited_in_vain};
pub use self::lingering::{Linger, Seen};
pub(crate) use self::load::Columns;
#[cfg(test)]
pub(crate) use self::load::any_loads;
pub use self::load::{ColumnError, Load, Loads, distinct};
pub use self::outcome::{FailureNotice, First, Follows, only_notice_left};
#[cfg(test)]
pub(crate) use self::parts::tests::any_parts;
pub use self::parts::{Parts, PartsError, Shows};
#[cfg(test)]
pub(crate) use self::rank::any_rank;
pub use self::rank::{Rank, RankError};
pub use self::resting::{forms_at_rest, rests};
pub use self::silence::{Circumstances, Patience, batch_overdue, lane_overdue, wake_leader};
pub use self::size::{BatchSize, Filling};
pub use self::splitting::is_split_after;
