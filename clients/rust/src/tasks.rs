//! Tasks.

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::client::Fanfold;
use crate::error::ClientError;

/// A task to register.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NewTask {
    /// Its id: an item's, if it is one of a fan-out. Without one, the stack makes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its kind; there must be a policy for it.
    pub kind: String,
    /// What the batch API gets for it.
    pub content: Value,
}

/// What became of a task of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Streamed {
    /// It was stored.
    Registered {
        /// Its id.
        id: String,
    },
    /// It was stored before, under the same id.
    Known {
        /// Its id.
        id: String,
    },
    /// Another task has its key, so it was dropped.
    Duplicate {
        /// Its id.
        id: String,
        /// The task that has the key.
        of: String,
    },
    /// It cannot be accepted, and was not stored.
    Refused {
        /// Names the kind of problem; it never changes.
        code: String,
        /// The field that is wrong, if one is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        field: Option<String>,
        /// Its value and what is allowed.
        problem: String,
    },
}

#[derive(Deserialize)]
struct Line {
    line: u64,
    #[serde(flatten)]
    outcome: Streamed,
}

impl Fanfold {
    /// Registers tasks, 1 to 10,000, each by itself: one that cannot be accepted does not keep the others from being stored. What became of
    /// each, in their order. A request without an answer is repeated: give ids of your own or a key, or tasks are registered again.
    ///
    /// # Errors
    /// The request was refused as a whole, or broke off, and some tasks may be stored; see [`ClientError`].
    pub async fn register_each(&self, tasks: &[NewTask], key: Option<&str>) -> Result<Vec<Streamed>, ClientError> {
        let lines: String = tasks.iter().map(|task| serde_json::json!(task).to_string() + "\n").collect();
        let lines: Vec<Line> = self.http.call_lines(Method::POST, "/tasks", &lines, key).await?;
        // Every line was sent with something in it, and so is answered.
        if lines.len() != tasks.len() || (1..).zip(&lines).any(|(number, line)| line.line != number) {
            let cause = format!("it is about {} of {} lines", lines.len(), tasks.len());
            return Err(ClientError::Answer { request: "POST /tasks".to_owned(), cause });
        }
        Ok(lines.into_iter().map(|line| line.outcome).collect())
    }
}
