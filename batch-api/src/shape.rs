//! Batch APIs as the other side sees them: what they take, and what they answer. The request is read by the preset's own mapping,
//! backwards; a file beside this one has the answers, as the API's documentation shows them. For a batch API to try against, and for
//! tests. No I/O.

mod fill;
mod read;

use fanfold::mapping::{BodyFormat, Preset, Sizes};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::fill::fill;
use crate::MemberOutcome;

/// The answers of presets, and of batch APIs that speak Fanfold's own JSON (`""`).
const FILES: [(&str, &str); 13] = [
    ("", include_str!("shape/presets/own.json")),
    ("algolia", include_str!("shape/presets/algolia.json")),
    ("bigquery", include_str!("shape/presets/bigquery.json")),
    ("dynamodb", include_str!("shape/presets/dynamodb.json")),
    ("elasticsearch", include_str!("shape/presets/elasticsearch.json")),
    ("eventbridge", include_str!("shape/presets/eventbridge.json")),
    ("hubspot", include_str!("shape/presets/hubspot.json")),
    ("kinesis", include_str!("shape/presets/kinesis.json")),
    ("openai-embeddings", include_str!("shape/presets/openai-embeddings.json")),
    ("resend", include_str!("shape/presets/resend.json")),
    ("salesforce", include_str!("shape/presets/salesforce.json")),
    ("ses", include_str!("shape/presets/ses.json")),
    ("sqs", include_str!("shape/presets/sqs.json")),
];

/// What a batch API takes and answers.
#[derive(Clone, Debug)]
pub struct Shape {
    template: Value,
    format: BodyFormat,
    limits: Sizes,
    answers: Answers,
}

/// The answers of a batch API.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answers {
    /// Whether a call that is repeated under its `Idempotency-Key` gets its answer again.
    #[serde(default)]
    keeps_keys: bool,
    /// What a member that succeeded is answered with, if anything.
    #[serde(default)]
    succeeded: Option<Value>,
    /// The same for one that failed. Without it, a member that fails spoils the call.
    #[serde(default)]
    failed: Option<Value>,
    /// The same for one that is to be sent again. Without it, the call is answered as one too many.
    #[serde(default)]
    retry: Option<Value>,
    /// The answer to a call that was done.
    done: Form,
    /// The same if members did not succeed, if it differs.
    #[serde(default)]
    done_in_part: Option<Form>,
    /// The answer to a call that cannot be used.
    refused: Form,
    /// The answer to one call too many.
    busy: Form,
    /// The answer when something broke.
    broken: Form,
    /// The answer to a key that an earlier call had with another body.
    #[serde(default)]
    conflict: Option<Form>,
}

/// An answer, to be filled in.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    status: u16,
    #[serde(default)]
    headers: Vec<(String, String)>,
    body: Value,
}

/// What was sent, as far as the request says.
#[derive(Clone, Debug, PartialEq)]
pub struct SentCall {
    /// The members.
    pub members: Vec<SentMember>,
    /// What the policy has in `with`, as far as it is in the request.
    with: Map<String, Value>,
}

/// What was sent of a member.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SentMember {
    /// Its id, if that is sent.
    pub id: Option<String>,
    /// Its content, or what is sent of it.
    pub content: Value,
    /// What stands for its position in the request, if anything does.
    tag: Option<Value>,
}

impl SentMember {
    /// What it is recognized by: its id or, if that is not sent, its content.
    #[must_use]
    pub fn name(&self) -> String {
        self.id.clone().unwrap_or_else(|| self.content.to_string())
    }
}

/// An answer to a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// Headers.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Value,
}

impl Shape {
    /// That of a batch API that speaks Fanfold's own JSON. None: only if its file is broken, which a test would show.
    #[must_use]
    pub fn own() -> Option<Self> {
        let template = json!({"members": {"${members}": {"id": "${id}", "content": "${content}"}}});
        Some(Self { template, format: BodyFormat::Json, limits: Sizes::default(), answers: answers("")? })
    }

    /// That of a preset. None: there is no such preset.
    #[must_use]
    pub fn of_preset(name: &str) -> Option<Self> {
        let Preset { request, limits, .. } = Preset::named(name)?;
        let format = request.format.unwrap_or_default();
        Some(Self { template: request.body?, format, limits, answers: answers(name)? })
    }

    /// Whether a call that is repeated under its `Idempotency-Key` gets its answer again.
    #[must_use]
    pub fn keeps_keys(&self) -> bool {
        self.answers.keeps_keys
    }

