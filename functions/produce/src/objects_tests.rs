//! Pages of objects that are in memory.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use uuid::Uuid;

use serde_json::json;

use super::*;
use crate::s3::window;

/// Objects in memory; the version of one is its number of bytes.
#[derive(Debug, Default)]
struct Memory(BTreeMap<String, Vec<u8>>);

impl Memory {
    fn of(&self, name: &str, version: Option<&str>) -> Result<&[u8], SourceError> {
        let bytes = self.0.get(name).ok_or_else(|| SourceError::for_good("gone"))?;
        match version.is_none_or(|version| version == bytes.len().to_string()) {
            true => Ok(bytes),
            false => Err(SourceError::for_good("changed")),
        }
    }
}

impl Store for Memory {
    async fn head(&self, name: &str, version: Option<&str>) -> Result<Arc<Head>, SourceError> {
        let bytes = self.of(name, version)?;
        let first = bytes[..bytes.len().min(OBJECT_HEAD_BYTES)].to_vec();
        let compressed = name.contains("compressed");
        Ok(Arc::new(Head { version: bytes.len().to_string(), size: bytes.len() as u64, compressed, first }))
    }

    async fn bytes(&self, name: &str, version: &str, from: u64, len: u64) -> Result<Vec<u8>, SourceError> {
        let bytes = self.of(name, Some(version))?;
        Ok(bytes[from as usize..(from + len) as usize].to_vec())
    }

    async fn decompressed(&self, name: &str, version: &str, from: u64, len: usize) -> Result<Bytes, SourceError> {
        window(futures::stream::iter(self.of(name, Some(version))?.chunks(1_000).map(Ok)), from, len).await
    }

    async fn names(&self, prefix: &str, after: Option<&str>) -> Result<Names, SourceError> {
        let mut names =
            self.0.keys().filter(|name| name.starts_with(prefix) && after.is_none_or(|after| name.as_str() > after));
        let page = names.by_ref().take(3).cloned().collect();
        Ok(Names { names: page, more: names.next().is_some() })
    }
}

