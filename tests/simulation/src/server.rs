//! The batch API itself: it does its work, or some of it, and answers: outcomes, rubbish, "come again", "never". It goes on
//! working when its caller has died or waits no more.

mod poison;

use std::sync::Arc;
use std::time::Duration;

use aws_smithy_types::date_time::{DateTime, Format};
use fanfold::ids::TaskId;
use fanfold_batch_api::{Answer, Call, CallError, CallMember, Cause, RetryAfter};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::api::Mood;
use crate::clock;
use crate::faults::Fault;
use crate::lock;
use crate::mapped::MappedCall;
use crate::model::CallLimits;
use crate::sim::Sim;
use crate::small::{Gate, Sort, Touches};
use crate::worker::Worker;
use crate::working::{AtOnce, Work};

/// The longest that the batch API asks to wait.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 3_600);

/// What is said of a member that fails for good.
pub(crate) const DOOMED: &str = "doomed";

/// How long a call takes at most in a quiet run.
const LONGEST_QUIET_CALL: Duration = Duration::from_secs(2);

/// The batch API of a run.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) sim: Arc<Sim>,
    pub(crate) mood: Mood,
}

impl Server {
    /// Does the work of one call, which its caller waits for as long as `timeout`, and answers.
    pub(crate) async fn work(
        self,
        call: Call,
        mapped: Option<MappedCall>,
        timeout: Duration,
    ) -> Result<Answer, CallError> {
        let number = self.begin(&call);
        let sim = Arc::clone(&self.sim);
        tokio::spawn(async move {
            tokio::time::sleep(timeout).await;
            lock(&sim.model).working.end(number);
        });
        let result = self.decide(&call, mapped.as_ref(), timeout).await;
        lock(&self.sim.model).working.end(number);
        result
    }

    /// Does the work of one call of a small case, which is over when its answer is picked. What becomes of the answer does
    /// not change what was done.
    pub(crate) async fn work_until_picked(
        &self,
        gate: &Gate,
        worker: &Worker,
        call: &Call,
        timeout: Duration,
    ) -> Result<Answer, CallError> {
        let number = self.begin(call);
        let sim = Arc::clone(&self.sim);
        tokio::spawn(async move {
            tokio::time::sleep(timeout).await;
            lock(&sim.model).working.end(number);
        });
        let what = format!("the answer for {}, attempt {}", call.batch_id, call.attempt);
        let fault = gate.pass(&worker.name, Touches::outside(Sort::Answer, &what)).await.fault;
        let refused = self.refused(call);
        let body = if refused.is_some() { String::new() } else { self.outcomes(call) };
        gate.called(&format!("{what} {fault:?}"));
        gate.heard(&worker.name, &format!("{what} {fault:?}"), None);
        if fault == Fault::CrashAfter {
            return worker.die(&self.sim, "the batch API", fault).await;
        }
        lock(&self.sim.model).working.end(number);
        match (fault, refused) {
            (Fault::LostAfter, _) => Err(CallError::new(Cause::Silence, "the answer was lost")),
            (_, Some(error)) => Err(error),
            (_, None) => Answer::read(body.as_bytes(), call),
        }
    }

    /// The call begins to work: are too many working now?
    fn begin(&self, call: &Call) -> u64 {
        let mut model = lock(&self.sim.model);
        let lane = model.lanes.get(&call.batch_id).cloned().unwrap_or_else(|| call.kind.clone());
        let work = Work { batch: call.batch_id, attempt: call.attempt, kind: call.kind.clone(), lane };
        let (number, at_once) = model.working.begin(work.clone());
        let most = model.kinds.get(&call.kind).map_or(usize::MAX, |kind| kind.max_in_flight);
        if at_once.of_lane > most && self.counted() {
            let calls = model.working.of_lane(&work.lane);
            let calls: Vec<String> = calls.map(|work| format!("{}, attempt {}", work.batch, work.attempt)).collect();
            let lane = &work.lane;
            self.sim.violate(format!("{at_once:?} work at the batch API, lane {lane} may have {most}: {calls:?}"));
        }
        let (all, share) = self.sim.places();
        let share = model.kinds.get(&call.kind).map_or(share, |kind| kind.max_calls.min(share));
        if self.counted() && at_once.of_kind > share {
            self.sim.violate(format!("{at_once:?} work at the batch API, kind {} may have {share}", work.kind));
        }
        // What the dead left behind works beside the calls of those who came after them.
        if self.sim.plan.calm && at_once.all > all {
            self.sim.violate(format!("{at_once:?} work at the batch API, {all} may"));
        }
        self.reached(at_once);
        number
    }

