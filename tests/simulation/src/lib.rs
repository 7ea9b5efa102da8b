//! Fanfold under one seed: the real steps and the real SDK over the embedded DynamoDB, with every delivery, clock and
//! fault drawn from the seed, checked against a model of what was asked for.

mod api;
mod asked;
mod check;
mod clients;
mod clock;
mod cluster;
mod contracts;
mod control;
mod deleted;
mod dev;
mod dice;
mod drained;
mod ends;
mod estimated;
mod faults;
mod filled;
mod hooks;
mod items;
mod keys;
mod kinds;
mod lag;
mod later;
mod lingering;
mod listed;
mod mail;
mod mapped;
mod marked;
mod model;
mod nested;
mod notices;
mod objects;
mod observe;
mod opening;
mod operator;
mod order;
mod outage;
mod pace;
mod paused;
mod permissions;
mod produced;
mod producer;
mod queues;
mod rates;
mod readers;
mod reissued;
mod request;
mod resets;
mod reuse;
mod run;
mod scenario;
mod server;
mod shapes;
mod shares;
mod sim;
mod small;
mod sources;
mod stats;
mod steps;
mod streams;
mod tables;
mod trace;
mod transitions;
mod webhooks;
mod wire;
mod work;
mod worker;
mod working;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use permissions::{Permission, Permissions};
pub use run::{SeedReport, run};
pub use small::{Case, Report, cases, explore};
pub use stats::{Reached, Stats};
pub use trace::digest;

/// Locks, also after somebody panicked with the lock held.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
