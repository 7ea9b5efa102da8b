//! The step `register`: registers the tasks that messages and HTTP requests bring.

mod lines;
mod routes;
mod step;

use fanfold::config::{ConfigError, Surroundings};
use fanfold::messages::TaskRequest;
pub use fanfold::registering::{RegisterError, Registered, Registration, TaskFault, request_id};
use fanfold::registering::{Registrar, Streamed};

#[cfg(feature = "openapi")]
pub use routes::describe;
pub use routes::router;

/// Stores tasks and wakes their lanes.
#[derive(Debug)]
pub struct Register(Registrar);

impl Register {
    /// The step in the tables and queues that the environment names.
    ///
    /// # Errors
    /// A variable is missing.
    pub fn from_environment(surroundings: &Surroundings) -> Result<Self, ConfigError> {
        Registrar::from_environment(surroundings).map(Self)
    }

    /// An id for a request that brought none. Repeating such a request registers its tasks again.
    #[must_use]
    pub fn new_request_id(&self) -> String {
        self.0.new_request_id()
    }

    /// Registers tasks: see [`Registrar::register`].
    ///
    /// # Errors
    /// A task cannot be accepted, or tables or queues cannot be reached.
    pub async fn register(&self, tasks: Vec<TaskRequest>, request_id: &str) -> Result<Vec<Registered>, RegisterError> {
        self.0.register(tasks, request_id).await
    }

    /// Registers tasks under an idempotency key: see [`Registrar::register_once`].
    ///
    /// # Errors
    /// A task cannot be accepted, the key was used for another request, or tables or queues cannot be reached.
    pub async fn register_once(&self, tasks: Vec<TaskRequest>, key: &str) -> Result<Vec<Registered>, RegisterError> {
        self.0.register_once(tasks, key).await
    }

    /// Registers the tasks of a stream, each by itself: see [`Registrar::register_stream`].
    ///
    /// # Errors
    /// The key was used for another request, or tables or queues cannot be reached.
    pub async fn register_stream(
        &self,
        lines: Vec<Streamed>,
        key: Option<&str>,
    ) -> Result<Vec<Option<Result<Registered, TaskFault>>>, RegisterError> {
        self.0.register_stream(lines, key).await
    }
}
