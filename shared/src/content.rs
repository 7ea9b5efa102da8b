//! What a task brings: any JSON, within limits.

use serde_json::Value;

use crate::limits::{CONTENT_BYTES_MAX, CONTENT_DEPTH_MAX};

/// A task's content cannot be accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContentError {
    /// It is nested too deep.
    #[error("is nested more than {CONTENT_DEPTH_MAX} deep, at most {CONTENT_DEPTH_MAX} levels are allowed")]
    TooDeep,
    /// It is too large.
    #[error("has {0} bytes as JSON, at most {CONTENT_BYTES_MAX} are allowed")]
    TooLarge(usize),
}

/// The content as it is stored.
///
/// # Errors
/// It is nested too deep, or too large.
pub fn encode(content: &Value) -> Result<String, ContentError> {
    if depth(content, CONTENT_DEPTH_MAX + 1) > CONTENT_DEPTH_MAX {
        return Err(ContentError::TooDeep);
    }
    let text = content.to_string();
    if text.len() > CONTENT_BYTES_MAX { Err(ContentError::TooLarge(text.len())) } else { Ok(text) }
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
        assert!(encode(&nested(CONTENT_DEPTH_MAX)).is_ok());
        assert_eq!(encode(&nested(CONTENT_DEPTH_MAX + 1)), Err(ContentError::TooDeep));
        assert!(encode(&Value::String("x".repeat(CONTENT_BYTES_MAX - 2))).is_ok());
        let large = Value::String("x".repeat(CONTENT_BYTES_MAX - 1));
        assert_eq!(encode(&large), Err(ContentError::TooLarge(CONTENT_BYTES_MAX + 1)));
    }

    #[test]
    fn a_number_keeps_its_last_digit() {
        let text = r#"{"weight":3.6895195937856635}"#;
        assert_eq!(encode(&serde_json::from_str(text).unwrap()).unwrap(), text);
    }
}
