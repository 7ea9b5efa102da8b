//! What is stale or in error, as `GET /health` lists it.

use fanfold::clock::Timestamp;
use fanfold::control::DeadQueue;
use fanfold::limits::SWEEP_SILENT_AFTER;
use fanfold::store::findings::{LatestSweep, Named, What};
use serde::Serialize;

use super::StandingStill;

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "HealthLevel"))]
#[serde(rename_all = "snake_case")]
pub(super) enum Level {
    /// Nothing is to be done.
    Ok,
    /// It takes far longer than usual.
    Stale,
    /// It does not go on until somebody fixes it.
    Error,
}

/// What is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "FindingSort"))]
#[serde(rename_all = "snake_case")]
pub(super) enum Sort {
    /// Messages that a step gave up.
    DeadLetters,
    /// A kind stands still, because its batch API refuses every call.
    KindStandsStill,
    /// `sweep` does not run, or takes longer than it may.
    SweepSilent,
    /// `sweep` breaks off.
    SweepFails,
    /// What a sweep found.
    #[serde(untagged)]
    Swept(What),
}

/// Something that is stale or in error.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub(super) struct Finding {
    /// What it is.
    what: Sort,
    /// How bad it is.
    pub(super) level: Level,
    /// How many there are: messages, lanes, batches, fan-outs or kinds.
    count: u64,
    /// Since when, in milliseconds since 1970: the oldest, if there are several. Absent if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<u64>,
    /// The oldest of them: lanes, or ids of batches or fan-outs, or a kind or step.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    about: Vec<About>,
    /// What is wrong.
    says: String,
    /// What to do.
    fix: &'static str,
}

