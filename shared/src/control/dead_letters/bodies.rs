//! The bodies that dead letters are sent again as. No I/O.

use aws_sdk_sqs::types::Message;

use super::{ACK, REGISTER};
use crate::aws::sendable;
use crate::ids::derived;
use crate::limits::{MESSAGE_BYTES_MAX, MESSAGES_PER_CALL_MAX};
use crate::messages::{AckMessage, RegisterMessage, TaskRequest};

/// Whether it is a message with counts: those are not idempotent.
pub(super) fn counts(step: &str, message: &Message) -> bool {
    let body = message.body.as_deref().unwrap_or_default();
    step == ACK && matches!(serde_json::from_str(body), Ok(AckMessage::Counts(_)))
}

/// The bodies that it is sent again as, at least one: tasks with the ids that they would have had, in as many messages
/// as they take with these. What cannot be read is sent as it is.
pub(super) fn bodies(step: &str, message: &Message) -> Vec<String> {
    let body = message.body.clone().unwrap_or_default();
    let id = message.message_id.as_deref().filter(|_| step == REGISTER);
    let Some((id, request)) = id.zip(serde_json::from_str::<RegisterMessage>(&body).ok()) else { return vec![body] };
    let mut tasks = request.tasks();
    let fits = body.len() <= MESSAGE_BYTES_MAX && tasks.iter().all(|task| task.id.is_some());
    if tasks.is_empty() || fits {
        return vec![body];
    }
    tasks.iter_mut().enumerate().for_each(|(at, task)| {
        task.id.get_or_insert_with(|| derived::task(id, at));
    });
    requests(&tasks).unwrap_or_else(|_| vec![body])
}

/// Tasks in requests of as many bytes as a message may have. One that has more is alone.
fn requests(tasks: &[TaskRequest]) -> serde_json::Result<Vec<String>> {
    const AROUND: usize = r#"{"tasks":[]}"#.len();
    let (mut requests, mut bytes) = (Vec::<Vec<String>>::new(), 0);
    for task in tasks {
        let task = sendable(serde_json::to_string(task)?);
        match requests.last_mut() {
            Some(request) if bytes + 1 + task.len() <= MESSAGE_BYTES_MAX => {
                bytes += 1 + task.len();
                request.push(task);
            }
            _ => {
                bytes = AROUND + task.len();
                requests.push(vec![task]);
            }
        }
    }
    Ok(requests.iter().map(|tasks| format!(r#"{{"tasks":[{}]}}"#, tasks.join(","))).collect())
}

/// Positions of bodies of these sizes that go in one call each. One that is too large to go with others is alone.
pub(super) fn calls(sizes: impl IntoIterator<Item = usize>) -> Vec<Vec<usize>> {
    let (mut calls, mut bytes) = (Vec::<Vec<usize>>::new(), 0);
    for (at, size) in sizes.into_iter().enumerate() {
        match calls.last_mut() {
            Some(call) if call.len() < MESSAGES_PER_CALL_MAX && bytes + size <= MESSAGE_BYTES_MAX => {
                bytes += size;
                call.push(at);
            }
            _ => {
                bytes = size;
                calls.push(vec![at]);
            }
        }
    }
    calls
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(id: &str, body: &str) -> Message {
        Message::builder().message_id(id).body(body).build()
    }

    fn tasks(body: &str) -> Vec<TaskRequest> {
        serde_json::from_str::<RegisterMessage>(body).unwrap().tasks()
    }

    #[test]
    fn tasks_of_a_message_keep_the_ids_that_follow_from_it() {
        let text = r#"{"tasks":[{"kind":"a","content":1},{"id":"01890000-0000-7000-8000-000000000001","kind":"a","content":2}]}"#;
        let again = bodies("register", &message("m", text));
        let ids: Vec<_> = tasks(&again[0]).into_iter().map(|task| task.id.unwrap()).collect();
        assert_eq!(ids, [derived::task("m", 0), "01890000-0000-7000-8000-000000000001".parse().unwrap()]);
        assert_eq!(bodies("register", &message("other", &again[0])), again, "once they have ids they keep them");
        let one = bodies("register", &message("m", r#"{"kind":"a","content":1}"#));
        assert!(one.len() == 1 && one[0].contains(&derived::task("m", 0).to_string()), "{one:?}");
        for (step, text) in [("register", "not JSON"), ("register", r#"{"tasks":[]}"#), ("ack", text)] {
            assert_eq!(bodies(step, &message("m", text)), [text]);
        }
    }

    #[test]
    fn what_ids_make_too_large_is_several_messages() {
        let task = |n: usize| json!({"kind": "a", "content": format!("\u{ffff} {n} {}", "x".repeat(60))});
        let text = json!({"tasks": (0..2_500).map(task).collect::<Vec<_>>()}).to_string();
        assert!(text.len() < MESSAGE_BYTES_MAX, "{}", text.len());
        let parts = bodies("register", &message("m", &text));
        assert!(parts.len() == 2 && parts.iter().all(|part| part.len() <= MESSAGE_BYTES_MAX));
        let again: Vec<_> = parts.iter().flat_map(|part| tasks(part)).collect();
        let ids = again.iter().map(|task| task.id.unwrap());
        assert!(ids.eq((0..2_500).map(|at| derived::task("m", at))));
        let contents = |tasks: Vec<TaskRequest>| tasks.into_iter().map(|task| task.content).collect::<Vec<_>>();
        assert_eq!(contents(again), contents(tasks(&text)));
        let large = json!({"tasks": [task(0), {"kind": "a", "content": "x".repeat(MESSAGE_BYTES_MAX)}, task(1)]});
        assert_eq!(bodies("register", &message("m", &large.to_string())).len(), 3, "it is alone");
    }

    #[test]
    fn counts_are_told_from_acks() {
        let fanout = "01890000-0000-7000-8000-000000000001";
        let count = format!(r#"{{"counts": [{{"fanout": "{fanout}", "add": 1}}]}}"#);
        assert!(counts("ack", &message("m", &count)) && !counts("register", &message("m", &count)));
        for other in [format!(r#"{{"items": ["{fanout}:{fanout}:0"]}}"#), "not JSON".to_owned(), String::new()] {
            assert!(!counts("ack", &message("m", &other)), "{other}");
        }
    }

    #[test]
    fn calls_are_as_large_as_they_may_be() {
        assert_eq!(calls([1; 11]), [(0..10).collect::<Vec<_>>(), vec![10]]);
        let half = MESSAGE_BYTES_MAX / 2 + 1;
        assert_eq!(calls([half, half, MESSAGE_BYTES_MAX + 1, 1]), [vec![0], vec![1], vec![2], vec![3]]);
        assert_eq!(calls([half, 1, half]), [vec![0, 1], vec![2]]);
    }
}
