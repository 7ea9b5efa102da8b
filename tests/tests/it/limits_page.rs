//! The page of limits says what the code says.

use std::collections::BTreeMap;
use std::time::Duration;

use fanfold::limits;

/// The constants that the page names. Durations are in the unit of their row.
fn constants() -> BTreeMap<&'static str, u64> {
    let days = |time: Duration| time.as_secs() / (24 * 3_600);
    BTreeMap::from([
        ("ITEMS_PER_ADD_MAX", limits::ITEMS_PER_ADD_MAX.into()),
        ("GROUP_ITEMS_MAX", limits::GROUP_ITEMS_MAX.into()),
        ("USER_KEY_BYTES_MAX", limits::USER_KEY_BYTES_MAX as u64),
        ("FANOUTS_PER_REQUEST_MAX", limits::FANOUTS_PER_REQUEST_MAX as u64),
        ("TASKS_PER_FANOUT_MAX", limits::TASKS_PER_FANOUT_MAX as u64),
        ("GROUPS_PER_ACK_MAX", limits::GROUPS_PER_ACK_MAX as u64),
        ("THEN_BYTES_MAX", limits::THEN_BYTES_MAX as u64),
        ("THEN_RESULTS_MAX", limits::THEN_RESULTS_MAX as u64),
        ("IDLE_OPEN", days(limits::IDLE_OPEN)),
        ("IDLE_SEALED", days(limits::IDLE_SEALED)),
        ("WAIT_MAX", limits::WAIT_MAX.as_secs()),
        ("TASKS_PER_REQUEST_MAX", limits::TASKS_PER_REQUEST_MAX as u64),
        ("CONTENT_BYTES_MAX", limits::CONTENT_BYTES_MAX as u64),
        ("CONTENT_DEPTH_MAX", limits::CONTENT_DEPTH_MAX as u64),
        ("TARGET_BYTES_MAX", limits::TARGET_BYTES_MAX as u64),
        ("BATCH_MEMBERS_MAX", limits::BATCH_MEMBERS_MAX.into()),
        ("BATCH_BYTES_MAX", limits::BATCH_BYTES_MAX.into()),
        ("BATCH_BYTES_DEFAULT", limits::BATCH_BYTES_DEFAULT.into()),
        ("IN_FLIGHT_MAX", limits::IN_FLIGHT_MAX.into()),
        ("ERROR_BYTES_MAX", limits::ERROR_BYTES_MAX as u64),
        ("ERRORS_PER_BATCH_MAX", limits::ERRORS_PER_BATCH_MAX as u64),
        ("ANSWER_BYTES_MAX", limits::ANSWER_BYTES_MAX as u64),
        ("RESULT_BYTES_MAX", limits::RESULT_BYTES_MAX as u64),
        ("RESULTS_PER_BATCH_BYTES_MAX", limits::RESULTS_PER_BATCH_BYTES_MAX as u64),
        ("ANSWERS_WITHIN_MAX", limits::ANSWERS_WITHIN_MAX.as_secs() / 3_600),
        ("REFUSED_MAX", days(limits::REFUSED_MAX)),
        ("IDEMPOTENCY_KEY_BYTES_MAX", limits::IDEMPOTENCY_KEY_BYTES_MAX as u64),
        ("RETENTION", days(limits::RETENTION)),
        ("RETENTION_DAYS_MAX", limits::RETENTION_DAYS_MAX.into()),
        ("KEY_RETENTION", days(limits::KEY_RETENTION) / 7),
        ("GROUP_RETENTION", days(limits::GROUP_RETENTION) / 7),
        ("REQUEST_RETENTION", days(limits::REQUEST_RETENTION) / 7),
        ("PRODUCER_PARTITIONS_MAX", limits::PRODUCER_PARTITIONS_MAX.into()),
        ("SOURCE_ANSWER_BYTES_MAX", limits::SOURCE_ANSWER_BYTES_MAX as u64),
        ("SOURCE_TIMEOUT", limits::SOURCE_TIMEOUT.as_secs()),
        ("CURSOR_BYTES_MAX", limits::CURSOR_BYTES_MAX as u64),
        ("SOURCE_TRIES_MAX", limits::SOURCE_TRIES_MAX.into()),
    ])
}

#[test]
fn every_limit_on_the_page_is_the_one_in_the_code() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/limits.md")).unwrap();
    let row = |line: &str| {
        let cells: Vec<String> = line.split('|').map(|cell| cell.trim().replace(['`', ','], "")).collect();
        Some((
            cells.get(3).filter(|name| name.chars().any(char::is_uppercase))?.clone(),
            cells[2].parse::<u64>().unwrap(),
        ))
    };
    let rows: BTreeMap<String, u64> = page.lines().filter_map(row).collect();
    let expected: BTreeMap<String, u64> =
        constants().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    assert_eq!(rows, expected);
}
