//! Expressions of mappings: the first line is one, the rest a task's content. Each is refused, or has a value in bounded time.
#![no_main]

use fanfold::limits::TERM_VALUE_BYTES_MAX;
use fanfold::mapping::{Bindings, Term, Variable};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|input: &str| {
    let (source, content) = input.split_once('\n').unwrap_or((input, "{}"));
    let term = match Term::read(source, &[Variable::Kind, Variable::Content]) {
        Ok(term) => term,
        Err(problem) => return assert!(!problem.is_empty()),
    };
    let Ok(content) = serde_json::from_str::<Value>(content) else { return };
    let kind = Value::from("parcel");
    let bindings = Bindings::default().with(Variable::Content, &content).with(Variable::Kind, &kind);
    let value = term.value(&bindings);
    if let Ok(Value::String(text)) = value.as_deref() {
        assert!(text.len() <= TERM_VALUE_BYTES_MAX.max(input.len()));
    }
    assert_eq!(term.value(&bindings), value, "the same content has the same value");
});
