//! The request that tasks would make, and how an answer to it would be read.

use std::path::PathBuf;

use fanfold::grouping::{self, BatchSize, Filling, Load};
use fanfold::ids::TaskId;
use fanfold::policy::Policy;
use fanfold_batch_api::{Answer, Call, CallError, CallMember, MemberOutcome, Reading, Request};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use uuid::Uuid;

use super::Tried;
use crate::client::view::{request_text, shown};
use crate::failure::Failure;
use crate::fault::Fault;

/// Tasks that could be in one batch.
#[derive(Debug)]
pub(super) struct Batch {
    target: String,
    partition: Option<u32>,
    filling: Filling,
    members: Vec<(u64, Box<RawValue>)>,
}

/// Tasks by batches, in the order of their lines.
#[derive(Debug, Default)]
pub(super) struct Batches(Vec<Batch>);

impl Batches {
    /// Adds the task of a line: to the first batch of its lane that has room for it.
    pub(super) fn add(&mut self, policy: &Policy, task: &Tried, line: u64, content: Box<RawValue>) {
        let distinct = task.distinct.as_deref().map(grouping::distinct);
        let weight = task.weight.unwrap_or_default();
        let load = Load { bytes: task.bytes, weight, distinct, ..Load::default() };
        let mut lane =
            self.0.iter_mut().filter(|batch| batch.target == task.target && batch.partition == task.partition);
        if let Some(batch) = lane.find_map(|batch| batch.filling.take(load).then_some(batch)) {
            batch.members.push((line, content));
            return;
        }
        let mut filling = Filling::new(BatchSize::of(policy));
        filling.take(load);
        let (target, partition) = (task.target.clone(), task.partition);
        self.0.push(Batch { target, partition, filling, members: vec![(line, content)] });
    }

    /// What is shown of them: the requests and, if there is one, how the answer would be read. True: a task cannot be in a request.
    pub(super) fn show(&self, policy: &Policy, answer: Option<&Given>) -> Result<(Vec<Shown>, bool), Failure> {
        if let (Some(_), false) = (answer, self.0.len() == 1) {
            let problem =
                format!("the tasks make {} batches, and an answer is to one; give tasks of one batch", self.0.len());
            return Err(Fault::new("--answer", problem).into());
        }
        let (mut all, mut unfit) = (Vec::new(), false);
        for batch in &self.0 {
            let call = batch.call(&policy.kind);
            match Request::new(&policy.batch_api, &call) {
                Ok(request) => {
                    unfit |= request.mapping.as_ref().is_some_and(|mapping| !mapping.unfit.is_empty());
                    all.push(batch.request(policy, &request)?);
                    all.extend(answer.map(|answer| batch.answer(&request, answer)));
                }
                Err(error) => {
                    unfit = true;
                    all.push(Shown {
                        json: json!({"request": null, "problem": error.message}),
                        text: format!("no request: {error}"),
                    });
                }
            }
        }
        Ok((all, unfit))
    }
}

/// An answer to be read.
#[derive(Debug)]
pub(super) struct Given {
    status: u16,
    body: Vec<u8>,
}

impl Given {
    pub(super) fn read(file: Option<&PathBuf>, status: u16) -> Result<Option<Self>, Failure> {
        let Some(file) = file else { return Ok(None) };
        let body = std::fs::read(file).map_err(|error| Fault::new(file.display(), error))?;
        Ok(Some(Self { status, body }))
    }
}

/// Something shown, as JSON and for people.
pub(super) struct Shown {
    pub(super) json: Value,
    pub(super) text: String,
}

impl Batch {
    fn call(&self, kind: &str) -> Call {
        // Ids that show which line each is of.
        let member = |(line, content): &(u64, Box<RawValue>)| CallMember {
            id: TaskId::Single(Uuid::from_u128(u128::from(*line))),
            content: content.clone(),
        };
        let members = self.members.iter().map(member).collect();
        Call { batch_id: Uuid::nil(), kind: kind.to_owned(), attempt: 1, target: self.target.clone(), members }
    }

    fn request(&self, policy: &Policy, request: &Request<'_>) -> Result<Shown, Failure> {
        let unusable = |error: CallError| Failure::from(Fault::new("the request", error));
        let lines: Vec<u64> = self.members.iter().map(|(line, _)| *line).collect();
        let shown = request.shown(&policy.batch_api, usize::MAX).map_err(unusable)?;
        let request_json = json!(shown);
        let mut text = format!("request\n{}", request_text(&request_json));
        for (at, problem) in request.mapping.iter().flat_map(|mapping| &mapping.unfit) {
            text.push_str(&format!("\n  without line {}: {problem}", lines.get(*at).copied().unwrap_or_default()));
        }
        Ok(Shown { json: json!({"lines": lines, "request": request_json}), text })
    }

