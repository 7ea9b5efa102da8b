//! The times that a leader waits for more tasks: whether a policy's can be used.

use super::check::Faults;
use super::{Policy, Span};
use crate::limits::DELAY_MAX;

impl Policy {
    /// The times that leaders wait.
    pub(super) fn check_waits(&self, faults: &mut Faults) {
        faults.at_most("linger", self.linger, DELAY_MAX);
        faults.whole_millis("linger", self.linger);
        if let Some(quiet) = self.quiet {
            faults.whole_millis("quiet", quiet);
            let linger = self.linger;
            if linger.0.is_zero() {
                faults.add("quiet", format!("is {quiet}, and needs a `linger` above it; that is {linger}"));
            } else if quiet.0.is_zero() || quiet >= linger {
                faults.add(
                    "quiet",
                    format!("is {quiet}, 1ms or more and less than `linger`, which is {linger}, is allowed"),
                );
            }
        }
        match (self.min_batch, self.min_batch_wait) {
            (Some(_), None) => {
                let problem = format!("is missing: with `min_batch`, 1ms to {} is needed", Span(DELAY_MAX));
                faults.add("min_batch_wait", problem);
            }
            (None, Some(wait)) => {
                faults.add("min_batch_wait", format!("is {wait}, which is allowed only with `min_batch`"));
            }
            (_, Some(wait)) if wait.0.is_zero() => {
                faults.add("min_batch_wait", format!("is 0s, 1ms to {} is allowed", Span(DELAY_MAX)));
            }
            _ => {}
        }
        if let Some(wait) = self.min_batch_wait {
            faults.at_most("min_batch_wait", wait, DELAY_MAX);
            faults.whole_millis("min_batch_wait", wait);
        }
        if let Some(least) = self.min_batch.filter(|least| !(1..=self.max_batch()).contains(least)) {
            faults.add("min_batch", format!("is {least}, 1 to `max_batch`, which is {}, is allowed", self.max_batch()));
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::testing::parcels;
    use serde_json::json;

    fn fields(changes: serde_json::Value) -> Vec<String> {
        let faults = parcels(changes).check().err().map(|error| error.0).unwrap_or_default();
        faults.into_iter().map(|fault| fault.field).collect()
    }

    #[test]
    fn names_every_fault_of_the_time_that_a_batch_waits() {
        for linger in ["0s", "1ms", "500ms", "1500ms", "15m"] {
            assert_eq!(fields(json!({"linger": linger})), Vec::<String>::new(), "{linger}");
        }
        assert_eq!(fields(json!({"linger": "500us"})), ["linger"]);
        assert_eq!(fields(json!({"linger": "16m"})), ["linger"]);
        assert_eq!(fields(json!({"linger": "5s", "quiet": "4s"})), Vec::<String>::new());
        for quiet in ["0s", "5s", "10m"] {
            assert_eq!(fields(json!({"linger": "5s", "quiet": quiet})), ["quiet"]);
        }
        assert_eq!(fields(json!({"linger": "5s", "quiet": "1ms"})), Vec::<String>::new());
        assert_eq!(fields(json!({"linger": "500ms", "quiet": "100ms"})), Vec::<String>::new());
        assert_eq!(fields(json!({"linger": "500ms", "quiet": "500ms"})), ["quiet"]);
        assert_eq!(fields(json!({"linger": "5s", "quiet": "1500us"})), ["quiet"]);
        assert_eq!(fields(json!({"linger": "0s", "quiet": "1s"})), ["quiet"]);
        for wait in ["1ms", "1500ms", "15m"] {
            assert_eq!(fields(json!({"min_batch": 100, "min_batch_wait": wait})), Vec::<String>::new(), "{wait}");
        }
        assert_eq!(fields(json!({"min_batch": 5})), ["min_batch_wait"]);
        assert_eq!(fields(json!({"min_batch_wait": "5s"})), ["min_batch_wait"]);
        for wait in ["0s", "16m", "1500us"] {
            assert_eq!(fields(json!({"min_batch": 5, "min_batch_wait": wait})), ["min_batch_wait"]);
        }
        for least in [0, 101] {
            assert_eq!(fields(json!({"min_batch": least, "min_batch_wait": "5s"})), ["min_batch"]);
        }
        let error = parcels(json!({"linger": "5s", "quiet": "7s"})).check().unwrap_err().to_string();
        assert_eq!(error, "`quiet`: is 7s, 1ms or more and less than `linger`, which is 5s, is allowed");
        let error = parcels(json!({"linger": 0, "quiet": "7s"})).check().unwrap_err().to_string();
        assert_eq!(error, "`quiet`: is 7s, and needs a `linger` above it; that is 0s");
        let error = parcels(json!({"linger": "1500us"})).check().unwrap_err().to_string();
        assert_eq!(error, "`linger`: is 1ms 500us, whole milliseconds are allowed");
    }
}
