//! What it costs, beside what else one could do.

use fanfold_local::prices;
use serde::Serialize;

use super::Shape;
use super::sample::Measured;

/// Memory of the function that calls batch APIs, and of the function that others would use, in GB.
const CALLING_GIGABYTES: f64 = 0.5;
const FUNCTION_GIGABYTES: f64 = 0.25;

/// Requests to SQS per message that is sent, received and deleted in tens, which is the most that SQS takes at once.
const REQUESTS_PER_MESSAGE: f64 = 0.3;

/// Messages per invocation of a function that reads a queue without a window, at most.
const MESSAGES_PER_INVOCATION: f64 = 10.0;

/// Dollars.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Costs {
    pub(super) dynamodb_writes: f64,
    pub(super) dynamodb_reads: f64,
    pub(super) sqs: f64,
    /// Invocations, and the time that they take but for calls.
    pub(super) lambda: f64,
    /// The time that invocations wait for calls.
    pub(super) calls: f64,
    pub(super) total: f64,
    /// A queue whose function makes a call per item.
    pub(super) one_call_per_item: f64,
    /// A distributed map of Step Functions, with an Express workflow per call.
    pub(super) distributed_map: f64,
}

impl Costs {
    pub(super) fn of(shape: &Shape, measured: &Measured) -> Self {
        let (items, calls, call) = (shape.items as f64, shape.calls() as f64, shape.call.as_secs_f64());
        let [dynamodb_writes, dynamodb_reads, sqs, lambda] = measured.dollars_per_task.map(|dollars| dollars * items);
        let waiting = prices::of_invocations(0.0, calls * call * CALLING_GIGABYTES);
        let one_by_one = prices::of_requests(items * REQUESTS_PER_MESSAGE)
            + prices::of_invocations(items / MESSAGES_PER_INVOCATION, items * call * FUNCTION_GIGABYTES);
        let mapped =
            prices::of_express(calls, calls * call) + prices::of_invocations(calls, calls * call * FUNCTION_GIGABYTES);
        Self {
            dynamodb_writes,
            dynamodb_reads,
            sqs,
            lambda,
            calls: waiting,
            total: dynamodb_writes + dynamodb_reads + sqs + lambda + waiting,
            one_call_per_item: one_by_one,
            distributed_map: mapped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::shape;
    use super::*;

    #[test]
    fn each_way_costs_what_the_lists_say() {
        let measured = Measured { dollars_per_task: [1.58e-6, 0.09e-6, 0.06e-6, 0.01e-6], ..Measured::default() };
        let costs = Costs::of(&shape(1_000_000, 10, 100), &measured);
        let cents = |dollars: f64| (dollars * 100.0).round() / 100.0;
        // 10,000 calls of 0.2 s and 0.5 GB.
        assert_eq!((cents(costs.dynamodb_writes), cents(costs.calls), cents(costs.total)), (1.58, 0.01, 1.75));
        // 300,000 requests, 100,000 invocations, 50,000 GB-seconds.
        assert_eq!(cents(costs.one_call_per_item), cents(0.12 + 0.02 + 0.67));
        // 10,000 workflows and invocations, 125 and 500 GB-seconds.
        assert_eq!(cents(costs.distributed_map), cents(0.01 + 0.002 + 0.002 + 0.007));
    }
}
