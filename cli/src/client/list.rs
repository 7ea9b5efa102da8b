//! `fanfold list`.

use std::process::ExitCode;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use fanfold_client::{Fanout, ListFanouts, State};
use futures::{StreamExt, TryStreamExt};
use indicatif::HumanCount;
use serde_json::{Value, json};

use super::connection::Connection;
use super::moment::moment;
use super::print::table;
use super::view;
use crate::failure::Failure;
use crate::say::say;

/// All states.
const STATES: [State; 6] =
    [State::Open, State::Sealed, State::Completed, State::Failed, State::Cancelled, State::Expired];

/// The largest page of the API.
const PAGE_MAX: u32 = 100;

/// Lists fan-outs, newest first.
///
///   fanfold list --state open,sealed --oldest               what is not finished, oldest first
///   fanfold list --state failed,expired --opened-after 1d   what went wrong since yesterday
///   fanfold list --user-key 'order 4711'                    the fan-outs of an order
///
/// Fan-outs are kept for 14 days after they ended, or as long as the deployment says. A new one appears within seconds.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ListArgs {
    /// Only fan-outs in one of these states, separated by commas.
    #[arg(long, value_name = "STATES", value_delimiter = ',', value_parser = states())]
    state: Vec<State>,
    /// Only fan-outs with exactly this user key.
    #[arg(long, value_name = "KEY")]
    user_key: Option<String>,
    /// Only fan-outs whose user keys begin with this, sorted by user key.
    #[arg(long, value_name = "PREFIX", conflicts_with_all = ["user_key", "oldest"])]
    user_key_prefix: Option<String>,
    /// Only fan-outs opened after this: `2h` (ago), `2026-11-23` (UTC), `2026-11-23T21:00:00Z`, or milliseconds
    /// since 1970.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    opened_after: Option<u64>,
    /// Only fan-outs opened before this.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    opened_before: Option<u64>,
    /// List the oldest first.
    #[arg(long)]
    oldest: bool,
    /// List at most this many.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    #[command(flatten)]
    connection: Connection,
}

fn states() -> impl TypedValueParser<Value = State> {
    let named = |name: String| STATES.into_iter().find(|state| state.name() == name).unwrap_or(State::Unknown);
    PossibleValuesParser::new(STATES.map(State::name)).map(named)
}

pub(super) async fn run(args: ListArgs) -> Result<ExitCode, Failure> {
    let ListArgs { state, user_key, user_key_prefix, opened_after, opened_before, oldest, limit, connection } = args;
    let stack = connection.stack()?;
    // One more shows whether there are more. With filters, larger pages make fewer requests.
    let filters = !state.is_empty() || opened_after.is_some() || opened_before.is_some() || user_key_prefix.is_some();
    let page = Some(if filters { PAGE_MAX } else { limit.saturating_add(1).min(PAGE_MAX) });
    let list = ListFanouts {
        states: state,
        user_key,
        user_key_prefix,
        opened_after,
        opened_before,
        oldest_first: oldest,
        page,
    };
    let most = limit as usize;
    let found = stack.api.fanouts(&list).take(most + 1).try_collect::<Vec<Fanout>>().await;
    let mut fanouts = found.map_err(|error| stack.failed(error))?;
    let more = fanouts.len() > most;
    fanouts.truncate(most);
    stack.print(|| document(&fanouts, more), || text(&fanouts))?;
    if more && !stack.json() {
        say(format_args!("There are more: --limit {limit} ends the list here."));
    }
    Ok(ExitCode::SUCCESS)
}

fn document(fanouts: &[Fanout], more: bool) -> Value {
    let fanouts: Vec<&Value> = fanouts.iter().map(|fanout| &fanout.raw).collect();
    json!({"fanouts": fanouts, "more": more})
}

fn text(fanouts: &[Fanout]) -> String {
    let row = |fanout: &Fanout| {
        [
            fanout.id.to_string(),
            fanout.state.to_string(),
            view::moment(fanout.created_at),
            HumanCount(fanout.total).to_string(),
            HumanCount(fanout.done).to_string(),
            HumanCount(fanout.failed).to_string(),
            fanout.user_key.as_deref().map(view::shown).unwrap_or_default(),
        ]
    };
    let rows: Vec<_> = fanouts.iter().map(row).collect();
    table(["ID", "STATE", "OPENED", " ITEMS", " DONE", " FAILED", "USER KEY"], &rows)
}
