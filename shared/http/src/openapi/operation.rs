//! One route.

use std::collections::BTreeSet;

use axum::http::StatusCode;
use fanfold::headers::IDEMPOTENCY_KEY;
use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use super::Describer;
use super::problems;
use crate::Code;
use crate::key;
use crate::path::PathSegment;
use crate::problem::Document;

/// The description of one route in the making.
#[derive(Debug)]
pub struct Operation<'a> {
    describer: &'a mut Describer,
    method: &'static str,
    path: &'static str,
    described: Map<String, Value>,
    parameters: Vec<Value>,
    answer: Option<Answer>,
    /// What it may return instead, in the same form, with 200.
    otherwise: Option<&'static str>,
    headers: Map<String, Value>,
    links: Map<String, Value>,
    codes: BTreeSet<Code>,
}

/// What is returned if all is well.
#[derive(Debug)]
struct Answer {
    status: StatusCode,
    description: &'static str,
    schema: Value,
    /// The schema of a line, if it may be a stream.
    lines: Option<Value>,
}

/// A stream. OpenAPI 3.1 cannot describe it: it is no JSON value.
fn stream(line: Value) -> Value {
    json!({"schema": {"description": "A JSON object per line."}, "x-line-schema": line})
}

impl<'a> Operation<'a> {
    pub(super) fn new(
        describer: &'a mut Describer,
        method: &'static str,
        path: &'static str,
        id: &'static str,
        summary: &'static str,
    ) -> Self {
        let mut described = Map::new();
        described.insert("operationId".to_owned(), id.into());
        described.insert("summary".to_owned(), summary.into());
        Self {
            describer,
            method,
            path,
            described,
            parameters: Vec::new(),
            answer: None,
            otherwise: None,
            headers: Map::new(),
            links: Map::new(),
            codes: problems::OF_ALL.into(),
        }
    }

    /// More about it than its summary.
    #[must_use]
    pub fn says(mut self, description: &str) -> Self {
        self.described.insert("description".to_owned(), description.into());
        self
    }

    /// It has a parameter in its path.
    #[must_use]
    pub fn path<T: PathSegment>(mut self, name: &'static str, description: &str) -> Self {
        self.parameters.push(json!({
            "name": name, "in": "path", "required": true, "description": description, "schema": T::schema().to_value(),
        }));
        self.problem(Code::InvalidId)
    }

    /// Its answers are pages: see [`crate::After`].
    #[must_use]
    pub fn paged(mut self, of: &str) -> Self {
        self.parameters.push(json!({
            "name": "after", "in": "query", "required": false, "schema": fanfold::openapi::uuid().to_value(),
            "description": format!("The id of the last {of} of the previous page."),
        }));
        self.problem(Code::InvalidId)
    }

    /// It has a query parameter: see [`crate::Parameter`].
    #[must_use]
    pub fn query<Q: crate::QueryParameter>(self) -> Self {
        self.queried::<Q>(false)
    }

    /// It needs a query parameter.
    #[must_use]
    pub fn needs<Q: crate::QueryParameter>(self) -> Self {
        self.queried::<Q>(true)
    }

    fn queried<Q: crate::QueryParameter>(mut self, required: bool) -> Self {
        self.parameters.push(json!({
            "name": Q::NAME, "in": "query", "required": required, "schema": Q::schema(), "description": Q::ABOUT,
        }));
        self.problem(Code::InvalidParameter)
    }

    /// It honours `Idempotency-Key`.
    #[must_use]
    pub fn idempotent(mut self) -> Self {
        self.parameters.push(json!({
            "name": IDEMPOTENCY_KEY, "in": "header", "required": false, "schema": key::schema().to_value(),
            "description": "Identifies the request. Repeated under the same key, it takes effect once and returns the same response.",
        }));
        self.problem(Code::InvalidIdempotencyKey).problem(Code::IdempotencyKeyReused)
    }

    /// It needs a header.
    #[must_use]
    pub fn header(mut self, name: &str, description: &str) -> Self {
        self.parameters.push(json!({
            "name": name, "in": "header", "required": true, "description": description, "schema": {"type": "string"},
        }));
        self
    }

    /// It takes a body.
    #[must_use]
    pub fn body<T: JsonSchema>(self) -> Self {
        self.takes::<T>(true)
    }

