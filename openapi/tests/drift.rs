//! `docs/openapi.json` is what the code says.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;

#[test]
fn the_committed_description_is_the_generated_one() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/openapi.json");
    let committed = std::fs::read_to_string(file).expect("docs/openapi.json can be read");
    let generated = fanfold_openapi::text().unwrap();
    let differs = committed.lines().zip(generated.lines()).enumerate().find(|(_, (old, new))| old != new);
    let (line, (old, new)) = differs.unwrap_or((committed.lines().count().min(generated.lines().count()), ("", "")));
    assert!(
        committed == generated,
        "docs/openapi.json is not what the code says. First difference, line {}:\n  committed: {}\n  generated: {}\n\
         Run: cargo run -p fanfold-openapi > docs/openapi.json",
        line + 1,
        old.trim(),
        new.trim()
    );
}
