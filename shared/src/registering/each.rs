//! Tasks of several messages, registered together.

use std::time::Duration;

use super::check::check_count;
use super::items::{check, items};
use super::{Assigned, RegisterError, Registrar};
use crate::limits::{REGISTER_TIME_MAX, TASKS_PER_REQUEST_MAX};
use crate::messages::TaskRequest;
use crate::tracking::GroupsRead;

/// The id of a message, and its tasks.
type Message = (String, Vec<TaskRequest>);

impl Registrar {
    /// Registers the tasks of several messages, each known by its id, in portions: one that fails fails none of the others. If
    /// they bring more tasks than there is time for, the last messages are left for another delivery. Returns the messages that
    /// failed or are left: they are to be delivered again.
    pub async fn register_each(&self, messages: Vec<Message>) -> Vec<String> {
        let begun = self.world.now();
        let (mut failures, mut left, mut pace) = (Vec::new(), 0, Pace::default());
        for portion in portions(messages) {
            let tasks = portion.iter().map(|(_, tasks)| tasks.len()).sum();
            let now = self.world.now();
            if left > 0 || now.since(begun) + pace.expected(tasks) >= REGISTER_TIME_MAX {
                left += portion.len();
                failures.extend(portion.into_iter().map(|(message_id, _)| message_id));
            } else {
                failures.extend(self.register_portion(portion).await);
                pace.took(tasks, self.world.now().since(now));
            }
        }
        if left > 0 {
            tracing::info!(messages = left, "there is no time for these messages; they will be delivered again");
        }
        failures
    }

    /// Each message is checked on its own, and the tasks of all good ones are stored together. Returns the messages that failed.
    async fn register_portion(&self, messages: Vec<Message>) -> Vec<String> {
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

/// How long portions take, by the slowest one so far.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    per_task: Duration,
}

impl Pace {
    /// What a portion of so many tasks will take. The first one is expected to take no time.
    fn expected(self, tasks: usize) -> Duration {
        self.per_task.saturating_mul(u32::try_from(tasks).unwrap_or(u32::MAX))
    }

    /// A portion of so many tasks took this time. A small one says little of others: it counts as if it were half full.
    fn took(&mut self, tasks: usize, time: Duration) {
        let tasks = u32::try_from(tasks.max(TASKS_PER_REQUEST_MAX / 2)).unwrap_or(u32::MAX);
        self.per_task = self.per_task.max(time / tasks);
    }
}

/// Messages that are registered together: as many as have no more tasks than a request may, and at least one.
fn portions(messages: Vec<Message>) -> Vec<Vec<Message>> {
    let (mut portions, mut together): (Vec<Vec<Message>>, _) = (Vec::new(), 0);
    for message in messages {
        let tasks = message.1.len();
        match portions.last_mut().filter(|_| together + tasks <= TASKS_PER_REQUEST_MAX) {
            Some(portion) => {
                together += tasks;
                portion.push(message);
            }
            None => {
                together = tasks;
                portions.push(vec![message]);
            }
        }
    }
    portions
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn sizes(sizes: &[usize]) -> Vec<Vec<usize>> {
        let task = || TaskRequest { id: None, kind: String::new(), content: Value::Null };
        let message = |tasks: &usize| (String::new(), std::iter::repeat_with(task).take(*tasks).collect());
        let portions = portions(sizes.iter().map(message).collect()).into_iter();
        portions.map(|portion| portion.iter().map(|(_, tasks)| tasks.len()).collect()).collect()
    }

    #[test]
    fn a_message_is_never_parted() {
        const MOST: usize = TASKS_PER_REQUEST_MAX;
        assert_eq!(sizes(&[]), Vec::<Vec<usize>>::new());
        assert_eq!(sizes(&[1; 100]), [vec![1; 100]]);
        assert_eq!(sizes(&[MOST, MOST, 0, 1]), [vec![MOST], vec![MOST, 0], vec![1]]);
        assert_eq!(sizes(&[4, MOST - 4, 4, MOST - 3]), [vec![4, MOST - 4], vec![4], vec![MOST - 3]]);
        assert_eq!(sizes(&[1, MOST + 1, 1]), [vec![1], vec![MOST + 1], vec![1]], "it is refused later");
    }

    #[test]
    fn the_time_of_a_portion_is_known_from_the_slowest() {
        let seconds = Duration::from_secs;
        let after = |portions: &[(usize, u64)], tasks| {
            let mut pace = Pace::default();
            portions.iter().for_each(|(tasks, time)| pace.took(*tasks, seconds(*time)));
            pace.expected(tasks)
        };
        assert_eq!(after(&[], 10_000), seconds(0), "one portion is begun in any case");
        assert_eq!(after(&[(10_000, 10)], 10_000), seconds(10));
        assert_eq!(after(&[(8_000, 8), (10_000, 5)], 10_000), seconds(10));
        assert_eq!(after(&[(5_000, 6)], 10_000), seconds(12), "it has twice as many tasks");
        assert_eq!(after(&[(1, 1)], 10_000), seconds(2));
        assert!(after(&[(1, 1)], usize::MAX) > seconds(25));
    }

    proptest! {
        #[test]
        fn every_message_is_in_one_portion(tasks in prop::collection::vec(0_usize..3_000, 0..12)) {
            let portions = sizes(&tasks);
            prop_assert!(portions.iter().all(|portion| portion.iter().sum::<usize>() <= TASKS_PER_REQUEST_MAX));
            prop_assert_eq!(portions.concat(), tasks);
        }
    }
}
