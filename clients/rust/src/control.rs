//! Pausing, draining, cancelling, and the list of lanes.

use futures::{Stream, TryStreamExt, stream};
use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::client::{Fanfold, Page};
use crate::error::ClientError;
use crate::query::encoded;

/// Everything (`all`), a kind, a target with all its partitions, or a lane.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Scope {
    /// True for everything. The other fields are then not given.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// A kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// A target of the kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// A partition of the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<u32>,
}

impl Scope {
    fn query(&self) -> String {
        let parameters = [
            self.kind.as_deref().map(|kind| format!("kind={}", encoded(kind))),
            self.target.as_deref().map(|target| format!("target={}", encoded(target))),
            self.partition.map(|partition| format!("partition={partition}")),
        ];
        parameters.into_iter().flatten().collect::<Vec<_>>().join("&")
    }
}

impl Fanfold {
    /// Pauses a scope: some seconds later no call of a batch API begins there. Returns its switch.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn pause(&self, scope: &Scope) -> Result<Value, ClientError> {
        self.http.call(Method::POST, "/pause", Some(&json!(scope)), None).await
    }

    /// Resumes a scope. Returns its switch.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn resume(&self, scope: &Scope) -> Result<Value, ClientError> {
        self.http.call(Method::POST, "/resume", Some(&json!(scope)), None).await
    }

    /// Forms the batches of a scope at once, until all that waits now is in a batch. Returns its switch.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn drain(&self, scope: &Scope) -> Result<Value, ClientError> {
        self.http.call(Method::POST, "/drain", Some(&json!(scope)), None).await
    }

    /// The scopes that are paused, that drain, or that were just resumed, read page by page.
    pub fn switches(&self) -> impl Stream<Item = Result<Value, ClientError>> + use<'_> {
        let pages = self.pages::<Switches>("/switches".to_owned());
        pages.map_ok(|page| stream::iter(page.switches.into_iter().map(Ok))).try_flatten()
    }

    /// The lanes of a scope that are busy, or in which tasks wait, read page by page.
    pub fn lanes(&self, scope: &Scope, only_paused: bool) -> impl Stream<Item = Result<Value, ClientError>> + use<'_> {
        let paused = if only_paused { "&paused=true" } else { "" };
        let path = format!("/lanes?{}{paused}", scope.query());
        let pages = self.pages::<Lanes>(path.replace("?&", "?").trim_end_matches('?').to_owned());
        pages.map_ok(|page| stream::iter(page.lanes.into_iter().map(Ok))).try_flatten()
    }

    /// The stack's health, as the API shows it.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn health(&self) -> Result<Value, ClientError> {
        self.http.call(Method::GET, "/health", None, None).await
    }

    /// A task, as the API shows it.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn task(&self, id: &str) -> Result<Value, ClientError> {
        self.http.call(Method::GET, &format!("/tasks/{}", encoded(id)), None, None).await
    }

    /// A batch, as the API shows it.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn batch(&self, id: &str) -> Result<Value, ClientError> {
        self.http.call(Method::GET, &format!("/batches/{}", encoded(id)), None, None).await
    }

    /// The request that a batch's batch API is called with, as the API shows it.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn batch_request(&self, id: &str) -> Result<Value, ClientError> {
        self.http.call(Method::GET, &format!("/batches/{}/request", encoded(id)), None, None).await
    }

    /// Cancels a task that no batch has claimed. Returns it.
    ///
    /// # Errors
    /// A batch has claimed it (409, `task_not_waiting`); see [`ClientError`].
    pub async fn cancel_task(&self, id: &str) -> Result<Value, ClientError> {
        self.http.call(Method::DELETE, &format!("/tasks/{}", encoded(id)), None, None).await
    }

    /// Cancels the tasks of a kind, a target or a lane that no batch has claimed, page by page. Returns how many are cancelled.
    ///
    /// # Errors
    /// See [`ClientError`]. Earlier pages are cancelled.
    pub async fn cancel_tasks(&self, scope: &Scope) -> Result<u64, ClientError> {
        self.cancel_tasks_by_page(scope).try_fold(0, async |sum, cancelled| Ok(sum + cancelled)).await
    }

    /// The same, to be followed: how many tasks each page cancelled. A page is sent when it is asked for.
    pub fn cancel_tasks_by_page(&self, scope: &Scope) -> impl Stream<Item = Result<u64, ClientError>> + use<'_> {
        self.posted_pages::<Cancelled>("/tasks/cancel", scope).map_ok(|page| page.cancelled)
    }

    /// Resets a task on its own that failed or was cancelled. Returns the task that it is now.
    ///
    /// # Errors
    /// It has not failed, or is an item (409); see [`ClientError`].
    pub async fn reset_task(&self, id: &str) -> Result<Value, ClientError> {
        self.http.call(Method::POST, &format!("/tasks/{}/reset", encoded(id)), None, None).await
    }

    /// Resets the failed tasks of a kind, a target or a lane that are not items, page by page.
    ///
    /// # Errors
    /// See [`ClientError`]. Tasks of earlier pages are reset.
    pub async fn reset_tasks(&self, scope: &Scope) -> Result<ResetTasks, ClientError> {
        self.reset_tasks_by_page(scope).try_fold(ResetTasks::default(), async |all, page| Ok(all.plus(page))).await
    }

    /// The same, to be followed: how many tasks each page reset. A page is sent when it is asked for.
    pub fn reset_tasks_by_page(&self, scope: &Scope) -> impl Stream<Item = Result<ResetTasks, ClientError>> + use<'_> {
        self.posted_pages("/tasks/reset", scope)
    }

    /// Pages that are asked for by the same body.
    fn posted_pages<T: Page>(
        &self,
        path: &str,
        scope: &Scope,
    ) -> impl Stream<Item = Result<T, ClientError>> + use<'_, T> {
        let body = json!(scope);
        stream::try_unfold((Some(path.to_owned()), body), async move |(path, body)| {
            let Some(path) = path else { return Ok(None) };
            let page: T = self.http.call(Method::POST, &path, Some(&body), None).await?;
            let next = page.next();
            Ok(Some((page, (next, body))))
        })
    }

    /// The number of dead letters of each step, as the API shows them.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn dead_letters(&self) -> Result<Value, ClientError> {
        self.http.call(Method::GET, "/dead-letters", None, None).await
    }

    /// Moves the dead letters of a step back to its queue, page by page.
    ///
    /// # Errors
    /// See [`ClientError`]. Those of earlier pages are moved.
    pub async fn redrive(&self, step: &str) -> Result<Redriven, ClientError> {
        let (mut all, path) = (Redriven::default(), format!("/dead-letters/{step}/redrive"));
        loop {
            let page: Redriven = self.http.call(Method::POST, &path, None, None).await?;
            all.moved += page.moved;
            all.kept += page.kept;
            all.refused += page.refused;
            // What stays comes again and again.
            if !page.more || page.moved == 0 {
                return Ok(all);
            }
        }
    }
}

