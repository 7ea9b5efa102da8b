//! Shared parts of Fanfold: ids, bits, records, stores, messages, policies.

pub mod backoff;
pub mod bits;
pub mod clock;
pub mod delivery;
pub mod ids;
pub mod lane;
pub mod limits;
pub mod members;
pub mod policy;
