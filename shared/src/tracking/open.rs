//! Opening fan-outs and adding items.

use aws_sdk_dynamodb::types::TransactWriteItem;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Tracking, TrackingError};
use crate::aws::{StoreError, Write};
use crate::bits::Bits;
use crate::clock::Timestamp;
use crate::ids::{ItemGroup, ItemId, derived, group_sizes};
use crate::limits::{GROUP_ITEMS_MAX, IDLE_LIMITS, ITEMS_PER_ADD_MAX, USER_KEY_BYTES_MAX};
use crate::policy::{Destination, Span};
use crate::producing::Producer;
use crate::store::fanouts::{Fanout, FanoutState, IdleLimit, Inline, Mode, NotifyOn, Telling, Then, Tolerance};
use crate::store::groups::GroupRecord;
use crate::store::notices::NoticeProgress;
use crate::store::producers::Partition;

/// What a fan-out is opened with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OpenRequest {
    /// How it is tracked: `exact`, by items, or `estimated`, by counters, which count twice what is counted twice. An estimated one has no
    /// items: `items` is what its counters begin with.
    #[serde(default, skip_serializing_if = "Mode::is_exact")]
    pub mode: Mode,
    /// Items to add at once.
    #[cfg_attr(feature = "openapi", schemars(range(max = ITEMS_PER_ADD_MAX)))]
    #[serde(default, deserialize_with = "crate::whole::u32")]
    pub items: u32,
    /// Whether these are all.
    #[serde(default)]
    pub seal: bool,
    /// The producer's own name for it; comes back with every answer and notice.
    #[cfg_attr(feature = "openapi", schemars(length(max = USER_KEY_BYTES_MAX), extend("x-max-bytes" = USER_KEY_BYTES_MAX)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_key: Option<String>,
    /// Where its end is to be reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<Destination>,
    /// Which of its ends are told there, and at which shares of its items its progress is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify_on: Option<NotifyOn>,
    /// How many items may fail: a number, or a share of all items as text such as `5%`, judged once it is sealed. If more fail, it ends
    /// as `failed`, and nothing is begun for it any more. If not given, any number may fail.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::tolerance"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerated_failures: Option<Tolerance>,
    /// For how long nothing may happen to it before it expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_limit: Option<IdleLimit>,
    /// An item of another fan-out, which its end acks: as succeeded if it completes, as failed at any other end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ItemId>,
    /// A task that is registered when it ends, however it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<Then>,
    /// A source of its tasks, which is read as soon as it is open. It seals the fan-out when all rows are registered: `items` and `seal` are not given
    /// then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub producer: Option<Producer>,
}

