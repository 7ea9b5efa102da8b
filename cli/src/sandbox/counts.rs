//! What the sandbox counts.

use std::fmt;

use serde::Serialize;

/// What has been counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Counts {
    /// All calls.
    pub(super) calls: u64,
    /// Calls that were done.
    pub(super) done: u64,
    /// Those of them whose answer was lost.
    pub(super) lost: u64,
    /// Calls answered with 429.
    pub(super) busy: u64,
    /// Calls answered with 500.
    pub(super) errors: u64,
    /// Calls refused because of a member, or because it is to fail and the API cannot say so of a single member.
    pub(super) refused: u64,
    /// Calls that could not be read.
    pub(super) unreadable: u64,
    /// Calls that got the answer of an earlier one again.
    pub(super) repeated: u64,
    /// Calls under the key of an earlier one, with another body.
    pub(super) key_conflicts: u64,
    /// Members that succeeded.
    pub(super) succeeded: u64,
    /// Members that failed.
    pub(super) failed: u64,
    /// How often a member was done again after it had succeeded.
    pub(super) done_again: u64,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { calls, done, lost, busy, errors, refused, unreadable, repeated, key_conflicts, .. } = self;
        writeln!(f, "calls      {calls}, of them {done} done ({lost} answers lost), {busy} busy, {errors} errors,")?;
        writeln!(
            f,
            "           {refused} refused, {unreadable} unreadable, {repeated} repeated, {key_conflicts} key conflicts"
        )?;
        let Self { succeeded, failed, done_again, .. } = self;
        write!(f, "members    {succeeded} succeeded, {failed} failed, {done_again} done again after they had succeeded")
    }
}
