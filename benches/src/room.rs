//! A stack on the embedded engine whose steps a bench chooses.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use fanfold::clock::World;
use fanfold::config::Surroundings;
use fanfold::delivery::Step;
use fanfold_local::{Engine, Invocations, Pump, PumpHandle, Template};

use crate::Outcome;

/// Between two looks at the queues.
const LOOK: Duration = Duration::from_millis(20);

/// An event source that is not as the template says.
#[derive(Clone, Debug)]
pub(crate) struct Tuned {
    function: String,
    batch_size: usize,
    window: Duration,
}

impl FromStr for Tuned {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            let (function, tuned) = text.split_once('=')?;
            let (batch_size, window) = tuned.split_once(',')?;
            let window = Duration::from_secs(window.parse().ok()?);
            Some(Self { function: function.to_owned(), batch_size: batch_size.parse().ok()?, window })
        };
        read().ok_or_else(|| format!("`{text}` is not like `ElectFunction=10,0`"))
    }
}

/// Tables and queues, and the steps at work in them.
pub(crate) struct Room {
    pub(crate) engine: Engine,
    pub(crate) template: Template,
    pumps: Vec<PumpHandle>,
    tuned: Vec<Tuned>,
}

impl Room {
    /// What a template describes but for some event sources, in memory; no step works yet.
    pub(crate) async fn new(template: &str, tuned: &[Tuned]) -> Outcome<Self> {
        let template = Template::parse(template)?;
        let engine = Engine::memory()?;
        engine.provision(&template).await?;
        Ok(Self { engine, template, pumps: Vec::new(), tuned: tuned.to_vec() })
    }

    /// What a function of the template is made of.
    pub(crate) fn surroundings(&self, function: &str) -> Surroundings {
        let variables = self.template.environment(function).unwrap_or_default();
        let look_up = move |name: &str| variables.get(name).cloned();
        // By the SDK, as the simpler algorithms.
        Surroundings::new(self.engine.dynamodb(), self.engine.sqs(), World::system(), look_up)
    }

    /// The URL of a queue.
    pub(crate) fn queue(&self, name: &str) -> Outcome<String> {
        Ok(self.template.queue(name).ok_or_else(|| format!("the template has no queue {name}"))?.url())
    }

    /// Sets a step to work behind the queue of a function.
    pub(crate) fn start(&mut self, function: &str, step: Arc<dyn Step>) -> Outcome<()> {
        let mut sources = self.template.event_sources().iter();
        let source = sources.find(|source| source.function == function);
        let mut source = source.ok_or_else(|| format!("the template has no event source of {function}"))?.clone();
        for tuned in self.tuned.iter().filter(|tuned| tuned.function == function) {
            (source.batch_size, source.window) = (tuned.batch_size, tuned.window);
        }
        self.pumps.push(Pump::start(self.engine.sqs(), source, step));
        Ok(())
    }

    /// Waits until no queue that a step works on has a message, not even a delayed one.
    pub(crate) async fn silent(&self) -> Outcome<()> {
        loop {
            let mut messages = 0;
            for pump in &self.pumps {
                let sources = self.template.event_sources().iter();
                for source in sources.filter(|source| source.function == pump.function()) {
                    messages += self.engine.backlog(&source.queue_url).await?.total();
                }
                messages += pump.running() as u64;
            }
            if messages == 0 {
                return Ok(());
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// What was invoked so far, by function.
    pub(crate) fn invocations(&self) -> BTreeMap<String, Invocations> {
        self.pumps.iter().map(|pump| (pump.function().to_owned(), pump.invocations())).collect()
    }
}
