//! Reissuing: the failed items of a fan-out that has ended as a new one, which a producer fills from the old one's records.

mod contents;
mod rest;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU16;

use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use self::contents::check_contents;
pub use self::rest::ReissuePlace;
use super::{Producer, Producing, Reissue, Source};
use crate::aws::{QueueError, StoreError};
use crate::ids::{ItemId, derived};
use crate::limits::{CORRECTED_MAX, PAGE_BYTES_MAX, REISSUE_MAX_BATCH};
use crate::messages::ProduceMessage;
use crate::policy::FieldError;
use crate::registering::Registrar;
use crate::store::fanouts::{Fanout, FanoutState, Then, Tolerance};
use crate::store::producers::CorrectedContents;
use crate::store::tasks::Tasks;
use crate::tracking::{ItemState, OpenRequest, Opened, Progress, Tracking, TrackingError};

/// Which items a request to reissue is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReissuedItems {
    /// Those that failed: their tasks are registered again, as items of a new fan-out.
    #[default]
    Failed,
    /// Those that are not done: what waits for a message gets another one.
    Outstanding,
}

/// A request to reissue items of a fan-out.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReissueRequest {
    /// Which items. The other fields are for those that failed.
    #[serde(default)]
    pub items: ReissuedItems,
    /// Whether items that were missing at its end are reissued, too: those whose tasks were not called, because it was cut short.
    #[serde(default)]
    pub missing: bool,
    /// How many members a batch with one of these tasks may have, if fewer than the policy says. With 1 each is called alone.
    #[cfg_attr(feature = "openapi", schemars(range(min = 1, max = REISSUE_MAX_BATCH)))]
    #[serde(default, deserialize_with = "crate::whole::optional_u32")]
    pub max_batch: Option<u32>,
    /// Corrected contents of some of the items.
    #[cfg_attr(feature = "openapi", schemars(length(max = CORRECTED_MAX)))]
    #[serde(default)]
    pub contents: Vec<Corrected>,
    /// Whether to reissue them although they were reissued before, even those that succeeded since.
    #[serde(default)]
    pub again: bool,
}

/// The corrected content of an item.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "CorrectedContent"))]
#[serde(deny_unknown_fields)]
pub struct Corrected {
    /// The item, of the fan-out that is reissued.
    pub id: ItemId,
    /// The content that the batch API receives instead.
    pub content: Value,
}

/// A fan-out could not be reissued.
#[derive(Debug, thiserror::Error)]
pub enum ReissueError {
    /// It has not ended: more of its items may fail.
    #[error("fan-out {id} is {} and has not ended; its failed items can be reissued when it has", state.as_str())]
    NotEnded {
        /// The fan-out.
        id: Uuid,
        /// Its state.
        state: FanoutState,
    },
    /// There is nothing to reissue.
    #[error("fan-out {id} has no failed items{}", if *.missing > 0 { format!("; {} are missing, which `missing` reissues, too", .missing) } else { String::new() })]
    Nothing {
        /// The fan-out.
        id: Uuid,
        /// Missing items that were not asked for.
        missing: u64,
    },
    /// It was reissued before.
    #[error(
        "fan-out {id} was reissued as {latest}: reissue that one, or set `again` to call all failed items of {id} again, even those that succeeded there"
    )]
    Reissued {
        /// The fan-out.
        id: Uuid,
        /// Its latest reissue.
        latest: Uuid,
    },
    /// Fields of the request are wrong.
    #[error("{} fields cannot be used", .0.len())]
    Fields(Vec<FieldError>),
    /// The new fan-out could not be opened.
    #[error(transparent)]
    Tracking(#[from] TrackingError),
    /// A table could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A message could not be sent. It is made again by a sweep.
    #[error(transparent)]
    Queue(#[from] QueueError),
}

impl Reissue {
    /// The states of the items that are reissued.
    #[must_use]
    pub fn states(&self) -> &'static [ItemState] {
        if self.missing { &[ItemState::Failed, ItemState::Missing] } else { &[ItemState::Failed] }
    }

    /// How many items of the fan-out, which has ended, that are, with those that an earlier reissue had taken on.
    #[must_use]
    pub fn count(&self, old: &Fanout) -> u64 {
        let Progress { failed, missing, .. } = Progress::of_header(old);
        failed + if self.missing { missing } else { 0 }
    }

    /// Whether a request for that source may have led to this one. What an earlier reissue had taken on is not asked for.
    fn is_asked_for_by(&self, source: &Self) -> bool {
        Self { taken_on: None, ..self.clone() } == *source
    }
}

