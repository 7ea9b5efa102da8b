//! `fanfold run`: every row of a folder's file becomes a task of one fan-out; ends when the last one has its outcome.

mod notices;
mod produce;
mod progress;
mod record;
mod report;
mod summary;
mod tally;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use fanfold::config::variables;
use fanfold::notice::Notice;
use fanfold::store::policies::Policies;
use fanfold::tracking::Tracking;
use tokio::time::Instant;
use uuid::Uuid;

use crate::args::RunArgs;
use crate::batch_api::{self, Process};
use crate::check::{Checked, check};
use crate::counters::Counters;
use crate::failure::{Failure, Fault};
use crate::job::Job;
use crate::serve;
use crate::stack::{Running, Stack};
use notices::Notices;
use produce::Opened;
use progress::Meter;
use record::{Place, Record};
use report::Report;
use summary::Summary;
use tally::Auditor;

/// How long notices that are still to be delivered are waited for after the fan-out is complete.
const LAST_NOTICES: Duration = Duration::from_secs(30);

/// Runs a folder.
pub(crate) async fn run(args: RunArgs) -> Result<(), Failure> {
    let job = Job::read(&args.folder, args.input.as_deref(), args.limit)?;
    let checked = quietly_or(args.json, "checking every task", async { check(&job) }).await?;
    let stopped = tokio::signal::ctrl_c();
    tokio::pin!(stopped);
    let mut process = None;
    let result = {
        let work = async {
            if !args.check
                && let Some(summary) = finished(&args, &job, checked)?
            {
                return Ok(Some(summary));
            }
            process = match &job.server {
                None => None,
                Some(server) => {
                    let start = Process::start(server, &job.folder);
                    Some(quietly_or(args.json, "starting the batch API", start).await?)
                }
            };
            let there = batch_api::check(&job.policy.policy.handler, &job.folder).await;
            there.map_err(|problem| Fault::new(job.policy_file.display(), problem))?;
            if args.check {
                let tasks = checked.tasks;
                eprintln!(
                    "{}: {tasks} tasks, nothing is wrong with them; the batch API is there",
                    job.folder.display()
                );
                return Ok(None);
            }
            execute(&args, &job, checked, process.as_mut()).await.map(Some)
        };
        tokio::select! {
            result = work => result,
            _ = &mut stopped => Err(Failure::Stopped { kept: args.data.is_some() }),
        }
    };
    if let Some(process) = process {
        process.end().await;
    }
    if let Some(summary) = result? {
        report::print(&summary, args.json)?;
    }
    Ok(())
}

/// The summary of the run that a data folder holds, if it is this run and finished.
fn finished(args: &RunArgs, job: &Job, checked: Checked) -> Result<Option<Summary>, Failure> {
    let Some(data) = args.data.as_deref().filter(|_| !args.again) else { return Ok(None) };
    let record = Place::in_folder(data).read()?;
    let same =
        record.filter(|record| record.fingerprint == checked.fingerprint && record.kind == job.policy.policy.kind);
    Ok(same.and_then(|record| record.summary))
}

/// The run that a data folder holds unfinished, or a new one.
fn take_up(args: &RunArgs, job: &Job, checked: Checked, new: Uuid) -> Result<(Record, bool), Failure> {
    let fresh = Record {
        key: new,
        input: job.input.file.clone(),
        fingerprint: checked.fingerprint,
        kind: job.policy.policy.kind.clone(),
        summary: None,
    };
    let Some(data) = args.data.as_deref() else { return Ok((fresh, false)) };
    let place = Place::in_folder(data);
    match place.read()? {
        Some(old) if old.summary.is_none() => {
            let mut differences = Vec::new();
            if old.fingerprint != fresh.fingerprint {
                differences.push(format!("other tasks (of {})", old.input.display()));
            }
            if old.kind != fresh.kind {
                differences.push(format!("tasks of kind `{}`, not `{}`", old.kind, fresh.kind));
            }
            if differences.is_empty() {
                return Ok((old, true));
            }
            let problem = format!(
                "holds an unfinished run with {}; finish that one, or use another folder",
                differences.join(" and ")
            );
            Err(Fault::new(data.display(), problem).into())
        }
        _ => {
            place.write(&fresh)?;
            Ok((fresh, false))
        }
    }
}

async fn execute(
    args: &RunArgs,
    job: &Job,
    checked: Checked,
    mut process: Option<&mut Process>,
) -> Result<Summary, Failure> {
    let stack = Stack::open(args.data.as_deref()).await?;
    let (mut record, resumed) = take_up(args, job, checked, stack.world().uuid())?;
    let surroundings = stack.surroundings("ApiFunction");
    let policies = Policies::new(surroundings.table(variables::POLICIES_TABLE)?, stack.world().clone());
    policies.put(&job.policy.policy).await?;
    let tracking = Tracking::from_environment(&surroundings)?;
    let counters = Counters::install();
    let opened = produce::open(&tracking, record.key, &job.name(), checked.tasks).await?;
    let auditor = Auditor::new(&stack)?;
    let meter = Meter {
        counters,
        registered: Arc::new(AtomicU64::new(opened.fanout.cursor)),
        before: auditor.tally(opened.fanout.id).await?,
        acked_before: tracking.progress(&opened.fanout).await?.done,
        total: checked.tasks,
    };
    let began = Instant::now();
    let running = stack.start(batch_api::local(job.folder.clone())?).await?;
    let served = match args.listen {
        Some(address) => Some(serve::start(address, &stack).await?),
        None => None,
    };
    let mut notices = Notices::of(&stack, &opened.fanout)?;
    let work = work(job, &stack, &tracking, &opened, &meter, &mut notices);
    let show = async {
        if !args.json {
            progress::show(&meter).await;
        }
        std::future::pending().await
    };
    let died = async {
        match process.as_deref_mut() {
            Some(process) => process.ended().await,
            None => std::future::pending().await,
        }
    };
    let result = tokio::select! {
        result = work => result,
        () = show => Err(Failure::Internal("progress ended".to_owned())),
        failure = died => Err(failure),
    };
    let wall = began.elapsed();
    let notice = end(result, running, &stack).await?;
    drop(served);
    let count = notices.count().await?;
    let report = Report { job, opened: &opened, stack: &stack, auditor: &auditor };
    let summary = report.summary(notice, count, wall, resumed).await?;
    if let Some(data) = &args.data {
        record.summary = Some(summary.clone());
        Place::in_folder(data).write(&record)?;
    }
    Ok(summary)
}

/// Registers the tasks and waits for the completion notice.
async fn work(
    job: &Job,
    stack: &Stack,
    tracking: &Tracking,
    opened: &Opened,
    meter: &Meter,
    notices: &mut Notices,
) -> Result<Notice, Failure> {
    produce::register(job, opened, tracking, &stack.register, &meter.registered).await?;
    notices.completion().await
}

/// Lets the steps finish what they are at. Notices of failures may still be on their way when the fan-out is complete.
async fn end(result: Result<Notice, Failure>, running: Running, stack: &Stack) -> Result<Notice, Failure> {
    if result.is_ok() && tokio::time::timeout(LAST_NOTICES, stack.quiet()).await.is_err() {
        tracing::warn!("some messages are still on their way; with --data they are delivered at the next start");
    }
    running.stop().await;
    result
}

/// Shows a spinner meanwhile, unless only JSON is wanted.
async fn quietly_or<T>(quietly: bool, message: &str, work: impl Future<Output = T>) -> T {
    if quietly {
        return work.await;
    }
    let spinner = progress::spinner(message);
    let result = work.await;
    spinner.finish_and_clear();
    result
}