    fn answer(&self, request: &Request<'_>, given: &Given) -> Shown {
        let (call, status) = (request.call, given.status);
        let read = match &request.mapping {
            Some(mapping) if mapping.reads() => mapping
                .read(call, status, &status.to_string(), &given.body)
                .map(|readings| (readings.members, readings.problem)),
            _ if (200..300).contains(&status) => Answer::read_success(status, &given.body, call).map(|answer| {
                let answer = match &request.mapping {
                    Some(mapping) => mapping.complete(answer, call),
                    None => answer,
                };
                as_any_batch_api(answer, call)
            }),
            _ => {
                let cause = fanfold_batch_api::Cause::Status(status);
                Err(CallError::new(cause, format!("the batch API answered {status}")))
            }
        };
        let (members, problem) = match read {
            Ok(read) => read,
            Err(error) => {
                let then = match (error.retriable, error.cause.concerns_every_batch()) {
                    (true, _) => "the call is repeated",
                    (false, true) => "the kind waits, unless the policy has `refusals: fail`",
                    (false, false) if call.members.len() > 1 => "the batch is split",
                    (false, false) => "its member fails",
                };
                let json = json!({"answer": {"status": status, "failed": error.message, "retried": error.retriable}});
                return Shown { json, text: format!("answer {status}\n  {}; {then}", error.message) };
            }
        };
        let mut text = format!("answer {status}");
        let mut list = Vec::new();
        for ((line, _), reading) in self.members.iter().zip(members) {
            let (outcome, said) =
                reading.map_or(("no outcome", String::new()), |reading| (name(reading.outcome), said(&reading)));
            text.push_str(format!("\n  line {line:<6}{outcome:<12}{}", shown(&said)).trim_end());
            list.push(json!({"line": line, "outcome": outcome, "said": said}));
        }
        if let Some(problem) = &problem {
            text.push_str(&format!("\n  {problem}; members without an outcome are tried again"));
        }
        Shown { json: json!({"answer": {"status": status, "members": list, "problem": problem}}), text }
    }
}

/// An answer as any batch API gives it, by member.
fn as_any_batch_api(answer: Answer, call: &Call) -> (Vec<Option<Reading>>, Option<String>) {
    let reading = Reading::new;
    let (named, problem) = match answer {
        Answer::AllSucceeded => {
            return (call.members.iter().map(|_| Some(reading(MemberOutcome::Succeeded, None))).collect(), None);
        }
        Answer::Members(members) => (members, None),
        Answer::Unclear { members, problem } => (members, Some(problem)),
        Answer::Later(later) => (later.members, Some("the outcomes come later".to_owned())),
    };
    let find = |member: &CallMember| {
        let found = named.iter().find(|named| named.id == member.id);
        found.map(|found| reading(found.outcome, found.error.clone()))
    };
    (call.members.iter().map(find).collect(), problem)
}

fn name(outcome: MemberOutcome) -> &'static str {
    match outcome {
        MemberOutcome::Succeeded => "succeeded",
        MemberOutcome::Failed => "failed",
        MemberOutcome::Retry => "retry",
        MemberOutcome::Unclear => "unclear",
        MemberOutcome::Unnamed => "no outcome",
    }
}

/// The error of a member, or its result.
fn said(reading: &Reading) -> String {
    let result =
        || reading.result.as_ref().map(|result| result.as_str().map_or_else(|| result.to_string(), str::to_owned));
    reading.error.clone().or_else(result).unwrap_or_default()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use fanfold::policy::CompiledPolicy;

    /// The lines of each batch that these contents make.
    fn batches(policy: Value, contents: &[Value]) -> Vec<Vec<u64>> {
        let mut all = json!({"kind": "row", "target": "kind", "batch_api": {"url": "https://example.com/"}});
        all.as_object_mut().unwrap().extend(policy.as_object().unwrap().clone());
        let policy = CompiledPolicy::new(serde_json::from_value(all).unwrap()).unwrap();
        let mut batches = Batches::default();
        for (line, content) in (1..).zip(contents) {
            let task = Tried::new(&policy, content).unwrap();
            batches.add(&policy.policy, &task, line, RawValue::from_string(content.to_string()).unwrap());
        }
        let lines = |batch: &Batch| batch.members.iter().map(|(line, _)| *line).collect();
        batches.0.iter().map(lines).collect()
    }

    #[test]
    fn tasks_make_the_batches_that_their_policy_allows() {
        let weights = |weights: &[u64]| weights.iter().map(|kg| json!({ "kg": kg })).collect::<Vec<_>>();
        let heavy = json!({"weight": "content.kg", "max_weight": 10});
        assert_eq!(batches(heavy, &weights(&[4, 4, 4, 2, 11])), [vec![1, 2, 4], vec![3], vec![5]]);
        assert_eq!(batches(json!({"max_batch": 2}), &weights(&[1, 1, 1])), [vec![1, 2], vec![3]]);
        let apart = json!({"distinct": "string(content.kg)"});
        assert_eq!(batches(apart, &weights(&[1, 1, 2])), [vec![1, 3], vec![2]]);
        let large = json!({"max_batch_bytes": 300});
        assert_eq!(batches(large, &weights(&[1, 1, 1])), [vec![1, 2], vec![3]]);
        let lanes = json!({"key": "string(content.kg)", "partitions": 1_000});
        assert_eq!(batches(lanes, &weights(&[1, 2, 1])), [vec![1, 3], vec![2]], "other partitions are other lanes");
    }
}
