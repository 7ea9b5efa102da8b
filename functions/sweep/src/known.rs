//! Kinds that have a policy. What waits of others goes on when they have one again: until then no message would lead anywhere.

use std::collections::BTreeSet;

use crate::{Sweep, SweepError};

/// The kinds that have a policy.
#[derive(Debug)]
pub(crate) struct Known(Option<BTreeSet<String>>);

impl Known {
    /// Whether a kind has a policy, as far as is known.
    pub(crate) fn has(&self, kind: &str) -> bool {
        self.0.as_ref().is_none_or(|kinds| kinds.contains(kind))
    }

    /// Those kinds, if they could be read.
    pub(crate) fn kinds(&self) -> Option<Vec<&str>> {
        self.0.as_ref().map(|kinds| kinds.iter().map(String::as_str).collect())
    }

    /// Says how many lanes of each kind wait for a policy.
    pub(crate) fn report<'a>(&self, kinds: impl Iterator<Item = &'a str>) {
        let without: Vec<&str> = kinds.filter(|kind| !self.has(kind)).collect();
        for kind in without.iter().collect::<BTreeSet<_>>() {
            let lanes = without.iter().filter(|other| other == &kind).count();
            tracing::warn!(kind, lanes, "tasks wait, and there is no policy of their kind");
        }
    }
}

impl Sweep {
    /// The kinds that have a policy; all, if that cannot be read: then a message too many is sent.
    pub(crate) async fn known(&self) -> (Known, Result<(), SweepError>) {
        match self.policies.kinds().await {
            Ok(kinds) => (Known(Some(kinds.into_iter().collect())), Ok(())),
            Err(error) => (Known(None), Err(error.into())),
        }
    }
}
