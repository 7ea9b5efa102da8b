//! Engines whose tables are kept in a folder.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use fanfold_local::{Engine, EngineError};

use crate::stack::{get, item, pending, put, s, template};

/// The folder of a test's child process.
const FOLDER: &str = "FANFOLD_TEST_FOLDER";

#[tokio::test]
async fn an_engine_opened_again_has_its_tables() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("made/on/the/way");
    {
        let engine = Engine::open(&data).unwrap();
        engine.provision(&template()).await.unwrap();
        put(&engine.dynamodb(), pending("a", "lane", 1)).await;
    }
    let engine = Engine::open(&data).unwrap();
    assert_eq!(get(&engine.dynamodb(), "a").await, Some(pending("a", "lane", 1)));
    engine.provision(&template()).await.unwrap();
    assert!(get(&engine.dynamodb(), "a").await.is_some());
}

#[tokio::test]
async fn a_folder_has_one_engine_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::open(folder.path()).unwrap();
    let client = engine.dynamodb();
    let refused = |folder: &Path| {
        let error = Engine::open(folder).unwrap_err();
        assert!(matches!(error, EngineError::InUse { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("another fanfold runs on") && text.contains(&folder.display().to_string()), "{text}");
    };
    refused(folder.path());
    drop(engine);
    refused(folder.path());
    drop(client);
    Engine::open(folder.path()).unwrap();
}

#[tokio::test]
async fn a_folder_of_another_format_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    drop(Engine::open(folder.path()).unwrap());
    let file = folder.path().join("format");
    let own: u32 = fs::read_to_string(&file).unwrap().trim().parse().unwrap();
    for (written, named) in [(Some("1\n"), "format 1"), (Some("new-9"), "format new-9"), (None, "format none")] {
        match written {
            Some(text) => fs::write(&file, text).unwrap(),
            None => fs::remove_file(&file).unwrap(),
        }
        let error = Engine::open(folder.path()).unwrap_err();
        assert!(matches!(error, EngineError::Format { expected, .. } if expected == own), "{error}");
        let text = error.to_string();
        assert!(text.contains(named) && text.contains(&format!("reads format {own}")), "{text}");
        assert_eq!(fs::read_to_string(&file).ok().as_deref(), written);
    }
}

#[tokio::test]
async fn a_first_start_that_was_cut_short_can_be_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let format = folder.path().join("format");
    drop(Engine::open(folder.path()).unwrap());
    let own = fs::read_to_string(&format).unwrap();
    fs::remove_dir_all(folder.path()).unwrap();
    fs::create_dir(folder.path()).unwrap();
    fs::write(&format, "").unwrap();
    drop(Engine::open(folder.path()).unwrap());
    assert_eq!(fs::read_to_string(format).unwrap(), own);
}

#[tokio::test]
async fn a_folder_that_is_a_file_is_refused_by_name() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = Engine::open(file.path()).unwrap_err();
    assert!(error.to_string().contains(&file.path().display().to_string()), "{error}");
}

#[tokio::test]
#[ignore = "a child process: `cargo test -p fanfold-local --test it a_killed_process` starts it"]
async fn child_that_writes_until_it_is_killed() {
    let engine = Engine::open(Path::new(&std::env::var(FOLDER).unwrap())).unwrap();
    engine.provision(&template()).await.unwrap();
    let (db, mut out) = (engine.dynamodb(), std::io::stdout());
    for number in 0_u64.. {
        put(&db, item([("id", s(&number.to_string()))])).await;
        writeln!(out, "written {number}").unwrap();
    }
}

#[tokio::test]
async fn a_killed_process_loses_no_acknowledged_write() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "folder::child_that_writes_until_it_is_killed", "--ignored", "--nocapture"])
        .env(FOLDER, folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut written = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        if let Some((_, number)) = line.unwrap().split_once("written ") {
            written.push(number.to_owned());
        }
        if written.len() == 100 {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(written.len() >= 100, "the child ended by itself after {} writes", written.len());
    let engine = Engine::open(folder.path()).unwrap();
    let db = engine.dynamodb();
    for number in written {
        assert!(get(&db, &number).await.is_some(), "{number} is lost");
    }
}
