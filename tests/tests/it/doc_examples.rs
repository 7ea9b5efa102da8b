//! Examples in doc comments are compiled and run. Where there are none, rustdoc's tests are left out: they take a while per crate.

use std::fs::{read_dir, read_to_string};
use std::path::{Path, PathBuf};

/// All files below this folder, without what was built or fetched.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_source =
        |path: &PathBuf| !["target", "node_modules"].iter().any(|name| path.ends_with(name)) && !path.is_symlink();
    let nested = |path: PathBuf| if path.is_dir() { files(&path) } else { vec![path] };
    entries.filter(is_source).flat_map(nested).collect()
}

/// Whether a doc comment of this source has a block of code.
fn has_example(source: &str) -> bool {
    source.lines().map(str::trim_start).any(|line| line.starts_with("/// ```") || line.starts_with("//! ```"))
}

#[test]
fn no_example_is_left_out() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let all = files(root);
    let without = |manifest: &&PathBuf| {
        manifest.ends_with("Cargo.toml") && read_to_string(manifest).unwrap().contains("\ndoctest = false\n")
    };
    let without: Vec<PathBuf> = all.iter().filter(without).map(|manifest| manifest.with_file_name("src")).collect();
    assert!(without.len() > 10, "{without:?}");
    for file in all.iter().filter(|file| without.iter().any(|source| file.starts_with(source))) {
        if file.extension().is_some_and(|extension| extension == "rs") {
            let problem = "has an example that nothing compiles: take `doctest = false` out of its crate's Cargo.toml";
            assert!(!has_example(&read_to_string(file).unwrap()), "{} {problem}", file.display());
        }
    }
}

#[test]
fn an_example_is_seen() {
    assert!(has_example("    /// ```\n    /// assert!(true);\n    /// ```\n"));
    assert!(!has_example("/// As `this` says.\nfn f() {}"));
}
