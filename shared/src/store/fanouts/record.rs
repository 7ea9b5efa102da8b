//! The header of a fan-out, and how it is stored.

use uuid::Uuid;

use super::estimated::{ESTIMATED, MODE};
use super::follow::{FOLLOWED, PARENT, THEN, THEN_DUE};
use super::idle::{IDLE, LOOK_AT};
use super::named::{NAMED, NAMES, sort_key};
use super::opened::{self, OPENED, STANDS, Standing};
use super::{FanoutState, IdleLimit, Mode, NoticeFacts, Then, Tolerance};
use crate::aws::attributes::{Reader, binary, bits, count, expiry, flag, item, number, text, time};
use crate::aws::{Item, StoreError};
use crate::bits::Bits;
use crate::clock::Timestamp;
use crate::ids::{ItemGroup, ItemId};
use crate::limits::{KEY_RETENTION, RETENTION};
use crate::policy::Destination;
use crate::producing::Producer;
use crate::store::groups::{Cleared, GroupRecord, TASKS, close};
use crate::store::notices::NoticeProgress;
use crate::store::shards::{few, shard};

/// The bitfields of a small fan-out, which are in its header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inline {
    /// Items that are not done.
    pub pending: Bits,
    /// Items that failed.
    pub failed: Bits,
    /// Items that were dropped as duplicates.
    pub duplicates: Bits,
    /// Items that were not done when the fan-out ended.
    pub missing: Bits,
    /// Whether tasks were registered for items.
    pub tasks: bool,
}

