//! Bundles, in the same table as the tasks'. Each change is one conditional write.

use std::collections::{BTreeMap, HashMap};

use aws_sdk_dynamodb::types::AttributeValue;
use uuid::Uuid;

use super::{CREATED, Tasks};
use crate::aws::attributes::{Reader, binary, number, text, time};
use crate::aws::{Item, StoreError};
use crate::bits::Bits;
use crate::clock::Timestamp;
use crate::grouping::{Bundle, BundleState, Claim};
use crate::ids::TaskId;
use crate::lane::Lane;
use crate::limits::{BUNDLED_RETENTION, CONTENTION_TRIES_MAX};
use crate::masks::Masks;
use crate::members::Members;

/// What the id of a bundle's record begins with.
pub(super) const PREFIX: &str = "bundle:";

/// The id of a bundle's record.
pub(super) fn record_id(id: Uuid) -> String {
    format!("{PREFIX}{id}")
}

/// A bundle to be filled.
#[derive(Clone, Debug)]
pub struct NewBundle {
    /// Its id.
    pub id: Uuid,
    /// The lane of its tasks.
    pub lane: Lane,
    /// The tasks that are to be stored as its own.
    pub members: Members,
}

impl Tasks {
    /// Begins bundles: from now on they are found by their lane, but nobody may claim their tasks.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn begin_bundles(&self, bundles: &[NewBundle]) -> Result<(), StoreError> {
        let now = self.table.world.now();
        let inserts =
            self.table.inserts("beginning bundles", &["id", "lane", "state", "members", "created_at", "pending"]);
        let values = |bundle: &NewBundle| {
            let (id, lane) = (text(record_id(bundle.id)), text(&bundle.lane));
            vec![id, lane.clone(), filling(), binary(&bundle.members.pack()), time(now), lane]
        };
        // What is there already under an id that nobody else knows is one's own.
        inserts.execute(bundles.iter().map(values).collect()).await.map(|_| ())
    }

    /// Lets batches claim the tasks that were stored for each bundle. Returns the bundles that were declared dead meanwhile:
    /// their tasks are to be freed.
    ///
    /// # Errors
    /// The table cannot be written, or a record is corrupt.
    pub async fn open_bundles(&self, stored: &BTreeMap<Uuid, Bits>) -> Result<Vec<Uuid>, StoreError> {
        let (none, some): (Vec<_>, Vec<_>) = stored.iter().partition(|(_, slots)| slots.is_zero());
        let ttl = number(self.table.world.now().plus(BUNDLED_RETENTION).seconds());
        // No task was stored for it.
        let closes = self.table.updates(
            "closing bundles",
            "SET \"state\" = ? SET \"ttl\" = ? REMOVE \"pending\" WHERE \"id\" = ? AND \"state\" = ?",
        );
        let close =
            |(id, _): &(&Uuid, &Bits)| vec![state(BundleState::Taken), ttl.clone(), text(record_id(**id)), filling()];
        closes.execute(none.iter().map(close).collect()).await?;
        let opens = self
            .table
            .updates("opening bundles", "SET \"state\" = ? SET \"free\" = ? WHERE \"id\" = ? AND \"state\" = ?");
        let open = |(id, slots): &(&Uuid, &Bits)| {
            vec![state(BundleState::Waiting), binary(slots.as_bytes()), text(record_id(**id)), filling()]
        };
        let mut dead = Vec::new();
        for (at, item) in opens.execute(some.iter().map(open).collect()).await? {
            let bundle = item.as_ref().map(decode).transpose()?;
            // Or it is one's own write whose answer was lost, and what batches have made of it since.
            if bundle.is_none_or(|bundle| bundle.state == BundleState::Dead) {
                dead.push(*some[at].0);
            }
        }
        Ok(dead)
    }

    /// Bundles by their ids; unknown ones are left out.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn bundles(&self, ids: &[Uuid], consistent: bool) -> Result<BTreeMap<Uuid, Bundle>, StoreError> {
        let keys: Vec<String> = ids.iter().map(|id| record_id(*id)).collect();
        let items = self.table.get_many("id", &keys, &[], consistent).await?;
        let bundles: Result<Vec<Bundle>, StoreError> = items.iter().map(decode).collect();
        Ok(bundles?.into_iter().map(|bundle| (bundle.id, bundle)).collect())
    }

    /// Claims slots of bundles of a lane for a batch. `read`: bundles as they were read just now. Returns what the batch has of
    /// each now, whether claimed here or before.
    ///
    /// # Errors
    /// The table cannot be read or written, or a record is corrupt.
    pub async fn claim_bundles(
        &self,
        wanted: &Masks,
        mut read: BTreeMap<Uuid, Bundle>,
        lane: &Lane,
        batch: Uuid,
    ) -> Result<Vec<(Bundle, Bits)>, StoreError> {
        let unread: Vec<Uuid> = wanted.iter().map(|(id, _)| id).filter(|id| !read.contains_key(id)).collect();
        read.extend(self.bundles(&unread, true).await?);
        let of_lane = |bundle: &Bundle| bundle.lane == *lane && wanted.get(bundle.id).is_some();
        let mut open: Vec<Bundle> = read.into_values().filter(of_lane).collect();
        let mut claimed = Vec::with_capacity(open.len());
        for _ in 0..CONTENTION_TRIES_MAX {
            if open.is_empty() {
                return Ok(claimed);
            }
            open = self.claim_round(open, wanted, batch, &mut claimed).await?;
        }
        Err(StoreError::Contended { what: format!("claiming bundles for batch {batch}") })
    }

    /// Claims each bundle as it was read. Returns those that others changed meanwhile, as they stand.
    async fn claim_round(
        &self,
        bundles: Vec<Bundle>,
        wanted: &Masks,
        batch: Uuid,
        claimed: &mut Vec<(Bundle, Bits)>,
    ) -> Result<Vec<Bundle>, StoreError> {
        let ttl = number(self.table.world.now().plus(BUNDLED_RETENTION).seconds());
        let (mut last, mut others) = (Vec::new(), Vec::new());
        for bundle in bundles {
            match bundle.claim(batch, wanted.get(bundle.id).unwrap_or(&Bits::default())) {
                Claim::Stands(has) => claimed.push((bundle, has)),
                Claim::Takes { won, free, claims } => {
                    let is_last = free.is_zero();
                    let to = if is_last { BundleState::Taken } else { BundleState::Waiting };
                    let mut values = vec![state(to), binary(free.as_bytes()), binary(&claims.pack())];
                    values.extend(is_last.then(|| ttl.clone()));
                    values.extend([
                        text(record_id(bundle.id)),
                        state(BundleState::Waiting),
                        binary(bundle.free.as_bytes()),
                    ]);
                    if is_last { &mut last } else { &mut others }.push((bundle, won, values));
                }
            }
        }
        let mut again = Vec::new();
        for (claims, end) in [(last, " SET \"ttl\" = ? REMOVE \"pending\""), (others, "")] {
            let changes = format!(
                "SET \"state\" = ? SET \"free\" = ? SET \"claims\" = ?{end} \
                 WHERE \"id\" = ? AND \"state\" = ? AND \"free\" = ?"
            );
            let rows = claims.iter().map(|(_, _, values)| values.clone()).collect();
            let refused = self.table.updates("claiming bundles", &changes).execute(rows).await?;
            let mut refused: HashMap<usize, Option<Item>> = refused.into_iter().collect();
            for (at, (bundle, won, _)) in claims.into_iter().enumerate() {
                match refused.remove(&at) {
                    None => claimed.push((bundle, won)),
                    Some(Some(item)) => again.push(decode(&item)?),
                    // It is gone, and its tasks with it.
                    Some(None) => {}
                }
            }
        }
        Ok(again)
    }

    /// Declares a bundle dead, if it still fills; its tasks wait on their own from then on. To be repeated until it is through:
    /// only then the bundle leaves the index. A dead bundle is kept, since a late worker may still store a task as its own.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn bury(&self, bundle: &Bundle) -> Result<(), StoreError> {
        let id = text(record_id(bundle.id));
        let buries = self.table.updates("burying a bundle", "SET \"state\" = ? WHERE \"id\" = ? AND \"state\" = ?");
        if bundle.state == BundleState::Filling
            && let refused = buries.execute(vec![vec![state(BundleState::Dead), id.clone(), filling()]]).await?
            && let Some((_, item)) = refused.first()
            && item.as_ref().map(decode).transpose()?.is_none_or(|stands| stands.state != BundleState::Dead)
        {
            // It was opened after all.
            return Ok(());
        }
        self.free(bundle.id, &bundle.lane, bundle.members.ids()).await?;
        let leaves = self.table.updates("burying a bundle", "REMOVE \"pending\" WHERE \"id\" = ? AND \"state\" = ?");
        leaves.execute(vec![vec![id, state(BundleState::Dead)]]).await.map(|_| ())
    }

    /// Makes those of the tasks that were stored for a dead bundle tasks that wait on their own.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn free(&self, bundle: Uuid, lane: &Lane, tasks: &[TaskId]) -> Result<(), StoreError> {
        let frees = self.table.updates(
            "freeing tasks",
            "SET \"status\" = ? SET \"pending\" = ? REMOVE \"bundle\" REMOVE \"ttl\" WHERE \"id\" = ? AND \"bundle\" = ?",
        );
        let values = |id: &TaskId| vec![text(CREATED), text(lane), text(id), binary(bundle.as_bytes())];
        frees.execute(tasks.iter().map(values).collect()).await.map(|_| ())
    }

    /// Keeps the tasks of a bundle for longer, as some of them still wait.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn keep(&self, bundle: &Bundle) -> Result<(), StoreError> {
        let until = self.table.world.now().plus(BUNDLED_RETENTION);
        let keeps = self.table.updates("keeping tasks", "SET \"ttl\" = ? WHERE \"id\" = ? AND \"bundle\" = ?");
        let values = |slot| {
            let id = bundle.members.ids().get(slot)?;
            Some(vec![number(until.seconds()), text(id), binary(bundle.id.as_bytes())])
        };
        keeps.execute(bundle.free.iter().filter_map(values).collect()).await?;
        let notes = self.table.updates("keeping tasks", "SET \"kept_until\" = ? WHERE \"id\" = ? AND \"state\" = ?");
        let note = vec![time(until), text(record_id(bundle.id)), state(BundleState::Waiting)];
        notes.execute(vec![note]).await.map(|_| ())
    }
}

fn state(state: BundleState) -> AttributeValue {
    text(state.as_str())
}

fn filling() -> AttributeValue {
    state(BundleState::Filling)
}

/// A bundle, as it is stored.
pub(super) fn decode(item: &Item) -> Result<Bundle, StoreError> {
    let reader = Reader::new("bundles", "id", item);
    let id = reader.text("id")?;
    let state = reader.text("state")?;
    Ok(Bundle {
        id: id
            .strip_prefix(PREFIX)
            .and_then(|id| id.parse().ok())
            .ok_or_else(|| reader.corrupt("id", format!("is `{id}`")))?,
        lane: reader.parsed("lane")?,
        state: BundleState::parse(state).ok_or_else(|| reader.corrupt("state", format!("is `{state}`")))?,
        members: Members::unpack(reader.bytes("members")?).map_err(|error| reader.corrupt("members", error))?,
        free: reader.bits("free")?,
        claims: Masks::unpack(reader.bytes("claims")?).map_err(|error| reader.corrupt("claims", error))?,
        kept_until: reader.time("kept_until")?,
        created_at: Timestamp(reader.number("created_at")?),
    })
}
