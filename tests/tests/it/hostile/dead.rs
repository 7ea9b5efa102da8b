//! Messages moved as Lambda's event sources do: the bad ones, and only they, end in their dead-letter queues.

use std::time::Duration;

use fanfold::ids::TaskId;
use fanfold_tests::{NOBODY, QueueName, TestStack, order};
use serde_json::json;

use super::assert_unharmed;

/// A message that each queue's step refuses, beside one that is not even JSON.
fn refused(queue: QueueName) -> [String; 2] {
    let body = match queue {
        QueueName::Produce => json!({"fanout": NOBODY, "partition": 0}),
        QueueName::Register => json!({"kind": "letter", "content": {}}),
        QueueName::Elect => json!({"lane": "letter:117", "workflow": NOBODY}),
        QueueName::Group => json!({"lane": "letter:0:117", "batch": NOBODY, "epoch": -1}),
        QueueName::Handle => json!({"batch": NOBODY, "attempt": 1}),
        QueueName::Ack => json!({"items": [format!("{NOBODY}:{NOBODY}:0")]}),
        QueueName::Notify | QueueName::Notices => json!({"fanout": NOBODY}),
    };
    [body.to_string(), format!("{{\"{queue:?}")]
}

#[tokio::test(start_paused = true)]
async fn only_bad_messages_end_in_the_dead_letter_queues() {
    let stack = TestStack::with(json!({"max_batch": 5})).await;
    let (_, ids) = stack.open(23, true).await;
    for queue in QueueName::STEPS {
        for body in refused(queue) {
            stack.send(queue, body).await;
        }
    }
    for (n, id) in ids.iter().enumerate() {
        stack.send(QueueName::Register, serde_json::to_string(&order(Some(*id), "117", n)).unwrap()).await;
    }
    let pumps = stack.pumps();
    // A day: five deliveries of each, the visibility time-outs in between.
    let mut hours = 0;
    while stack.backlog().await > 0 {
        hours += 1;
        assert!(hours <= 24, "the queues do not drain");
        tokio::time::sleep(Duration::from_secs(3_600)).await;
    }
    for pump in pumps {
        pump.stop().await;
    }
    for queue in QueueName::STEPS {
        let mut dead = stack.dead(queue).await;
        let mut expected = refused(queue);
        dead.sort_unstable();
        expected.sort_unstable();
        assert_eq!(dead, expected, "{queue:?}");
    }
    let tasks: Vec<TaskId> = ids.into_iter().map(TaskId::Item).collect();
    assert_unharmed(&stack, &tasks, 0).await;
}
