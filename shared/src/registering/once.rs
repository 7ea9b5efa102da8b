//! Registration under an idempotency key.

use crate::ids::derived;
use crate::messages::TaskRequest;
use crate::store::tasks::RequestNote;

use super::{Assigned, RegisterError, Registered, Registrar};

impl Registrar {
    /// Registers tasks under an idempotency key, from which tasks without an id get theirs. The request is noted before
    /// its first task is stored: a repetition completes what an earlier try began, and another request is refused.
    ///
    /// # Errors
    /// A task cannot be accepted, the key was used for another request, or tables or queues cannot be reached.
    pub async fn register_once(&self, tasks: Vec<TaskRequest>, key: &str) -> Result<Vec<Registered>, RegisterError> {
        let request_id = request_id(key);
        let assigned = self.assign(tasks, &request_id, true).await?;
        let groups = self.check_items(&assigned).await?;
        let note = note(&assigned);
        let first = self.tasks.note_request(&request_id, note).await?;
        if first != note {
            return Err(RegisterError::KeyReused { tasks: note.tasks, first: first.tasks });
        }
        self.store(&assigned, &groups).await
    }
}

/// The id of a request under an idempotency key. SQS message ids and Fanfold's own request ids are UUIDs, so that no key
/// can be one of those.
#[must_use]
pub fn request_id(key: &str) -> String {
    format!("http:{key}")
}

/// What a request asks for: its tasks with all they came with, in their order.
fn note(assigned: &[Assigned]) -> RequestNote {
    let tasks = assigned.iter().map(|task| (task.id, task.lane.kind.as_str(), task.content.as_str()));
    RequestNote { digest: derived::request_digest(tasks), tasks: assigned.len() as u64 }
}
