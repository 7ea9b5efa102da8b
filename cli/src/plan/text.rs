//! A plan, for people.

use std::fmt;
use std::time::Duration;

use fanfold_local::prices;
use indicatif::HumanCount;

use super::Shape;
use super::bottleneck::Limit;
use super::cost::Costs;
use super::sample::Measured;
use crate::count::count;

/// A plan.
pub(super) struct Plan {
    pub(super) shape: Shape,
    pub(super) measured: Measured,
    pub(super) costs: Costs,
    pub(super) limits: Vec<Limit>,
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shape { items, targets, batch, .. } = self.shape;
        writeln!(
            f,
            "{}, {}, up to {} per call: {}\n",
            count(items, "item", "items"),
            count(targets, "target", "targets"),
            HumanCount(u64::from(batch)),
            count(self.shape.calls(), "call", "calls")
        )?;
        self.write_cost(f)?;
        self.write_time(f)?;
        self.write_others(f)?;
        write!(
            f,
            "\nMeasured with {} on this machine; list prices of {}; limits as in docs/SCALING.md.",
            count(self.measured.sample, "task", "tasks"),
            prices::LIST
        )
    }
}

impl Plan {
    fn write_cost(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (items, costs, measured) = (self.shape.items as f64, &self.costs, &self.measured);
        writeln!(f, "{:<28}{:>18}{:>12}{:>12}", "cost", "in all", "per item", "dollars")?;
        for (what, per_item, dollars) in [
            ("DynamoDB write units", measured.write_units, costs.dynamodb_writes),
            ("DynamoDB read units", measured.read_units, costs.dynamodb_reads),
            ("SQS requests", measured.sqs_requests, costs.sqs),
            ("Lambda invocations", measured.invocations, costs.lambda),
        ] {
            let all = HumanCount((per_item * items).round() as u64).to_string();
            writeln!(f, "  {what:<26}{all:>18}{per_item:>12.3}{dollars:>12.2}")?;
        }
        writeln!(f, "  {:<56}{:>12.2}", "Lambda, while calls take their time", costs.calls)?;
        writeln!(f, "  {:<56}{:>12.2}\n", "together", costs.total)
    }

    fn write_time(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<28}{:>18}", "time", "at least")?;
        for limit in &self.limits {
            writeln!(f, "  {:<26}{:>18}   {}", limit.what, time(limit.seconds), limit.how)?;
        }
        let Some(first) = self.limits.first() else { return Ok(()) };
        writeln!(f, "\n  The first bottleneck is {}. What helps:\n  {}.\n", first.what, first.remedy)
    }

    fn write_others(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shape { items, call, calls_at_once, .. } = self.shape;
        let calls = self.shape.calls();
        let takes = |calls: u64| time(calls as f64 * call.as_secs_f64() / f64::from(calls_at_once));
        let fanfold = self.limits.first().map(|limit| time(limit.seconds)).unwrap_or_default();
        writeln!(f, "{:<28}{:>18}{:>12}   time, at least", "beside it", "calls", "dollars")?;
        for (what, calls, dollars, time) in [
            ("Fanfold", calls, self.costs.total, fanfold),
            ("one call per item", items, self.costs.one_call_per_item, takes(items)),
            ("a distributed map", calls, self.costs.distributed_map, takes(calls)),
        ] {
            writeln!(f, "  {what:<26}{:>18}{dollars:>12.2}   {time}", HumanCount(calls).to_string())?;
        }
        f.write_str(
            "  One call per item: a queue whose function calls once per message. It does not say when the last is done.\n  \
             A distributed map of Step Functions: an Express workflow per call, from a file that is sorted by target; it\n  \
             takes no items later, and repeats a whole call if one item fails.\n",
        )
    }
}

/// A duration, in its two largest units.
fn time(seconds: f64) -> String {
    if seconds < 1.0 {
        return "below 1 s".to_owned();
    }
    let seconds = seconds.round() as u64;
    let text = |seconds: u64, finest: u64| {
        humantime::format_duration(Duration::from_secs(seconds / finest * finest)).to_string()
    };
    match seconds {
        86_400.. => format!("{} {}", count(seconds / 86_400, "day", "days"), text(seconds % 86_400, 3_600)),
        3_600.. => text(seconds, 60),
        _ => text(seconds, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn times_have_two_units() {
        let texts = [0.2, 1.4, 75.0, 3_725.0, 90_061.0].map(time);
        assert_eq!(texts, ["below 1 s", "1s", "1m 15s", "1h 2m", "1 day 1h"]);
    }
}
