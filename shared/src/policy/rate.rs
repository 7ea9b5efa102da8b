//! Rates: how fast a batch API may be called, over one lane or over all lanes of a kind.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Weight;
use super::check::Faults;
use crate::limits::{BURST_TIME_MAX, WEIGHT_MAX};

/// How much may be passed to a batch API per second, minute or hour. It has exactly one of `tasks`, `calls` and `weight`,
/// and counts that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// How many tasks.
    #[cfg_attr(feature = "openapi", schemars(range(min = 1, max = WEIGHT_MAX)))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::whole::optional_u32")]
    pub tasks: Option<u32>,
    /// How many calls.
    #[cfg_attr(feature = "openapi", schemars(range(min = 1, max = WEIGHT_MAX)))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::whole::optional_u32")]
    pub calls: Option<u32>,
    /// How much weight. Requires the policy's `weight`.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::optional_weight"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<Weight>,
    /// The span of time that the number is about.
    pub per: Per,
    /// How much may be called at once after a pause, in the same unit. Without it, what the rate allows in a quarter of a
    /// second, and at least one task or call.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::optional_weight"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<Weight>,
}

/// The span of time of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Per {
    /// A second.
    Second,
    /// A minute.
    Minute,
    /// An hour.
    Hour,
}

impl Per {
    /// How long it is.
    #[must_use]
    pub fn time(self) -> Duration {
        Duration::from_secs(match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 3_600,
        })
    }
}

/// What a rate counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// The members of calls.
    Tasks,
    /// Calls.
    Calls,
    /// The weight of batches.
    Weight,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tasks => "tasks",
            Self::Calls => "calls",
            Self::Weight => "weight",
        })
    }
}

impl Rate {
    /// What it counts, and how much of it. None: it does not have exactly one of the fields.
    #[must_use]
    pub fn amount(&self) -> Option<(Unit, Weight)> {
        let whole = |number: u32| Weight::from_whole(u64::from(number));
        match (self.tasks, self.calls, self.weight) {
            (Some(tasks), None, None) => Some((Unit::Tasks, whole(tasks)?)),
            (None, Some(calls), None) => Some((Unit::Calls, whole(calls)?)),
            (None, None, Some(weight)) => Some((Unit::Weight, weight)),
            _ => None,
        }
    }

    /// Names what is wrong with it, as the policy's field `field`. `weighs`: whether the policy has a `weight`.
    pub(super) fn check(&self, field: &str, weighs: bool, faults: &mut Faults) {
        let whole = format!("a number of 1 to {WEIGHT_MAX} is allowed");
        for (name, number) in [("tasks", self.tasks), ("calls", self.calls)] {
            if let Some(number) = number.filter(|number| !(1..=WEIGHT_MAX).contains(&u64::from(*number))) {
                return faults.add(&format!("{field}.{name}"), format!("is {number}, {whole}"));
            }
        }
        let Some((unit, amount)) = self.amount() else {
            return faults.add(field, "must have exactly one of `tasks`, `calls` and `weight`");
        };
        if amount == Weight::default() {
            let allowed = format!("is 0, a number above 0 and up to {WEIGHT_MAX} is allowed");
            return faults.add(&format!("{field}.{unit}"), allowed);
        }
        if unit == Unit::Weight && !weighs {
            let problem = format!("is {amount}, which is allowed only if the policy has a `weight`");
            faults.add(&format!("{field}.weight"), problem);
        }
        let Some(burst) = self.burst else { return };
        let name = format!("{field}.burst");
        if burst == Weight::default() || (unit != Unit::Weight && !burst.is_whole()) {
            let allowed = if unit == Unit::Weight { "a number above 0" } else { "a whole number of 1 or more" };
            return faults.add(&name, format!("is {burst}, {allowed} is allowed"));
        }
        let (per, most) = (self.per.time().as_secs(), BURST_TIME_MAX.as_secs());
        if u128::from(burst.0) * u128::from(per) > u128::from(amount.0) * u128::from(most) {
            faults.add(&name, format!("is {burst}, but what the rate allows in {} hours is the maximum", most / 3_600));
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn problems(rate: Value) -> Vec<String> {
        let mut faults = Faults::default();
        serde_json::from_value::<Rate>(rate).unwrap().check("kind_rate", true, &mut faults);
        faults.result().map_or_else(
            |error| error.0.into_iter().map(|fault| format!("{}: {}", fault.field, fault.problem)).collect(),
            |()| Vec::new(),
        )
    }

    #[test]
    fn a_rate_counts_one_thing() {
        for right in [
            json!({"tasks": 100, "per": "second"}),
            json!({"calls": 3.0, "per": "minute", "burst": 1}),
            json!({"weight": 90_000.5, "per": "hour", "burst": 0.5}),
            json!({"tasks": 1, "per": "hour", "burst": 24}),
        ] {
            assert_eq!(problems(right.clone()), Vec::<String>::new(), "{right}");
        }
        let one = "kind_rate: must have exactly one of `tasks`, `calls` and `weight`";
        for (wrong, problem) in [
            (json!({"per": "second"}), one),
            (json!({"tasks": 1, "calls": 1, "per": "second"}), one),
            (json!({"tasks": 0, "per": "second"}), "kind_rate.tasks: is 0, a number of 1 to 1000000000 is allowed"),
            (
                json!({"weight": 0, "per": "second"}),
                "kind_rate.weight: is 0, a number above 0 and up to 1000000000 is allowed",
            ),
            (
                json!({"tasks": 9, "per": "second", "burst": 1.5}),
                "kind_rate.burst: is 1.5, a whole number of 1 or more is allowed",
            ),
            (json!({"weight": 9, "per": "second", "burst": 0}), "kind_rate.burst: is 0, a number above 0 is allowed"),
            (
                json!({"tasks": 1, "per": "hour", "burst": 25}),
                "kind_rate.burst: is 25, but what the rate allows in 24 hours is the maximum",
            ),
        ] {
            assert_eq!(problems(wrong.clone()), [problem], "{wrong}");
        }
        for wrong in [
            json!({"tasks": 1}),
            json!({"tasks": 1, "per": "day"}),
            json!({"tasks": 1, "per": "hour", "bursts": 1}),
            json!({"tasks": 1.5, "per": "hour"}),
            json!("1/s"),
        ] {
            assert!(serde_json::from_value::<Rate>(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn weight_needs_a_weight_of_tasks() {
        let rate: Rate = serde_json::from_value(json!({"weight": 5, "per": "second"})).unwrap();
        let mut faults = Faults::default();
        rate.check("lane_rate", false, &mut faults);
        assert_eq!(
            faults.result().unwrap_err().to_string(),
            "`lane_rate.weight`: is 5, which is allowed only if the policy has a `weight`"
        );
    }
}
