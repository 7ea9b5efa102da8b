//! The beginning of an attempt: its members are read, and everything that may hinder its call is asked for once more.

use std::collections::BTreeSet;

use fanfold::aws::{StoreError, Write};
use fanfold::clock::Timestamp;
use fanfold::ids::TaskId;
use fanfold::limits::{CALL_AHEAD, CALL_WITHIN, DEV_CALL_BYTES_MAX, DEV_MEMBER_BYTES};
use fanfold::messages::HandleMessage;
use fanfold::policy::BatchApi;
use fanfold::store::batches::Batch;
use fanfold_batch_api::{CallError, CallMember};
use futures::future::join;
use serde_json::value::RawValue;

use crate::dev::Terms;
use crate::places::Pass;
use crate::turns::pause;
use crate::{Handle, HandleError};

/// The result of beginning an attempt.
pub(crate) enum Begun {
    /// It runs: the batch API may be called.
    Attempt(Batch, Prepared),
    /// Another worker was faster.
    Refused(Batch),
    /// It took so long that the call would outlast its leases.
    TooLate,
    /// Another worker took it for lost.
    Overtaken,
    /// Its lane was paused meanwhile.
    Paused,
    /// Its call is too large for the queue of a dev session.
    TooLargeForSession,
    /// The members that were to be called were dropped, or have outcomes by now, and others are left.
    Dropped,
}

/// The members of a call.
pub(crate) struct Prepared {
    pub(crate) members: Vec<CallMember>,
    /// When each was registered.
    pub(crate) registered: Vec<Timestamp>,
    /// Slots whose task no longer exists.
    pub(crate) gone: BTreeSet<usize>,
    /// Why the call cannot be made, if something that it needs could not be fetched.
    pub(crate) unready: Option<CallError>,
}

impl Prepared {
    /// Bytes of the contents, and of what is around them in a call.
    fn bytes(&self) -> usize {
        self.members.iter().map(|member| member.content.get().len() + DEV_MEMBER_BYTES).sum()
    }

    fn is_empty(&self) -> bool {
        self.members.is_empty() && self.gone.is_empty()
    }

    /// The same without members that the batch has dropped, or that have an outcome by now.
    fn without_closed(self, batch: &Batch) -> Self {
        let called = |id: &TaskId| batch.members.slot(id).is_some_and(|slot| batch.is_open(slot));
        let members = self.members.into_iter().zip(self.registered);
        let (members, registered) = members.filter(|(member, _)| called(&member.id)).unzip();
        let gone = self.gone.into_iter().filter(|slot| batch.is_open(*slot)).collect();
        Self { members, registered, gone, unready: self.unready }
    }
}

impl Handle {
    /// Reads the members and begins the attempt. Contents stay as they are. Members that were dropped are not called, nor those
    /// whose outcome was posted meanwhile for an earlier call.
    pub(crate) async fn begin(
        &self,
        message: HandleMessage,
        batch: &Batch,
        terms: &Terms,
        pass: &mut Pass,
    ) -> Result<Begun, HandleError> {
        let (prepared, ready) = join(self.prepare(batch), self.caller.prepare(&terms.policy.batch_api)).await;
        let prepared = Prepared { unready: ready.err(), ..prepared? };
        if terms.lease.is_some() && prepared.bytes() > DEV_CALL_BYTES_MAX {
            let limit = DEV_CALL_BYTES_MAX;
            tracing::warn!(batch = %batch.id, limit, "too large for a dev session: the policy's own batch API is called");
            return Ok(Begun::TooLargeForSession);
        }
        pause(pass.times.ahead(self.world.now()).saturating_sub(CALL_AHEAD)).await;
        let began = self.world.now();
        let begun = self.begin_attempt(message, terms).await?;
        let batch = match begun {
            Write::Done(batch) => batch,
            Write::Refused(None) => return Err(HandleError::UnknownBatch(message.batch)),
            Write::Refused(Some(batch)) => return Ok(Begun::Refused(batch)),
        };
        let batch = match self.drop_some(batch.clone()).await {
            Ok(Some(batch)) => batch,
            Ok(None) => return Ok(Begun::Overtaken),
            Err(error) => {
                self.batches.take_back(&batch).await?;
                return Err(error.into());
            }
        };
        let prepared = prepared.without_closed(&batch);
        let hindered = self.hindrance(&batch, &prepared, terms, pass, began).await;
        if !matches!(hindered, Ok(None)) {
            self.batches.take_back(&batch).await?;
        }
        Ok(hindered?.unwrap_or(Begun::Attempt(batch, prepared)))
    }

