//! Templates: JSON whose texts may hold terms between `${` and `}`.

mod compile;
mod write;

use serde_json::Value;

pub(super) use self::compile::{Compiler, Report};
pub use self::write::{Member, Render, RenderError, Rendered};
use super::term::{Term, Variable};

/// What stands in the place of a list: its value is written once per member.
pub const MEMBERS: &str = "${members}";

/// Variables that every term of a request may refer to.
pub(super) const OF_BATCH: [Variable; 4] = [Variable::Kind, Variable::Target, Variable::BatchId, Variable::With];

/// Variables of a term that is evaluated once per member.
pub(super) const OF_MEMBER: [Variable; 7] = [
    Variable::Kind,
    Variable::Target,
    Variable::BatchId,
    Variable::With,
    Variable::Id,
    Variable::Content,
    Variable::Index,
];

/// Variables of headers and of the query: these are sent with the body, and are no part of it.
pub(super) const OF_CALL: [Variable; 6] =
    [Variable::Kind, Variable::Target, Variable::BatchId, Variable::With, Variable::IdempotencyKey, Variable::Secret];

/// A template, ready to be written.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    root: Node,
    /// Whether members' contents are needed as more than texts.
    reads_contents: bool,
}

/// A part of a template.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    /// Nothing in it is evaluated.
    Plain(Value),
    /// A text that is one term: the term's value.
    Value(Term),
    /// A text with terms in it.
    Text(Text),
    List(Vec<Node>),
    Object(Vec<Field>),
    /// A list with as many elements as there are members, or with several per member.
    Members(Vec<Node>),
}

#[derive(Clone, Debug, PartialEq)]
struct Field {
    name: Text,
    /// Left out if its value is null, or is not there.
    optional: bool,
    value: Node,
}

/// A text, in pieces.
#[derive(Clone, Debug, PartialEq)]
pub struct Text(Vec<Piece>);

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Plain(String),
    Term(Term),
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
