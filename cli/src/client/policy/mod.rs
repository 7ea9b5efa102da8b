//! `fanfold policy`.

mod apply;
mod change;
mod delete;
mod diff;
mod get;
mod list;
mod trial;
mod validate;
mod yaml;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use fanfold::policy::{KIND_ALLOWED, is_kind};
use fanfold_client::ClientError;
use serde_json::Value;

use super::connection::Stack;
use crate::failure::Failure;

/// Policies: stores, shows, compares, checks, tries and deletes them.
///
///   fanfold policy validate -f policy.yaml          whether it can be used; needs no stack
///   fanfold policy try -f policy.yaml < task.json   where its tasks belong; needs no stack
///   fanfold policy diff -f policy.yaml              what would change
///   fanfold policy apply -f policy.yaml
///   fanfold policy get > policies.yaml              all of them, in the form that `apply` takes
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Apply(apply::ApplyArgs),
    Get(get::GetArgs),
    List(list::ListPoliciesArgs),
    Delete(delete::DeleteArgs),
    Diff(diff::DiffArgs),
    Validate(validate::ValidateArgs),
    Try(trial::TryArgs),
}

/// Policies in files.
#[derive(Debug, Args)]
struct Files {
    /// Files of policies, YAML or JSON, each with one or several (YAML documents, between lines of `---`); `-` is standard input.
    #[arg(short, long = "file", value_name = "FILE", required = true, num_args = 1..)]
    files: Vec<PathBuf>,
}

pub(super) async fn run(args: PolicyArgs) -> Result<ExitCode, Failure> {
    match args.what {
        What::Apply(args) => apply::run(args).await,
        What::Get(args) => get::run(args).await,
        What::List(args) => list::run(args).await,
        What::Delete(args) => delete::run(args).await,
        What::Diff(args) => diff::run(args).await,
        What::Validate(args) => validate::run(args),
        What::Try(args) => trial::run(args).await,
    }
}

/// Parses a kind on the command line.
pub(super) fn kind(text: &str) -> Result<String, String> {
    if is_kind(text) { Ok(text.to_owned()) } else { Err(format!("a kind is expected: {KIND_ALLOWED}")) }
}

/// The policy of a kind in the stack, if there is one.
async fn stored(stack: &Stack, kind: &str) -> Result<Option<Value>, Failure> {
    match stack.api.policy(kind).await {
        Ok(policy) => Ok(Some(policy)),
        Err(error) if is_unknown(&error) => Ok(None),
        Err(error) => Err(stack.failed(error)),
    }
}

/// Whether the error is that the kind has no policy.
fn is_unknown(error: &ClientError) -> bool {
    error.code() == Some("unknown_policy")
}
