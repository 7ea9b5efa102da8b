//! Sources that only the local runner has: files, and programs.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use fanfold::producing::{Given, Source};
use fanfold_produce::{AllSources, Asking, LocalSources, SourceAnswer, SourceError, Sources};
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::FutureExt;
use tempfile::TempDir;

use super::*;

/// A folder, whose only program answers with its own arguments.
struct Folder(TempDir);

impl LocalSources for Folder {
    fn folder(&self) -> &Path {
        self.0.path()
    }

    fn ask_program<'a>(&'a self, command: &'a [String], _: &'a SourceRequest) -> Asking<'a> {
        let rows = command.iter().map(|argument| json!(argument).into()).collect();
        async { Ok(SourceAnswer { rows, cursor: None }) }.boxed()
    }
}

async fn ask(sources: &AllSources, source: &Value, partition: u32, cursor: Value) -> Result<SourceAnswer, SourceError> {
    let source: Source = serde_json::from_value(source.clone()).unwrap();
    let ask = SourceRequest { fanout: Uuid::nil(), partition, of: 3, cursor };
    sources.ask(&source, &ask, fanfold::clock::Timestamp(1_000)).await
}

fn table(rows: usize) -> String {
    (0..rows).fold("order,note\n".to_owned(), |text, n| format!("{text}{},\"a, b\"\n", name(n)))
}

/// Larger than what is read at once.
const ROWS: usize = 50_000;

#[tokio::test]
async fn a_file_is_read_as_an_object_is() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("rows.csv"), table(ROWS)).unwrap();
    let mut compressed =
        GzEncoder::new(std::fs::File::create(folder.path().join("rows.csv.gz")).unwrap(), Compression::fast());
    compressed.write_all(table(ROWS).as_bytes()).unwrap();
    compressed.finish().unwrap();
    let sources = sources().with_local(Arc::new(Folder(folder)));
    for path in ["rows.csv", "rows.csv.gz"] {
        let source = json!({"file": {"path": path, "kind": "parcel"}});
        let mut all: Vec<Vec<Given>> = Vec::new();
        for partition in 0..3 {
            let (mut rows, mut cursor) = (Vec::new(), Some(Value::Null));
            while let Some(from) = cursor {
                let answer = ask(&sources, &source, partition, from).await.unwrap();
                rows.extend(answer.rows);
                cursor = answer.cursor;
            }
            all.push(rows);
        }
        let divided = all.iter().all(|rows| rows.len() > ROWS / 4);
        assert_eq!(divided, path == "rows.csv", "a compressed file is read by one partition");
        let rows: Vec<Given> = all.into_iter().flatten().collect();
        assert_eq!(rows.len(), ROWS);
        for (n, row) in rows.into_iter().enumerate() {
            assert_eq!((row.kind.as_deref(), row.row), (Some("parcel"), Ok(json!({"order": name(n), "note": "a, b"}))));
        }
    }
}

#[tokio::test]
async fn a_file_that_changes_while_it_is_read_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.csv");
    std::fs::write(&path, table(ROWS)).unwrap();
    let sources = sources().with_local(Arc::new(Folder(folder)));
    let source = json!({"file": {"path": "rows.csv", "kind": "parcel"}});
    let cursor = ask(&sources, &source, 0, Value::Null).await.unwrap().cursor.unwrap();
    std::fs::write(&path, table(ROWS + 1)).unwrap();
    let error = ask(&sources, &source, 0, cursor).await.unwrap_err();
    assert!(error.for_good && error.message.ends_with("rows.csv: was changed while it was read"), "{error}");
    std::fs::remove_file(&path).unwrap();
    let error = ask(&sources, &source, 0, Value::Null).await.unwrap_err();
    assert!(error.for_good && error.message.contains("No such file"), "{error}");
}

#[tokio::test]
async fn a_program_is_asked_and_functions_refuse_both() {
    let command = json!({"command": ["./rows", "-v"]});
    let local = sources().with_local(Arc::new(Folder(tempfile::tempdir().unwrap())));
    assert_eq!(ask(&local, &command, 0, Value::Null).await.unwrap().rows, [json!("./rows").into(), json!("-v").into()]);
    for (source, field) in [(command, "command"), (json!({"file": {"path": "a.ndjson"}}), "file")] {
        let error = ask(&sources(), &source, 0, Value::Null).await.unwrap_err();
        assert_eq!(error.message, format!("`producer.source.{field}` can be read by the local runner only"));
        assert!(error.for_good);
    }
}
