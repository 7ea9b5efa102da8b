//! A batch API that does what a test says, and remembers every call.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use fanfold::policy::Handler;
use fanfold_handle::api::{Answer, BatchApi, Call, CallError};
use futures::FutureExt;
use futures::future::BoxFuture;

/// One call as the batch API saw it.
#[derive(Clone, Debug)]
pub struct Seen {
    pub key: String,
    pub call: Call,
}

type Script = Box<dyn Fn(&Call) -> Result<Answer, CallError> + Send + Sync>;

/// Answers by a script.
pub struct ScriptedApi {
    script: Script,
    seen: Mutex<Vec<Seen>>,
}

impl ScriptedApi {
    pub fn new(script: impl Fn(&Call) -> Result<Answer, CallError> + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { script: Box::new(script), seen: Mutex::default() })
    }

    pub fn always_succeeds() -> Arc<Self> {
        Self::new(|_| Ok(Answer::AllSucceeded))
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Members by idempotency key. Panics if one key was used for different members: a batch API could not recognise it.
    pub fn members_by_key(&self) -> BTreeMap<String, Vec<String>> {
        let mut calls: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for seen in self.seen() {
            let members: Vec<String> = seen.call.members.iter().map(|member| member.id.to_string()).collect();
            let known = calls.entry(seen.key.clone()).or_insert_with(|| members.clone());
            assert_eq!(known, &members, "key {} was used for different members", seen.key);
        }
        calls
    }
}

impl BatchApi for ScriptedApi {
    fn call<'a>(&'a self, _: &'a Handler, key: &'a str, call: &'a Call) -> BoxFuture<'a, Result<Answer, CallError>> {
        self.seen.lock().unwrap().push(Seen { key: key.to_owned(), call: call.clone() });
        let answer = (self.script)(call);
        async move { answer }.boxed()
    }
}
