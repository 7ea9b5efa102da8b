//! Calls and answers as a policy describes them: the body of a request, its headers and its query, and the outcomes in an answer.
//! No I/O.

mod items;
mod names;
mod read;
mod reading;

use std::collections::HashSet;

use fanfold::mapping::{
    Bindings, CompiledRequest, CompiledResponse, HttpMethod, Member, Render, RenderError, RequestMapping, Sign, Text,
    Variable,
};
use fanfold::policy::BatchApi;
use fanfold_http_client::aws::percent_encoded;
use serde_json::{Map, Value};

pub use self::reading::{Reading, Readings};
use crate::{Call, CallError, Cause};

/// How one call is written, and how its answer is read.
#[derive(Clone, Debug)]
pub struct Mapping {
    values: Values,
    request: CompiledRequest,
    response: Option<CompiledResponse>,
    /// The method.
    pub method: HttpMethod,
    /// How it is signed.
    pub sign: Option<Sign>,
    /// The positions in the call of the members that are in the request, in order.
    pub sent: Vec<usize>,
    /// The body, if there is a template for it. Without one it is that of any batch API.
    pub(crate) body: Option<Vec<u8>>,
    /// Members that cannot be in a request: their position in the call, and why.
    pub unfit: Vec<(usize, String)>,
    /// What the answer's headers say an error is: the APIs of AWS name it there.
    pub error_type: Option<String>,
}

/// The values that are the same for all members.
#[derive(Clone, Debug)]
struct Values {
    kind: Value,
    target: Value,
    batch_id: Value,
    with: Value,
}

impl Values {
    fn bindings(&self) -> Bindings<'_> {
        let bindings = Bindings::default().with(Variable::Kind, &self.kind).with(Variable::Target, &self.target);
        bindings.with(Variable::BatchId, &self.batch_id).with(Variable::With, &self.with)
    }
}

impl Mapping {
    /// The mapping of a batch API for a call, with the body of the request. None: it is called as any batch API is.
    ///
    /// # Errors
    /// The request would be too large (this counts as refused by a status 413), or it cannot be written whatever the members are.
    pub fn of(batch_api: &BatchApi, call: &Call) -> Result<Option<Self>, CallError> {
        if batch_api.request.is_none() && batch_api.response.is_none() {
            return Ok(None);
        }
        let not_made = |field: &str, problem: &str| {
            CallError::new(Cause::NotMade, format!("the request cannot be written: `{field}` {problem}"))
        };
        let mut wrong = None;
        let mut report = |field: &str, problem: String| {
            wrong.get_or_insert_with(|| not_made(field, &problem));
        };
        let given = batch_api.request.clone().unwrap_or_default();
        let request = given.compile("batch_api.request", &mut report);
        let response = batch_api.response.as_ref().map(|response| response.compile("batch_api.response", &mut report));
        // A stored policy was checked; an older one may be against newer rules.
        if let Some(wrong) = wrong {
            return Err(wrong);
        }
        let values = Values {
            kind: call.kind.clone().into(),
            target: call.target.clone().into(),
            batch_id: call.batch_id.to_string().into(),
            with: Value::Object(batch_api.with.clone()),
        };
        let RequestMapping { method, sign, .. } = given;
        let method = method.unwrap_or_default();
        let sent = (0..call.members.len()).collect();
        let mut mapping =
            Self { values, request, response, method, sign, sent, body: None, unfit: Vec::new(), error_type: None };
        mapping.leave_out_nameless(call)?;
        mapping.body = mapping.write(call)?;
        Ok(Some(mapping))
    }

    /// Leaves out members that the answer could not name, as their contents lack what items are compared with.
    ///
    /// # Errors
    /// The request has no template, so it has all members of the call.
    fn leave_out_nameless(&mut self, call: &Call) -> Result<(), CallError> {
        let Some(term) = self.response.as_ref().and_then(|response| response.member.as_ref()) else { return Ok(()) };
        let bindings = self.values.bindings();
        let nameless =
            |at: usize| names::name_of_member(term, call, at, at, &bindings).err().map(|problem| (at, problem));
        let nameless: Vec<(usize, String)> = (0..call.members.len()).filter_map(nameless).collect();
        if let Some((at, problem)) = nameless.first().filter(|_| self.request.body.is_none()) {
            let id = call.members.get(*at).map(|member| member.id.to_string()).unwrap_or_default();
            let message = format!("the call was not sent, as its answer could not name the task {id}: {problem}");
            return Err(CallError::new(Cause::NotSent, message));
        }
        let left_out: HashSet<usize> = nameless.iter().map(|(at, _)| *at).collect();
        self.sent.retain(|at| !left_out.contains(at));
        self.unfit = nameless;
        Ok(())
    }

