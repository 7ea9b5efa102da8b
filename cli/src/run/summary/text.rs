//! The summary for people.

use std::fmt;

use fanfold::notice::{Event, Notice};
use indicatif::HumanCount;

use super::{FailedTask, Summary, Undelivered, WAYS};
use crate::client::shown;
use crate::count::count;
use crate::latencies::Percentiles;

/// Failed tasks named in the summary for people.
const NAMED: usize = 4;

/// Reasons of failures in the summary for people: there may be one per task.
const REASONS: usize = 10;

/// From so many tasks in a leg on, averages per task are shown: with fewer, the fixed cost of a run counts too much.
const WORTH_AN_AVERAGE: u64 = 100;

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_head(f)?;
        writeln!(f, "  succeeded   {:>9}", HumanCount(self.succeeded).to_string())?;
        writeln!(f, "  failed      {:>9}", HumanCount(self.failed).to_string())?;
        self.write_failures(f)?;
        for (name, tasks, what) in [
            ("duplicates", self.duplicates, "dropped, because another task has their key"),
            ("open", self.open, "without an outcome yet"),
            ("missing", self.missing, "not done when the run was cut short"),
        ] {
            if tasks > 0 {
                writeln!(f, "  {name:<10}  {:>9}   {what}", HumanCount(tasks).to_string())?;
            }
        }
        let mean = if self.batches > 0 { format!("   {:.1} tasks per batch", self.mean_batch) } else { String::new() };
        writeln!(f, "  batches     {:>9}{mean}", HumanCount(self.batches).to_string())?;
        writeln!(f, "  calls       {:>9}{}", HumanCount(self.calls).to_string(), self.saved())?;
        if let Some(notice) = &self.notice {
            writeln!(f, "  notices     {:>9}   {}", self.notices, Delivered(notice))?;
        }
        for Undelivered { to, notices, error } in &self.undelivered {
            let notices = HumanCount(*notices).to_string();
            writeln!(f, "  undelivered {notices:>9}   notices of failed tasks to {to}: {}", shown(error))?;
        }
        self.write_latency(f)?;
        self.write_usage(f)
    }
}

impl Summary {
    fn write_head(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.wall_ms as f64 / 1_000.0;
        let total = count(self.total, "task", "tasks");
        if self.shown_again {
            writeln!(
                f,
                "{}: {}{}; this is its summary, and nothing was done now (--again starts a new run)\n",
                self.name,
                self.ended.before(),
                self.ended_at()
            )?;
        }
        write!(f, "{}: {total}", self.name)?;
        if self.total == 0 {
            return writeln!(f, ": there are no rows in the file\n");
        }
        if self.resumed {
            write!(f, ", {} of them since it was resumed, in {seconds:.1} s", HumanCount(self.done_in_last_leg))?;
        } else {
            write!(f, " in {seconds:.1} s")?;
        }
        if self.done_in_last_leg > 0 {
            let rate = self.done_in_last_leg as f64 / seconds.max(0.001);
            let rate = if rate < 10.0 { format!("{rate:.1}") } else { HumanCount(rate as u64).to_string() };
            write!(f, " ({rate} per second)")?;
        }
        writeln!(f, "{}\n", self.ended.aside())
    }

    fn ended_at(&self) -> String {
        let Some(end) = self.notice.as_ref().and_then(|notice| notice.event.end()) else {
            return String::new();
        };
        let at = std::time::UNIX_EPOCH + std::time::Duration::from_millis(end.ended_at);
        format!(", at {}", humantime::format_rfc3339_seconds(at))
    }

    fn write_latency(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.latency_ms.is_empty() {
            return Ok(());
        }
        writeln!(f, "\n{:<28}{:>10}{:>10}{:>10}", "  time per task", "median", "90 %", "99 %")?;
        for way in WAYS {
            let Some(Percentiles { p50, p90, p99 }) = self.latency_ms.get(way) else { continue };
            let [p50, p90, p99] = [p50, p90, p99].map(|milliseconds| time(*milliseconds));
            writeln!(f, "    {:<24}{p50:>10}{p90:>10}{p99:>10}", way.replace('_', " "))?;
        }
        Ok(())
    }

