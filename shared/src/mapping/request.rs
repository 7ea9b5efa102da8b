//! How a call becomes an HTTP request.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::template::{Compiler, Report, Template, Text};
use crate::headers;
use crate::limits::{HEADER_BYTES_MAX, HEADERS_MAX, MAPPING_BYTES_MAX, REQUEST_BYTES_MAX};

/// How a call becomes an HTTP request. Fields that are not set are as for any batch API.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RequestMapping {
    /// The method; POST by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<HttpMethod>,
    /// Further headers. Their values may hold `${…}`, and secrets: `Bearer ${secret.NAME}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// What is added to the query of the URL. Its values may hold `${…}`, and secrets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub query: BTreeMap<String, String>,
    /// How the body's values are joined; JSON by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<BodyFormat>,
    /// The template of the body. Without one, the body is that of any batch API.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::template"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// The most bytes of a body: a larger request is not sent, and counts as refused by a status 413.
    #[cfg_attr(feature = "openapi", schemars(range(min = 1, max = REQUEST_BYTES_MAX)))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::whole::optional_u32")]
    pub max_bytes: Option<u32>,
    /// How the request is signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sign: Option<Sign>,
}

/// A method of HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "UPPERCASE")]
pub enum HttpMethod {
    /// POST.
    #[default]
    Post,
    /// PUT.
    Put,
    /// PATCH.
    Patch,
    /// DELETE.
    Delete,
}

impl HttpMethod {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// How the values of a body are joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BodyFormat {
    /// One JSON value.
    #[default]
    Json,
    /// One JSON value per line. A list at the top gives one line per element.
    Ndjson,
}

impl BodyFormat {
    /// Its media type.
    #[must_use]
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Ndjson => "application/x-ndjson",
        }
    }
}

/// How a request is signed: one of these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Sign {
    /// With AWS Signature Version 4 and the credentials of the function: the service's signing name, such as `sqs`.
    Aws(#[cfg_attr(feature = "openapi", schemars(length(min = 1, max = 64), regex(pattern = "^[a-z0-9-]+$")))] String),
    /// By the Standard Webhooks scheme: the name of the secret, whose value is `whsec_` and base64.
    Webhook(
        #[cfg_attr(
            feature = "openapi",
            schemars(length(min = 1, max = 64), regex(pattern = "^[A-Za-z_][A-Za-z0-9_]*$"))
        )]
        String,
    ),
}

/// Headers that belong to HTTP or to Fanfold.
const RESERVED: [&str; 19] = [
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "expect",
    headers::ATTEMPT,
    headers::TOKEN,
    "host",
    headers::IDEMPOTENCY_KEY,
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "webhook-id",
    "webhook-signature",
    "webhook-timestamp",
    "x-amz-date",
    "x-amz-security-token",
];

/// A request mapping, ready to be used.
#[derive(Clone, Debug, PartialEq)]
pub struct CompiledRequest {
    /// Headers.
    pub headers: Vec<(String, Text)>,
    /// Parts of the query.
    pub query: Vec<(String, Text)>,
    /// The body, if it has a template.
    pub body: Option<Template>,
    /// How its values are joined.
    pub format: BodyFormat,
    /// The most bytes of the body.
    pub most: usize,
}

impl RequestMapping {
    /// This one, and where it says nothing, the other.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let mut headers = other.headers;
        headers.retain(|name, _| !self.headers.keys().any(|own| own.eq_ignore_ascii_case(name)));
        headers.extend(self.headers);
        let mut query = other.query;
        query.extend(self.query);
        Self {
            method: self.method.or(other.method),
            headers,
            query,
            format: self.format.or(other.format),
            body: self.body.or(other.body),
            max_bytes: self.max_bytes.or(other.max_bytes),
            sign: self.sign.or(other.sign),
        }
    }

    /// Compiles it, and reports what is wrong. `path`: the field that holds it.
    pub fn compile(&self, path: &str, report: Report<'_>) -> CompiledRequest {
        self.check(path, report);
        let mut compiler = Compiler::new(report);
        let mut texts = |field: &str, texts: &BTreeMap<String, String>| -> Vec<(String, Text)> {
            let text = |(name, text): (&String, &String)| {
                (name.clone(), compiler.call_text(&format!("{path}.{field}.{name}"), text))
            };
            texts.iter().map(text).collect()
        };
        let (headers, query) = (texts("headers", &self.headers), texts("query", &self.query));
        let body = self.body.as_ref().map(|body| compiler.body(&format!("{path}.body"), body));
        let most = self.max_bytes.unwrap_or(REQUEST_BYTES_MAX) as usize;
        CompiledRequest { headers, query, body, format: self.format.unwrap_or_default(), most }
    }

    fn check(&self, path: &str, report: Report<'_>) {
        if self.headers.len() > HEADERS_MAX {
            report(
                &format!("{path}.headers"),
                format!("has {} headers, at most {HEADERS_MAX} are allowed", self.headers.len()),
            );
        }
        for (name, value) in &self.headers {
            let field = format!("{path}.headers.{name}");
            let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            let is = |other: &str| name.eq_ignore_ascii_case(other);
            if name.is_empty() || !name.bytes().all(token) {
                report(&field, "has a name that no header may have".to_owned());
            } else if RESERVED.into_iter().any(is)
                || name.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("proxy-"))
            {
                let hint =
                    if is(headers::IDEMPOTENCY_KEY) { "; `${idempotency_key}` gives it to another one" } else { "" };
                report(&field, format!("is a header that is set by Fanfold or by HTTP itself{hint}"));
            }
            if value.len() > HEADER_BYTES_MAX
                || value.contains(|letter: char| letter.is_ascii_control() || !letter.is_ascii())
            {
                report(
                    &field,
                    format!(
                        "is `{value}`, ASCII without control characters of at most {HEADER_BYTES_MAX} bytes is allowed"
                    ),
                );
            }
        }
        let bytes = serde_json::to_vec(self).map_or(usize::MAX, |json| json.len());
        if bytes > MAPPING_BYTES_MAX {
            report(path, format!("has {bytes} bytes as JSON, at most {MAPPING_BYTES_MAX} are allowed"));
        }
        if let Some(most) = self.max_bytes.filter(|most| !(1..=REQUEST_BYTES_MAX).contains(most)) {
            report(&format!("{path}.max_bytes"), format!("is {most}, 1 to {REQUEST_BYTES_MAX} is allowed"));
        }
        match &self.sign {
            Some(Sign::Aws(service)) if !is_service(service) => {
                let allowed = "the name of a service in signatures, such as `sqs`, is allowed";
                report(&format!("{path}.sign.aws"), format!("is `{service}`, {allowed}"));
            }
            Some(Sign::Webhook(name)) if !is_secret_name(name) => {
                let allowed = "the name of a secret is allowed: letters, digits and `_`";
                report(&format!("{path}.sign.webhook"), format!("is `{name}`, {allowed}"));
            }
            _ => {}
        }
    }
}

fn is_service(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// Whether a secret can have this name: that of a variable.
#[must_use]
pub fn is_secret_name(text: &str) -> bool {
    let letters = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    (1..=64).contains(&text.len()) && letters && !text.starts_with(|letter: char| letter.is_ascii_digit())
}