    /// Whether calls that work at once can be held to their number: a lease ends too early where clocks are wrong.
    fn counted(&self) -> bool {
        self.sim.plan.skew.is_zero()
    }

    /// Counts what the run brought, so that it shows whether enough work at once.
    fn reached(&self, at_once: AtOnce) {
        if at_once.of_batch > 1 {
            self.sim.count("batch API: two calls of one batch at once");
        }
        let brought = &mut lock(&self.sim.stats).brought;
        *brought.entry("calls").or_default() += 1;
        if !self.sim.healed() {
            *brought.entry("calls while faults last").or_default() += 1;
        }
    }

    async fn decide(&self, call: &Call, mapped: Option<&MappedCall>, timeout: Duration) -> Result<Answer, CallError> {
        let (sim, dice) = (&self.sim, &self.sim.dice);
        let rate = |rate| sim.rate(rate);
        if self.mood.hangs.as_ref() == Some(&call.kind) && !sim.healed() {
            sim.count("batch API: hangs");
            tokio::time::sleep(timeout * 2).await;
        }
        if let Some(error) = self.outage(&call.kind) {
            sim.count("batch API: outage");
            tokio::time::sleep(dice.skewed(Duration::from_millis(1), Duration::from_secs(5))).await;
            return Err(error);
        }
        tokio::time::sleep(dice.skewed(Duration::from_millis(5), self.longest(timeout))).await;
        if dice.chance(rate(self.mood.again)) {
            sim.count("batch API: come again");
            let retry_after = if dice.chance(3_000) { RetryAfter::parse(&self.retry_after()) } else { None };
            let status = if sim.plan.calm { 409 } else { dice.pick(&[429, 503, 409]) };
            return Err(CallError { retry_after, ..CallError::new(Cause::Status(status), status.to_string()) });
        }
        if dice.chance(rate(self.mood.never)) {
            sim.count("batch API: never");
            self.say_alone(call);
            return Err(CallError::for_good("400"));
        }
        if let Some(error) = self.poison(call, timeout).await {
            return Err(error);
        }
        if dice.chance(rate(self.mood.late)) {
            sim.count("batch API: no answer in time");
            tokio::time::sleep(timeout + dice.millis(0, 60_000)).await;
        }
        if let Some(answer) = self.queued(call).or_else(|| self.accepts(call).map(Ok)) {
            return answer;
        }
        if dice.chance(rate(self.mood.rubbish)) {
            sim.count("batch API: rubbish");
            let body = dice.pick(&["null", "<html>", "7", "{\"members\": {}}", "{\"members\": [{\"id\": \"x\"}]}"]);
            return match mapped {
                // Where silence is success, an object without the list is none of the API's.
                Some(mapped) if !body.starts_with('{') && !mapped.answers_anything() => {
                    mapped.read_bytes(call, 200, body.as_bytes())
                }
                Some(mapped) => self.answer_mapped(call, mapped),
                None => Answer::read(body.as_bytes(), call),
            };
        }
        match mapped {
            Some(mapped) => self.answer_mapped(call, mapped),
            None => Answer::read(self.outcomes(call).as_bytes(), call),
        }
    }

    /// How long work takes at most, if it does not hang.
    fn longest(&self, timeout: Duration) -> Duration {
        timeout.min(if self.sim.plan.quiet { LONGEST_QUIET_CALL } else { Duration::from_secs(20) })
    }

    /// What every call of a kind meets now, if there is an outage.
    fn outage(&self, kind: &str) -> Option<CallError> {
        // Kinds that stand still go on by sweeps, which a calm run has none of.
        let outages = self.mood.outages.iter().filter(|_| !self.sim.healed() && !self.sim.plan.calm);
        outages.filter_map(|outage| outage.meets(kind, self.sim.start.elapsed())).next()
    }

