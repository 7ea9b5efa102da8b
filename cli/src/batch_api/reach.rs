//! Whether a batch API is there at all. Asked before the first task is registered.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use fanfold::policy::{BatchApi, Way};
use fanfold_http_client::{Guard, PRIVATE_HOSTS};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{needs, program};

/// How long a connection may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether a batch API is known to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reached {
    /// It is.
    Yes,
    /// Only a call would show it.
    Unknown,
}

impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Yes => "the batch API can be reached",
            Self::Unknown => "only a call shows whether the batch API can be reached",
        })
    }
}

/// Checks that the batch API of a policy is there, and that the environment has what its calls need. The error names what is wrong.
pub(crate) async fn check(batch_api: &BatchApi, folder: &Path) -> Result<Reached, String> {
    needs::check(batch_api, |name| std::env::var(name).ok())?;
    reach(batch_api, folder).await?;
    Ok(if matches!(batch_api.way, Way::Lambda(_)) { Reached::Unknown } else { Reached::Yes })
}

async fn reach(batch_api: &BatchApi, folder: &Path) -> Result<(), String> {
    match &batch_api.way {
        Way::Url(url) => {
            let silent = |problem| format!("`batch_api.url`: nothing answers at {url}: {problem}");
            let (host, addresses) = resolve(url).await.map_err(silent)?;
            let addresses = allowed(&Guard::local(|name| std::env::var(name).ok()), &host, addresses)?;
            connect(addresses).await.map_err(silent)
        }
        // Only a call would show it.
        Way::Lambda(_) => Ok(()),
        Way::Sqs(_) => {
            let endpoint =
                emulator(|name| std::env::var(name).ok()).map_err(|problem| format!("`batch_api.sqs`: {problem}"))?;
            let silent = |problem| format!("`batch_api.sqs`: nothing answers at {endpoint}: {problem}");
            let (_, addresses) = resolve(&endpoint).await.map_err(silent)?;
            connect(addresses).await.map_err(silent)
        }
        Way::Command(command) => {
            program::check(command, folder).map_err(|problem| format!("`batch_api.command`: {problem}"))
        }
    }
}

/// The emulator that has the queue: workers behind a queue of AWS could not post outcomes to this machine.
fn emulator(variables: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let given = |name| variables(name).filter(|value| !value.is_empty());
    given("AWS_ENDPOINT_URL_SQS").or_else(|| given("AWS_ENDPOINT_URL")).ok_or_else(|| {
        "a local run sends nothing to queues of AWS; set AWS_ENDPOINT_URL_SQS or AWS_ENDPOINT_URL to the address of an emulator, \
         or deploy a stack"
            .to_owned()
    })
}

/// The host of a URL, and its addresses.
async fn resolve(url: &str) -> Result<(String, Vec<SocketAddr>), String> {
    let uri: axum::http::Uri = url.parse().map_err(|error| format!("it is not a URL: {error}"))?;
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("http") { 80 } else { 443 });
    let addresses = tokio::net::lookup_host((host.as_str(), port)).await.map_err(|error| error.to_string())?;
    let addresses = addresses.collect();
    Ok((host, addresses))
}

/// Those addresses that calls may go to: a call checks them in the same way.
fn allowed(guard: &Guard, host: &str, addresses: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, String> {
    guard.allowed(host, addresses).map_err(|error| {
        format!("`batch_api.url`: {error}; if it may be called, name it in the environment variable {PRIVATE_HOSTS}")
    })
}

/// Opens a connection and closes it again.
async fn connect(addresses: Vec<SocketAddr>) -> Result<(), String> {
    let mut problem = "the host name has no address".to_owned();
    for address in addresses {
        match timeout(PATIENCE, TcpStream::connect(address)).await {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(error)) => problem = error.to_string(),
            Err(_) => problem = format!("no connection within {} s", PATIENCE.as_secs()),
        }
    }
    Err(problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_are_never_called_are_not_reached() {
        let of = |hosts: &'static str, host: &str, address: &str| {
            let addresses: Vec<SocketAddr> = address.parse().into_iter().collect();
            allowed(&Guard::local(|_| Some(hosts.to_owned())), host, addresses)
        };
        assert!(of("", "localhost", "127.0.0.1:80").is_ok() && of("", "example.com", "93.184.215.14:443").is_ok());
        assert!(of("api.corp", "api.corp", "10.1.2.3:443").is_ok());
        assert!(of("", "api.corp", "10.1.2.3:443").is_err_and(|problem| problem.contains(PRIVATE_HOSTS)));
    }

    #[test]
    fn only_queues_of_an_emulator_are_there_for_a_run() {
        let of =
            |given: &'static str| emulator(move |name| (name == given).then(|| "http://localhost:4566/".to_owned()));
        for given in ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_SQS"] {
            assert_eq!(of(given), Ok("http://localhost:4566/".to_owned()));
        }
        assert!(
            of("AWS_ENDPOINT_URL_S3")
                .is_err_and(|problem| problem.contains("set AWS_ENDPOINT_URL_SQS or AWS_ENDPOINT_URL"))
        );
    }
}
