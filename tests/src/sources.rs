//! Sources that answer as a test says, and remember every question.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fanfold::clock::Timestamp;
use fanfold::producing::Source;
use fanfold_produce::{Asking, SourceAnswer, SourceError, SourceRequest, Sources};
use futures::FutureExt;
use serde_json::{Value, json};

/// One question.
#[derive(Clone, Debug)]
pub struct Asked {
    pub ask: SourceRequest,
    pub at: Timestamp,
}

type Script = Arc<dyn Fn(&SourceRequest) -> Result<Value, SourceError> + Send + Sync>;

/// Answers by a script.
pub struct ScriptedSources {
    script: Mutex<Script>,
    asked: Mutex<Vec<Asked>>,
    takes: Mutex<Duration>,
}

impl Default for ScriptedSources {
    fn default() -> Self {
        Self {
            script: Mutex::new(Arc::new(|_| Ok(json!({"tasks": []})))),
            asked: Mutex::default(),
            takes: Mutex::default(),
        }
    }
}

impl ScriptedSources {
    /// Answers by this script from now on.
    pub fn answer(&self, script: impl Fn(&SourceRequest) -> Result<Value, SourceError> + Send + Sync + 'static) {
        *self.script.lock().unwrap() = Arc::new(script);
    }

    /// Takes so long for each answer from now on.
    pub fn take(&self, time: Duration) {
        *self.takes.lock().unwrap() = time;
    }

    /// Every question so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

impl Sources for ScriptedSources {
    fn ask<'a>(&'a self, _: &'a Source, ask: &'a SourceRequest, now: Timestamp) -> Asking<'a> {
        async move {
            // Others may come between.
            tokio::task::yield_now().await;
            self.asked.lock().unwrap().push(Asked { ask: ask.clone(), at: now });
            let takes = *self.takes.lock().unwrap();
            if !takes.is_zero() {
                tokio::time::sleep(takes).await;
            }
            let script = Arc::clone(&self.script.lock().unwrap());
            script(ask).and_then(|answer| SourceAnswer::read(answer.to_string().as_bytes(), ask))
        }
        .boxed()
    }
}