    /// What was asked of AWS's services, in all, per task, and what that costs.
    fn write_usage(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dollars = &self.dollars_per_million_tasks;
        let invocations: u64 = self.invocations.values().sum();
        let rows = [
            ("DynamoDB write units", self.write_units, dollars.dynamodb_writes),
            ("DynamoDB read units", self.read_units, dollars.dynamodb_reads),
            ("SQS requests", self.sqs_requests as f64, dollars.sqs),
            ("Lambda invocations", invocations as f64, dollars.lambda),
        ];
        let averages = self.done_in_last_leg >= WORTH_AN_AVERAGE;
        let leg = if self.resumed { "  used since then" } else { "  used" };
        write!(f, "\n{leg:<24}{:>12}", "in all")?;
        if averages {
            write!(f, "{:>12}   {:>20}", "per task", "$ per million tasks")?;
        }
        for (what, count, dollars) in rows {
            write!(f, "\n    {what:<20}{:>12}", HumanCount(count.round() as u64).to_string())?;
            if averages {
                write!(f, "{:>12.2}   {dollars:>20.2}", count / self.done_in_last_leg as f64)?;
            }
        }
        if averages {
            write!(f, "\n    {:<20}{:>47.2}", "together", dollars.total)?;
            write!(f, "\n    (list prices of {})", self.prices)?;
        }
        Ok(())
    }

    fn write_failures(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut reasons: Vec<(&String, &u64)> = self.failures.iter().collect();
        reasons.sort_by_key(|(reason, count)| (std::cmp::Reverse(**count), *reason));
        let row = |tasks: u64, what: &str| format!("              {:>9}   {what}", HumanCount(tasks).to_string());
        let (first, others) = reasons.split_at(reasons.len().min(REASONS));
        for (reason, tasks) in first {
            let names = self.names_of_failed(reason, **tasks);
            writeln!(f, "{}", row(**tasks, &format!("{}{names}", shown(reason))))?;
        }
        if others.is_empty() {
            return Ok(());
        }
        let tasks: u64 = others.iter().map(|(_, tasks)| **tasks).sum();
        let others = count(others.len() as u64, "other reason", "other reasons");
        writeln!(f, "{}", row(tasks, &format!("… and {others} (with --json a run lists all that are kept)")))
    }

    /// The first of so many tasks that failed for a reason, if any are known: their keys, or their rows.
    fn names_of_failed(&self, reason: &str, count: u64) -> String {
        let tasks = self.failed_tasks.iter().filter(|task| task.error == reason);
        let name = |task: &FailedTask| task.key.as_deref().map_or_else(|| format!("row {}", task.row), shown);
        let names: Vec<String> = tasks.take(NAMED).map(name).collect();
        let more = if count > NAMED as u64 { ", …" } else { "" };
        if names.is_empty() { String::new() } else { format!(": {}{more}", names.join(", ")) }
    }

    /// Compared with one call per task, of those that have an outcome: others may not have been called.
    fn saved(&self) -> String {
        if self.calls == 0 {
            return String::new();
        }
        let retries = count(self.retries, "retry", "retries");
        let tasks = self.total.saturating_sub(self.open + self.missing);
        if self.calls >= tasks {
            return format!("   no fewer than with one call per task, {retries}");
        }
        let percentage = 100.0 * (1.0 - self.calls as f64 / tasks as f64);
        let saved = HumanCount(tasks - self.calls);
        format!("   {saved} fewer than with one call per task ({percentage:.1} %), {retries}")
    }
}

/// A time as people read it.
fn time(milliseconds: f64) -> String {
    match milliseconds {
        short if short < 10.0 => format!("{short:.1} ms"),
        short if short < 1_000.0 => format!("{short:.0} ms"),
        long => format!("{:.1} s", long / 1_000.0),
    }
}

/// A notice in short.
struct Delivered<'a>(&'a Notice);

