//! What a call of the batch API must be, by what was asked for and said before.

use std::collections::BTreeSet;
use std::time::Duration;

use fanfold::ids::TaskId;
use fanfold_batch_api::{Answer, Call, CallError, CallMember, MemberOutcome, Request};
use uuid::Uuid;

use super::{CallLimits, Model, TaskModel, UNHINDERED};

impl Model {
    /// Members of a call whose fan-outs were cut short before its attempt began.
    fn cut_short(&self, call: &Call) -> Vec<String> {
        let Some(cut_short) = self.cut_before.get(&(call.batch_id, call.attempt)) else { return Vec::new() };
        let late = |id: &TaskId| matches!(id, TaskId::Item(item) if cut_short.contains(&item.fanout));
        let members = call.members.iter().filter(|member| late(&member.id));
        members.map(|member| format!("task {} is called, whose fan-out was cut short before", member.id)).collect()
    }

    /// The batches that the batch API was called for.
    pub(crate) fn called(&self) -> Vec<Uuid> {
        self.attempts.keys().copied().collect()
    }

    /// Tasks that are called so late that they waited for another kind's calls.
    fn starved(&self, call: &Call, limits: &CallLimits) -> Vec<String> {
        if limits.hangs.as_ref().is_none_or(|hangs| *hangs == call.kind) || call.attempt > 1 {
            return Vec::new();
        }
        let waited = |id| self.tasks.get(id).map_or(Duration::ZERO, |task: &TaskModel| task.asked_at.elapsed());
        let starved = call.members.iter().filter(|member| waited(&member.id) > UNHINDERED);
        starved.map(|member| format!("task {} waited for {:?}, {limits:?}", member.id, waited(&member.id))).collect()
    }

    /// Whether a call comes sooner than the rates of its lane and its kind allow.
    fn too_fast(&mut self, call: &Call, apart: Duration) -> Vec<String> {
        let Some(kind) = self.kinds.get(&call.kind) else { return Vec::new() };
        let lane = self.lanes.get(&call.batch_id).map(|lane| format!("lane {lane}"));
        let by_lane = lane.as_ref().zip(kind.lane_rate.as_ref());
        let by_lane = by_lane.and_then(|(lane, counted)| self.rates.called(lane, counted, call, apart));
        let name = format!("kind {}", call.kind);
        let by_kind = kind.kind_rate.as_ref().and_then(|counted| self.rates.called(&name, counted, call, apart));
        by_lane.into_iter().chain(by_kind).collect()
    }

    /// A worker got the answer to a call.
    pub(crate) fn answered(&mut self, call: &Call, result: &Result<Answer, CallError>) {
        let members: Vec<TaskId> = match result {
            Ok(Answer::AllSucceeded) => call.members.iter().map(|member| member.id).collect(),
            Ok(Answer::Members(members) | Answer::Unclear { members, .. }) => {
                let with = |succeeded: bool| {
                    let of =
                        members.iter().filter(move |member| (member.outcome == MemberOutcome::Succeeded) == succeeded);
                    of.map(|member| member.id).collect::<BTreeSet<TaskId>>()
                };
                let called = |id: &TaskId| call.members.iter().any(|member| member.id == *id);
                with(true).difference(&with(false)).copied().filter(called).collect()
            }
            Ok(Answer::Later(_)) => return,
            Err(error) if error.cause.answered() => {
                if error.retriable || error.cause.concerns_every_batch() {
                    self.passing.insert((call.batch_id, call.attempt));
                }
                return;
            }
            Err(_) => {
                let members = call.members.iter().map(|member| member.id).collect();
                self.unanswered.insert((call.batch_id, call.attempt), members);
                return;
            }
        };
        self.worked.insert((call.batch_id, call.attempt), members);
    }

