//! `fanfold plan`: what a fan-out would cost on AWS, how long it would take, and what limits it first.

mod args;
mod bottleneck;
mod cost;
mod sample;
mod text;

pub(crate) use args::PlanArgs;

use std::time::Duration;

use serde_json::json;

use crate::client::print;
use crate::failure::Failure;
use crate::fault::Fault;

/// What is planned.
#[derive(Clone, Copy, Debug)]
struct Shape {
    items: u64,
    targets: u64,
    /// Tasks per batch at most.
    batch: u32,
    /// How long a call of the batch API takes.
    call: Duration,
    /// Calls at once.
    calls_at_once: u32,
    /// Batches of one lane at once.
    max_in_flight: u32,
    /// Tasks per second that the batch API takes.
    rate: Option<f64>,
    /// Whether tasks have keys.
    keys: bool,
    /// Bytes of a task's content.
    bytes: u32,
}

impl Shape {
    /// Batches of one target, if its tasks are as many as those of any other.
    fn batches_per_target(&self) -> u64 {
        self.items.div_ceil(self.targets).div_ceil(u64::from(self.batch))
    }

    /// Calls, if every batch is full that can be, and none is repeated.
    fn calls(&self) -> u64 {
        let (each, more) = (self.items / self.targets, self.items % self.targets);
        let batches = |tasks: u64| tasks.div_ceil(u64::from(self.batch));
        more * batches(each + 1) + (self.targets - more) * batches(each)
    }

    /// Calls that can be made at once.
    fn parallel(&self) -> u64 {
        let lanes = self.targets.saturating_mul(u64::from(self.max_in_flight));
        u64::from(self.calls_at_once).min(lanes)
    }
}

/// Measures, computes and prints.
pub(crate) async fn run(args: PlanArgs) -> Result<(), Failure> {
    let as_json = args.json;
    let shape = args.shape();
    if shape.targets > shape.items {
        let problem = format!("at most one per item is expected, that is {}", shape.items);
        return Err(Fault::new(format_args!("--targets {}", shape.targets), problem).into());
    }
    let measured = sample::measure(&shape).await?;
    let costs = cost::Costs::of(&shape, &measured);
    let limits = bottleneck::limits(&shape, &measured);
    let text = if as_json {
        format!("{:#}", json!({"calls": shape.calls(), "measured": measured, "dollars": costs, "limits": limits}))
    } else {
        text::Plan { shape, measured, costs, limits }.to_string()
    };
    print(&text).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shape to change.
    pub(super) fn shape(items: u64, targets: u64, batch: u32) -> Shape {
        Shape {
            items,
            targets,
            batch,
            call: Duration::from_millis(200),
            calls_at_once: 15,
            max_in_flight: 1,
            rate: None,
            keys: false,
            bytes: 100,
        }
    }

    #[test]
    fn calls_are_as_few_as_the_targets_allow() {
        assert_eq!(shape(1_000, 1, 100).calls(), 10);
        assert_eq!(shape(1_001, 1, 100).calls(), 11);
        assert_eq!(shape(10, 10, 100).calls(), 10);
        // Seven targets have 143 tasks or 142, which take two calls each.
        assert_eq!((shape(1_000, 7, 100).calls(), shape(1_000, 7, 100).batches_per_target()), (14, 2));
        // One of three targets has four tasks.
        assert_eq!(shape(10, 3, 3).calls(), 4);
        assert_eq!((shape(10, 3, 3).parallel(), shape(1_000, 100, 3).parallel()), (3, 15));
    }
}
