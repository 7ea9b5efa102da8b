//! Why an expression cannot be used, or what is wrong with its value.

use crate::limits::{
    EXPRESSION_BYTES_MAX, EXPRESSION_DEPTH_MAX, EXPRESSION_GROWTH_MAX, EXPRESSION_OPERATORS_MAX, HEAD_START_MAX,
    TARGET_BYTES_MAX, WEIGHT_MAX,
};
use crate::policy::Span;

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
        /// The unknown name, and those that exist.
        problem: String,
    },
    /// It goes through a list.
    #[error("`{source_text}` loops over a list (`all`, `exists`, `exists_one`, `filter`, `map`), which is not allowed")]
    Loop {
        /// The expression.
        source_text: String,
    },
    /// It calls a function with a value of the task where a literal text is required.
    #[error(
        "`{source_text}` gives `{function}` a value of the task; there only a text written in the expression is allowed"
    )]
    Pattern {
        /// The expression.
        source_text: String,
        /// The function.
        function: String,
    },
    /// Its result may be many times as large as the content.
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
        /// The value's type, or that of the first element of a list that has no text.
        got: String,
    },
    /// It gives a value that cannot be a weight.
    #[error("`{source_text}` gives {got}, a number of 0 to {WEIGHT_MAX} is expected")]
    Weight {
        /// The expression.
        source_text: String,
        /// The value, if it is a number, or else its type.
        got: String,
    },
    /// It gives a value that is neither true nor false.
    #[error("`{source_text}` gives {got}, true or false is expected")]
    Flag {
        /// The expression.
        source_text: String,
        /// The value's type.
        got: String,
    },
    /// It gives a value that cannot be a head start.
    #[error(
        "`{source_text}` gives {got}, a number of seconds from 0 to {} ({}), a text such as `10m`, or null is expected",
        HEAD_START_MAX.as_secs(),
        Span(HEAD_START_MAX)
    )]
    HeadStart {
        /// The expression.
        source_text: String,
        /// The value, if it is a number or a text, or else its type.
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

impl ExpressionError {
    /// Whether a text stands where a number, true or false is needed.
    #[must_use]
    pub fn finds_text(&self) -> bool {
        match self {
            Self::Weight { got, .. } | Self::Flag { got, .. } => got == "string",
            Self::HeadStart { got, .. } => got.starts_with('`'),
            // A field of a text is no such case, nor is an element.
            Self::Evaluation { reason, .. } => {
                let other_type = ["no matching overload", "Unsupported binary operator"];
                other_type.iter().any(|part| reason.contains(part))
                    && !["'_._'", "'_[_]'", "'_[?_]'"].iter().any(|of| reason.contains(of))
            }
            _ => false,
        }
    }
}
