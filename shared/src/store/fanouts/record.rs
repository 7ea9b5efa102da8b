//! The header of a fan-out, and how it is stored.

use uuid::Uuid;

use crate::aws::attributes::{Reader, binary, bits, count, expiry, item, number, text, time};
use crate::aws::{Item, StoreError};
use crate::bits::Bits;
use crate::clock::Timestamp;
use crate::ids::ItemGroup;
use crate::limits::RETENTION;
use crate::policy::Destination;
use crate::store::groups::{Cleared, GroupRecord};
use crate::store::notices::NoticeProgress;
use crate::store::shards::shard;

/// How far a fan-out has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FanoutState {
    /// Items may be added.
    Open,
    /// No more items come.
    Sealed,
    /// Sealed, and every item was acked.
    Completed,
}

impl FanoutState {
    /// The state as it is stored.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Sealed => "sealed",
            Self::Completed => "completed",
        }
    }
}

/// The bitfields of a small fan-out, which are in its header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inline {
    /// Items that are not done.
    pub pending: Bits,
    /// Items that failed.
    pub failed: Bits,
    /// Items that were dropped as duplicates.
    pub duplicates: Bits,
}

/// The header of a fan-out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fanout {
    /// Its id.
    pub id: Uuid,
    /// How far it has come.
    pub state: FanoutState,
    /// Items added.
    pub total: u64,
    /// Items it was opened with.
    pub opened_with: u64,
    /// Groups with items that are not done.
    pub open_groups: u64,
    /// Items that failed, of the groups that ended.
    pub failed: u64,
    /// Items that were dropped as duplicates, of the groups that ended.
    pub duplicates: u64,
    /// The bitfields of a small fan-out.
    pub inline: Option<Inline>,
    /// The producer's own name for it.
    pub user_key: Option<String>,
    /// Where its end is reported.
    pub notify: Option<Destination>,
    /// The state of the notice of its end.
    pub notice: NoticeProgress,
    /// Rows of a producer that are registered.
    pub cursor: u64,
    /// When it was opened.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl Fanout {
    /// Whether everything was acked and no more comes, so that it is to be completed.
    #[must_use]
    pub fn drained(&self) -> bool {
        self.state == FanoutState::Sealed && self.open_groups == 0 && self.inline.is_none()
    }

    /// Whether it is complete.
    #[must_use]
    pub fn complete(&self) -> bool {
        self.state == FanoutState::Completed
    }

    /// Whether its end is still to be reported.
    #[must_use]
    pub fn to_notify(&self) -> bool {
        self.complete() && self.notify.is_some() && !self.notice.over()
    }

    /// Whether a message about it may be lost, so that a sweep looks at it: it is sealed, and somebody is to complete it, or its end
    /// is to be reported. A small one is completed by the write that clears its last bit.
    #[must_use]
    pub fn ending(&self) -> bool {
        (self.state == FanoutState::Sealed && self.inline.is_none()) || self.to_notify()
    }

    /// The bitfield of a small fan-out, as the group it is.
    #[must_use]
    pub fn inline_group(&self) -> Option<GroupRecord> {
        let Inline { pending, failed, duplicates } = self.inline.clone()?;
        let size = u32::try_from(self.total).unwrap_or(0);
        let (id, updated_at) = (self.id, self.updated_at);
        Some(GroupRecord { id, fanout: id, size, pending, failed, duplicates, added: None, updated_at })
    }

    /// The groups of a small fan-out.
    #[must_use]
    pub(crate) fn inline_groups(&self) -> Vec<ItemGroup> {
        self.inline_group().map(|group| ItemGroup { id: group.id, upto: group.size }).into_iter().collect()
    }

    pub(super) fn decode(item: &Item) -> Result<Self, StoreError> {
        let reader = Reader::new("fanouts", "id", item);
        let state = match reader.text("state")? {
            "open" => FanoutState::Open,
            "sealed" => FanoutState::Sealed,
            "completed" => FanoutState::Completed,
            other => return Err(reader.corrupt("state", format!("is `{other}`"))),
        };
        let inline = || {
            let (pending, failed) = (reader.bits("pending")?, reader.bits("failed_items")?);
            Ok(Inline { pending, failed, duplicates: reader.bits("duplicate_items")? })
        };
        let inline = reader.has("pending").then(inline).transpose()?;
        Ok(Self {
            id: reader.parsed("id")?,
            state,
            total: reader.number("total")?,
            opened_with: reader.number("opened_with")?,
            open_groups: reader.number("open_groups")?,
            failed: reader.number("failed")?,
            duplicates: reader.number("duplicates")?,
            inline,
            user_key: reader.optional_text("user_key")?.map(str::to_owned),
            notify: if reader.has("notify") { Some(reader.json("notify")?) } else { None },
            notice: NoticeProgress::decode(&reader)?,
            cursor: reader.number("cursor")?,
            created_at: Timestamp(reader.number("created_at")?),
            updated_at: Timestamp(reader.number("updated_at")?),
        })
    }

    /// The small fan-out with these bits, which is complete if none is left.
    pub(super) fn after(&self, cleared: &Cleared, now: Timestamp) -> Self {
        let Cleared { pending, failed, duplicates, .. } = cleared.clone();
        Self {
            state: if pending.is_zero() { FanoutState::Completed } else { self.state },
            failed: failed.count(),
            duplicates: duplicates.count(),
            inline: Some(Inline { pending, failed, duplicates }),
            updated_at: now,
            ..self.clone()
        }
    }

    pub(super) fn encode(&self) -> Item {
        let inline = self.inline.as_ref();
        let attributes = [
            ("id", Some(text(self.id))),
            ("state", Some(text(self.state.as_str()))),
            ("total", Some(number(self.total))),
            ("opened_with", Some(number(self.opened_with))),
            ("open_groups", Some(number(self.open_groups))),
            ("failed", count(self.failed)),
            ("duplicates", count(self.duplicates)),
            ("pending", inline.map(|inline| binary(inline.pending.as_bytes()))),
            ("failed_items", inline.and_then(|inline| bits(&inline.failed))),
            ("duplicate_items", inline.and_then(|inline| bits(&inline.duplicates))),
            ("user_key", self.user_key.as_ref().map(text)),
            ("notify", self.notify.as_ref().map(|to| text(serde_json::to_string(to).unwrap_or_default()))),
            (ENDING, self.ending().then(|| shard(self.id))),
            ("cursor", count(self.cursor)),
            ("created_at", Some(time(self.created_at))),
            ("updated_at", Some(time(self.updated_at))),
            ("ttl", self.complete().then(|| expiry(self.updated_at, RETENTION))),
        ];
        item(attributes.into_iter().chain(self.notice.encode()))
    }
}

