//! The tree of a term.

use serde_json::Value;

use super::Variable;

/// A part of a term.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Literal(Value),
    Variable(Variable),
    List(Vec<Node>),
    /// A field. `optional`: it need not be there.
    Field {
        of: Box<Node>,
        name: String,
        optional: bool,
    },
    /// An element of a list, or a field whose name is a value.
    Element {
        of: Box<Node>,
        at: Box<Node>,
        optional: bool,
    },
    /// Whether there is such a field.
    Has {
        of: Box<Node>,
        name: String,
    },
    Not(Box<Node>),
    Negative(Box<Node>),
    Binary(Operator, Box<Node>, Box<Node>),
    Choice(Box<Node>, Box<Node>, Box<Node>),
    Call(Function, Vec<Node>),
}

impl Node {
    /// Its direct parts.
    pub(super) fn parts(&self) -> Vec<&Self> {
        match self {
            Self::Literal(_) | Self::Variable(_) => Vec::new(),
            Self::List(nodes) | Self::Call(_, nodes) => nodes.iter().collect(),
            Self::Field { of, .. } | Self::Has { of, .. } | Self::Not(of) | Self::Negative(of) => vec![of],
            Self::Element { of, at, .. } => vec![of, at],
            Self::Binary(_, one, other) => vec![one, other],
            Self::Choice(asked, yes, no) => vec![asked, yes, no],
        }
    }

    /// Gathers the names of secrets. False: `secret` is used without a name.
    pub(super) fn secrets<'a>(&'a self, names: &mut Vec<&'a str>) -> bool {
        match self {
            Self::Field { of, name, optional: false } if **of == Self::Variable(Variable::Secret) => {
                names.push(name);
                true
            }
            Self::Variable(variable) => *variable != Variable::Secret,
            node => node.parts().into_iter().all(|part| part.secrets(names)),
        }
    }
}

/// What stands between two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Or,
    And,
    Equal,
    Unequal,
    Less,
    AtMost,
    More,
    AtLeast,
    In,
    Plus,
    Minus,
    Times,
    Over,
    Rest,
}

/// A function, by itself or of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Size,
    String,
    Int,
    Double,
    Json,
    Base64,
    Contains,
    StartsWith,
    EndsWith,
    LowerAscii,
    UpperAscii,
    Trim,
    Substring,
    OrValue,
    HasValue,
}
