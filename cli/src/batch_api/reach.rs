//! Whether a batch API is there at all. Asked before the first task is registered.

use std::net::ToSocketAddrs;
use std::path::Path;
use std::time::Duration;

use fanfold::policy::{BatchApi, Way};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::program;

/// How long a connection may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Checks that the batch API of a policy is there. The error names what is wrong.
pub(crate) async fn check(batch_api: &BatchApi, folder: &Path) -> Result<(), String> {
    match &batch_api.way {
        Way::Url(url) => {
            connect(url).await.map_err(|problem| format!("`batch_api.url`: nothing answers at {url}: {problem}"))
        }
        // Only a call would show it.
        Way::Lambda(_) => Ok(()),
        Way::Command(command) => {
            program::check(command, folder).map_err(|problem| format!("`batch_api.command`: {problem}"))
        }
    }
}

/// Opens a connection and closes it again.
async fn connect(url: &str) -> Result<(), String> {
    let uri: axum::http::Uri = url.parse().map_err(|error| format!("it is not a URL: {error}"))?;
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("http") { 80 } else { 443 });
    let lookup = tokio::task::spawn_blocking(move || (host.as_str(), port).to_socket_addrs()).await;
    let addresses = lookup.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
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
