//! `fanfold policy get`.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::super::connection::Connection;
use super::{kind, yaml};
use crate::failure::Failure;

/// Prints policies as YAML, in the form that `fanfold policy apply` takes: those of these kinds, or all.
///
/// Fields that were left out have their defaults. The exit status is 2 if a kind has no policy.
#[derive(Debug, Args)]
pub(super) struct GetArgs {
    /// The kinds; all, if none is named.
    #[arg(value_name = "KIND", value_parser = kind)]
    kinds: Vec<String>,
    #[command(flatten)]
    connection: Connection,
}

pub(super) async fn run(args: GetArgs) -> Result<ExitCode, Failure> {
    let stack = args.connection.stack()?;
    let mut policies = Vec::new();
    for kind in &args.kinds {
        policies.push(stack.api.policy(kind).await.map_err(|error| stack.failed(error))?);
    }
    if args.kinds.is_empty() {
        policies = stack.api.policies().await.map_err(|error| stack.failed(error))?;
    }
    let document = || match (args.kinds.as_slice(), policies.as_slice()) {
        ([_], [policy]) => policy.clone(),
        _ => json!({"policies": policies}),
    };
    let text = || policies.iter().map(yaml::text).collect::<Vec<String>>().join("---\n").trim_end().to_owned();
    stack.print(document, text)?;
    Ok(ExitCode::SUCCESS)
}
