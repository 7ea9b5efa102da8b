//! For how long leaders may wait, and must, by the fields of their policies as docs/policies.md describes them: the product's own
//! arithmetic is not asked.

use std::time::Duration;

use fanfold::policy::Policy;

/// Looks are at least so far apart, where `quiet` is below a second.
const APART: Duration = Duration::from_millis(100);

/// The part of the time that a leader has waited before which it does not look again, where `quiet` is below a second.
const APART_OF_WAITED: u32 = 32;

/// The same while its batch would have too few members.
const APART_WHILE_FEW: u32 = 4;

/// What holds for a kind's leaders over all versions of its policy.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Waits {
    /// How long one waits at most before it looks at its lane again.
    pub(crate) look: Duration,
    /// How long one waits at most, however often it looks.
    pub(crate) longest: Duration,
    /// Until when one waits for members, where nothing else decides that.
    pub(crate) enough: Option<Enough>,
}

/// The least number of members that a batch has, unless its leader has waited for as long as this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Enough {
    pub(crate) members: usize,
    pub(crate) wait: Duration,
}

impl Waits {
    pub(crate) fn of<'a>(policies: impl Iterator<Item = &'a Policy> + Clone) -> Self {
        let all: Option<Vec<Enough>> = policies.clone().map(enough).collect();
        let least = all.and_then(|all| {
            let members = all.iter().map(|enough| enough.members).min()?;
            Some(Enough { members, wait: all.iter().map(|enough| enough.wait).min()? })
        });
        Self {
            look: policies.clone().map(look).max().unwrap_or_default(),
            longest: policies.map(longest).max().unwrap_or_default(),
            enough: least,
        }
    }
}

fn counts(policy: &Policy) -> bool {
    policy.min_batch.is_some_and(|least| least > 1)
}

/// For how long a leader with too few members waits on after its linger.
fn few(policy: &Policy) -> Option<Duration> {
    policy.min_batch_wait.map(|wait| wait.0).filter(|_| counts(policy))
}

/// How long a leader waits at most in all.
fn longest(policy: &Policy) -> Duration {
    policy.linger.0 + few(policy).unwrap_or_default()
}

/// How long a leader waits at most before it looks again.
fn look(policy: &Policy) -> Duration {
    let (linger, quiet) = (policy.linger.0, policy.quiet.map(|quiet| quiet.0));
    let few = few(policy);
    let mut look = quiet.unwrap_or(linger);
    if quiet.is_some_and(|quiet| quiet < Duration::from_secs(1)) {
        look = look.max(APART).max(linger / APART_OF_WAITED);
    }
    if few.is_some() {
        look = look.max(linger / APART_WHILE_FEW);
    }
    look = look.min(linger).max(few.unwrap_or_default());
    // Messages are delayed by whole seconds. Where one of these times has a part of a second, a worker waits for milliseconds.
    let whole = [Some(linger), quiet, few].iter().flatten().all(|time| time.as_millis().is_multiple_of(1_000));
    let unit: u128 = if whole { 1_000 } else { 1 };
    let millis = look.as_nanos().div_ceil(1_000_000).div_ceil(unit) * unit;
    Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
}

/// Until when a leader waits for members; none, if other things than their number fill a batch or hurry it.
fn enough(policy: &Policy) -> Option<Enough> {
    let fills = policy.max_weight.is_some() || policy.distinct.is_some() || policy.max_batch_bytes.is_some();
    if !counts(policy) || fills || policy.flush_when.is_some() {
        return None;
    }
    let members = usize::try_from(policy.min_batch?).ok()?;
    Some(Enough { members, wait: policy.linger.0 + policy.min_batch_wait?.0 })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn policy(changes: &Value) -> Policy {
        let mut policy = json!({"kind": "parcel", "target": "kind", "batch_api": {"url": "https://a.example/"}});
        for (field, value) in changes.as_object().into_iter().flatten() {
            policy[field] = value.clone();
        }
        serde_json::from_value(policy).expect("a policy")
    }

    #[test]
    fn the_longest_wait_is_that_of_the_documents() {
        for (changes, millis) in [
            (json!({"linger": 3}), 3_000),
            (json!({"linger": 60, "quiet": 5}), 5_000),
            (json!({"linger": "15m", "quiet": "1ms"}), 28_125),
            (json!({"linger": "50ms", "quiet": "1ms"}), 50),
            (json!({"linger": 60, "quiet": 5, "min_batch": 2, "min_batch_wait": 1}), 15_000),
            (json!({"linger": 3, "quiet": 1, "min_batch": 2, "min_batch_wait": 9}), 9_000),
            (json!({"linger": 5, "quiet": 1, "min_batch": 2, "min_batch_wait": 1}), 2_000),
            (json!({"linger": 3, "min_batch": 1, "min_batch_wait": 9}), 3_000),
        ] {
            assert_eq!(look(&policy(&changes)), Duration::from_millis(millis), "{changes}");
        }
    }

    #[test]
    fn all_waits_together_are_the_linger_and_the_wait_for_members() {
        for (changes, millis) in [
            (json!({"linger": 60, "quiet": 5}), 60_000),
            (json!({"linger": 3, "quiet": 1, "min_batch": 2, "min_batch_wait": 9}), 12_000),
            (json!({"linger": "50ms", "min_batch": 1, "min_batch_wait": 9}), 50),
        ] {
            assert_eq!(longest(&policy(&changes)), Duration::from_millis(millis), "{changes}");
        }
    }

    #[test]
    fn members_are_waited_for_where_every_version_says_so() {
        let few = policy(&json!({"linger": 3, "min_batch": 4, "min_batch_wait": 5}));
        let fewer = policy(&json!({"linger": 1, "min_batch": 2, "min_batch_wait": 9}));
        let enough = |policies: &[&Policy]| Waits::of(policies.iter().copied()).enough;
        let seconds = Duration::from_secs;
        assert_eq!(enough(&[&few]), Some(Enough { members: 4, wait: seconds(8) }));
        assert_eq!(enough(&[&few, &fewer]), Some(Enough { members: 2, wait: seconds(8) }));
        assert_eq!(enough(&[&few, &policy(&json!({}))]), None);
        assert_eq!(enough(&[&Policy { flush_when: Some("true".to_owned()), ..few }]), None);
    }
}