impl ReissueRequest {
    fn limits(&self) -> Result<(), ReissueError> {
        let mut errors = Vec::new();
        let mut add = |field: &str, problem: String| errors.push(FieldError { field: field.to_owned(), problem });
        if let Some(most) = self.max_batch.filter(|most| !(1..=u32::from(REISSUE_MAX_BATCH)).contains(most)) {
            add("max_batch", format!("is {most}, 1 to {REISSUE_MAX_BATCH} is allowed"));
        }
        if self.contents.len() > CORRECTED_MAX {
            add("contents", format!("has {} items, at most {CORRECTED_MAX} are allowed", self.contents.len()));
        }
        let mut seen = BTreeSet::new();
        for (at, corrected) in self.contents.iter().enumerate().filter(|(_, corrected)| !seen.insert(corrected.id)) {
            add(&format!("contents[{at}].id"), format!("`{}` is named twice", corrected.id));
        }
        if let Some(bytes) = self.corrected().too_large() {
            let problem = format!("takes {bytes} bytes compressed, at most {PAGE_BYTES_MAX} are allowed");
            add("contents", problem);
        }
        if errors.is_empty() { Ok(()) } else { Err(ReissueError::Fields(errors)) }
    }

    /// Checks that nothing is said that concerns failed items only.
    ///
    /// # Errors
    /// Something is.
    pub fn only_wakes(&self) -> Result<(), ReissueError> {
        let given = [
            ("missing", self.missing),
            ("max_batch", self.max_batch.is_some()),
            ("contents", !self.contents.is_empty()),
            ("again", self.again),
        ];
        let problem = "is not allowed with `items` `outstanding`: outstanding tasks stay as they are";
        let error = |(field, _): (&str, bool)| FieldError { field: field.to_owned(), problem: problem.to_owned() };
        let errors: Vec<FieldError> = given.into_iter().filter(|(_, given)| *given).map(error).collect();
        if errors.is_empty() { Ok(()) } else { Err(ReissueError::Fields(errors)) }
    }

    fn corrected(&self) -> CorrectedContents {
        let contents: BTreeMap<ItemId, Value> =
            self.contents.iter().map(|corrected| (corrected.id, corrected.content.clone())).collect();
        CorrectedContents { contents }
    }

    /// The source that it asks for.
    fn source(&self, fanout: Uuid) -> Reissue {
        let max_batch = self.max_batch.and_then(|most| NonZeroU16::new(u16::try_from(most).unwrap_or(u16::MAX)));
        let contents = (!self.contents.is_empty()).then(|| self.corrected().digest());
        Reissue { fanout, missing: self.missing, max_batch, contents, taken_on: None }
    }
}

