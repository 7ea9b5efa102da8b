//! The steps as one worker's process has them.

use std::sync::{Arc, OnceLock};

use axum::Router;
use fanfold::config::{ConfigError, Surroundings};
use fanfold::control::{Cancelling, Control};
use fanfold::delivery::Step;
use fanfold::producing::Producing;
use fanfold::registering::Registrar;
use fanfold::store::policies::Policies;
use fanfold::store::tasks::Tasks;
use fanfold::tracking::{Gathering, Tracking};
use fanfold_ack::Ack;
use fanfold_batch_api::Caller;
use fanfold_notify::Webhooks;
use fanfold_produce::Sources;
use fanfold_stack::Outside;

/// Every step, and what is beside them.
#[derive(Debug)]
pub(crate) struct Steps {
    pub(crate) all: fanfold_stack::Steps,
    /// What the step `api` works with.
    pub(crate) tracking: Tracking,
    pub(crate) producing: Producing,
    pub(crate) registrar: Registrar,
    pub(crate) tasks: Tasks,
    /// Where the step `api` puts policies.
    pub(crate) policies: Policies,
    /// What an operator works with.
    pub(crate) control: Control,
    pub(crate) cancelling: Cancelling,
    /// What they are made from: small cases use further stores.
    pub(crate) surroundings: Surroundings,
    /// The routes of the step `api`: most workers need none, and building them takes longest.
    routes: OnceLock<Router>,
}

impl Steps {
    pub(crate) fn new(
        surroundings: &Surroundings,
        batch_apis: Arc<dyn Caller>,
        webhooks: Arc<dyn Webhooks>,
        sources: Arc<dyn Sources>,
        gathering: Option<Gathering>,
    ) -> Result<Self, ConfigError> {
        let outside = Outside { batch_apis, webhooks, sources, commands: false, call_by_call: false };
        let mut all = fanfold_stack::Steps::new(|_| surroundings.clone(), outside)?;
        if let Some(gathering) = gathering {
            all.ack = Arc::new(Ack::from_environment(surroundings)?.gathering(gathering));
        }
        Ok(Self {
            tracking: Tracking::from_environment(surroundings)?,
            producing: Producing::from_environment(surroundings)?,
            registrar: Registrar::from_environment(surroundings)?,
            tasks: Tasks::new(surroundings.table("TASKS_TABLE")?),
            policies: Policies::new(surroundings.table("POLICIES_TABLE")?),
            control: Control::from_environment(surroundings)?,
            cancelling: Cancelling::from_environment(surroundings)?,
            surroundings: surroundings.clone(),
            routes: OnceLock::new(),
            all,
        })
    }

    /// The routes of the step `api`.
    pub(crate) fn routes(&self) -> Router {
        self.routes.get_or_init(|| fanfold_api::router(Arc::clone(&self.all.api))).clone()
    }

    /// The step behind a queue, and its name.
    pub(crate) fn behind(&self, queue: &str) -> &dyn Step {
        match queue {
            "ProduceQueue" => &*self.all.produce,
            "RegisterQueue" => &*self.all.register,
            "ElectQueue" => &*self.all.elect,
            "GroupQueue" => &*self.all.group,
            "HandleQueue" => &*self.all.handle,
            "AckQueue" => &*self.all.ack,
            _ => &*self.all.notify,
        }
    }
}

/// The name of the step behind a queue.
pub(crate) fn step_name(queue: &str) -> &'static str {
    match queue {
        "ProduceQueue" => "produce",
        "RegisterQueue" => "register",
        "ElectQueue" => "elect",
        "GroupQueue" => "group",
        "HandleQueue" => "handle",
        "AckQueue" => "ack",
        _ => "notify",
    }
}
