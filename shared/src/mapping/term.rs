//! Terms: the expressions of a mapping. Their language is a part of CEL, with two functions more (`json`, `base64`). They are
//! evaluated here, on JSON as it is: whoever calls batch APIs has no CEL, whose parser would make up a fifth of its size.
//! What both accept has the same value in both, but for whole numbers, which are of one type here.

mod eval;
mod node;
mod numbers;
mod parse;
mod texts;
mod tokens;

use std::borrow::Cow;

use serde_json::Value;

use self::node::Node;
use crate::policy::within_bounds;

/// What terms may refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variable {
    /// The kind of the batch's tasks.
    Kind,
    /// What they share.
    Target,
    /// The batch.
    BatchId,
    /// The policy's constants.
    With,
    /// The task's id.
    Id,
    /// The task's content.
    Content,
    /// The member's position in the request, from 0.
    Index,
    /// What the answer says of a member.
    Item,
    /// The list of the answer in which the item is.
    From,
    /// The answer's status.
    Status,
    /// The answer's body; null, if it is not JSON.
    Body,
    /// The secrets of the deployment, by name.
    Secret,
    /// The call's `Idempotency-Key`.
    IdempotencyKey,
}

impl Variable {
    /// All of them.
    const ALL: [Self; 13] = [
        Self::Kind,
        Self::Target,
        Self::BatchId,
        Self::With,
        Self::Id,
        Self::Content,
        Self::Index,
        Self::Item,
        Self::From,
        Self::Status,
        Self::Body,
        Self::Secret,
        Self::IdempotencyKey,
    ];

    /// Its name in terms.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kind => "kind",
            Self::Target => "target",
            Self::BatchId => "batch_id",
            Self::With => "with",
            Self::Id => "id",
            Self::Content => "content",
            Self::Index => "index",
            Self::Item => "item",
            Self::From => "from",
            Self::Status => "status",
            Self::Body => "body",
            Self::Secret => "secret",
            Self::IdempotencyKey => "idempotency_key",
        }
    }
}

/// The values of variables.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bindings<'v> {
    values: [Option<&'v Value>; Variable::ALL.len()],
    /// The content as it was registered.
    raw: Option<&'v str>,
}

impl<'v> Bindings<'v> {
    /// The same with a value for a variable.
    #[must_use]
    pub fn with(mut self, variable: Variable, value: &'v Value) -> Self {
        self.values[variable as usize] = Some(value);
        self
    }

    /// The same with the text of the content, which stands for it wherever it is passed on as a whole.
    #[must_use]
    pub fn with_raw(self, raw: &'v str) -> Self {
        Self { raw: Some(raw), ..self }
    }

    fn get(&self, variable: Variable) -> Option<&'v Value> {
        self.values[variable as usize]
    }
}

/// Why a term has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{source_text}` {problem}")]
pub struct TermError {
    /// The term.
    pub source_text: String,
    /// What is wrong.
    pub problem: String,
}

/// A term, ready to be evaluated.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    source: String,
    root: Node,
}

impl Term {
    /// Reads a term that may refer to these variables.
    ///
    /// # Errors
    /// It cannot be read, is too large, or names what does not exist. The text is what is wrong with the field it stands in.
    pub fn read(source: &str, allowed: &[Variable]) -> Result<Self, String> {
        within_bounds(source).map_err(|error| error.to_string())?;
        let root = parse::read(source, allowed).map_err(|problem| format!("`{source}` {problem}"))?;
        Ok(Self { source: source.to_owned(), root })
    }

    /// Its value.
    ///
    /// # Errors
    /// It has none for these values, or one that is too large.
    pub fn value<'v>(&'v self, bindings: &Bindings<'v>) -> Result<Cow<'v, Value>, TermError> {
        let problem = match eval::eval(&self.root, bindings) {
            Ok(Some(value)) => return Ok(value),
            Ok(None) => "has no value".to_owned(),
            Err(problem) => problem,
        };
        Err(TermError { source_text: self.source.clone(), problem })
    }

    /// Its value as a part of a text.
    ///
    /// # Errors
    /// It has none, or it is no text, number or boolean.
    pub fn text<'v>(&'v self, bindings: &Bindings<'v>) -> Result<Cow<'v, str>, TermError> {
        let value = self.value(bindings)?;
        let sort = eval::sort(&value);
        texts::of(value).ok_or_else(|| TermError {
            source_text: self.source.clone(),
            problem: format!(
                "gives {sort}, a text, number or boolean is expected; `json(…)` makes a text of any value"
            ),
        })
    }

    /// Its value, true or false.
    ///
    /// # Errors
    /// It has none, or another one.
    pub fn flag(&self, bindings: &Bindings<'_>) -> Result<bool, TermError> {
        match self.value(bindings)?.as_ref() {
            Value::Bool(flag) => Ok(*flag),
            other => Err(TermError {
                source_text: self.source.clone(),
                problem: format!("gives {}, true or false is expected", eval::sort(other)),
            }),
        }
    }

    /// The text to be sent in place of its value, if it is the content itself.
    #[must_use]
    pub fn raw<'v>(&self, bindings: &Bindings<'v>) -> Option<&'v str> {
        bindings.raw.filter(|_| self.root == Node::Variable(Variable::Content))
    }

    /// Whether it needs the content as more than a text.
    #[must_use]
    pub fn reads_content(&self) -> bool {
        eval::reads_content(&self.root)
    }

    /// The secrets that it names.
    ///
    /// # Errors
    /// It refers to `secret` without a name.
    pub fn secrets(&self) -> Result<Vec<&str>, String> {
        let mut names = Vec::new();
        if self.root.secrets(&mut names) {
            return Ok(names);
        }
        Err(format!("`{}` refers to `secret` without a name; `secret.NAME` is one", self.source))
    }

    /// The term as it was written.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
