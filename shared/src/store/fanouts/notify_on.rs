//! Which ends and which progress of a fan-out are reported.

use std::collections::BTreeSet;

use serde::{Deserialize, Deserializer, Serialize};

use super::{Fanout, FanoutState, ProgressPercentage};
use crate::limits::PROGRESS_PERCENTAGES_MAX;
use crate::policy::{Destination, FieldError, PolicyError};

/// What is reported of a fan-out, if not each of its ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NotifyOn {
    /// The ends that are reported. If not given: `completed`, `failed`, `cancelled` and `expired`. With `succeeded`, one that is completed
    /// without a failed item is reported as that; without `completed` beside it, one that is completed with failed items is not reported.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::ends"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<BTreeSet<ReportedEnd>>,
    /// Percentages of its items, as text such as `50%`, at which its progress is reported: more than none and less than all. It is judged once the
    /// fan-out is sealed.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::progress_percentages"))]
    #[serde(default, deserialize_with = "percentages", skip_serializing_if = "BTreeSet::is_empty")]
    pub progress: BTreeSet<ProgressPercentage>,
}

/// An end of a fan-out, as its notice reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportedEnd {
    /// It is completed, and no item failed.
    Succeeded,
    /// Every item is done.
    Completed,
    /// More items failed than it tolerates.
    Failed,
    /// A user cancelled it.
    Cancelled,
    /// Nothing happened to it for longer than its idle limit.
    Expired,
}

impl ReportedEnd {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Succeeded, Self::Completed, Self::Failed, Self::Cancelled, Self::Expired];

    /// Those that every end is one of.
    const DEFAULT: [Self; 4] = [Self::Completed, Self::Failed, Self::Cancelled, Self::Expired];

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
        }
    }
}

/// A list of percentages, in any order.
fn percentages<'de, D: Deserializer<'de>>(reader: D) -> Result<BTreeSet<ProgressPercentage>, D::Error> {
    let percentages = Option::<Vec<ProgressPercentage>>::deserialize(reader)?.unwrap_or_default();
    if percentages.len() > PROGRESS_PERCENTAGES_MAX {
        let problem = format!("has {} percentages, at most {PROGRESS_PERCENTAGES_MAX} are allowed", percentages.len());
        return Err(serde::de::Error::custom(problem));
    }
    Ok(percentages.into_iter().collect())
}

impl NotifyOn {
    /// As what an end is reported; none: it is not.
    fn end(&self, state: FanoutState, failed: u64) -> Option<ReportedEnd> {
        let chosen = |end: &ReportedEnd| {
            self.ends.as_ref().map_or(ReportedEnd::DEFAULT.contains(end), |ends| ends.contains(end))
        };
        let ended_as: &[ReportedEnd] = match state {
            FanoutState::Completed if failed == 0 => &[ReportedEnd::Succeeded, ReportedEnd::Completed],
            FanoutState::Completed => &[ReportedEnd::Completed],
            FanoutState::Failed => &[ReportedEnd::Failed],
            FanoutState::Cancelled => &[ReportedEnd::Cancelled],
            FanoutState::Expired => &[ReportedEnd::Expired],
            FanoutState::Open | FanoutState::Sealed => &[],
        };
        ended_as.iter().copied().find(chosen)
    }

    /// Checks it together with the destination of the notices.
    ///
    /// # Errors
    /// It reports nothing, or the destination needs other ends.
    pub fn check(&self, notify: Option<&Destination>) -> Result<(), PolicyError> {
        let refuse = |field: &str, problem: String| {
            let field = format!("notify_on{field}");
            Err(PolicyError(vec![FieldError { field, problem }]))
        };
        let Some(notify) = notify else {
            return refuse("", "is there without `notify`: the destination of its notices is needed".to_owned());
        };
        if self.progress.is_empty() && self.ends.as_ref().is_some_and(BTreeSet::is_empty) {
            return refuse("", "names no end and no percentage, at least one is needed".to_owned());
        }
        let Some(who) = notify.waits() else { return Ok(()) };
        if let Some(percentage) = self.progress.first() {
            let problem = format!(
                "has `{percentage}`, but {who} takes one notice only, of the end: percentages are allowed with `url`, `queue`, `sqs` and \
                 `event_bus`"
            );
            return refuse(".progress", problem);
        }
        let left_out =
            self.ends.as_ref().and_then(|ends| ReportedEnd::DEFAULT.into_iter().find(|end| !ends.contains(end)));
        left_out.map_or(Ok(()), |end| {
            let needed = ReportedEnd::DEFAULT.map(|end| format!("`{}`", end.as_str())).join(", ");
            let problem =
                format!("leaves out `{}`, and {who} would wait for ever: all of {needed} are needed", end.as_str());
            refuse(".ends", problem)
        })
    }
}

impl Fanout {
    /// As what its end is reported, once it has ended; none: it is not reported.
    #[must_use]
    pub fn reported_as(&self) -> Option<ReportedEnd> {
        self.notify.as_ref().filter(|_| self.ended())?;
        self.notice_facts.on.end(self.state, self.failed)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::json;

    fn read(value: &Value) -> NotifyOn {
        json::shape(value.clone()).unwrap()
    }

    fn reported(on: &Value, state: FanoutState, failed: u64) -> Option<&'static str> {
        read(on).end(state, failed).map(ReportedEnd::as_str)
    }