impl Producing {
    /// Reissues the failed items of a fan-out that has ended as a new one. One transaction opens it with its partition, keeps
    /// corrected contents, and links the old one to it. Then the partition's message is sent; `sweep` sends a lost one again.
    /// Repeated under an idempotency key, the request gives the same fan-out.
    ///
    /// # Errors
    /// The fan-out cannot be reissued so, or tables and queues cannot be reached.
    pub async fn reissue(
        &self,
        (tracking, registrar, tasks): (&Tracking, &Registrar, &Tasks),
        of: Uuid,
        request: &ReissueRequest,
        key: Option<&str>,
    ) -> Result<Opened, ReissueError> {
        request.limits()?;
        let source = request.source(of);
        let old = tracking.fanouts.get(of).await?;
        // A repetition is answered as the first call was, whatever became of the old fan-out. That one is read first: otherwise
        // its link might already name the fan-out that another worker opened for this same request.
        if let Some(key) = key
            && let Some(fanout) = tracking.fanouts.get(derived::fanout(key)).await?
        {
            return repeated(fanout, &source);
        }
        let old = old.ok_or(TrackingError::UnknownFanout(of))?;
        reissuable(&old, &source)?;
        let source = if request.again { source } else { self.rest(tracking, &old, source).await? };
        check_contents((tracking, registrar, tasks), &old, &source, &request.contents).await?;
        let corrected = request.corrected();
        let also = |id: Uuid| {
            let mut actions = self.producers.insert_actions(id, 1)?;
            if source.contents.is_some() {
                actions.push(self.producers.correct_action(id, &corrected)?);
            }
            actions.push(tracking.fanouts.reissue_action(&old, id)?);
            Ok(actions)
        };
        let (new, request) = (tracking.new_fanout(key), open_request(&old, source.clone()));
        tracking.check_open(&request, new).await?;
        let opened = match tracking.open_checked(request, new, also).await {
            Err(error @ (TrackingError::Store(StoreError::Contended { .. }) | TrackingError::KeyReused(_))) => {
                return Err(overtaken(tracking, &old, new.id, error).await?);
            }
            opened => opened?,
        };
        if opened.new {
            self.send_all([ProduceMessage::to(opened.fanout.id, 0)]).await?;
        }
        Ok(opened)
    }
}

/// The fan-out that an earlier request under the same key opened.
fn repeated(fanout: Fanout, source: &Reissue) -> Result<Opened, ReissueError> {
    match fanout.producer.as_ref().map(|producer| &producer.source) {
        Some(Source::Reissue(before)) if before.is_asked_for_by(source) => {
            Ok(Opened { fanout, groups: Vec::new(), new: false })
        }
        _ => Err(TrackingError::KeyReused("it opened another fan-out".to_owned()).into()),
    }
}

/// Of several requests at once, one is fulfilled: the error that the others return. `error`: why `new` was not opened.
async fn overtaken(
    tracking: &Tracking,
    old: &Fanout,
    new: Uuid,
    error: TrackingError,
) -> Result<ReissueError, ReissueError> {
    let now = tracking.fanouts.get(old.id).await?.ok_or(TrackingError::UnknownFanout(old.id))?;
    Ok(match now.reissued_as.filter(|latest| now.reissued_as != old.reissued_as && *latest != new) {
        Some(latest) => ReissueError::Reissued { id: old.id, latest },
        None => error.into(),
    })
}

fn reissuable(old: &Fanout, source: &Reissue) -> Result<(), ReissueError> {
    let id = old.id;
    if old.estimated() {
        return Err(TrackingError::Estimated(id).into());
    }
    if !old.ended() {
        return Err(ReissueError::NotEnded { id, state: old.state });
    }
    if source.count(old) == 0 {
        return Err(ReissueError::Nothing { id, missing: Progress::of_header(old).missing });
    }
    Ok(())
}

/// The new fan-out is reported as the old one was, unless that receiver can be answered only once.
fn open_request(old: &Fanout, source: Reissue) -> OpenRequest {
    let notify = old.notify.clone().filter(|notify| notify.waits().is_none());
    let notify_on = notify.as_ref().map(|_| old.notice_facts.on.clone());
    let producer = Producer {
        source: Source::Reissue(source),
        partitions: 1,
        key: None,
        // Items that cannot be reissued are counted and named. They hold up no other.
        tolerated_bad_rows: Some(Tolerance::ALL),
    };
    let (user_key, idle_limit) = (old.user_key.clone(), Some(old.idle_limit));
    // A task that gets the results of all parts is due again, once the failed ones are done again. The item that the first one may
    // have been has its outcome.
    let then = old.then.as_ref().filter(|then| then.results).map(|then| Then { id: None, ..then.clone() });
    OpenRequest { user_key, notify, notify_on, idle_limit, then, producer: Some(producer), ..OpenRequest::default() }
}
