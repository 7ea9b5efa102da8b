//! What lists of results share: a page of members with their outcomes and results.

use axum::http::header::LINK;
use axum::response::{IntoResponse, Response};
use fanfold::ids::TaskId;
use fanfold::limits::{RESULTS_PAGE_BYTES_MAX, RESULTS_PER_PAGE_MAX};
use fanfold::results::Kept;
use fanfold::store::batches::{MemberState, ResultReader};
use fanfold_http::{Code, Json, Lines, Problem, QueryParameter, WantsLines, decoded};
use serde::Serialize;
use serde_json::value::RawValue;

use super::batches::outcome;

/// `?after=…`: the last task of the previous page.
pub(super) struct AfterMember;

impl AfterMember {
    /// The task does not belong to what is listed.
    pub(super) fn stranger(after: &TaskId, to: &str) -> Problem {
        let detail =
            format!("the query parameter `after`: {after} does not belong to {to}, the last id of a page does");
        Problem::new(Code::InvalidParameter, detail)
    }
}

impl QueryParameter for AfterMember {
    const NAME: &str = "after";
    const ABOUT: &str = "The id of the last task of the previous page, as its `next` has it.";
    type Value = TaskId;

    fn read(text: &str) -> Option<TaskId> {
        decoded(text)?.parse().ok()
    }

    fn allowed() -> String {
        "the id of a task".to_owned()
    }

    #[cfg(feature = "openapi")]
    fn schema() -> serde_json::Value {
        fanfold::openapi::task_id().to_value()
    }
}

/// A page of results.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub(super) struct Results {
    /// Tasks that succeeded or failed.
    results: Vec<ResultView>,
    /// The path of the next page, if there may be one. A page may be empty and still have a next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// What a route returns that lists results; `page`: a page of which.
#[cfg(feature = "openapi")]
pub(super) fn returned_by<'a>(
    operation: fanfold_http::openapi::Operation<'a>,
    page: &'static str,
) -> fanfold_http::openapi::Operation<'a> {
    let lines = "With `Accept: application/x-ndjson` a result per line; the header `Link` then has the next page.";
    operation.says(lines).query::<AfterMember>().returns::<Results>(page).answered_by_lines::<ResultView>()
}

/// What became of a task.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "Result"))]
pub(super) struct ResultView {
    /// The task.
    id: TaskId,
    /// Its outcome: `succeeded` or `failed`.
    outcome: MemberState,
    /// What the batch API returned for it, if results are kept.
    #[cfg_attr(feature = "openapi", schemars(with = "Option<serde_json::Value>"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
    /// Why its result was not kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    result_left_out: Option<String>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The same as a short name or number, if the batch API returned one.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
}

/// What is known of a result: the result, or why there is none.
pub(super) fn shown(kept: Option<Kept>) -> Result<(Option<Box<RawValue>>, Option<String>), Problem> {
    match kept {
        None => Ok((None, None)),
        Some(Kept::LeftOut(note)) => Ok((None, Some(note))),
        Some(Kept::Result(json)) => {
            let result = RawValue::from_string(json).map_err(|error| Problem::internal(&error))?;
            Ok((Some(result), None))
        }
    }
}

/// A page in the making.
#[derive(Default)]
pub(super) struct Page {
    results: Vec<ResultView>,
    last: Option<TaskId>,
    looked_at: usize,
    bytes: usize,
    /// Whether there may be another page.
    pub(super) more: bool,
}

impl Page {
    /// Whether it takes no more.
    pub(super) fn is_full(&self) -> bool {
        self.looked_at >= RESULTS_PER_PAGE_MAX || self.bytes >= RESULTS_PAGE_BYTES_MAX
    }

    /// Passes a task of which nothing is known.
    pub(super) fn pass(&mut self, id: TaskId) {
        self.last = Some(id);
        self.looked_at += 1;
    }

    /// Adds a member of a batch, if it succeeded or failed.
    pub(super) async fn look(&mut self, id: TaskId, reader: &mut ResultReader<'_>, slot: usize) -> Result<(), Problem> {
        self.pass(id);
        let (outcome, error) = outcome(reader.batch(), slot);
        if !matches!(outcome, MemberState::Succeeded | MemberState::Failed) {
            return Ok(());
        }
        let code = reader.batch().code(slot).map(str::to_owned);
        let kept = reader.of(slot).await?;
        self.bytes += kept.as_ref().map_or(0, |kept| kept.text().len());
        let (result, result_left_out) = shown(kept)?;
        self.results.push(ResultView { id, outcome, result, result_left_out, error, code });
        Ok(())
    }

    /// The page as it is returned; `path`: that of the list.
    pub(super) fn answer(self, path: &str, WantsLines(lines): WantsLines) -> Response {
        let next = self.last.filter(|_| self.more).map(|last| format!("{path}?after={last}"));
        if !lines {
            return Json(Results { results: self.results, next }).into_response();
        }
        let mut body = Vec::new();
        for result in &self.results {
            if let Err(error) = serde_json::to_writer(&mut body, result) {
                return Problem::internal(&error).into_response();
            }
            body.push(b'\n');
        }
        let link = next.map(|next| [(LINK, format!("<{next}>; rel=\"next\""))]);
        (link, Lines(body)).into_response()
    }
}
