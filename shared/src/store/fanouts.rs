//! Fan-outs: one header record each. A small fan-out keeps its bitfield in the header itself.

mod actions;
mod ends;
mod estimated;
mod follow;
mod idle;
mod list;
mod missing;
mod named;
mod notice_facts;
mod notify_on;
mod opened;
mod opened_tasks;
mod percentage;
mod record;
mod state;
mod tolerance;

use std::collections::BTreeSet;

use uuid::Uuid;

use super::groups::{CHILDREN, Cleared, GroupRecord, TASKS, mark};
use super::notices::Notices;
use super::shards::shard;
use crate::aws::attributes::{Reader, binary, count, number, text, time};
use crate::aws::{Change, Extent, Segment, StoreError, Table, Write};

pub(crate) use self::actions::{EndedGroups, GroupsEnd};
pub use self::estimated::{Count, Mode};
pub use self::follow::Then;
pub(crate) use self::follow::{END, RESULTS, RESULTS_LEFT_OUT};
pub use self::idle::IdleLimit;
pub use self::list::{FanoutPage, Listing, UserKeys};
pub use self::missing::Missing;
pub use self::notice_facts::{NoticeFacts, Reached, Report};
pub use self::notify_on::{NotifyOn, ReportedEnd};
pub use self::opened_tasks::OpenedTasks;
pub use self::percentage::ProgressPercentage;
pub(super) use self::record::ENDING;
use self::record::PRODUCER;
pub use self::record::{Fanout, Inline};
pub use self::state::FanoutState;
pub use self::tolerance::Tolerance;

/// The fan-outs.
#[derive(Clone, Debug)]
pub struct Fanouts {
    table: Table,
}

impl Fanouts {
    /// The fan-outs in `table`.
    #[must_use]
    pub fn new(table: Table) -> Self {
        Self { table }
    }

    /// One fan-out, strongly consistent.
    ///
    /// # Errors
    /// The table cannot be read, or the record is corrupt.
    pub async fn get(&self, id: Uuid) -> Result<Option<Fanout>, StoreError> {
        self.table.get("id", id.to_string(), true).await?.as_ref().map(Fanout::decode).transpose()
    }

