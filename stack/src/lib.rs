//! All steps of a stack in one process, each made as its function makes it: for the local runner and for tests.

use std::sync::Arc;

use axum::Router;
use fanfold::config::{ConfigError, Surroundings};
use fanfold::delivery::Step;
use fanfold_ack::Ack;
use fanfold_api::Api;
use fanfold_batch_api::Caller;
use fanfold_elect::Elect;
use fanfold_group::Group;
use fanfold_handle::Handle;
use fanfold_http::with_fallbacks;
use fanfold_notify::{Notify, Webhooks};
use fanfold_produce::{Produce, Sources};
use fanfold_register::Register;
use fanfold_sweep::Sweep;

/// What a stack calls.
#[allow(missing_debug_implementations)]
pub struct Outside {
    /// The batch APIs.
    pub batch_apis: Arc<dyn Caller>,
    /// The receivers of notices.
    pub webhooks: Arc<dyn Webhooks>,
    /// The sources of producers.
    pub sources: Arc<dyn Sources>,
    /// Whether the HTTP API takes policies and producers that name programs or files of this machine.
    pub commands: bool,
    /// Whether each call of a batch API has a message of its own, so that calls end when messages do.
    pub call_by_call: bool,
}

/// Every step.
#[derive(Clone, Debug)]
pub struct Steps {
    /// Routes of their own.
    pub api: Arc<Api>,
    /// Reads sources.
    pub produce: Arc<Produce>,
    /// Stores tasks.
    pub register: Arc<Register>,
    /// Finds who leads a lane.
    pub elect: Arc<Elect>,
    /// Forms batches.
    pub group: Arc<Group>,
    /// Calls batch APIs.
    pub handle: Arc<Handle>,
    /// Clears bits.
    pub ack: Arc<Ack>,
    /// Sends notices.
    pub notify: Arc<Notify>,
    /// Makes lost messages again.
    pub sweep: Arc<Sweep>,
}

impl Steps {
    /// Makes the steps. `surroundings` are those of a function, by its name in template.yaml.
    ///
    /// # Errors
    /// A variable is missing.
    pub fn new(surroundings: impl Fn(&str) -> Surroundings, outside: Outside) -> Result<Self, ConfigError> {
        let Outside { batch_apis, webhooks, sources, commands, call_by_call } = outside;
        let handle = Handle::from_environment(&surroundings("HandleFunction"), batch_apis)?;
        Ok(Self {
            api: Arc::new(Api::from_environment(&surroundings("ApiFunction"))?.allow_commands(commands)),
            produce: Arc::new(Produce::from_environment(&surroundings("ProduceFunction"), sources)?),
            register: Arc::new(Register::from_environment(&surroundings("RegisterFunction"))?),
            elect: Arc::new(Elect::from_environment(&surroundings("ElectFunction"))?),
            group: Arc::new(Group::from_environment(&surroundings("GroupFunction"))?),
            handle: Arc::new(if call_by_call { handle.call_by_call() } else { handle }),
            ack: Arc::new(Ack::from_environment(&surroundings("AckFunction"))?),
            notify: Arc::new(Notify::from_environment(&surroundings("NotifyFunction"), webhooks)?),
            sweep: Arc::new(Sweep::from_environment(&surroundings("SweepFunction"))?),
        })
    }

    /// The step behind the queue of a function, by the function's name in template.yaml. None: the function has no queue.
    #[must_use]
    pub fn behind(&self, function: &str) -> Option<Arc<dyn Step>> {
        Some(match function {
            "ProduceFunction" => Arc::<Produce>::clone(&self.produce),
            "RegisterFunction" => Arc::<Register>::clone(&self.register),
            "ElectFunction" => Arc::<Elect>::clone(&self.elect),
            "GroupFunction" => Arc::<Group>::clone(&self.group),
            "HandleFunction" => Arc::<Handle>::clone(&self.handle),
            "AckFunction" => Arc::<Ack>::clone(&self.ack),
            "NotifyFunction" => Arc::<Notify>::clone(&self.notify),
            _ => return None,
        })
    }

    /// The HTTP API, with the answers for unknown routes and methods.
    pub fn router(&self) -> Router {
        let router = fanfold_api::router(Arc::clone(&self.api));
        let router = router.merge(fanfold_register::router(Arc::clone(&self.register)));
        let router = router.merge(fanfold_handle::router(Arc::clone(&self.handle)));
        with_fallbacks(router.merge(fanfold_ack::router(Arc::clone(&self.ack))))
    }
}
