//! Webhooks that answer as a test says, and remember every call.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::StatusCode;
use fanfold::clock::Timestamp;
use fanfold::limits::NOTICE_TIMEOUT;
use fanfold::notice::Notice;
use fanfold_notify::{DeliveryError, Webhooks};
use futures::FutureExt;
use futures::future::BoxFuture;
use uuid::Uuid;

/// What a receiver answers.
#[derive(Clone, Copy, Debug)]
pub enum WebhookAnswer {
    Takes,
    /// The same after so long.
    TakesAfter(Duration),
    /// A status.
    Refuses(u16),
    /// A status, and how long to leave it alone.
    RetryAfter(u16, Duration),
    /// Nothing, for as long as it may.
    Hangs,
}

/// One call of a webhook.
#[derive(Clone, Debug)]
pub struct Posted {
    pub url: String,
    pub notice: Notice,
    pub at: Timestamp,
}

type Script = Arc<dyn Fn(&Posted, usize) -> WebhookAnswer + Send + Sync>;

/// Answers by a script, which gets the call and how often the notice came before.
pub struct ScriptedWebhooks {
    script: Mutex<Script>,
    posted: Mutex<Vec<Posted>>,
}

impl Default for ScriptedWebhooks {
    fn default() -> Self {
        Self { script: Mutex::new(Arc::new(|_, _| WebhookAnswer::Takes)), posted: Mutex::default() }
    }
}

impl ScriptedWebhooks {
    /// Answers by this script from now on, which gets the URL and how often the notice came before.
    pub fn answer(&self, script: impl Fn(&str, usize) -> WebhookAnswer + Send + Sync + 'static) {
        *self.script.lock().unwrap() = Arc::new(move |posted, before| script(&posted.url, before));
    }

    /// The same by a script that gets the notice.
    pub fn answer_to(&self, script: impl Fn(&Notice, usize) -> WebhookAnswer + Send + Sync + 'static) {
        *self.script.lock().unwrap() = Arc::new(move |posted, before| script(&posted.notice, before));
    }

    /// Every call so far.
    pub fn posted(&self) -> Vec<Posted> {
        self.posted.lock().unwrap().clone()
    }

    /// Calls by notice.
    pub fn by_notice(&self) -> BTreeMap<Uuid, usize> {
        let mut calls = BTreeMap::new();
        self.posted().iter().for_each(|posted| *calls.entry(posted.notice.id).or_default() += 1);
        calls
    }
}

impl Webhooks for ScriptedWebhooks {
    fn post<'a>(
        &'a self,
        url: &'a str,
        notice: &'a Notice,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<(), DeliveryError>> {
        let script = self.script.lock().unwrap().clone();
        let before = self.posted.lock().unwrap().iter().filter(|posted| posted.notice.id == notice.id).count();
        let posted = Posted { url: url.to_owned(), notice: notice.clone(), at: now };
        self.posted.lock().unwrap().push(posted.clone());
        let refused = |status, retry_after| {
            let status = StatusCode::from_u16(status).unwrap();
            Err(DeliveryError::Refused { status, retry_after })
        };
        async move {
            match script(&posted, before) {
                WebhookAnswer::Takes => Ok(()),
                WebhookAnswer::TakesAfter(wait) => {
                    tokio::time::sleep(wait).await;
                    Ok(())
                }
                WebhookAnswer::Refuses(status) => refused(status, None),
                WebhookAnswer::RetryAfter(status, wait) => refused(status, Some(wait)),
                WebhookAnswer::Hangs => {
                    tokio::time::sleep(NOTICE_TIMEOUT).await;
                    Err(DeliveryError::Silent("the receiver did not answer".to_owned()))
                }
            }
        }
        .boxed()
    }
}