fn compressed(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn objects(changes: Value) -> Objects {
    let mut objects = json!({"bucket": "rows"});
    objects.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    serde_json::from_value(objects).unwrap()
}

async fn ask(
    store: &Memory,
    objects: &Objects,
    partition: u32,
    of: u32,
    cursor: Value,
) -> Result<SourceAnswer, SourceError> {
    let ask = SourceRequest { fanout: Uuid::nil(), partition, of, cursor };
    Pages { store, objects, ask: &ask }.page().await
}

/// Every row that the partitions get, by partition. Each page is asked for twice: it is the same.
async fn read(store: &Memory, objects: &Objects, of: u32) -> Result<Vec<Vec<Given>>, SourceError> {
    let mut all = Vec::new();
    for partition in 0..of {
        let (mut rows, mut cursor) = (Vec::new(), Value::Null);
        loop {
            let page = ask(store, objects, partition, of, cursor.clone()).await?;
            assert_eq!(ask(store, objects, partition, of, cursor.clone()).await.unwrap(), page);
            rows.extend(page.rows);
            match page.cursor {
                None => break,
                Some(next) => assert_ne!(std::mem::replace(&mut cursor, next), cursor),
            }
        }
        all.push(rows);
    }
    Ok(all)
}

fn contents(rows: Vec<Vec<Given>>) -> Vec<Value> {
    let mut all: Vec<Value> = rows.into_iter().flatten().map(|given| given.row.unwrap()).collect();
    all.sort_by_key(|content| content["n"].as_str().map(|n| n.parse::<u64>().unwrap()));
    all
}

fn table(rows: std::ops::Range<u64>) -> String {
    rows.fold("n,text\n".to_owned(), |text, n| format!("{text}{n},{}\n", "x".repeat((n % 90) as usize)))
}

fn wanted(rows: std::ops::Range<u64>) -> Vec<Value> {
    rows.map(|n| json!({"n": n.to_string(), "text": "x".repeat((n % 90) as usize)})).collect()
}

#[tokio::test]
async fn one_object_is_read_by_all_partitions_in_parts() {
    // Several times what is read at once.
    let text = table(0..30_000);
    assert!(text.len() > 2 * OBJECT_PART_BYTES);
    let store = Memory(BTreeMap::from([("a.csv".to_owned(), text.into_bytes())]));
    let objects = objects(json!({"key": "a.csv", "kind": "mail"}));
    for of in [1, 2, 7, 64] {
        let rows = read(&store, &objects, of).await.unwrap();
        assert!(rows.iter().all(|rows| (rows.len() as i64 - 30_000 / i64::from(of)).abs() < 2_000));
        assert_eq!(contents(rows), wanted(0..30_000));
    }
}

#[tokio::test]
async fn a_compressed_object_is_read_by_one_partition() {
    for name in ["a.csv.gz", "compressed.csv"] {
        let store = Memory(BTreeMap::from([(name.to_owned(), compressed(&table(0..9_000)))]));
        let objects = objects(json!({"key": name, "kind": "mail"}));
        for of in [1, 3] {
            let rows = read(&store, &objects, of).await.unwrap();
            let readers: Vec<usize> = (0..of as usize).filter(|partition| !rows[*partition].is_empty()).collect();
            assert_eq!(readers, [share(name, of) as usize]);
            let last = rows[readers[0]].last().unwrap().at.clone().unwrap();
            assert_eq!((last.line, last.object), (Some(9_001), None));
            assert_eq!(contents(rows), wanted(0..9_000));
        }
    }
}

#[tokio::test]
async fn many_objects_are_shared_out_and_each_is_read_by_one_partition() {
    let mut store = Memory::default();
    for n in 0..40 {
        let text = table(n * 10..n * 10 + 10);
        let (name, bytes) = if n % 2 == 0 { ("csv", text.into_bytes()) } else { ("csv.gz", compressed(&text)) };
        store.0.insert(format!("2026/{n:02}.{name}"), bytes);
    }
    store.0.insert("2026/empty.csv".to_owned(), Vec::new());
    store.0.insert("2027/00.csv".to_owned(), table(0..5).into_bytes());
    let objects = objects(json!({"prefix": "2026/", "format": "csv", "kind": "mail"}));
    for of in [1, 4, 64] {
        let rows = read(&store, &objects, of).await.unwrap();
        for (partition, rows) in rows.iter().enumerate() {
            let owner = |given: &Given| share(given.at.as_ref().unwrap().object.as_ref().unwrap(), of) as usize;
            assert!(rows.iter().all(|given| owner(given) == partition));
        }
        assert_eq!(contents(rows), wanted(0..400));
    }
}

/// In any order, whatever else is in the bucket. Those that are large are not left to one partition by chance.
#[tokio::test]
async fn objects_that_are_named_are_dealt_out_in_turn() {
    let mut store = Memory::default();
    for n in 0..20 {
        store.0.insert(format!("{n:02}.csv"), table(n * 10..n * 10 + 10).into_bytes());
    }
    store.0.insert("07b.csv".to_owned(), table(900..905).into_bytes());
    let keys: Vec<String> = (0..20).rev().map(|n| format!("{n:02}.csv")).collect();
    let all = objects(json!({"keys": keys, "kind": "mail"}));
    for of in [1, 4, 20, 64] {
        let rows = read(&store, &all, of).await.unwrap();
        for (partition, rows) in rows.iter().enumerate() {
            let object = |given: &Given| given.at.as_ref().unwrap().object.as_ref().unwrap().to_string();
            let mut names: Vec<String> = rows.iter().map(object).collect();
            names.dedup();
            let mine = (partition..20).step_by(of as usize).map(|n| format!("{n:02}.csv"));
            assert_eq!(names, mine.collect::<Vec<_>>());
        }
        assert_eq!(contents(rows), wanted(0..200));
    }
}

#[tokio::test]
async fn one_object_among_keys_is_read_as_one_by_its_key() {
    let store = Memory(BTreeMap::from([("a.csv".to_owned(), table(0..9_000).into_bytes())]));
    let [one, same] =
        [json!({"keys": ["a.csv"], "kind": "mail"}), json!({"key": "a.csv", "kind": "mail"})].map(objects);
    let rows = read(&store, &one, 3).await.unwrap();
    assert!(rows.iter().all(|rows| rows.len() > 2_000), "each partition reads a part");
    assert_eq!(rows, read(&store, &same, 3).await.unwrap());
}

#[tokio::test]
async fn of_several_objects_an_error_names_the_one_that_cannot_be_read() {
    let store = Memory(BTreeMap::from([
        ("00.csv".to_owned(), table(0..10).into_bytes()),
        ("large.csv".to_owned(), table(0..30_000).into_bytes()),
    ]));
    let gone = objects(json!({"keys": ["00.csv", "gone.csv"], "kind": "mail"}));
    assert_eq!(read(&store, &gone, 1).await.unwrap_err().message, "gone.csv: gone");
    let all = objects(json!({"prefix": "large", "format": "csv", "kind": "mail"}));
    let cursor = ask(&store, &all, 0, 1, Value::Null).await.unwrap().cursor.unwrap();
    let changed = Memory(BTreeMap::from([("large.csv".to_owned(), table(0..30_001).into_bytes())]));
    let error = ask(&changed, &all, 0, 1, cursor).await.unwrap_err();
    assert!(error.for_good && error.message == "large.csv: changed", "{error}");
}

/// What was read before would be followed by rows of another object.
#[tokio::test]
async fn an_object_that_changes_while_it_is_read_is_an_error() {
    let mut store = Memory(BTreeMap::from([("a.csv".to_owned(), table(0..30_000).into_bytes())]));
    let objects = objects(json!({"key": "a.csv", "kind": "mail"}));
    let first = ask(&store, &objects, 0, 1, Value::Null).await.unwrap();
    // A page of rows is always of a version that its cursor names.
    assert_eq!(first.rows, []);
    let cursor = first.cursor.unwrap();
    store.0.insert("a.csv".to_owned(), table(0..30_001).into_bytes());
    let error = ask(&store, &objects, 0, 1, cursor).await.unwrap_err();
    assert!(error.for_good && error.message == "changed", "{error}");
}

#[tokio::test]
async fn what_cannot_be_read_is_named_by_its_line() {
    let store = Memory(BTreeMap::from([
        ("a.ndjson".to_owned(), b"\xef\xbb\xbf{\"kind\": \"mail\", \"content\": 1}\n\n{\n7\n".to_vec()),
        ("none.csv".to_owned(), Vec::new()),
        ("none.ndjson".to_owned(), Vec::new()),
        ("long.ndjson".to_owned(), vec![b'1'; 2 * OBJECT_PART_BYTES]),
        ("no.csv.gz".to_owned(), b"a,b\n1,2\n".to_vec()),
        ("cut.ndjson.gz".to_owned(), compressed("1\n2\n")[..12].to_vec()),
        ("quoted.csv".to_owned(), b"a,b\n\"1\n2\",3\n".to_vec()),
    ]));
    let rows = read(&store, &objects(json!({"key": "a.ndjson"})), 1).await.unwrap().remove(0);
    assert_eq!(rows[0].row, Ok(json!({"kind": "mail", "content": 1})));
    let lines: Vec<Option<u64>> = rows.iter().map(|given| given.at.as_ref().unwrap().line).collect();
    assert_eq!(lines, [Some(1), Some(3), Some(4)]);
    assert!(rows[1].row.as_ref().unwrap_err().starts_with("is not JSON"));
    assert_eq!(read(&store, &objects(json!({"key": "none.ndjson"})), 2).await.unwrap(), [vec![], vec![]]);
    for (name, of, why) in [
        ("none.csv", 1, "none.csv: is empty"),
        ("long.ndjson", 1, "long.ndjson: line 1: does not end within 524288 bytes"),
        ("no.csv.gz", 1, "no.csv.gz: is not gzip"),
        ("cut.ndjson.gz", 1, "is not gzip"),
        ("quoted.csv", 2, "has a line end in quotes"),
        ("gone.csv", 1, "gone"),
    ] {
        let error = read(&store, &objects(json!({"key": name, "kind": "mail"})), of).await.unwrap_err();
        assert!(error.for_good && error.message.contains(why), "{name}: {error}");
    }
}
