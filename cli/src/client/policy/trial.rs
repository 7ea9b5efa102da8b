//! `fanfold policy try`.

mod exchange;

use std::io::{BufRead, Read};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use fanfold::content;
use fanfold::grouping::BatchSize;
use fanfold::lane::Lane;
use fanfold::limits::BATCH_BYTES_DEFAULT;
use fanfold::policy::{CompiledPolicy, HeadStart, Policy, Weight};
use fanfold::share::share;
use serde::Serialize;
use serde_json::{Value, json};

use self::exchange::{Batches, Given};
use super::super::connection::Connection;
use super::super::print::print;
use super::kind;
use crate::failure::Failure;
use crate::fault::Fault;
use crate::policies::{self, from_standard_input};
use crate::rows::is_spread;

/// Exit status: some tasks would be refused.
const REFUSED: u8 = 3;

/// Bytes of a task that is spread over several lines.
const SPREAD_BYTES_MAX: u64 = 16 * 1_024 * 1_024;

/// Shows where tasks belong by a policy, without registering them. If the policy
/// describes how its batch API is called, shows the requests, without a call.
///
/// The contents of tasks are read from standard input, one JSON value per line; a
/// single value may be spread over several lines. Tasks of several lines make one
/// batch, as far as their lane and the size of batches (`max_batch`, `max_weight`,
/// `max_batch_bytes`, `distinct`) allow.
///
///   echo '{"depot": "117"}' | fanfold policy try parcel           by the stack's policy
///   echo '{"depot": "117"}' | fanfold policy try -f policy.yaml   without a stack
///   fanfold policy try -f policy.yaml --answer answer.json < tasks.ndjson
///                                                                 how an answer would be read
///
/// The exit status is
///
///   0   all tasks would be accepted
///   1   the stack cannot be reached, or another error
///   2   the policy cannot be used, or the kind has none
///   3   some tasks would be refused
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct TryArgs {
    /// The kind: its policy in the stack or, with several policies in files, its policy there.
    #[arg(value_name = "KIND", value_parser = kind, required_unless_present = "files")]
    kind: Option<String>,
    /// Files of policies, used instead of the stack's.
    #[arg(short, long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// A file with the body of an answer: shows what it means for each task.
    #[arg(long, value_name = "FILE")]
    answer: Option<PathBuf>,
    /// The status of the answer.
    #[arg(long, value_name = "STATUS", default_value_t = 200, requires = "answer", value_parser = clap::value_parser!(u16).range(100..=599))]
    status: u16,
    #[command(flatten)]
    connection: Connection,
}

pub(super) async fn run(args: TryArgs) -> Result<ExitCode, Failure> {
    let json = args.connection.json();
    let policy = if args.files.is_empty() {
        of_stack(args.connection, &args.kind.unwrap_or_default()).await?
    } else {
        of_files(&args.files, args.kind.as_deref())?
    };
    let answer = Given::read(args.answer.as_ref(), args.status)?;
    let (mut refused, mut batches) = (false, Batches::default());
    let mut input = std::io::stdin().lock();
    each_content(&mut input, |line, content| {
        let tried = content.and_then(|content| {
            let tried = Tried::new(&policy, &content)?;
            let content =
                serde_json::value::to_raw_value(&content).map_err(|error| (Some("content"), error.to_string()))?;
            batches.add(&policy.policy, &tried, line, content);
            Ok(tried)
        });
        refused |= tried.is_err();
        let text = match (json, tried) {
            (true, Ok(tried)) => tried.document(line).to_string(),
            (true, Err((field, problem))) => json!({"line": line, "field": field, "problem": problem}).to_string(),
            (false, Ok(tried)) => format!("line {line}\n{}", tried.text()),
            (false, Err((None, problem))) => format!("line {line}: {problem}"),
            (false, Err((Some(field), problem))) => format!("line {line}: `{field}`: {problem}"),
        };
        print(&text)
    })?;
    let mapped = policy.policy.batch_api.request.is_some() || policy.policy.batch_api.response.is_some();
    if mapped || answer.is_some() {
        let (shown, unfit) = batches.show(&policy.policy, answer.as_ref())?;
        refused |= unfit;
        for shown in shown {
            print(&if json { shown.json.to_string() } else { shown.text })?;
        }
    }
    Ok(if refused { ExitCode::from(REFUSED) } else { ExitCode::SUCCESS })
}

