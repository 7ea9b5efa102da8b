//! The response to a stream of tasks, which has a line for each.

use fanfold::json::JsonError;
use fanfold::limits::{PROBLEM_BYTES_MAX, PROBLEM_BYTES_MIN, STREAM_ANSWER_BYTES_MAX};
use fanfold::registering::{Registered, TaskFault};
use fanfold::text::shorten;
use fanfold_http::{Code, Lines, Problem};
use serde::Serialize;

/// The result for one line of a stream: its task, or why it has none.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "LineAnswer"))]
pub(crate) struct LineAnswer {
    /// The number of the line, from 1. Empty lines count, and get no result.
    line: u64,
    #[serde(flatten)]
    outcome: LineOutcome,
}

#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(untagged)]
enum LineOutcome {
    /// The task was registered, was known, or is a duplicate.
    Registered(Registered),
    /// Nothing was stored for it.
    Refused(RefusedLine),
}

/// Why nothing was stored for a line.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub(crate) struct RefusedLine {
    /// `refused`.
    outcome: Refused,
    /// The problem's name; it never changes.
    code: &'static str,
    /// The field that is wrong, if one is.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    /// Its value and what is allowed.
    problem: String,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum Refused {
    Refused,
}

impl RefusedLine {
    fn new(code: Code, field: Option<String>, problem: &str) -> Self {
        let problem = shorten(problem, PROBLEM_BYTES_MAX).into_owned();
        Self { outcome: Refused::Refused, code: code.name(), field, problem }
    }

    /// The same with field and problem shortened.
    fn shortened(&self, most: usize) -> Self {
        let field = self.field.as_deref().map(|field| shorten(field, most).into_owned());
        Self { field, problem: shorten(&self.problem, most).into_owned(), ..self.clone() }
    }
}

impl From<TaskFault> for RefusedLine {
    fn from(TaskFault { field, problem, .. }: TaskFault) -> Self {
        Self::new(Code::InvalidTasks, Some(field), &problem)
    }
}

impl From<JsonError> for RefusedLine {
    fn from(error: JsonError) -> Self {
        match error {
            JsonError::Field(fault) => Self::new(Code::InvalidBody, Some(fault.field), &fault.problem),
            JsonError::Shape(problem) => Self::new(Code::InvalidBody, None, &problem),
            error => Self::new(Code::MalformedJson, None, &error.to_string()),
        }
    }
}

impl LineAnswer {
    pub(crate) fn new(line: u64, outcome: Result<Registered, RefusedLine>) -> Self {
        let outcome = outcome.map_or_else(LineOutcome::Refused, LineOutcome::Registered);
        Self { line, outcome }
    }

    fn text(&self) -> Result<String, Problem> {
        serde_json::to_string(self).map_err(|error| Problem::internal(&error))
    }

    /// Its JSON, in about `most` bytes: shortens the problem as far as needed.
    fn within(&self, most: usize) -> Result<String, Problem> {
        let mut text = self.text()?;
        let LineOutcome::Refused(refused) = &self.outcome else { return Ok(text) };
        // Escaping may make it longer.
        let mut shown = most / 2;
        while text.len() > most && shown >= PROBLEM_BYTES_MIN {
            text = Self { line: self.line, outcome: LineOutcome::Refused(refused.shortened(shown)) }.text()?;
            shown /= 2;
        }
        Ok(text)
    }
}

