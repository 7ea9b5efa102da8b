//! Doing something to several fan-outs: those that are named, or those that a filter finds, after a question.

use std::io::{IsTerminal, stdin};
use std::pin::pin;

use clap::Args;
use fanfold_client::{ClientError, Fanout, State};
use futures::TryStreamExt;
use serde_json::{Value, json};
use uuid::Uuid;

use super::connection::Stack;
use super::fanout_id;
use super::filter::{Filter, PAGE_MAX};
use super::progress::Progress;
use super::refusal::Refusal;
use crate::count::count;
use crate::failure::Failure;
use crate::fault::Fault;
use crate::say::{ask, say};

/// Refusals that are shown.
const SHOWN: usize = 10;

/// Fan-outs that are named, or that a filter finds.
#[derive(Debug, Args)]
pub(super) struct ChosenFanouts {
    /// The fan-outs.
    #[arg(value_name = "ID", value_parser = fanout_id, conflicts_with = "Filter")]
    ids: Vec<Uuid>,
    #[command(flatten)]
    filter: Filter,
    /// With a filter: do not ask before. Needed where there is no terminal to ask at.
    #[arg(long)]
    yes: bool,
}

/// What is done to them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deed {
    /// `cancel`.
    pub(super) verb: &'static str,
    /// `cancelled`.
    pub(super) done: &'static str,
    /// The states in which it can be done.
    pub(super) states: &'static [State],
}

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Outcomes {
    /// What was returned for each fan-out to which it was done.
    pub(super) done: Vec<Fanout>,
    /// Those that refused.
    refused: Vec<(Uuid, Refusal)>,
    /// Why the rest was not tried.
    stopped: Option<Failure>,
}

impl ChosenFanouts {
    /// The only fan-out that is named.
    pub(super) fn one(&self) -> Option<Uuid> {
        if let [id] = self.ids[..] { Some(id) } else { None }
    }

    /// The ids of the fan-outs, of those that the filter finds only if they are `wanted`. None: a person has refused.
    pub(super) async fn choose(
        self,
        stack: &Stack,
        deed: Deed,
        wanted: impl Fn(&Fanout) -> bool,
    ) -> Result<Option<Vec<Uuid>>, Failure> {
        let Self { ids, mut filter, yes } = self;
        if !ids.is_empty() {
            return Ok(Some(ids));
        }
        if filter.is_empty() {
            let problem = "is missing: name fan-outs, or give a filter: --state, --user-key, --user-key-prefix, --opened-after \
                           or --opened-before";
            return Err(Fault::new("ID", problem).into());
        }
        if let Some(wrong) = filter.state.iter().find(|state| !deed.states.contains(state)) {
            let allowed: Vec<&str> = deed.states.iter().map(|state| state.name()).collect();
            let problem =
                format!("is `{wrong}`, and {} are allowed: no other can be {}", allowed.join(", "), deed.done);
            return Err(Fault::new("--state", problem).into());
        }
        if filter.state.is_empty() {
            filter.state = deed.states.to_vec();
        }
        let ids = found(stack, filter, wanted).await?;
        if ids.is_empty() {
            say(format_args!("no fan-out is found that can be {}", deed.done));
            return Ok(Some(ids));
        }
        let fanouts = count(ids.len() as u64, "fan-out", "fan-outs");
        let can_ask = stdin().is_terminal() && std::io::stderr().is_terminal();
        if !yes && !can_ask {
            let problem = format!("is missing: it would {} {fanouts}, and there is no terminal to ask at", deed.verb);
            return Err(Fault::new("--yes", problem).into());
        }
        Ok((yes || ask(format_args!("{} {fanouts}?", capital(deed.verb)))).then_some(ids))
    }
}

async fn found(stack: &Stack, filter: Filter, wanted: impl Fn(&Fanout) -> bool) -> Result<Vec<Uuid>, Failure> {
    let (list, progress, mut ids) = (filter.list(false, PAGE_MAX), Progress::new(), Vec::new());
    let mut fanouts = pin!(stack.api.fanouts(&list));
    while let Some(fanout) = fanouts.try_next().await.map_err(|error| stack.failed(error))? {
        ids.extend(Some(fanout).filter(&wanted).map(|fanout| fanout.id));
        progress.changes(|| format!("{} found", count(ids.len() as u64, "fan-out", "fan-outs")));
    }
    progress.end();
    Ok(ids)
}

/// Does it to one fan-out after the other. Those that refuse do not stop it.
pub(super) async fn each(
    stack: &Stack,
    ids: &[Uuid],
    deed: Deed,
    one: impl AsyncFn(Uuid) -> Result<Fanout, ClientError>,
) -> Outcomes {
    let (mut outcomes, progress) = (Outcomes::default(), Progress::new());
    for (number, id) in ids.iter().enumerate() {
        match one(*id).await {
            Ok(fanout) => outcomes.done.push(fanout),
            // Other errors concern every request.
            Err(error @ ClientError::Api { status: 404 | 409 | 422, .. }) => {
                outcomes.refused.push((*id, stack.refusal(error)));
            }
            Err(error) => {
                outcomes.stopped = Some(stack.failed(error));
                break;
            }
        }
        let (tried, page) = (number + 1, PAGE_MAX as usize);
        let text =
            || format!("{} of {} {}", outcomes.done.len(), count(ids.len() as u64, "fan-out", "fan-outs"), deed.done);
        if tried % page == 0 && tried < ids.len() { progress.step(text) } else { progress.changes(text) }
    }
    progress.end();
    outcomes
}

impl Outcomes {
    /// As one document, whose list of what is done has this name.
    pub(super) fn document(&self, done: &str) -> Value {
        let fanouts: Vec<&Value> = self.done.iter().map(|fanout| &fanout.raw).collect();
        let refused = self.refused.iter().map(|(id, refusal)| json!({"id": id, "problem": refusal.to_string()}));
        json!({done: fanouts, "refused": refused.collect::<Vec<_>>()})
    }

    /// The failure of the command, if there is one. The other refusals are shown.
    pub(super) fn end(self) -> Result<(), Failure> {
        let of = |(id, refusal): (Uuid, Refusal)| Failure::from(refusal.of(&id.to_string()));
        let number = self.refused.len();
        let mut failures = self.stopped.into_iter().chain(self.refused.into_iter().map(of));
        let Some(first) = failures.next() else { return Ok(()) };
        failures.by_ref().take(SHOWN - 1).for_each(|failure| say(format_args!("fanfold: {failure}")));
        if failures.next().is_some() {
            say(format_args!("fanfold: {} in all", count(number as u64, "refusal", "refusals")));
        }
        Err(first)
    }
}

/// A word at the beginning of a sentence.
fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}