    /// The batch API returned a result for a member. Returns it.
    pub(crate) fn returns(&mut self, call: &Call, id: TaskId) -> serde_json::Value {
        let returned = self.returned.entry((call.batch_id, call.attempt)).or_default();
        let result = serde_json::json!({"of": id, "attempt": call.attempt, "\u{e9}\n": [null, 1.5]});
        returned.insert(id, result.to_string());
        result
    }

    /// What is wrong with the result that a member of a batch is shown with: it must be that of a call whose answer counted.
    pub(crate) fn wrong_result(&self, batch: Uuid, id: &TaskId, shown: Option<&str>) -> Option<String> {
        let counted = self.returned.range((batch, 0)..=(batch, u32::MAX));
        let mut counted = counted.filter(|(call, _)| self.counted_attempts.contains(call));
        let right = counted.any(|(_, returned)| shown.is_some() && returned.get(id).map(String::as_str) == shown);
        (!right).then(|| format!("task {id} succeeded in batch {batch}, and its result is {shown:?}"))
    }

    /// The end of an attempt was written down, and another one follows.
    pub(crate) fn recorded(&mut self, batch: Uuid, attempt: u32) {
        self.pending.remove(&batch);
        self.recorded.extend(self.worked.remove(&(batch, attempt)).into_iter().flatten());
        let ended = self.later.ended.entry(batch).or_default();
        *ended = attempt.max(*ended);
        match self.unanswered.remove(&(batch, attempt)) {
            Some(members) => drop(self.repeated.insert(batch, members)),
            // This says nothing of an earlier call that may have worked: in parts its members would have other keys.
            None if self.passing.contains(&(batch, attempt)) => {}
            None => drop(self.repeated.remove(&batch)),
        }
    }

    /// Whether a call got no answer, or none that its worker knows.
    pub(crate) fn is_unanswered(&self, batch: Uuid, attempt: u32) -> bool {
        self.unanswered.contains_key(&(batch, attempt))
    }

    /// Whether a call is for some of the members of a call that got no answer, or whose end nobody wrote down, and not
    /// for all: of the call before it, or of an earlier one with nothing but faults that may pass since.
    fn not_repeated(&self, call: &Call) -> Option<String> {
        let before = self.pending.get(&call.batch_id).or_else(|| self.repeated.get(&call.batch_id))?;
        let called = |id: &TaskId| call.members.iter().any(|member| member.id == *id);
        let missing = |id: &TaskId| matches!(id, TaskId::Item(item) if self.may_be_missing(item));
        let dropped = |id: &TaskId| missing(id) || self.later.posted.contains(id);
        let others = call.members.iter().any(|member| !before.contains(&member.id));
        let missing = before.iter().any(|id| !called(id) && !dropped(id));
        let some = before.iter().any(called) && (others || missing);
        some.then(|| {
            format!("after no answer to a call for {before:?}, batch {} is called for {:?}", call.batch_id, call)
        })
    }

    /// The batch API is called; what is wrong with the call.
    pub(crate) fn call(&mut self, request: &Request<'_>, limits: &CallLimits) -> Vec<String> {
        let call = request.call;
        let mut problems = self.starved(call, limits);
        problems.extend(self.cut_short(call));
        problems.extend(self.against_the_operator(call));
        problems.extend(self.not_repeated(call));
        if let Some(early) = self.pace.called(call.batch_id).filter(|early| *early > limits.apart) {
            problems.push(format!("attempt {} of batch {} came {early:?} too early", call.attempt, call.batch_id));
        }
        problems.extend(self.later.comes_too_early(call, limits.apart));
        problems.extend(self.too_fast(call, limits.apart));
        let attempts = self.attempts.entry(call.batch_id).or_default();
        *attempts = call.attempt.max(*attempts);
        let members: Vec<TaskId> = call.members.iter().map(|member| member.id).collect();
        let most = self.kinds.get(&call.kind).map_or(0, |kind| kind.max_batch);
        if members.len() > most {
            problems.push(format!("batch {} has {} members, {most} are allowed", call.batch_id, members.len()));
        }
        problems.extend(self.kinds.get(&call.kind).and_then(|kind| kind.filling.exceeded(call)));
        // An attempt that was taken back has made no call, so the next one may have its number, and no other may.
        if self.later.called.insert((call.batch_id, call.attempt), members.clone()).is_some() {
            problems.push(format!("batch {} is called twice in its attempt {}", call.batch_id, call.attempt));
        }
        problems.extend(self.wrongly_keyed(request, members));
        let members = call.members.iter().map(|member| member.id).collect();
        if let Some(lost) = self.pending.insert(call.batch_id, members) {
            // Nobody wrote down how the call before this one ended, so it may have worked.
            self.repeated.insert(call.batch_id, lost);
        }
        problems.extend(call.members.iter().flat_map(|member| self.member_called(call, member)));
        problems
    }