/// The response with all results, one per line, within the limit of a response.
pub(crate) fn answer(answers: &[LineAnswer]) -> Result<Lines, Problem> {
    let most = STREAM_ANSWER_BYTES_MAX / answers.len().max(1) - 1;
    let mut body = Vec::new();
    for answer in answers {
        body.extend_from_slice(answer.within(most)?.as_bytes());
        body.push(b'\n');
    }
    Ok(Lines(body))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use fanfold::ids::{ItemId, TaskId};
    use fanfold::limits::{GROUP_ITEMS_MAX, TASKS_PER_REQUEST_MAX};
    use fanfold::policy::FieldError;
    use fanfold::registering::Registration;
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::*;

    fn text(Lines(body): Lines) -> Vec<Value> {
        let text = String::from_utf8(body).unwrap();
        assert!(text.is_empty() || text.ends_with('\n'));
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn a_line_is_a_task_or_says_why_it_is_none() {
        let id = TaskId::Single(Uuid::nil());
        let field = |field: &str| FieldError { field: field.to_owned(), problem: "is 5".to_owned() };
        let fault = TaskFault { index: 7, field: "content".to_owned(), problem: "is too large".to_owned() };
        let answers = [
            Ok(Registered { id, outcome: Registration::Duplicate { of: id } }),
            Err(fault.into()),
            Err(JsonError::Field(field("kind")).into()),
            Err(JsonError::Malformed("EOF".to_owned()).into()),
            Err(JsonError::Shape("is not an object".to_owned()).into()),
        ];
        let answers: Vec<LineAnswer> =
            (2..).zip(answers).map(|(line, outcome)| LineAnswer::new(line, outcome)).collect();
        let expected = json!([
            {"line": 2, "id": id, "outcome": "duplicate", "of": id},
            {"line": 3, "outcome": "refused", "code": "invalid_tasks", "field": "content", "problem": "is too large"},
            {"line": 4, "outcome": "refused", "code": "invalid_body", "field": "kind", "problem": "is 5"},
            {"line": 5, "outcome": "refused", "code": "malformed_json", "problem": "is not JSON: EOF"},
            {"line": 6, "outcome": "refused", "code": "invalid_body", "problem": "is not an object"},
        ]);
        assert_eq!(json!(text(answer(&answers).unwrap())), expected);
        assert!(text(answer(&[]).unwrap()).is_empty());
    }

    /// The most that there may be.
    #[test]
    fn an_answer_is_never_too_large() {
        let item = ItemId { fanout: Uuid::max(), group: Uuid::max(), index: (GROUP_ITEMS_MAX - 1) as u16 };
        let id = TaskId::Item(item);
        let good = || Ok(Registered { id, outcome: Registration::Duplicate { of: id } });
        let hostile = "\u{1}".repeat(100_000);
        let bad = || Err(TaskFault { index: 0, field: hostile[..120].to_owned(), problem: hostile.clone() }.into());
        for which in [|_| true, |_| false, |at: u64| at.is_multiple_of(2)] {
            let line = |at: u64| LineAnswer::new(u64::MAX - at, if which(at) { good() } else { bad() });
            let answers: Vec<LineAnswer> = (0..TASKS_PER_REQUEST_MAX as u64).map(line).collect();
            let Lines(body) = answer(&answers).unwrap();
            assert!(body.len() <= STREAM_ANSWER_BYTES_MAX, "{}", body.len());
            assert_eq!(text(Lines(body)).len(), TASKS_PER_REQUEST_MAX);
        }
    }

    #[test]
    fn what_is_wrong_is_shown_in_whole_where_there_is_room() {
        let shown = |problem: &str| {
            let fault = TaskFault { index: 0, field: "id".to_owned(), problem: problem.to_owned() };
            let answers = [LineAnswer::new(1, Err(fault.into()))];
            text(answer(&answers).unwrap())[0]["problem"].as_str().unwrap().to_owned()
        };
        for problem in ["", "is 5", &"ä".repeat(300), &"x".repeat(PROBLEM_BYTES_MAX)] {
            assert_eq!(shown(problem), problem);
        }
        let long = shown(&format!("the beginning{}the end", "x".repeat(5_000)));
        assert!((PROBLEM_BYTES_MAX - 8..=PROBLEM_BYTES_MAX).contains(&long.len()), "{}", long.len());
        assert!(long.starts_with("the beginningx") && long.ends_with("xthe end"), "{long}");
    }
}
