//! What must hold of fan-outs that fetch their tasks themselves, in the end.

use fanfold::ids::TaskId;
use fanfold::limits::BAD_ROWS_SHOWN_MAX;
use fanfold::store::fanouts::{Fanout, FanoutState, Fanouts, Tolerance};
use fanfold::store::producers::{Partition, PartitionState, Producers};
use fanfold_local::Engine;
use fanfold_produce::SourceRequest;
use serde_json::Value;
use uuid::Uuid;

use super::{NOBODY, Produced, again};
use crate::check::{ByTask, table};
use crate::model::Model;
use crate::sim::Sim;

/// Looks at every fan-out with a producer.
pub(crate) async fn check(engine: &Engine, sim: &Sim, model: &Model, batches: &ByTask) -> Result<(), String> {
    let producers = Producers::new(table(engine, sim, "PRODUCERS_TABLE"));
    let fanouts = Fanouts::new(table(engine, sim, "FANOUTS_TABLE"));
    for (id, produced) in &model.produced {
        let Some(fanout) = fanouts.get(*id).await.map_err(|error| error.to_string())? else { continue };
        let partitions = producers.all(*id, produced.partitions).await.map_err(|error| error.to_string())?;
        let problem = match produced.of {
            Some(of) => again::rows(model, batches, of, &fanout).or_else(|| again::ended(&fanout, &partitions)),
            None => rows(model, produced, &fanout)
                .or_else(|| ended(produced, &fanout, &partitions))
                .or_else(|| spoiled(model, *id, &partitions)),
        };
        let problem = problem.or_else(|| looked_at(&fanout, &partitions));
        if let Some(problem) = problem {
            sim.violate(format!("{problem}: {fanout:?}, {partitions:?}"));
        }
        if let Some(problem) = again::all(model, batches, &fanout, &fanouts).await? {
            sim.violate(problem);
        }
    }
    Ok(())
}

/// Every row but bad ones is one item's task; of a fan-out that was cut short, at most one's.
fn rows(model: &Model, produced: &Produced, fanout: &Fanout) -> Option<String> {
    let mut seen = vec![0; produced.rows.len()];
    for item in model.fanouts.get(&fanout.id)?.items.iter() {
        let task = model.tasks.get(&TaskId::Item(*item));
        let row = task.and_then(|task| usize::try_from(task.content["row"].as_u64()?).ok());
        let Some(times) = row.and_then(|row| seen.get_mut(row)) else {
            return Some(format!("item {item} has no row of a source: {task:?}"));
        };
        *times += 1;
    }
    let least = usize::from(!fanout.state.cut_short());
    let right = |row: &Value, times: &usize| match is_bad(row) {
        true => *times == 0,
        false => (least..=1).contains(times),
    };
    let wrong = seen.iter().zip(&produced.rows).position(|(times, row)| !right(row, times))?;
    Some(format!("row {wrong} of a source is {} tasks", seen[wrong]))
}

/// Sweeps look at a partition that failed for as long as its fan-out is open.
fn looked_at(fanout: &Fanout, partitions: &[Partition]) -> Option<String> {
    let open = fanout.state == FanoutState::Open;
    let wrong = partitions.iter().find(|it| it.state == PartitionState::Failed && it.closed == open)?;
    let verb = if open { "do not look" } else { "still look" };
    Some(format!("sweeps {verb} at partition {}, which failed", wrong.number))
}

/// A partition that has more bad rows than are tolerated is not done.
fn spoiled(model: &Model, id: Uuid, partitions: &[Partition]) -> Option<String> {
    let done = partitions.iter().filter(|it| it.state == PartitionState::Done);
    let partition = done.map(|it| it.number).find(|number| model.too_many_bad(id, *number))?;
    Some(format!("partition {partition} has more bad rows than are tolerated, and is done"))
}

impl Model {
    /// Whether some partition of a fan-out's source has more bad rows than are tolerated.
    pub(crate) fn hopeless(&self, id: Uuid) -> bool {
        let partitions = self.produced.get(&id).map_or(0, |produced| produced.partitions);
        (0..partitions).any(|partition| self.too_many_bad(id, partition))
    }

    /// Whether this partition has. So few rows are judged by a percentage in the end only.
    fn too_many_bad(&self, fanout: Uuid, partition: u32) -> bool {
        let Some(Produced { strict: Some(strict), partitions, .. }) = self.produced.get(&fanout) else { return false };
        let rows = self.rows_for(&SourceRequest { fanout, partition, of: *partitions, cursor: Value::Null });
        let bad = rows.iter().filter(|row| is_bad(row)).count();
        match strict {
            Tolerance::Count(most) => bad as u64 > *most,
            Tolerance::Percentage(share) => bad * 10_000 > rows.len() * usize::from(*share),
        }
    }
}

fn is_bad(row: &Value) -> bool {
    row["kind"] == NOBODY
}

/// All partitions ended, and count what there is.
fn ended(produced: &Produced, fanout: &Fanout, partitions: &[Partition]) -> Option<String> {
    if partitions.len() != produced.partitions as usize || partitions.iter().any(Partition::unfinished) {
        return Some("partitions have not ended".to_owned());
    }
    if fanout.state.cut_short() {
        return None;
    }
    let sum = |count: fn(&Partition) -> u64| partitions.iter().map(count).sum::<u64>();
    let (rows, dropped, bad) = (sum(|it| it.rows), sum(|it| it.dropped), sum(|it| it.bad));
    let times = if produced.picks { 1 } else { produced.partitions as usize };
    let read = produced.rows.len() * times;
    // Whose a bad row is cannot be told.
    let right = rows == read as u64
        && bad == (produced.rows.iter().filter(|row| is_bad(row)).count() * times) as u64
        && partitions.iter().all(|it| it.bad_rows.len() == (it.bad as usize).min(BAD_ROWS_SHOWN_MAX))
        && rows - dropped - bad == fanout.total
        && (fanout.state != FanoutState::Completed || sum(|it| it.duplicates) == fanout.duplicates)
        && partitions.iter().all(|it| it.state == PartitionState::Done);
    (!right).then(|| format!("partitions of {read} rows to read count wrongly"))
}
