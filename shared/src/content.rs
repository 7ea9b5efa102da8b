//! What a task brings: any JSON, within limits.

use serde_json::Value;

use crate::limits::{CONTENT_BYTES, CONTENT_DEPTH};

/// A task's content cannot be accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContentError {
    /// It is nested too deep.
    #[error("is nested more than {CONTENT_DEPTH} deep")]
    TooDeep,
    /// It is too large.
    #[error("has {0} bytes as JSON, at most {CONTENT_BYTES} are allowed")]
    TooLarge(usize),
}

/// The content as it is stored.
///
/// # Errors
/// It is nested too deep, or too large.
pub fn encode(content: &Value) -> Result<String, ContentError> {
    if depth(content, CONTENT_DEPTH + 1) > CONTENT_DEPTH {
        return Err(ContentError::TooDeep);
    }
    let text = content.to_string();
    if text.len() > CONTENT_BYTES { Err(ContentError::TooLarge(text.len())) } else { Ok(text) }
}

/// How deep a value is nested, as far as `limit`.
fn depth(value: &Value, limit: usize) -> usize {
    if limit == 0 {
        return 0;
    }
    match value {
        Value::Array(values) => 1 + values.iter().map(|value| depth(value, limit - 1)).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(|value| depth(value, limit - 1)).max().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> Value {
        (1..levels).fold(Value::Array(Vec::new()), |inner, _| Value::Array(vec![inner]))
    }

    #[test]
    fn limits_are_inclusive() {
        assert!(encode(&nested(CONTENT_DEPTH)).is_ok());
        assert_eq!(encode(&nested(CONTENT_DEPTH + 1)), Err(ContentError::TooDeep));
        assert!(encode(&Value::String("x".repeat(CONTENT_BYTES - 2))).is_ok());
        let large = Value::String("x".repeat(CONTENT_BYTES - 1));
        assert_eq!(encode(&large), Err(ContentError::TooLarge(CONTENT_BYTES + 1)));
    }
}
