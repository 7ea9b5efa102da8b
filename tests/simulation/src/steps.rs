//! The steps as one worker's process has them.

use std::sync::Arc;

use axum::Router;
use fanfold::config::{ConfigError, Surroundings};
use fanfold::delivery::Step;
use fanfold::store::policies::Policies;
use fanfold::tracking::Tracking;
use fanfold_ack::Ack;
use fanfold_api::Api;
use fanfold_elect::Elect;
use fanfold_group::Group;
use fanfold_handle::Handle;
use fanfold_handle::api::BatchApi;
use fanfold_notify::{Notify, Webhooks};
use fanfold_register::Register;
use fanfold_sweep::Sweep;

/// Every step.
#[derive(Debug)]
pub(crate) struct Steps {
    pub(crate) register: Register,
    pub(crate) elect: Elect,
    pub(crate) group: Group,
    pub(crate) handle: Handle,
    pub(crate) ack: Ack,
    pub(crate) notify: Notify,
    pub(crate) sweep: Sweep,
    /// What the step `api` works with.
    pub(crate) tracking: Tracking,
    /// Where the step `api` puts policies.
    pub(crate) policies: Policies,
    /// The routes of the step `api`.
    pub(crate) routes: Router,
}

impl Steps {
    pub(crate) fn new(
        surroundings: &Surroundings,
        api: Arc<dyn BatchApi>,
        webhooks: Arc<dyn Webhooks>,
    ) -> Result<Self, ConfigError> {
        Ok(Self {
            register: Register::from_environment(surroundings)?,
            elect: Elect::from_environment(surroundings)?,
            group: Group::from_environment(surroundings)?,
            handle: Handle::from_environment(surroundings, api)?,
            ack: Ack::from_environment(surroundings)?,
            notify: Notify::from_environment(surroundings, webhooks)?,
            sweep: Sweep::from_environment(surroundings)?,
            tracking: Tracking::from_environment(surroundings)?,
            policies: Policies::new(surroundings.table("POLICIES_TABLE")?, surroundings.world.clone()),
            routes: fanfold_api::router(Arc::new(Api::from_environment(surroundings)?)),
        })
    }

    /// The step behind a queue, and its name.
    pub(crate) fn behind(&self, queue: &str) -> &dyn Step {
        match queue {
            "RegisterQueue" => &self.register,
            "ElectQueue" => &self.elect,
            "GroupQueue" => &self.group,
            "HandleQueue" => &self.handle,
            "AckQueue" => &self.ack,
            _ => &self.notify,
        }
    }
}

/// The name of the step behind a queue.
pub(crate) fn step_name(queue: &str) -> &'static str {
    match queue {
        "RegisterQueue" => "register",
        "ElectQueue" => "elect",
        "GroupQueue" => "group",
        "HandleQueue" => "handle",
        "AckQueue" => "ack",
        _ => "notify",
    }
}
