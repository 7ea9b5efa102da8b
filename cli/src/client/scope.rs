//! The scope of a command: everything, a kind, a target, or a lane.

use clap::Args;
use fanfold_client::Scope;
use serde_json::Value;

use super::view::shown;

/// A kind, a target of the kind, or a lane of the target.
#[derive(Debug, Args)]
pub(super) struct Part {
    /// A kind.
    #[arg(long, value_name = "KIND")]
    pub(super) kind: Option<String>,
    /// A target of the kind, with all its partitions.
    #[arg(long, value_name = "TARGET", requires = "kind")]
    pub(super) target: Option<String>,
    /// One partition of the target: a lane.
    #[arg(long, value_name = "N", requires = "target")]
    pub(super) partition: Option<u32>,
}

impl Part {
    pub(super) fn scope(self) -> Scope {
        let Self { kind, target, partition } = self;
        Scope { all: false, kind, target, partition }
    }
}

/// Tasks: those that are named, or all of a part.
#[derive(Debug, Args)]
pub(super) struct Chosen {
    /// The tasks.
    #[arg(value_name = "ID", conflicts_with = "kind", required_unless_present = "kind")]
    pub(super) ids: Vec<String>,
    #[command(flatten)]
    pub(super) part: Part,
}

/// A part, or everything.
#[derive(Debug, Args)]
pub(super) struct Whole {
    #[command(flatten)]
    part: Part,
    /// Everything, also kinds that get their policies later.
    #[arg(long, conflicts_with = "kind", required_unless_present = "kind")]
    all: bool,
}

impl Whole {
    pub(super) fn scope(self) -> Scope {
        Scope { all: self.all, ..self.part.scope() }
    }
}

/// The scope in a response, for people.
pub(super) fn named(scope: &Value) -> String {
    let text = |name: &str| scope[name].as_str().map(shown);
    match (text("kind"), text("target"), scope["partition"].as_u64()) {
        (None, ..) => "everything".to_owned(),
        (Some(kind), None, _) => format!("kind {kind}"),
        (Some(kind), Some(target), None) => format!("target {target} of kind {kind}"),
        (Some(kind), Some(target), Some(partition)) => {
            format!("partition {partition} of target {target} of kind {kind}")
        }
    }
}

/// The scope in a response as options, for a shell.
pub(super) fn options(scope: &Value) -> String {
    let mut options = Vec::new();
    for name in ["kind", "target"] {
        options.extend(scope[name].as_str().map(|value| format!("--{name} {}", quoted(value))));
    }
    options.extend(scope["partition"].as_u64().map(|partition| format!("--partition {partition}")));
    if options.is_empty() { "--all".to_owned() } else { options.join(" ") }
}

/// A word as a shell reads it.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        // What it contains must not steer a terminal.
        false => format!("'{}'", word.replace(char::is_control, "\u{fffd}").replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_scope_is_named_by_the_options_that_give_it() {
        for (scope, expected) in [
            (json!({"all": true}), "--all"),
            (json!({"kind": "mail"}), "--kind mail"),
            (json!({"kind": "mail", "target": "NY/005", "partition": 2}), "--kind mail --target NY/005 --partition 2"),
            (json!({"kind": "mail", "target": "it's $5"}), r"--kind mail --target 'it'\''s $5'"),
            (json!({"kind": "mail", "target": ""}), "--kind mail --target ''"),
        ] {
            assert_eq!(options(&scope), expected);
        }
    }
}
