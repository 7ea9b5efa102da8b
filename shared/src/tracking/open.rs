//! Opening fan-outs.

mod request;

use aws_sdk_dynamodb::types::TransactWriteItem;
use uuid::Uuid;

pub use self::request::OpenRequest;
use super::add::name_groups;
use super::{Tracking, TrackingError};
use crate::aws::{StoreError, Write};
use crate::bits::Bits;
use crate::clock::Timestamp;
use crate::ids::{ItemGroup, derived, group_sizes};
use crate::limits::GROUP_ITEMS_MAX;
use crate::store::fanouts::{Fanout, FanoutState, Inline, Mode, NoticeFacts};
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

impl Tracking {
    /// Opens a fan-out. With an idempotency key, repeating the call gives the same fan-out and groups.
    ///
    /// # Errors
    /// The request cannot be fulfilled, or the tables cannot be written.
    pub async fn open(&self, request: OpenRequest, key: Option<&str>) -> Result<Opened, TrackingError> {
        self.open_with(request, key, |_| Ok(Vec::new())).await
    }

    /// The same, with more writes in the same transaction.
    pub(crate) async fn open_with(
        &self,
        request: OpenRequest,
        key: Option<&str>,
        also: impl FnOnce(Uuid) -> Result<Vec<TransactWriteItem>, StoreError> + Send,
    ) -> Result<Opened, TrackingError> {
        request.check()?;
        // A repetition is answered as the first call was, even if the items are gone by now.
        if let Err(error) = self.check_follow(&request).await
            && !self.opened_before(key).await?
        {
            return Err(error);
        }
        let id = key.map_or_else(|| self.world.uuid(), derived::fanout);
        let now = self.world.now();
        let estimated = request.mode == Mode::Estimated;
        let inline = request.seal && !estimated && (1..=GROUP_ITEMS_MAX).contains(&request.items);
        let sizes: Vec<u32> = if inline || estimated { Vec::new() } else { group_sizes(request.items).collect() };
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
                self.hint_end(&fanout).await?;
                fanout
            }
            Write::Refused(Some(before)) => same_request(before, &request, inline)?,
            // The header of an old fan-out expired before its groups did.
            Write::Refused(None) => return Err(StoreError::Contended { what: format!("opening {id}") }.into()),
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
    let empty = request.seal && request.items == 0;
    Fanout {
        id,
        state: match (request.seal, request.items) {
            (false, _) => FanoutState::Open,
            (true, 0) => FanoutState::Completed,
            (true, _) => FanoutState::Sealed,
        },
        mode: request.mode,
        total: u64::from(request.items),
        opened_with: u64::from(request.items),
        open_groups: groups,
        done: 0,
        failed: 0,
        duplicates: 0,
        missing: 0,
        inline: inline.then(|| Inline { pending: Bits::ones(request.items as usize), ..Inline::default() }),
        user_key: request.user_key.clone(),
        notify: request.notify.clone(),
        notice_facts: NoticeFacts { on: request.notify_on.clone().unwrap_or_default(), ..NoticeFacts::default() },
        parent: request.parent,
        then: request.then.clone(),
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
    let differs = [
        ("mode", before.mode != request.mode),
        ("items", before.opened_with != u64::from(request.items)),
        ("user_key", before.user_key != request.user_key),
        ("notify", before.notify != request.notify),
        ("notify_on", before.notice_facts.on != request.notify_on.clone().unwrap_or_default()),
        ("tolerated_failures", before.tolerated != request.tolerated_failures),
        ("parent", before.parent != request.parent),
        ("then", before.then != request.then),
        ("producer", before.producer != request.producer),
        ("idle_limit", before.idle_limit != request.idle_limit.unwrap_or_default()),
        // A fan-out that was sealed at once keeps its items elsewhere, so the first answer depended on it.
        ("seal", (request.seal && before.state == FanoutState::Open) || inline != before.inline.is_some()),
    ];
    match differs.iter().find(|(_, differs)| *differs) {
        Some((field, _)) => Err(TrackingError::KeyReused(format!("`{field}` differs"))),
        None => Ok(before),
    }
}
