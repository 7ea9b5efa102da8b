//! What a bench used, as JSON.

use fanfold_local::prices::Cost;
use fanfold_local::{Invocations, Usage};
use serde_json::{Value, json};

/// What was used between two moments, for `per` things.
pub(crate) fn used<'a>(
    before: &Usage,
    after: &Usage,
    invoked: impl Iterator<Item = &'a Invocations> + Clone,
    per: u64,
) -> Value {
    let usage = Usage {
        write_units: after.write_units - before.write_units,
        read_units: after.read_units - before.read_units,
        dynamodb_requests: after.dynamodb_requests - before.dynamodb_requests,
        sqs_requests: after.sqs_requests - before.sqs_requests,
        sqs_billed: after.sqs_billed - before.sqs_billed,
        ..Usage::default()
    };
    json!({
        "write_units": usage.write_units,
        "read_units": usage.read_units,
        "dynamodb_requests": usage.dynamodb_requests,
        "sqs_requests": usage.sqs_requests,
        "invocations": invoked.clone().map(|invoked| invoked.count).sum::<u64>(),
        "dollars_per_million": Cost::of(&usage, invoked).per_million(per).total(),
    })
}
