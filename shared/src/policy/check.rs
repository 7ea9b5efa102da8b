//! Whether a policy can be used. Every fault is named, with its value and what is allowed.

use std::fmt;
use std::time::Duration;

use super::kind::bad_kind;
use super::url::is_callable;
use super::{BackoffPolicy, Policy, Span, Weight};
use crate::limits::{
    ATTEMPTS_MAX, BATCH_BYTES_MAX, BATCH_MEMBERS_MAX, CALLS_MAX, IN_FLIGHT_MAX, PARTITIONS_MAX, RETRY_AFTER_MAX,
    URL_BYTES_MAX, WEIGHT_MAX,
};

/// One field that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct FieldError {
    /// The field, dotted: `batch_api.url`.
    pub field: String,
    /// Its value and what is allowed instead.
    pub problem: String,
}

/// A policy cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct PolicyError(pub Vec<FieldError>);

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, error) in self.0.iter().enumerate() {
            write!(f, "{}`{}`: {}", if n > 0 { "; " } else { "" }, error.field, error.problem)?;
        }
        Ok(())
    }
}

/// Gathers faults.
#[derive(Default)]
pub(super) struct Faults(Vec<FieldError>);

impl Faults {
    pub(super) fn add(&mut self, field: &str, problem: impl Into<String>) {
        self.0.push(FieldError { field: field.to_owned(), problem: problem.into() });
    }

    /// Fails if there are any.
    pub(super) fn result(self) -> Result<(), PolicyError> {
        if self.0.is_empty() { Ok(()) } else { Err(PolicyError(self.0)) }
    }

    fn range(&mut self, field: &str, value: u32, max: u32) {
        if !(1..=max).contains(&value) {
            self.add(field, format!("is {value}, 1 to {max} is allowed"));
        }
    }

    pub(super) fn at_most(&mut self, field: &str, value: Span, max: Duration) {
        if value.0 > max {
            self.add(field, format!("is {value}, at most {} is allowed", Span(max)));
        }
    }

    pub(super) fn url(&mut self, field: &str, url: &str) {
        if !is_callable(url) {
            self.add(
                field,
                format!(
                    "is `{url}`, an https:// URL of at most {URL_BYTES_MAX} bytes is allowed, or http:// on localhost"
                ),
            );
        }
    }

    /// Times are stored in milliseconds: a finer value would be rounded, so it is refused.
    pub(super) fn whole_millis(&mut self, field: &str, value: Span) {
        if !value.0.subsec_nanos().is_multiple_of(1_000_000) {
            self.add(field, format!("is {value}, whole milliseconds are allowed"));
        }
    }
}

impl Policy {
    /// Names every fault of the policy.
    ///
    /// # Errors
    /// There is at least one.
    pub fn check(&self) -> Result<(), PolicyError> {
        let mut faults = Faults::default();
        if let Some(problem) = bad_kind(&self.kind) {
            faults.add("kind", problem);
        }
        let texts = [
            ("target", Some(&self.target)),
            ("key", self.key.as_ref()),
            ("scope", self.scope.as_ref()),
            ("distinct", self.distinct.as_ref()),
        ];
        for (field, source) in texts {
            if let Some(Err(problem)) = source.map(|source| self.check_expression(source)) {
                faults.add(field, problem);
            }
        }
        if let (Some(scope), None) = (&self.scope, &self.key) {
            faults.add("scope", format!("is `{scope}`, which says where a `key` is accepted once: there is no `key`"));
        }
        faults.range("partitions", self.partitions, PARTITIONS_MAX);
        faults.range("max_batch", self.max_batch(), BATCH_MEMBERS_MAX);
        if let Some(bytes) = self.max_batch_bytes {
            faults.range("max_batch_bytes", bytes, BATCH_BYTES_MAX);
        }
        self.check_weight(&mut faults);
        if let Some(Err(problem)) = self.flush_when.as_ref().map(|source| self.check_flag(source)) {
            faults.add("flush_when", problem);
        }
        if let Some(Err(problem)) = self.priority.as_ref().map(|source| self.check_head_start(source)) {
            faults.add("priority", problem);
        }
        faults.range("max_in_flight", self.max_in_flight, IN_FLIGHT_MAX);
        self.check_pace(&mut faults);
        faults.range("max_attempts", self.max_attempts, ATTEMPTS_MAX);
        self.check_waits(&mut faults);
        faults.whole_millis("backoff.base", self.backoff.base);
        faults.whole_millis("backoff.max", self.backoff.max);
        faults.at_most("backoff.max", self.backoff.max, RETRY_AFTER_MAX);
        if self.backoff.base > self.backoff.max {
            let BackoffPolicy { base, max } = &self.backoff;
            faults.add("backoff.base", format!("is {base}, at most `backoff.max`, which is {max}, is allowed"));
        }
        self.batch_api.check(&mut faults);
        self.check_preset(&mut faults);
        if let Some(destination) = &self.notify {
            destination.check_for_policy("notify", &mut faults);
        }
        faults.result()
    }

