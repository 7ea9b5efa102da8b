//! The tasks of rows, in requests of a bounded size.

use fanfold::content;
use fanfold::ids::derived;
use fanfold::json::{self, JsonError};
use fanfold::messages::TaskRequest;
use fanfold_client::{NewTask, Streamed};

use crate::rows::{Row, Rows};

/// Tasks of one request.
const TASKS_MAX: usize = 1_000;

/// Bytes of the contents of one request. API Gateway passes a stream on as base64, and Lambda takes at most 6 MB.
const BYTES_MAX: usize = 1_024 * 1_024;

/// The rows of one request.
#[derive(Debug, Default)]
pub(super) struct Request {
    /// The lines of the tasks.
    pub(super) lines: Vec<u64>,
    /// The tasks.
    pub(super) tasks: Vec<NewTask>,
    /// Rows that are no tasks, with their lines.
    pub(super) bad: Vec<(u64, Streamed)>,
}

/// Makes requests of rows.
pub(super) struct Requests {
    rows: Rows,
    number: u64,
    kind: Option<String>,
    name: String,
}

impl Requests {
    /// `kind`: rows are contents of tasks of this kind; otherwise they are tasks. `name`: tasks without ids get ids that follow
    /// from it.
    pub(super) fn new(rows: Rows, kind: Option<String>, name: String) -> Self {
        Self { rows, number: 0, kind, name }
    }

    /// The task in a row, and how many bytes its content has.
    fn task(&self, row: Row) -> Result<(NewTask, usize), Streamed> {
        let task = match &self.kind {
            Some(kind) => TaskRequest { id: None, kind: kind.clone(), content: row.content },
            None => json::shape(row.content).map_err(|error| match error {
                JsonError::Field(fault) => refused("invalid_body", Some(fault.field), fault.problem),
                error => refused("invalid_body", None, error.to_string()),
            })?,
        };
        let text = content::encode(&task.content);
        let text = text.map_err(|error| refused("invalid_tasks", Some("content".to_owned()), error.to_string()))?;
        let id = task.id.unwrap_or_else(|| derived::row_task(&self.name, self.number, &task.kind, &text));
        Ok((NewTask { id: Some(id.to_string()), kind: task.kind, content: task.content }, text.len()))
    }
}

fn refused(code: &str, field: Option<String>, problem: String) -> Streamed {
    Streamed::Refused { code: code.to_owned(), field, problem }
}

impl Iterator for Requests {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        let (mut request, mut bytes) = (Request::default(), 0);
        while request.tasks.len() < TASKS_MAX && request.bad.len() < TASKS_MAX && bytes < BYTES_MAX {
            let Some(row) = self.rows.next() else { break };
            self.number += 1;
            let (line, task) = match row {
                Ok(row) => (row.line, self.task(row)),
                Err(fault) => {
                    let (line, problem) = fault.of_row();
                    (line.unwrap_or_default(), Err(refused("malformed_json", None, problem.to_owned())))
                }
            };
            match task {
                Ok((task, size)) => {
                    bytes += size;
                    request.lines.push(line);
                    request.tasks.push(task);
                }
                Err(refused) => request.bad.push((line, refused)),
            }
        }
        let empty = request.tasks.is_empty() && request.bad.is_empty();
        (!empty).then_some(request)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::rows::{Format, stream};

    fn requests(text: String, format: Format, kind: Option<&str>) -> Vec<Request> {
        let rows = stream(Path::new("standard input"), format, Box::new(std::io::Cursor::new(text))).unwrap();
        Requests::new(rows, kind.map(str::to_owned), "k".to_owned()).collect()
    }

    fn ids(requests: &[Request]) -> Vec<&str> {
        requests.iter().flat_map(|request| &request.tasks).filter_map(|task| task.id.as_deref()).collect()
    }

    #[test]
    fn a_row_is_a_task_or_the_content_of_one() {
        let tasks = "{\"kind\": \"row\", \"content\": 1}\n\n{\"kind\": \"row\"}\n[\n{\"kind\": \"row\", \"content\": 2, \"id\": \"01890000-0000-7000-8000-000000000001\"}\n";
        let [request] = requests(tasks.to_owned(), Format::Ndjson, None).try_into().unwrap();
        assert_eq!(request.lines, [1, 5]);
        assert_eq!(request.tasks[1].id.as_deref(), Some("01890000-0000-7000-8000-000000000001"));
        let bad: Vec<u64> = request.bad.iter().map(|(line, _)| *line).collect();
        assert_eq!(bad, [3, 4]);
        let [request] = requests("a;b\n1;2\n3\n".to_owned(), Format::Csv, Some("row")).try_into().unwrap();
        assert_eq!((request.tasks[0].kind.as_str(), &request.tasks[0].content), ("row", &json!({"a": "1", "b": "2"})));
        assert_eq!(request.bad.len(), 1);
    }

    #[test]
    fn requests_are_bounded() {
        let many = requests("1\n".repeat(2 * TASKS_MAX + 1), Format::Ndjson, Some("row"));
        assert_eq!(many.iter().map(|request| request.tasks.len()).collect::<Vec<_>>(), [TASKS_MAX, TASKS_MAX, 1]);
        let large = format!("\"{}\"\n", "x".repeat(100_000)).repeat(25);
        let large = requests(large, Format::Ndjson, Some("row"));
        assert_eq!(large.iter().map(|request| request.tasks.len()).collect::<Vec<_>>(), [11, 11, 3]);
        let bad = requests("[\n".repeat(2 * TASKS_MAX), Format::Ndjson, Some("row"));
        assert!(bad.iter().all(|request| request.bad.len() <= TASKS_MAX));
        let too_large = requests(format!("\"{}\"\n", "x".repeat(200_000)), Format::Ndjson, Some("row"));
        assert!(too_large[0].tasks.is_empty() && format!("{:?}", too_large[0].bad).contains("131072 are allowed"));
    }

    /// Another row, another place, another name: another task. Everything else stays.
    #[test]
    fn ids_follow_from_content_and_position() {
        let first = requests("1\n2\n1\n".to_owned(), Format::Ndjson, Some("row"));
        let longer = requests("1\n2\n1\n7\n".to_owned(), Format::Ndjson, Some("row"));
        let fixed = requests("1\n3\n1\n".to_owned(), Format::Ndjson, Some("row"));
        assert_eq!(ids(&first), ids(&longer)[..3]);
        assert_eq!(
            ids(&first).iter().zip(ids(&fixed)).map(|(a, b)| **a == *b).collect::<Vec<_>>(),
            [true, false, true]
        );
        let all: std::collections::BTreeSet<&str> = ids(&longer).into_iter().collect();
        assert_eq!(all.len(), 4);
    }
}
