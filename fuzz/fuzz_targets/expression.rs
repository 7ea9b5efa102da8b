//! Expressions: the first line is one, the rest a task's content. Each is refused, or has a value in bounded time.
#![no_main]

use fanfold::limits::TARGET_BYTES_MAX;
use fanfold::policy::{Expression, Subject};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| {
    let (source, content) = input.split_once('\n').unwrap_or((input, "{}"));
    let expression = match Expression::compile(source) {
        Ok(expression) => expression,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let Ok(content) = serde_json::from_str(content) else { return };
    let Ok(subject) = Subject::new("parcel", &content) else { return };
    let value = expression.evaluate(&subject);
    if let Ok(value) = &value {
        assert!(value.len() <= TARGET_BYTES_MAX);
    }
    // An error shows maps, whose fields come in any order.
    assert_eq!(expression.evaluate(&subject).ok(), value.ok(), "the same content has the same value");
});
