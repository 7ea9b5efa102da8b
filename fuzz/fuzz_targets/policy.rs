//! Policies: the first line is a policy as JSON, the rest a task's content. What passes the check can be stored, read
//! again and used.
#![no_main]

use fanfold::limits::TARGET_BYTES_MAX;
use fanfold::policy::{CompiledPolicy, Policy};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| {
    let (policy, content) = input.split_once('\n').unwrap_or((input, "{}"));
    let Ok(policy) = serde_json::from_str::<Policy>(policy) else { return };
    let stored = serde_json::to_string(&policy).expect("a policy can be written");
    assert_eq!(serde_json::from_str::<Policy>(&stored).expect("and read again"), policy);
    let checked = policy.check();
    if let Err(error) = &checked {
        assert!(!error.to_string().is_empty());
    }
    let compiled = CompiledPolicy::new(policy);
    assert_eq!(compiled.is_ok(), checked.is_ok(), "what passes the check can be compiled");
    let (Ok(compiled), Ok(content)) = (compiled, serde_json::from_str(content)) else { return };
    let Ok(assignment) = compiled.assign(&content, "fallback") else { return };
    assert_eq!(compiled.assign(&content, "fallback").expect("again"), assignment, "the same content has the same lane");
    assert!(assignment.lane.partition < compiled.policy.partitions);
    assert!(assignment.lane.target.len() <= TARGET_BYTES_MAX);
    assert!(assignment.key.is_none_or(|key| key.len() <= TARGET_BYTES_MAX));
    assert_eq!(assignment.lane.to_string().parse(), Ok(assignment.lane));
});
