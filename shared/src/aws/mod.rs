//! What every table and every queue needs, independent of Fanfold's records and messages.
//!
//! Functions that call the SDK return boxed futures, so that the SDK's code is compiled once, in this crate, and not again in
//! every crate that awaits it.

pub(crate) mod attributes;
mod change;
mod embedded;
mod error;
mod page;
mod patience;
mod queue;
mod statements;
mod table;
mod transaction;
mod write;

pub use attributes::Item;
pub(crate) use change::Change;
pub use embedded::{Embedded, EmbeddedUpdate};
pub use error::StoreError;
pub(crate) use error::said;
pub use page::{Extent, Looked, Segment};
pub(crate) use page::{Range, Section};
pub use queue::{Queue, QueueError, sendable};
pub(crate) use statements::RefusedWrite;
pub use table::Table;
pub use write::Write;