    /// What hinders the call of an attempt that has begun, so that the attempt is to be taken back.
    async fn hindrance(
        &self,
        batch: &Batch,
        prepared: &Prepared,
        terms: &Terms,
        pass: &mut Pass,
        began: Timestamp,
    ) -> Result<Option<Begun>, StoreError> {
        // Nobody is left of the part that was to be called, but there are others.
        if prepared.is_empty() && !batch.unsettled().is_empty() {
            return Ok(Some(Begun::Dropped));
        }
        // The switches are read once more after the beginning, so that a call begins soon after they were read, or not at all.
        if !prepared.members.is_empty()
            && let Some(switched) = self.switched(batch, terms).await?
        {
            return Ok(Some(switched));
        }
        let in_time = self.in_time(batch, &mut pass.times).await;
        // Other workers rely on the call to end before its leases do.
        let (now, timeout) = (self.world.now(), terms.policy.batch_api.timeout.0);
        let late = now.since(began) > CALL_WITHIN || now.plus(timeout) > pass.place.until || !in_time;
        Ok(late.then_some(Begun::TooLate))
    }

    /// The write that begins an attempt.
    async fn begin_attempt(
        &self,
        message: HandleMessage,
        terms: &Terms,
    ) -> Result<Write<Batch, Option<Batch>>, StoreError> {
        let HandleMessage { batch, attempt, .. } = message;
        let BatchApi { timeout, answers_within, .. } = &terms.policy.batch_api;
        match (&terms.lease, answers_within) {
            (Some(lease), _) => self.batches.begin_for_session(batch, attempt, timeout.0, lease.session).await,
            (None, Some(_)) => self.batches.begin_with_token(batch, attempt, timeout.0).await,
            (None, None) => self.batches.begin(batch, attempt, timeout.0).await,
        }
    }

    /// What came between the beginning of an attempt and its call: its lane was paused, or its dev session ended.
    async fn switched(&self, batch: &Batch, terms: &Terms) -> Result<Option<Begun>, StoreError> {
        if self.policies.hold(&batch.lane).await?.paused {
            return Ok(Some(Begun::Paused));
        }
        Ok((!self.still_holds(batch, terms).await?).then_some(Begun::TooLate))
    }

    /// Reads the members that are to be called.
    async fn prepare(&self, batch: &Batch) -> Result<Prepared, HandleError> {
        self.prepare_slots(batch, batch.called()).await
    }

    /// Reads the members of the call that an open attempt is for.
    pub(crate) async fn members_asked(&self, batch: &Batch) -> Result<Vec<CallMember>, HandleError> {
        Ok(self.members_at(batch, batch.asked()).await?.0)
    }

    /// Reads the members in these slots. Also returns the slots whose task no longer exists.
    pub(crate) async fn members_at(
        &self,
        batch: &Batch,
        slots: Vec<usize>,
    ) -> Result<(Vec<CallMember>, BTreeSet<usize>), HandleError> {
        let Prepared { members, gone, .. } = self.prepare_slots(batch, slots).await?;
        Ok((members, gone))
    }

    async fn prepare_slots(&self, batch: &Batch, slots: Vec<usize>) -> Result<Prepared, HandleError> {
        let ids: Vec<TaskId> = slots.iter().filter_map(|slot| batch.members.ids().get(*slot)).copied().collect();
        let mut contents = self.tasks.contents(&ids).await?;
        let mut gone = BTreeSet::new();
        let mut members = Vec::with_capacity(ids.len());
        let mut registered = Vec::with_capacity(ids.len());
        for (slot, id) in slots.into_iter().zip(ids) {
            match contents.remove(&id).map(|content| (RawValue::from_string(content.json), content.created_at)) {
                Some((Ok(content), created_at)) => {
                    members.push(CallMember { id, content });
                    registered.push(created_at);
                }
                _ => {
                    gone.insert(slot);
                }
            }
        }
        Ok(Prepared { members, registered, gone, unready: None })
    }
}
