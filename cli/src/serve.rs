//! `fanfold serve`, and the HTTP API in general.

use std::net::SocketAddr;

use fanfold::config::variables;
use fanfold::store::policies::Policies;
use fanfold_local::http::{self, Patience};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::args::ServeArgs;
use crate::batch_api;
use crate::failure::{Failure, Fault};
use crate::guard::guard;
use crate::job::read_policy;
use crate::stack::Stack;

/// A server; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves a stack until Ctrl-C.
pub(crate) async fn serve(args: ServeArgs) -> Result<(), Failure> {
    let mut wanted = Vec::new();
    for file in &args.policy {
        wanted.push(read_policy(file, None)?.policy);
    }
    let stack = Stack::open(args.data.as_deref()).await?;
    let table = stack.surroundings("ApiFunction").table(variables::POLICIES_TABLE)?;
    let policies = Policies::new(table, stack.world().clone());
    for policy in &wanted {
        policies.put(policy).await?;
    }
    let folder = std::env::current_dir().map_err(|error| Failure::io("the current folder", error))?;
    let running = stack.start(batch_api::local(folder)?).await?;
    let server = start(args.listen, &stack).await?;
    eprintln!("Fanfold's HTTP API is at http://{}; end it with Ctrl-C", server.address);
    tokio::signal::ctrl_c().await.map_err(|error| Failure::io("Ctrl-C can not be waited for", error))?;
    drop(server);
    running.stop().await;
    Ok(())
}

/// Serves the HTTP API of a stack in the background. Only who is on this machine can have it run programs.
pub(crate) async fn start(address: SocketAddr, stack: &Stack) -> Result<Server, Failure> {
    let router = stack.router(address.ip().is_loopback())?;
    let problem =
        |error: std::io::Error| Fault::new("--listen", format_args!("{address} can not be listened on: {error}"));
    let listener = TcpListener::bind(address).await.map_err(problem)?;
    let address = listener.local_addr().map_err(problem)?;
    let task = tokio::spawn(async move {
        http::serve(listener, guard(router), Patience::default()).await;
    });
    Ok(Server { address, task })
}
