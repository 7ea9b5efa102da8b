//! Shares of keys, worked out as docs/partitioning.md describes them and not by the product's own function; and the partitions of
//! lanes, which follow from them.

use fanfold::store::tasks::Task;
use md5::{Digest, Md5};
use serde_json::Value;

use crate::model::Model;

/// The share of a key: the first 15 hexadecimal digits of its MD5 as a number, modulo `of`.
pub(crate) fn share(key: &str, of: u32) -> u32 {
    let digits: String = Md5::digest(key).iter().map(|byte| format!("{byte:02x}")).collect();
    let number = digits.get(..15).and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or(0);
    u32::try_from(number % u64::from(of.max(1))).unwrap_or(0)
}

impl Model {
    /// What is wrong with the lane that a task was stored in: its partition is the share of the task's key, or of the task's id if
    /// the policy has no key.
    pub(crate) fn misplaced(&self, task: &Task) -> Option<String> {
        let kind = self.kinds.get(&task.lane.kind)?;
        let content: Value = serde_json::from_str(task.content.as_deref()?).unwrap_or_default();
        let key = if kind.keyed { content["k"].as_str()?.to_owned() } else { task.id.to_string() };
        let right = share(&key, kind.partitions);
        let lane = &task.lane;
        (lane.partition != right).then(|| {
            format!(
                "task {} with key {key:?} is in lane {lane}, of {} partitions it belongs to {right}",
                task.id, kind.partitions
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Some of the table in docs/partitioning.md.
    #[test]
    fn shares_are_those_of_the_documents() {
        for (key, wanted) in [("", [0, 1, 424]), ("ORD-1", [1, 0, 123]), ("alice@example.com", [1, 1, 291])] {
            assert_eq!([2, 3, 1_000].map(|of| share(key, of)), wanted, "{key}");
        }
    }
}
