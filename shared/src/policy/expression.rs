//! CEL expressions of a policy: targets, keys and weights of tasks.

mod error;

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use cel::{Context, Env, Program, Value};

use super::bounded::{self, Excess};
use super::fields::Fields;
use super::{HeadStart, Weight, matches, names};
use crate::limits::{EXPRESSION_BYTES_MAX, EXPRESSION_DEPTH_MAX, EXPRESSION_OPERATORS_MAX, TARGET_BYTES_MAX};

pub use self::error::ExpressionError;

/// The standard environment, `matches`, and the strings extension (`substring`, `split`, `lowerAscii`, …).
static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::stdlib();
    if let Err(error) = env.add_extension(cel::extensions::strings).and_then(|_| env.add_extension(matches::extension))
    {
        tracing::error!(%error, "an extension of CEL could not be added");
    }
    Arc::new(env)
});

/// A compiled expression.
pub struct Expression {
    source: String,
    program: Program,
    fields: Fields,
}

impl Expression {
    /// Compiles an expression.
    ///
    /// # Errors
    /// It is too long, does not parse, may take too much time or memory, or names a variable or function that does not exist.
    pub fn compile(source: &str) -> Result<Self, ExpressionError> {
        within_bounds(source)?;
        let source_text = source.to_owned();
        let program = ENVIRONMENT.compile(source).map_err(|errors| ExpressionError::Syntax {
            source_text: source_text.clone(),
            reason: errors.to_string().split_whitespace().collect::<Vec<_>>().join(" "),
        })?;
        bounded::check(program.expression()).map_err(|excess| match excess {
            Excess::Loop => ExpressionError::Loop { source_text: source_text.clone() },
            Excess::Pattern(function) => ExpressionError::Pattern { source_text: source_text.clone(), function },
            Excess::Growth(times) => ExpressionError::Growth { source_text: source_text.clone(), times },
        })?;
        match names::check(program.expression()) {
            Err(unknown) => Err(ExpressionError::Unknown { source_text, problem: unknown.to_string() }),
            Ok(()) => Ok(Self { source: source_text, fields: Fields::read_by(program.expression()), program }),
        }
    }

    /// Whether its value depends on a task's content. If it does not, it is the same for all tasks of a kind.
    #[must_use]
    pub(crate) fn uses_content(&self) -> bool {
        self.program.references().has_variable("content")
    }

    /// The fields of a content that it may read.
    pub(super) fn fields(&self) -> &Fields {
        &self.fields
    }

    /// The expression as it was written.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Evaluates it for the task that `subject` was made from.
    ///
    /// # Errors
    /// It cannot be evaluated, or its value is no text, number, boolean or list of these, or too long.
    pub fn evaluate(&self, subject: &Subject<'_>) -> Result<String, ExpressionError> {
        let value = self.value(subject)?;
        let text = text(&value)
            .ok_or_else(|| ExpressionError::Type { source_text: self.source.clone(), got: without_text(&value) })?;
        if text.len() > TARGET_BYTES_MAX {
            return Err(ExpressionError::ValueTooLong { source_text: self.source.clone(), bytes: text.len() });
        }
        Ok(text)
    }

    /// Evaluates it as the weight of the task that `subject` was made from.
    ///
    /// # Errors
    /// It cannot be evaluated, or its value is no number, or negative, or too large.
    pub fn weight(&self, subject: &Subject<'_>) -> Result<Weight, ExpressionError> {
        let value = self.value(subject)?;
        let (weight, got) = match &value {
            Value::Int(number) => (u64::try_from(*number).ok().and_then(Weight::from_whole), number.to_string()),
            Value::UInt(number) => (Weight::from_whole(*number), number.to_string()),
            Value::Float(number) => (Weight::from_float(*number), number.to_string()),
            other => (None, other.type_of().to_string()),
        };
        weight.ok_or_else(|| ExpressionError::Weight { source_text: self.source.clone(), got })
    }

    /// Evaluates it as a yes or no about the task that `subject` was made from.
    ///
    /// # Errors
    /// It cannot be evaluated, or its value is neither true nor false.
    pub fn flag(&self, subject: &Subject<'_>) -> Result<bool, ExpressionError> {
        match self.value(subject)? {
            Value::Bool(flag) => Ok(flag),
            other => Err(ExpressionError::Flag { source_text: self.source.clone(), got: other.type_of().to_string() }),
        }
    }

