//! The tables: one file per record type, with what is stored and the conditional writes that change it.

mod attributes;
mod table;

pub mod batches;
pub mod fanouts;
pub mod gates;
pub mod groups;
pub mod locks;
pub mod places;
pub mod policies;
pub mod tasks;
pub mod telling;

pub use attributes::Item;
pub use table::{StoreError, Table, Write};
