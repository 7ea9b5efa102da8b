//! What a call may have of its members' bytes and weights, over all versions of a policy.

use fanfold::limits::MEMBER_BYTES;
use fanfold::policy::Policy;
use fanfold_batch_api::{Call, CallMember};

/// What a task weighs: up to ten, if its content says so.
pub(crate) const WEIGHT: &str = "has(content.n) ? double(content.n) / 100.0 : 1.0";

/// The limits of a kind's calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filled {
    bytes: Option<u32>,
    thousandths: Option<u64>,
}

impl Filled {
    pub(crate) fn of<'a>(policies: impl Iterator<Item = &'a Policy> + Clone) -> Self {
        Self {
            bytes: policies.clone().map(|policy| policy.max_batch_bytes).max().flatten(),
            thousandths: policies.map(|policy| policy.max_weight.map(|most| most.0)).max().flatten(),
        }
    }

    /// What a call has too much of. A member that is too much by itself goes alone.
    pub(crate) fn exceeded(&self, call: &Call) -> Option<String> {
        if call.members.len() < 2 {
            return None;
        }
        let bytes: usize = call.members.iter().map(|member| member.content.get().len() + MEMBER_BYTES).sum();
        let weight: u64 = call.members.iter().map(weight).sum();
        let over = |what, got: u64, most: Option<u64>| {
            let most = most.filter(|most| got > *most)?;
            Some(format!("batch {} has {got} {what}, {most} are allowed", call.batch_id))
        };
        over("bytes", bytes as u64, self.bytes.map(u64::from))
            .or_else(|| over("thousandths of weight", weight, self.thousandths))
    }
}

/// The weight of a member in thousandths, by [`WEIGHT`].
fn weight(member: &CallMember) -> u64 {
    let content: serde_json::Value = serde_json::from_str(member.content.get()).unwrap_or_default();
    content["n"].as_u64().map_or(1_000, |n| n * 10)
}
