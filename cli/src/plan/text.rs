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

/// Columns of a terminal that is not wide.
const COLUMNS: usize = 80;

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shape { items, targets, batch, .. } = self.shape;
        let (items, targets) = (count(items, "item", "items"), count(targets, "target", "targets"));
        let (batch, calls) = (HumanCount(u64::from(batch)), count(self.shape.calls(), "call", "calls"));
        writeln!(f, "{}\n", wrapped("", &format!("{items}, {targets}, up to {batch} per call: {calls}")))?;
        self.write_cost(f)?;
        self.write_time(f)?;
        self.write_others(f)?;
        let sample = count(self.measured.sample, "task", "tasks");
        let sources = format!(
            "Measured with {sample} on this machine; list prices of {}; limits as in docs/SCALING.md.",
            prices::LIST
        );
        write!(f, "\n{}", wrapped("", &sources))
    }
}

impl Plan {
    fn write_cost(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (items, costs, measured) = (self.shape.items as f64, &self.costs, &self.measured);
        writeln!(f, "{:<38}{:>18}{:>11}{:>11}", "cost", "in all", "per item", "dollars")?;
        for (what, per_item, dollars) in [
            ("DynamoDB write units", measured.write_units, costs.dynamodb_writes),
            ("DynamoDB read units", measured.read_units, costs.dynamodb_reads),
            ("SQS requests", measured.sqs_requests, costs.sqs),
            ("Lambda invocations", measured.invocations, costs.lambda),
        ] {
            let all = HumanCount((per_item * items).round() as u64).to_string();
            writeln!(f, "  {what:<36}{all:>18}{per_item:>11.3}{dollars:>11.2}")?;
        }
        writeln!(f, "  {:<65}{:>11.2}", "Lambda, while calls take their time", costs.calls)?;
        writeln!(f, "  {:<65}{:>11.2}\n", "together", costs.total)
    }

    fn write_time(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<20}{:>12}", "time", "at least")?;
        for limit in &self.limits {
            let takes = format!("  {:<18}{:>12}   ", limit.what, time(limit.seconds));
            writeln!(f, "{}", wrapped(&takes, &limit.how))?;
        }
        let Some(first) = self.limits.first() else { return Ok(()) };
        let helps = format!("The first bottleneck is {}. What helps: {}.", first.what, first.remedy);
        writeln!(f, "\n{}\n", wrapped("  ", &helps))
    }

    fn write_others(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shape { items, call, calls_at_once, .. } = self.shape;
        let calls = self.shape.calls();
        let takes = |calls: u64| time(calls as f64 * call.as_secs_f64() / f64::from(calls_at_once));
        let fanfold = self.limits.first().map(|limit| time(limit.seconds)).unwrap_or_default();
        writeln!(f, "{:<20}{:>16}{:>31}{:>11}", "beside it", "at least", "calls", "dollars")?;
        for (what, calls, dollars, time) in [
            ("Fanfold", calls, self.costs.total, fanfold),
            ("one call per item", items, self.costs.one_call_per_item, takes(items)),
            ("a distributed map", calls, self.costs.distributed_map, takes(calls)),
        ] {
            writeln!(f, "  {what:<18}{time:>16}{:>31}{dollars:>11.2}", HumanCount(calls).to_string())?;
        }
        for what in [
            "One call per item: a queue whose function calls once per message. It does not say when the last is done.",
            "A distributed map of Step Functions: an Express workflow per call, from a file that is sorted by target. It \
             takes no items later, and repeats a whole call if one item fails.",
        ] {
            writeln!(f, "{}", wrapped("  ", what))?;
        }
        Ok(())
    }
}

/// A text behind the first words of its first line, within the columns of a terminal; its other lines begin below it.
fn wrapped(first: &str, text: &str) -> String {
    let indent = first.chars().count();
    let (mut out, mut at) = (first.to_owned(), indent);
    for word in text.split(' ') {
        let takes = word.chars().count();
        if at > indent && at + 1 + takes > COLUMNS {
            out += &format!("\n{:indent$}", "");
            at = indent;
        } else if at > indent {
            out.push(' ');
            at += 1;
        }
        out += word;
        at += takes;
    }
    out
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
    use super::{time, wrapped};

    #[test]
    fn texts_fit_into_a_terminal() {
        let words = "five ".repeat(20);
        let text = wrapped("first   ", words.trim());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [format!("first   {}", "five ".repeat(14).trim()), format!("        {}", "five ".repeat(6).trim())]
        );
        assert_eq!(wrapped("", &"x".repeat(90)), "x".repeat(90));
    }

    #[test]
    fn times_have_two_units() {
        let texts = [0.2, 1.4, 75.0, 3_725.0, 90_061.0].map(time);
        assert_eq!(texts, ["below 1 s", "1s", "1m 15s", "1h 2m", "1 day 1h"]);
    }
}
