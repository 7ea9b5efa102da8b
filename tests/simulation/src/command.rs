//! The command that runs small cases exhaustively.

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fanfold_simulation::{Case, Report, cases, explore};

use crate::Args;

/// What the cases came to.
#[derive(Default)]
struct Sum {
    schedules: u64,
    cases: u64,
    failed: u64,
}

impl Sum {
    fn report(&self, faults: usize) {
        let Self { schedules, cases, failed } = self;
        println!("\n{schedules} schedules of {cases} cases, with at most {faults} faults each, {failed} cases failed");
    }
}

/// Explores the cases with these names, or all.
pub(crate) fn small(names: &[String], args: &Args) -> ExitCode {
    let all = cases();
    if let Some(name) = names.iter().find(|name| all.iter().all(|case| case.name != **name)) {
        let names: Vec<&str> = all.iter().map(|case| case.name).collect();
        eprintln!("there is no case `{name}`, there are {}", names.join(", "));
        return ExitCode::FAILURE;
    }
    let wanted = |case: &&Case| names.is_empty() || names.iter().any(|name| name == case.name);
    let chosen: Vec<&Case> = all.iter().filter(wanted).collect();
    println!("{:<34}{:>10}{:>10}{:>10}{:>10}{:>8}{:>8}", "", "schedules", "whole", "seen", "commute", "ends", "s");
    let (next, sum) = (AtomicUsize::new(0), Mutex::new(Sum::default()));
    std::thread::scope(|scope| {
        for _ in 0..args.jobs.max(1) {
            scope.spawn(|| {
                while let Some(case) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let report = explore(case, args.faults, Duration::from_secs(args.seconds));
                    let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
                    sum.schedules += report.as_ref().map_or(0, Report::schedules);
                    sum.cases += 1;
                    sum.failed += u64::from(!print(case, report));
                    if args.stop && sum.failed > 0 {
                        sum.report(args.faults);
                        std::process::exit(1);
                    }
                }
            });
        }
    });
    let sum = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    sum.report(args.faults);
    if sum.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints what came of a case; whether all is well.
fn print(case: &Case, report: Result<Report, String>) -> bool {
    let report = match report {
        Ok(report) => report,
        Err(problem) => {
            println!("{} could not be run: {problem}", case.name);
            return false;
        }
    };
    let Report { name, whole, seen, asleep, ends, took, .. } = report;
    let (schedules, took) = (report.schedules(), took.as_secs_f64());
    println!("{name:<34}{schedules:>10}{whole:>10}{seen:>10}{asleep:>10}{ends:>8}{took:>8.1}");
    if let Some((violations, trace)) = &report.failure {
        println!("case {name} FAILS");
        violations.iter().for_each(|violation| println!("  {violation}"));
        println!("  {}; its schedule:", case.about);
        trace.iter().for_each(|line| println!("    {line}"));
    } else if !report.complete {
        println!("case {name} was NOT FINISHED in its time");
    }
    report.complete
}
