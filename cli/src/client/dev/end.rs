//! `fanfold dev --end`.

use std::process::ExitCode;

use serde_json::json;

use super::lease::{self, dev_session};
use crate::client::connection::Stack;
use crate::failure::Failure;

/// Ends whichever session has the calls of a kind.
pub(super) async fn run(stack: &Stack, kind: &str) -> Result<ExitCode, Failure> {
    let before = dev_session(&stack.api, kind).await.map_err(|error| stack.failed(error))?;
    let lease = &before["lease"];
    if lease.is_object() {
        lease::end(&stack.api, kind).await.map_err(|error| stack.failed(error))?;
    }
    let text = || match lease["session"].as_str() {
        Some(session) => format!("kind {kind}: session {session} is ended, and the stack makes the calls again"),
        None => format!("kind {kind}: no dev session has its calls"),
    };
    stack.print(|| json!({"kind": kind, "ended": lease}), text)?;
    Ok(ExitCode::SUCCESS)
}