/// An opened fan-out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The fan-out.
    pub fanout: Fanout,
    /// The groups of the items it was opened with.
    pub groups: Vec<ItemGroup>,
    /// Whether this call opened it, as far as is known, and not an earlier one with the same idempotency key.
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

    /// The same, with what is to be written in the same transaction.
    pub(crate) async fn open_with(
        &self,
        request: OpenRequest,
        key: Option<&str>,
        also: impl FnOnce(Uuid) -> Result<Vec<TransactWriteItem>, StoreError> + Send,
    ) -> Result<Opened, TrackingError> {
        check(&request)?;
        // A repetition is answered as the first call was, although the items may be gone by now.
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
                self.tell_end(&fanout).await?;
                fanout
            }
            Write::Refused(Some(before)) => same_request(before, &request, inline)?,
            // One of long ago, whose header expired before its groups did.
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

    /// Adds items to an open fan-out: the groups and the header's counts in one transaction. With an idempotency key,
    /// repeating the call gives the same groups.
    ///
    /// # Errors
    /// The fan-out does not exist or is not open, the key was used for another number of items, or the tables cannot be
    /// written.
    pub async fn add(&self, fanout: Uuid, items: u32, key: Option<&str>) -> Result<Vec<ItemGroup>, TrackingError> {
        if !(1..=ITEMS_PER_ADD_MAX).contains(&items) {
            return Err(items_out_of_range("items", items, 1));
        }
        let seed = key.map_or_else(|| self.world.uuid(), |key| derived::addition(fanout, key));
        self.add_seeded(fanout, items, seed, key.is_some()).await
    }

    /// Adds the items of a page of a producer's partition. Repeating the call gives the same groups.
    ///
    /// # Errors
    /// The fan-out does not exist or is not open, or the tables cannot be written.
    pub async fn add_page(&self, at: &Partition, items: u32) -> Result<Vec<ItemGroup>, TrackingError> {
        self.add_seeded(at.fanout, items, derived::page(at.fanout, at.number, at.page), true).await
    }

    async fn add_seeded(
        &self,
        fanout: Uuid,
        items: u32,
        seed: Uuid,
        keyed: bool,
    ) -> Result<Vec<ItemGroup>, TrackingError> {
        let sizes: Vec<u32> = group_sizes(items).collect();
        let groups = name_groups(fanout, seed, &sizes);
        // Most fan-outs tolerate any number of failures: others are found out about by being refused.
        match self.add_groups(fanout, items, &groups, keyed, false).await? {
            Added::Otherwise => match self.add_groups(fanout, items, &groups, keyed, true).await? {
                Added::Otherwise => Err(StoreError::Contended { what: format!("adding to {fanout}") }.into()),
                Added::Done => Ok(groups),
            },
            Added::Done => Ok(groups),
        }
    }

    /// Adds groups in which failures are `counted`, or are not, or finds that they were added before.
    async fn add_groups(
        &self,
        fanout: Uuid,
        items: u32,
        groups: &[ItemGroup],
        keyed: bool,
        counted: bool,
    ) -> Result<Added, TrackingError> {
        let mut actions = Vec::with_capacity(groups.len() + 1);
        // A repetition finds the first group, however many items it asks for: so that group knows how many the first brought.
        let now = self.world.now();
        for (at, group) in groups.iter().enumerate() {
            let added = (keyed && at == 0).then_some(items);
            let group = GroupRecord { added, counted, ..GroupRecord::new(group.id, fanout, group.upto, now) };
            actions.push(self.groups.insert_action(&group, true)?);
        }
        actions.push(self.fanouts.add_action(fanout, u64::from(items), groups.len() as u64, counted)?);
        let Write::Refused(refused) = self.fanouts.transact(&actions).await? else { return Ok(Added::Done) };
        // The groups are there: this very add was done before, and what became of the fan-out since does not matter.
        if refused.iter().any(|(at, _)| *at < groups.len()) {
            let ids: Vec<Uuid> = groups.iter().map(|group| group.id).collect();
            return same_add(groups, items, &self.groups.get_many(&ids).await?).map(|()| Added::Done);
        }
        match self.fanouts.get(fanout).await? {
            None => Err(TrackingError::UnknownFanout(fanout)),
            Some(header) if header.estimated() => Err(TrackingError::Estimated(fanout)),
            Some(header) if header.state == FanoutState::Open && header.tolerated.is_some() != counted => {
                Ok(Added::Otherwise)
            }
            Some(header) => Err(TrackingError::NotOpen { id: fanout, state: header.state }),
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
        telling: Telling { on: request.notify_on.clone().unwrap_or_default(), ..Telling::default() },
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
        cursor: 0,
        created_at: now,
        ended_at: empty.then_some(now),
        updated_at: now,
    }
}

/// What became of an add.
enum Added {
    /// The groups are there.
    Done,
    /// Failures are counted in groups of the fan-out where these did not say so, or the other way round.
    Otherwise,
}

