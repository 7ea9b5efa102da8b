//! The command line of the sandbox.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use fanfold::mapping::preset_names;
use fanfold_batch_api::Shape;

use super::behaviour::{Behaviour, Latency};
use super::percent::Percent;

/// Serves a batch API to try against.
///
/// It accepts what every batch API of Fanfold receives, at any path, and returns
/// one outcome per member. With --as, it accepts what a well-known API does, and
/// answers as that API. The options say how slow, busy and faulty it is. The same
/// calls get the same answers again: what happens is drawn from --seed, the
/// Idempotency-Key, and the ids and contents of members.
///
/// `GET /counts` returns what has been counted since the start, as JSON. The sandbox also prints it when it stops.
///
/// In run.yaml, `start: [fanfold, sandbox, --fail, 1%]` starts it for a run, and for that run only.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct SandboxArgs {
    /// Where to listen: HOST:PORT. Without it, the sandbox listens at the port of 127.0.0.1 that the variable
    /// PORT names, which is how `fanfold run` starts it, or else at 127.0.0.1:8090.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// The API that it answers as: the name of a preset. It refuses what exceeds the API's limits. What the API cannot
    /// say of a single member, it says of the call.
    #[arg(long = "as", value_name = "PRESET", value_parser = PossibleValuesParser::new(preset_names()))]
    preset: Option<String>,
    /// How long each answer takes: `20ms`, or `20ms..200ms` for something in between.
    #[arg(long, value_name = "TIME", default_value = "0ms")]
    latency: Latency,
    /// Calls per second. The others are answered with 429 and `Retry-After: 1`, or as the API of --as does.
    #[arg(long, value_name = "CALLS")]
    rate: Option<NonZeroU32>,
    /// How many members fail for good. The content decides.
    #[arg(long, value_name = "PERCENT", default_value = "0%")]
    fail: Percent,
    /// How many members are answered with `retry`. It is drawn anew each time a member comes.
    #[arg(long, value_name = "PERCENT", default_value = "0%")]
    retry: Percent,
    /// How many members spoil the whole call: it is refused with 400, and nothing is done. The content decides.
    #[arg(long, value_name = "PERCENT", default_value = "0%")]
    poison: Percent,
    /// How many calls are answered with 500, and nothing is done. A repeated call is drawn anew.
    #[arg(long, value_name = "PERCENT", default_value = "0%")]
    errors: Percent,
    /// How many calls are done, but their answers are lost.
    #[arg(long, value_name = "PERCENT", default_value = "0%")]
    lose: Percent,
    /// How many calls are done, but answered only after --slow-for.
    #[arg(long, value_name = "PERCENT", default_value = "0%")]
    slow: Percent,
    /// How long a slow answer takes.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = humantime::parse_duration)]
    slow_for: Duration,
    /// How many calls that are done are answered later: with 202 and a `Location` that has the answer after --later-for.
    #[arg(long, value_name = "PERCENT", default_value = "0%")]
    later: Percent,
    /// How long it takes until that answer is there.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = humantime::parse_duration)]
    later_for: Duration,
    /// Do all of a call or nothing: with a member that fails or is to be sent again, nothing of the call is done. The
    /// answer names that member; no key is remembered. For policies with `mode: strict`.
    #[arg(long)]
    strict: bool,
    /// Do not remember Idempotency-Keys. By default a call that is repeated under its key gets its answer again,
    /// and nothing is done twice. (Most APIs of --as remember none.)
    #[arg(long)]
    pub(super) forget_keys: bool,
    /// Another number draws other failures.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Append a line of JSON per call to this file.
    #[arg(long, value_name = "FILE")]
    pub(super) log: Option<PathBuf>,
    /// Print JSON to standard output: the addresses once they are served, and what was counted when it stops.
    #[arg(long)]
    pub(super) json: bool,
}

impl SandboxArgs {
    /// Where to listen, and whether the variable `PORT` says so.
    pub(super) fn address(&self) -> (String, bool) {
        match (&self.listen, std::env::var("PORT")) {
            (Some(listen), _) => (listen.clone(), false),
            (None, Ok(port)) if !port.is_empty() => (format!("127.0.0.1:{port}"), true),
            (None, _) => ("127.0.0.1:8090".to_owned(), false),
        }
    }

    /// What it takes and answers. None: there is no such preset.
    pub(super) fn shape(&self) -> Option<Shape> {
        self.preset.as_deref().map_or_else(Shape::own, Shape::of_preset)
    }

    /// What the options say.
    pub(super) fn behaviour(&self) -> Behaviour {
        Behaviour {
            latency: self.latency,
            rate: self.rate,
            fail: self.fail,
            retry: self.retry,
            poison: self.poison,
            errors: self.errors,
            lose: self.lose,
            slow: self.slow,
            slow_for: self.slow_for,
            later: self.later,
            later_for: self.later_for,
            strict: self.strict,
            seed: self.seed,
        }
    }
}
