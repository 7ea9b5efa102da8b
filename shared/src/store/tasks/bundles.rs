//! Bundles, in the same table as the tasks'. Each change is one conditional write.

mod record;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use uuid::Uuid;

use self::record::{SAME_STATE, taken};
use super::Tasks;
use super::record::{ID, PENDING, SAME_BUNDLE, Standing, State, TTL};
use crate::aws::attributes::{expiry, item, text};
use crate::aws::{Item, StoreError};
use crate::bits::Bits;
use crate::grouping::{Bundle, BundleState, Claim};
use crate::ids::TaskId;
use crate::lane::Lane;
use crate::limits::{BUNDLED_RETENTION, CONTENTION_TRIES_MAX};
use crate::masks::Masks;

pub(super) use self::record::{PREFIX, SAME_SLOTS, decode, encode, record_id};

impl Tasks {
    /// Begins bundles: from now on they are found by their lane, but no batch may claim their tasks.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn begin_bundles(&self, bundles: &[Bundle]) -> Result<(), StoreError> {
        let items = bundles.iter().map(|bundle| encode(bundle, self.table.expires(BUNDLED_RETENTION))).collect();
        // No other worker knows these ids, so a record that exists is this worker's own.
        self.table.insert_each("beginning bundles", items, |_| {}).await.map(|_| ())
    }

    /// Opens bundles, so that batches may claim the tasks stored for them. `opened`: the bundles as they are to be. Returns
    /// those that were declared dead meanwhile: their tasks are to be freed.
    ///
    /// # Errors
    /// The table cannot be written, or a record is corrupt.
    pub async fn open_bundles(&self, opened: &[Bundle]) -> Result<HashSet<Uuid>, StoreError> {
        let expires = self.table.expires(BUNDLED_RETENTION);
        let open = |opened: &Bundle| {
            let before = Bundle { state: BundleState::Filling, free: Bits::default(), ..opened.clone() };
            (encode(&before, expires), encode(opened, expires))
        };
        let opens = opened.iter().map(open).collect();
        let mut dead = HashSet::new();
        for (at, item) in self.table.change_each("opening bundles", &SAME_STATE, opens).await? {
            let stands = item.as_ref().map(decode).transpose()?;
            // Or it is this write, whose answer was lost, with what batches have claimed since.
            if stands.is_none_or(|bundle| bundle.state == BundleState::Dead) {
                dead.insert(opened[at].id);
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
        let items = self.table.get_many(ID, &keys, &[], consistent).await?;
        let bundles: Result<Vec<Bundle>, StoreError> = items.iter().map(decode).collect();
        Ok(bundles?.into_iter().map(|bundle| (bundle.id, bundle)).collect())
    }

    /// Claims slots of bundles of a lane for a batch. `read`: the bundles as they were just read. Returns the slots that the
    /// batch has of each now, whether claimed here or before.
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
        let expires = self.table.expires(BUNDLED_RETENTION);
        let mut claims = Vec::new();
        for bundle in bundles {
            match bundle.claim(batch, wanted.get(bundle.id).unwrap_or(&Bits::default())) {
                Claim::Stands(has) => claimed.push((bundle, has)),
                Claim::Takes { won, after } => claims.push((bundle, won, after)),
            }
        }
        let changes =
            claims.iter().map(|(bundle, _, after)| (encode(bundle, expires), encode(after, expires))).collect();
        let refused = self.table.change_each("claiming bundles", &SAME_SLOTS, changes).await?;
        let mut refused: HashMap<usize, Option<Item>> = refused.into_iter().collect();
        let mut again = Vec::new();
        for (at, (bundle, won, _)) in claims.into_iter().enumerate() {
            match refused.remove(&at) {
                None => claimed.push((bundle, won)),
                Some(Some(item)) => again.push(decode(&item)?),
                // It is gone, and its tasks with it.
                Some(None) => {}
            }
        }
        Ok(again)
    }

    /// Declares a bundle dead, if it still fills, and makes its tasks wait on their own. This is repeated until all of them do:
    /// only then does the bundle leave the index. A dead bundle is kept, since a late worker may still store a task for it.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn bury(&self, bundle: &Bundle) -> Result<(), StoreError> {
        let expires = self.table.expires(BUNDLED_RETENTION);
        let dead = encode(&Bundle { state: BundleState::Dead, ..bundle.clone() }, expires);
        if bundle.state == BundleState::Filling {
            let dies = vec![(encode(bundle, expires), dead.clone())];
            let refused = self.table.change_each("burying a bundle", &SAME_STATE, dies).await?;
            if let Some((_, item)) = refused.first()
                && item.as_ref().map(decode).transpose()?.is_none_or(|stands| stands.state != BundleState::Dead)
            {
                // It was opened after all.
                return Ok(());
            }
        }
        self.free_from(bundle, bundle.members.ids()).await?;
        let mut buried = dead.clone();
        buried.remove(PENDING);
        self.table.change_each("burying a bundle", &SAME_STATE, vec![(dead, buried)]).await.map(|_| ())
    }

    /// Makes tasks that were stored for a dead bundle wait on their own.
    ///
    /// # Errors
    /// The table cannot be written.
    pub(crate) async fn free_from(&self, bundle: &Bundle, tasks: &[TaskId]) -> Result<(), StoreError> {
        self.free(tasks.iter().map(|id| standing(bundle, *id, None)).collect()).await
    }

    /// Makes tasks wait on their own, each if it still belongs to its bundle, which is dead.
    pub(super) async fn free(&self, tasks: Vec<Standing>) -> Result<(), StoreError> {
        let free = |task: Standing| {
            let before = Standing { ttl: Some(0), ..task };
            let after = Standing { state: State::Created, ttl: None, ..before.clone() };
            (before.encode(), after.encode())
        };
        self.table.change_each("freeing tasks", &SAME_BUNDLE, tasks.into_iter().map(free).collect()).await.map(|_| ())
    }

    /// Keeps the tasks of a bundle for longer, as some of them still wait.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn keep(&self, bundle: &Bundle) -> Result<(), StoreError> {
        let until = self.table.expires(BUNDLED_RETENTION);
        let keep = |id| {
            let after = standing(bundle, id, Some(until.seconds()));
            (Standing { ttl: None, ..after.clone() }.encode(), after.encode())
        };
        self.table.change_each("keeping tasks", &SAME_BUNDLE, bundle.tasks(&bundle.free).map(keep).collect()).await?;
        let kept = Bundle { kept_until: Some(until), ..bundle.clone() };
        let note = vec![(encode(bundle, until), encode(&kept, until))];
        self.table.change_each("keeping tasks", &SAME_STATE, note).await.map(|_| ())
    }

    /// Keeps tasks that batches have claimed for longer, and the bundles that say so. A bundle of which tasks wait has no time to live.
    ///
    /// # Errors
    /// The table cannot be read or written, or a record is corrupt.
    pub async fn keep_claimed(&self, ids: &[TaskId]) -> Result<(), StoreError> {
        let bundles = self.standings(ids, true).await?.into_iter().filter_map(|task| task.state.bundle());
        let bundles: BTreeSet<Uuid> = bundles.collect();
        let until = self.table.expires(BUNDLED_RETENTION);
        let of_task = |id: &TaskId| item([(ID, Some(text(id)))]);
        let keep = |before: Item| {
            let ttl = (TTL.to_owned(), expiry(until));
            (before.clone(), before.into_iter().chain([ttl]).collect())
        };
        let tasks = ids.iter().map(of_task).map(keep).collect();
        self.table.change_each("keeping tasks", &[ID], tasks).await?;
        let bundles = bundles.into_iter().map(taken).map(keep).collect();
        self.table.change_each("keeping bundles", &SAME_STATE, bundles).await.map(|_| ())
    }
}

/// A task that was stored for a bundle.
fn standing(bundle: &Bundle, id: TaskId, ttl: Option<u64>) -> Standing {
    Standing { id, lane: bundle.lane.clone(), state: State::Bundled(bundle.id), ttl }
}
