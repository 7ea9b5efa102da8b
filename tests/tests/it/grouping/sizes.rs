//! How much a batch takes of tasks that came together and of tasks that came alone.

use fanfold::ids::TaskId;
use fanfold::limits::{CONTENT_BYTES_MAX, MEMBER_BYTES};
use fanfold::messages::TaskRequest;
use fanfold_tests::TestStack;
use serde_json::json;

/// The bytes of tasks on their own count beside those of a bundle, though so few of them would fit by themselves.
#[tokio::test(start_paused = true)]
async fn few_tasks_on_their_own_count_beside_a_bundle() {
    let most = 4 * (CONTENT_BYTES_MAX + MEMBER_BYTES);
    let stack = TestStack::with(json!({"max_batch": 100, "max_batch_bytes": most})).await;
    let large = || TaskRequest {
        id: None,
        kind: "parcel".to_owned(),
        content: json!({"depot": "117", "note": "x".repeat(CONTENT_BYTES_MAX - 100)}),
    };
    let mut tasks: Vec<TaskId> = Vec::new();
    for (request, count) in [("together", 2), ("first", 1), ("second", 1), ("third", 1)] {
        let registered = stack.register.register((0..count).map(|_| large()).collect(), request).await.unwrap();
        tasks.extend(registered.iter().map(|task| task.id));
    }
    stack.drain().await;
    stack.assert_settled(&tasks, 4).await;
    for seen in stack.api.seen() {
        let bytes: usize = seen.call.members.iter().map(|member| member.content.get().len() + MEMBER_BYTES).sum();
        assert!(bytes <= most, "{} members have {bytes} bytes", seen.call.members.len());
    }
}
