//! The rules of lanes and batches, each in one place. No I/O: steps and `sweep` read, ask here, and write.

mod bundle;
mod hints;
mod load;
mod outcome;
mod silence;
mod size;

pub use self::bundle::{Bundle, BundleState, cut};
pub(crate) use self::bundle::{Claim, NO_BATCH};
pub(crate) use self::load::Columns;
#[cfg(test)]
pub(crate) use self::load::any_loads;
pub use self::load::{ColumnError, Load, Loads, distinct};
pub use self::outcome::{FailureNotice, First, Follows};
pub use self::silence::{Patience, remind};
pub use self::size::{BatchSize, Filling};
