//! docs/SCALING.md says what the code does: its figures that are constants are those of the code.

use fanfold::limits::{
    BATCH_MEMBERS_MAX, CONTENTION_TRIES_MAX, GROUP_ITEMS_MAX, GROUPS_COUNTED_MAX, IN_FLIGHT_MAX, INDEX_SHARDS,
    ITEMS_PER_ADD_MAX, PARTITIONS_MAX, SWEEP_SEGMENTS, TASKS_PER_REQUEST_MAX,
};
use fanfold::store::gates::places_max;
use fanfold_local::Template;

const PAGE: &str = include_str!("../../../docs/SCALING.md");

/// A number as the page writes it.
fn written(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&[u8]> = digits.as_bytes().rchunks(3).rev().collect();
    groups.iter().map(|group| String::from_utf8_lossy(group)).collect::<Vec<_>>().join(",")
}

#[test]
fn its_figures_are_those_of_the_code() {
    let groups = |items: u64| written(items.div_ceil(u64::from(GROUP_ITEMS_MAX)));
    let adds = |items: u64| written(items.div_ceil(u64::from(ITEMS_PER_ADD_MAX)));
    let (million, billion) = (1_000_000, 1_000_000_000);
    for said in [
        format!("over {} partition keys", written(INDEX_SHARDS)),
        format!("in {SWEEP_SEGMENTS} segments"),
        format!("{} items share a record", written(GROUP_ITEMS_MAX.into())),
        format!("{} groups, {} adds", groups(million), adds(million)),
        format!("{} groups, {} adds", groups(billion), adds(billion)),
        format!("{} groups in {} adds", groups(billion), adds(billion)),
        format!("up to {} open groups", written(GROUPS_COUNTED_MAX as u64)),
        format!("at most {} batches of a lane", written(IN_FLIGHT_MAX.into())),
        format!("up to {} partitions", written(PARTITIONS_MAX.into())),
        format!("up to {} members", written(BATCH_MEMBERS_MAX.into())),
        format!("up to {} tasks in a request", written(TASKS_PER_REQUEST_MAX as u64)),
        format!("after {CONTENTION_TRIES_MAX} tries"),
        format!("| 20 (default) | {} |", places_max(20)),
        format!("| 100 | {} |", places_max(100)),
        format!("| 1,000 | {} |", places_max(1_000)),
    ] {
        assert!(PAGE.contains(&said), "docs/SCALING.md does not say `{said}`");
    }
}

#[test]
fn its_settings_of_queues_are_those_of_the_template() {
    let template = Template::parse(include_str!("../../../template.yaml")).unwrap();
    for source in template.event_sources() {
        let name = source.function.trim_end_matches("Function").to_lowercase();
        let window = source.window.as_secs();
        let row = format!("| `{name}` | {} | {window} s |", written(source.batch_size as u64));
        assert!(PAGE.contains(&row), "docs/SCALING.md does not say `{row}`");
    }
}
