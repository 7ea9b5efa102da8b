//! Sources of producers as one worker reaches them: asked again, they answer another page, unless they are objects; they fail, are
//! slow, and ask for time.

use std::sync::Arc;
use std::time::Duration;

use fanfold::clock::Timestamp;
use fanfold::limits::SOURCE_TIMEOUT;
use fanfold::producing::Source;
use fanfold_produce::{Asking, SourceAnswer, SourceError, SourceRequest, Sources};
use futures::FutureExt;
use serde_json::{Value, json};

use crate::lock;
use crate::sim::Sim;
use crate::worker::Worker;

/// Rows in one page at most.
const ROWS: usize = 6;

/// The sources as one worker reaches them.
pub(crate) struct SimulatedSources {
    pub(crate) sim: Arc<Sim>,
    pub(crate) worker: Arc<Worker>,
}

impl Sources for SimulatedSources {
    fn ask<'a>(&'a self, source: &'a Source, ask: &'a SourceRequest, _: Timestamp) -> Asking<'a> {
        let what = format!("ASK partition {} of {} at {}", ask.partition, ask.fanout, ask.cursor);
        async move { self.worker.call(&self.sim, "a source", &what, self.answer(source, ask)).await }.boxed()
    }
}

impl SimulatedSources {
    async fn answer(&self, source: &Source, ask: &SourceRequest) -> Result<SourceAnswer, SourceError> {
        let (sim, dice) = (&self.sim, &self.sim.dice);
        if dice.chance(sim.rate(300)) {
            sim.count("source: no answer");
            tokio::time::sleep(SOURCE_TIMEOUT).await;
            return Err(SourceError::again("no answer"));
        }
        tokio::time::sleep(dice.skewed(Duration::from_millis(5), Duration::from_secs(3))).await;
        if dice.chance(sim.rate(1_500)) {
            sim.count("source: come again");
            let retry_after = Duration::from_secs(if dice.chance(2_000) { dice.between(0, 120) } else { 0 });
            return Err(SourceError { retry_after, ..SourceError::again("503") });
        }
        if dice.chance(sim.rate(300)) {
            sim.count("source: gone");
            return Err(SourceError::for_good("404"));
        }
        match source.is_fixed() {
            true => lock(&sim.model).fixed_page(ask),
            false => SourceAnswer::read(self.page(ask).to_string().as_bytes(), ask),
        }
    }

    /// A page from the cursor on: of any size, in any order. What follows from its own cursor is what is not in it.
    fn page(&self, ask: &SourceRequest) -> Value {
        let dice = &self.sim.dice;
        let rows = lock(&self.sim.model).rows_for(ask);
        let from = usize::try_from(ask.cursor["at"].as_u64().unwrap_or(0)).unwrap_or(0);
        // Whether a policy's key is still the one that shares rows out is looked at on each page.
        let few = lock(&self.sim.model).shares_by_policy(ask.fanout);
        let to = rows.len().min(from + if few { 1 } else { dice.below(ROWS + 1) });
        let mut page: Vec<Value> = rows[from..to].to_vec();
        dice.shuffle(&mut page);
        // An empty page goes on, too; and the last one may say so or be followed by an empty one.
        let more = to < rows.len() || dice.chance(2_000);
        let cursor = more.then(|| json!({"at": to, "salt": dice.any()}));
        json!({"tasks": page, "cursor": cursor})
    }
}

/// A page of an object: the same whenever it is asked for. The first one has no rows.
pub(crate) fn fixed_page(rows: &[Value], ask: &SourceRequest) -> Value {
    let number = |name: &str| usize::try_from(ask.cursor[name].as_u64().unwrap_or(0)).unwrap_or(0);
    let (from, page) = (number("at"), number("page"));
    // Now and then another page has none, too.
    let size = if ask.cursor.is_null() { 0 } else { (page * 5 + ask.partition as usize * 3) % (ROWS + 1) };
    let to = rows.len().min(from + size);
    let cursor = (to < rows.len()).then(|| json!({"at": to, "page": page + 1}));
    json!({"tasks": rows[from..to], "cursor": cursor})
}
