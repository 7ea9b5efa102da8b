//! The batch API of a policy, and the ways of calling one.

mod check;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Span;
use crate::limits::{BATCH_API_TIMEOUT_DEFAULT, SENT_BYTES_DEFAULT};
use crate::mapping::{Match, Preset, RequestMapping, ResponseMapping, Sizes, preset_names};

/// The batch API: how it is called, by exactly one of `url`, `lambda`, `sqs` and `command`, how long a call may take, and how calls and
/// answers are written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(try_from = "Fields", into = "Fields")]
pub struct BatchApi {
    /// How it is called.
    pub way: Way,
    /// How long one call may take.
    pub timeout: Span,
    /// The preset that the mappings are from.
    pub preset: Option<String>,
    /// Constants of the mappings.
    pub with: Map<String, Value>,
    /// How a call becomes a request, if it is not as for any batch API.
    pub request: Option<RequestMapping>,
    /// How an answer is read, if it is not as for any batch API.
    pub response: Option<ResponseMapping>,
    /// Whether a member that did not succeed fails the call.
    pub mode: Mode,
    /// How long after a status 202, or after a message was sent, outcomes may come. None: such an answer is read like any other.
    pub answers_within: Option<Span>,
}

/// Whether a member that did not succeed fails the call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// No: each member has its own outcome.
    #[default]
    Slots,
    /// Yes: the batch API does all of a call or nothing. The batch is split until the member stands alone.
    Strict,
}

/// A way of calling a batch API. It is written as one field of the batch API, beside `timeout`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// An HTTP endpoint.
    Url(String),
    /// A Lambda function.
    Lambda(String),
    /// An SQS queue, whose messages are answered later.
    Sqs(String),
    /// A program and its arguments.
    Command(Vec<String>),
}

impl Way {
    /// The fields that say the way: one of them is given.
    const FIELDS: &str = "`url`, `lambda`, `sqs`, `command`";

    /// The field that says this way.
    #[must_use]
    pub fn field(&self) -> &'static str {
        match self {
            Self::Url(_) => "url",
            Self::Lambda(_) => "lambda",
            Self::Sqs(_) => "sqs",
            Self::Command(_) => "command",
        }
    }

    /// Whether only the local runner goes this way.
    #[must_use]
    pub fn only_local(&self) -> bool {
        match self {
            Self::Url(_) | Self::Lambda(_) | Self::Sqs(_) => false,
            Self::Command(_) => true,
        }
    }

    /// Whether an answer may come later.
    fn may_answer_later(&self) -> bool {
        match self {
            Self::Url(_) | Self::Sqs(_) => true,
            Self::Lambda(_) | Self::Command(_) => false,
        }
    }
}

/// The batch API as it is written.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[cfg_attr(
    feature = "openapi",
    schemars(rename = "BatchApi", extend("oneOf" = [
        {"required": ["url"], "properties": {"url": {"type": "string"}}},
        {
            "required": ["use"],
            "properties": {
                "use": {"type": "string"}, "url": {"type": "null"}, "lambda": {"type": "null"}, "sqs": {"type": "null"},
                "command": {"type": "null"},
            },
        },
        {"required": ["lambda"], "properties": {"lambda": {"type": "string"}}},
        {"required": ["sqs", "answers_within"], "properties": {"sqs": {"type": "string"}}},
        {"required": ["command"], "properties": {"command": {"type": "array"}}},
    ]))
)]
#[serde(deny_unknown_fields)]
struct Fields {
    /// An HTTP endpoint; `https`, or `http` on the local machine.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::optional_url"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// A Lambda function in the stack's region, by its name or ARN, perhaps with a version or an alias: it is invoked with the call as
    /// its event, and its answer is what it returns.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::optional_function"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lambda: Option<String>,
    /// An SQS queue in the stack's region, by its URL or ARN: each call is sent to it as a message, and its outcomes are posted within
    /// `answers_within`.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::optional_queue"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sqs: Option<String>,
    /// A program and its arguments, for the local runner only: it reads the call from standard input, and writes its answer to
    /// standard output.
    #[cfg_attr(feature = "openapi", schemars(length(min = 1)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    command: Option<Vec<String>>,
    /// How long one call may take.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::timeout"))]
    #[serde(default = "timeout")]
    timeout: Span,
    /// The name of a preset, which gives all fields that are not set here.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::preset"))]
    #[serde(default, rename = "use", skip_serializing_if = "Option::is_none")]
    preset: Option<String>,
    /// Constants: expressions of the mapping refer to them as `with.NAME`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    with: Map<String, Value>,
    /// How a call becomes an HTTP request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request: Option<RequestMapping>,
    /// How an answer names the outcomes of members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    response: Option<ResponseMapping>,
    /// Whether a member that did not succeed fails the call: `slots` (no, each member has its own outcome) or `strict` (yes).
    #[serde(default, skip_serializing_if = "crate::unset::is_default")]
    mode: Mode,
    /// The batch API may answer a call with a status 202, and send outcomes later: for this long after the 202, at most a day.
    /// They are posted, or Fanfold asks for them at the address in `Location`.
    /// With `sqs`: for this long after the message was sent.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::answers_within"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answers_within: Option<Span>,
}

