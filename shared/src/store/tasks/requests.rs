//! Notes of requests: what was asked for under an idempotency key. Their records are in the same table as the tasks'.

use uuid::Uuid;

use super::Tasks;
use super::record::{ID, TTL};
use crate::aws::attributes::{Reader, expiry, item, number, text};
use crate::aws::{Item, StoreError};
use crate::clock::Timestamp;
use crate::ids::derived;
use crate::limits::{CONTENTION_TRIES_MAX, REQUEST_RETENTION};

const DIGEST: &str = "digest";
const TASKS: &str = "tasks";

/// The note of a request under an idempotency key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestNote {
    /// A digest of all its tasks, or of all fan-outs that it opens.
    pub digest: Uuid,
    /// How many of them it has.
    pub tasks: u64,
}

impl RequestNote {
    fn encode(self, id: &str, expires: Timestamp) -> Item {
        item([
            (ID, Some(text(id))),
            (DIGEST, Some(text(self.digest))),
            (TASKS, Some(number(self.tasks))),
            (TTL, Some(expiry(expires))),
        ])
    }

    fn decode(item: &Item) -> Result<Self, StoreError> {
        let reader = Reader::new("requests", ID, item);
        Ok(Self { digest: reader.parsed(DIGEST)?, tasks: reader.number(TASKS)? })
    }
}

impl Tasks {
    /// Notes what a request asks for, before any of it is stored. Returns the note that counts: another one, if the key was
    /// used before for another request.
    ///
    /// # Errors
    /// The table cannot be read or written, or a record is corrupt.
    pub async fn note_request(&self, request_id: &str, note: RequestNote) -> Result<RequestNote, StoreError> {
        let id = format!("request:{}", derived::request(request_id));
        for _ in 0..CONTENTION_TRIES_MAX {
            let item = note.encode(&id, self.table.expires(REQUEST_RETENTION));
            if self.table.insert_each("noting a request", vec![item], |_| {}).await?.is_empty() {
                return Ok(note);
            }
            // None if it expired this very moment.
            if let Some(item) = self.table.get_many(ID, std::slice::from_ref(&id), &[], true).await?.first() {
                return RequestNote::decode(item);
            }
        }
        Err(StoreError::Contended { what: format!("storing the request {id}") })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{any_id, any_time};

    proptest! {
        #[test]
        fn what_is_written_is_read(digest in any_id(), tasks: u64, now in any_time()) {
            let note = RequestNote { digest, tasks };
            prop_assert_eq!(RequestNote::decode(&note.encode("request:1", now)).unwrap(), note);
        }
    }
}
