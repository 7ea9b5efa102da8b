//! The step `api`: opens, adds to, seals and shows fan-outs; shows tasks, batches and lanes; keeps policies; pauses and
//! drains scopes; cancels tasks.

mod notice;
mod routes;

use fanfold::clock::World;
use fanfold::config::{ConfigError, Surroundings, variables};
use fanfold::control::{Cancelling, Control, DeadLetters, DevQueues, Resetting};
use fanfold::producing::Producing;
use fanfold::registering::Registrar;
use fanfold::store::batches::Batches;
use fanfold::store::findings::SweepRecord;
use fanfold::store::gates::Gates;
use fanfold::store::locks::Locks;
use fanfold::store::policies::Policies;
use fanfold::store::tasks::Tasks;
use fanfold::tracking::Tracking;

#[cfg(feature = "openapi")]
pub use routes::describe;
pub use routes::router;

/// What the HTTP routes of this function work on.
#[derive(Debug)]
pub struct Api {
    tracking: Tracking,
    producing: Producing,
    registrar: Registrar,
    tasks: Tasks,
    batches: Batches,
    policies: Policies,
    gates: Gates,
    locks: Locks,
    control: Control,
    cancelling: Cancelling,
    resetting: Resetting,
    dead_letters: DeadLetters,
    sweep: SweepRecord,
    /// The queues that dev sessions may have, if the stack allows these.
    dev_queues: Option<DevQueues>,
    world: World,
    allow_commands: bool,
}

impl Api {
    /// The function in the tables and queues that the environment names. It takes no policies with commands.
    ///
    /// # Errors
    /// A variable is missing.
    pub fn from_environment(surroundings: &Surroundings) -> Result<Self, ConfigError> {
        Ok(Self {
            tracking: Tracking::from_environment(surroundings)?,
            producing: Producing::from_environment(surroundings)?,
            registrar: Registrar::from_environment(surroundings)?,
            tasks: Tasks::from_environment(surroundings)?,
            batches: Batches::from_environment(surroundings)?,
            policies: Policies::from_environment(surroundings)?,
            gates: Gates::from_environment(surroundings)?,
            locks: Locks::from_environment(surroundings)?,
            control: Control::from_environment(surroundings)?,
            cancelling: Cancelling::from_environment(surroundings)?,
            resetting: Resetting::from_environment(surroundings)?,
            dead_letters: DeadLetters::from_environment(surroundings)?,
            sweep: SweepRecord::from_environment(surroundings)?,
            dev_queues: surroundings.optional(variables::DEV_QUEUES).map(DevQueues::new),
            world: surroundings.world.clone(),
            allow_commands: false,
        })
    }

    /// Whether policies whose batch API is a command, and producers whose source is a file or a command, are accepted: every
    /// caller of the API can then run programs and read files here.
    #[must_use]
    pub fn allow_commands(self, allow_commands: bool) -> Self {
        Self { allow_commands, ..self }
    }
}