    fn check_pace(&self, faults: &mut Faults) {
        if let Some(calls) = self.max_calls {
            faults.range("max_calls", calls, CALLS_MAX);
        }
        for (field, rate) in [("lane_rate", &self.lane_rate), ("kind_rate", &self.kind_rate)] {
            if let Some(rate) = rate {
                rate.check(field, self.weight.is_some(), faults);
            }
        }
    }

    /// The field that cannot be used where commands are not run: on a deployed stack, or on a local one that others can reach.
    #[must_use]
    pub fn needs_commands(&self) -> Option<FieldError> {
        let way = &self.batch_api.way;
        let problem = "is allowed only in the local runner; `batch_api.url` is allowed here".to_owned();
        way.only_local().then(|| FieldError { field: format!("batch_api.{}", way.field()), problem })
    }

    /// `weight` and `max_weight` go together.
    fn check_weight(&self, faults: &mut Faults) {
        match (&self.weight, self.max_weight) {
            (Some(_), None) => faults.add("max_weight", "is missing: with `weight`, a number above 0 is needed"),
            (None, Some(most)) => faults.add("max_weight", format!("is {most}, which is allowed only with `weight`")),
            (_, Some(most)) if most == Weight::default() => {
                faults.add("max_weight", format!("is 0, a number above 0 and up to {WEIGHT_MAX} is allowed"));
            }
            _ => {}
        }
        if let Some(Err(problem)) = self.weight.as_ref().map(|source| self.check_number(source)) {
            faults.add("weight", problem);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    fn policy(changes: serde_json::Value) -> Policy {
        let mut value =
            json!({"kind": "parcel", "target": "content.depot", "batch_api": {"url": "https://example.com/trucks"}});
        value.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        serde_json::from_value(value).unwrap()
    }

    fn fields(changes: serde_json::Value) -> Vec<String> {
        policy(changes)
            .check()
            .map_or_else(|error| error.0.into_iter().map(|fault| fault.field).collect(), |()| Vec::new())
    }

    #[test]
    fn accepts_what_is_right() {
        assert_eq!(fields(json!({})), Vec::<String>::new());
        assert_eq!(
            fields(json!({"batch_api": {"command": ["./book"]}, "notify": {"queue": "notices"}})),
            Vec::<String>::new()
        );
        assert_eq!(
            fields(json!({"batch_api": {"url": "http://127.0.0.1:8080/x"}, "linger": 0, "partitions": 1024})),
            Vec::<String>::new()
        );
        assert_eq!(fields(json!({"backoff": {"base": "1ms", "max": "1day"}})), Vec::<String>::new());
    }

    #[test]
    fn names_every_fault() {
        assert_eq!(fields(json!({"kind": "a:b"})), ["kind"]);
        assert_eq!(fields(json!({"target": "content.", "key": "order.id"})), ["target", "key"]);
        assert_eq!(
            fields(json!({"partitions": 0, "max_batch": 10_001, "max_in_flight": 0, "max_attempts": 0})),
            ["partitions", "max_batch", "max_in_flight", "max_attempts"]
        );
        assert_eq!(fields(json!({"target": "content.depot.lowercase()", "key": "size()"})), ["target", "key"]);
        assert_eq!(fields(json!({"target": "1 / 0", "key": "kind + 1"})), ["target", "key"], "no task could be taken");
        assert_eq!(fields(json!({"target": "'all'", "key": "kind.substring(2)"})), Vec::<String>::new());
        assert_eq!(fields(json!({"key": "content.order", "scope": "content."})), ["scope"]);
        assert_eq!(fields(json!({"scope": "content.push"})), ["scope"], "a scope of no key");
        assert_eq!(fields(json!({"key": "content.order", "scope": "kind"})), Vec::<String>::new());
        assert_eq!(fields(json!({"max_batch_bytes": 0})), ["max_batch_bytes"]);
        assert_eq!(fields(json!({"max_batch_bytes": BATCH_BYTES_MAX + 1})), ["max_batch_bytes"]);
        assert_eq!(fields(json!({"weight": "content.kg"})), ["max_weight"]);
        assert_eq!(fields(json!({"max_weight": 3})), ["max_weight"]);
        assert_eq!(fields(json!({"weight": "content.kg", "max_weight": 0})), ["max_weight"]);
        assert_eq!(fields(json!({"weight": "content.", "max_weight": 3})), ["weight"]);
        assert_eq!(fields(json!({"distinct": "content.a +"})), ["distinct"]);
        assert_eq!(fields(json!({"weight": "kind", "max_weight": 3})), ["weight"], "no task could be taken");
        assert_eq!(fields(json!({"weight": "2", "max_weight": 3.5, "max_batch_bytes": 1})), Vec::<String>::new());
        assert_eq!(fields(json!({"max_calls": 0})), ["max_calls"]);
        assert_eq!(fields(json!({"lane_rate": {"per": "second"}})), ["lane_rate"]);
        assert_eq!(fields(json!({"kind_rate": {"weight": 3, "per": "second"}})), ["kind_rate.weight"]);
        let paced = json!({"max_calls": 3, "kind_rate": {"tasks": 9, "per": "minute", "burst": 2}, "lane_rate": {"calls": 1, "per": "hour"}});
        assert_eq!(fields(paced), Vec::<String>::new());
        assert_eq!(fields(json!({"backoff": {"base": "11m"}})), ["backoff.base"]);
        assert_eq!(fields(json!({"backoff": {"base": "1500us", "max": "1s 1ns"}})), ["backoff.base", "backoff.max"]);
        assert_eq!(fields(json!({"backoff": {"max": "86401s"}})), ["backoff.max"]);
        assert_eq!(fields(json!({"batch_api": {"command": ["x"], "timeout": "1us"}})), ["batch_api.timeout"]);
        assert_eq!(fields(json!({"batch_api": {"command": []}})), ["batch_api.command"]);
        assert_eq!(fields(json!({"batch_api": {"url": "http://example.com/"}})), ["batch_api.url"]);
        assert_eq!(fields(json!({"batch_api": {"url": "trucks"}})), ["batch_api.url"]);
        assert_eq!(
            fields(json!({"batch_api": {"url": "https://example.com/", "timeout": "2m"}})),
            ["batch_api.timeout"]
        );
        assert_eq!(fields(json!({"notify": {"url": "ftp://example.com"}})), ["notify.url"]);
        assert_eq!(fields(json!({"notify": {"sqs": "ends"}})), ["notify.sqs"]);
        assert_eq!(
            fields(json!({"notify": {"task_token": "AAAA"}})),
            ["notify.task_token"],
            "it takes one notice only"
        );
    }

    #[test]
    fn what_flushes_is_true_or_false() {
        assert_eq!(fields(json!({"flush_when": "content."})), ["flush_when"]);
        assert_eq!(fields(json!({"flush_when": "kind"})), ["flush_when"], "no task could be taken");
        assert_eq!(fields(json!({"flush_when": "has(content.last) && content.last"})), Vec::<String>::new());
    }

    #[test]
    fn a_head_start_is_a_time() {
        let refused = ["content.", "true", "-1", "604801", "kind", "'8days'", "'soon'", "[60]"];
        for source in refused {
            assert_eq!(fields(json!({"priority": source})), ["priority"], "{source}: no task could be taken");
        }
        for source in ["content.urgent ? '10m' : null", "null", "0", "604800", "1.5", "'1h 30m'"] {
            assert_eq!(fields(json!({"priority": source})), Vec::<String>::new(), "{source}");
        }
    }

    #[test]
    fn an_unknown_field_is_refused_with_the_known_ones() {
        let error = serde_json::from_value::<Policy>(json!({"kind": "a", "maxbatch": 3})).unwrap_err().to_string();
        assert!(error.contains("maxbatch") && error.contains("max_batch"), "{error}");
    }
}
