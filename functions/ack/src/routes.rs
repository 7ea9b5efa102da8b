//! `POST /acks`, and the other route of this function.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::extract::State;
use axum::{Router, routing};
use fanfold::ids::GroupId;
use fanfold::limits::{GROUPS_PER_ACK_MAX, REFUSED_RANGES_NAMED_MAX};
use fanfold::messages::AckRequest;
use fanfold::policy::FieldError;
use fanfold::store::fanouts::FanoutState;
use fanfold::store::groups::Mask;
use fanfold::tracking::{Acks, Refusal, TrackingError, collect};
use fanfold_http::{Code, Json, Problem};
use serde::Serialize;
use uuid::Uuid;

use crate::{Ack, counts};

/// The routes of this function, without fallbacks: see [`fanfold_http::with_fallbacks`].
pub fn router(ack: Arc<Ack>) -> Router {
    Router::new().route("/acks", routing::post(apply)).merge(counts::router()).with_state(ack)
}

/// Describes the routes of this function.
#[cfg(feature = "openapi")]
pub fn describe(describer: &mut fanfold_http::openapi::Describer) {
    describer
        .operation("POST", "/acks", "ackItems", "Acks items: reports them as done")
        .says(
            "Entries are item ids, ranges or bitfields. An item may be acked more than once: it counts once. The response has \
             the state of each fan-out, and lists exactly the items that were refused, because they do not exist. If all were \
             refused, the response is a problem.",
        )
        .body::<AckRequest>()
        .returns::<AckAnswer>("The acks were applied, except those that `refused` lists.")
        .problem(Code::InvalidAcks)
        .end();
    counts::describe(describer);
}

/// The result of acks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct AckAnswer {
    /// The fan-outs with their new states.
    pub fanouts: Vec<FanoutAnswer>,
    /// The items that were refused, because they do not exist, by group.
    pub refused: Vec<RefusedItems>,
    /// Whether there was something to ack, and all of it was refused.
    #[serde(skip)]
    pub nothing: bool,
}

/// A fan-out after an ack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct FanoutAnswer {
    /// Its id.
    pub id: Uuid,
    /// Its state.
    pub state: FanoutState,
    /// Whether it is sealed and every item was acked.
    pub complete: bool,
    /// Whether it has ended and all its counts are final.
    pub ended: bool,
    /// The user's own name for it.
    pub user_key: Option<String>,
}

/// Items of a group whose acks were refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct RefusedItems {
    /// The fan-out.
    pub fanout: Uuid,
    /// The item group.
    pub group: Uuid,
    /// The items: indices, and ranges of them with both ends included (`7-9`).
    #[cfg_attr(feature = "openapi", schemars(schema_with = "fanfold::openapi::indices"))]
    pub items: Vec<String>,
    /// How many more items were refused, beyond the ranges that `items` names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more: Option<u64>,
    /// Why.
    pub problem: String,
}

impl RefusedItems {
    fn of((&(fanout, group), Refusal { problem, items }): (&(Uuid, Uuid), &Refusal)) -> Self {
        let run = |(first, last)| if first == last { format!("{first}") } else { format!("{first}-{last}") };
        let unnamed = items.runs().skip(REFUSED_RANGES_NAMED_MAX).map(|(first, last)| (last - first) as u64 + 1).sum();
        let named = items.runs().take(REFUSED_RANGES_NAMED_MAX).map(run).collect();
        let more = (unnamed > 0).then_some(unnamed);
        Self { fanout, group, items: named, more, problem: problem.to_string() }
    }
}

impl Ack {
    /// Applies the acks of a request and returns how the fan-outs stand.
    ///
    /// # Errors
    /// The tables cannot be read or written, or a hint not sent. Repeating the request is safe.
    pub async fn apply(&self, request: &AckRequest) -> Result<AckAnswer, TrackingError> {
        let mut acks = Acks::new();
        collect(&mut acks, request);
        let refused = self.tracking.ack(&acks).await?;
        let names: BTreeSet<Uuid> = acks.keys().map(|(fanout, _)| *fanout).collect();
        let names: Vec<Uuid> = names.into_iter().collect();
        let (mut fanouts, mut estimated) = (Vec::with_capacity(names.len()), BTreeSet::new());
        for fanout in self.tracking.fanouts.get_many(&names).await? {
            let (id, complete, ended) = (fanout.id, fanout.complete(), fanout.ended());
            estimated.extend(fanout.estimated().then_some(id));
            fanouts.push(FanoutAnswer { id, state: fanout.state, complete, ended, user_key: fanout.user_key });
        }
        fanouts.sort_by_key(|fanout: &FanoutAnswer| fanout.id);
        let all = |(name, mask): (_, &Mask)| refused.get(name).is_some_and(|refusal| refusal.items == mask.done);
        let nothing = !acks.is_empty() && acks.iter().all(all);
        let mut refused: Vec<RefusedItems> = refused.iter().map(RefusedItems::of).collect();
        for items in refused.iter_mut().filter(|items| estimated.contains(&items.fanout)) {
            items.problem = TrackingError::Estimated(items.fanout).to_string();
        }
        Ok(AckAnswer { fanouts, refused, nothing })
    }
}

/// If anything was applied, the answer lists what was refused; if nothing was, it is a problem.
async fn apply(State(ack): State<Arc<Ack>>, Json(request): Json<AckRequest>) -> Result<Json<AckAnswer>, Problem> {
    let own = [("batch", request.batch.is_some()), ("gathered", request.gathered > 0)];
    if let Some((field, _)) = own.into_iter().find(|(_, is_there)| *is_there) {
        let problem = "is for Fanfold's own messages, `items`, `failed` and `duplicates` are allowed".to_owned();
        return Err(Problem::fields(Code::InvalidBody, vec![FieldError { field: field.to_owned(), problem }]));
    }
    if let Some(field) = one_too_many(&request) {
        let problem = format!("names one item group too many, {GROUPS_PER_ACK_MAX} are allowed per request");
        return Err(Problem::fields(Code::InvalidBody, vec![FieldError { field, problem }]));
    }
    let answer = ack.apply(&request).await?;
    if answer.nothing {
        return Err(Problem::fields(Code::InvalidAcks, faults(&request, &answer.refused)));
    }
    Ok(Json(answer))
}

/// The entry with which a request names too many groups.
fn one_too_many(request: &AckRequest) -> Option<String> {
    let mut groups = BTreeSet::new();
    let mut entries = request.all();
    entries.find_map(|(field, at, entry)| {
        groups.insert(entry.group());
        (groups.len() > GROUPS_PER_ACK_MAX).then(|| format!("{field}[{at}]"))
    })
}

/// One fault per refused group, at the first entry that names items of it; the problem names fan-out and group.
fn faults(request: &AckRequest, refused: &[RefusedItems]) -> Vec<FieldError> {
    let mut first: BTreeMap<GroupId, String> = BTreeMap::new();
    for (field, at, entry) in request.all() {
        first.entry(entry.group()).or_insert_with(|| format!("{field}[{at}]"));
    }
    let fault = |RefusedItems { fanout, group, problem, .. }: &RefusedItems| FieldError {
        field: first.get(&GroupId { fanout: *fanout, group: *group }).cloned().unwrap_or_default(),
        problem: problem.clone(),
    };
    refused.iter().map(fault).collect()
}
