//! How an answer names the outcomes of members.

mod check;

use serde::{Deserialize, Serialize};

use super::template::{Compiler, OF_MEMBER, Report, Text};
use super::term::{Term, Variable};

/// How an answer names the outcomes of members.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ResponseMapping {
    /// JSON Pointers to the lists of items: one or several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<Pointers>,
    /// How items belong to members.
    #[serde(default, rename = "match", skip_serializing_if = "Option::is_none")]
    pub matching: Option<Match>,
    /// Expression over `item`: the position of its member in the request, from 0. With `match: exceptions`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<String>,
    /// Expression over `item`: what is compared with `member`. With `match: id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Expression over `item`: the value that was sent, which is compared with `member`. With `match: echo`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub echo: Option<String>,
    /// Expression over a member (`id`, `content`, `index`): what an item's `id` or `echo` is compared with. By default `id` or `content`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// Expression over `item`, true or false: whether the member succeeded. By default those listed under `exceptions` and `echo` did
    /// not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok: Option<String>,
    /// Expression over `item`, true or false: whether a member that did not succeed is tried again. By default those under `echo` are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<String>,
    /// Expression over `item`: why the member did not succeed. By default the item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Expression over `item`: the error as a short code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Expression over `item`: how many seconds to wait before a member is called again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<String>,
    /// Expression over `item`: the result of a member that succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Statuses besides 2xx whose answers have items.
    #[cfg_attr(feature = "openapi", schemars(inner(range(min = 300, max = 599))))]
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "crate::whole::u16s")]
    pub statuses: Vec<u16>,
    /// What answers say of the call as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<WholeMapping>,
}

/// What answers say of the call as a whole. The expressions are over `status` and `body`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WholeMapping {
    /// Whether the call failed as a whole although the status is 2xx.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// The status that a failed call counts as, from 300 to 599; anything else is the answer's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Whether a failed call is repeated: true, false, or null for what the status means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<String>,
    /// Why it failed. By default the beginning of the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// One JSON Pointer, or several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "a JSON Pointer such as `/items`, or a list of them, is expected")]
pub enum Pointers {
    /// One.
    One(String),
    /// Several.
    Several(Vec<String>),
}

impl Pointers {
    fn all(&self) -> &[String] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Several(several) => several,
        }
    }
}

/// How items belong to members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Match {
    /// There is one item per member, in the order of the request.
    Index,
    /// Items name the members that did not succeed, by their positions. The others succeeded, if the status is 2xx.
    Exceptions,
    /// Items name members by an id.
    Id,
    /// Items repeat what was sent of the members that did not succeed. The others succeeded, if the status is 2xx.
    Echo,
    /// There are no items: all succeeded, or none.
    None,
}

impl Match {
    /// Whether members that no item names succeeded.
    #[must_use]
    pub fn lists_exceptions(self) -> bool {
        matches!(self, Self::Exceptions | Self::Echo | Self::None)
    }
}

/// A response mapping, ready to be used.
#[derive(Clone, Debug, PartialEq)]
pub struct CompiledResponse {
    /// The lists of items.
    pub lists: Vec<ItemList>,
    /// How items belong to members.
    pub matching: Match,
    /// What names the item's member, unless that is its position: with [`Match::Exceptions`] a position.
    pub name: Option<Term>,
    /// What it is compared with.
    pub member: Option<Term>,
    /// Whether the member succeeded.
    pub ok: Option<Term>,
    /// Whether it is tried again.
    pub retry: Option<Term>,
    /// Why it did not succeed.
    pub error: Option<Term>,
    /// The same as a code.
    pub code: Option<Term>,
    /// How many seconds it asks to wait.
    pub retry_after: Option<Term>,
    /// What it brought.
    pub result: Option<Term>,
    /// Statuses besides 2xx whose answers have items.
    pub statuses: Vec<u16>,
    /// Whether the call failed although the status is 2xx.
    pub whole_failed: Option<Term>,
    /// The status that a failed call counts as.
    pub whole_status: Option<Term>,
    /// Whether a failed call is repeated.
    pub whole_retry: Option<Term>,
    /// Why it failed.
    pub whole_error: Option<Term>,
}

/// A list of items.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemList {
    /// What it is called in `from`: its pointer, without the mark.
    pub name: String,
    /// The steps to it.
    pub steps: Vec<Text>,
    /// Whether it may be missing where what it would stand in is there: its pointer ends with `?`.
    pub optional: bool,
}

