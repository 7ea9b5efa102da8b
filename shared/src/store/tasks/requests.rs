//! Notes of requests: what was asked for under an idempotency key. Their records are in the same table as the tasks'.

use uuid::Uuid;

use super::Tasks;
use crate::aws::StoreError;
use crate::aws::attributes::{Reader, number, text};
use crate::ids::derived;
use crate::limits::{CONTENTION_TRIES_MAX, REQUEST_RETENTION};

/// What a request under an idempotency key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestNote {
    /// Follows from all of its tasks.
    pub digest: Uuid,
    /// How many tasks it has.
    pub tasks: u64,
}

impl Tasks {
    /// Notes what a request asks for, before anything of it is stored. Returns the note that counts: another one, if the key
    /// was used before for something else.
    ///
    /// # Errors
    /// The table cannot be read or written, or a record is corrupt.
    pub async fn note_request(&self, request_id: &str, note: RequestNote) -> Result<RequestNote, StoreError> {
        let id = format!("request:{}", derived::request(request_id));
        let inserts = self.table.inserts("noting a request", &["id", "digest", "tasks", "ttl"]);
        let ttl = self.table.world.now().plus(REQUEST_RETENTION).seconds();
        for _ in 0..CONTENTION_TRIES_MAX {
            let row = vec![text(&id), text(note.digest), number(note.tasks), number(ttl)];
            if inserts.execute(vec![row]).await?.is_empty() {
                return Ok(note);
            }
            // None if it expired this very moment.
            if let Some(item) = self.table.get_many("id", std::slice::from_ref(&id), &[], true).await?.first() {
                let reader = Reader::new("requests", "id", item);
                return Ok(RequestNote { digest: reader.parsed("digest")?, tasks: reader.number("tasks")? });
            }
        }
        Err(StoreError::Contended { what: format!("noting {id}") })
    }
}
