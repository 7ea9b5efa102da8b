//! `fanfold sandbox`: a batch API to try against, which is as slow, busy, faulty and forgetful as its options say.

mod args;
mod behaviour;
mod counts;
mod ledger;
mod log;
mod percent;
mod server;

pub(crate) use args::SandboxArgs;

use std::sync::{Arc, Mutex, PoisonError};

use fanfold_local::http::{self, Timeouts};
use serde_json::json;

use crate::client::print;
use crate::failure::Failure;
use crate::fault::Fault;
use crate::say::say;
use crate::serve::bind;
use crate::stop::Stop;
use ledger::Ledger;
use log::CallLog;
use server::Sandbox;

/// Serves the batch API until Ctrl-C or SIGTERM. If `PORT` says where to listen, it also ends with its standard input, so that
/// it does not outlive the run that started it.
pub(crate) async fn run(args: SandboxArgs) -> Result<(), Failure> {
    let (listen, is_started) = args.address();
    let listener = bind(&listen).await?;
    let address = listener.local_addr().map_err(|error| Failure::io("--listen", error))?;
    let log = args.log.as_deref().map(CallLog::open).transpose()?;
    let shape = args.shape().ok_or_else(|| Fault::new("--as", "there is no such preset"))?;
    let ledger = Arc::new(Mutex::new(Ledger::new(args.behaviour(), shape.clone(), args.forget_keys)));
    let router = server::router(Arc::new(Sandbox::new(shape, Arc::clone(&ledger), log)));
    let stop = Stop::listen()?;
    if args.json {
        let url = format!("http://{address}");
        print(&format!("{:#}", json!({"counts": format!("{url}/counts"), "url": url})))?;
    } else if !is_started {
        say(format_args!(
            "the sandbox is at http://{address}, its counts at http://{address}/counts; stop it with Ctrl-C"
        ));
    }
    tokio::select! {
        () = http::serve(listener, router, Timeouts::default()) => {}
        () = input_ends(), if is_started => {}
        _ = stop.asked() => {}
    }
    let counts = ledger.lock().unwrap_or_else(PoisonError::into_inner).counts().clone();
    if args.json {
        print(&format!("{:#}", json!(counts)))?;
    } else {
        say(counts);
    }
    Ok(())
}

/// Waits for the end of standard input, by a thread that the end of the process does not wait for.
async fn input_ends() {
    let (sender, ended) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        let _ = sender.send(());
    });
    let _ = ended.await;
}
