//! CEL expressions of a policy: targets and keys of tasks.

use std::sync::{Arc, LazyLock};

use cel::{Context, Env, Program, Value};

use super::bounded::{self, Excess};
use super::names;
use crate::limits::{
    EXPRESSION_BYTES_MAX, EXPRESSION_DEPTH_MAX, EXPRESSION_GROWTH_MAX, EXPRESSION_OPERATORS_MAX, TARGET_BYTES_MAX,
};

/// The standard environment and the strings extension (`substring`, `split`, `lowerAscii`, …).
static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::stdlib();
    if let Err(error) = env.add_extension(cel::extensions::strings) {
        tracing::error!(%error, "the strings extension of CEL could not be added");
    }
    Arc::new(env)
});

/// A compiled expression.
pub struct Expression {
    source: String,
    program: Program,
}

/// An expression cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionError {
    /// It is longer than is allowed.
    #[error("is {0} bytes long, at most {EXPRESSION_BYTES_MAX} are allowed")]
    TooLong(usize),
    /// Its brackets are nested deeper than is allowed.
    #[error("nests brackets more than {EXPRESSION_DEPTH_MAX} deep")]
    TooDeep,
    /// It has more operators than is allowed.
    #[error("has {0} operator characters, at most {EXPRESSION_OPERATORS_MAX} are allowed")]
    TooComplex(usize),
    /// It does not compile.
    #[error("`{source_text}` does not compile: {reason}")]
    Syntax {
        /// The expression.
        source_text: String,
        /// What the parser found.
        reason: String,
    },
    /// It names a variable, a function or a type that does not exist.
    #[error("`{source_text}` {problem}")]
    Unknown {
        /// The expression.
        source_text: String,
        /// What is not there, and what is.
        problem: String,
    },
    /// It goes through a list.
    #[error("`{source_text}` loops over a list (`all`, `exists`, `exists_one`, `filter`, `map`), which is not allowed")]
    Loop {
        /// The expression.
        source_text: String,
    },
    /// It gives a function a value of the task where a text has to be written out.
    #[error(
        "`{source_text}` gives `{function}` a value of the task; there only a text written in the expression is allowed"
    )]
    Pattern {
        /// The expression.
        source_text: String,
        /// The function.
        function: String,
    },
    /// It may make a text out of a content that is many times as large.
    #[error(
        "`{source_text}` may make a text {times} times as large as the content, at most {EXPRESSION_GROWTH_MAX} times is allowed"
    )]
    Growth {
        /// The expression.
        source_text: String,
        /// How many times.
        times: usize,
    },
    /// It cannot be evaluated for this task.
    #[error("`{source_text}` cannot be evaluated for this task: {reason}")]
    Evaluation {
        /// The expression.
        source_text: String,
        /// Why.
        reason: String,
    },
    /// It gives a value that cannot be a target or key.
    #[error("`{source_text}` gives {got}, a string, number, boolean or list of these is expected")]
    Type {
        /// The expression.
        source_text: String,
        /// The value's type.
        got: String,
    },
    /// Its value is longer than is allowed.
    #[error("`{source_text}` gives {bytes} bytes, at most {TARGET_BYTES_MAX} are allowed")]
    ValueTooLong {
        /// The expression.
        source_text: String,
        /// The value's size.
        bytes: usize,
    },
}

impl Expression {
    /// Compiles an expression.
    ///
    /// # Errors
    /// It is too long, does not parse, may take too much time or memory, or names a variable or function that does not exist.
    pub fn compile(source: &str) -> Result<Self, ExpressionError> {
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
            Ok(()) => Ok(Self { source: source_text, program }),
        }
    }

    /// Whether its value depends on a task's content. If it does not, it is the same for all tasks of a kind.
    #[must_use]
    pub fn uses_content(&self) -> bool {
        self.program.references().has_variable("content")
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
        let value = self.program.execute(&subject.0).map_err(|error| ExpressionError::Evaluation {
            source_text: self.source.clone(),
            reason: error.to_string(),
        })?;
        let text = text(&value).ok_or_else(|| ExpressionError::Type {
            source_text: self.source.clone(),
            got: value.type_of().to_string(),
        })?;
        if text.len() > TARGET_BYTES_MAX {
            return Err(ExpressionError::ValueTooLong { source_text: self.source.clone(), bytes: text.len() });
        }
        Ok(text)
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
        let content = cel::to_value(content).map_err(|error| ExpressionError::Evaluation {
            source_text: "content".to_owned(),
            reason: error.to_string(),
        })?;
        let mut context = Context::with_env(ENVIRONMENT.clone());
        context.add_variable_from_value("kind", kind.to_owned());
        context.add_variable_from_value("content", content);
        Ok(Self(context))
    }
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

