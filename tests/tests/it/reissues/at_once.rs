//! One request to reissue at two workers, one of which is through while the other is anywhere in it.

use fanfold::producing::ReissueRequest;
use fanfold_tests::Crash;
use futures::FutureExt;
use serde_json::json;

use super::{ended, stack, try_reissue};

/// It is answered the same by both.
#[tokio::test(start_paused = true)]
async fn the_same_request_is_answered_the_same() {
    for steps in 0..30 {
        let (stack, _) = stack(json!({}), Crash::never()).await;
        let (old, _) = ended(&stack, &[4]).await;
        let request = ReissueRequest::default();
        let mut slow = Box::pin(try_reissue(&stack, old, &request, "same"));
        let mut early = None;
        for _ in 0..steps {
            if early.is_none() {
                // No step takes it further than to its next request.
                early = slow.as_mut().now_or_never();
                tokio::task::yield_now().await;
            }
        }
        let quick = try_reissue(&stack, old, &request, "same").await;
        let slow = match early {
            Some(answer) => answer,
            None => slow.await,
        };
        let same = matches!((&slow, &quick), (Ok(slow), Ok(quick)) if slow == quick);
        assert!(same, "after {steps} steps: {slow:?}, {quick:?}");
    }
}
