//! The command that runs small cases exhaustively.

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fanfold_simulation::{Case, Report, cases, explore};

/// Explores the cases with these names, or all; so many at once.
pub(crate) fn small(names: &[String], faults: usize, jobs: u64, most: Duration) -> ExitCode {
    let all = cases();
    let chosen: Vec<&Case> =
        all.iter().filter(|case| names.is_empty() || names.iter().any(|name| name == case.name)).collect();
    if let Some(name) = names.iter().find(|name| all.iter().all(|case| case.name != **name)) {
        let names: Vec<&str> = all.iter().map(|case| case.name).collect();
        eprintln!("there is no case `{name}`, there are {}", names.join(", "));
        return ExitCode::FAILURE;
    }
    println!("{:<34}{:>10}{:>10}{:>10}{:>10}{:>8}{:>8}", "", "schedules", "whole", "seen", "commute", "ends", "s");
    let (next, sum) = (AtomicUsize::new(0), Mutex::new((0, 0, 0)));
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                while let Some(case) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let report = explore(case, faults, most);
                    let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
                    let (schedules, bad) = tell(case, report);
                    *sum = (sum.0 + schedules, sum.1 + usize::from(bad), sum.2 + 1);
                }
            });
        }
    });
    let (schedules, bad, cases) = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("\n{schedules} schedules of {cases} cases with at most {faults} faults each run, {bad} failed");
    if bad == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints what came of a case. Returns how many schedules were run, and whether something is wrong.
fn tell(case: &Case, report: Result<Report, String>) -> (u64, bool) {
    let report = match report {
        Ok(report) => report,
        Err(problem) => {
            println!("{} could not be run: {problem}", case.name);
            return (0, true);
        }
    };
    let Report { name, whole, seen, asleep, ends, took, .. } = report;
    let (schedules, took) = (report.schedules(), took.as_secs_f64());
    println!("{name:<34}{schedules:>10}{whole:>10}{seen:>10}{asleep:>10}{ends:>8}{took:>8.1}");
    if let Some((violations, trace)) = &report.failure {
        println!("case {name} FAILS: {}", case.about);
        violations.iter().for_each(|violation| println!("  {violation}"));
        trace.iter().for_each(|line| println!("    {line}"));
    } else if !report.complete {
        println!("case {name} was NOT FINISHED in its time");
    }
    (schedules, report.failure.is_some() || !report.complete)
}
