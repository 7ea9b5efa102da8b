//! The batch API answers some calls later: it posts outcomes in parts, some after the deadline, or has the answer when it is asked for.

mod open;
mod posting;
mod refusing;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fanfold::bits::Bits;
use fanfold::ids::TaskId;
use fanfold::policy::Way;
use fanfold_batch_api::{Accepted, Answer, Call, CallError, Cause};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

pub(crate) use self::open::Deadlines;
pub(crate) use self::posting::keep_posting;
use crate::api::SimulatedApi;
use crate::check::ByTask;
use crate::dice::Dice;
use crate::lock;
use crate::scenario::KindPlan;
use crate::server::Server;

/// Outcomes that are to be posted.
#[derive(Clone, Debug)]
pub(crate) struct Post {
    pub(crate) at: Instant,
    pub(crate) batch: Uuid,
    pub(crate) attempt: u32,
    pub(crate) token: String,
    pub(crate) members: Vec<Value>,
    /// Whether they come when the next call has begun.
    pub(crate) late: bool,
}

/// Calls that are answered later.
#[derive(Clone, Debug, Default)]
pub(crate) struct LaterModel {
    /// The tokens of calls, by batch and attempt.
    pub(crate) tokens: BTreeMap<(Uuid, u32), String>,
    pub(crate) posts: Vec<Post>,
    /// Answers that can be asked for, and since when.
    answers: BTreeMap<(Uuid, u32), (Instant, String)>,
    /// Members of which something was posted.
    pub(crate) posted: BTreeSet<TaskId>,
    /// Members of which it was posted that they are to be called again. A worker may say so of what another one has done, who got the
    /// same message.
    pub(crate) retried: BTreeSet<TaskId>,
    /// When the success of a member was known to be recorded.
    pub(crate) recorded: BTreeMap<TaskId, Instant>,
    /// Before when members are not called again, as was asked for with an outcome that is recorded.
    not_before: BTreeMap<TaskId, Instant>,
    /// The slots that had an outcome when an attempt began.
    pub(crate) closed: BTreeMap<(Uuid, u32), Bits>,
    /// The members that an attempt called.
    pub(crate) called: BTreeMap<(Uuid, u32), Vec<TaskId>>,
    /// The latest attempt of each batch whose end was written down, if another one follows.
    pub(crate) ended: BTreeMap<Uuid, u32>,
}

impl LaterModel {
    /// Outcomes of members are recorded, that were posted then. Some ask for a pause before the next call.
    pub(crate) fn asked_to_wait(&mut self, ids: &[TaskId], members: &[Value], posted: Instant) {
        for (id, member) in ids.iter().zip(members) {
            if let Some(seconds) = member["retry_after"].as_u64() {
                let until = posted + Duration::from_secs(seconds);
                self.not_before.entry(*id).and_modify(|at| *at = until.max(*at)).or_insert(until);
            }
        }
    }

    /// What is wrong with a call that comes sooner than a member asked for. `apart`: how far clocks are apart.
    pub(crate) fn comes_too_early(&self, call: &Call, apart: Duration) -> Option<String> {
        let early = |at: &Instant| at.saturating_duration_since(Instant::now());
        let wait = |id| self.not_before.get(id).map(early).filter(|early| *early > apart);
        let (id, early) = call.members.iter().find_map(|member| Some((member.id, wait(&member.id)?)))?;
        Some(format!(
            "batch {} calls {id} {early:?} before the time that was asked for with its outcome",
            call.batch_id
        ))
    }

    /// Whether a call was made for a member whose outcome was recorded when the attempt began.
    pub(crate) fn closed_was_called(&self, batches: &ByTask) -> Option<String> {
        let has_outcome = |call: &(Uuid, u32), id: &TaskId| {
            let slot = batches.get(id).and_then(|batch| batch.members.slot(id));
            self.closed.get(call).zip(slot).is_some_and(|(closed, slot)| closed.get(slot))
        };
        let mut calls = self.called.iter().flat_map(|(call, members)| members.iter().map(move |id| (call, id)));
        let ((batch, attempt), id) = calls.find(|(call, id)| has_outcome(call, id))?;
        Some(format!("attempt {attempt} of batch {batch} called {id}, whose outcome was recorded when it began"))
    }
}

impl KindPlan {
    /// Draws whether its batch API may answer later.
    pub(crate) fn answer_later(&mut self, dice: &Dice) {
        let within = dice.chance(3_500).then(|| dice.pick(&[20, 60, 300]));
        for (_, policy) in &mut self.versions {
            policy.batch_api.answers_within = within.map(fanfold::policy::Span::from_secs);
        }
    }

    /// Draws whether calls that are answered later are messages of a queue.
    pub(crate) fn queue(&mut self, dice: &Dice) {
        let queued = dice.chance(4_000);
        for (_, policy) in
            self.versions.iter_mut().filter(|(_, policy)| policy.batch_api.answers_within.is_some() && queued)
        {
            policy.batch_api.way = Way::Sqs("arn:aws:sqs:eu-west-1:123456789012:workers".to_owned());
        }
    }
}

