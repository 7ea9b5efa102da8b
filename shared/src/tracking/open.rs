//! Opening fan-outs.

mod request;

use aws_sdk_dynamodb::types::TransactWriteItem;
use uuid::Uuid;

pub use self::request::{FanoutTask, OpenRequest};
use super::add::{FORGOTTEN, name_groups};
use super::{Tracking, TrackingError};
use crate::aws::{StoreError, Write};
use crate::bits::Bits;
use crate::clock::Timestamp;
use crate::ids::{ItemGroup, derived, group_sizes};
use crate::limits::GROUP_ITEMS_MAX;
use crate::metrics::FANOUTS_OPENED;
use crate::store::fanouts::{Fanout, FanoutState, Inline, Mode, NoticeFacts, OpenedTasks};
use crate::store::groups::GroupRecord;
use crate::store::notices::NoticeProgress;

/// An opened fan-out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The fan-out.
    pub fanout: Fanout,
    /// The groups of the items it was opened with.
    pub groups: Vec<ItemGroup>,
    /// Whether this call opened it, and not an earlier one with the same idempotency key, as far as is known.
    pub new: bool,
}

/// The id of a fan-out that is to be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewFanout {
    /// The id.
    pub id: Uuid,
    /// Whether it follows from an idempotency key, so that it may have been opened before.
    pub keyed: bool,
}

impl Tracking {
    /// The id of a fan-out that is opened under an idempotency key, or under none.
    #[must_use]
    pub fn new_fanout(&self, key: Option<&str>) -> NewFanout {
        NewFanout { id: key.map_or_else(|| self.world.uuid(), derived::fanout), keyed: key.is_some() }
    }

    /// The id of the fan-out at a position of a request that opens several.
    #[must_use]
    pub fn new_fanout_at(&self, key: Option<&str>, at: usize) -> NewFanout {
        let id = key.map_or_else(|| self.world.uuid(), |key| derived::fanout_at(key, at));
        NewFanout { id, keyed: key.is_some() }
    }

    /// Opens a fan-out. With an idempotency key, repeating the call gives the same fan-out and groups.
    ///
    /// # Errors
    /// The request cannot be fulfilled, or the tables cannot be written.
    pub async fn open(&self, request: OpenRequest, key: Option<&str>) -> Result<Opened, TrackingError> {
        let new = self.new_fanout(key);
        self.check_open(&request, new).await?;
        self.open_checked(request, new, |_| Ok(Vec::new())).await
    }

    /// Checks a request: its fields, and that the items exist that it names. A repetition is answered as the first call
    /// was, even if these are gone by now. Writes nothing.
    ///
    /// # Errors
    /// The request cannot be fulfilled, or the tables cannot be read.
    pub async fn check_open(&self, request: &OpenRequest, new: NewFanout) -> Result<(), TrackingError> {
        request.check()?;
        match self.check_follow(request).await {
            Err(error) if !self.opened_before(new).await? => Err(error),
            _ => Ok(()),
        }
    }

    /// Opens a fan-out by a request that was checked, with more writes in the same transaction. Before that, the groups of
    /// the items that it names are marked.
    pub(crate) async fn open_checked(
        &self,
        request: OpenRequest,
        new: NewFanout,
        also: impl FnOnce(Uuid) -> Result<Vec<TransactWriteItem>, StoreError> + Send,
    ) -> Result<Opened, TrackingError> {
        self.mark_parents(&request, new).await?;
        let (id, now) = (new.id, self.world.now());
        let estimated = request.mode == Mode::Estimated;
        let items = request.opens_with();
        let inline = request.seals() && !estimated && (1..=GROUP_ITEMS_MAX).contains(&items);
        let sizes: Vec<u32> = if inline || estimated { Vec::new() } else { group_sizes(items).collect() };
        let groups = name_groups(id, id, &sizes);
        let fanout = new_fanout(id, &request, inline, groups.len() as u64, now);
        let also = also(id)?;
        let opened = if groups.is_empty() && also.is_empty() {
            self.fanouts.insert(&fanout).await?
        } else {
            self.insert_with(&fanout, &groups, also).await?
        };
        let new = opened.is_done();
        let fanout = match opened {
            Write::Done(()) => {
                metrics::counter!(FANOUTS_OPENED).increment(1);
                self.hint_end(&fanout).await?;
                fanout
            }
            Write::Refused(Some(before)) => same_request(before, &request, inline)?,
            // The header of an old fan-out expired before its groups or its producer did.
            Write::Refused(None) => {
                return Err(TrackingError::KeyReused(FORGOTTEN.to_owned()));
            }
        };
        let groups = if inline { fanout.inline_groups() } else { groups };
        Ok(Opened { fanout, groups, new })
    }

