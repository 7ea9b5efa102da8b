//! The switches of a kind are in the record of its policy. The switch of everything has a record of its own.

use std::sync::PoisonError;

use super::{KIND, POLICY, Policies};
use crate::aws::attributes::{Reader, text};
use crate::aws::{Item, Segment, StoreError};
use crate::clock::Timestamp;
use crate::control::{Scope, Switchboard, Switches, TooMany};
use crate::limits::CONTENTION_TRIES_MAX;
use crate::policy::no_policy;

/// The key of the switch of everything. No kind has this name.
pub(super) const ALL: &str = "*";

const SWITCHES: &str = "switches";

/// A switch could not be used.
#[derive(Debug, thiserror::Error)]
pub enum SwitchError {
    /// There is no such kind.
    #[error("{}", no_policy(.0))]
    UnknownKind(String),
    /// The kind has as many as it may have.
    #[error(transparent)]
    TooMany(#[from] TooMany),
    /// The table could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Policies {
    /// Changes the switches in a scope's record, on condition that they are as they were read. Returns them as they are then. A
    /// change can be repeated.
    ///
    /// # Errors
    /// There is no such kind, no room, or the table cannot be read or written.
    pub async fn switch(
        &self,
        scope: &Scope,
        change: impl Fn(&mut Switches, Timestamp) -> Result<(), TooMany>,
    ) -> Result<Switches, SwitchError> {
        let key = scope.kind().unwrap_or(ALL);
        for _ in 0..CONTENTION_TRIES_MAX {
            let item = self.table.get(KIND, key.to_owned(), true).await?;
            let before = item.as_ref().map(decode).transpose()?.unwrap_or_default();
            // Switches outlive their kind's policy, so that a pause can be ended; none is added without a policy.
            let known = item.is_some_and(|item| item.contains_key(POLICY)) || before != Switches::default();
            if !known && scope.kind().is_some() {
                return Err(SwitchError::UnknownKind(key.to_owned()));
            }
            let mut after = before.clone();
            change(&mut after, self.table.world.now())?;
            if after == before || self.write(scope, &before, &after).await? {
                return Ok(after);
            }
        }
        Err(StoreError::Contended { what: format!("switching {scope}") }.into())
    }

    async fn write(&self, scope: &Scope, before: &Switches, after: &Switches) -> Result<bool, StoreError> {
        let change = self.table.change(KIND, scope.kind().unwrap_or(ALL));
        let change = change.put([(SWITCHES, after.encode().map(text))]);
        let change = change.when_same(SWITCHES, before.encode().map(text));
        // There is no record for a kind that never had a policy.
        let change = if scope.kind().is_some() { change.when_present(KIND) } else { change };
        let written = change.send().await?.is_done();
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).clear();
        Ok(written)
    }

    /// All switches, as they stand now.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn switchboard(&self) -> Result<Switchboard, StoreError> {
        let mut board = Switchboard::default();
        let visit = |item| {
            let switches = decode(&item)?;
            match Reader::new("policies", KIND, &item).text(KIND)? {
                ALL => board.all = switches,
                kind => drop(board.kinds.insert(kind.to_owned(), switches)),
            }
            Ok(())
        };
        self.table.scan(None, Segment::ALL, visit).await?;
        Ok(board)
    }
}

/// The switches in a record.
pub(super) fn decode(item: &Item) -> Result<Switches, StoreError> {
    let reader = Reader::new("policies", KIND, item);
    let Some(text) = reader.optional_text(SWITCHES)? else { return Ok(Switches::default()) };
    let kind = Some(reader.text(KIND)?).filter(|kind| *kind != ALL);
    Switches::decode(kind, text).map_err(|error| reader.corrupt(SWITCHES, error))
}