impl Server {
    /// Takes a call that is a message of a queue, if its kind's are. It is delivered once or twice, and whoever gets it posts what
    /// became of the members. None: its kind's calls are no messages.
    pub(crate) fn queued(&self, call: &Call) -> Option<Result<Answer, CallError>> {
        let (sim, dice) = (&self.sim, &self.sim.dice);
        let kind = lock(&sim.model).kinds.get(&call.kind).map(|kind| (kind.queued, kind.answers_within));
        let Some((true, Some(within))) = kind else { return None };
        let token = lock(&sim.model).later.tokens.get(&(call.batch_id, call.attempt)).cloned()?;
        sim.count("batch API: a message");
        self.post_later(call, within, &token);
        if dice.chance(sim.rate(2_000)) {
            sim.count("batch API: a message came twice");
            self.post_later(call, within, &token);
        }
        if dice.chance(sim.rate(1_500)) {
            sim.count("batch API: a message was sent, and the answer lost");
            return Some(Err(CallError::new(Cause::Silence, "no answer in time")));
        }
        Some(Ok(Answer::Later(Accepted::default())))
    }

    /// Accepts a call of a kind that may be answered later, or does not. The work is done, whenever that is said.
    pub(crate) fn accepts(&self, call: &Call) -> Option<Answer> {
        let (sim, dice) = (&self.sim, &self.sim.dice);
        let name = (call.batch_id, call.attempt);
        let within = lock(&sim.model).kinds.get(&call.kind).and_then(|kind| kind.answers_within)?;
        let token = lock(&sim.model).later.tokens.get(&name).cloned()?;
        if !dice.chance(6_000) {
            return None;
        }
        if dice.chance(3_000) {
            sim.count("batch API: is asked for its answer");
            let body = self.outcomes(call);
            let at = self.some_time(within);
            lock(&sim.model).later.answers.insert(name, (at, body));
            let poll = Some("https://a.example/jobs/1".to_owned());
            let after = dice.chance(5_000).then(|| dice.millis(0, 40_000));
            return Some(Answer::Later(Accepted { poll, after, ..Accepted::default() }));
        }
        sim.count("batch API: answers later");
        self.post_later(call, within, &token);
        Some(Answer::Later(Accepted::default()))
    }

    /// When something is posted: often while somebody looks whether the deadline has passed.
    fn some_time(&self, within: Duration) -> Instant {
        let dice = &self.sim.dice;
        match dice.chance(3_000) {
            true => Instant::now() + within + dice.millis(0, 3_000),
            false => Instant::now() + dice.skewed(Duration::from_millis(10), within * 5 / 4),
        }
    }

    /// Does the work of a call, and posts what became of it, in parts.
    fn post_later(&self, call: &Call, within: Duration, token: &str) {
        let (sim, dice) = (&self.sim, &self.sim.dice);
        let body: Value = serde_json::from_str(&self.outcomes(call)).unwrap_or_else(|_| {
            let all = call.members.iter().map(|member| json!({"id": member.id, "outcome": "succeeded"}));
            json!({"members": all.collect::<Vec<_>>()})
        });
        let mut members = body["members"].as_array().cloned().unwrap_or_default();
        // Of two outcomes of a member, each in a post of its own, the one that is not true might count.
        let mut named = BTreeSet::new();
        members.retain(|member| named.insert(member["id"].to_string()));
        let waits = Dice::new(sim.seed, &format!("waits {} {}", call.batch_id, call.attempt));
        for member in members.iter_mut().filter(|member| member["outcome"] == "retry") {
            if waits.chance(7_000) {
                sim.count("batch API: a posted retry asks to wait");
                member["retry_after"] = json!(waits.between(1, 600));
            }
        }
        let size = 1 + dice.below(members.len().max(1));
        for members in members.chunks(size) {
            let (batch, attempt, token) = (call.batch_id, call.attempt, token.to_owned());
            let (at, members) = (self.some_time(within), members.to_vec());
            let post = Post { at, batch, attempt, token, members, late: false };
            lock(&sim.model).later.posts.push(post);
        }
        members.retain(|member| member["outcome"] == "retry");
        self.ask_again_late(call, within, token, members);
    }

    /// Members are to be called again, and somebody says so once more when they are.
    fn ask_again_late(&self, call: &Call, within: Duration, token: &str, members: Vec<Value>) {
        let sim = &self.sim;
        let (batch, attempt, token) = (call.batch_id, call.attempt, token.to_owned());
        // Of dice of its own: everything else is drawn as it is without this.
        let dice = Dice::new(sim.seed, &format!("late retries {batch} {attempt}"));
        if members.is_empty() || !dice.chance(sim.rate(5_000)) {
            return;
        }
        sim.count("batch API: a retry is posted once more");
        let at = Instant::now() + dice.skewed(Duration::from_secs(2), within * 2);
        lock(&sim.model).later.posts.push(Post { at, batch, attempt, token, members, late: true });
    }
}

impl SimulatedApi {
    /// Gives the answer to a call to who asks for it, once it is there.
    pub(crate) async fn asked(&self, call: &Call) -> Result<Answer, CallError> {
        let sim = &self.server.sim;
        let what = format!("ASK for the answer for {} attempt {}", call.batch_id, call.attempt);
        let answer = async {
            sleep(sim.dice.millis(1, 500)).await;
            let answer = lock(&sim.model).later.answers.get(&(call.batch_id, call.attempt)).cloned();
            match answer {
                Some((at, body)) if at <= Instant::now() => Answer::read(body.as_bytes(), call),
                _ => Ok(Answer::Later(Accepted::default())),
            }
        };
        // Who asked may die over it, and then it may be too late to ask again: the answer binds nobody until it is recorded.
        self.worker.call(sim, "the batch API", &what, answer).await
    }
}