/// The header of a fan-out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fanout {
    /// Its id.
    pub id: Uuid,
    /// How far it has come.
    pub state: FanoutState,
    /// How it is tracked. Of an estimated one, `total`, `done` and `failed` are what was counted, and it has no groups.
    pub mode: Mode,
    /// Items added.
    pub total: u64,
    /// Items it was opened with.
    pub opened_with: u64,
    /// Groups with items that are not done.
    pub open_groups: u64,
    /// Items of the groups that ended.
    pub done: u64,
    /// Items that failed, of the groups that ended.
    pub failed: u64,
    /// Items that were dropped as duplicates, of the groups that ended.
    pub duplicates: u64,
    /// Items that were not done when the fan-out ended, of the groups that ended.
    pub missing: u64,
    /// The bitfields of a small fan-out.
    pub inline: Option<Inline>,
    /// The producer's own name for it.
    pub user_key: Option<String>,
    /// Where its end is reported.
    pub notify: Option<Destination>,
    /// What its notices are made from.
    pub notice_facts: NoticeFacts,
    /// The item that its end acks.
    pub parent: Option<ItemId>,
    /// The task that is registered when it ends.
    pub then: Option<Then>,
    /// While that task is not known to be stored: when its message is taken for lost.
    pub then_due: Option<Timestamp>,
    /// When all that follows from its end was done, but for the notice.
    pub followed: Option<Timestamp>,
    /// The state of the notice of its end, and before that of a share of its items.
    pub notice: NoticeProgress,
    /// How many items may fail before it fails itself.
    pub tolerated: Option<Tolerance>,
    /// Items that failed, of all its groups: counted where it matters how many are tolerated, unless it is small.
    pub failures: u64,
    /// For how long nothing may happen to it.
    pub idle_limit: IdleLimit,
    /// Until its end is decided: when a sweep looks next whether it is idle.
    pub look_at: Option<Timestamp>,
    /// Where its tasks come from by themselves. As long as it is open, its producer seals it.
    pub producer: Option<Producer>,
    /// Rows of a file that are registered.
    pub cursor: u64,
    /// When it was opened.
    pub created_at: Timestamp,
    /// When it ended: its state and all counts are final.
    pub ended_at: Option<Timestamp>,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl Fanout {
    /// Whether nothing of it is left to be done and nothing more comes, so that it is to be ended.
    #[must_use]
    pub fn drained(&self) -> bool {
        let closed = self.state == FanoutState::Sealed || self.state.cut_short();
        let left = self.open_groups > 0 || (self.estimated() && self.outstanding() > 0);
        closed && !self.ended() && !left && self.inline.is_none()
    }

    /// Whether it is complete.
    #[must_use]
    pub fn complete(&self) -> bool {
        self.state == FanoutState::Completed
    }

    /// Whether it ended, one way or another, and all its counts are final.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.ended_at.is_some()
    }

    /// Whether its end is decided and is not completion, and some of its items are in progress or still to be counted.
    #[must_use]
    pub fn draining(&self) -> bool {
        self.state.cut_short() && !self.ended()
    }

    /// Whether its end is still to be reported.
    #[must_use]
    pub fn to_notify(&self) -> bool {
        self.reported_as().is_some() && !self.notice.over()
    }

    /// Whether a message about it may be lost, so that a sweep looks at it: it is sealed, and somebody is to complete it, it drains,
    /// its failures are to be judged, something follows from its end, or that is to be reported. A small one is completed, or fails, by the write that clears
    /// its bits; its progress may have to be reported.
    #[must_use]
    pub fn ending(&self) -> bool {
        let judged = self.state == FanoutState::Open && self.failures > 0;
        (self.state == FanoutState::Sealed && (self.inline.is_none() || self.reports_progress()))
            || judged
            || self.draining()
            || self.to_follow()
            || self.to_notify()
    }

    /// The fan-out whose end is decided otherwise than by its last ack. A small one that has no tasks has nothing in progress, and
    /// ends at once.
    #[must_use]
    pub(super) fn decided(&self, state: FanoutState, now: Timestamp) -> Self {
        let decided = Self { state, look_at: None, updated_at: now, ..self.clone() };
        match self.inline_group() {
            Some(group) if group.tasks && !group.pending.is_zero() => decided,
            Some(group) => decided.with_bits(&close(&group), now),
            None if self.open_groups == 0 => Self { ended_at: Some(now), ..decided },
            None => decided,
        }
    }

    /// The bitfield of a small fan-out, as the group it is.
    #[must_use]
    pub fn inline_group(&self) -> Option<GroupRecord> {
        let Inline { pending, failed, duplicates, missing, tasks } = self.inline.clone()?;
        let size = u32::try_from(self.total).unwrap_or(0);
        let (id, updated_at) = (self.id, self.updated_at);
        Some(GroupRecord {
            id,
            fanout: id,
            size,
            pending,
            failed,
            duplicates,
            missing,
            tasks,
            counted: false,
            added: None,
            updated_at,
        })
    }

    /// The groups of a small fan-out.
    #[must_use]
    pub fn inline_groups(&self) -> Vec<ItemGroup> {
        self.inline_group().map(|group| ItemGroup { id: group.id, upto: group.size }).into_iter().collect()
    }

    pub(super) fn decode(item: &Item) -> Result<Self, StoreError> {
        let reader = Reader::new("fanouts", "id", item);
        let inline = || {
            Ok(Inline {
                pending: reader.bits("pending")?,
                failed: reader.bits("failed_items")?,
                duplicates: reader.bits("duplicate_items")?,
                missing: reader.bits("missing_items")?,
                tasks: reader.has(TASKS),
            })
        };
        let inline = reader.has("pending").then(inline).transpose()?;
        Ok(Self {
            id: reader.parsed("id")?,
            state: reader.parsed("state")?,
            mode: if reader.has(MODE) { Mode::Estimated } else { Mode::Exact },
            total: reader.number("total")?,
            opened_with: reader.number("opened_with")?,
            open_groups: reader.number("open_groups")?,
            done: reader.number("done")?,
            failed: reader.number("failed")?,
            duplicates: reader.number("duplicates")?,
            missing: reader.number("missing")?,
            inline,
            user_key: reader.optional_text("user_key")?.map(str::to_owned),
            notify: if reader.has("notify") { Some(reader.json("notify")?) } else { None },
            notice_facts: NoticeFacts::decode(&reader)?,
            parent: if reader.has(PARENT) { Some(reader.parsed(PARENT)?) } else { None },
            then: if reader.has(THEN) { Some(reader.json(THEN)?) } else { None },
            then_due: reader.time(THEN_DUE)?,
            followed: reader.time(FOLLOWED)?,
            notice: NoticeProgress::decode(&reader)?,
            tolerated: if reader.has(TOLERATED) { Some(reader.json(TOLERATED)?) } else { None },
            failures: reader.number("failures")?,
            idle_limit: if reader.has("idle_limit") { reader.json("idle_limit")? } else { IdleLimit::default() },
            look_at: reader.time(LOOK_AT)?,
            producer: if reader.has(PRODUCER) { Some(reader.json(PRODUCER)?) } else { None },
            cursor: reader.number("cursor")?,
            created_at: Timestamp(reader.number("created_at")?),
            ended_at: reader.time("ended_at")?,
            updated_at: Timestamp(reader.number("updated_at")?),
        })
    }

    /// The small fan-out with these bits. If more items failed than are tolerated, it fails, its last one included. It ends if no bit
    /// is left: it is complete, unless another end was decided before.
    pub(super) fn after(&self, cleared: &Cleared, now: Timestamp) -> Self {
        let failures = cleared.failed.count();
        let failing = Self { failures, ..self.clone() }.to_fail();
        let after = self.with_bits(cleared, now);
        if failing {
            Self { ended_at: None, state: self.state, ..after }.decided(FanoutState::Failed, now)
        } else {
            after
        }
    }

    fn with_bits(&self, cleared: &Cleared, now: Timestamp) -> Self {
        let Cleared { pending, failed, duplicates, missing, .. } = cleared.clone();
        let last = pending.is_zero();
        let tasks = self.inline.as_ref().is_some_and(|inline| inline.tasks);
        Self {
            state: if last && !self.state.cut_short() { FanoutState::Completed } else { self.state },
            failed: failed.count(),
            duplicates: duplicates.count(),
            missing: missing.count(),
            inline: Some(Inline { pending, failed, duplicates, missing, tasks }),
            look_at: self.look_at.filter(|_| !last),
            ended_at: last.then_some(now),
            updated_at: now,
            ..self.clone()
        }
    }

    pub(super) fn encode(&self) -> Item {
        self.encode_header().into_iter().chain(item(self.notice.encode())).collect()
    }

    /// All but the state of its notice.
    pub(super) fn encode_header(&self) -> Item {
        let inline = self.inline.as_ref();
        let limited = self.idle_limit != IdleLimit::default();
        let standing = Standing::of(self);
        // Tasks of one that was cut short may wait for as long as their keys are remembered, and must not be called then.
        let kept = if self.state.cut_short() { KEY_RETENTION } else { RETENTION };
        let attributes = [
            ("id", Some(text(self.id))),
            ("state", Some(text(self.state.as_str()))),
            (MODE, self.estimated().then(|| text(ESTIMATED))),
            ("total", Some(number(self.total))),
            ("opened_with", Some(number(self.opened_with))),
            ("open_groups", Some(number(self.open_groups))),
            // What counts compare is there, although it be zero.
            ("done", if self.estimated() { Some(number(self.done)) } else { count(self.done) }),
            ("failed", count(self.failed)),
            ("duplicates", count(self.duplicates)),
            ("missing", count(self.missing)),
            ("pending", inline.map(|inline| binary(inline.pending.as_bytes()))),
            ("failed_items", inline.and_then(|inline| bits(&inline.failed))),
            ("duplicate_items", inline.and_then(|inline| bits(&inline.duplicates))),
            ("missing_items", inline.and_then(|inline| bits(&inline.missing))),
            (TASKS, inline.filter(|inline| inline.tasks).map(|_| flag())),
            ("user_key", self.user_key.as_ref().map(text)),
            (NAMES, self.user_key.as_ref().map(few)),
            (NAMED, self.user_key.as_ref().map(|key| binary(&sort_key(key, self.created_at, self.id)))),
            ("notify", self.notify.as_ref().map(|to| text(serde_json::to_string(to).unwrap_or_default()))),
            (PARENT, self.parent.map(text)),
            (THEN, self.then.as_ref().map(|then| text(serde_json::to_string(then).unwrap_or_default()))),
            (THEN_DUE, self.then_due.map(time)),
            (FOLLOWED, self.followed.map(time)),
            (ENDING, self.ending().then(|| shard(self.id))),
            ("idle_limit", limited.then(|| text(serde_json::to_string(&self.idle_limit).unwrap_or_default()))),
            (TOLERATED, self.tolerated.map(|tolerance| text(serde_json::to_string(&tolerance).unwrap_or_default()))),
            ("failures", count(self.failures)),
            (STANDS, Some(standing.key(self.id))),
            (OPENED, Some(binary(&opened::sort_key(self.created_at, self.id)))),
            (IDLE, self.look_at.filter(|_| standing == Standing::Watched).map(|_| few(self.id))),
            (LOOK_AT, self.look_at.map(time)),
            (PRODUCER, self.producer.as_ref().map(|it| text(serde_json::to_string(it).unwrap_or_default()))),
            ("cursor", count(self.cursor)),
            ("created_at", Some(time(self.created_at))),
            ("ended_at", self.ended_at.map(time)),
            ("updated_at", Some(time(self.updated_at))),
            ("ttl", self.ended_at.map(|ended_at| expiry(ended_at, kept))),
        ];
        item(attributes.into_iter().chain(self.notice_facts.encode()))
    }
}

