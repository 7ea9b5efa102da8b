//! Streams of tasks: each task is accepted or refused by itself.

use crate::ids::{TaskId, derived};
use crate::messages::TaskRequest;
use crate::store::tasks::RequestNote;

use super::items::{fault, items};
use super::{RegisterError, Registered, Registrar, TaskFault, request_id};

/// A line of a stream: a task, or its bytes if it is no task.
pub type Streamed = Result<TaskRequest, Vec<u8>>;

impl Registrar {
    /// Registers those tasks of a stream that can be accepted. Returns a result per line, and none for a line that is no task. A
    /// task without an id gets one that follows from its line's position, whatever the results of other lines.
    ///
    /// Under an idempotency key the whole stream is noted before its first task is stored, bad lines too. A repetition completes
    /// an earlier try, and registers tasks that can be accepted only by then. Another stream under the key is refused. A stream
    /// without any task that can be accepted uses up no key.
    ///
    /// # Errors
    /// The key was used for another request, or tables or queues cannot be reached.
    pub async fn register_stream(
        &self,
        lines: Vec<Streamed>,
        key: Option<&str>,
    ) -> Result<Vec<Option<Result<Registered, TaskFault>>>, RegisterError> {
        let request_id = key.map_or_else(|| self.new_request_id(), request_id);
        let note = key.map(|_| note(&lines, &request_id));
        let mut outcomes = vec![None; lines.len()];
        let tasks = lines.into_iter().enumerate().filter_map(|(at, line)| Some((at, line.ok()?))).collect();
        let (mut positions, mut assigned) = (Vec::new(), Vec::new());
        for task in self.assign_each(tasks, &request_id, true).await? {
            match task {
                Ok((at, task)) => {
                    positions.push(at);
                    assigned.push(task);
                }
                Err(fault) => refuse(&mut outcomes, fault),
            }
        }
        let groups = self.tracking.groups_with(&items(&assigned)).await?;
        let (mut good, mut tasks) = (Vec::with_capacity(assigned.len()), Vec::with_capacity(assigned.len()));
        for (at, task) in positions.into_iter().zip(assigned) {
            match fault(at, &task, &groups) {
                Some(fault) => refuse(&mut outcomes, fault),
                None => {
                    good.push(at);
                    tasks.push(task);
                }
            }
        }
        if tasks.is_empty() {
            return Ok(outcomes);
        }
        if let Some(note) = note {
            let first = self.tasks.note_request(&request_id, note).await?;
            if first != note {
                return Err(RegisterError::KeyReused { tasks: note.tasks, first: first.tasks });
            }
        }
        for (at, registered) in good.into_iter().zip(self.store(&tasks, &groups).await?) {
            outcomes[at] = Some(Ok(registered));
        }
        Ok(outcomes)
    }
}

fn refuse(outcomes: &mut [Option<Result<Registered, TaskFault>>], fault: TaskFault) {
    if let Some(outcome) = outcomes.get_mut(fault.index) {
        *outcome = Some(Err(fault));
    }
}

/// The note of a stream: all its lines, in their order.
fn note(lines: &[Streamed], request_id: &str) -> RequestNote {
    let lines_of = lines.iter().enumerate().map(|(at, line)| meant(line, at, request_id));
    RequestNote { digest: derived::stream_digest(lines_of), tasks: lines.len() as u64 }
}

/// What a line asks for: id, kind and content of its task or, if it has none, its bytes.
fn meant<'a>(line: &'a Streamed, at: usize, request_id: &str) -> Result<(TaskId, &'a str, String), &'a [u8]> {
    let task = line.as_ref().map_err(Vec::as_slice)?;
    let id = task.id.unwrap_or_else(|| derived::task(request_id, at));
    Ok((id, task.kind.as_str(), task.content.to_string()))
}
