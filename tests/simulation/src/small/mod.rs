//! Small cases, exhaustively: two or three workers at one lane or fan-out, and every order in which their requests can reach the
//! tables, with faults at every point.

mod cases;
mod choices;
mod explore;
mod gate;
mod ground;
mod stage;
mod touches;

use futures::future::BoxFuture;

pub use cases::cases;
pub use explore::{Report, explore};
pub(crate) use gate::{Gate, Picked};
pub use ground::Case;
pub(crate) use stage::{Actor, Stage};
pub(crate) use touches::{Sort, Touches};

/// Prepares a case, and names its workers.
pub(crate) type Prepare = for<'a> fn(&'a Stage) -> BoxFuture<'a, Result<Vec<Actor>, String>>;