    /// What calls are held to.
    pub(crate) fn limits(&self) -> CallLimits {
        let starves = self.sim.plan.quiet && !self.sim.healed();
        let other = self.mood.hangs.clone().filter(|_| starves);
        CallLimits { apart: self.sim.plan.skew * 2, hangs: other }
    }

    /// How long it asks to wait, mostly seconds, up to a day: as a number of seconds or as a date.
    fn retry_after(&self) -> String {
        let (sim, dice) = (&self.sim, &self.sim.dice);
        let wait = if dice.chance(1_500) {
            sim.count("batch API: come again much later");
            dice.skewed(Duration::from_secs(60), LONGEST_WAIT)
        } else {
            Duration::from_secs(dice.between(0, 30))
        };
        let then = i64::try_from(clock::right(sim.start).plus(wait).seconds()).unwrap_or(i64::MAX);
        let date = DateTime::from_secs(then).fmt(Format::HttpDate).ok().filter(|_| dice.chance(5_000));
        date.unwrap_or_else(|| wait.as_secs().to_string())
    }

    /// An answer with outcomes, as bytes.
    pub(crate) fn outcomes(&self, call: &Call) -> String {
        let (sim, dice) = (&self.sim, &self.sim.dice);
        let doomed = |member: &CallMember| self.is_doomed(member);
        let keeps = lock(&sim.model).kinds.get(&call.kind).is_some_and(|kind| kind.keeps);
        if sim.gate.is_none() && !keeps && dice.chance(2_000) && !call.members.iter().any(doomed) {
            call.members.iter().for_each(|member| self.say(member.id, true));
            return String::new();
        }
        let mut answers: Vec<Value> = Vec::new();
        for member in &call.members {
            if dice.chance(sim.rate(self.mood.omitted)) {
                sim.count("batch API: member omitted");
            } else if dice.chance(sim.rate(self.mood.member_again)) {
                sim.count("batch API: member again");
                answers.push(json!({"id": member.id, "outcome": "retry", "error": "busy"}));
            } else if doomed(member) {
                self.say(member.id, false);
                answers.push(json!({"id": member.id, "outcome": "failed", "error": DOOMED}));
            } else {
                self.say(member.id, true);
                let mut answer = json!({"id": member.id, "outcome": "succeeded"});
                if keeps {
                    sim.count("batch API: results");
                    answer["result"] = lock(&sim.model).returns(call, member.id);
                }
                answers.push(answer);
            }
        }
        if dice.chance(sim.rate(self.mood.strange)) {
            sim.count("batch API: strangers");
            let stranger = TaskId::Single(Uuid::from_u128(u128::from(dice.any())));
            answers.push(json!({"id": stranger, "outcome": "failed"}));
            // A member with two different outcomes is called again.
            if let Some(first) = answers.first().cloned() {
                answers.push(json!({"id": first["id"], "outcome": "retry"}));
            }
        }
        json!({ "members": answers }).to_string()
    }

    /// Whether a member fails for good.
    pub(crate) fn is_doomed(&self, member: &CallMember) -> bool {
        let content = member.content.get();
        content.contains("\"doomed\":true")
            || content.contains("\"mended\":true") && !lock(&self.sim.model).is_reissued(&member.id)
    }

    /// The refusal of a call of a small case, if one of its members has it refused: as everybody's is, or for what it is.
    fn refused(&self, call: &Call) -> Option<CallError> {
        match call.attempt == 1 && call.members.iter().any(is_refused) {
            true => Some(CallError::new(Cause::Status(503), "503")),
            false => self.poisoned(call),
        }
    }

    /// A call was refused as a whole: that says something only of a member that was called alone.
    pub(crate) fn say_alone(&self, call: &Call) {
        if let [member] = &call.members[..] {
            self.say(member.id, false);
        }
    }

    pub(crate) fn say(&self, id: TaskId, succeeded: bool) {
        let mut model = lock(&self.sim.model);
        let said = model.said.entry(id).or_default();
        said.succeeded |= succeeded;
        said.failed |= !succeeded;
    }
}

/// Whether the first call of a small case's batch is refused, as everybody's is, because of this member.
fn is_refused(member: &CallMember) -> bool {
    member.content.get().contains("\"refused\":true")
}
