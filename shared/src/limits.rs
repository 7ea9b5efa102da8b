//! Every limit in one place, each with its source, by subject.

mod aws;
mod control;
mod grouping;
mod handling;
mod http;
mod notices;
mod pacing;
mod policies;
mod producing;
mod retention;
mod tracking;

pub use self::aws::*;
pub use self::control::*;
pub use self::grouping::*;
pub use self::handling::*;
pub use self::http::*;
pub use self::notices::*;
pub use self::pacing::*;
pub use self::policies::*;
pub use self::producing::*;
pub use self::retention::*;
pub use self::tracking::*;
