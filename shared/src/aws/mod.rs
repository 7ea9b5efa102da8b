//! What every table and every queue needs. Nothing of Fanfold's own records and messages is in here.

pub(crate) mod attributes;
mod error;
mod queue;
mod statements;
mod table;
pub(crate) mod transaction;

pub use attributes::Item;
pub use error::StoreError;
pub use queue::{Queue, QueueError};
pub use table::{Table, Write};
