//! Scopes and switches, as responses name them.

use fanfold::control::{Scope, Switch, SwitchState, Switched};
use serde::Serialize;

/// A scope, as responses name it.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "Scope"))]
pub(crate) struct ScopeView {
    /// True, if it is everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    all: Option<bool>,
    /// The kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    /// The target, unless it is the whole kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    /// The partition, if it is one lane of the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    partition: Option<u32>,
}

impl ScopeView {
    pub(crate) fn new(scope: &Scope) -> Self {
        Self {
            all: (*scope == Scope::All).then_some(true),
            kind: scope.kind().map(str::to_owned),
            target: scope.target().map(str::to_owned),
            partition: scope.partition(),
        }
    }
}

/// A switch.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "Switch"))]
pub(super) struct SwitchView {
    #[serde(flatten)]
    scope: ScopeView,
    /// `paused`, `draining`, or `resumed`: what waits in the scope is being woken.
    state: SwitchState,
    /// Since when, in milliseconds since 1970.
    since: u64,
}

impl SwitchView {
    pub(super) fn new(scope: &Scope, switch: Switch) -> Self {
        Self { scope: ScopeView::new(scope), state: switch.state, since: switch.since.0 }
    }
}

/// The switch of a scope after a request.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "Switched"))]
pub(super) struct SwitchedView {
    /// The scope's own switch. Absent: it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    switch: Option<SwitchView>,
    /// The scopes that pause all of it, the widest first. Empty: it is not paused as a whole.
    paused_by: Vec<ScopeView>,
}

impl SwitchedView {
    pub(super) fn new(scope: &Scope, switched: Switched) -> Self {
        Self {
            switch: switched.switch.map(|switch| SwitchView::new(scope, switch)),
            paused_by: switched.paused_by.iter().map(ScopeView::new).collect(),
        }
    }
}
