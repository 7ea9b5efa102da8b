//! Has the tasks registered and handled, and waits for the end: the notice that the fan-out has ended, a limit that is
//! reached, or Ctrl-C.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use fanfold::notice::Notice;
use fanfold_local::Invocations;
use indicatif::HumanCount;
use tokio::net::TcpListener;
use tokio::time::{Instant, timeout};

use super::begin::Begun;
use super::fail_fast::FailFast;
use super::meter::Meter;
use super::notices::Notices;
use super::record::RecordFile;
use super::repeated::Repeated;
use super::report::{End, Report, receiver};
use super::summary::{RunEnd, Summary};
use super::{FileRows, Moves, Run, produce, progress, standing};
use crate::args::RunArgs;
use crate::batch_api::{self, Process};
use crate::count::count;
use crate::failure::Failure;
use crate::guard::Callers;
use crate::pages::Pages;
use crate::say::say;
use crate::serve::{self, Server};
use crate::stack::{EmbeddedStack, OfRun, Running};
use crate::stop::{CALLS_END_WITHIN, TERMINATED_WITHIN};

/// How long what lanes still do is waited for after the fan-out has ended: it is counted as a part of the run. Other
/// work in the same stack may go on for much longer.
const LAST_WAKE_UPS: Duration = Duration::from_secs(1);

/// How long notices that are still to be delivered are waited for then.
const LAST_NOTICES: Duration = Duration::from_secs(30);

/// Between two looks at whether every task has its outcome.
const LOOK: Duration = Duration::from_millis(50);

/// How long notices may take before a line says that they are waited for.
const SHORT: Duration = Duration::from_secs(2);

impl Run<'_> {
    /// Runs it. `process`: the batch API's, if it had to be started.
    pub(super) async fn execute(
        &self,
        listener: Option<TcpListener>,
        process: Option<&mut Process>,
    ) -> Result<Summary, Failure> {
        let mut begun = self.begin().await?;
        let began = Instant::now();
        let limit = self.args.fail_fast.map(|most| Arc::new(FailFast::new(most, Arc::clone(&begun.meter))));
        // Without --listen nobody else can register anything.
        let alone = self.args.listen.is_none();
        let callers = if alone { Callers::Page } else { Callers::All };
        let commands = !alone && listener.as_ref().is_some_and(serve::takes_commands);
        let batch_apis = batch_api::local(self.job.folder.clone());
        let batch_apis = Arc::new(Repeated::new(batch_apis, self.job.policy.policy.clone()));
        let moves = Moves::new();
        let of_run = OfRun {
            fanout: begun.fanout,
            file: Arc::new(self.file(&begun)),
            moves: moves.clone(),
            limit: limit.clone(),
        };
        let running = begun.stack.start(batch_apis, &self.job.folder, Some(of_run), commands).await?;
        let counters = || begun.meter.counters.clone();
        let served = listener.map(|listener| serve::start(listener, &running, callers, counters())).transpose()?;
        served.iter().for_each(Server::say_dashboard);
        let mut notices = Notices::of(&begun.stack, begun.fanout)?;
        let work = async {
            notices.found(&begun.opening.open().await?);
            produce::all_registered(&begun, &moves).await?;
            if alone {
                begun.stack.drain().await;
            }
            notices.end().await.map(|notice| End::Ended(Box::new(notice)))
        };
        let result = tokio::select! {
            biased;
            result = self.first_of(work, limit.as_deref(), process, &begun) => result,
            () = hasten(&running, &begun.meter) => Err(Failure::Internal("looking at the end ended".to_owned())),
        };
        let wall = began.elapsed();
        let (end, invocations) = self.end(result, running, &begun.stack).await?;
        drop(served);
        let count = notices.count().await?;
        let report = Report { job: self.job, begun: &begun, invocations };
        let summary = report.summary(end, count, wall).await?;
        self.keep(&mut begun, &summary)?;
        Ok(summary)
    }

    /// Keeps the summary of a run that is over in its folder of data, and says if it was stopped.
    fn keep(&self, begun: &mut Begun, summary: &Summary) -> Result<(), Failure> {
        match (summary.ended, &self.args.data) {
            (RunEnd::FailFast, _) => say(stopped(self.args, summary)),
            // Nothing resumes a fan-out that was cut short, either.
            (_, Some(data)) => {
                begun.record.summary = Some(summary.clone());
                RecordFile::in_folder(data).write(&begun.record)?;
            }
            (_, None) => {}
        }
        Ok(())
    }

    /// The file as the source of its fan-out.
    fn file(&self, begun: &Begun) -> FileRows {
        FileRows {
            input: self.job.input.clone(),
            version: self.version,
            pages: Arc::clone(&self.pages),
            meter: Arc::clone(&begun.meter),
            rows: Pages::source(&self.job.policy.policy.kind, self.checked.fingerprint),
        }
    }

    /// Waits for whatever ends the run first, and shows how far it has come.
    async fn first_of(
        &self,
        work: impl Future<Output = Result<End, Failure>>,
        limit: Option<&FailFast>,
        process: Option<&mut Process>,
        begun: &Begun,
    ) -> Result<End, Failure> {
        let too_many = async {
            match limit {
                Some(limit) => limit.reached().await,
                None => pending().await,
            }
        };
        let died = async {
            match process {
                Some(process) => process.ended(self.args.data.is_some()).await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            by = self.stop.asked() => Err(Failure::Stopped { kept: self.args.data.is_some(), by }),
            result = work => result,
            () = too_many => Ok(End::FailFast),
            failure = died => Err(failure),
            () = standing::watch(&begun.gates, self.job) => Err(Failure::Internal("looking at the gate ended".to_owned())),
            () = progress::show(&begun.meter) => Err(Failure::Internal("progress ended".to_owned())),
        }
    }

    /// Lets the steps finish what they are at; returns what was invoked, too.
    async fn end(
        &self,
        result: Result<End, Failure>,
        running: Running,
        stack: &EmbeddedStack,
    ) -> Result<(End, BTreeMap<String, Invocations>), Failure> {
        if let Ok(End::Ended(notice)) = &result {
            tokio::select! {
                () = self.last_messages(notice, stack) => {}
                _ = self.stop.asked() => {}
            }
        }
        let invocations = running.stop(self.stop, patience(&result)).await;
        Ok((result?, invocations))
    }

    /// Waits for what is still on its way when the fan-out has ended: wake-ups of idle lanes, and notices of failures
    /// if the policy names a receiver.
    async fn last_messages(&self, notice: &Notice, stack: &EmbeddedStack) {
        let _ = timeout(LAST_WAKE_UPS, stack.quiet(|_| true)).await;
        if self.job.policy.policy.notify.is_none() {
            return;
        }
        let explain = async {
            tokio::time::sleep(SHORT).await;
            let cut_short = notice.event.end().is_some_and(|end| end.state.cut_short());
            say(format_args!(
                "{}; waiting up to {} s for {} to accept the notices of failed tasks (Ctrl-C stops waiting)",
                if cut_short { "the run has ended" } else { "every task is done" },
                LAST_NOTICES.as_secs(),
                receiver(self.job)
            ));
            pending().await
        };
        tokio::select! {
            quiet = timeout(LAST_NOTICES, stack.quiet(sends_notices)) => if quiet.is_err() {
                say(match self.args.data {
                    Some(_) => "some notices are not delivered yet; `fanfold up` with the same --data delivers them",
                    None => "some notices are not delivered, and will not be, because the run had no --data",
                });
            },
            () = explain => {}
        }
    }
}