    /// Evaluates it as the head start of the task that `subject` was made from. None, if its value is null.
    ///
    /// # Errors
    /// It cannot be evaluated, or its value is no time, or negative, or too long.
    pub fn head_start(&self, subject: &Subject<'_>) -> Result<HeadStart, ExpressionError> {
        let value = self.value(subject)?;
        let whole = |seconds: u64| HeadStart::of(Duration::from_secs(seconds));
        let (head_start, got) = match &value {
            Value::Null => (Some(HeadStart::NONE), String::new()),
            Value::Int(number) => (u64::try_from(*number).ok().and_then(whole), number.to_string()),
            Value::UInt(number) => (whole(*number), number.to_string()),
            Value::Float(number) => (HeadStart::from_float(*number), number.to_string()),
            Value::String(text) => (HeadStart::from_text(text), format!("`{}`", start(text))),
            other => (None, other.type_of().to_string()),
        };
        head_start.ok_or_else(|| ExpressionError::HeadStart { source_text: self.source.clone(), got })
    }

    fn value(&self, subject: &Subject<'_>) -> Result<Value, ExpressionError> {
        self.program.execute(&subject.0).map_err(|error| ExpressionError::Evaluation {
            source_text: self.source.clone(),
            reason: error.to_string(),
        })
    }
}

impl std::fmt::Debug for Expression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Expression").field(&self.source).finish()
    }
}

/// One task as expressions see it. Made once per task, for all of a policy's expressions.
pub struct Subject<'v>(Context<'v, 'v>);

impl Subject<'_> {
    /// Gives expressions the task's kind and content.
    ///
    /// # Errors
    /// The content holds something CEL has no value for (a number beyond 64 bits).
    pub fn new(kind: &str, content: &serde_json::Value) -> Result<Self, ExpressionError> {
        Self::reading(&Fields::All, kind, content)
    }

    /// The same for expressions that read these fields at most: CEL need not have a value for what is in others.
    pub(super) fn reading(fields: &Fields, kind: &str, content: &serde_json::Value) -> Result<Self, ExpressionError> {
        let content = cel::to_value(fields.of(content)).map_err(|error| ExpressionError::Evaluation {
            source_text: "content".to_owned(),
            reason: error.to_string(),
        })?;
        let mut context = Context::with_env(ENVIRONMENT.clone());
        context.add_variable_from_value("kind", kind.to_owned());
        context.add_variable_from_value("content", content);
        Ok(Self(context))
    }
}

/// Whether an expression is small enough to be parsed: parsers and evaluation recurse over brackets and operators.
///
/// # Errors
/// It is too long, or has too many of either.
pub(crate) fn within_bounds(source: &str) -> Result<(), ExpressionError> {
    if source.len() > EXPRESSION_BYTES_MAX {
        return Err(ExpressionError::TooLong(source.len()));
    }
    if depth(source) > EXPRESSION_DEPTH_MAX {
        return Err(ExpressionError::TooDeep);
    }
    let operators = source.bytes().filter(|byte| b"+-*/%?:&|<>=!.,".contains(byte)).count();
    if operators > EXPRESSION_OPERATORS_MAX {
        return Err(ExpressionError::TooComplex(operators));
    }
    Ok(())
}

/// As much of a text as an error shows.
fn start(text: &str) -> String {
    const SHOWN: usize = 40;
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// How deep brackets are nested. The parser bounds its own depth, but only after it has looked ahead through them all.
fn depth(source: &str) -> usize {
    let (_, deepest) = source.bytes().fold((0_usize, 0_usize), |(depth, deepest), byte| match byte {
        b'(' | b'[' | b'{' => (depth + 1, deepest.max(depth + 1)),
        b')' | b']' | b'}' => (depth.saturating_sub(1), deepest),
        _ => (depth, deepest),
    });
    deepest
}

/// The text of a value. Lists are joined with `/`; `/` and `\` inside an element are escaped, so that no two lists have one
/// text.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.as_str().to_owned()),
        Value::Int(number) => Some(number.to_string()),
        Value::UInt(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::List(values) => {
            let parts: Option<Vec<String>> = values
                .iter()
                .map(|value| match value {
                    Value::List(_) => None,
                    scalar => text(scalar).map(|text| text.replace('\\', "\\\\").replace('/', "\\/")),
                })
                .collect();
            parts.map(|parts| parts.join("/"))
        }
        _ => None,
    }
}

/// What a value is that has no text: its type, or that of the first element that has none.
fn without_text(value: &Value) -> String {
    let is_bad = |element: &Value| matches!(element, Value::List(_)) || text(element).is_none();
    match value {
        Value::List(values) => match values.iter().position(is_bad) {
            Some(at) => format!("a list whose element {} is {}", at + 1, values[at].type_of()),
            None => value.type_of().to_string(),
        },
        other => other.type_of().to_string(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
