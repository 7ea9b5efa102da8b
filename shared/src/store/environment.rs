//! The stores by the variables that name their tables: each in one place, for all steps.

use super::batches::Batches;
use super::fanouts::Fanouts;
use super::findings::SweepRecord;
use super::gates::Gates;
use super::groups::Groups;
use super::locks::Locks;
use super::places::Places;
use super::policies::Policies;
use super::producers::Producers;
use super::tasks::Tasks;
use crate::config::{ConfigError, Surroundings, variables};

macro_rules! from_environment {
    ($($store:ident in $variable:ident,)+) => {$(
        impl $store {
            /// Those in the table that the environment names.
            ///
            /// # Errors
            /// A variable is missing, or cannot be used.
            pub fn from_environment(surroundings: &Surroundings) -> Result<Self, ConfigError> {
                Ok(Self::new(surroundings.table(variables::$variable)?))
            }
        }
    )+};
}

from_environment! {
    Batches in BATCHES_TABLE,
    Fanouts in FANOUTS_TABLE,
    Groups in GROUPS_TABLE,
    Locks in LOCKS_TABLE,
    Policies in POLICIES_TABLE,
    Producers in PRODUCERS_TABLE,
    SweepRecord in LOCKS_TABLE,
    Tasks in TASKS_TABLE,
}

impl Places {
    /// Those in the table that the environment names.
    ///
    /// # Errors
    /// A variable is missing, or cannot be used.
    pub fn from_environment(surroundings: &Surroundings) -> Result<Self, ConfigError> {
        Ok(Self::new(surroundings.table(variables::LOCKS_TABLE)?).spread_by(surroundings.spread))
    }
}

impl Gates {
    /// Those in the table that the environment names.
    ///
    /// # Errors
    /// A variable is missing, or cannot be used.
    pub fn from_environment(surroundings: &Surroundings) -> Result<Self, ConfigError> {
        Places::from_environment(surroundings).map(Self::from)
    }
}
