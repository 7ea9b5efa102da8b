//! Tasks of several targets, grouped into batches: by Fanfold, or by the plain algorithm, on the same engine, with the same
//! requests to register and the same batch API.

mod api;
mod ours;
mod plain;

use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use fanfold_local::Invocations;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::room::{Room, Tuned};
use crate::{Outcome, report};
use api::Calls;

/// Between two looks at what was called.
const LOOK: Duration = Duration::from_millis(10);

/// What is asked for.
#[derive(Clone, Debug, Args)]
pub(crate) struct Asked {
    /// Who groups.
    #[arg(long, value_enum)]
    algorithm: Who,
    /// Tasks.
    #[arg(long)]
    tasks: usize,
    /// Targets that they have.
    #[arg(long)]
    targets: usize,
    /// Tasks of a batch at most.
    #[arg(long, default_value_t = 60)]
    max_batch: usize,
    /// Seconds that a batch which is not full waits for more tasks.
    #[arg(long, default_value_t = 2)]
    linger: u64,
    /// Tasks that one request registers.
    #[arg(long, default_value_t = 1_000)]
    per_request: usize,
    /// Milliseconds between two requests.
    #[arg(long, default_value_t = 0)]
    every_ms: u64,
    /// Fanfold's requests come by its queue `register`.
    #[arg(long)]
    queue: bool,
    /// A function, its batch size and window in seconds, if other than the template's: `ElectFunction=10,0`.
    #[arg(long = "source")]
    sources: Vec<Tuned>,
}

/// Who groups.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Who {
    /// Fanfold.
    Fanfold,
    /// The algorithm as it was published.
    Plain,
}

/// A task: its number, and its target.
#[derive(Clone, Copy, Debug)]
struct Task {
    number: usize,
    target: usize,
}

impl Asked {
    /// Waits until the next request is due.
    async fn pause(&self) {
        if self.every_ms > 0 {
            tokio::time::sleep(Duration::from_millis(self.every_ms)).await;
        }
    }

    /// The tasks, request by request.
    fn requests(&self) -> impl Iterator<Item = Vec<Task>> {
        let tasks: Vec<Task> =
            (0..self.tasks).map(|number| Task { number, target: number % self.targets.max(1) }).collect();
        let requests: Vec<Vec<Task>> = tasks.chunks(self.per_request.max(1)).map(<[_]>::to_vec).collect();
        requests.into_iter()
    }
}

/// Runs it.
pub(crate) async fn run(asked: &Asked) -> Outcome<Value> {
    let calls = Arc::new(Calls::default());
    let began = Instant::now();
    let mut registering = Invocations::default();
    let room = match asked.algorithm {
        Who::Fanfold => ours::register(asked, &calls, &mut registering).await?,
        Who::Plain => plain::register(asked, &calls, &mut registering).await?,
    };
    while calls.tasks() < asked.tasks {
        tokio::time::sleep(LOOK).await;
    }
    let took = began.elapsed();
    room.silent().await?;
    let invocations: Vec<Invocations> = room.invocations().into_values().chain([registering]).collect();
    Ok(json!({
        "tasks": asked.tasks,
        "targets": asked.targets,
        "max_batch": asked.max_batch,
        "linger_seconds": asked.linger,
        "per_request": asked.per_request,
        "seconds": took.as_secs_f64(),
        "silent_after_seconds": began.elapsed().as_secs_f64(),
        "queue": asked.queue,
        "every_ms": asked.every_ms,
        "registered_to_called_ms": calls.waits(),
        "calls": calls.count(),
        "called_twice": calls.twice(),
        "used": report::used(&fanfold_local::Usage::default(), &room.engine.usage(), invocations.iter(), asked.tasks as u64),
    }))
}

/// Counts an invocation of a function of the template that began at a moment.
fn count(room: &Room, function: &str, began: Instant, counted: &mut Invocations) {
    let memory = room.template.function(function).map_or(0, |function| function.memory);
    counted.count += 1;
    counted.gb_seconds += began.elapsed().as_secs_f64() * f64::from(memory) / 1_024.0;
}
