//! Fanfold's own tracking.

use std::sync::Arc;

use fanfold::delivery::Step;
use fanfold::ids::{ItemId, expand};
use fanfold::limits::ITEMS_PER_ADD_MAX;
use fanfold::policy::{Destination, NoticesQueue};
use fanfold::tracking::{OpenRequest, Tracking};
use fanfold_batch_api::Callers;
use fanfold_http_client::Guard;
use fanfold_notify::HttpWebhooks;
use fanfold_produce::AllSources;
use fanfold_stack::{Outside, Steps};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::Tracker;
use crate::Outcome;
use crate::room::Room;

/// Fanfold's own tracking.
pub(super) struct Ours {
    tracking: Tracking,
    steps: Steps,
}

impl Ours {
    pub(super) fn new(room: &mut Room) -> Outcome<Self> {
        let guard = Guard::local(|_| None);
        let outside = Outside {
            batch_apis: Arc::new(Callers::local(|_| None)),
            webhooks: Arc::new(HttpWebhooks::from_environment(&room.surroundings("NotifyFunction"), guard.clone())?),
            sources: Arc::new(AllSources::from_environment(&room.surroundings("ProduceFunction"), guard)),
            commands: false,
            call_by_call: false,
        };
        let steps = Steps::new(|function| room.surroundings(function), outside)?;
        room.start("NotifyFunction", Arc::clone(&steps.notify) as Arc<dyn Step>)?;
        Ok(Self { tracking: Tracking::from_environment(&room.surroundings("ApiFunction"))?, steps })
    }

    async fn add(&self, items: u32) -> Outcome<Vec<ItemId>> {
        let notify = Some(Destination::Queue(NoticesQueue::Notices));
        let first = items.min(ITEMS_PER_ADD_MAX);
        let request =
            OpenRequest { items: first, seal: first == items, user_key: None, notify, ..OpenRequest::default() };
        let opened = self.tracking.open(request, None).await?;
        let (fanout, mut groups) = (opened.fanout.id, opened.groups);
        let mut left = items - first;
        while left > 0 {
            let more = left.min(ITEMS_PER_ADD_MAX);
            groups.extend(self.tracking.add(fanout, more, None).await?);
            left -= more;
            if left == 0 {
                self.tracking.seal(fanout).await?;
            }
        }
        Ok(expand(fanout, &groups).collect())
    }
}

impl Tracker for Ours {
    fn open(&self, items: u32) -> BoxFuture<'_, Outcome<Vec<ItemId>>> {
        self.add(items).boxed()
    }

    fn step(self: Arc<Self>) -> Arc<dyn Step> {
        Arc::clone(&self.steps.ack) as Arc<dyn Step>
    }
}
