//! Serving the HTTP API and the dashboard of a stack in this process.

use std::net::SocketAddr;

use fanfold_dashboard::{Dashboard, PATH};
use fanfold_local::http::{self, Timeouts};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::counters::Counters;
use crate::failure::Failure;
use crate::fault::Fault;
use crate::guard::{Callers, guard};
use crate::prometheus;
use crate::say::say;
use crate::stack::Running;

/// A server; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Server {
    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of the dashboard.
    pub(crate) fn dashboard(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Says where the dashboard is.
    pub(crate) fn say_dashboard(&self) {
        say(format_args!("The dashboard is at {}", self.dashboard()));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Takes an address to listen on: `127.0.0.1:8080`, or a name, such as `localhost:8080`.
pub(crate) async fn bind(listen: &str) -> Result<TcpListener, Failure> {
    let fault = |problem: String| Fault::new("--listen", format_args!("`{listen}`: {problem}"));
    let is_port = |port: &str| port.parse::<u16>().is_ok();
    if !listen.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && is_port(port)) {
        let port = Some(listen.trim_start_matches(':')).filter(|port| is_port(port)).unwrap_or("8080");
        return Err(fault(format!("HOST:PORT is expected, such as 127.0.0.1:{port} or localhost:{port}")).into());
    }
    let addresses = tokio::net::lookup_host(listen).await;
    let mut addresses: Vec<SocketAddr> = addresses.map_err(|error| fault(error.to_string()))?.collect();
    // A name may have addresses of both versions; most people type IPv4.
    addresses.sort_by_key(SocketAddr::is_ipv6);
    let listener = TcpListener::bind(addresses.as_slice()).await;
    Ok(listener.map_err(|error| fault(format!("cannot listen there: {error}")))?)
}

/// Whether policies and producers may name programs and files: only if the API can be reached from this machine alone.
pub(crate) fn takes_commands(listener: &TcpListener) -> bool {
    listener.local_addr().is_ok_and(|address| address.ip().is_loopback())
}

/// Serves the HTTP API of a stack in the background, with its dashboard and what its steps counted.
pub(crate) fn start(
    listener: TcpListener,
    running: &Running,
    callers: Callers,
    counters: Counters,
) -> Result<Server, Failure> {
    let address = listener.local_addr().map_err(|error| Failure::io("--listen", error))?;
    let router = running.steps.router().merge(prometheus::router(counters));
    let task = tokio::spawn(async move {
        http::serve(listener, guard(router, Dashboard::default(), callers), Timeouts::default()).await;
    });
    Ok(Server { address, task })
}