fn timeout() -> Span {
    Span(BATCH_API_TIMEOUT_DEFAULT)
}

impl TryFrom<Fields> for BatchApi {
    type Error = String;

    fn try_from(fields: Fields) -> Result<Self, String> {
        let Fields {
            mut url,
            lambda,
            sqs,
            command,
            timeout,
            preset,
            mut with,
            mut request,
            mut response,
            mode,
            answers_within,
        } = fields;
        let mut form = String::new();
        if let Some(name) = &preset {
            let found = Preset::named(name).ok_or_else(|| {
                let names: Vec<String> = preset_names().iter().map(|name| format!("`{name}`")).collect();
                format!("has `use: {name}`, which is not a preset; there are {}", names.join(", "))
            })?;
            with = found.constants(with);
            request = Some(request.unwrap_or_default().or(found.request));
            response = Some(response.unwrap_or_default().or(found.response));
            if command.is_none() && lambda.is_none() && sqs.is_none() {
                url = url.or(found.default_url);
            }
            form = found.url.map(|form| format!("; the URL of `{name}` is like {form}")).unwrap_or_default();
        }
        let ways = [url.map(Way::Url), lambda.map(Way::Lambda), sqs.map(Way::Sqs), command.map(Way::Command)];
        let mut ways = ways.into_iter().flatten();
        match (ways.next(), ways.next()) {
            (Some(way), None) => Ok(Self { way, timeout, preset, with, request, response, mode, answers_within }),
            (None, _) => Err(format!("does not say how it is called, one of {} is needed{form}", Way::FIELDS)),
            (Some(one), Some(other)) => {
                let (one, other) = (one.field(), other.field());
                Err(format!("has both `{one}` and `{other}`, exactly one of {} is allowed", Way::FIELDS))
            }
        }
    }
}

impl From<BatchApi> for Fields {
    fn from(BatchApi { way, timeout, preset, with, request, response, mode, answers_within }: BatchApi) -> Self {
        let none = Self {
            url: None,
            lambda: None,
            sqs: None,
            command: None,
            timeout,
            preset,
            with,
            request,
            response,
            mode,
            answers_within,
        };
        match way {
            Way::Url(url) => Self { url: Some(url), ..none },
            Way::Lambda(function) => Self { lambda: Some(function), ..none },
            Way::Sqs(queue) => Self { sqs: Some(queue), ..none },
            Way::Command(command) => Self { command: Some(command), ..none },
        }
    }
}

impl BatchApi {
    /// One that is called in this way, as any batch API is.
    #[must_use]
    pub fn new(way: Way, timeout: Span) -> Self {
        let (with, mode) = (Map::new(), Mode::default());
        Self { way, timeout, preset: None, with, request: None, response: None, mode, answers_within: None }
    }

    /// The preset that it uses.
    #[must_use]
    pub fn preset(&self) -> Option<Preset> {
        self.preset.as_deref().and_then(Preset::named)
    }

    /// Sizes of batches unless the policy says otherwise.
    pub(super) fn sizes(&self) -> Sizes {
        match self.way {
            Way::Sqs(_) => Sizes { max_batch_bytes: Some(SENT_BYTES_DEFAULT), ..Sizes::default() },
            _ => self.preset().map(|preset| preset.sizes()).unwrap_or_default(),
        }
    }

    /// Whether its answers name members by what was sent.
    pub(super) fn needs_distinct(&self) -> bool {
        self.response.as_ref().is_some_and(|response| response.matching == Some(Match::Echo))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
