//! The AWS CLI, which knows every kind of profile and credentials: `--stack`, `--profile` and what is asked of other services of AWS go
//! through it.

use std::io::ErrorKind;
use std::process::{Command, Stdio};
use std::time::SystemTime;

use aws_sdk_sqs::config::Credentials;
use aws_smithy_types::date_time::{DateTime, Format};
use serde::Deserialize;
use serde_json::Value;

/// Where it is found.
const PROGRAM: &str = "aws";

/// Why it returned nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum AwsCliError {
    #[error(
        "the AWS CLI is needed for this, and `aws` cannot be run: {0} (https://docs.aws.amazon.com/cli/latest/userguide/getting-started-install.html)"
    )]
    NotThere(std::io::Error),
    #[error("`aws {command}` failed: {said}")]
    Failed { command: String, said: String },
    #[error("`aws {command}` printed something else than was expected: {problem}")]
    Answer { command: String, problem: String },
    #[error("the stack `{0}` has no output `Url`: it is not a stack of Fanfold, or not deployed yet")]
    NoUrl(String),
}

/// The AWS CLI with a profile and a region, or with those that it chooses itself.
#[derive(Clone, Debug, Default)]
pub(super) struct AwsCli {
    pub(super) profile: Option<String>,
    pub(super) region: Option<String>,
}

/// What `aws configure export-credentials` prints:
/// <https://docs.aws.amazon.com/cli/latest/reference/configure/export-credentials.html>.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Exported {
    access_key_id: String,
    secret_access_key: String,
    session_token: Option<String>,
    expiration: Option<String>,
}

impl AwsCli {
    /// Runs a command to its end, and returns what it printed.
    pub(super) fn text(&self, command: &[&str]) -> Result<String, AwsCliError> {
        let mut aws = Command::new(PROGRAM);
        aws.args(command).env("AWS_PAGER", "").stdin(Stdio::null());
        for (option, value) in [("--profile", &self.profile), ("--region", &self.region)] {
            if let Some(value) = value {
                aws.args([option, value]);
            }
        }
        let output = aws.output().map_err(AwsCliError::NotThere)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if !output.status.success() {
            return Err(AwsCliError::Failed { command: command.join(" "), said: text(&output.stderr) });
        }
        Ok(text(&output.stdout))
    }

    /// The same, for a command that prints JSON.
    pub(super) fn json(&self, command: &[&str]) -> Result<Value, AwsCliError> {
        let text = self.text(&[command, &["--output", "json"]].concat())?;
        let wrong =
            |error: serde_json::Error| AwsCliError::Answer { command: command.join(" "), problem: error.to_string() };
        serde_json::from_str(&text).map_err(wrong)
    }

    /// The address of the HTTP API of a deployed stack.
    pub(super) fn url(&self, stack: &str) -> Result<String, AwsCliError> {
        let found = self.json(&["cloudformation", "describe-stacks", "--stack-name", stack])?;
        let outputs = found["Stacks"][0]["Outputs"].as_array().into_iter().flatten();
        let url =
            outputs.filter(|output| output["OutputKey"] == "Url").find_map(|output| output["OutputValue"].as_str());
        url.map(str::to_owned).ok_or_else(|| AwsCliError::NoUrl(stack.to_owned()))
    }

    /// The region that it uses, if it knows one.
    pub(super) fn region(&self) -> Option<String> {
        let configured = || self.text(&["configure", "get", "region"]).ok().filter(|region| !region.is_empty());
        self.region.clone().or_else(configured)
    }

    /// The credentials that it uses.
    pub(super) fn credentials(&self) -> Result<Credentials, AwsCliError> {
        let command = ["configure", "export-credentials", "--format", "process"];
        let wrong = |problem: String| AwsCliError::Answer { command: command.join(" "), problem };
        let text = self.text(&command)?;
        // The text is not shown: it holds the secret.
        let exported: Exported = serde_json::from_str(&text).map_err(|_| wrong("no credentials as JSON".to_owned()))?;
        let Exported { access_key_id, secret_access_key, session_token, expiration } = exported;
        let moment = |text: String| DateTime::from_str(&text, Format::DateTimeWithOffset).map_err(|_| wrong(text));
        let expires = expiration.map(moment).transpose()?;
        let expires = expires.map(SystemTime::try_from).transpose().map_err(|error| wrong(error.to_string()))?;
        Ok(Credentials::new(access_key_id, secret_access_key, session_token, expires, "the AWS CLI"))
    }

    /// Whether it can be run at all.
    pub(super) fn is_there() -> bool {
        let found = Command::new(PROGRAM).arg("--version").stdin(Stdio::null()).output();
        !found.is_err_and(|error| error.kind() == ErrorKind::NotFound)
    }
}
