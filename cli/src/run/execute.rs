//! Registers the tasks, has them handled, and waits for the end: the notice that the last one is done, a limit that is
//! reached, or Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use fanfold::config::variables;
use fanfold::store::gates::Gates;
use fanfold::store::policies::Policies;
use fanfold::tracking::Tracking;
use indicatif::HumanCount;
use tokio::net::TcpListener;
use tokio::time::Instant;

use super::notices::Notices;
use super::produce;
use super::progress::{self, How, Meter};
use super::record::Place;
use super::report::{End, Report, receiver};
use super::standing;
use super::summary::{Ended, Summary};
use super::take_up::take_up;
use super::tally::Auditor;
use crate::args::RunArgs;
use crate::batch_api::{self, Process};
use crate::check::Checked;
use crate::count::count;
use crate::counters::Counters;
use crate::fail_fast::FailFast;
use crate::failure::Failure;
use crate::job::Job;
use crate::say::say;
use crate::serve;
use crate::stack::{Running, Stack};
use crate::stop::Stop;

/// How long notices that are still to be delivered are waited for after the fan-out is complete.
const LAST_NOTICES: Duration = Duration::from_secs(30);

/// How long nobody asks what is waited for.
const SHORT: Duration = Duration::from_secs(2);

pub(super) async fn execute(
    args: &RunArgs,
    how: How,
    job: &Job,
    checked: Checked,
    listener: Option<TcpListener>,
    mut process: Option<&mut Process>,
    stop: &Stop,
) -> Result<Summary, Failure> {
    let stack = Stack::open(args.data.as_deref()).await?;
    let (mut record, resumed) = take_up(args, job, checked, stack.world().uuid())?;
    let surroundings = stack.surroundings("ApiFunction");
    let policies = Policies::new(surroundings.table(variables::POLICIES_TABLE)?);
    policies.put(&job.policy.policy).await?;
    let tracking = Tracking::from_environment(&surroundings)?;
    let counters = Counters::install();
    let opened = produce::open(&tracking, record.key, &job.name(), checked.tasks).await?;
    let auditor = Auditor::new(&stack)?;
    let before = auditor.tally(opened.fanout.id).await?;
    let progress = tracking.progress(&opened.fanout).await?;
    let done_before = if resumed { before.settled + progress.duplicates } else { 0 };
    let meter = Meter {
        counters: counters.clone(),
        registered: Arc::new(AtomicU64::new(opened.fanout.cursor)),
        registered_before: opened.fanout.cursor,
        before,
        acked_before: progress.done,
        duplicates_before: progress.duplicates,
        total: checked.tasks,
        resumed,
        how,
    };
    let began = Instant::now();
    let limit = args.fail_fast.map(|most| Arc::new(FailFast::new(most, counters)));
    let commands = listener.as_ref().is_some_and(serve::takes_commands);
    let running = stack.start(batch_api::local(job.folder.clone())?, limit.clone(), commands).await?;
    let served = listener.map(|listener| serve::start(listener, &running)).transpose()?;
    let gates = Gates::new(surroundings.table(variables::LOCKS_TABLE)?);
    let mut notices = Notices::of(&stack, &opened.fanout)?;
    let work = async {
        produce::register(job, &opened, &tracking, &running.steps.register, &meter.registered).await?;
        notices.completion().await.map(End::Completed)
    };
    let too_many = async {
        match &limit {
            Some(limit) => limit.reached().await,
            None => std::future::pending().await,
        }
        End::FailFast
    };
    let died = async {
        match process.as_deref_mut() {
            Some(process) => process.ended().await,
            None => std::future::pending().await,
        }
    };
    let result = tokio::select! {
        biased;
        by = stop.asked() => Err(Failure::Stopped { kept: args.data.is_some(), by }),
        result = work => result,
        end = too_many => Ok(end),
        failure = died => Err(failure),
        () = standing::watch(&gates, job) => Err(Failure::Internal("looking at the gate ended".to_owned())),
        () = progress::show(&meter) => Err(Failure::Internal("progress ended".to_owned())),
    };
    let wall = began.elapsed();
    let end = end(result, running, &stack, stop, job).await?;
    drop(served);
    let count = notices.count().await?;
    // An earlier process dropped some, too.
    let duplicates = match &end {
        End::FailFast if resumed => auditor.duplicates(opened.fanout.id).await?,
        _ => meter.duplicates(),
    };
    let total = checked.tasks;
    let report = Report { job, opened: &opened, stack: &stack, auditor: &auditor, total, duplicates };
    let summary = report.summary(end, count, wall, done_before, resumed).await?;
    match (summary.ended, &args.data) {
        (Ended::FailFast, _) => say(stopped(args, &summary)),
        (Ended::Completed, Some(data)) => {
            record.summary = Some(summary.clone());
            Place::in_folder(data).write(&record)?;
        }
        (Ended::Completed, None) => {}
    }
    Ok(summary)
}

/// Lets the steps finish what they are at. Notices of failures may still be on their way when the fan-out is complete.
async fn end(
    result: Result<End, Failure>,
    running: Running,
    stack: &Stack,
    stop: &Stop,
    job: &Job,
) -> Result<End, Failure> {
    if let Ok(End::Completed(_)) = &result {
        let explain = async {
            tokio::time::sleep(SHORT).await;
            // Without a receiver only wake-ups of idle lanes are left.
            if job.policy.policy.notify.is_none() {
                return std::future::pending().await;
            }
            say(format_args!(
                "every task is done; waiting up to {} s for {} to take the notices of failed tasks (Ctrl-C: no longer)",
                LAST_NOTICES.as_secs(),
                receiver(job)
            ));
            std::future::pending().await
        };
        tokio::select! {
            quiet = tokio::time::timeout(LAST_NOTICES, stack.quiet()) => if quiet.is_err() {
                say("some notices are still on their way; `fanfold serve` on the same --data goes on with them");
            },
            _ = stop.asked() => {}
            () = explain => {}
        }
    }
    running.stop(stop).await;
    result
}

/// Why the run ends before its last task.
fn stopped(args: &RunArgs, summary: &Summary) -> String {
    let kept = if args.data.is_some() {
        "start it again with the same --data to go on"
    } else {
        "nothing of it is kept, because it had no --data"
    };
    let most = args.fail_fast.unwrap_or_default();
    format!(
        "fanfold: stopped by --fail-fast {most}: {} failed, {} open; {kept}",
        count(summary.failed, "task", "tasks"),
        HumanCount(summary.open)
    )
}
