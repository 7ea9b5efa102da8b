//! Tasks of several messages, registered together.

use super::check::check_count;
use super::items::{check, items};
use super::{Assigned, RegisterError, Registrar};
use crate::messages::TaskRequest;
use crate::tracking::GroupsRead;

impl Registrar {
    /// Registers the tasks of several messages, each known by its id: each is checked on its own, and the tasks of all good
    /// ones are stored together. Returns the messages that failed, which are to be delivered again.
    pub async fn register_each(&self, messages: Vec<(String, Vec<TaskRequest>)>) -> Vec<String> {
        let (mut requests, mut failures) = (Vec::new(), Vec::new());
        for (message_id, tasks) in messages {
            // A redelivery has the same message id, so tasks without an id get the same ids.
            let assigned = match check_count(tasks.len()) {
                Ok(()) => self.assign(tasks, &message_id, false).await,
                Err(error) => Err(error),
            };
            match assigned {
                Ok(tasks) => requests.push((message_id, tasks)),
                Err(error) => {
                    log(&message_id, &error);
                    failures.push(message_id);
                }
            }
        }
        let (good, mut assigned, groups) = self.with_items(requests, &mut failures).await;
        // Two messages may bring the same task; it is stored once.
        let mut seen = std::collections::HashSet::new();
        assigned.retain(|task| seen.insert(task.id));
        if !assigned.is_empty()
            && let Err(error) = self.store(&assigned, &groups).await
        {
            tracing::error!(%error, messages = good.len(), "tasks could not be stored; their messages will be delivered again");
            failures.extend(good);
        }
        failures
    }

    /// Returns the messages whose items exist, with their tasks, and their groups, which are read together. The others fail.
    async fn with_items(
        &self,
        requests: Vec<(String, Vec<Assigned>)>,
        failures: &mut Vec<String>,
    ) -> (Vec<String>, Vec<Assigned>, GroupsRead) {
        let (mut good, mut assigned) = (Vec::new(), Vec::new());
        let named = items(requests.iter().flat_map(|(_, tasks)| tasks));
        let groups = match self.tracking.groups_with(&named).await {
            Ok(groups) => groups,
            Err(error) => {
                tracing::error!(%error, messages = requests.len(), "items could not be looked up; their messages will be delivered again");
                failures.extend(requests.into_iter().map(|(message_id, _)| message_id));
                return (good, assigned, GroupsRead::default());
            }
        };
        for (message_id, tasks) in requests {
            match check(&tasks, &groups) {
                Ok(()) => {
                    assigned.extend(tasks);
                    good.push(message_id);
                }
                Err(error) => {
                    log(&message_id, &error);
                    failures.push(message_id);
                }
            }
        }
        (good, assigned, groups)
    }
}

fn log(message_id: &str, error: &RegisterError) {
    match error {
        RegisterError::Refused(faults) => {
            let first = faults.first().map(ToString::to_string).unwrap_or_default();
            tracing::warn!(%message_id, faults = faults.len(), %first, "tasks cannot be accepted");
        }
        error => tracing::error!(%message_id, %error, "tasks could not be checked"),
    }
}
