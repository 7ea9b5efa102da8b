//! What must hold of fan-outs that fetch their tasks themselves, in the end.

use fanfold::ids::TaskId;
use fanfold::store::fanouts::{Fanout, FanoutState, Fanouts};
use fanfold::store::producers::{Partition, PartitionState, Producers};
use fanfold_local::Engine;

use super::Produced;
use crate::check::table;
use crate::model::Model;
use crate::sim::Sim;

/// Looks at every fan-out with a producer.
pub(crate) async fn check(engine: &Engine, sim: &Sim, model: &Model) -> Result<(), String> {
    let producers = Producers::new(table(engine, sim, "PRODUCERS_TABLE"));
    let fanouts = Fanouts::new(table(engine, sim, "FANOUTS_TABLE"));
    for (id, produced) in &model.produced {
        let Some(fanout) = fanouts.get(*id).await.map_err(|error| error.to_string())? else { continue };
        let partitions = producers.all(*id, produced.partitions).await.map_err(|error| error.to_string())?;
        let problem = rows(model, produced, &fanout).or_else(|| ended(produced, &fanout, &partitions));
        if let Some(problem) = problem {
            sim.violate(format!("{problem}: {fanout:?}, {partitions:?}"));
        }
    }
    Ok(())
}

/// Every row is one item's task; of a fan-out that was cut short, at most one's.
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
    let wrong = seen.iter().position(|times| !(least..=1).contains(times))?;
    Some(format!("row {wrong} of a source is {} tasks", seen[wrong]))
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
    let (rows, dropped) = (sum(|it| it.rows), sum(|it| it.dropped));
    let read = produced.rows.len() * if produced.picks { 1 } else { produced.partitions as usize };
    let right = rows == read as u64
        && rows - dropped == fanout.total
        && (fanout.state != FanoutState::Completed || sum(|it| it.duplicates) == fanout.duplicates)
        && partitions.iter().all(|it| it.state == PartitionState::Done);
    (!right).then(|| format!("partitions of {read} rows to read count wrongly"))
}
