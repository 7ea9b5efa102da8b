//! Programs of the workspace that a test starts and that are not its own package's. Included by path where they are needed.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// Builds programs beside one that cargo has built for the test, with the features that tests have.
pub(crate) fn build(beside: &str, names: &[&str]) {
    let folder = Path::new(beside).parent().unwrap();
    let profile = if folder.ends_with("debug") { "dev" } else { "release" };
    let mut command = Command::new(env!("CARGO"));
    command.args(["build", "--quiet", "--workspace", "--profile", profile]);
    command.args(names.iter().flat_map(|name| ["--bin", name]));
    // Cargo sets these for the test's package. Build scripts that read them would run anew, and after them most of the workspace.
    for (name, _) in std::env::vars_os().filter(|(name, _)| names_package(name)) {
        command.env_remove(name);
    }
    assert!(command.status().unwrap().success());
}

fn names_package(variable: &OsStr) -> bool {
    let name = variable.to_string_lossy();
    name == "OUT_DIR" || ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|prefix| name.starts_with(prefix))
}