    /// Inserts header, groups and more in one transaction.
    async fn insert_with(
        &self,
        fanout: &Fanout,
        groups: &[ItemGroup],
        also: Vec<TransactWriteItem>,
    ) -> Result<Write<(), Option<Fanout>>, TrackingError> {
        let mut actions = vec![self.fanouts.insert_action(fanout)?];
        for group in groups {
            let group = GroupRecord::new(group.id, fanout.id, group.upto, fanout.created_at);
            let group = GroupRecord { counted: fanout.tolerated.is_some(), ..group };
            actions.push(self.groups.insert_action(&group, false)?);
        }
        actions.extend(also);
        match self.fanouts.transact(&actions).await? {
            Write::Done(()) => Ok(Write::Done(())),
            Write::Refused(_) => Ok(Write::Refused(self.fanouts.get(fanout.id).await?)),
        }
    }
}

/// The header of a new fan-out.
fn new_fanout(id: Uuid, request: &OpenRequest, inline: bool, groups: u64, now: Timestamp) -> Fanout {
    let idle_limit = request.idle_limit.unwrap_or_default();
    let (items, seals) = (request.opens_with(), request.seals());
    let empty = seals && items == 0;
    // Its tasks are marked from the start: a fan-out that is cut short waits for those in progress.
    let tasks = request.tasks.as_ref().map(|_| OpenedTasks::new(id, &request.task_requests()));
    let small = || Inline { pending: Bits::ones(items as usize), tasks: tasks.is_some(), ..Inline::default() };
    Fanout {
        id,
        state: match (seals, items) {
            (false, _) => FanoutState::Open,
            (true, 0) => FanoutState::Completed,
            (true, _) => FanoutState::Sealed,
        },
        mode: request.mode,
        total: u64::from(items),
        opened_with: u64::from(items),
        open_groups: groups,
        done: 0,
        failed: 0,
        duplicates: 0,
        missing: 0,
        inline: inline.then(small),
        user_key: request.user_key.clone(),
        notify: request.notify.clone(),
        notice_facts: NoticeFacts { on: request.notify_on.clone().unwrap_or_default(), ..NoticeFacts::default() },
        parent: request.parent,
        then: request.then.clone(),
        tasks,
        then_due: None,
        followed: None,
        notice: NoticeProgress::default(),
        tolerated: request.tolerated_failures,
        failures: 0,
        idle_limit,
        look_at: (!empty).then(|| idle_limit.first_look(now)),
        producer: request.producer.clone(),
        reissued_as: None,
        created_at: now,
        ended_at: empty.then_some(now),
        updated_at: now,
    }
}

/// A repeated open must ask for what the first one asked for, as far as the header still shows.
fn same_request(before: Fanout, request: &OpenRequest, inline: bool) -> Result<Fanout, TrackingError> {
    let digest = request.tasks.as_ref().map(|_| OpenedTasks::new(before.id, &request.task_requests()).digest);
    let differs = [
        ("mode", before.mode != request.mode),
        ("tasks", before.tasks.as_ref().map(|tasks| tasks.digest) != digest),
        ("items", before.opened_with != u64::from(request.opens_with())),
        ("user_key", before.user_key != request.user_key),
        ("notify", before.notify != request.notify),
        ("notify_on", before.notice_facts.on != request.notify_on.clone().unwrap_or_default()),
        ("tolerated_failures", before.tolerated != request.tolerated_failures),
        ("parent", before.parent != request.parent),
        ("then", before.then != request.then),
        ("producer", before.producer != request.producer),
        ("idle_limit", before.idle_limit != request.idle_limit.unwrap_or_default()),
        // A fan-out that was sealed at once keeps its items elsewhere, so the first answer depended on it.
        ("seal", (request.seals() && before.state == FanoutState::Open) || inline != before.inline.is_some()),
    ];
    match differs.iter().find(|(_, differs)| *differs) {
        Some((field, _)) => Err(TrackingError::KeyReused(format!("`{field}` differs"))),
        None => Ok(before),
    }
}
