//! A batch API that does what a test says, and remembers every call.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fanfold::policy::BatchApi;
use fanfold_batch_api::{Accepted, Answer, Call, CallError, Caller, Calling, Cause, Request};
use futures::FutureExt;
use tokio::time::Instant;

use crate::dev;

/// One call as the batch API saw it.
#[derive(Clone, Debug)]
pub struct Seen {
    pub key: String,
    pub call: Call,
    pub body: String,
    /// The token of outcomes that come later.
    pub token: Option<String>,
    /// The queue of the dev session that it went to.
    pub dev: Option<String>,
    /// When it came, and until when the batch API works on it, whether anybody waits for that or not.
    pub at: Instant,
    pub until: Instant,
}

type Script = Box<dyn Fn(&Call) -> Result<Answer, CallError> + Send + Sync>;

/// Answers who asks for the answer to a call; with the address, and how often it was asked for before.
type Polled = Box<dyn Fn(&Call, &str, usize) -> Result<Answer, CallError> + Send + Sync>;

/// Answers by a script.
pub struct ScriptedApi {
    script: Script,
    takes: Box<dyn Fn(&Call) -> Duration + Send + Sync>,
    seen: Mutex<Vec<Seen>>,
    polled: Polled,
    asked: Mutex<Vec<Instant>>,
}

impl ScriptedApi {
    pub fn new(script: impl Fn(&Call) -> Result<Answer, CallError> + Send + Sync + 'static) -> Arc<Self> {
        Self::slow(|_| Duration::ZERO, script)
    }

    /// One that works on each call for some time before it answers, or hangs up at the policy's `timeout`.
    pub fn slow(
        takes: impl Fn(&Call) -> Duration + Send + Sync + 'static,
        script: impl Fn(&Call) -> Result<Answer, CallError> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self::made(Box::new(takes), Box::new(script)))
    }

    fn made(takes: Box<dyn Fn(&Call) -> Duration + Send + Sync>, script: Script) -> Self {
        let polled = |_: &Call, _: &str, _| Err(CallError::new(Cause::Status(404), "there is no such job"));
        Self { script, takes, seen: Mutex::default(), polled: Box::new(polled), asked: Mutex::default() }
    }

    /// One that answers later, to who asks for the answer.
    pub fn polled(
        script: impl Fn(&Call) -> Result<Answer, CallError> + Send + Sync + 'static,
        polled: impl Fn(&Call, &str, usize) -> Result<Answer, CallError> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self { polled: Box::new(polled), ..Self::made(Box::new(|_| Duration::ZERO), Box::new(script)) })
    }

    /// One that answers every call later.
    pub fn answers_later() -> Arc<Self> {
        Self::new(|_| Ok(Answer::Later(Accepted::default())))
    }

    /// When it was asked for answers.
    pub fn asked(&self) -> Vec<Instant> {
        self.asked.lock().unwrap().clone()
    }

    /// The most calls it ever worked on at once, of those that `which` names.
    pub fn most_at_once(&self, which: impl Fn(&Call) -> bool) -> usize {
        let seen: Vec<Seen> = self.seen().into_iter().filter(|seen| which(&seen.call)).collect();
        let at_work = |at: Instant| seen.iter().filter(|seen| seen.at <= at && at < seen.until).count();
        seen.iter().map(|seen| at_work(seen.at)).max().unwrap_or(0)
    }

    /// One that answers with a status, which the test may change; 200 does the batch.
    pub fn answering(status: u16) -> (Arc<AtomicU16>, Arc<Self>) {
        let status = Arc::new(AtomicU16::new(status));
        let answers = Arc::clone(&status);
        let api = Self::new(move |_| match answers.load(Ordering::Relaxed) {
            200 => Ok(Answer::AllSucceeded),
            status => Err(CallError::new(Cause::Status(status), format!("the batch API answered {status}"))),
        });
        (status, api)
    }

    pub fn always_succeeds() -> Arc<Self> {
        Self::new(|_| Ok(Answer::AllSucceeded))
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Members by idempotency key. Panics if one key came with different bytes: a batch API could refuse that.
    pub fn members_by_key(&self) -> BTreeMap<String, Vec<String>> {
        let mut calls: BTreeMap<String, Seen> = BTreeMap::new();
        for seen in self.seen() {
            let known = calls.entry(seen.key.clone()).or_insert_with(|| seen.clone());
            assert_eq!(known.body, seen.body, "key {} came with different bytes", seen.key);
        }
        let members = |seen: Seen| seen.call.members.iter().map(|member| member.id.to_string()).collect();
        calls.into_iter().map(|(key, seen)| (key, members(seen))).collect()
    }
}

impl Caller for ScriptedApi {
    fn call<'a>(&'a self, batch_api: &'a BatchApi, request: Request<'a>) -> Calling<'a> {
        async move {
            let Request { call, key, body, token, .. } = request;
            let (at, takes) = (Instant::now(), (self.takes)(call));
            let until = at + takes;
            let body = String::from_utf8(body).unwrap();
            let dev = dev::queue(batch_api);
            self.seen.lock().unwrap().push(Seen { key, call: call.clone(), body, token, dev: dev.clone(), at, until });
            if let Some(queue) = dev {
                return dev::sent(&queue);
            }
            if takes > batch_api.timeout.0 {
                tokio::time::sleep(batch_api.timeout.0).await;
                return Err(CallError::new(Cause::Silence, "no answer in time"));
            }
            if !takes.is_zero() {
                tokio::time::sleep(takes).await;
            }
            (self.script)(call)
        }
        .boxed()
    }

    fn poll<'a>(&'a self, _: &'a BatchApi, url: &'a str, request: Request<'a>) -> Calling<'a> {
        async move {
            let mut asked = self.asked.lock().unwrap();
            asked.push(Instant::now());
            (self.polled)(request.call, url, asked.len() - 1)
        }
        .boxed()
    }
}
