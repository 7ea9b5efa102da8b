//! The rules of lanes and batches, each in one place. No I/O: steps and `sweep` read, ask here, and write.

mod hints;
mod silence;
mod size;

pub use self::silence::{Patience, remind};
pub use self::size::BatchSize;
