//! Members of fan-outs that were cut short: they are not called any more, and count as missing.

use std::collections::BTreeSet;
use std::time::Duration;

use fanfold::aws::{StoreError, Write};
use fanfold::bits::Bits;
use fanfold::ids::TaskId;
use fanfold::messages::HandleMessage;
use fanfold::metrics::MEMBERS_DROPPED;
use fanfold::policy::Policy;
use fanfold::store::batches::Batch;
use fanfold_batch_api::Answer;

use crate::attempt::Uncalled;
use crate::settle::EndedAttempt;
use crate::step::Afterwards;
use crate::{Handle, HandleError};

impl Handle {
    /// The slots, of these, whose fan-outs are cut short, by a consistent read of the fan-outs.
    async fn cut_short(&self, batch: &Batch, slots: Vec<usize>) -> Result<Bits, StoreError> {
        let item = |slot: usize| match batch.members.ids().get(slot) {
            Some(TaskId::Item(item)) => Some((slot, item.fanout)),
            _ => None,
        };
        let items: Vec<_> = slots.into_iter().filter_map(item).collect();
        let cut_short = self.fanouts.cut_short(&items.iter().map(|(_, fanout)| *fanout).collect()).await?;
        Ok(items.into_iter().filter(|(_, fanout)| cut_short.contains(fanout)).map(|(slot, _)| slot).collect())
    }

    /// Drops members of fan-outs that were cut short from an attempt that has begun. Only after its beginning, so that a member
    /// is called only if its attempt had begun before its fan-out was cut short. It reads the fan-outs of those to be called, and
    /// only if some of these are cut short, of all that are left. None: another attempt overtook this one.
    pub(crate) async fn drop_some(&self, batch: Batch) -> Result<Option<Batch>, StoreError> {
        let called = batch.called();
        let slots = self.cut_short(&batch, called.clone()).await?;
        if slots.is_zero() {
            return Ok(Some(batch));
        }
        if called.len() < batch.unsettled().len() {
            return self.drop_any(batch).await;
        }
        self.drop_these(batch, slots).await
    }

    /// The same for all members that are left, of an attempt that makes no call. If it cannot be known who is to be dropped, the
    /// attempt is taken back.
    pub(crate) async fn drop_uncalled(&self, batch: Batch) -> Result<Option<Batch>, StoreError> {
        let dropped = self.drop_any(batch.clone()).await;
        if dropped.is_err() {
            self.batches.take_back(&batch).await?;
        }
        dropped
    }

    async fn drop_any(&self, batch: Batch) -> Result<Option<Batch>, StoreError> {
        let slots = self.cut_short(&batch, batch.unsettled()).await?;
        if slots.is_zero() { Ok(Some(batch)) } else { self.drop_these(batch, slots).await }
    }

    async fn drop_these(&self, batch: Batch, slots: Bits) -> Result<Option<Batch>, StoreError> {
        let dropped = match self.batches.drop_members(&batch, &slots).await? {
            Write::Done(dropped) => Some(dropped),
            // Outcomes were posted meanwhile: their members are not dropped.
            Write::Refused(Some(stands)) if stands.is_same_attempt(&batch) => {
                return Box::pin(self.drop_any(stands)).await;
            }
            Write::Refused(_) => None,
        };
        if dropped.is_some() {
            let members = slots.count();
            tracing::info!(batch = %batch.id, members, "members are not called: their fan-outs were cut short");
            metrics::counter!(MEMBERS_DROPPED).increment(members);
        }
        Ok(dropped)
    }

    /// Whether a batch that may not call yet needs no call, since all its open members are to be dropped, or none is open: the
    /// last outcome was posted while there was no policy.
    pub(crate) async fn nothing_left(&self, batch: &Batch) -> Result<bool, StoreError> {
        let open = batch.unsettled();
        let all = open.len() as u64;
        Ok(all == 0 || (batch.has_items() && self.cut_short(batch, open).await?.count() == all))
    }

    /// Ends a batch without a call, and so without a place, if all its members are to be dropped.
    pub(crate) async fn drop_all(&self, message: HandleMessage, policy: &Policy) -> Result<Afterwards, HandleError> {
        let batch = match self.begin_without_call(message, policy).await? {
            Uncalled::Begun(batch) => *batch,
            Uncalled::Overtaken(then) => return Ok(then),
        };
        let Some(batch) = self.drop_uncalled(batch).await? else { return Ok(Afterwards::Waits) };
        if !batch.unsettled().is_empty() {
            self.batches.take_back(&batch).await?;
            return self.come_later(&batch, message, Duration::ZERO).await;
        }
        let ended = EndedAttempt { result: Ok(Answer::AllSucceeded), gone: BTreeSet::new(), put_off: None };
        self.end(batch, policy, ended, message.more).await
    }
}