    /// It takes a body, which may be absent.
    #[must_use]
    pub fn optional_body<T: JsonSchema>(self) -> Self {
        self.takes::<T>(false)
    }

    /// The body may also be a stream, with one of these per line.
    #[must_use]
    pub fn or_lines<T: JsonSchema>(mut self) -> Self {
        let line = self.describer.request::<T>();
        if let Some(body) = self.described.get_mut("requestBody") {
            body["content"]["application/x-ndjson"] = stream(line);
        }
        self
    }

    /// The response to a stream is a stream, with one of these per line.
    #[must_use]
    pub fn answered_by_lines<T: JsonSchema>(mut self) -> Self {
        let line = self.describer.answer::<T>();
        if let Some(answer) = &mut self.answer {
            answer.lines = Some(line);
        }
        self
    }

    fn takes<T: JsonSchema>(mut self, required: bool) -> Self {
        let schema = self.describer.request::<T>();
        let body = json!({"required": required, "content": {"application/json": {"schema": schema}}});
        self.described.insert("requestBody".to_owned(), body);
        self.codes.extend(problems::OF_BODIES);
        self
    }

    /// What it returns if all is well, with 200.
    #[must_use]
    pub fn returns<T: JsonSchema>(self, description: &'static str) -> Self {
        self.answers::<T>(StatusCode::OK, description)
    }

    /// What it returns once it has created something, with 201.
    #[must_use]
    pub fn creates<T: JsonSchema>(self, description: &'static str) -> Self {
        self.answers::<T>(StatusCode::CREATED, description)
    }

    /// What it returns once it has accepted work that is still to be done, with 202.
    #[must_use]
    pub fn accepts<T: JsonSchema>(self, description: &'static str) -> Self {
        self.answers::<T>(StatusCode::ACCEPTED, description)
    }

    fn answers<T: JsonSchema>(mut self, status: StatusCode, description: &'static str) -> Self {
        let schema = self.describer.answer::<T>();
        self.answer = Some(Answer { status, description, schema, lines: None });
        self
    }

    /// What it returns, in the same form with 200, if it creates nothing.
    #[must_use]
    pub fn or_returns(mut self, description: &'static str) -> Self {
        self.otherwise = Some(description);
        self
    }

    /// A header that comes with that answer.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, description: &str) -> Self {
        let header = json!({"description": description, "required": true, "schema": {"type": "string"}});
        self.headers.insert(name.to_owned(), header);
        self
    }

    /// A link to a further request with a part of that answer: `at` is a JSON pointer into its body.
    #[must_use]
    pub fn leads_to(mut self, operation: &str, parameter: &str, at: &str) -> Self {
        let parameters = json!({format!("path.{parameter}"): format!("$response.body#{at}")});
        self.links.insert(operation.to_owned(), json!({"operationId": operation, "parameters": parameters}));
        self
    }

    /// A problem it may return.
    #[must_use]
    pub fn problem(mut self, code: Code) -> Self {
        self.codes.insert(code);
        self
    }

    /// Problems it may return.
    #[must_use]
    pub fn problems(mut self, codes: impl IntoIterator<Item = Code>) -> Self {
        self.codes.extend(codes);
        self
    }

    /// Adds it to the description.
    pub fn end(mut self) {
        let problem = self.describer.answer::<Document<'static>>();
        let mut responses = problems::responses(&self.codes, &problem, &mut self.describer.responses);
        if let Some(Answer { status, description, schema, lines }) = self.answer {
            let mut answer = json!({"description": description, "content": {"application/json": {"schema": schema}}});
            if let Some(description) = self.otherwise {
                let mut otherwise = answer.clone();
                otherwise["description"] = description.into();
                responses.insert(StatusCode::OK.as_str().to_owned(), otherwise);
            }
            if let Some(line) = lines {
                answer["content"]["application/x-ndjson"] = stream(line);
            }
            for (name, part) in [("headers", self.headers), ("links", self.links)] {
                if !part.is_empty() {
                    answer[name] = part.into();
                }
            }
            responses.insert(status.as_str().to_owned(), answer);
        }
        self.described.insert("responses".to_owned(), responses.into());
        if !self.parameters.is_empty() {
            self.described.insert("parameters".to_owned(), self.parameters.into());
        }
        let path = self.describer.paths.entry(self.path).or_default();
        path.insert(self.method.to_ascii_lowercase(), self.described.into());
    }
}
