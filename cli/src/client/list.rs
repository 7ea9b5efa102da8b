//! `fanfold list`.

use std::pin::pin;
use std::process::ExitCode;

use clap::Args;
use fanfold_client::Fanout;
use futures::{StreamExt, TryStreamExt};
use indicatif::HumanCount;
use serde_json::{Value, json};

use super::connection::Connection;
use super::filter::{ENDED, Filter, PAGE_MAX};
use super::moment::moment;
use super::print::table;
use super::progress::Progress;
use super::view;
use crate::count::count;
use crate::failure::Failure;
use crate::say::say;

/// Lists fan-outs, newest first.
///
///   fanfold list --state open,sealed --oldest   what is not finished, oldest first
///   fanfold list --user-key 'order 4711'        the fan-outs of an order
///   fanfold list --ended-after 1d --state failed,expired
///                                               what was cut short since yesterday
///   fanfold list --ended-after 1d --with-failures
///                                               what ended with failed items
///
/// Fan-outs are kept for 14 days after they ended, or as long as the deployment
/// says. A new one appears within seconds.
///
/// The API cannot find fan-outs by their ends or their failures: --ended-after and
/// --with-failures have the command read all those that the other options find.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    filter: Filter,
    /// Only fan-outs that ended after this.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    ended_after: Option<u64>,
    /// Only fan-outs with items that failed, or are missing at the end. Of one that has not ended, item groups
    /// that have are counted.
    #[arg(long)]
    with_failures: bool,
    /// List the oldest first.
    #[arg(long, conflicts_with = "user_key_prefix")]
    oldest: bool,
    /// List at most this many.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    #[command(flatten)]
    connection: Connection,
}

/// The filters that this command applies itself.
#[derive(Clone, Copy, Debug)]
struct Sieve {
    ended_after: Option<u64>,
    with_failures: bool,
}

impl Sieve {
    fn is_empty(self) -> bool {
        self.ended_after.is_none() && !self.with_failures
    }

    fn keeps(self, fanout: &Fanout) -> bool {
        // A fan-out that has ended changes no more.
        let ended = || fanout.raw["updated_at"].as_u64().filter(|_| fanout.has_ended());
        self.ended_after.is_none_or(|after| ended().is_some_and(|at| at > after))
            && (!self.with_failures || fanout.failed + fanout.missing > 0)
    }
}

pub(super) async fn run(args: ListArgs) -> Result<ExitCode, Failure> {
    let ListArgs { mut filter, ended_after, with_failures, oldest, limit, connection } = args;
    let stack = connection.stack()?;
    let sieve = Sieve { ended_after, with_failures };
    if ended_after.is_some() && filter.state.is_empty() {
        filter.state = ENDED.to_vec();
    }
    // One more shows whether there are more. With filters, larger pages make fewer requests.
    let page = match filter.is_sparse() || !sieve.is_empty() {
        true => PAGE_MAX,
        false => limit.saturating_add(1).min(PAGE_MAX),
    };
    let (list, most, mut read, progress) = (filter.list(oldest, page), limit as usize, 0, Progress::new());
    let mut found = pin!(stack.api.fanouts(&list).map_err(|error| stack.failed(error)));
    let mut fanouts = Vec::new();
    while let Some(fanout) = found.next().await {
        fanouts.extend(Some(fanout?).filter(|fanout| sieve.keeps(fanout)));
        if fanouts.len() > most {
            break;
        }
        read += 1;
        if !sieve.is_empty() {
            progress.changes(|| format!("{} read", count(read, "fan-out", "fan-outs")));
        }
    }
    progress.end();
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
