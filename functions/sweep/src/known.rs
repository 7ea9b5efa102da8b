//! Kinds that have a policy. Tasks of other kinds wait until these have one; a message would have no effect before that.

use std::collections::BTreeSet;

use crate::{Sweep, SweepError};

/// The kinds that have a policy.
#[derive(Debug)]
pub(crate) struct Known(Option<BTreeSet<String>>);

impl Known {
    /// Whether a kind has a policy; true if that could not be read.
    pub(crate) fn has(&self, kind: &str) -> bool {
        self.0.as_ref().is_none_or(|kinds| kinds.contains(kind))
    }

    /// The kinds, if they could be read.
    pub(crate) fn kinds(&self) -> Option<Vec<&str>> {
        self.0.as_ref().map(|kinds| kinds.iter().map(String::as_str).collect())
    }

    /// Logs how many lanes of each kind wait for a policy.
    pub(crate) fn report<'a>(&self, kinds: impl Iterator<Item = &'a str>) {
        let without: Vec<&str> = kinds.filter(|kind| !self.has(kind)).collect();
        for kind in without.iter().collect::<BTreeSet<_>>() {
            let lanes = without.iter().filter(|other| other == &kind).count();
            tracing::warn!(kind, lanes, "tasks wait, and there is no policy of their kind");
        }
    }
}

impl Sweep {
    /// The kinds that have a policy. If they cannot be read, all count, and some messages are sent in vain.
    pub(crate) async fn known(&self) -> (Known, Result<(), SweepError>) {
        match self.policies.kinds().await {
            Ok(kinds) => (Known(Some(kinds.into_iter().collect())), Ok(())),
            Err(error) => (Known(None), Err(error.into())),
        }
    }
}
