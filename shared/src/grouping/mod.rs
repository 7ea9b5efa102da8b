//! The rules of lanes and batches, each in one place. No I/O: steps and `sweep` read, ask here, and write.

mod hints;
mod silence;

pub use self::silence::{Patience, remind};
