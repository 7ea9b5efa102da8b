//! The address of the stack, and the credentials for it.

use aws_sdk_sqs::config::{Credentials, Region, SharedCredentialsProvider};
use aws_types::SdkConfig;
use clap::Args;
use fanfold_client::{ClientError, Fanfold};
use serde_json::Value;

use super::print::print;
use super::refusal::Refusal;
use crate::failure::Failure;
use crate::fault::Fault;

/// How often a request is sent, within about a second.
const ATTEMPTS: u32 = 3;

/// Options of all commands that are clients of a stack.
#[derive(Debug, Args)]
pub(super) struct Connection {
    /// The address of the stack's HTTP API: what `fanfold serve` prints, or the output `Url` of a deployed
    /// stack. Unless it is on this machine, requests are signed with AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY
    /// and, if set, AWS_SESSION_TOKEN, for the region in the address or else AWS_REGION.
    #[arg(long, value_name = "URL", env = "FANFOLD_ENDPOINT", default_value = "http://127.0.0.1:8080")]
    endpoint: String,
    /// Do not sign requests, wherever the stack is.
    #[arg(long)]
    no_sign: bool,
    /// Print only one JSON document.
    #[arg(long)]
    json: bool,
}

/// The client of a stack.
#[derive(Debug)]
pub(super) struct Stack {
    pub(super) api: Fanfold,
    endpoint: String,
    attempts: u32,
    json: bool,
}

impl Connection {
    pub(super) fn stack(self) -> Result<Stack, Failure> {
        self.patient(ATTEMPTS)
    }

    /// Whether JSON is asked for.
    pub(super) fn json(&self) -> bool {
        self.json
    }

    /// The same, with this many attempts per request.
    pub(super) fn patient(self, attempts: u32) -> Result<Stack, Failure> {
        let Self { endpoint, no_sign, json } = self;
        let unusable = |problem: &dyn std::fmt::Display| Failure::from(Fault::new("--endpoint", problem));
        let wrong = |error: ClientError| unusable(&error.to_string().trim_start_matches("url: "));
        let mut api = Fanfold::new(&endpoint).map_err(wrong)?.attempts(attempts);
        if !no_sign && !on_this_machine(&endpoint) {
            let config = signer(&endpoint, |name| std::env::var(name).ok().filter(|value| !value.is_empty()));
            api = api.signed(&config.map_err(|problem| unusable(&problem))?).map_err(wrong)?;
        }
        Ok(Stack { api, endpoint, attempts, json })
    }
}

impl Stack {
    /// The failure of a request.
    pub(super) fn failed(&self, error: ClientError) -> Failure {
        self.refusal(error).into()
    }

    /// The same, before anything is made of it.
    pub(super) fn refusal(&self, error: ClientError) -> Refusal {
        Refusal::new(error, &self.endpoint, self.attempts)
    }

    /// Prints an answer: as JSON, or for people.
    pub(super) fn print(&self, json: impl FnOnce() -> Value, text: impl FnOnce() -> String) -> Result<(), Failure> {
        print(&if self.json { format!("{:#}", json()) } else { text() }).map(|_| ())
    }

    /// Whether to print one JSON document.
    pub(super) fn json(&self) -> bool {
        self.json
    }
}

/// The host in an address.
fn host(endpoint: &str) -> &str {
    let rest = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((v6, _)) => v6,
        None => authority.split(':').next().unwrap_or_default(),
    }
}

fn on_this_machine(endpoint: &str) -> bool {
    let host = host(endpoint);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Credentials and region to sign with.
fn signer(endpoint: &str, variable: impl Fn(&str) -> Option<String>) -> Result<SdkConfig, String> {
    let Some((id, secret)) = variable("AWS_ACCESS_KEY_ID").zip(variable("AWS_SECRET_ACCESS_KEY")) else {
        return Err(format!(
            "requests to `{endpoint}` are signed, since it is not on this machine: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY \
             (`aws configure export-credentials --format env` prints them), or use --no-sign"
        ));
    };
    let mut parts = host(endpoint).split('.').skip_while(|part| *part != "execute-api");
    let region = parts.nth(1).map(str::to_owned).or_else(|| variable("AWS_REGION"));
    let Some(region) = region.or_else(|| variable("AWS_DEFAULT_REGION")) else {
        return Err(format!("`{endpoint}` names no region to sign requests for: set AWS_REGION"));
    };
    let credentials = Credentials::new(id, secret, variable("AWS_SESSION_TOKEN"), None, "environment");
    let config = SdkConfig::builder().region(Region::new(region));
    Ok(config.credentials_provider(SharedCredentialsProvider::new(credentials)).build())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_on_this_machine_is_known() {
        for here in
            ["http://localhost:8080", "http://127.0.0.1:1/", "http://127.8.9.1", "http://[::1]:80/x", "localhost:1"]
        {
            assert!(on_this_machine(here), "{here}");
        }
        for elsewhere in
            ["https://a.execute-api.eu-west-1.amazonaws.com", "http://10.0.0.1:8080", "http://localhost@x.example/"]
        {
            assert!(!on_this_machine(elsewhere), "{elsewhere}");
        }
    }

    #[test]
    fn requests_are_signed_for_the_region_of_the_address() {
        let keys = |name: &str| name.starts_with("AWS_").then(|| name.to_lowercase());
        let region = |endpoint: &str| signer(endpoint, keys).map(|config| config.region().map(ToString::to_string));
        assert_eq!(region("https://a1.execute-api.eu-west-1.amazonaws.com"), Ok(Some("eu-west-1".to_owned())));
        assert_eq!(region("https://fanfold.example.com"), Ok(Some("aws_region".to_owned())));
        let nothing = signer("https://fanfold.example.com", |_| None).map(|_| ());
        assert!(nothing.is_err_and(|problem| problem.contains("AWS_ACCESS_KEY_ID")));
        let nowhere = |name: &str| keys(name).filter(|_| !name.ends_with("REGION"));
        let nothing = signer("https://fanfold.example.com", nowhere).map(|_| ());
        assert!(nothing.is_err_and(|problem| problem.contains("AWS_REGION")));
    }
}
