//! The header of a fan-out, and how it is stored.

use uuid::Uuid;

use super::estimated::{ESTIMATED, MODE};
use super::follow::{FOLLOWED, PARENT, THEN, THEN_DUE};
use super::idle::{IDLE, LOOK_AT};
use super::named::{NAMED, NAMES, sort_key};
use super::opened::{self, IndexState, OPENED, STANDS};
use super::{FanoutState, IdleLimit, Mode, NoticeFacts, OpenedTasks, Then, Tolerance};
use crate::aws::attributes::{Reader, binary, bits, count, expiry, flag, item, json, number, text, time};
use crate::aws::{Item, StoreError};
use crate::bits::Bits;
use crate::clock::Timestamp;
use crate::ids::{ItemGroup, ItemId};
use crate::limits::{KEY_RETENTION, RETENTION};
use crate::policy::Destination;
use crate::producing::{Producer, Source};
use crate::retention::Retention;
use crate::store::groups::{CHILDREN, GroupRecord, TASKS};
use crate::store::notices::NoticeProgress;
use crate::store::shards::{few, shard};

/// The bitfields of a small fan-out, which are in its header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inline {
    /// Items that are not done.
    pub pending: Bits,
    /// Items that failed.
    pub failed: Bits,
    /// Items that are duplicates.
    pub duplicates: Bits,
    /// Items that were not done when the fan-out ended.
    pub missing: Bits,
    /// Whether tasks were registered for items.
    pub tasks: bool,
    /// Whether fan-outs were opened under items.
    pub children: bool,
}

/// The header of a fan-out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fanout {
    /// Its id.
    pub id: Uuid,
    /// How far it has come.
    pub state: FanoutState,
    /// How it is tracked. An estimated one has no groups: its `total`, `done` and `failed` are counters.
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
    /// Items that are duplicates, of the groups that ended.
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
    /// The tasks it was opened with, if it was.
    pub tasks: Option<OpenedTasks>,
    /// Until that task is known to be stored: when its message is taken for lost.
    pub then_due: Option<Timestamp>,
    /// When all that follows from its end was done, except the notice.
    pub followed: Option<Timestamp>,
    /// The state of the notice of its end, and before that of a percentage of its items.
    pub notice: NoticeProgress,
    /// How many items may fail before it fails itself.
    pub tolerated: Option<Tolerance>,
    /// Items that failed, of all its groups: counted only if a tolerance is given, and not for a small one.
    pub failures: u64,
    /// For how long nothing may happen to it.
    pub idle_limit: IdleLimit,
    /// Until its end is decided: when a sweep next checks whether it is idle.
    pub look_at: Option<Timestamp>,
    /// The source from which Fanfold reads its tasks. The producer seals the fan-out.
    pub producer: Option<Producer>,
    /// The latest fan-out that reissues items of it.
    pub reissued_as: Option<Uuid>,
    /// When it was opened.
    pub created_at: Timestamp,
    /// When it ended: its state and all counts are final.
    pub ended_at: Option<Timestamp>,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl Fanout {
    /// The bitfield of a small fan-out, as the group it is.
    #[must_use]
    pub fn inline_group(&self) -> Option<GroupRecord> {
        let Inline { pending, failed, duplicates, missing, tasks, children } = self.inline.clone()?;
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
            children,
            counted: false,
            added: None,
            updated_at,
        })
    }

    /// The fan-out whose items it reissues, if it does.
    #[must_use]
    pub fn reissue_of(&self) -> Option<Uuid> {
        match &self.producer.as_ref()?.source {
            Source::Reissue(reissue) => Some(reissue.fanout),
            _ => None,
        }
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
                children: reader.has(CHILDREN),
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
            notify: reader.optional_json("notify")?,
            notice_facts: NoticeFacts::decode(&reader)?,
            parent: reader.optional_parsed(PARENT)?,
            then: reader.optional_json(THEN)?,
            tasks: OpenedTasks::decode(&reader)?,
            then_due: reader.time(THEN_DUE)?,
            followed: reader.time(FOLLOWED)?,
            notice: NoticeProgress::decode(&reader)?,
            tolerated: reader.optional_json(TOLERATED)?,
            failures: reader.number("failures")?,
            idle_limit: reader.optional_json("idle_limit")?.unwrap_or_default(),
            look_at: reader.time(LOOK_AT)?,
            producer: reader.optional_json(PRODUCER)?,
            reissued_as: reader.optional_parsed(REISSUED_AS)?,
            created_at: Timestamp(reader.number("created_at")?),
            ended_at: reader.time("ended_at")?,
            updated_at: Timestamp(reader.number("updated_at")?),
        })
    }

    pub(super) fn encode(&self, kept: Retention) -> Item {
        self.encode_header(kept).into_iter().chain(item(self.notice.encode())).collect()
    }

    /// All but the state of the notice.
    pub(super) fn encode_header(&self, kept: Retention) -> Item {
        let inline = self.inline.as_ref();
        let limited = self.idle_limit != IdleLimit::default();
        let index_state = IndexState::of(self);
        // Tasks of a fan-out that was cut short may wait as long as their keys are kept, and must not be called even then.
        let least = if self.state.cut_short() { KEY_RETENTION } else { RETENTION };
        let attributes = [
            ("id", Some(text(self.id))),
            ("state", Some(text(self.state.as_str()))),
            (MODE, self.estimated().then(|| text(ESTIMATED))),
            ("total", Some(number(self.total))),
            ("opened_with", Some(number(self.opened_with))),
            ("open_groups", Some(number(self.open_groups))),
            // Conditions of counts compare it, so it is there even if it is zero.
            ("done", if self.estimated() { Some(number(self.done)) } else { count(self.done) }),
            ("failed", count(self.failed)),
            ("duplicates", count(self.duplicates)),
            ("missing", count(self.missing)),
            ("pending", inline.map(|inline| binary(inline.pending.as_bytes()))),
            ("failed_items", inline.and_then(|inline| bits(&inline.failed))),
            ("duplicate_items", inline.and_then(|inline| bits(&inline.duplicates))),
            ("missing_items", inline.and_then(|inline| bits(&inline.missing))),
            (TASKS, inline.filter(|inline| inline.tasks).map(|_| flag())),
            (CHILDREN, inline.filter(|inline| inline.children).map(|_| flag())),
            ("user_key", self.user_key.as_ref().map(text)),
            (NAMES, self.user_key.as_ref().map(few)),
            (NAMED, self.user_key.as_ref().map(|key| binary(&sort_key(key, self.created_at, self.id)))),
            ("notify", self.notify.as_ref().map(json)),
            (PARENT, self.parent.map(text)),
            (THEN, self.then.as_ref().map(json)),
            (THEN_DUE, self.then_due.map(time)),
            (FOLLOWED, self.followed.map(time)),
            (ENDING, self.ending().then(|| shard(self.id))),
            ("idle_limit", limited.then(|| json(&self.idle_limit))),
            (TOLERATED, self.tolerated.as_ref().map(json)),
            ("failures", count(self.failures)),
            (STANDS, Some(index_state.key(self.id))),
            (OPENED, Some(binary(&opened::sort_key(self.created_at, self.id)))),
            (IDLE, self.look_at.filter(|_| index_state == IndexState::Watched).map(|_| few(self.id))),
            (LOOK_AT, self.look_at.map(time)),
            (PRODUCER, self.producer.as_ref().map(json)),
            (REISSUED_AS, self.reissued_as.map(text)),
            ("created_at", Some(time(self.created_at))),
            ("ended_at", self.ended_at.map(time)),
            ("updated_at", Some(time(self.updated_at))),
            ("ttl", self.ended_at.map(|ended_at| expiry(kept.until(ended_at, least)))),
        ];
        let tasks = self.tasks.iter().flat_map(OpenedTasks::encode);
        item(attributes.into_iter().chain(tasks).chain(self.notice_facts.encode()))
    }
}

