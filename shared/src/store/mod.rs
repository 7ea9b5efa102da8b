//! One room per record: what is stored, and the conditional writes that change it.

pub mod batches;
mod environment;
pub mod fanouts;
pub mod findings;
pub mod gates;
pub mod groups;
pub mod locks;
pub mod notices;
pub mod pace;
pub mod places;
pub mod policies;
pub mod producers;
mod shards;
pub mod tasks;