/// Variables of terms about an item. The body is none of them: each term is evaluated for each of thousands of items.
const OF_ITEM: [Variable; 6] =
    [Variable::Item, Variable::From, Variable::Status, Variable::With, Variable::Kind, Variable::Target];

/// Variables of terms about a whole answer.
const OF_ANSWER: [Variable; 5] = [Variable::Status, Variable::Body, Variable::With, Variable::Kind, Variable::Target];

/// Variables of pointers.
const OF_POINTER: [Variable; 3] = [Variable::With, Variable::Kind, Variable::Target];

impl ResponseMapping {
    /// This one, and where it says nothing, the other.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let whole = match (self.whole, other.whole) {
            (Some(own), Some(other)) => Some(WholeMapping {
                failed: own.failed.or(other.failed),
                status: own.status.or(other.status),
                retry: own.retry.or(other.retry),
                error: own.error.or(other.error),
            }),
            (own, other) => own.or(other),
        };
        Self {
            items: self.items.or(other.items),
            matching: self.matching.or(other.matching),
            index: self.index.or(other.index),
            id: self.id.or(other.id),
            echo: self.echo.or(other.echo),
            member: self.member.or(other.member),
            ok: self.ok.or(other.ok),
            retry: self.retry.or(other.retry),
            error: self.error.or(other.error),
            code: self.code.or(other.code),
            retry_after: self.retry_after.or(other.retry_after),
            result: self.result.or(other.result),
            statuses: if self.statuses.is_empty() { other.statuses } else { self.statuses },
            whole,
        }
    }

    /// Compiles it, and reports what is wrong. `path`: the field that holds it.
    pub fn compile(&self, path: &str, report: Report<'_>) -> CompiledResponse {
        self.check(path, report);
        let mut compiler = Compiler::new(report);
        let mut term = |field: &str, source: Option<&String>, allowed: &[Variable]| {
            source.and_then(|source| compiler.term(&format!("{path}.{field}"), source, allowed))
        };
        let matching = self.matching.unwrap_or(Match::None);
        let (name, default) = match matching {
            Match::Exceptions => (term("index", self.index.as_ref(), &OF_ITEM), None),
            Match::Id => (term("id", self.id.as_ref(), &OF_ITEM), Some("id".to_owned())),
            Match::Echo => (term("echo", self.echo.as_ref(), &OF_ITEM), Some("content".to_owned())),
            Match::Index | Match::None => (None, None),
        };
        let member = default.map(|default| self.member.clone().unwrap_or(default));
        let member = term("member", member.as_ref(), &OF_MEMBER);
        let ok = term("ok", self.ok.as_ref(), &OF_ITEM);
        let retry = term("retry", self.retry.as_ref(), &OF_ITEM);
        let error = term("error", self.error.as_ref(), &OF_ITEM);
        let code = term("code", self.code.as_ref(), &OF_ITEM);
        let retry_after = term("retry_after", self.retry_after.as_ref(), &OF_ITEM);
        let result = term("result", self.result.as_ref(), &OF_ITEM);
        let whole = self.whole.clone().unwrap_or_default();
        let whole_failed = term("whole.failed", whole.failed.as_ref(), &OF_ANSWER);
        let whole_status = term("whole.status", whole.status.as_ref(), &OF_ANSWER);
        let whole_retry = term("whole.retry", whole.retry.as_ref(), &OF_ANSWER);
        let whole_error = term("whole.error", whole.error.as_ref(), &OF_ANSWER);
        let pointers = self.items.as_ref().map_or(&[][..], Pointers::all);
        CompiledResponse {
            lists: pointers.iter().map(|pointer| list(&mut compiler, path, pointer)).collect(),
            matching,
            name,
            member,
            ok,
            retry,
            error,
            code,
            retry_after,
            result,
            statuses: self.statuses.clone(),
            whole_failed,
            whole_status,
            whole_retry,
            whole_error,
        }
    }
}

/// The list at a pointer. `path`: the field that holds the mapping.
fn list(compiler: &mut Compiler<'_>, path: &str, pointer: &str) -> ItemList {
    let name = pointer.strip_suffix('?').unwrap_or(pointer);
    let step =
        |step: &str| compiler.text(&format!("{path}.items"), &step.replace("~1", "/").replace("~0", "~"), &OF_POINTER);
    let steps = name.split('/').skip(1).map(step).collect();
    ItemList { name: name.to_owned(), steps, optional: name.len() < pointer.len() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