    /// What is wrong with the key of a call of these members.
    fn wrongly_keyed(&mut self, request: &Request<'_>, members: Vec<TaskId>) -> Vec<String> {
        let (batch, key) = (request.call.batch_id, &request.key);
        let mut problems = Vec::new();
        let body = String::from_utf8_lossy(&request.body);
        let known = self.calls.entry(key.to_owned()).or_insert_with(|| body.clone().into_owned());
        if *known != body {
            problems.push(format!("key {key} came with {known} and with {body}"));
        }
        let known = self.keys.entry((batch, members)).or_insert_with(|| key.to_owned());
        if known != key {
            problems.push(format!("a call of the same members had the key {known}, and then {key}"));
        }
        if !key.starts_with(&batch.to_string()) {
            problems.push(format!("batch {} was called under the key {key}", batch));
        }
        problems
    }

    /// What is wrong with calling this member.
    fn member_called(&mut self, call: &Call, member: &CallMember) -> Vec<String> {
        let mut problems = Vec::new();
        *self.tried.entry(member.id).or_default() += 1;
        if self.split.contains(&call.batch_id) {
            *self.tried_in_parts.entry(member.id).or_default() += 1;
        }
        let begun = self.begun.get(&(call.batch_id, call.attempt));
        let posted = self.later.recorded.get(&member.id);
        if posted.zip(begun).is_some_and(|(posted, begun)| posted < begun) {
            problems.push(format!("task {} is called again, although its posted success was recorded", member.id));
        }
        if self.recorded.contains(&member.id) {
            problems.push(format!("task {} is called again, although its success was recorded", member.id));
        }
        let mut content: serde_json::Value = serde_json::from_str(member.content.get()).unwrap_or_default();
        problems.extend(self.take_end(&mut content));
        let rivals = self.rivals(&member.id);
        let same = |task: &TaskModel| task.content == content || task.instead.as_ref() == Some(&content);
        let asked = |id: &TaskId| self.tasks.get(id).is_some_and(|task| task.kind == call.kind && same(task));
        if !rivals.iter().any(asked) {
            problems.push(format!("task {} with content {content} was never asked for", member.id));
        }
        if content["t"].as_str() != Some(&call.target) {
            problems.push(format!("task {} of target {} was called for {}", member.id, content["t"], call.target));
        }
        self.handled_as.insert(member.id, content);
        let batch = *self.batch_of.entry(member.id).or_insert(call.batch_id);
        if batch != call.batch_id {
            problems.push(format!("task {} is a member of {batch} and of {}", member.id, call.batch_id));
        }
        let free =
            |id: &TaskId| self.may_be_released(id) || self.may_be_released_to_others(id) || self.may_be_reissued(id);
        let keeps = |id: &TaskId| self.batch_of.contains_key(id) && !free(id);
        if let Some(other) = rivals.iter().find(|id| **id != member.id && call.attempt == 1 && keeps(id)) {
            problems.push(format!("tasks {} and {other} have one key, and both were handled", member.id));
        }
        problems
    }
}
