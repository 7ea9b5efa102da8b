//! `fanfold run`: every row of a folder's file becomes a task of one fan-out; ends when the last one has its outcome,
//! or when the fan-out is cut short.

mod begin;
mod execute;
mod fail_fast;
mod meter;
mod notices;
mod produce;
mod progress;
mod record;
mod repeated;
mod report;
mod source;
mod standing;
mod summary;
mod take_up;
mod tally;
mod waiting;

use std::process::ExitCode;
use std::sync::Arc;

use fanfold::policy::Way;
use serde_json::json;
use tokio::net::TcpListener;

use crate::args::RunArgs;
use crate::batch_api::{self, Process, Reached};
use crate::check::{Checked, check};
use crate::client::print;
use crate::count::count;
use crate::failure::Failure;
use crate::fault::Fault;
use crate::folder::check_data;
use crate::job::Job;
use crate::pages::Pages;
use crate::rows::Version;
use crate::say::say;
use crate::serve;
use crate::stop::Stop;
pub(crate) use fail_fast::{FailFast, Limited};
use progress::How;
pub(crate) use source::{EndsRun, FileRows, Moves};
use summary::{RunEnd, Summary};
use take_up::Plan;
use waiting::Waiting;

/// The exit status of a run of which some tasks failed, or that ended before its last task.
const SOME_FAILED: u8 = 3;

/// Any free port of this machine.
const ANY_PORT: &str = "127.0.0.1:0";

/// Runs a folder.
pub(crate) async fn run(args: RunArgs, verbose: bool) -> Result<ExitCode, Failure> {
    check_data(args.data.as_deref())?;
    let held = take_up::held_input(&args)?;
    let job = Job::read(&args.folder, args.input.as_deref(), held.as_deref(), args.limit)?;
    let how = How::fit(args.json, verbose);
    if let Some(guess) = job.input.guess() {
        say(guess);
    }
    let listener = match &args.listen {
        Some(listen) => Some(serve::bind(listen).await?),
        // Where somebody watches, the dashboard is served at any free port.
        None if how == How::Bars => serve::bind(ANY_PORT).await.ok(),
        None => None,
    };
    // Before it is read: a change meanwhile is seen.
    let version = job.input.version()?;
    let (checked, pages, blank) = {
        let waiting = Waiting::begin("checking every task", how);
        check(&job, |rows| waiting.show(&format!("checking every task, {rows} so far")))?
    };
    if let Some(warning) = blank.warning(&job) {
        say(warning);
    }
    let stop = Stop::listen()?;
    let mut process = None;
    let run = Run { args: &args, how, job: &job, checked, version, pages: Arc::new(pages), stop: &stop };
    let result = run.go(listener, &mut process).await;
    // Printed before anything is waited for.
    let printed = match &result {
        Ok(Some(summary)) => report::print(summary, args.json),
        _ => Ok(()),
    };
    if let Some(process) = process {
        process.end(&stop).await;
    }
    let summary = result?;
    printed?;
    let failed = summary.is_some_and(|summary| summary.failed > 0 || summary.ended != RunEnd::Completed);
    Ok(if failed { ExitCode::from(SOME_FAILED) } else { ExitCode::SUCCESS })
}

/// A run, as it was asked for.
#[derive(Debug)]
struct Run<'a> {
    args: &'a RunArgs,
    how: How,
    job: &'a Job,
    checked: Checked,
    /// The version of the file that was checked, and how its rows are read.
    version: Version,
    pages: Arc<Pages>,
    stop: &'a Stop,
}

impl Run<'_> {
    /// Returns none if the folder is only checked. `process` is the batch API's, if it had to be started.
    async fn go(
        &self,
        listener: Option<TcpListener>,
        process: &mut Option<Process>,
    ) -> Result<Option<Summary>, Failure> {
        let job = self.job;
        if !self.args.check
            && let Plan::Show(summary) = take_up::plan(self.args, job, self.checked)?
        {
            return Ok(Some(Summary { shown_again: true, ..*summary }));
        }
        let reached = self.reach_batch_api(process).await?;
        if self.args.check {
            return self.say_checked(reached).map(|()| None);
        }
        self.execute(listener, process.as_mut()).await.map(Some)
    }

    /// Says that the folder can be run.
    fn say_checked(&self, reached: Reached) -> Result<(), Failure> {
        let tasks = self.checked.tasks;
        if self.args.json {
            // Only a call shows whether a function is there.
            let reached = (reached == Reached::Yes).then_some(true);
            return print(&format!("{:#}", json!({"tasks": tasks, "reached": reached}))).map(|_| ());
        }
        let (folder, tasks) = (self.job.folder.display(), count(tasks, "task", "tasks"));
        say(format_args!("{folder}: {tasks}, no problems; {reached}"));
        Ok(())
    }

    /// Starts the batch API if it is the folder's own, and checks that it can be called.
    async fn reach_batch_api(&self, process: &mut Option<Process>) -> Result<Reached, Failure> {
        let (job, kept) = (self.job, self.args.data.is_some());
        self.check_later_outcomes()?;
        if let Some(server) = &job.server {
            let waiting = Waiting::begin("starting the batch API", self.how);
            let process = process.insert(Process::start(server, &job.folder)?);
            self.stop.or(kept, process.listening(|what| waiting.show(what))).await?;
        }
        let there = async { Ok(batch_api::check(&job.policy.policy.batch_api, &job.folder).await) };
        let there = self.stop.or(kept, there).await?;
        there.map_err(|problem| Fault::new(job.policy_file.display(), problem).into())
    }

    /// Refuses a batch API whose outcomes are only posted if nobody can post them, and says so of one that may post them.
    fn check_later_outcomes(&self) -> Result<(), Failure> {
        let (place, batch_api) = (self.job.policy_file.display(), &self.job.policy.policy.batch_api);
        if self.args.listen.is_some() {
            return Ok(());
        }
        match batch_api.way {
            Way::Sqs(_) => {
                let problem = "`batch_api.sqs`: outcomes are posted to the HTTP API; run with --listen HOST:PORT";
                Err(Fault::new(place, problem).into())
            }
            Way::Url(_) if batch_api.answers_within.is_some() => {
                say(format_args!(
                    "{place}: `batch_api.answers_within`: without --listen nobody can post outcomes; they are only \
                     fetched, from the `Location` of a status 202"
                ));
                Ok(())
            }
            Way::Url(_) | Way::Lambda(_) | Way::Command(_) => Ok(()),
        }
    }
}