    #[test]
    fn by_default_every_end_is_reported_and_none_as_succeeded() {
        for on in [json!({}), json!({"ends": null, "progress": null}), json!({"progress": ["50%"]})] {
            assert_eq!(reported(&on, FanoutState::Completed, 0), Some("completed"));
            assert_eq!(reported(&on, FanoutState::Completed, 1), Some("completed"));
            for state in [FanoutState::Failed, FanoutState::Cancelled, FanoutState::Expired] {
                assert_eq!(reported(&on, state, 1), Some(state.as_str()));
            }
        }
    }

    #[test]
    fn only_what_is_chosen_is_reported() {
        let on = json!({"ends": ["expired", "succeeded"]});
        assert_eq!(reported(&on, FanoutState::Completed, 0), Some("succeeded"));
        for (state, failed) in [(FanoutState::Completed, 1), (FanoutState::Failed, 1), (FanoutState::Cancelled, 0)] {
            assert_eq!(reported(&on, state, failed), None);
        }
        assert_eq!(reported(&on, FanoutState::Expired, 3), Some("expired"));
        let both = json!({"ends": ["completed", "succeeded"]});
        assert_eq!(reported(&both, FanoutState::Completed, 0), Some("succeeded"));
        assert_eq!(reported(&both, FanoutState::Completed, 1), Some("completed"));
    }

    #[test]
    fn order_and_repetition_do_not_matter() {
        let one = read(&json!({"ends": ["failed", "completed", "failed"], "progress": ["50%", "9.50%", "50.0%"]}));
        assert_eq!(one, read(&json!({"ends": ["completed", "failed"], "progress": ["9.5%", "50%"]})));
        let written = serde_json::to_value(&one).unwrap();
        assert_eq!(written, json!({"ends": ["completed", "failed"], "progress": ["9.50%", "50%"]}));
        assert_eq!(serde_json::to_value(NotifyOn::default()).unwrap(), json!({}));
    }

    #[test]
    fn what_cannot_be_meant_is_named() {
        let percentages = |count: usize| (1..=count).map(|n| format!("{n}%")).collect::<Vec<_>>();
        assert_eq!(
            read(&json!({"progress": percentages(PROGRESS_PERCENTAGES_MAX)})).progress.len(),
            PROGRESS_PERCENTAGES_MAX
        );
        for (value, field, allowed) in [
            (json!({"ends": ["done"]}), "ends[0]", "`succeeded`, `completed`, `failed`, `cancelled`, `expired`"),
            (json!({"ends": "failed"}), "ends", "a list"),
            (json!({"progress": ["50%", "100%"]}), "progress[1]", "`0.01%` to `99.99%`"),
            (json!({"progress": [0.5]}), "progress[0]", "`0.01%` to `99.99%`"),
            (json!({"progress": percentages(PROGRESS_PERCENTAGES_MAX + 1)}), "progress", "at most 20"),
            (json!({"percentages": []}), "percentages", "`progress`"),
        ] {
            let error = json::shape::<NotifyOn>(value).unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{field}`")) && error.contains(allowed), "{error}");
        }
    }

    #[test]
    fn what_cannot_be_reported_is_refused() {
        let url = json!({"url": "https://example.com/"});
        let (task, callback) = (json!({"task_token": "x"}), json!({"durable_callback": "x"}));
        let some = json!(["completed", "failed", "cancelled"]);
        let all = json!(["completed", "failed", "cancelled", "expired", "succeeded"]);
        for (on, notify, refused) in [
            (json!({}), Value::Null, Some(("notify_on", "`notify`"))),
            (json!({"ends": []}), url.clone(), Some(("notify_on", "no end and no percentage"))),
            (json!({"ends": [], "progress": ["5%"]}), url.clone(), None),
            (json!({"ends": ["failed"]}), url, None),
            (
                json!({"progress": ["5%"]}),
                task.clone(),
                Some(("notify_on.progress", "`5%`, but a Step Functions task")),
            ),
            (json!({"progress": ["5%"]}), callback.clone(), Some(("notify_on.progress", "callback"))),
            (json!({"ends": some}), task.clone(), Some(("notify_on.ends", "leaves out `expired`"))),
            (json!({"ends": []}), callback.clone(), Some(("notify_on", "no end and no percentage"))),
            (json!({"ends": all}), task, None),
            (json!({}), callback, None),
        ] {
            let to: Option<Destination> = serde_json::from_value(notify).unwrap();
            let checked = read(&on).check(to.as_ref()).map_err(|PolicyError(errors)| errors[0].clone());
            match (checked, refused) {
                (Ok(()), None) => {}
                (Err(error), Some((field, problem))) => {
                    assert!(error.field == field && error.problem.contains(problem), "{error:?}");
                }
                (checked, _) => panic!("{on}: {checked:?}"),
            }
        }
    }
}
