//! The task that follows the end of a fan-out: whether it could be registered as things stand.

use fanfold::aws::StoreError;
use fanfold::item_results::ItemResults;
use fanfold::notice::FanoutEnded;
use fanfold::policy::{CompiledPolicy, FieldError, Policy, is_kind, unknown_kind};
use fanfold::store::fanouts::{FanoutState, Then};
use fanfold::tracking::OpenRequest;
use uuid::Uuid;

use crate::Api;

/// Why the task of a request could not be registered, if it could not. Its policy may change before the fan-out ends.
pub(super) async fn refusal(api: &Api, request: &OpenRequest) -> Result<Option<FieldError>, StoreError> {
    let Some(then) = &request.then else { return Ok(None) };
    // What cannot be a kind cannot be looked up.
    let policy = if is_kind(&then.kind) { api.policies.get(&then.kind).await? } else { None };
    let refused = assign(then, policy.as_deref(), &sample(request)).err();
    Ok(refused.map(|(field, problem)| FieldError { field: format!("then.{field}"), problem }))
}

/// Tries to assign the task to its lane as if the fan-out had ended so.
fn assign(then: &Then, policy: Option<&Policy>, end: &FanoutEnded) -> Result<(), (&'static str, String)> {
    let policy = policy.ok_or_else(|| ("kind", unknown_kind(&then.kind)))?;
    let compiled = CompiledPolicy::new(policy.clone()).map_err(|error| ("kind", error.to_string()))?;
    // What will become of the items is not known.
    let task = then.request(end, then.results.then(|| ItemResults::All(Vec::new())));
    let assigned = compiled.assign(&task.content, &then.task(end.fanout).to_string());
    assigned
        .map(|_| ())
        .map_err(|(of, error)| ("content", format!("gives no usable `{of}` by the policy of its kind: {error}")))
}

/// An end that the fan-out may come to.
fn sample(request: &OpenRequest) -> FanoutEnded {
    FanoutEnded {
        fanout: Uuid::nil(),
        user_key: request.user_key.clone(),
        state: FanoutState::Completed,
        mode: request.mode,
        total: u64::from(request.opens_with()),
        succeeded: u64::from(request.opens_with()),
        failed: 0,
        duplicates: 0,
        missing: 0,
        missing_items: None,
        opened_at: 1,
        ended_at: 1,
    }
}