    /// Whether the answer to a call can say this of a single member.
    #[must_use]
    pub fn says(&self, outcome: MemberOutcome) -> bool {
        match outcome {
            MemberOutcome::Succeeded => true,
            MemberOutcome::Failed => self.answers.failed.is_some(),
            MemberOutcome::Retry => self.answers.retry.is_some(),
            MemberOutcome::Unclear | MemberOutcome::Unnamed => false,
        }
    }

    /// Reads a request.
    ///
    /// # Errors
    /// It is none that this batch API takes: what is wrong with it, for people.
    pub fn read(&self, body: &[u8]) -> Result<SentCall, String> {
        let call = read::call(&self.template, self.format, body)?;
        if let Some(most) = self.limits.max_batch.filter(|most| call.members.len() > *most as usize) {
            return Err(format!("the request has {} members, at most {most} are allowed", call.members.len()));
        }
        let bytes: usize = call.members.iter().map(|member| member.content.to_string().len()).sum();
        if let Some(most) = self.limits.max_batch_bytes.filter(|most| bytes > *most as usize) {
            return Err(format!("the members of the request have {bytes} bytes, at most {most} are allowed"));
        }
        Ok(call)
    }

    /// The answer to a call that was done. `outcomes`: of each member, and why if it did not succeed. `first`: a number for the first
    /// member; the others have the next ones.
    #[must_use]
    pub fn done(&self, call: &SentCall, outcomes: &[(MemberOutcome, &str)], first: u64) -> Reply {
        let answers = &self.answers;
        let (mut items, mut succeeded, mut failed) = (Vec::new(), Vec::new(), Vec::new());
        for (at, (member, (outcome, error))) in call.members.iter().zip(outcomes).enumerate() {
            let (form, list) = match outcome {
                MemberOutcome::Succeeded => (&answers.succeeded, &mut succeeded),
                MemberOutcome::Failed => (&answers.failed, &mut failed),
                MemberOutcome::Retry | MemberOutcome::Unclear | MemberOutcome::Unnamed => (&answers.retry, &mut failed),
            };
            let Some(form) = form else { continue };
            let number = first.saturating_add(at as u64);
            let item = fill(form, &call.variables_of(member, at, number, error));
            list.push(item.clone());
            items.push(item);
        }
        let all_succeeded = outcomes.iter().all(|(outcome, _)| *outcome == MemberOutcome::Succeeded);
        let form = if all_succeeded { &answers.done } else { answers.done_in_part.as_ref().unwrap_or(&answers.done) };
        let mut variables = call.variables();
        let values = [
            ("failures", failed.len().into()),
            ("any_failed", (!all_succeeded).into()),
            ("number", first.into()),
            ("items", items.into()),
            ("succeeded", succeeded.into()),
            ("failed", failed.into()),
        ];
        variables.extend(values.map(|(name, value): (&str, Value)| (name.to_owned(), value)));
        form.reply(&variables)
    }

    /// The answer to a call that cannot be used.
    #[must_use]
    pub fn refused(&self, why: &str) -> Reply {
        self.answers.refused.because(why)
    }

    /// The answer to one call too many.
    #[must_use]
    pub fn busy(&self, why: &str) -> Reply {
        self.answers.busy.because(why)
    }

    /// The answer when something broke.
    #[must_use]
    pub fn broken(&self, why: &str) -> Reply {
        self.answers.broken.because(why)
    }

    /// The answer to a key that an earlier call had with another body.
    #[must_use]
    pub fn conflict(&self, why: &str) -> Reply {
        self.answers.conflict.as_ref().unwrap_or(&self.answers.refused).because(why)
    }
}

impl SentCall {
    fn variables(&self) -> Map<String, Value> {
        self.with.iter().map(|(name, value)| (format!("with.{name}"), value.clone())).collect()
    }

    fn variables_of(&self, member: &SentMember, at: usize, number: u64, error: &str) -> Map<String, Value> {
        let mut variables = self.variables();
        let values = [
            ("at", at.into()),
            ("tag", member.tag.clone().unwrap_or_default()),
            ("id", member.id.clone().into()),
            ("content", member.content.clone()),
            ("number", format!("{number:012}").into()),
            ("error", error.into()),
        ];
        variables.extend(values.map(|(name, value): (&str, Value)| (name.to_owned(), value)));
        variables
    }
}

impl Form {
    fn reply(&self, variables: &Map<String, Value>) -> Reply {
        Reply { status: self.status, headers: self.headers.clone(), body: fill(&self.body, variables) }
    }

    fn because(&self, why: &str) -> Reply {
        self.reply(&Map::from_iter([("error".to_owned(), why.into())]))
    }
}

fn answers(name: &str) -> Option<Answers> {
    let (_, text) = FILES.iter().find(|(known, _)| *known == name)?;
    // A test reads all of them.
    serde_json::from_str(text).ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