/// The policy of a kind in the stack.
async fn of_stack(connection: Connection, kind: &str) -> Result<CompiledPolicy, Failure> {
    let stack = connection.stack()?;
    let policy = stack.api.policy(kind).await.map_err(|error| stack.failed(error))?;
    let unusable = |problem: &dyn std::fmt::Display| {
        Failure::from(Fault::new(format_args!("the stack's policy of kind `{kind}`"), problem))
    };
    let policy: Policy = fanfold::json::shape(policy).map_err(|error| unusable(&error))?;
    CompiledPolicy::new(policy).map_err(|error| unusable(&error))
}

/// The policy in files.
fn of_files(files: &[PathBuf], kind: Option<&str>) -> Result<CompiledPolicy, Failure> {
    if from_standard_input(files) {
        return Err(Fault::new("-f -", "tasks are read from standard input, a file is expected").into());
    }
    let mut found = policies::read(files, true)?;
    let kinds: Vec<String> = found.iter().map(|policy| format!("`{}`", policy.kind())).collect();
    found.retain(|policy| kind.is_none_or(|kind| policy.kind() == kind));
    match (found.pop(), found.is_empty()) {
        (Some(policy), true) => Ok(policy.compiled),
        _ => {
            let problem = format!("name one of the kinds in the files: {}", kinds.join(", "));
            Err(Fault::new("KIND", problem).into())
        }
    }
}

