//! `fanfold serve`, and the HTTP API in general.

use std::net::SocketAddr;

use fanfold::config::variables;
use fanfold::store::policies::Policies;
use fanfold_dashboard::{Dashboard, PATH};
use fanfold_local::http::{self, Timeouts};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::args::ServeArgs;
use crate::batch_api;
use crate::failure::Failure;
use crate::fault::Fault;
use crate::guard::guard;
use crate::policies;
use crate::say::say;
use crate::stack::{EmbeddedStack, Running};
use crate::stop::Stop;

/// A server; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Server {
    /// Says where the dashboard is.
    pub(crate) fn say_dashboard(&self) {
        say(format_args!("The dashboard is at http://{}{PATH}", self.address));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves a stack until Ctrl-C or SIGTERM.
pub(crate) async fn serve(args: ServeArgs) -> Result<(), Failure> {
    let wanted = policies::read(&args.policy, true)?;
    let listener = bind(&args.listen).await?;
    let stack = EmbeddedStack::open(args.data.as_deref()).await?;
    let stop = Stop::listen()?;
    let table = stack.surroundings("ApiFunction").table(variables::POLICIES_TABLE)?;
    let policies = Policies::new(table);
    for policy in &wanted {
        policies.put(policy.policy()).await?;
    }
    let folder = std::env::current_dir().map_err(|error| Failure::io("the current folder", error))?;
    let running = stack.start(batch_api::local(folder.clone()), &folder, None, takes_commands(&listener)).await?;
    let server = start(listener, &running)?;
    say(format_args!("Fanfold's HTTP API is at http://{}; stop it with Ctrl-C", server.address));
    server.say_dashboard();
    stop.asked().await;
    drop(server);
    running.stop(&stop).await;
    Ok(())
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

/// Serves the HTTP API of a stack in the background.
pub(crate) fn start(listener: TcpListener, running: &Running) -> Result<Server, Failure> {
    let address = listener.local_addr().map_err(|error| Failure::io("--listen", error))?;
    let router = running.steps.router();
    let task = tokio::spawn(async move {
        http::serve(listener, guard(router, Dashboard::default()), Timeouts::default()).await;
    });
    Ok(Server { address, task })
}
