//! How long it takes at least, by each limit. docs/SCALING.md explains them and names their sources.

use fanfold::limits::PLACES_PER_RECORD;
use fanfold::store::places::Spread;
use indicatif::HumanCount;
use serde::Serialize;

use super::Shape;
use super::sample::Measured;
use crate::count::count;

/// Write units per second that a new on-demand table takes, and how often it doubles:
/// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/warm-throughput-scenarios.html>.
const NEW_TABLE_UNITS: f64 = 4_000.0;
const DOUBLES_AFTER: f64 = 1_800.0;

/// The quota of one table, in write units per second:
/// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html>.
const TABLE_UNITS: f64 = 40_000.0;

/// Batches per second that the leaders of one lane form, since a batch takes some seven requests.
const BATCHES_PER_SECOND: f64 = 15.0;

/// Write and read units per second of one partition of DynamoDB, which a record of places is in:
/// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html>.
const PARTITION_WRITE_UNITS: f64 = 1_000.0;
const PARTITION_READ_UNITS: f64 = 3_000.0;

/// A limit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Limit {
    /// What limits.
    pub(super) what: &'static str,
    /// By what arithmetic.
    pub(super) how: String,
    /// The seconds that it takes at least.
    pub(super) seconds: f64,
    /// What to do about it.
    pub(super) remedy: &'static str,
}

/// All limits, the one that takes longest first.
pub(super) fn limits(shape: &Shape, measured: &Measured) -> Vec<Limit> {
    let mut limits = Vec::from(of_calls(shape));
    limits.extend(of_tables(shape.items as f64 * measured.write_units));
    limits.extend(shape.rate.map(|rate| Limit {
        what: "the rate",
        how: format!("{} per second", count(rate as u64, "item", "items")),
        seconds: shape.items as f64 / rate,
        remedy: "a higher rate of the batch API",
    }));
    limits.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    limits
}

/// What limits the calls.
fn of_calls(shape: &Shape) -> [Limit; 3] {
    let (calls, parallel, per_second) = (shape.calls() as f64, shape.parallel(), calls_per_second(shape.calls_at_once));
    let call = humantime::format_duration(shape.call);
    let of_a_lane = shape.batches_per_target();
    [
        Limit {
            what: "the batch API",
            how: format!("{} of {call}, {parallel} at once", count(shape.calls(), "call", "calls")),
            seconds: calls * shape.call.as_secs_f64() / parallel as f64,
            remedy: "larger batches, more calls at once (`max_calls`, `max_in_flight`, BatchApiConcurrency), or partitions",
        },
        Limit {
            what: "a lane's leaders",
            how: format!("{} per lane, some {BATCHES_PER_SECOND} per second", count(of_a_lane, "batch", "batches")),
            seconds: of_a_lane as f64 / BATCHES_PER_SECOND,
            remedy: "larger batches, or partitions",
        },
        Limit {
            what: "the kind's places",
            how: format!(
                "two writes per call, {PLACES_PER_RECORD} places per record: {per_second:.0} calls per second"
            ),
            seconds: calls / per_second,
            remedy: "larger batches, a higher BatchApiConcurrency, or several kinds",
        },
    ]
}

/// What limits so many write units.
fn of_tables(units: f64) -> [Limit; 2] {
    let written = count(units.round() as u64, "write unit", "write units");
    let [new_table, quota] = [NEW_TABLE_UNITS, TABLE_UNITS].map(|units| HumanCount(units as u64));
    [
        Limit {
            what: "a new table",
            how: format!("{written}, {new_table} per second; twice as many after each half hour"),
            seconds: on_a_new_table(units),
            remedy: "warm throughput for the tasks table and its index before the burst",
        },
        Limit {
            what: "the table's quota",
            how: format!("{written}, {quota} per second"),
            seconds: units / TABLE_UNITS,
            remedy: "a higher quota",
        },
    ]
}

/// How long a new table takes for so many units: it doubles every half hour, up to its quota.
fn on_a_new_table(mut units: f64) -> f64 {
    let (mut seconds, mut per_second) = (0.0, NEW_TABLE_UNITS);
    while units > per_second * DOUBLES_AFTER && per_second < TABLE_UNITS {
        units -= per_second * DOUBLES_AFTER;
        seconds += DOUBLES_AFTER;
        per_second = (per_second * 2.0).min(TABLE_UNITS);
    }
    seconds + units / per_second
}

/// The calls per second of one kind: each changes the record of its place twice, and one in a further record reads the first one
/// for one unit.
fn calls_per_second(places: u32) -> f64 {
    let records = Spread::default().records(places);
    (f64::from(records) * PARTITION_WRITE_UNITS / 2.0).min(PARTITION_READ_UNITS)
}

#[cfg(test)]
mod tests {
    use super::super::tests::shape;
    use super::*;

    #[test]
    fn a_new_table_takes_longer_for_little_more_than_that_for_more() {
        assert_eq!(on_a_new_table(4_000.0), 1.0);
        assert_eq!(on_a_new_table(7_200_000.0), 1_800.0);
        // Then it takes 8,000 a second.
        assert_eq!(on_a_new_table(7_200_000.0 + 8_000.0), 1_801.0);
        // 4,000, 8,000, 16,000 and 32,000 for half an hour each, then 40,000.
        assert_eq!(on_a_new_table(60_000.0 * 1_800.0 + 40_000.0), 7_201.0);
    }

    #[test]
    fn the_longest_comes_first() {
        let measured = Measured { write_units: 2.5, ..Measured::default() };
        let first = |shape: &Shape| limits(shape, &measured)[0].what;
        // 10,000 calls of 0.2 s, 15 at once, take 133 s; 2,500,000 units take 625 s.
        assert_eq!(first(&shape(1_000_000, 100, 100)), "a new table");
        // One target is called one batch after the other: 2,000 s.
        assert_eq!(first(&shape(1_000_000, 1, 100)), "the batch API");
        assert_eq!(first(&Shape { rate: Some(100.0), ..shape(1_000_000, 1, 100) }), "the rate");
        assert_eq!((calls_per_second(15), calls_per_second(75), calls_per_second(750)), (500.0, 2_500.0, 3_000.0));
    }
}
