//! The summary for people.

use std::fmt;

use fanfold::notice::{Event, Notice};
use indicatif::HumanCount;

use super::{FailedTask, RunEnd, Summary, Undelivered, WAYS};
use crate::count::count;
use crate::latencies::Percentiles;

/// Failed tasks named in the summary for people.
const NAMED: usize = 4;

/// From so many tasks in a leg on, averages per task are shown: with fewer, the fixed cost of a run counts too much.
const WORTH_AN_AVERAGE: u64 = 100;

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_head(f)?;
        writeln!(f, "  succeeded   {:>9}", HumanCount(self.succeeded).to_string())?;
        writeln!(f, "  failed      {:>9}", HumanCount(self.failed).to_string())?;
        self.write_failures(f)?;
        if self.duplicates > 0 {
            let what = "dropped, because another task has their key";
            writeln!(f, "  duplicates  {:>9}   {what}", HumanCount(self.duplicates).to_string())?;
        }
        if self.open > 0 {
            writeln!(f, "  open        {:>9}   without an outcome yet", HumanCount(self.open).to_string())?;
        }
        let mean = if self.batches > 0 { format!("   {:.1} tasks per batch", self.mean_batch) } else { String::new() };
        writeln!(f, "  batches     {:>9}{mean}", HumanCount(self.batches).to_string())?;
        writeln!(f, "  calls       {:>9}{}", HumanCount(self.calls).to_string(), self.saved())?;
        if let Some(notice) = &self.notice {
            writeln!(f, "  notices     {:>9}   {}", self.notices, Delivered(notice))?;
        }
        for Undelivered { to, notices, error } in &self.undelivered {
            let notices = HumanCount(*notices).to_string();
            writeln!(f, "  undelivered {notices:>9}   notices of failed tasks to {to}: {error}")?;
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
                "{}: finished before{}; this is its summary, and nothing was done now (--again starts a new run)\n",
                self.name,
                self.finished_at()
            )?;
        }
        write!(f, "{}: {total}", self.name)?;
        if self.total == 0 {
            return writeln!(f, ": there are no rows in the file\n");
        }
        if self.resumed {
            write!(f, ", {} of them in this last leg, which took {seconds:.1} s", HumanCount(self.done_in_last_leg))?;
        } else {
            write!(f, " in {seconds:.1} s")?;
        }
        if self.done_in_last_leg > 0 {
            let rate = self.done_in_last_leg as f64 / seconds.max(0.001);
            let rate = if rate < 10.0 { format!("{rate:.1}") } else { HumanCount(rate as u64).to_string() };
            write!(f, " ({rate} per second)")?;
        }
        f.write_str(if self.ended == RunEnd::FailFast { ", stopped early by --fail-fast\n\n" } else { "\n\n" })
    }

    fn finished_at(&self) -> String {
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
        let leg = if self.resumed { "  used (this leg)" } else { "  used" };
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
        for (reason, count) in reasons {
            let tasks = self.failed_tasks.iter().filter(|task| task.error == *reason);
            let name = |task: &FailedTask| task.key.clone().unwrap_or_else(|| format!("row {}", task.row));
            let mut names: Vec<String> = tasks.take(NAMED).map(name).collect();
            if *count > NAMED as u64 {
                names.push("…".to_owned());
            }
            writeln!(f, "              {:>9}   {reason}: {}", HumanCount(*count).to_string(), names.join(", "))?;
        }
        Ok(())
    }

    /// Compared with one call per task.
    fn saved(&self) -> String {
        if self.calls == 0 {
            return String::new();
        }
        let retries = count(self.retries, "retry", "retries");
        if self.calls >= self.total {
            return format!("   no fewer than one per task, {retries}");
        }
        let percentage = 100.0 * (1.0 - self.calls as f64 / self.total as f64);
        let saved = HumanCount(self.total - self.calls);
        format!("   {saved} saved against one per task ({percentage:.1} %), {retries}")
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