/// The sparse index of fan-outs that a sweep looks at (see [`Fanout::ending`]), and its partition key.
pub(in crate::store) const ENDING: &str = "ending";

/// The producer of a fan-out that has one.
pub(super) const PRODUCER: &str = "producer";

/// The latest fan-out that reissues items of it.
pub(super) const REISSUED_AS: &str = "reissued_as";

/// How many failures are tolerated: groups of a fan-out with this attribute have their failures counted in the header.
pub(super) const TOLERATED: &str = "tolerated_failures";

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::policy::Span;
    use crate::store::fanouts::notice_facts::any_notice_facts;
    use crate::store::fanouts::opened_tasks::any_opened_tasks;
    use crate::store::notices::any_notice;
    use crate::testing::{any_bits, any_id, any_time};

    fn inline_of(([pending, failed, duplicates, missing], [tasks, children]): ([Bits; 4], [bool; 2])) -> Inline {
        Inline { pending, failed, duplicates, missing, tasks, children }
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
            any::<[u64; 8]>(),
            prop::option::of((prop::array::uniform4(any_bits()), any::<[bool; 2]>())),
            prop::array::uniform2(any_time()),
            prop::array::uniform2(prop::option::of(any_time())),
        )
            .prop_map(
                |((id, state, user_key, notify, notice), counts, inline, [created_at, updated_at], ends)| {
                    let [ended_at, look_at] = ends;
                    let [total, opened_with, open_groups, done, failed, duplicates, missing, failures] = counts;
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
                        tasks: look_at.map(|at| any_opened_tasks(at, total)),
                        then_due: look_at,
                        followed: ended_at,
                        notice,
                        tolerated: ended_at.map(|_| Tolerance::Percentage(25)),
                        producer: look_at.map(|_| any_producer()),
                        reissued_as: ended_at.map(|_| Uuid::from_u128(total.into())),
                        failures,
                        idle_limit: IdleLimit { open: ended_at.map(|_| Span::from_secs(60)), sealed: None },
                        look_at,
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
            prop_assert_eq!(Fanout::decode(&fanout.encode(Retention::default())).unwrap(), fanout);
        }
    }
}