/// What is wrong with a task: the field, if there is one, and why.
type Wrong = (Option<&'static str>, String);

/// Hands each content with its line to `visit`, until that returns false.
fn each_content(
    input: &mut impl BufRead,
    mut visit: impl FnMut(u64, Result<Value, Wrong>) -> Result<bool, Failure>,
) -> Result<(), Failure> {
    let broken = |error| Failure::io("standard input", error);
    let parse = |text: &[u8]| {
        let no_json = |error: serde_json::Error| (None, format!("is not JSON: {error}"));
        serde_json::from_slice::<Value>(text).map_err(no_json)
    };
    for line in 1_u64.. {
        let mut text = Vec::new();
        if input.read_until(b'\n', &mut text).map_err(broken)? == 0 {
            return Ok(());
        }
        if line == 1 && is_spread(&text) {
            input.take(SPREAD_BYTES_MAX).read_to_end(&mut text).map_err(broken)?;
        }
        if !text.trim_ascii().is_empty() && !visit(line, parse(&text))? {
            return Ok(());
        }
    }
    Ok(())
}

/// Where a task belongs, and what it takes of a batch.
#[derive(Debug, PartialEq, Serialize)]
struct Tried {
    target: String,
    key: Option<String>,
    scope: Option<String>,
    /// None if the task's id decides.
    partition: Option<u32>,
    lane: Option<Lane>,
    weight: Option<Weight>,
    distinct: Option<String>,
    /// Whether it ends its lane's linger. None if the policy does not say when.
    flushes: Option<bool>,
    /// By how much earlier it counts in the order of its lane. None if the policy has no priority.
    head_start: Option<HeadStart>,
    /// Bytes that it counts for in a batch.
    bytes: u32,
    /// Whether it alone exceeds the limits of a batch.
    goes_alone: bool,
}

impl Tried {
    fn new(compiled: &CompiledPolicy, content: &Value) -> Result<Self, Wrong> {
        let policy = &compiled.policy;
        let encoded = content::encode(content).map_err(|error| (Some("content"), error.to_string()))?;
        let values = compiled.values(content).map_err(|(field, error)| (Some(field), error.to_string()))?;
        let bytes = BatchSize::of(policy).bytes_of(encoded.len());
        let partition = match &values.key {
            Some(key) => Some(share(key, policy.partitions)),
            None => (policy.partitions == 1).then_some(0),
        };
        let lane = |partition| Lane { kind: policy.kind.clone(), partition, target: values.target.clone() };
        let too_heavy = values.weight.zip(policy.max_weight).is_some_and(|(weight, most)| weight > most);
        Ok(Self {
            lane: partition.map(lane),
            goes_alone: too_heavy || bytes > policy.max_batch_bytes.unwrap_or(BATCH_BYTES_DEFAULT),
            target: values.target,
            key: values.key,
            scope: values.scope,
            partition,
            weight: values.weight,
            distinct: values.distinct,
            flushes: values.flushes,
            head_start: values.head_start,
            bytes,
        })
    }

    fn document(&self, line: u64) -> Value {
        let mut document = json!({ "line": line });
        if let (Value::Object(all), Value::Object(own)) = (&mut document, json!(self)) {
            all.extend(own);
        }
        document
    }

    fn text(&self) -> String {
        let partition = self.partition.map_or_else(|| "by the task's id".to_owned(), |partition| partition.to_string());
        let rows = [
            ("target", Some(self.target.clone())),
            ("key", self.key.clone()),
            ("scope", self.scope.clone()),
            ("partition", Some(partition)),
            ("lane", self.lane.as_ref().map(Lane::to_string)),
            ("weight", self.weight.map(|weight| weight.to_string())),
            ("distinct", self.distinct.clone()),
            ("flushes", self.flushes.map(|flushes| flushes.to_string())),
            ("head start", self.head_start.map(|head_start| head_start.to_string())),
            ("bytes", Some(self.bytes.to_string())),
            ("alone", self.goes_alone.then(|| "exceeds the limits of a batch by itself".to_owned())),
        ];
        let row =
            |(name, value): (&str, Option<String>)| Some(format!("  {name:<11}{}", super::super::view::shown(&value?)));
        rows.into_iter().filter_map(row).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn tried(policy: Value, content: Value) -> Result<Value, Wrong> {
        let mut all = json!({"kind": "row", "target": "content.a", "batch_api": {"url": "https://example.com/"}});
        all.as_object_mut().unwrap().extend(policy.as_object().unwrap().clone());
        let policy = CompiledPolicy::new(serde_json::from_value(all).unwrap()).unwrap();
        Tried::new(&policy, &content).map(|tried| tried.document(7))
    }

    #[test]
    fn what_a_policy_makes_of_a_task_is_shown() {
        let all = json!({
            "key": "content.k", "scope": "kind", "partitions": 4, "weight": "content.w", "max_weight": 2.5,
            "distinct": "[content.a, content.k]", "flush_when": "content.w > 1", "priority": "double(content.w) * 40.0",
            "max_batch_bytes": 1_000,
        });
        let shown = tried(all.clone(), json!({"a": 1, "k": "x", "w": 2})).unwrap();
        let partition = share("x", 4);
        let expected = json!({
            "line": 7, "target": "1", "key": "x", "scope": "row", "partition": partition, "lane": format!("row:{partition}:1"),
            "weight": 2, "distinct": "1/x", "flushes": true, "head_start": "1m 20s",
            "bytes": 128 + 21, "goes_alone": false,
        });
        assert_eq!(shown, expected);
        assert_eq!(tried(all, json!({"a": 1, "k": "x", "w": 3})).unwrap()["goes_alone"], true);
        let apart = tried(json!({"partitions": 4}), json!({"a": 1})).unwrap();
        assert_eq!((&apart["partition"], &apart["lane"]), (&Value::Null, &Value::Null), "its id decides");
        assert_eq!(tried(json!({}), json!({"b": 1})).unwrap_err().0, Some("target"));
        assert_eq!(tried(json!({}), json!({"a": "x".repeat(200_000)})).unwrap_err().0, Some("content"));
    }

    #[test]
    fn contents_come_a_line_each_or_one_over_many_lines() {
        let read = |text: &str| {
            let mut found = Vec::new();
            each_content(&mut text.as_bytes(), |line, content| {
                found.push((line, content.map_err(|(_, problem)| problem.contains("is not JSON"))));
                Ok(true)
            })
            .unwrap();
            found
        };
        assert_eq!(read("1\n\n{\n2"), [(1, Ok(json!(1))), (3, Err(true)), (4, Ok(json!(2)))]);
        assert_eq!(read("{\n \"a\": 1\n}\n"), [(1, Ok(json!({"a": 1})))]);
        assert_eq!(read("{\n \"a\": 1\n"), [(1, Err(true))]);
        assert!(read("\n").is_empty());
    }
}
