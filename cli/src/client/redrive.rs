//! `fanfold redrive`.

use std::process::ExitCode;

use clap::Args;
use fanfold_client::Redriven;
use indicatif::HumanCount;
use serde_json::{Value, json};

use super::connection::{Connection, Stack};
use super::print::table;
use crate::failure::Failure;

/// Lists dead letters, or moves them back to the queues of their steps.
///
///   fanfold redrive               the number of dead letters of each step
///   fanfold redrive handle ack    moves those of these steps back
///   fanfold redrive --all         moves all of them back
///
/// A message is a dead letter after its step failed five times. Fix the cause
/// first: see the logs of the step. No message is lost. A message may be moved
/// twice, which does no harm. Only counts of estimated fan-outs would count twice:
/// such messages stay. The exit status is
///
///   0   they are listed, or moved
///   1   some of them stay, or the stack cannot be reached
///   2   there is no such step
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct RedriveArgs {
    /// Steps whose dead letters are moved back.
    #[arg(value_name = "STEP", conflicts_with = "all")]
    steps: Vec<String>,
    /// Move the dead letters of all steps back.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(super) async fn run(args: RedriveArgs) -> Result<ExitCode, Failure> {
    let stack = args.connection.stack()?;
    if args.steps.is_empty() && !args.all {
        return list(&stack).await;
    }
    let steps = if args.all { with_letters(&stack).await? } else { args.steps };
    let mut moved: Vec<(String, Redriven)> = Vec::new();
    for step in steps {
        let redriven = stack.api.redrive(&step).await.map_err(|error| stack.failed(error))?;
        moved.push((step, redriven));
    }
    let text = || match moved.is_empty() {
        true => "There are no dead letters.".to_owned(),
        false => moved.iter().map(|(step, redriven)| line(step, redriven)).collect::<Vec<_>>().join("\n"),
    };
    let queue = |(step, redriven): &(String, Redriven)| {
        let mut queue = json!(redriven);
        queue["step"] = step.as_str().into();
        queue
    };
    stack.print(|| json!({"queues": moved.iter().map(queue).collect::<Vec<_>>()}), text)?;
    let stay = moved.iter().any(|(_, redriven)| redriven.kept + redriven.refused > 0);
    Ok(if stay { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

fn line(step: &str, redriven: &Redriven) -> String {
    let stay = [(redriven.kept, "stay, as they have counts"), (redriven.refused, "refused by SQS")];
    let stay = stay.into_iter().filter(|(count, _)| *count > 0);
    let stay: String = stay.map(|(count, why)| format!(", {} {why}", HumanCount(count))).collect();
    format!("{step}: {} moved{stay}", HumanCount(redriven.moved))
}

async fn queues(stack: &Stack) -> Result<Vec<(String, u64)>, Failure> {
    let listed = stack.api.dead_letters().await.map_err(|error| stack.failed(error))?;
    let queue = |queue: &Value| Some((queue["step"].as_str()?.to_owned(), queue["messages"].as_u64()?));
    Ok(listed["queues"].as_array().into_iter().flatten().filter_map(queue).collect())
}

/// The steps that have dead letters.
async fn with_letters(stack: &Stack) -> Result<Vec<String>, Failure> {
    let queues = queues(stack).await?;
    Ok(queues.into_iter().filter(|(_, messages)| *messages > 0).map(|(step, _)| step).collect())
}

async fn list(stack: &Stack) -> Result<ExitCode, Failure> {
    let queues = queues(stack).await?;
    let json = || json!({"queues": queues.iter().map(|(step, count)| json!({"step": step, "messages": count})).collect::<Vec<_>>()});
    let rows: Vec<[String; 2]> =
        queues.iter().map(|(step, count)| [step.clone(), HumanCount(*count).to_string()]).collect();
    stack.print(json, || table(["STEP", " DEAD LETTERS"], &rows))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_stays() {
        let line = |redriven: Value| line("ack", &serde_json::from_value(redriven).unwrap());
        assert_eq!(line(json!({"moved": 1_000, "kept": 0, "refused": 0, "more": false})), "ack: 1,000 moved");
        let some = json!({"moved": 1, "kept": 2, "refused": 3, "more": true});
        assert_eq!(line(some), "ack: 1 moved, 2 stay, as they have counts, 3 refused by SQS");
    }
}
