//! What waits in a lane, as hints name it: tasks on their own, and bundles.
//!
//! In messages, two texts: `tasks`, a packed list of task ids, and `bundles`, a run of `id (16 bytes) tasks (u16, big-endian)`,
//! both as base64.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ids::TaskId;
use crate::limits::NAMED_RECORDS_MAX;
use crate::members::Members;

/// Records of tasks that wait: tasks on their own, and bundles, each with the number of its tasks that no batch has claimed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Packed", into = "Packed")]
pub struct Waiting {
    /// Tasks on their own.
    pub tasks: Members,
    /// Bundles, with the number of tasks that wait in each.
    pub bundles: BTreeMap<Uuid, u16>,
}

/// Bytes that a bundle takes in its packed form.
const BUNDLE_BYTES: usize = 18;

impl Waiting {
    /// Tasks on their own.
    pub fn alone(tasks: impl IntoIterator<Item = TaskId>) -> Self {
        Self { tasks: Members::new(tasks), bundles: BTreeMap::new() }
    }

    /// How many tasks wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tasks.len() + self.bundles.values().map(|tasks| usize::from(*tasks)).sum::<usize>()
    }

    /// Whether nothing is named.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty() && self.bundles.is_empty()
    }

    /// The number of records named.
    #[must_use]
    pub fn records(&self) -> usize {
        self.tasks.len() + self.bundles.len()
    }

    /// All that either names.
    #[must_use]
    pub fn union(mut self, other: &Self) -> Self {
        if !other.tasks.is_empty() {
            self.tasks = self.tasks.ids().iter().chain(other.tasks.ids()).copied().collect();
        }
        self.bundles.extend(other.bundles.iter().map(|(id, tasks)| (*id, *tasks)));
        self
    }

    /// Split into portions that one message may name; a single empty one, if nothing is named.
    #[must_use]
    pub fn portions(&self) -> Vec<Self> {
        let mut portions: Vec<Self> =
            self.tasks.ids().chunks(NAMED_RECORDS_MAX).map(|ids| Self::alone(ids.iter().copied())).collect();
        for (id, tasks) in &self.bundles {
            match portions.last_mut() {
                Some(last) if last.records() < NAMED_RECORDS_MAX => drop(last.bundles.insert(*id, *tasks)),
                _ => portions.push(Self { tasks: Members::default(), bundles: BTreeMap::from([(*id, *tasks)]) }),
            }
        }
        if portions.is_empty() {
            portions.push(Self::default());
        }
        portions
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Packed {
    #[serde(default, skip_serializing_if = "Members::is_empty")]
    tasks: Members,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    bundles: String,
}

impl From<Waiting> for Packed {
    fn from(waiting: Waiting) -> Self {
        let mut bytes = Vec::with_capacity(waiting.bundles.len() * BUNDLE_BYTES);
        for (id, tasks) in &waiting.bundles {
            bytes.extend_from_slice(id.as_bytes());
            bytes.extend_from_slice(&tasks.to_be_bytes());
        }
        Self { tasks: waiting.tasks, bundles: STANDARD.encode(bytes) }
    }
}

impl TryFrom<Packed> for Waiting {
    type Error = String;

    fn try_from(packed: Packed) -> Result<Self, String> {
        let bytes = STANDARD.decode(packed.bundles.as_bytes()).map_err(|error| format!("`bundles`: {error}"))?;
        if bytes.len() % BUNDLE_BYTES != 0 {
            return Err(format!("`bundles` has {} bytes, a multiple of {BUNDLE_BYTES} is allowed", bytes.len()));
        }
        let bundle = |bytes: &[u8]| {
            let (id, tasks) = bytes.split_at(16);
            (Uuid::from_slice(id).unwrap_or_default(), u16::from_be_bytes([tasks[0], tasks[1]]))
        };
        let bundles = bytes.chunks(BUNDLE_BYTES).map(bundle).collect();
        let waiting = Self { tasks: packed.tasks, bundles };
        // With more, a step would exceed its time-out, and fail all messages of the invocation.
        if waiting.records() > NAMED_RECORDS_MAX {
            return Err(format!("names {} records, at most {NAMED_RECORDS_MAX} are allowed", waiting.records()));
        }
        Ok(waiting)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn waiting(tasks: &[u128], bundles: &[(u128, u16)]) -> Waiting {
        let tasks = tasks.iter().map(|id| TaskId::Single(Uuid::from_u128(*id))).collect();
        Waiting { tasks, bundles: bundles.iter().map(|(id, tasks)| (Uuid::from_u128(*id), *tasks)).collect() }
    }

    proptest! {
        #[test]
        fn round_trips(
            tasks in prop::collection::vec(any::<u128>(), 0..40),
            bundles in prop::collection::vec((any::<u128>(), any::<u16>()), 0..40),
        ) {
            let waiting = waiting(&tasks, &bundles);
            let json = serde_json::to_string(&waiting).unwrap();
            prop_assert_eq!(serde_json::from_str::<Waiting>(&json).unwrap(), waiting);
        }

        #[test]
        fn portions_name_everything_once(tasks in 0_u128..5_000, bundles in 0_u128..5_000) {
            let tasks: Vec<u128> = (0..tasks).collect();
            let bundles: Vec<(u128, u16)> = (0..bundles).map(|id| (id, 3)).collect();
            let all = waiting(&tasks, &bundles);
            let portions = all.portions();
            prop_assert!(portions.iter().all(|portion| portion.records() <= NAMED_RECORDS_MAX));
            prop_assert_eq!(portions.iter().map(Waiting::len).sum::<usize>(), all.len());
            prop_assert_eq!(portions.iter().fold(Waiting::default(), Waiting::union), all);
        }
    }

    #[test]
    fn a_message_that_names_too_much_is_refused() {
        let bundles: Vec<(u128, u16)> = (0..=NAMED_RECORDS_MAX as u128).map(|id| (id, 1)).collect();
        let json = serde_json::to_string(&waiting(&[], &bundles)).unwrap();
        let error = serde_json::from_str::<Waiting>(&json).unwrap_err().to_string();
        assert!(error.starts_with("names 2001 records, at most 2000 are allowed"), "{error}");
        let error = serde_json::from_str::<Waiting>(r#"{"bundles":"AAAA"}"#).unwrap_err().to_string();
        assert!(error.starts_with("`bundles` has 3 bytes, a multiple of 18 is allowed"), "{error}");
    }
}