    /// Writes the body, if there is a template for it.
    fn write(&mut self, call: &Call) -> Result<Option<Vec<u8>>, CallError> {
        let Some(template) = &self.request.body else { return Ok(None) };
        let member = |member: &'_ crate::CallMember| Value::String(member.id.to_string());
        let ids: Vec<Value> = call.members.iter().map(member).collect();
        let member = |at: &usize| Some(Member { id: ids.get(*at)?.clone(), content: &call.members.get(*at)?.content });
        let members: Vec<Member<'_>> = self.sent.iter().filter_map(member).collect();
        let render = Render {
            batch: self.values.bindings(),
            members: &members,
            format: self.request.format,
            most: self.request.most,
        };
        match template.render(&render) {
            Ok(rendered) => {
                let at = |index: &usize| self.sent.get(*index).copied();
                let unfit = rendered.unfit.into_iter().filter_map(|(index, problem)| Some((at(&index)?, problem)));
                self.unfit.extend(unfit.collect::<Vec<_>>());
                self.sent = rendered.sent.iter().filter_map(at).collect();
                Ok(Some(rendered.body))
            }
            Err(RenderError::Template(problem)) => Err(CallError::new(
                Cause::NotMade,
                format!("the request cannot be written: `batch_api.request.body` {problem}"),
            )),
            Err(too_large @ RenderError::TooLarge(_)) => Err(CallError::new(
                Cause::NotSent,
                format!("{too_large}, which `batch_api.request` allows; it was not sent"),
            )),
        }
    }

    /// Whether answers are read by the mapping.
    #[must_use]
    pub fn reads(&self) -> bool {
        self.response.is_some()
    }

    /// The media type of the body.
    #[must_use]
    pub fn media_type(&self) -> &'static str {
        if self.request.body.is_some() { self.request.format.media_type() } else { "application/json" }
    }

    /// The query with the names of secrets in the place of their values, and without the key: what does not change when a call is
    /// repeated. Empty, if it cannot be written: then it is not sent either.
    pub(crate) fn query_without_secrets(&self) -> String {
        if self.request.query.is_empty() {
            return String::new();
        }
        let named = self.secrets().into_iter().map(|name| (name.clone(), Value::String(name))).collect();
        self.head("", named).map(|head| head.url("")).unwrap_or_default()
    }

    /// The names of the secrets that its headers and its query refer to.
    #[must_use]
    pub fn secrets(&self) -> Vec<String> {
        let texts = self.request.headers.iter().chain(&self.request.query);
        // Names were checked with the policy.
        texts.flat_map(|(_, text)| text.secrets().unwrap_or_default()).map(str::to_owned).collect()
    }

    /// The name of the secret that it is signed with.
    #[must_use]
    pub fn signing_secret(&self) -> Option<&str> {
        match &self.sign {
            Some(Sign::Webhook(name)) => Some(name),
            _ => None,
        }
    }

    /// Headers and the query, with the values of these secrets.
    ///
    /// # Errors
    /// One cannot be written. The error does not show the value of a secret.
    pub fn head(&self, key: &str, secrets: Map<String, Value>) -> Result<Head, CallError> {
        let (key, secrets) = (Value::String(key.to_owned()), Value::Object(secrets));
        let bindings = self.values.bindings().with(Variable::IdempotencyKey, &key).with(Variable::Secret, &secrets);
        let all = |field: &str, texts: &[(String, Text)]| -> Result<Vec<(String, String)>, CallError> {
            let written = |(name, text): &(String, Text)| match text.join(&bindings) {
                Ok(value) => Ok((name.clone(), value)),
                Err(error) => {
                    let message = format!("the request cannot be written: `batch_api.request.{field}.{name}`: {error}");
                    Err(CallError::new(Cause::NotMade, message))
                }
            };
            texts.iter().map(written).collect()
        };
        Ok(Head { headers: all("headers", &self.request.headers)?, query: all("query", &self.request.query)? })
    }
}

/// What is sent beside the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Headers.
    pub headers: Vec<(String, String)>,
    /// What is added to the query, not encoded yet.
    pub query: Vec<(String, String)>,
}

impl Head {
    /// A URL with the query.
    #[must_use]
    pub fn url(&self, url: &str) -> String {
        let part = |(name, value): &(String, String)| {
            format!("{}={}", percent_encoded(name, b""), percent_encoded(value, b""))
        };
        let query = self.query.iter().map(part).collect::<Vec<_>>().join("&");
        match (query.is_empty(), url.contains('?')) {
            (true, _) => url.to_owned(),
            (false, true) => format!("{url}&{query}"),
            (false, false) => format!("{url}?{query}"),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
