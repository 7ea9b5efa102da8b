//! `fanfold dev`: has a deployed stack's batches of one kind handled by a batch API on this machine.

mod batches;
mod closing;
mod end;
mod lease;
mod local;
mod message;
mod outcomes;
mod queue;
mod said;
mod sqs;
mod verdict;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{ArgGroup, Args};
use fanfold::limits::DEV_ANSWERS_WITHIN_MAX;
use fanfold::policy::{Policy, Way};
use fanfold_client::ClientError;
use tokio::task::JoinHandle;

use self::batches::Batches;
use self::closing::{Closing, End};
pub(super) use self::lease::dev_session;
use self::lease::{Lease, LeaseError};
use self::local::Local;
use self::outcomes::Outcomes;
use self::queue::DevQueue;
use self::said::Said;
use self::sqs::Sqs;
use super::connection::{Connection, Stack};
use super::policy::kind;
use crate::failure::Failure;
use crate::fault::Fault;
use crate::say::say;
use crate::stop::Stop;

/// Exit status: another session has the calls of the kind.
const HELD: u8 = 3;

/// What the outcomes of a call need beside the local batch API's own time.
const AROUND: Duration = Duration::from_secs(60);

/// Has a deployed stack's batches of one kind handled by a batch API on this machine, until Ctrl-C.
///
///   fanfold dev --stack shop --kind parcel --call http://localhost:8000/parcels
///   fanfold dev --stack shop --kind parcel -- python3 handle.py
///   fanfold dev --stack shop --kind parcel --end    ends the session of another
///
/// Everything else of the policy stays as it is: grouping, rates, attempts, and how
/// the request is written. With --call the request is the one that the deployed
/// stack would send, to another address. A program reads each call from standard
/// input and writes its answer to standard output.
///
/// The outcomes are real. The stack must be deployed with the parameter DevSessions=yes.
///
/// Ctrl-C, SIGTERM or SIGHUP hands the kind back: calls in progress end, and what was
/// not called yet is called by the stack again. A second Ctrl-C or SIGTERM ends the command at once.
/// The stack notices within a minute, and calls what it had sent here again after
/// --answers-within.
///
/// The exit status is
///
///   0          the kind was handed back
///   1          the session was lost, the kind could not be handed back (the stack has it
///              back within a minute), or another error
///   2          something on the command line, or this stack, cannot be used
///   3          another session has the calls of the kind
///   130, 143   a second Ctrl-C or SIGTERM
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, group(ArgGroup::new("api").args(["call", "command", "end"]).required(true)))]
pub(crate) struct DevArgs {
    /// The kind.
    #[arg(long, value_name = "KIND", value_parser = kind)]
    kind: String,
    /// The address of the batch API on this machine.
    #[arg(long, value_name = "URL")]
    call: Option<String>,
    /// A program as batch API, with its arguments.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// Instead end whichever session has the calls of the kind: its command notices within 20 seconds,
    /// hands back what it has, and ends.
    #[arg(long)]
    end: bool,
    /// How many calls are made at once.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=100))]
    at_once: u32,
    /// How long a call may take here, waiting for others included. After that the stack calls its batch
    /// again. At most 1h; at least a minute more than the policy's `timeout`.
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = humantime::parse_duration)]
    answers_within: Duration,
    #[command(flatten)]
    connection: Connection,
}

pub(super) async fn run(args: DevArgs) -> Result<ExitCode, Failure> {
    let stack = args.connection.clone().stack()?;
    if args.end { end::run(&stack, &args.kind).await } else { session(args, &stack).await }
}

/// Has the batches handled here, until the end of the session.
async fn session(args: DevArgs, stack: &Stack) -> Result<ExitCode, Failure> {
    let failed = |error: ClientError| stack.failed(error);
    let allowed = lease::allowed(&stack.api, &args.kind).await.map_err(failed)?;
    let Some(prefix) = allowed else { return Err(refused(stack).into()) };
    let policy = policy(stack, &args.kind).await?;
    let way = match args.call.clone() {
        Some(url) => Way::Url(url),
        None => Way::Command(args.command.clone()),
    };
    check_time(args.answers_within, &policy)?;
    let local = Local::new(&policy, way).await?;
    local.notices.iter().for_each(say);
    let sqs = Sqs::new(&args.connection, &prefix)?;
    let stop = Stop::listen()?;
    let said = Said::new(stack.json());
    let queue = DevQueue::create(sqs, &prefix, &args.kind).await.map_err(|problem| Fault::new("the queue", problem))?;
    let lease = Lease::new(&stack.api, &args.kind, &queue.arn, args.answers_within);
    if let Err(error) = lease.take().await {
        queue.delete().await;
        return match error {
            LeaseError::Held(problem) => {
                say(format_args!("fanfold: {problem}"));
                Ok(ExitCode::from(HELD))
            }
            LeaseError::Api(error) => Err(stack.failed(error)),
        };
    }
    say(format_args!("batches of kind {} are handled here; Ctrl-C hands them back", args.kind));
    let outcomes = Outcomes::new(stack.endpoint());
    let closing = Closing::new();
    let batches =
        Arc::new(Batches { queue, local, outcomes, closing: closing.clone(), said, within: args.answers_within });
    let working = tokio::spawn(Arc::clone(&batches).work(args.at_once));
    let end = tokio::select! {
        _ = stop.asked() => End::Asked,
        lost = lease.keep() => End::Lost(lost),
    };
    let handed_back = hand_back(&end, &lease, &closing, working).await;
    batches.queue.delete().await;
    batches.said.end()?;
    Ok(if handed_back && matches!(end, End::Asked) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Hands the kind back, and waits until nothing of it is here any more. False: the stack does not know that it has it
/// back, or some calls that were sent here are left.
async fn hand_back(end: &End, lease: &Lease, closing: &Closing, working: JoinHandle<bool>) -> bool {
    say(match end {
        End::Asked => "handing the kind back; Ctrl-C ends at once".to_owned(),
        End::Lost(why) => format!("fanfold: the session is over: {why}"),
    });
    closing.begin();
    let given = lease.give_back().await;
    closing.given_back(given.stragglers);
    let all = working.await.unwrap_or_default();
    if !all {
        say("fanfold: some calls are left that were sent here: the stack makes them again after --answers-within");
    }
    given.done && all
}

/// The policy of the kind as the stack has it.
async fn policy(stack: &Stack, kind: &str) -> Result<Policy, Failure> {
    let policy = stack.api.policy(kind).await.map_err(|error| stack.failed(error))?;
    let unusable = |error| Fault::new(format_args!("the stack's policy of kind `{kind}`"), error);
    Ok(fanfold::json::shape(policy).map_err(unusable)?)
}

fn check_time(within: Duration, policy: &Policy) -> Result<(), Fault> {
    let (least, most) = (policy.batch_api.timeout.0 + AROUND, DEV_ANSWERS_WITHIN_MAX);
    if (least..=most).contains(&within) {
        return Ok(());
    }
    let shown = humantime::format_duration;
    let problem = format!("is {}, {} to {} is allowed", shown(within), shown(least), shown(most));
    Err(Fault::new("--answers-within", problem))
}

/// Why there is no session with a stack that allows none.
fn refused(stack: &Stack) -> Fault {
    if stack.is_local() {
        let problem = "this stack runs on this machine and calls it anyway: store a policy with `batch_api: {url: …}` that \
                       names your batch API (docs/cli.md)";
        return Fault::new("--endpoint", problem);
    }
    let problem =
        "this stack allows no dev sessions; deploy it with the parameter DevSessions=yes, if it is not for production";
    Fault::new("--stack", problem)
}
