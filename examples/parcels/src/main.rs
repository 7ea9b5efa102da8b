//! The batch API of the parcels example: books one truck per call and writes its manifest.
//!
//! `PORT` says where to listen on 127.0.0.1, `MANIFESTS` where manifests go (`manifests` in the current folder). The
//! server ends when its standard input ends, so that it never outlives the runner that started it.

mod http;
mod manifest;
mod name;
mod order;
mod problem;
mod request;
mod verdict;

use std::io::{ErrorKind, IsTerminal, Read};
use std::path::PathBuf;
use std::process::ExitCode;

use tokio::net::TcpListener;
use tokio::sync::oneshot;

#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error("the environment variable PORT is missing; it says which port of 127.0.0.1 to listen on, e.g. PORT=8088")]
    NoPort,
    #[error("PORT is {0:?}, which is not a port; a number from 1 to 65535 is expected")]
    BadPort(String),
    #[error("port {0} of 127.0.0.1 is taken by another program; choose another PORT")]
    PortTaken(u16),
    #[error("cannot listen on port {0} of 127.0.0.1")]
    Listen(u16, #[source] std::io::Error),
    #[error("the server stopped")]
    Serve(#[source] std::io::Error),
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
            eprintln!("parcels-api: {error}{}", cause.unwrap_or_default());
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), StartError> {
    let port = port()?;
    let manifests = std::env::var_os("MANIFESTS").map_or_else(|| PathBuf::from("manifests"), PathBuf::from);
    let listener = TcpListener::bind(("127.0.0.1", port)).await.map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => StartError::PortTaken(port),
        _ => StartError::Listen(port, error),
    })?;
    // Said to a person only: a runner shows its own progress on this terminal.
    if std::io::stdin().is_terminal() {
        eprintln!(
            "parcels-api: listening on http://127.0.0.1:{port}, manifests go to {}; end with Ctrl-C or Ctrl-D",
            manifests.display()
        );
    }
    axum::serve(listener, http::router(manifests))
        .with_graceful_shutdown(end_of_stdin())
        .await
        .map_err(StartError::Serve)
}

fn port() -> Result<u16, StartError> {
    let text = std::env::var_os("PORT").ok_or(StartError::NoPort)?;
    let text = text.to_string_lossy();
    match text.parse() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(StartError::BadPort(text.into_owned())),
    }
}

/// Ends when standard input does. A thread of its own reads it, for such a read cannot be cancelled.
async fn end_of_stdin() {
    let (ended, end) = oneshot::channel::<()>();
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin().lock();
        let mut buffer = [0; 256];
        loop {
            match stdin.read(&mut buffer) {
                Ok(0) => break,
                Err(error) if error.kind() != ErrorKind::Interrupted => break,
                Ok(_) | Err(_) => {}
            }
        }
        drop(ended);
    });
    // An error says that the sender is gone, which is the news waited for.
    let _ = end.await;
}
