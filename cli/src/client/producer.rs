//! The producer of a fan-out for people: how far it is, and which of its partitions failed.

use indicatif::HumanCount;
use serde_json::Value;
use uuid::Uuid;

use super::view::{moment, shown, word};
use crate::count::count;

/// Partitions with an error that are named.
const NAMED: usize = 10;

/// How far the partitions are, in one line.
pub(super) fn progress(partitions: &[Value]) -> String {
    let of = |state: &str| partitions.iter().filter(|it| it["state"] == state).count() as u64;
    let sum = |name: &str| partitions.iter().filter_map(|it| it[name].as_u64()).sum::<u64>();
    let mut parts =
        vec![format!("{} of {} read", of("done"), count(partitions.len() as u64, "partition", "partitions"))];
    for (number, word) in [(of("running"), "running"), (of("failed"), "failed")] {
        parts.extend((number > 0).then(|| format!("{} {word}", HumanCount(number))));
    }
    parts.push(count(sum("rows"), "row", "rows"));
    parts.extend(Some(sum("bad")).filter(|bad| *bad > 0).map(|bad| format!("{} bad", HumanCount(bad))));
    parts.join(", ")
}

/// A paragraph for each of the first partitions with an error. `open`: those that failed can be resumed.
pub(super) fn errors(fanout: Uuid, partitions: &[Value], open: bool) -> Option<String> {
    let failed = partitions.iter().filter(|it| it["state"] == "failed");
    let tried = partitions.iter().filter(|it| it["state"] == "running" && it["error"].is_string());
    let with_errors: Vec<&Value> = failed.clone().chain(tried).collect();
    let mut lines: Vec<String> = with_errors.iter().take(NAMED).flat_map(|partition| paragraph(partition)).collect();
    let more = with_errors.len().saturating_sub(NAMED) as u64;
    lines.extend((more > 0).then(|| format!("  and {}", count(more, "other partition", "other partitions"))));
    if open && failed.count() > 0 {
        lines.push("  When the cause is fixed:".to_owned());
        lines.push(format!("  fanfold resume --producer {fanout}"));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn paragraph(partition: &Value) -> [String; 2] {
    let number = partition["partition"].as_u64().unwrap_or_default();
    let rows = count(partition["rows"].as_u64().unwrap_or_default(), "row", "rows");
    let standing = match partition["next_at"].as_u64() {
        _ if partition["state"] == "failed" => format!("failed after {rows}"),
        Some(at) => format!("asks its source again at {}", moment(at)),
        None => "asks its source again".to_owned(),
    };
    [format!("  partition {number} {standing}:"), format!("    {}", shown(word(&partition["error"])))]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn partition(number: u64, state: &str, error: Option<&str>) -> Value {
        json!({"partition": number, "state": state, "rows": 1_000, "bad": number, "error": error})
    }

    #[test]
    fn what_failed_is_named_with_the_command_that_resumes_it() {
        let partitions =
            [partition(0, "done", None), partition(1, "failed", Some("503")), partition(2, "running", None)];
        assert_eq!(progress(&partitions), "1 of 3 partitions read, 1 running, 1 failed, 3,000 rows, 3 bad");
        let text = errors(Uuid::nil(), &partitions, true).unwrap_or_default();
        assert_eq!(
            text,
            "  partition 1 failed after 1,000 rows:\n    503\n  When the cause is fixed:\n  fanfold resume --producer \
             00000000-0000-0000-0000-000000000000"
        );
        let over = errors(Uuid::nil(), &partitions, false).unwrap_or_default();
        assert!(over.contains("503") && !over.contains("resume"), "{over}");
    }

    #[test]
    fn what_is_tried_again_is_named_after_what_failed() {
        let many: Vec<Value> =
            (0..12).map(|n| partition(n, if n == 11 { "failed" } else { "running" }, Some("no"))).collect();
        let text = errors(Uuid::nil(), &many, false).unwrap_or_default();
        assert!(text.starts_with("  partition 11 failed") && text.ends_with("and 2 other partitions"), "{text}");
        assert!(text.contains("  partition 0 asks its source again:"), "{text}");
        assert_eq!(errors(Uuid::nil(), &[partition(0, "running", None)], true), None);
    }
}
