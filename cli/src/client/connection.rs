//! The address of the stack, and the credentials for it.

use aws_sdk_sqs::config::{Region, SharedCredentialsProvider};
use aws_types::SdkConfig;
use clap::Args;
use fanfold_client::{ClientError, Fanfold};
use serde_json::Value;

use super::aws_cli::AwsCli;
use super::credentials::{self, OfAwsCli};
use super::print::print;
use super::refusal::Refusal;
use super::scope::quoted;
use crate::failure::Failure;
use crate::fault::Fault;

/// How often a request is sent, within about a second.
const ATTEMPTS: u32 = 3;

/// Where `fanfold up` listens by default.
const LOCAL: &str = "http://127.0.0.1:8080";

/// Options of all commands that are clients of a stack.
#[derive(Clone, Debug, Args)]
pub(super) struct Connection {
    /// The address of the stack's HTTP API: what `fanfold up` prints, or the output `Url` of a deployed stack.
    /// Unless it is on this machine, requests are signed, for the region in the address or else --region.
    #[arg(long, value_name = "URL", env = "FANFOLD_ENDPOINT", default_value = LOCAL)]
    endpoint: String,
    /// A deployed stack, by its name in CloudFormation, instead of the address. Needs the AWS CLI.
    #[arg(long, value_name = "NAME")]
    stack: Option<String>,
    /// The profile whose credentials sign requests, as the AWS CLI knows it. By default they are signed with
    /// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, if these are set, or else with the
    /// credentials that the AWS CLI uses.
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// The region of the stack. Default: the variable AWS_REGION or AWS_DEFAULT_REGION, or the profile's.
    #[arg(long, value_name = "REGION")]
    region: Option<String>,
    /// Do not sign requests, wherever the stack is.
    #[arg(long, conflicts_with = "profile")]
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
    /// The options that say which stack it is, for another command.
    options: String,
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

    /// The AWS CLI, with the profile and the region that were given.
    fn aws_cli(&self) -> AwsCli {
        AwsCli { profile: self.profile.clone(), region: self.region.clone() }
    }

    /// The name of the deployed stack, if it was given, and the AWS CLI to ask about it.
    pub(super) fn deployed(&self) -> Option<(String, AwsCli)> {
        self.stack.clone().map(|name| (name, self.aws_cli()))
    }

    /// The same, with this many attempts per request.
    pub(super) fn patient(self, attempts: u32) -> Result<Stack, Failure> {
        let unusable = |problem: &dyn std::fmt::Display| Failure::from(Fault::new("--endpoint", problem));
        let wrong = |error: ClientError| unusable(&error.to_string().trim_start_matches("url: "));
        let endpoint = match &self.stack {
            Some(name) => self.aws_cli().url(name).map_err(|error| Fault::new("--stack", error))?,
            None => self.endpoint.clone(),
        };
        let mut api = Fanfold::new(&endpoint).map_err(wrong)?.attempts(attempts);
        if !self.no_sign && (self.profile.is_some() || !on_this_machine(&endpoint)) {
            api = api.signed(&self.signer(&endpoint)?).map_err(wrong)?;
        }
        let options = self.options();
        Ok(Stack { api, endpoint, options, attempts, json: self.json })
    }

    /// The options that were given to say which stack it is. Those of the environment hold for other commands, too.
    fn options(&self) -> String {
        let of_environment = variable("FANFOLD_ENDPOINT").as_ref() == Some(&self.endpoint) || self.endpoint == LOCAL;
        let given = [
            ("endpoint", Some(&self.endpoint).filter(|_| !of_environment && self.stack.is_none())),
            ("stack", self.stack.as_ref()),
            ("profile", self.profile.as_ref()),
            ("region", self.region.as_ref()),
        ];
        let given = given.into_iter().filter_map(|(name, value)| Some(format!(" --{name} {}", quoted(value?))));
        given.chain(self.no_sign.then(|| " --no-sign".to_owned())).collect()
    }

    /// Credentials and region to sign requests with.
    fn signer(&self, endpoint: &str) -> Result<SdkConfig, Failure> {
        let credentials = self.credentials(endpoint)?;
        let region = region(endpoint, self.region.as_deref(), variable).or_else(|| self.aws_cli().region());
        let Some(region) = region else {
            let problem = format!("`{endpoint}` names no region to sign requests for: set it, or AWS_REGION");
            return Err(Fault::new("--region", problem).into());
        };
        let config = SdkConfig::builder().region(Region::new(region));
        Ok(config.credentials_provider(credentials).build())
    }

    /// The credentials that requests to `endpoint` are signed with.
    pub(super) fn credentials(&self, endpoint: &str) -> Result<SharedCredentialsProvider, Failure> {
        let of_environment = || if self.profile.is_none() { credentials::of_environment(variable) } else { None };
        of_environment().map_or_else(|| self.of_aws_cli(endpoint), Ok)
    }

    /// The credentials that the AWS CLI has.
    fn of_aws_cli(&self, endpoint: &str) -> Result<SharedCredentialsProvider, Failure> {
        let cli = self.aws_cli();
        if self.profile.is_none() && !AwsCli::is_there() {
            let problem = format!(
                "requests to `{endpoint}` are signed, since it is not on this machine: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, \
                 install the AWS CLI, or use --no-sign"
            );
            return Err(Fault::new("--endpoint", problem).into());
        }
        let found = cli.credentials().map_err(|error| {
            Fault::new(
                "--profile",
                format_args!("requests to `{endpoint}` are signed, and there are no credentials: {error}"),
            )
        })?;
        Ok(SharedCredentialsProvider::new(OfAwsCli::new(cli, found)))
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

    /// A command for the same stack, as a person types it.
    pub(super) fn command(&self, words: &str) -> String {
        format!("fanfold {words}{}", self.options)
    }

    /// The address of its HTTP API.
    pub(super) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Whether it is on this machine.
    pub(super) fn is_local(&self) -> bool {
        on_this_machine(&self.endpoint)
    }

    /// Whether to print one JSON document.
    pub(super) fn json(&self) -> bool {
        self.json
    }
}

/// A variable of the environment, unless it is empty.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
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

/// The region to sign for: the one in the address, the one that was given, or the environment's.
fn region(endpoint: &str, given: Option<&str>, variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let mut parts = host(endpoint).split('.').skip_while(|part| *part != "execute-api");
    let named = parts.nth(1).map(str::to_owned).or_else(|| given.map(str::to_owned));
    named.or_else(|| variable("AWS_REGION")).or_else(|| variable("AWS_DEFAULT_REGION"))
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
        let variables = |name: &str| Some(name.to_lowercase());
        let of = |endpoint: &str, given| region(endpoint, given, variables);
        assert_eq!(of("https://a1.execute-api.eu-west-1.amazonaws.com", Some("x")).as_deref(), Some("eu-west-1"));
        assert_eq!(of("https://fanfold.example.com", Some("eu-west-2")).as_deref(), Some("eu-west-2"));
        assert_eq!(of("https://fanfold.example.com", None).as_deref(), Some("aws_region"));
        assert_eq!(region("https://fanfold.example.com", None, |_| None), None);
    }
}
