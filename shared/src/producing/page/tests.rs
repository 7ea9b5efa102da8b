use serde_json::json;

use super::*;

fn policy(key: Option<&str>) -> CompiledPolicy {
    let mut policy =
        json!({"kind": "mail", "target": "content.city", "batch_api": {"url": "https://example.com/mails"}});
    policy["key"] = json!(key);
    CompiledPolicy::new(serde_json::from_value(policy).unwrap()).unwrap()
}

fn producer(key: Option<&str>) -> Producer {
    let mut producer = json!({"source": {"url": "https://example.com/"}, "partitions": 3});
    producer["key"] = json!(key);
    serde_json::from_value(producer).unwrap()
}

fn rows(n: usize) -> Vec<Value> {
    (0..n).map(|n| json!({"kind": "mail", "content": {"city": "Bonn", "to": n.to_string()}})).collect()
}

#[test]
fn each_row_is_in_one_partition_by_either_key() {
    for (of_policy, of_producer) in [(Some("content.to"), None), (None, Some("content.to"))] {
        let policy = policy(of_policy);
        let mut taken = 0;
        for partition in 0..3 {
            let sieve = Sieve::new(&producer(of_producer), partition, 0).unwrap();
            let mut positions = Vec::new();
            let sifted = sieve.sift(rows(100), |_| Some(&policy), |row| positions.push(row.to_string()));
            assert_eq!((sifted.rows, sifted.bad), (100, 0));
            assert_eq!(sifted.tasks.len() as u64 + sifted.dropped, 100);
            let ours = |task: &TaskRequest| share(task.content["to"].as_str().unwrap(), 3) == partition;
            assert!(sifted.tasks.iter().all(ours));
            let to: Vec<&str> = sifted.tasks.iter().map(|task| task.content["to"].as_str().unwrap()).collect();
            assert_eq!(to, positions);
            taken += sifted.tasks.len();
        }
        assert_eq!(taken, 100);
    }
    let sieve = Sieve::new(&producer(None), 2, 0).unwrap();
    let unkeyed = policy(None);
    assert_eq!(sieve.sift(rows(9), |_| Some(&unkeyed), |_| {}).tasks.len(), 9, "without a key none is dropped");
}

/// A source that gives each partition its own rows knows nothing of their keys.
#[test]
fn a_row_is_its_own_partitions_where_the_source_says_so() {
    let s3 = json!({"source": {"s3": {"bucket": "rows", "key": "a.ndjson"}}, "partitions": 3});
    let producer: Producer = serde_json::from_value(s3).unwrap();
    let policy = policy(Some("content.to"));
    for partition in 0..3 {
        let sifted = Sieve::new(&producer, partition, 0).unwrap().sift(rows(20), |_| Some(&policy), |_| {});
        assert_eq!((sifted.tasks.len(), sifted.dropped), (20, 0));
    }
}

#[test]
fn what_is_bad_is_named_by_its_position_where_it_has_one() {
    let sieve = Sieve::new(&producer(None), 0, 40).unwrap();
    let at = |object: Option<&str>, line| Some(Position { object: object.map(Into::into), line, byte: 70 });
    let rows = vec![
        Given { kind: None, row: Err("is not JSON".to_owned()), at: at(None, Some(3)) },
        Given { kind: Some("letter".into()), row: Ok(json!({})), at: at(Some("a/b.csv"), None) },
        Given::from(json!(7)),
    ];
    let sifted = sieve.sift(rows, |_| None, |_| {});
    let problems: Vec<&str> = sifted.bad_rows.iter().map(|bad| bad.problem.as_str()).collect();
    assert_eq!((sifted.bad, problems[0]), (3, "line 3: is not JSON"));
    assert!(problems[1].starts_with("a/b.csv, the line at byte 70: `kind`"), "{problems:?}");
}

/// Policies are not asked: what they say may change.
#[test]
fn a_whole_page_is_all_of_its_rows_or_none() {
    let at = |line| Some(Position { object: None, line: Some(line), byte: 0 });
    let rows = vec![
        Given { kind: Some("no policy".into()), row: Ok(json!(7)), at: at(2) },
        Given::from(json!({"kind": "mail", "content": {}})),
    ];
    let whole = Whole::new(rows.clone(), 40).unwrap();
    let kinds: Vec<&str> = whole.tasks.iter().map(|task| task.kind.as_str()).collect();
    assert_eq!(kinds, ["no policy", "mail"]);
    assert_eq!(whole.bad_row(0, "is wrong"), BadRow { row: 40, problem: "line 2: is wrong".to_owned() });
    assert_eq!(whole.bad_row(1, "is wrong"), BadRow { row: 41, problem: "is wrong".to_owned() });
    let wrong = Given { kind: None, row: Ok(json!({"kind": "mail"})), at: at(9) };
    let bad = Whole::new([rows, vec![wrong; 20]].concat(), 40).unwrap_err();
    assert_eq!((bad.len(), bad[0].row), (BAD_ROWS_SHOWN_MAX, 42));
    assert!(bad[0].problem.starts_with("line 9: `content`"), "{bad:?}");
}

#[test]
fn what_is_no_task_is_named_by_its_row() {
    let sieve = Sieve::new(&producer(Some("content.to")), 0, 40).unwrap();
    let policy = policy(None);
    let mut rows = vec![
        json!(7),
        json!({"kind": "mail"}),
        json!({"kind": "mail", "content": {}, "id": "x"}),
        json!({"kind": "letter", "content": {}}),
        json!({"kind": "no/kind", "content": {}}),
        json!({"kind": "mail", "content": {"city": "Bonn"}}),
        json!({"kind": "mail", "content": {"to": "x"}}),
        json!({"kind": "mail", "content": {"city": "Bonn", "to": "x".repeat(2_000)}}),
    ];
    rows.extend((0..5).map(|_| json!(null)));
    let sifted = sieve.sift(rows, |kind| (kind == "mail").then_some(&policy), |_| {});
    assert_eq!((sifted.rows, sifted.bad, sifted.tasks.len()), (13, 13, 0));
    let at: Vec<u64> = sifted.bad_rows.iter().map(|bad| bad.row).collect();
    assert_eq!(at, (40..50).collect::<Vec<u64>>());
    let starts = ["", "`content`", "`id`", "`kind`", "`kind`", "`producer.key`", "`target`", "`producer.key`"];
    for (bad, start) in sifted.bad_rows.iter().zip(starts) {
        assert!(bad.problem.starts_with(start) && bad.problem.len() <= BAD_ROW_BYTES_MAX + 3, "{bad:?}");
    }
}
