//! How the members that an answer names differ from those of the call.

use std::collections::HashMap;
use std::fmt;

use fanfold::ids::TaskId;
use fanfold::limits::MEMBERS_NAMED_MAX;

use super::{MemberAnswer, MemberOutcome};

/// Members without an outcome, with several, and others than those of the call; each in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mismatch {
    /// Members of the call that the answer does not name.
    pub missing: Vec<TaskId>,
    /// Those that it names more than once.
    pub repeated: Vec<TaskId>,
    /// Tasks that it names and that are no members of the call.
    pub unknown: Vec<TaskId>,
}

impl Mismatch {
    /// Compares the members of a call with those that its answer names.
    pub fn of(called: impl IntoIterator<Item = TaskId>, named: &[MemberAnswer]) -> Self {
        let called: Vec<TaskId> = called.into_iter().collect();
        let mut times: HashMap<TaskId, u32> = called.iter().map(|id| (*id, 0)).collect();
        let mut mismatch = Self::default();
        for MemberAnswer { id, .. } in named.iter().filter(|member| member.outcome != MemberOutcome::Unnamed) {
            match times.get_mut(id) {
                None => mismatch.unknown.push(*id),
                Some(times) => {
                    *times += 1;
                    if *times == 2 {
                        mismatch.repeated.push(*id);
                    }
                }
            }
        }
        mismatch.missing = called.into_iter().filter(|id| times.get(id) == Some(&0)).collect();
        mismatch
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.missing.is_empty() && self.repeated.is_empty() && self.unknown.is_empty()
    }
}

/// Some of these ids, and how many there are beside them.
pub(super) fn some(ids: &[TaskId]) -> String {
    let named: Vec<String> = ids.iter().take(MEMBERS_NAMED_MAX).map(ToString::to_string).collect();
    match ids.len() - named.len() {
        0 => named.join(", "),
        others => format!("{} and {others} more", named.join(", ")),
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            ("no outcome for", &self.missing),
            ("several outcomes for", &self.repeated),
            ("outcomes for tasks that are no members:", &self.unknown),
        ];
        let parts = parts.into_iter().filter(|(_, ids)| !ids.is_empty());
        let parts: Vec<String> = parts.map(|(what, ids)| format!("{what} {}", some(ids))).collect();
        write!(f, "the answer has {}", parts.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn ids(numbers: &[u128]) -> Vec<TaskId> {
        numbers.iter().map(|number| TaskId::Single(Uuid::from_u128(*number))).collect()
    }

    fn compare(called: &[u128], named: &[u128]) -> Mismatch {
        let answer = |id| MemberAnswer::new(id, MemberOutcome::Succeeded);
        Mismatch::of(ids(called), &ids(named).into_iter().map(answer).collect::<Vec<_>>())
    }

    #[test]
    fn what_differs_is_named_and_only_some_of_many() {
        assert!(compare(&[1, 2], &[2, 1]).is_empty());
        let mismatch = compare(&[1, 2, 3], &[3, 9, 3, 3, 1]);
        assert_eq!((mismatch.missing, mismatch.repeated, mismatch.unknown), (ids(&[2]), ids(&[3]), ids(&[9])));
        let [one, two] = [1, 2].map(Uuid::from_u128);
        let shown = compare(&[1, 2, 3, 4, 5], &[]).to_string();
        assert_eq!(shown, format!("the answer has no outcome for {one}, {two} and 3 more"));
        let shown = compare(&[1], &[1, 1, 2]).to_string();
        let expected =
            format!("the answer has several outcomes for {one}; outcomes for tasks that are no members: {two}");
        assert_eq!(shown, expected);
    }
}
