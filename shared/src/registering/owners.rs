//! Who has the keys of tasks.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::aws::StoreError;
use crate::ids::TaskId;
use crate::lane::Lane;
use crate::limits::CONTENTION_TRIES_MAX;
use crate::store::tasks::{Holding, Key, KeyRequest, Stored, Takeover};

use uuid::Uuid;

use super::{Assigned, RegisterError, Registrar};

/// The tasks that own the keys of a request's tasks.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    /// For every task: itself, if it has no key or got it.
    pub(crate) of: Vec<TaskId>,
    /// Owners of other requests that need no stand-in: they are stored, or ended long ago.
    pub(crate) stored: HashSet<TaskId>,
    /// Those of them that were freed from dead bundles: their lanes are to be woken.
    pub(crate) freed: Vec<(TaskId, Lane)>,
}

impl Registrar {
    /// Takes the keys of tasks, but of none that is `over`. One that was released is taken over, and one that another task has which
    /// will never be handled.
    pub(crate) async fn owners(&self, assigned: &[Assigned], over: &HashSet<TaskId>) -> Result<Owners, RegisterError> {
        let to_do = assigned.iter().enumerate().filter(|(_, task)| !over.contains(&task.id));
        let keyed: Vec<(usize, &Key)> = to_do.filter_map(|(at, task)| Some((at, task.key.as_ref()?))).collect();
        let claim = |(at, key): &(usize, &Key)| KeyRequest { key: (*key).clone(), owner: assigned[*at].id };
        let claims: Vec<KeyRequest> = keyed.iter().map(claim).collect();
        let mut freed = Vec::new();
        for _ in 0..CONTENTION_TRIES_MAX {
            let mut holdings = self.tasks.take_keys(&claims).await?;
            let others: Vec<TaskId> = foreign(&claims, &holdings).map(|(_, holding)| holding.owner).collect();
            // Read before it is read who waits: a task that waits in a fan-out that was cut short is never called.
            let cut_short = self.tracking.fanouts.cut_short(&across(&claims, &holdings)).await?;
            let owners = self.tasks.stored(&others).await?;
            freed.extend(owners.iter().filter_map(|(id, stored)| Some((*id, stored.freed()?.clone()))));
            let free: Vec<usize> =
                (0..claims.len()).filter(|at| is_free(&claims[*at], &holdings[*at], &owners, &cut_short)).collect();
            // A task that is stored, or is a duplicate, takes no key over when its request is repeated.
            let claimants: Vec<TaskId> = free.iter().map(|at| claims[*at].owner).collect();
            let done = self.tasks.stored(&claimants).await?;
            let may = |claim: &KeyRequest| !done.contains_key(&claim.owner) && !is_cut_short(&claim.owner, &cut_short);
            let takeovers = takeovers(&claims, &holdings, &free, may);
            if !takeovers.is_empty() {
                self.tasks.take_over(&takeovers).await?;
                continue;
            }
            let mut stored: HashSet<TaskId> = owners.into_keys().collect();
            for at in free {
                match done.get(&claims[at].owner) {
                    Some(Stored::Task { .. }) => holdings[at].owner = claims[at].owner,
                    // It is a duplicate or is never called, so it stands in for no other task.
                    _ => drop(stored.insert(holdings[at].owner)),
                }
            }
            let mut of: Vec<TaskId> = assigned.iter().map(|task| task.id).collect();
            keyed.iter().zip(&holdings).for_each(|((at, _), holding)| of[*at] = holding.owner);
            return Ok(Owners { of, stored, freed });
        }
        Err(StoreError::Contended { what: "taking keys over".to_owned() }.into())
    }
}

/// The claims whose keys other tasks have.
fn foreign<'a>(
    claims: &'a [KeyRequest],
    holdings: &'a [Holding],
) -> impl Iterator<Item = (&'a KeyRequest, &'a Holding)> {
    claims.iter().zip(holdings).filter(|(claim, holding)| claim.owner != holding.owner)
}

/// The fan-outs of claims and owners where a claim is for a key that a task of another fan-out has, or of none, or the
/// other way round: a policy's scope spans them.
fn across(claims: &[KeyRequest], holdings: &[Holding]) -> BTreeSet<Uuid> {
    let pairs = foreign(claims, holdings).map(|(claim, holding)| [fanout(&claim.owner), fanout(&holding.owner)]);
    pairs.filter(|[claim, owner]| claim != owner).flatten().flatten().collect()
}

fn fanout(id: &TaskId) -> Option<Uuid> {
    id.item().map(|item| item.fanout)
}

/// Whether the key is to be taken over. Its owner released it; then the owner itself has to take it, too, if it is registered once
/// more after its record expired. Or another task has it and need not keep it: that one is itself a duplicate, it ended so long ago
/// that its record is gone, or it will never be called, as its fan-out was cut short.
fn is_free(
    claim: &KeyRequest,
    holding: &Holding,
    owners: &HashMap<TaskId, Stored>,
    cut_short: &BTreeSet<Uuid>,
) -> bool {
    let owner = owners.get(&holding.owner);
    let duplicate = matches!(owner, Some(Stored::Duplicate(_)));
    let never_called = is_cut_short(&holding.owner, cut_short)
        && owner.is_none_or(|owner| matches!(owner, Stored::Task { waits: Some(_), .. }));
    let need_not = duplicate || never_called || (holding.old && owner.is_none());
    holding.released || (claim.owner != holding.owner && need_not)
}

/// Whether a task's fan-out was cut short. Such a task may get a key that no task has, but none that another task had: it may
/// have lost that one before, and what lost a key never gets it back.
fn is_cut_short(id: &TaskId, cut_short: &BTreeSet<Uuid>) -> bool {
    fanout(id).is_some_and(|fanout| cut_short.contains(&fanout))
}

/// The free keys that go to tasks which may have them: of several in one request, the first.
fn takeovers(
    claims: &[KeyRequest],
    holdings: &[Holding],
    free: &[usize],
    may: impl Fn(&KeyRequest) -> bool,
) -> Vec<Takeover> {
    let mut seen = HashSet::new();
    let new = free.iter().filter(|at| may(&claims[**at]) && seen.insert(&claims[**at].key));
    let takeover = |at: &usize| Takeover { key: claims[*at].key.clone(), from: holdings[*at], to: claims[*at].owner };
    new.map(takeover).collect()
}
