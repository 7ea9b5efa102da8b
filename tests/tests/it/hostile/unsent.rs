//! Members whose request cannot be written.

use fanfold::messages::TaskRequest;
use fanfold_tests::order;
use serde_json::json;

use super::api::stack_of;
use super::server::{Deed, Server};

/// The batch API did what it was asked: nobody is called again because of a member that it did not get.
#[tokio::test]
async fn a_member_that_cannot_be_sent_fails_alone_in_either_mode() {
    for mode in ["slots", "strict"] {
        let server = Server::start(|_, _| Deed::answer("200 OK", "", "")).await;
        let batch_api = json!({
            "url": server.url, "mode": mode, "request": {"body": {"${members}": "${content.order}"}},
            "response": {"match": "none"},
        });
        let stack = stack_of(batch_api, 3).await;
        let unfit = TaskRequest { id: None, kind: "parcel".to_owned(), content: json!({"depot": "117"}) };
        let mut tasks: Vec<TaskRequest> = (0..3).map(|n| order(None, "117", n)).collect();
        tasks.push(unfit);
        stack.register(tasks).await;
        stack.drain().await;
        let heard = server.heard();
        assert_eq!((heard.len(), heard[0].body.as_array().map(Vec::len)), (1, Some(3)), "{mode}");
        let batches = stack.all_batches().await;
        let [batch] = &batches[..] else { panic!("{batches:?}") };
        assert_eq!((batch.succeeded.count(), batch.failed.count()), (3, 1), "{mode}");
        let slot = (0..4).find(|slot| batch.failed.get(*slot)).unwrap();
        let error = batch.error(slot).unwrap();
        assert!(error.starts_with("the request cannot be written for it: "), "{mode}: {error}");
    }
}
