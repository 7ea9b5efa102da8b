//! Sources in AWS: Lambda functions, and objects of S3.

mod endpoint;

use std::io::Write;
use std::sync::Arc;

use fanfold::delivery::Step;
use fanfold::limits::SOURCE_ANSWER_BYTES_MAX;
use fanfold::producing::Source;
use fanfold_produce::{AllSources, Produce, SourceAnswer, SourceError, Sources};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;
use endpoint::{Amazon, Heard};

/// The endpoint, and sources that ask it.
struct Asked {
    stack: TestStack,
    amazon: Arc<Amazon>,
    sources: Arc<AllSources>,
}

impl Asked {
    async fn new() -> Self {
        let stack = TestStack::with(json!({"key": "content.order"})).await;
        let amazon = Arc::new(Amazon::default());
        let sources = Arc::new(amazon.serve(&stack).await);
        Self { stack, amazon, sources }
    }

    async fn with(objects: impl IntoIterator<Item = (&'static str, Vec<u8>)>) -> Self {
        let asked = Self::new().await;
        let objects = objects.into_iter().map(|(key, bytes)| (key.to_owned(), bytes));
        asked.amazon.objects.lock().unwrap().extend(objects);
        asked
    }

    async fn ask(&self, source: &Value, cursor: Value) -> Result<SourceAnswer, SourceError> {
        let source: Source = serde_json::from_value(source.clone()).unwrap();
        let ask = SourceRequest { fanout: Uuid::nil(), partition: 0, of: 1, cursor };
        let now = self.stack.world.now();
        self.amazon.signed_at(now);
        self.sources.ask(&source, &ask, now).await
    }

    fn heard(&self) -> Vec<Heard> {
        self.amazon.heard.lock().unwrap().clone()
    }

    /// Whether a partition has not ended.
    async fn runs(&self, id: Uuid) -> bool {
        partitions(&self.stack, id).await.iter().any(|it| it.state == PartitionState::Running)
    }

    /// Lets the step that asks these sources produce a fan-out to its end.
    async fn produce(&self, source: &Value, partitions: u32, changes: &Value) -> Uuid {
        let mut producer = json!({"source": source, "partitions": partitions});
        producer.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        let producer: Producer = serde_json::from_value(producer).unwrap();
        producer.check().unwrap();
        let sources = Arc::<AllSources>::clone(&self.sources);
        let produce = Produce::from_environment(self.stack.surroundings(), sources).unwrap();
        let opened = self.stack.producing.open(&self.stack.tracking, request(producer), None).await.unwrap();
        // Not one message may be left to the step that asks the stack's own sources.
        while self.runs(opened.fanout.id).await {
            let messages = self.stack.take(QueueName::Produce).await;
            self.amazon.signed_at(self.stack.world.now());
            assert!(produce.deliver(messages).await.is_empty());
        }
        self.stack.drain().await;
        opened.fanout.id
    }
}

fn compressed(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn csv(rows: std::ops::Range<usize>) -> String {
    rows.fold("depot,order\n".to_owned(), |text, n| format!("{text}{},{}\r\n", n % 3, name(n)))
}

fn ndjson(rows: std::ops::Range<usize>) -> String {
    rows.map(|n| format!("{}\n", row(n))).collect()
}

#[tokio::test]
async fn a_function_gets_the_question_as_its_event() {
    let asked = Asked::new().await;
    let answer = json!({"tasks": [row(1)], "cursor": 8});
    asked.amazon.answers.lock().unwrap().push_back((200, false, answer));
    let answer = asked.ask(&json!({"lambda": "rows:live"}), json!({"after": 7})).await.unwrap();
    assert_eq!((answer.rows, answer.cursor), (vec![row(1).into()], Some(json!(8))));
    let heard = asked.heard();
    assert_eq!((heard.len(), heard[0].path.as_str()), (1, "/2015-03-31/functions/rows%3Alive/invocations"));
    let event: Value = serde_json::from_slice(&heard[0].body).unwrap();
    assert_eq!(event, json!({"fanout": Uuid::nil(), "partition": 0, "of": 1, "cursor": {"after": 7}}));
}

#[tokio::test]
async fn a_function_that_fails_may_succeed_and_one_that_answers_otherwise_may_not() {
    let failure = json!({"errorType": "Timeout", "errorMessage": "the database is down"});
    let large = json!({"tasks": ["x".repeat(SOURCE_ANSWER_BYTES_MAX)]});
    for (answer, for_good, why) in [
        ((200, true, failure), false, "the function failed: Timeout: the database is down"),
        ((200, true, json!({"tasks": []})), false, "the function failed: {\"tasks\":[]}"),
        (
            (429, false, json!({"Message": "Rate Exceeded."})),
            false,
            "lambda answered 429 Too Many Requests: Rate Exceeded.",
        ),
        ((502, false, json!(null)), false, "lambda answered 502 Bad Gateway"),
        ((403, false, json!({"Message": "no"})), false, "lambda answered 403 Forbidden: no"),
        ((404, false, json!({"Message": "no function"})), true, "lambda answered 404 Not Found: no function"),
        ((200, false, json!({"rows": []})), true, "the answer is not {\"tasks\": [...]}: `rows`: unknown field"),
        ((200, false, json!(null)), true, "the answer is not {\"tasks\": [...]}"),
        ((200, false, json!({"tasks": [], "cursor": 7})), true, "the answer's `cursor` is the one"),
        ((200, false, large), true, "the answer has more than"),
    ] {
        let asked = Asked::new().await;
        asked.amazon.answers.lock().unwrap().push_back(answer);
        let error = asked.ask(&json!({"lambda": "rows"}), json!(7)).await.unwrap_err();
        assert!(error.message.starts_with(why), "{error}, not {why}");
        assert_eq!(error.for_good, for_good, "{error}");
    }
}

#[tokio::test]
async fn the_rows_of_a_function_are_the_tasks_of_a_fanout() {
    let asked = Asked::new().await;
    let first = json!({"tasks": [row(0), row(1)], "cursor": 2});
    let answers = [(200, false, first), (200, false, json!({"tasks": [row(2)]}))];
    asked.amazon.answers.lock().unwrap().extend(answers);
    let id = asked.produce(&json!({"lambda": "rows"}), 1, &json!({})).await;
    assert_produced(&asked.stack, id, 0..3).await;
}

#[tokio::test]
async fn the_rows_of_an_object_are_the_tasks_of_a_fanout() {
    let asked = Asked::with([
        ("a b+c/\u{e4}.csv", csv(0..50).into_bytes()),
        ("a.ndjson", ndjson(0..50).into_bytes()),
        ("compressed.ndjson", compressed(&ndjson(0..50))),
        ("a.csv.gz", compressed(&csv(0..50))),
    ])
    .await;
    for (source, of) in [
        (json!({"bucket": "rows", "key": "a b+c/\u{e4}.csv", "kind": "parcel"}), 5),
        (json!({"bucket": "rows", "key": "a.ndjson"}), 1),
        (json!({"bucket": "rows", "key": "a.ndjson"}), 64),
        (json!({"bucket": "rows", "key": "compressed.ndjson"}), 3),
        (json!({"bucket": "rows", "key": "a.csv.gz", "kind": "parcel"}), 3),
    ] {
        // Each has a stack of its own: keys are known for a day.
        let one = Asked::new().await;
        one.amazon.objects.lock().unwrap().clone_from(&asked.amazon.objects.lock().unwrap());
        let id = one.produce(&json!({"s3": source}), of, &json!({})).await;
        let partitions = assert_produced(&one.stack, id, 0..50).await;
        assert_eq!(partitions.iter().map(|it| it.rows).sum::<u64>(), 50, "{source}: no row is read twice");
    }
}

#[tokio::test]
async fn the_objects_of_a_prefix_are_read_each_by_one_partition() {
    let asked = Asked::with([
        ("2026/a 1.ndjson", ndjson(0..10).into_bytes()),
        ("2026/b+2.ndjson.gz", compressed(&ndjson(10..20))),
        ("2026/c", ndjson(20..30).into_bytes()),
        ("2026/d/", Vec::new()),
        ("2026/e.compressed", compressed(&ndjson(30..40))),
        ("2027/a", ndjson(40..50).into_bytes()),
    ])
    .await;
    let source = json!({"s3": {"bucket": "rows", "prefix": "2026/", "format": "ndjson"}});
    let id = asked.produce(&source, 3, &json!({})).await;
    assert_produced(&asked.stack, id, 0..40).await;
    assert!(asked.heard().iter().any(|heard| heard.query.contains_key("start-after")));
}

/// An object larger than what is read at once: parts are asked for by their ranges, and the first line once per object.
#[tokio::test]
async fn an_object_is_read_in_ranges() {
    let rows = 60_000;
    let text = csv(0..rows);
    let asked = Asked::with([("a.csv", text.clone().into_bytes())]).await;
    let source = json!({"s3": {"bucket": "rows", "key": "a.csv", "kind": "parcel"}});
    let (mut cursor, mut found) = (Value::Null, 0);
    loop {
        let answer = asked.ask(&source, cursor).await.unwrap();
        for given in answer.rows {
            assert_eq!(given.row.unwrap()["order"], name(found));
            assert_eq!(given.at.unwrap().line, Some(found as u64 + 2));
            found += 1;
        }
        match answer.cursor {
            Some(next) => cursor = next,
            None => break,
        }
    }
    assert_eq!(found, rows);
    let heard = asked.heard();
    let first = |heard: &&Heard| heard.range.as_deref() == Some("bytes=0-65535");
    assert_eq!(heard.iter().filter(first).count(), 1);
    assert!(heard.iter().all(|heard| heard.range.is_some()));
}

#[tokio::test]
async fn a_bad_row_of_an_object_is_named_by_its_line() {
    let text = csv(0..10).replace("0,ORD-003", "0,ORD-003,more");
    let asked = Asked::with([("a.csv", text.into_bytes())]).await;
    let source = json!({"s3": {"bucket": "rows", "key": "a.csv", "kind": "parcel"}});
    let id = asked.produce(&source, 1, &json!({"tolerated_bad_rows": "10%"})).await;
    let done = &assert_produced(&asked.stack, id, (0..10).filter(|n| *n != 3)).await[0];
    let problem = "line 5: has 3 fields, but the first line names 2 columns";
    assert_eq!((done.bad, done.bad_rows[0].row, done.bad_rows[0].problem.as_str()), (1, 3, problem));
    let id = asked.produce(&source, 1, &json!({"tolerated_bad_rows": 0})).await;
    let failed = &partitions(&asked.stack, id).await[0];
    assert_eq!(failed.state, PartitionState::Failed);
    assert!(failed.error.as_deref().unwrap().contains(problem), "{failed:?}");
}

#[tokio::test]
async fn errors_of_s3_are_final_if_another_try_cannot_mend_them() {
    let asked = Asked::with([("a.ndjson", ndjson(0..3).into_bytes())]).await;
    let source = json!({"s3": {"bucket": "rows", "key": "a.ndjson"}});
    for (status, code, for_good) in [
        (503, "SlowDown", false),
        (500, "InternalError", false),
        (403, "AccessDenied", false),
        (400, "ExpiredToken", false),
        (301, "PermanentRedirect", true),
        (404, "NoSuchBucket", true),
    ] {
        asked.amazon.errors.lock().unwrap().push_back((status, code));
        let error = asked.ask(&source, Value::Null).await.unwrap_err();
        assert!(error.message.starts_with(&format!("s3 answered {status}")), "{error}");
        assert!(error.message.ends_with(&format!(": {code}: it says why")), "{error}");
        assert_eq!(error.for_good, for_good, "{error}");
    }
    let gone = asked.ask(&json!({"s3": {"bucket": "rows", "key": "gone.ndjson"}}), Value::Null).await.unwrap_err();
    assert!(gone.for_good && gone.message.contains("NoSuchKey"), "{gone}");
    // A cursor of another version of the object.
    let other = json!({"etag": "\"7\"", "at": 10});
    let changed = asked.ask(&source, other).await.unwrap_err();
    assert!(changed.for_good && changed.message == "the object was changed while it was read", "{changed}");
}