    /// Several fan-outs, strongly consistent; unknown ones are left out.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn get_many(&self, ids: &[Uuid]) -> Result<Vec<Fanout>, StoreError> {
        let keys: Vec<String> = ids.iter().map(ToString::to_string).collect();
        self.table.get_many("id", &keys, &[], true).await?.iter().map(Fanout::decode).collect()
    }

    /// Those of these fan-outs for which nothing is begun any more: they are cut short, or forgotten, as they ended long ago. Strongly
    /// consistent.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn cut_short(&self, ids: &BTreeSet<Uuid>) -> Result<BTreeSet<Uuid>, StoreError> {
        let keys: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let mut cut_short = ids.clone();
        for item in self.table.get_many("id", &keys, &["id", "state"], true).await? {
            let reader = Reader::new("fanouts", "id", &item);
            if !reader.parsed::<FanoutState>("state")?.cut_short() {
                cut_short.remove(&reader.parsed("id")?);
            }
        }
        Ok(cut_short)
    }

    /// Stores a new fan-out. Refused: there is one with its id already.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn insert(&self, fanout: &Fanout) -> Result<Write<(), Option<Fanout>>, StoreError> {
        self.table.insert("id", fanout.encode(self.table.retention)).await?.decode_refused(Fanout::decode)
    }

    /// Clears bits of a small fan-out. With the last bit, or with too many failures, the same write decides its end. Returns
    /// the fan-out as written. Refused: another worker changed it, or decided its end.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub(crate) async fn clear_inline(
        &self,
        old: &Fanout,
        group: &GroupRecord,
        cleared: &Cleared,
    ) -> Result<Write<Fanout, Option<Fanout>>, StoreError> {
        let now = self.table.world.now();
        let after = old.after(cleared, now).with_notice(now);
        let change = self.becomes(old, &after).when_is("pending", binary(group.pending.as_bytes()));
        let change = change.when_is("state", text(old.state.as_str()));
        // If it fails with these acks, items without tasks become missing. Tasks may have been registered since it was read.
        let closes = after.missing > old.missing && !group.tasks;
        let change = if closes { change.when_absent(TASKS) } else { change };
        Ok(change.send().await?.decode_refused(Fanout::decode)?.map(|()| after))
    }

    /// Notes that tasks are registered for items of a small fan-out.
    ///
    /// # Errors
    /// The table cannot be written.
    pub(crate) async fn mark(&self, id: Uuid) -> Result<(), StoreError> {
        mark(&self.table, id, TASKS).await
    }

    /// Notes that fan-outs are opened under items of a small one.
    ///
    /// # Errors
    /// The table cannot be written.
    pub(crate) async fn mark_parent(&self, id: Uuid) -> Result<(), StoreError> {
        mark(&self.table, id, CHILDREN).await
    }

    /// Cuts a fan-out short: of several workers, one decides. Returns the fan-out as written, which has ended if nothing of it
    /// is in progress. Refused: another end was decided, or it changed so that it cannot end at once.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub(crate) async fn decide(
        &self,
        old: &Fanout,
        state: FanoutState,
    ) -> Result<Write<Fanout, Option<Fanout>>, StoreError> {
        let now = self.table.world.now();
        let after = old.decided(state, now).with_notice(now);
        let mut change = self.becomes(old, &after).when_is("state", text(old.state.as_str()));
        if let Some(inline) = &old.inline {
            change = change.when_is("pending", binary(inline.pending.as_bytes()));
            change = if inline.tasks { change } else { change.when_absent(TASKS) };
        } else if after.ended() {
            change = change.when_is("open_groups", number(0_u32));
        }
        // Any change since it was read is activity.
        if state == FanoutState::Expired {
            change = change.when_is("updated_at", time(old.updated_at));
        }
        // Items added since it was read may make the failures tolerable.
        if old.estimated() && state == FanoutState::Failed {
            change = change.when_is("total", number(old.total));
        }
        Ok(change.send().await?.decode_refused(Fanout::decode)?.map(|()| after))
    }

    /// Seals a fan-out: no more items come. Returns it after that, or none if it does not exist. One with a producer is
    /// sealed only by it (`produced`).
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn seal(&self, id: Uuid, produced: bool) -> Result<Option<Fanout>, StoreError> {
        let change = self
            .change(id)
            .set("state", text(FanoutState::Sealed.as_str()))
            .set(ENDING, shard(id))
            .when_is("state", text(FanoutState::Open.as_str()));
        let change = if produced { change.when_present(PRODUCER) } else { change.when_absent(PRODUCER) };
        Ok(change.send_for_new().await?.decode(Fanout::decode)?.stands())
    }

    /// Ends a fan-out of which nothing is left; a sealed one is complete. Of several workers, one write is applied. Returns the
    /// fan-out as written. Refused: another worker ended it, or decided another end.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn end(&self, before: &Fanout) -> Result<Write<Fanout, Option<Fanout>>, StoreError> {
        let now = self.table.world.now();
        let state = if before.state.cut_short() { before.state } else { FanoutState::Completed };
        let after = Fanout { state, look_at: None, ended_at: Some(now), updated_at: now, ..before.clone() };
        let after = after.with_notice(now);
        let change = self
            .becomes(before, &after)
            .when_is("state", text(before.state.as_str()))
            .when_is("open_groups", number(0_u32))
            .when_absent("ended_at");
        Ok(change.send().await?.decode_refused(Fanout::decode)?.map(|()| after))
    }

    /// The notices of their ends.
    #[must_use]
    pub fn notices(&self) -> Notices {
        Notices::new(self.table.clone(), "id", true)
    }

    /// How many fan-outs a sweep looks at. The index may lag.
    ///
    /// # Errors
    /// The table cannot be read.
    pub async fn ending_extent(&self) -> Result<Extent, StoreError> {
        self.table.extent(ENDING).await
    }

    /// Ids of the fan-outs of a segment that a sweep looks at: see [`Fanout::ending`].
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn ending(&self, segment: Segment) -> Result<Vec<Uuid>, StoreError> {
        let mut ids = Vec::new();
        let visit = |item| {
            ids.push(Reader::new("fanouts", "id", &item).parsed("id")?);
            Ok(())
        };
        self.table.scan(Some(ENDING), segment, visit).await?;
        Ok(ids)
    }

    /// Begins a change of a header.
    fn change(&self, id: Uuid) -> Change<'_> {
        self.table.change("id", id).set("updated_at", time(self.table.world.now()))
    }
}

/// A write that counts failures in the header. The worker that counts them may die before it judges them, so a sweep looks at the
/// fan-out from now on.
fn counting_failures(change: Change<'_>, id: Uuid, failures: u64) -> Change<'_> {
    if failures == 0 { change } else { change.add_some("failures", count(failures)).set(ENDING, shard(id)) }
}