/// How many failed tasks of a scope were reset.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct ResetTasks {
    /// How many wait again.
    pub reset: u64,
    /// How many were reset before, or are duplicates by now.
    pub known: u64,
    /// How many cannot be accepted any more.
    pub refused: u64,
    /// What is wrong with the first of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    #[serde(default, skip_serializing)]
    next: Option<String>,
}

impl ResetTasks {
    /// The counts of both.
    #[must_use]
    pub fn plus(self, page: Self) -> Self {
        Self {
            reset: self.reset + page.reset,
            known: self.known + page.known,
            refused: self.refused + page.refused,
            problem: self.problem.or(page.problem),
            next: page.next,
        }
    }
}

impl Page for ResetTasks {
    fn next(&self) -> Option<String> {
        self.next.clone()
    }
}

/// What became of the dead letters of a step.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Redriven {
    /// How many were moved back to its queue.
    pub moved: u64,
    /// How many stay because they have counts of estimated fan-outs: one that came twice would count twice.
    pub kept: u64,
    /// How many SQS did not take, so that they stay.
    pub refused: u64,
    #[serde(skip_serializing)]
    more: bool,
}

#[derive(Deserialize)]
struct Switches {
    switches: Vec<Value>,
    next: Option<String>,
}

impl Page for Switches {
    fn next(&self) -> Option<String> {
        self.next.clone()
    }
}

#[derive(Deserialize)]
struct Lanes {
    lanes: Vec<Value>,
    next: Option<String>,
}

impl Page for Lanes {
    fn next(&self) -> Option<String> {
        self.next.clone()
    }
}

#[derive(Deserialize)]
struct Cancelled {
    cancelled: u64,
    next: Option<String>,
}

impl Page for Cancelled {
    fn next(&self) -> Option<String> {
        self.next.clone()
    }
}