/// Checks that a fan-out may have so many items and such a key.
fn check(request: &OpenRequest) -> Result<(), TrackingError> {
    if request.items > ITEMS_PER_ADD_MAX {
        return Err(items_out_of_range("items", request.items, 0));
    }
    if let Some(producer) = &request.producer {
        producer.check()?;
        let estimated = request.mode == Mode::Estimated;
        let given = [
            ("items", request.items.to_string(), "0 (its producer adds them)", request.items > 0),
            ("seal", "true".to_owned(), "false (its producer seals it)", request.seal),
            ("mode", "estimated".to_owned(), "exact (its producer adds items)", estimated),
        ];
        if let Some((field, value, allowed, _)) = given.into_iter().find(|(_, _, _, given)| *given) {
            return Err(TrackingError::OutOfRange { field, value, allowed: allowed.to_owned() });
        }
    }
    let limit = request.idle_limit.unwrap_or_default();
    for (field, limit) in [("idle_limit.open", limit.open), ("idle_limit.sealed", limit.sealed)] {
        let (least, most) = (Span(*IDLE_LIMITS.start()), Span(*IDLE_LIMITS.end()));
        if let Some(limit) = limit.filter(|limit| !IDLE_LIMITS.contains(&limit.0)) {
            let allowed = format!("{least} to {most}");
            return Err(TrackingError::OutOfRange { field, value: limit.to_string(), allowed });
        }
    }
    match request.user_key.as_ref().map(String::len) {
        Some(bytes) if bytes > USER_KEY_BYTES_MAX => Err(TrackingError::OutOfRange {
            field: "user_key",
            value: format!("{bytes} bytes long"),
            allowed: format!("at most {USER_KEY_BYTES_MAX} bytes"),
        }),
        _ => Ok(()),
    }
}

fn items_out_of_range(field: &'static str, items: u32, least: u32) -> TrackingError {
    TrackingError::OutOfRange {
        field,
        value: items.to_string(),
        allowed: format!("{least} to {ITEMS_PER_ADD_MAX} a call"),
    }
}

/// The groups that a fan-out was opened with.
pub(super) fn opening_groups(fanout: &Fanout) -> Vec<ItemGroup> {
    if fanout.inline.is_some() || fanout.estimated() {
        return fanout.inline_groups();
    }
    // An add brings no more than fits a `u32`.
    let sizes: Vec<u32> = group_sizes(u32::try_from(fanout.opened_with).unwrap_or(0)).collect();
    name_groups(fanout.id, fanout.id, &sizes)
}

/// The groups of the items of a page of a producer's partition.
#[must_use]
pub fn page_groups(fanout: Uuid, partition: u32, page: u64, items: u32) -> Vec<ItemGroup> {
    name_groups(fanout, derived::page(fanout, partition, page), &group_sizes(items).collect::<Vec<_>>())
}

fn name_groups(fanout: Uuid, seed: Uuid, sizes: &[u32]) -> Vec<ItemGroup> {
    let name = |(at, upto): (usize, &u32)| ItemGroup { id: derived::group(fanout, seed, at), upto: *upto };
    sizes.iter().enumerate().map(name).collect()
}

/// A repeated add must ask for as many items as the first one. Of groups without that note only the sizes can be compared.
fn same_add(wanted: &[ItemGroup], items: u32, found: &[GroupRecord]) -> Result<(), TrackingError> {
    let as_many = found.iter().filter_map(|group| group.added).all(|added| added == items);
    let same = wanted.iter().all(|group| found.iter().any(|other| other.id == group.id && other.size == group.upto));
    if as_many && same { Ok(()) } else { Err(TrackingError::KeyReused("`items` differs".to_owned())) }
}

/// A repeated open must ask for what the first one asked for, as far as the header still shows.
fn same_request(before: Fanout, request: &OpenRequest, inline: bool) -> Result<Fanout, TrackingError> {
    let differs = [
        ("mode", before.mode != request.mode),
        ("items", before.opened_with != u64::from(request.items)),
        ("user_key", before.user_key != request.user_key),
        ("notify", before.notify != request.notify),
        ("notify_on", before.telling.on != request.notify_on.clone().unwrap_or_default()),
        ("tolerated_failures", before.tolerated != request.tolerated_failures),
        ("parent", before.parent != request.parent),
        ("then", before.then != request.then),
        ("producer", before.producer != request.producer),
        ("idle_limit", before.idle_limit != request.idle_limit.unwrap_or_default()),
        // Items are held elsewhere if they were sealed at once, so what was answered then depends on it.
        ("seal", (request.seal && before.state == FanoutState::Open) || inline != before.inline.is_some()),
    ];
    match differs.iter().find(|(_, differs)| *differs) {
        Some((field, _)) => Err(TrackingError::KeyReused(format!("`{field}` differs"))),
        None => Ok(before),
    }
}
