//! Runs seeds of the simulation, and replays one with its trace.

mod command;

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::Parser;
use fanfold_simulation::{Permissions, SeedReport, Stats, digest, run};
use mimalloc::MiMalloc;

/// Most of a run is small pieces of memory, taken and freed.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Runs Fanfold under seeds that decide every delivery, clock and fault.
#[derive(Parser)]
struct Args {
    /// How many seeds to run.
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// Seeds run at once.
    #[arg(long, default_value_t = 2)]
    jobs: u64,
    /// Runs this one seed only.
    #[arg(long)]
    seed: Option<u64>,
    /// Prints the trace of that seed.
    #[arg(long)]
    trace: bool,
    /// Stops at the first seed that fails.
    #[arg(long)]
    stop: bool,
    /// Fails if some request of a step was never hit by a crash, before and after it was applied, if no write was judged by
    /// some contract, or if functions did something else than what template.yaml allows them.
    #[arg(long)]
    covered: bool,
    /// Runs every schedule of small cases in place of seeds: of those that are named, or of all.
    #[arg(long, num_args = 0.., value_name = "CASE")]
    small: Option<Vec<String>>,
    /// Faults in one schedule of a small case at most.
    #[arg(long, default_value_t = 1)]
    faults: usize,
    /// Seconds after which a small case that is not finished counts as failed.
    #[arg(long, default_value_t = 3_600)]
    seconds: u64,
    /// Prints nothing but the digest of that seed's trace.
    #[arg(long)]
    digest: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if let Some(names) = &args.small {
        return command::small(names, &args);
    }
    match args.seed {
        Some(seed) => one(seed, &args),
        None => many(&args),
    }
}

fn one(seed: u64, args: &Args) -> ExitCode {
    match run(seed) {
        Ok(outcome) if args.digest => {
            println!("{:016x}", digest(&outcome.trace));
            ExitCode::SUCCESS
        }
        Ok(outcome) => {
            if args.trace {
                outcome.trace.iter().for_each(|line| println!("{line}"));
            }
            print(&outcome);
            if outcome.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(problem) => {
            eprintln!("seed {seed} could not be run: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn print(outcome: &SeedReport) {
    let verdict = if outcome.violations.is_empty() { "holds" } else { "FAILS" };
    println!(
        "seed {} {verdict} after {:?} of its own time, {} lines",
        outcome.seed,
        outcome.lasted,
        outcome.trace.len()
    );
    for violation in &outcome.violations {
        println!("  {violation}");
    }
    if !outcome.violations.is_empty() {
        println!("  replay: cargo run --release -p fanfold-simulation -- --seed {} --trace", outcome.seed);
    }
}

/// What many seeds came to.
#[derive(Default)]
struct Sum {
    stats: Stats,
    count: u64,
    failed: BTreeSet<u64>,
}

impl Sum {
    fn add(&mut self, seed: u64, outcome: Result<SeedReport, String>) {
        self.count += 1;
        match outcome {
            Ok(outcome) => {
                self.stats.merge(&outcome.stats);
                if !outcome.violations.is_empty() {
                    print(&outcome);
                    self.failed.insert(seed);
                }
            }
            Err(problem) => {
                println!("seed {seed} could not be run: {problem}");
                self.failed.insert(seed);
            }
        }
    }

    fn report(&self, from: u64) {
        let (count, failed) = (self.count, self.failed.len());
        println!("\n{count} seeds from {from} run, {failed} failed: {:?}\n\n{}", self.failed, self.stats.report());
    }
}

fn many(args: &Args) -> ExitCode {
    let next = AtomicU64::new(args.from);
    let end = args.from + args.seeds;
    let sum = Mutex::new(Sum::default());
    std::thread::scope(|scope| {
        for _ in 0..args.jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        return;
                    }
                    let outcome = run(seed);
                    let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
                    sum.add(seed, outcome);
                    if args.stop && !sum.failed.is_empty() {
                        // Another thread may be in the middle of a long seed; the process does not wait for it.
                        sum.report(args.from);
                        std::process::exit(1);
                    }
                }
            });
        }
    });
    let sum = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    sum.report(args.from);
    let missed = if args.covered { missed(&sum.stats) } else { Vec::new() };
    missed.iter().for_each(|what| println!("{what}"));
    if sum.failed.is_empty() && missed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What the seeds should have reached and did not, and what functions may do and did not, or the other way round.
fn missed(stats: &Stats) -> Vec<String> {
    let mut missed: Vec<String> =
        stats.missed().iter().map(|place| format!("no crash before or after: {place}")).collect();
    missed.extend(stats.unjudged().iter().map(|contract| format!("no write was judged by: {contract}")));
    match Permissions::compare(stats) {
        Ok(Permissions { missing, spare }) => {
            missed.extend(missing.iter().map(|what| format!("the template does not allow {what:?}")));
            missed.extend(spare.iter().map(|what| format!("the template allows, but nobody used {what:?}")));
        }
        Err(problem) => missed.push(problem),
    }
    missed
}