/// Whether a function is one by which notices of failed tasks come: others may be at work for another kind.
fn sends_notices(function: &str) -> bool {
    matches!(function, "AckFunction" | "NotifyFunction")
}

/// How long calls that are in progress may take to end. When the run itself has ended, they are others'.
fn patience(result: &Result<End, Failure>) -> Duration {
    match result {
        Err(Failure::Stopped { by, .. }) => by.patience(),
        Ok(End::FailFast) => CALLS_END_WITHIN,
        Ok(End::Ended(_)) | Err(_) => TERMINATED_WITHIN,
    }
}

/// Lets no message wait for others once every task has its outcome: only the last acks and the notice remain.
async fn hasten(running: &Running, meter: &Meter) {
    while !meter.is_handled() {
        tokio::time::sleep(LOOK).await;
    }
    running.hasten();
    pending().await
}

/// Why the run ends before its last task.
fn stopped(args: &RunArgs, summary: &Summary) -> String {
    let kept = if args.data.is_some() {
        "repeat the command with the same --data to resume"
    } else {
        "it cannot be resumed, because it had no --data"
    };
    let most = args.fail_fast.unwrap_or_default();
    format!(
        "fanfold: stopped by --fail-fast {most}: {} failed, {} open; {kept}",
        count(summary.failed, "task", "tasks"),
        HumanCount(summary.open)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stop::Signal;

    #[test]
    fn calls_in_progress_end_after_ctrl_c_and_fail_fast() {
        let stopped = |by| patience(&Err(Failure::Stopped { kept: true, by }));
        assert_eq!([stopped(Signal::Interrupt), patience(&Ok(End::FailFast))], [CALLS_END_WITHIN; 2]);
        assert_eq!([stopped(Signal::Terminate), stopped(Signal::Hangup)], [TERMINATED_WITHIN; 2]);
        assert_eq!(patience(&Err(Failure::Rows(String::new()))), TERMINATED_WITHIN);
    }
}
