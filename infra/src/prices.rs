//! What AWS asks for what a run used, at list prices.

use crate::usage::{Invocations, Usage};

/// Where and when these are the list prices, on demand, without a free tier: <https://aws.amazon.com/dynamodb/pricing/on-demand/>,
/// <https://aws.amazon.com/sqs/pricing/>, <https://aws.amazon.com/lambda/pricing/>.
pub const LIST: &str = "us-east-1, November 2026";

/// Dollars per write request unit of DynamoDB.
const WRITE_UNIT: f64 = 0.625e-6;
/// Dollars per read request unit of DynamoDB.
const READ_UNIT: f64 = 0.125e-6;
/// Dollars per request of a standard queue; each 64 KB of payload is one.
const SQS_REQUEST: f64 = 0.40e-6;
/// Dollars per invocation of a function.
const INVOCATION: f64 = 0.20e-6;
/// Dollars per GB-second of a function on arm64.
const GB_SECOND: f64 = 13.333_4e-6;

/// Dollars per request, that is start, of an Express workflow of Step Functions: <https://aws.amazon.com/step-functions/pricing/>.
const EXPRESS_REQUEST: f64 = 1e-6;
/// Dollars per GB-second of an Express workflow; 64 MB at least are charged.
const EXPRESS_GB_SECOND: f64 = 16.67e-6;
/// The least memory of an Express workflow, in GB.
const EXPRESS_GIGABYTES: f64 = 0.0625;

/// What requests to SQS cost.
#[must_use]
pub fn of_requests(requests: f64) -> f64 {
    requests * SQS_REQUEST
}

/// What invocations of a function cost that take so many GB-seconds together.
#[must_use]
pub fn of_invocations(invocations: f64, gb_seconds: f64) -> f64 {
    invocations * INVOCATION + gb_seconds * GB_SECOND
}

/// What Express workflows cost that take so many seconds together.
#[must_use]
pub fn of_express(workflows: f64, seconds: f64) -> f64 {
    workflows * EXPRESS_REQUEST + seconds * EXPRESS_GIGABYTES * EXPRESS_GB_SECOND
}

/// Dollars, by what they are for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Write units of DynamoDB.
    pub writes: f64,
    /// Read units of DynamoDB.
    pub reads: f64,
    /// Requests of SQS.
    pub sqs: f64,
    /// Invocations of functions, and their time.
    pub lambda: f64,
}

impl Cost {
    /// What this costs.
    pub fn of<'a>(usage: &Usage, invocations: impl IntoIterator<Item = &'a Invocations>) -> Self {
        let lambda = |invoked: &Invocations| of_invocations(invoked.count as f64, invoked.gb_seconds);
        Self {
            writes: usage.write_units * WRITE_UNIT,
            reads: usage.read_units * READ_UNIT,
            sqs: usage.sqs_billed * SQS_REQUEST,
            lambda: invocations.into_iter().map(lambda).sum(),
        }
    }

    /// All of it.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.writes + self.reads + self.sqs + self.lambda
    }

    /// The share of each of a million tasks, of this many.
    #[must_use]
    pub fn per_million(&self, tasks: u64) -> Self {
        let share = |dollars: f64| if tasks == 0 { 0.0 } else { dollars * 1e6 / tasks as f64 };
        Self { writes: share(self.writes), reads: share(self.reads), sqs: share(self.sqs), lambda: share(self.lambda) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_costs_what_the_lists_say() {
        let usage = Usage { write_units: 5e6, read_units: 1e6, sqs_billed: 250_000.0, ..Usage::default() };
        let invoked =
            [Invocations { count: 40_000, gb_seconds: 900.0 }, Invocations { count: 10_000, gb_seconds: 100.0 }];
        let cost = Cost::of(&usage, &invoked);
        let cents = |dollars: f64| (dollars * 10_000.0).round() / 100.0;
        assert_eq!([cost.writes, cost.reads, cost.sqs, cost.lambda].map(cents), [312.5, 12.5, 10.0, 2.33]);
        assert_eq!(cents(cost.total()), 337.33);
        let share = cost.per_million(2_000_000);
        assert_eq!((cents(share.writes), cents(share.total())), (156.25, 168.67));
        assert_eq!(cost.per_million(0), Cost::default());
    }
}
