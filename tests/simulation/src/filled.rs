//! What a call may have of its members' bytes, weights and values, over all versions of a policy.

use std::collections::BTreeSet;

use fanfold::limits::MEMBER_BYTES;
use fanfold::policy::Policy;
use fanfold_batch_api::{Call, CallMember};

/// What a task weighs: up to ten, if its content says so.
pub(crate) const WEIGHT: &str = "has(content.n) ? double(content.n) / 100.0 : 1.0";

/// What only one member of a call may have: the first digit of its number.
pub(crate) const DISTINCT: &str = "has(content.n) ? string(content.n).substring(0, 1) : 'none'";

/// Which tasks end the linger of their lanes: one in five.
pub(crate) const FLUSH_WHEN: &str = "has(content.n) && double(content.n) < 200.0";

/// Which tasks have head starts: one in five by far, three in ten by less.
pub(crate) const PRIORITY: &str =
    "!has(content.n) ? null : double(content.n) < 200.0 ? '1m' : double(content.n) < 500.0 ? 20 : 0";

/// The limits of a kind's calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filled {
    /// Whether tasks end the linger of their lanes, in every version.
    pub(crate) flushes: bool,
    /// Whether its tasks go by their ranks, in every version, and as many as a batch may have.
    pub(crate) by_rank: bool,
    bytes: Option<u32>,
    thousandths: Option<u64>,
    distinct: bool,
}

impl Filled {
    pub(crate) fn of<'a>(policies: impl Iterator<Item = &'a Policy> + Clone) -> Self {
        Self {
            by_rank: policies.clone().all(only_by_rank),
            flushes: policies.clone().all(|policy| policy.flush_when.is_some()),
            distinct: policies.clone().all(|policy| policy.distinct.is_some()),
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
            .or_else(|| self.alike(call))
    }

    /// Two members of a call that do not ride together.
    fn alike(&self, call: &Call) -> Option<String> {
        let mut seen = BTreeSet::new();
        let again = call.members.iter().find(|member| !seen.insert(value(member))).filter(|_| self.distinct)?;
        Some(format!("task {} is not the first of its value in batch {}", again.id, call.batch_id))
    }
}

/// Whether nothing but the number of its members fills a batch, and these go by their ranks.
fn only_by_rank(policy: &Policy) -> bool {
    let counts = policy.max_weight.is_some() || policy.distinct.is_some() || policy.max_batch_bytes.is_some();
    policy.priority.is_some() && !counts
}

fn number(member: &CallMember) -> Option<u64> {
    number_in(member.content.get())
}

fn number_in(content: &str) -> Option<u64> {
    let content: serde_json::Value = serde_json::from_str(content).unwrap_or_default();
    content["n"].as_u64()
}

/// Whether a task with this content flushes, by [`FLUSH_WHEN`].
pub(crate) fn flushes(content: &str) -> bool {
    number_in(content).is_some_and(|n| n < 200)
}

/// The head start of a task with this content in seconds, by [`PRIORITY`].
pub(crate) fn head_start(content: &str) -> u64 {
    number_in(content).map_or(0, |n| match n {
        0..200 => 60,
        200..500 => 20,
        _ => 0,
    })
}

/// The weight of a member in thousandths, by [`WEIGHT`].
pub(crate) fn weight(member: &CallMember) -> u64 {
    number(member).map_or(1_000, |n| n * 10)
}

/// The value of a member by [`DISTINCT`].
fn value(member: &CallMember) -> Option<char> {
    number(member).and_then(|n| n.to_string().chars().next())
}