impl fmt::Display for Delivered<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.event {
            Event::FanoutSucceeded(end)
            | Event::FanoutCompleted(end)
            | Event::FanoutCancelled(end)
            | Event::FanoutFailed(end)
            | Event::FanoutExpired(end) => write!(
                f,
                "fan-out {} {}: {} succeeded, {} failed",
                end.fanout,
                end.state.as_str(),
                HumanCount(end.succeeded),
                HumanCount(end.failed)
            ),
            Event::FanoutProgress(progress) => write!(
                f,
                "fan-out {}: {} of {} items are done",
                progress.fanout,
                HumanCount(progress.done),
                HumanCount(progress.total)
            ),
            Event::TasksFailed(failed) => write!(f, "{} failed", count(failed.failures.len() as u64, "task", "tasks")),
            Event::KindStopped(stopped) => write!(f, "kind {} stands still: {}", stopped.kind, stopped.answer),
            Event::KindResumed(resumed) => write!(f, "kind {} resumes", resumed.kind),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The summary of a run in which tasks with these keys failed for these reasons.
    fn failed(tasks: &[(Option<&str>, &str)]) -> Summary {
        let mut failures = std::collections::BTreeMap::<&str, u64>::new();
        for (_, error) in tasks {
            *failures.entry(*error).or_default() += 1;
        }
        let tasks = (1_u64..).zip(tasks);
        let tasks = tasks.map(|(row, (key, error))| json!({"id": "i", "row": row, "key": key, "error": error}));
        let tasks: Vec<Value> = tasks.collect();
        let summary = json!({
            "name": "letters", "fanout": uuid::Uuid::nil(), "total": 5_000, "succeeded": 5_000 - tasks.len(),
            "failed": tasks.len(), "duplicates": 0, "failures": failures, "failed_tasks": tasks, "batches": 10,
            "mean_batch": 500.0, "calls": 10, "retries": 0, "notices": 1, "resumed": false, "wall_ms": 1_000,
            "write_units": 1.0, "read_units": 1.0, "dynamodb_requests": 1, "sqs_requests": 1, "by_operation": {},
        });
        serde_json::from_value(summary).unwrap()
    }

    /// The lines below `failed`, one per reason.
    fn reasons(summary: &Summary) -> Vec<String> {
        let text = summary.to_string();
        let lines = text.lines().skip_while(|line| !line.starts_with("  failed")).skip(1);
        lines.take_while(|line| line.starts_with("      ")).map(|line| line.trim().to_owned()).collect()
    }

    #[test]
    fn reasons_are_named_with_the_first_of_their_tasks() {
        let heavy = ["A-1", "A-2", "A-4", "A-5", "A-6"].map(|key| (Some(key), "too heavy"));
        let tasks = [&[(None, "no such town")][..], &heavy].concat();
        assert_eq!(reasons(&failed(&tasks)), ["5   too heavy: A-1, A-2, A-4, A-5, …", "1   no such town: row 1"]);
    }

    #[test]
    fn what_a_batch_api_says_forges_no_lines_and_is_short() {
        let long = "x".repeat(500);
        let tasks = [
            (Some("A\u{1b}[2J\r1"), "no\n  succeeded     9,999\r\u{1b}[1A"),
            (Some(long.as_str()), "y"),
            (None, long.as_str()),
        ];
        let summary = failed(&tasks);
        let shown = reasons(&summary);
        assert_eq!(shown[0], "1   no succeeded 9,999 \\u{1b}[1A: A\\u{1b}[2J 1");
        assert!(shown.iter().all(|line| line.len() < 250) && shown.len() == 3, "{shown:#?}");
        assert!(summary.to_string().chars().all(|letter| letter == '\n' || !letter.is_control()));
        // As JSON it is what was said.
        assert_eq!(serde_json::to_value(&summary).unwrap()["failed_tasks"][0]["error"], tasks[0].1);
    }

    #[test]
    fn as_many_reasons_are_shown_as_can_be_read() {
        let errors: Vec<String> = (0..3_000).map(|n| format!("error {n:04}")).collect();
        let mut tasks: Vec<(Option<&str>, &str)> = errors.iter().map(|error| (None, error.as_str())).collect();
        tasks.push((None, "error 2999"));
        let shown = reasons(&failed(&tasks));
        assert_eq!(shown.len(), REASONS + 1);
        assert_eq!(shown[..2], ["2   error 2999: row 3000, row 3001", "1   error 0000: row 1"]);
        assert_eq!(shown[REASONS], "2,990   … and 2,990 other reasons (with --json a run lists all that are kept)");
        let shown = reasons(&failed(&tasks[..11]));
        assert_eq!(shown[REASONS], "1   … and 1 other reason (with --json a run lists all that are kept)");
        assert_eq!(reasons(&failed(&tasks[..10])).len(), REASONS);
    }

    #[test]
    fn tasks_without_an_outcome_save_no_calls() {
        let summary = failed(&[(None, "no")]);
        assert_eq!(summary.saved(), "   4,990 fewer than with one call per task (99.8 %), 0 retries");
        let stopped = Summary { open: 4_980, ..summary.clone() };
        assert_eq!(stopped.saved(), "   10 fewer than with one call per task (50.0 %), 0 retries");
        let cancelled = Summary { missing: 4_980, ..summary.clone() };
        assert_eq!(cancelled.saved(), stopped.saved());
        assert_eq!(Summary { open: 4_990, ..summary }.saved(), "   no fewer than with one call per task, 0 retries");
    }
}