/// The text of a value; lists are joined with `/`, with `/` and `\` inside an element escaped so that no two lists meet.
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    fn evaluate(source: &str, content: serde_json::Value) -> Result<String, ExpressionError> {
        Expression::compile(source)?.evaluate(&Subject::new("parcel", &content)?)
    }

    #[test]
    fn gives_targets() {
        let order = json!({"state": "NY", "depot": "117", "lines": 3, "express": true, "size": {"kg": 1.5}});
        assert_eq!(evaluate("content.state + '/' + content.depot", order.clone()).unwrap(), "NY/117");
        assert_eq!(
            evaluate("[kind, content.state, content.lines, content.express]", order.clone()).unwrap(),
            "parcel/NY/3/true"
        );
        assert_eq!(evaluate("content.size.kg", order.clone()).unwrap(), "1.5");
        assert_eq!(evaluate("content.depot.substring(0, 2)", order.clone()).unwrap(), "11");
        assert_eq!(evaluate("has(content.zone) ? content.zone : 'none'", order).unwrap(), "none");
    }

    #[test]
    fn lists_that_differ_give_targets_that_differ() {
        assert_ne!(evaluate("['a/b', 'c']", json!({})), evaluate("['a', 'b/c']", json!({})));
    }

    #[test]
    fn says_what_is_wrong() {
        assert!(matches!(evaluate("content.", json!({})), Err(ExpressionError::Syntax { .. })));
        assert!(
            matches!(evaluate("order.state", json!({})), Err(ExpressionError::Unknown { problem, .. }) if problem.contains("`order`"))
        );
        assert!(matches!(evaluate("content.state", json!({})), Err(ExpressionError::Evaluation { .. })));
        assert!(matches!(evaluate("content.a", json!({"a": null})), Err(ExpressionError::Type { .. })));
        assert!(matches!(
            evaluate("content.a", json!({"a": "x".repeat(2_000)})),
            Err(ExpressionError::ValueTooLong { .. })
        ));
        assert!(matches!(Expression::compile(&"(".repeat(5_000)), Err(ExpressionError::TooLong(5_000))));
        assert!(matches!(Expression::compile(&"(".repeat(1_000)), Err(ExpressionError::TooDeep)));
    }

    /// Each of these took hours, or all memory, for some content of 128 KiB.
    #[test]
    fn what_has_no_bound_is_refused() {
        let loops = ["content.a.all(kind, content.a.all(kind, true))", "[content].map(kind, kind + kind)"];
        for source in loops {
            assert!(matches!(Expression::compile(source), Err(ExpressionError::Loop { .. })), "{source}");
        }
        for source in [
            "content.a.replace('', content.a)",
            "content.a.replace(content.a, 'x')",
            "[content.a.join(content.b)]",
            "{'x': content.a.indexOf(content.b)}.x",
            "content.a.matches(content.b)",
        ] {
            assert!(matches!(Expression::compile(source), Err(ExpressionError::Pattern { .. })), "{source}");
        }
        let ten = ".replace('7', '7777777777')";
        for source in [
            format!("'7'{}", ten.repeat(20)),
            format!("[content.a{}][0]{ten}", ten),
            format!("content.a.split('').join('{}')", "x".repeat(64)),
            format!("{}content.a{}", "strings.quote(".repeat(7), ")".repeat(7)),
        ] {
            assert!(matches!(Expression::compile(&source), Err(ExpressionError::Growth { .. })), "{source}");
        }
        let error = Expression::compile("content.a.replace('', content.b)").unwrap_err().to_string();
        assert!(error.contains("`replace`") && error.contains("`content.a.replace('', content.b)`"), "{error}");
    }

    #[test]
    fn what_has_a_bound_is_evaluated() {
        let content = json!({"a": "a-b-c", "l": ["x", "y"], "n": 7});
        for (source, value) in [
            ("content.a.replace('-', '/')", "a/b/c"),
            ("content.a.split('-').join(', ')", "a, b, c"),
            ("content.l.join('-').upperAscii()", "X-Y"),
            ("content.a.indexOf('b')", "2"),
            ("content.a.matches('^a.*c$') ? 'yes' : 'no'", "yes"),
            ("'%s:%d'.format([kind, content.n]).replace('%', '')", "parcel:7"),
            ("'x' in content.l", "true"),
        ] {
            assert_eq!(evaluate(source, content.clone()).unwrap(), value, "{source}");
        }
    }

    #[test]
    fn hostile_expressions_are_refused_or_evaluated() {
        // As much of each as the limits let through to the parser, and one step more.
        let repeat = |part: &str| {
            let operators = part.bytes().filter(|byte| b"+?:|.!-".contains(byte)).count().max(1);
            part.repeat((EXPRESSION_OPERATORS_MAX / operators).min(EXPRESSION_BYTES_MAX / part.len() - 2))
        };
        for source in [
            repeat("content."),
            format!("{}kind", repeat("!")),
            format!("{}1", repeat("-")),
            format!("{}1", repeat("1+")),
            format!("{}1", repeat("true?1:")),
            format!("{}kind", repeat("kind||")),
            format!("content{}", repeat("[0]")),
            format!("kind{}", repeat(".a()")),
            "[".repeat(EXPRESSION_DEPTH_MAX),
            "{1:".repeat(EXPRESSION_DEPTH_MAX),
            format!("{}kind{}", "(".repeat(EXPRESSION_DEPTH_MAX), ")".repeat(EXPRESSION_DEPTH_MAX)),
            repeat("\""),
        ] {
            if let Ok(expression) = Expression::compile(&source) {
                let _ = expression.evaluate(&Subject::new("parcel", &json!({})).unwrap());
            }
        }
    }
}