/// The sparse index of fan-outs that a sweep looks at, and its partition key.
pub(in crate::store) const ENDING: &str = "ending";

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::store::notices::any_notice;
    use crate::store::testing::{any_bits, any_id, any_time};

    fn any_fanout() -> impl Strategy<Value = Fanout> {
        let state = prop::sample::select(vec![FanoutState::Open, FanoutState::Sealed, FanoutState::Completed]);
        let notify = prop::sample::select(vec![None, Some(Destination::Url("https://example.com/".to_owned()))]);
        (
            (any_id(), state, prop::option::of(".{0,9}"), notify, any_notice()),
            any::<[u64; 6]>(),
            prop::option::of(prop::array::uniform3(any_bits())),
            prop::array::uniform2(any_time()),
        )
            .prop_map(|((id, state, user_key, notify, notice), counts, inline, [created_at, updated_at])| {
                let [total, opened_with, open_groups, failed, duplicates, cursor] = counts;
                let inline = inline.map(|[pending, failed, duplicates]| Inline { pending, failed, duplicates });
                Fanout {
                    id,
                    state,
                    total,
                    opened_with,
                    open_groups,
                    failed,
                    duplicates,
                    inline,
                    user_key,
                    notify,
                    notice,
                    cursor,
                    created_at,
                    updated_at,
                }
            })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(fanout in any_fanout()) {
            prop_assert_eq!(Fanout::decode(&fanout.encode()).unwrap(), fanout);
        }
    }
}