/// The sparse index of fan-outs that a sweep looks at, and its partition key.
pub(in crate::store) const ENDING: &str = "ending";

/// The producer of a fan-out that has one.
pub(super) const PRODUCER: &str = "producer";

/// How many failures are tolerated: groups of a fan-out with this attribute have their failures counted in the header.
pub(super) const TOLERATED: &str = "tolerated_failures";

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::policy::Span;
    use crate::store::fanouts::notice_facts::any_notice_facts;
    use crate::store::notices::any_notice;
    use crate::store::testing::{any_bits, any_id, any_time};

    fn inline_of(([pending, failed, duplicates, missing], tasks): ([Bits; 4], bool)) -> Inline {
        Inline { pending, failed, duplicates, missing, tasks }
    }

    fn any_producer() -> Producer {
        let source =
            serde_json::json!({"source": {"url": "https://example.com/"}, "partitions": 4, "key": "content.id"});
        serde_json::from_value(source).unwrap()
    }

    fn any_fanout() -> impl Strategy<Value = Fanout> {
        let state = prop::sample::select(FanoutState::ALL.to_vec());
        let notify = prop::sample::select(vec![None, Some(Destination::Url("https://example.com/".to_owned()))]);
        (
            (any_id(), state, prop::option::of(".{0,9}"), notify, any_notice()),
            any::<[u64; 9]>(),
            prop::option::of((prop::array::uniform4(any_bits()), any::<bool>())),
            prop::array::uniform2(any_time()),
            prop::array::uniform2(prop::option::of(any_time())),
        )
            .prop_map(
                |((id, state, user_key, notify, notice), counts, inline, [created_at, updated_at], ends)| {
                    let [ended_at, look_at] = ends;
                    let [total, opened_with, open_groups, done, failed, duplicates, missing, failures, cursor] = counts;
                    let inline = inline.map(inline_of);
                    Fanout {
                        id,
                        state,
                        mode: if total % 2 == 0 { Mode::Estimated } else { Mode::Exact },
                        total,
                        opened_with,
                        open_groups,
                        done,
                        failed,
                        duplicates,
                        missing,
                        inline,
                        user_key,
                        notify,
                        notice_facts: ended_at.map_or_else(NoticeFacts::default, |at| any_notice_facts(at, total)),
                        parent: look_at.map(|_| ItemId { fanout: id, group: id, index: 7 }),
                        then: ended_at.map(|_| Then::new("report", serde_json::json!({"x": total}))),
                        then_due: look_at,
                        followed: ended_at,
                        notice,
                        tolerated: ended_at.map(|_| Tolerance::Share(25)),
                        producer: look_at.map(|_| any_producer()),
                        failures,
                        idle_limit: IdleLimit { open: ended_at.map(|_| Span::from_secs(60)), sealed: None },
                        look_at,
                        cursor,
                        created_at,
                        ended_at,
                        updated_at,
                    }
                },
            )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(fanout in any_fanout()) {
            prop_assert_eq!(Fanout::decode(&fanout.encode()).unwrap(), fanout);
        }
    }
}
