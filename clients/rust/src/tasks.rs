//! Tasks.

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::client::Fanfold;
use crate::error::ClientError;
use crate::query::encoded;

/// A task to register.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NewTask {
    /// Its id; that of an item, if it belongs to a fan-out. Without one, the stack makes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its kind, which must have a policy.
    pub kind: String,
    /// The content that the batch API receives.
    pub content: Value,
}

/// Within what a key is accepted once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyWithin {
    /// The tasks whose policy gives them this scope.
    Scope(String),
    /// The items of a fan-out.
    Fanout(String),
    /// Tasks that are no items.
    Single,
}

/// The result for a task of a stream.
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
    /// It is a duplicate: another task has its key.
    Duplicate {
        /// Its id.
        id: String,
        /// The task that has the key.
        of: String,
    },
    /// It cannot be accepted, and was not stored.
    Refused {
        /// The problem's name; it never changes.
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
    /// The task that has a key, or had it last, as the API shows it.
    ///
    /// # Errors
    /// There is none (404, `unknown_task`); see [`ClientError`].
    pub async fn task_by_key(&self, kind: &str, key: &str, within: &KeyWithin) -> Result<Value, ClientError> {
        let within = match within {
            KeyWithin::Scope(scope) => format!("&scope={}", encoded(scope)),
            KeyWithin::Fanout(fanout) => format!("&fanout={}", encoded(fanout)),
            KeyWithin::Single => String::new(),
        };
        let path = format!("/tasks?kind={}&key={}{within}", encoded(kind), encoded(key));
        self.http.call(Method::GET, &path, None, None).await
    }

    /// Registers 1 to 10,000 tasks, each by itself: a task that cannot be accepted does not keep the others from being stored.
    /// Returns a result for each, in their order. The client repeats a request without an answer: use ids of your own or a key,
    /// or tasks may be registered again.
    ///
    /// # Errors
    /// The request was refused as a whole, or broke off, and some tasks may be stored; see [`ClientError`].
    pub async fn register_each(&self, tasks: &[NewTask], key: Option<&str>) -> Result<Vec<Streamed>, ClientError> {
        let lines: String = tasks.iter().map(|task| serde_json::json!(task).to_string() + "\n").collect();
        let lines: Vec<Line> = self.http.call_lines(Method::POST, "/tasks", &lines, key).await?;
        // No line that was sent is empty, so each has a result.
        if lines.len() != tasks.len() || (1..).zip(&lines).any(|(number, line)| line.line != number) {
            let cause = format!("it has results for {} of {} lines", lines.len(), tasks.len());
            return Err(ClientError::Answer { request: "POST /tasks".to_owned(), cause });
        }
        Ok(lines.into_iter().map(|line| line.outcome).collect())
    }
}
