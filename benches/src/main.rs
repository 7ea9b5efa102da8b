//! What `benches/run.py` needs beside the command `fanfold`. Each subcommand but `api` prints one JSON document.

mod acks;
mod api;
mod batching;
mod database;
mod report;
mod room;

use std::error::Error;
use std::io::Write;

use clap::{Parser, Subcommand};
use mimalloc::MiMalloc;

/// As in the command `fanfold`.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// A result, or why there is none.
type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[derive(Debug, Parser)]
#[command(about = "Parts of the benches; benches/run.py runs them")]
struct Cli {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// A batch API for which every call succeeds, on the port in PORT, until its standard input ends.
    Api,
    /// A fan-out whose items are acked, each several times, over the ack queue.
    Acks(acks::Asked),
    /// What one core does between messages of acks and cleared bits.
    AckPath(acks::path::Asked),
    /// Tasks of several targets, grouped into batches.
    Batching(batching::Asked),
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let result = match Cli::parse().what {
        What::Api => return api::serve().await,
        What::Acks(asked) => acks::run(&asked).await?,
        What::AckPath(asked) => acks::path::run(&asked)?,
        What::Batching(asked) => batching::run(&asked).await?,
    };
    writeln!(std::io::stdout(), "{result}")?;
    Ok(())
}