/// What a finding is about.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "FindingAbout"))]
struct About {
    /// A lane, the id of a batch or fan-out, a kind, or a step.
    name: String,
    /// Since when, in milliseconds since 1970. Absent if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<u64>,
    /// What a batch API or a receiver of notices said last, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Kinds that stand still.
pub(super) fn of_kinds(standing: &[StandingStill]) -> Vec<Finding> {
    let about = standing.iter().map(|kind| About {
        name: kind.kind.clone(),
        since: Some(kind.since),
        error: Some(kind.answer.clone()),
    });
    let finding = |since| Finding {
        what: Sort::KindStandsStill,
        level: Level::Error,
        count: standing.len() as u64,
        since: Some(since),
        about: about.collect(),
        says: "batch APIs refuse every call, so their kinds stand still".to_owned(),
        fix: "Fix the batch API, or the policy's URL and credentials. A probe then resumes the kind.",
    };
    standing.iter().map(|kind| kind.since).min().map(finding).into_iter().collect()
}

/// Dead letters. SQS does not say since when they are there.
pub(super) fn of_dead_letters(queues: &[DeadQueue]) -> Vec<Finding> {
    let about: Vec<About> = queues
        .iter()
        .filter(|queue| queue.messages > 0)
        .map(|queue| About { name: queue.step.to_owned(), since: None, error: None })
        .collect();
    let finding = |about| Finding {
        what: Sort::DeadLetters,
        level: Level::Error,
        count: queues.iter().map(|queue| queue.messages).sum(),
        since: None,
        about,
        says: "messages were given up after five tries".to_owned(),
        fix: "See the logs for the cause, fix it, then move them back: `fanfold redrive STEP`.",
    };
    Some(about).filter(|about| !about.is_empty()).map(finding).into_iter().collect()
}

/// What the latest sweep found, and what is wrong with sweeps.
pub(super) fn of_sweep(sweep: &LatestSweep, now: Timestamp) -> Vec<Finding> {
    let about_sweep = |what, since: Timestamp, says: String, fix| Finding {
        what,
        level: Level::Error,
        count: 1,
        since: Some(since.0),
        about: Vec::new(),
        says,
        fix,
    };
    let mut findings = Vec::new();
    if let Some((since, error)) = &sweep.failing {
        let says = format!("sweeps break off, so lost messages may not be found: {error}");
        findings.push(about_sweep(Sort::SweepFails, *since, says, "See the logs of the function `sweep`."));
    } else if let Some(since) = sweep.swept_at.filter(|at| now.since(*at) >= SWEEP_SILENT_AFTER) {
        let says = "no sweep ended for five minutes, so lost messages are not found".to_owned();
        let fix = "See whether the schedule of the function `sweep` is enabled, and whether it times out.";
        findings.push(about_sweep(Sort::SweepSilent, since, says, fix));
    }
    for (what, found) in &sweep.findings.0 {
        let (level, says, fix) = described(*what);
        let about =
            |named: &Named| About { name: named.name.clone(), since: Some(named.since), error: named.error.clone() };
        findings.push(Finding {
            what: Sort::Swept(*what),
            level,
            count: found.count,
            since: found.oldest.first().map(|named| named.since),
            about: found.oldest.iter().map(about).collect(),
            says: says.to_owned(),
            fix,
        });
    }
    findings
}

/// How bad it is, what is wrong, and what to do.
fn described(what: What) -> (Level, &'static str, &'static str) {
    match what {
        What::NoPolicy => (
            Level::Error,
            "tasks wait, and their kind has no policy",
            "Apply a policy for the kind, or cancel the tasks: `POST /tasks/cancel`.",
        ),
        What::TasksWait => (
            Level::Stale,
            "tasks wait in lanes for 15 minutes longer than they would linger",
            "See the lane: `GET /lanes`. If its batches are slow, raise `max_in_flight`, `partitions` or the rate; if \
             nothing is in flight, see the logs of `elect`, `group` and `handle`.",
        ),
        What::CallsFail => (
            Level::Stale,
            "calls of batch APIs have failed for five minutes, three times or more per batch",
            "Fix the batch API, or pause the kind until it works: `POST /pause`. Its tasks fail once their attempts are used \
             up.",
        ),
        What::ProducerFailed => (
            Level::Error,
            "producers of fan-outs have failed",
            "Fix the source, then resume the producer: `POST /fanouts/{id}/producer/resume`. Or cancel the fan-out.",
        ),
        What::BatchUnfinished => (
            Level::Stale,
            "batches have members without an outcome for an hour",
            "See the batch: `GET /batches/{id}` says what its calls returned, and when the next one is due.",
        ),
        What::FanoutUnfinished => (
            Level::Stale,
            "fan-outs are sealed with all items done, or cut short, and have not ended for an hour",
            "See the fan-out: `GET /fanouts/{id}`, and the logs of `ack` and `sweep`.",
        ),
        What::NoticeUndelivered => (
            Level::Stale,
            "notices are not delivered for an hour",
            "See the fan-out or batch: it says what the receiver answers. Fanfold tries for three days.",
        ),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use fanfold::store::findings::Findings;
    use serde_json::json;

    use super::*;

    #[test]
    fn sweeps_that_break_off_or_fall_silent_are_errors() {
        let now = Timestamp(10_000_000);
        let at = |ago: u64| Some(Timestamp(now.0 - ago * 1_000));
        let sorts = |sweep: LatestSweep| of_sweep(&sweep, now).iter().map(|finding| finding.what).collect::<Vec<_>>();
        let swept = |ago| LatestSweep { swept_at: at(ago), ..LatestSweep::default() };
        assert_eq!(sorts(LatestSweep::default()), [], "a new stack was not swept yet");
        assert_eq!(sorts(swept(299)), []);
        assert_eq!(sorts(swept(300)), [Sort::SweepSilent]);
        let failing = at(60).map(|since| (since, "throttled".to_owned()));
        let failed = of_sweep(&LatestSweep { failing, ..swept(400) }, now).remove(0);
        assert_eq!((failed.what, failed.since), (Sort::SweepFails, Some(now.0 - 60_000)));
        assert!(failed.says.ends_with("throttled"), "{}", failed.says);
    }

    #[test]
    fn what_a_sweep_found_is_named_with_its_age() {
        let mut findings = Findings::default();
        findings.add(What::TasksWait, Timestamp(7), "parcel:0:NY", None);
        findings.add(What::TasksWait, Timestamp(5), "parcel:0:LA", Some("503"));
        let sweep = LatestSweep { swept_at: Some(Timestamp(9)), findings, failing: None };
        let shown = serde_json::to_value(&of_sweep(&sweep, Timestamp(9))[0]).unwrap();
        assert_eq!(
            [&shown["what"], &shown["level"], &shown["count"], &shown["since"]],
            [&json!("tasks_wait"), &json!("stale"), &json!(2), &json!(5)]
        );
        assert_eq!(
            shown["about"],
            json!([{"name": "parcel:0:LA", "since": 5, "error": "503"}, {"name": "parcel:0:NY", "since": 7}])
        );
    }

    #[test]
    fn queues_without_dead_letters_are_no_finding() {
        let queue = |step, messages| DeadQueue { step, messages };
        assert_eq!(of_dead_letters(&[queue("ack", 0)]), []);
        let found = of_dead_letters(&[queue("register", 2), queue("ack", 0), queue("notify", 1)]);
        let names: Vec<&str> = found[0].about.iter().map(|about| about.name.as_str()).collect();
        assert_eq!((found[0].count, names), (3, vec!["register", "notify"]));
    }
}
