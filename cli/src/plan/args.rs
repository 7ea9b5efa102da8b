//! The command line of `fanfold plan`.

use std::time::Duration;

use clap::Args;
use fanfold::limits::{BATCH_API_TIMEOUT_MAX, BATCH_BYTES_DEFAULT, BATCH_MEMBERS_MAX, MEMBER_BYTES};
use fanfold::policy::Span;

use super::Shape;

/// Computes what a fan-out would cost on AWS, how long it would take at least, and what limits it first.
///
///   fanfold plan --items 1000000 --targets 500 --batch 100 --call 300ms
///
/// It runs a sample of up to 20,000 such tasks, and up to 256 MiB, on this machine,
/// counts the requests and their units, and computes the rest: at list prices, from
/// the limits of AWS, and with tasks spread evenly over targets. It sends nothing to
/// AWS. For comparison it shows one call per item, and a distributed map of Step
/// Functions.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct PlanArgs {
    /// The number of items.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000_000))]
    items: u64,
    /// The number of targets; only items with the same target share a call.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    targets: u64,
    /// The maximum number of items in one call, which has up to 4 MiB.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=i64::from(BATCH_MEMBERS_MAX)))]
    batch: u32,
    /// How long a call of the batch API takes, as far as a policy's `timeout` allows: at most 90s.
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = call_time)]
    call: Duration,
    /// How many calls may be made at once (`max_calls` of the policy, within `BatchApiConcurrency` of the stack).
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=750))]
    calls: u32,
    /// How many batches of one target may be called at once (`max_in_flight` of the policy).
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    max_in_flight: u32,
    /// How many items the batch API takes per second (`kind_rate` of the policy); by default any number.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    /// Tasks have keys, so that each is accepted once.
    #[arg(long)]
    keys: bool,
    /// The size of a task's content.
    #[arg(long, value_name = "BYTES", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    bytes: u32,
    /// Print only one JSON document.
    #[arg(long)]
    pub(super) json: bool,
}

/// Parses how long a call takes.
fn call_time(text: &str) -> Result<Duration, String> {
    let call = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if call <= BATCH_API_TIMEOUT_MAX {
        return Ok(call);
    }
    let most = Span(BATCH_API_TIMEOUT_MAX);
    Err(format!(
        "at most {most} is allowed, the longest `timeout` of a policy; a batch API that takes longer answers later, \
         which `answers_within` of a policy allows"
    ))
}

impl PlanArgs {
    pub(super) fn shape(self) -> Shape {
        let Self { items, targets, batch, call, calls, max_in_flight, rate, keys, bytes, json: _ } = self;
        // A batch is full at so many bytes, too.
        let batch = batch.min((BATCH_BYTES_DEFAULT / (bytes + MEMBER_BYTES as u32)).max(1));
        Shape {
            items,
            targets,
            batch,
            call,
            calls_at_once: calls,
            max_in_flight,
            rate: rate.map(f64::from),
            keys,
            bytes,
        }
    }
}
