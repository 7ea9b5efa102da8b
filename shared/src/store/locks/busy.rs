//! The lanes that are busy: the index of them, and how a lane leaves it.

use std::ops::ControlFlow;

use super::Locks;
use super::record::{ACTIVE, CLOSING, HOLDER, IN_FLIGHT, TTL, WAITING};
use crate::aws::attributes::{Reader, item, number, text};
use crate::aws::{Extent, Looked, Segment, StoreError};
use crate::lane::Lane;
use crate::limits::{KEYS_PER_READ_MAX, LANE_RETENTION};
use crate::store::pace::spent_by;
use crate::store::places::ID;
use crate::store::shards::shard;

impl Locks {
    /// How many lanes were busy when last looked at.
    ///
    /// # Errors
    /// The table cannot be read.
    pub async fn busy_extent(&self) -> Result<Extent, StoreError> {
        self.0.extent(ACTIVE).await
    }

    /// The lanes of a segment that were busy when last looked at.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn busy(&self, segment: Segment) -> Result<Vec<Lane>, StoreError> {
        let mut lanes = Vec::new();
        let visit = |item| {
            lanes.push(Reader::new("locks", ID, &item).parsed(ID)?);
            Ok(())
        };
        self.0.scan(Some(ACTIVE), segment, visit).await?;
        Ok(lanes)
    }

    /// A page of the lanes that are busy, as the index shows them, in no order, after the last lane of another page. Also returns
    /// whether there may be more.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn active(&self, after: Option<&Lane>, size: usize) -> Result<(Vec<Lane>, bool), StoreError> {
        let start = after.map(|lane| item([(ACTIVE, Some(shard(lane))), (ID, Some(text(lane)))]));
        let (items, next) = self.0.scan_page(ACTIVE, size, start).await?;
        let lanes = items.iter().map(|item| Reader::new("locks", ID, item).parsed(ID)).collect::<Result<_, _>>()?;
        Ok((lanes, next.is_some()))
    }

    /// A lane of this kind that has a leader, or batches in flight or closing. Looks through at most `pages` pages of the index of
    /// busy lanes, then reads the locks that it names consistently.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn busy_of(&self, kind: &str, pages: usize) -> Result<Looked<Lane>, StoreError> {
        let mut lanes: Vec<Lane> = Vec::new();
        let visit = |item| {
            lanes.extend(Some(Reader::new("locks", ID, &item).parsed(ID)?).filter(|lane: &Lane| lane.kind == kind));
            Ok(ControlFlow::<Lane>::Continue(()))
        };
        let looked = self.0.look_through(Some(ACTIVE), pages, visit).await?;
        for lanes in lanes.chunks(KEYS_PER_READ_MAX) {
            if let Some(lock) = self.get_many(lanes, true).await?.into_iter().find(|lock| !lock.idle()) {
                return Ok(Looked::Found(lock.lane));
            }
        }
        Ok(looked)
    }

    /// Takes an idle lane out of the index of busy lanes and lets its record expire, unless what its rate has spent is to be
    /// known for longer.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn retire(&self, lane: &Lane) -> Result<(), StoreError> {
        let until = self.0.world.now().plus(LANE_RETENTION);
        let change = self
            .change(lane)
            .set(TTL, number(until.seconds()))
            .remove([ACTIVE, WAITING])
            .when_absent(HOLDER)
            .when_absent(IN_FLIGHT)
            .when_absent(CLOSING)
            .when_present(ACTIVE);
        spent_by(change, until).send().await.map(|_| ())
    }
}
