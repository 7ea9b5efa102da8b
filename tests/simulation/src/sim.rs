//! What everything in a run shares: the faults, the queues, the trace, and what was found wrong.

mod fates;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fanfold::config::variables;
use fanfold::limits::PLACES_PER_RECORD;
use fanfold::store::places::Spread;
use fanfold::tracking::Gathering;
use fanfold_local::Template;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::dice::Dice;
use crate::faults::{Fault, FaultPlan};
use crate::hooks::Strictness;
use crate::lag::Lag;
use crate::lingering::Told;
use crate::lock;
use crate::model::Model;
use crate::order::Looks;
use crate::paused::Heeding;
use crate::queues::Queues;
use crate::small::Gate;
use crate::stats::{Reached, Stats};
use crate::trace::Trace;

/// A run.
#[derive(Debug)]
pub(crate) struct Sim {
    pub(crate) seed: u64,
    pub(crate) start: Instant,
    pub(crate) plan: FaultPlan,
    /// Decides faults of requests.
    pub(crate) dice: Dice,
    /// Decides deliveries.
    pub(crate) post: Dice,
    pub(crate) trace: Trace,
    pub(crate) queues: Queues,
    pub(crate) lag: Mutex<Lag>,
    pub(crate) looks: Mutex<Looks>,
    pub(crate) told: Mutex<Told>,
    pub(crate) heeding: Mutex<Heeding>,
    pub(crate) model: Mutex<Model>,
    pub(crate) stats: Mutex<Stats>,
    pub(crate) variables: BTreeMap<String, String>,
    /// Calls of batch APIs at once, as the stack's parameter says.
    pub(crate) calls_at_once: usize,
    /// How places are spread over records: mostly few enough per record for kinds and receivers to have several.
    pub(crate) spread: Spread,
    /// When acks are sent on, if not as usual: no run has as many as that takes.
    pub(crate) gathering: Option<Gathering>,
    /// Notified when everything is to die with a worker.
    pub(crate) disaster: Notify,
    /// Where requests of a small case wait.
    pub(crate) gate: Option<Arc<Gate>>,
    healed: AtomicBool,
    rests: AtomicBool,
    invocations: AtomicU64,
    requests: AtomicU64,
    violations: Mutex<Vec<String>>,
}

/// How often the acks in a message were sent on, if they were.
fn sent_on(body: &str) -> Option<u32> {
    let body: serde_json::Value = serde_json::from_str(body).ok()?;
    u32::try_from(body.get("gathered")?.as_u64()?).ok()
}

/// Acks that few messages bring are sent on, as otherwise those of thousands are.
fn gathering(dice: &Dice) -> Option<Gathering> {
    let (bytes, groups) = (dice.pick(&[0, 0, 2_048]), dice.pick(&[1, 1, 2]));
    let (items, times) = (dice.pick(&[2, 4, 100]), dice.pick(&[1, 2, 5]));
    dice.chance(7_000).then_some(Gathering { bytes, groups, items, spread: 1, times })
}

impl Sim {
    pub(crate) fn new(seed: u64, plan: FaultPlan, template: &Template) -> Self {
        let start = Instant::now();
        let functions = template.functions();
        let mut environment: BTreeMap<String, String> =
            functions.flat_map(|function| function.environment.clone()).collect();
        // Few enough for kinds to get in each other's way.
        let calls_at_once = Dice::new(seed, "stack").pick(if plan.quiet { &[4, 8][..] } else { &[2, 3, 4, 8][..] });
        environment.insert(variables::DEV_QUEUES.to_owned(), crate::dev::QUEUES.to_owned());
        environment.insert(variables::BATCH_API_CONCURRENCY.to_owned(), calls_at_once.to_string());
        let notices_at_once = Dice::new(seed, "notify").pick(&[4, 8]);
        environment.insert(variables::NOTIFY_CONCURRENCY.to_owned(), notices_at_once.to_string());
        Self {
            seed,
            start,
            plan,
            dice: Dice::new(seed, "faults"),
            post: Dice::new(seed, "deliveries"),
            trace: Trace::new(start),
            queues: Queues::new(template),
            lag: Mutex::default(),
            looks: Mutex::default(),
            told: Mutex::default(),
            heeding: Mutex::default(),
            model: Mutex::default(),
            stats: Mutex::default(),
            variables: environment,
            calls_at_once,
            spread: Spread::of(Dice::new(seed, "spread").pick(&[1, 2, 2, PLACES_PER_RECORD])),
            gathering: gathering(&Dice::new(seed, "gathering")),
            disaster: Notify::new(),
            gate: None,
            healed: AtomicBool::new(false),
            rests: AtomicBool::new(false),
            invocations: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            violations: Mutex::default(),
        }
    }

    /// The same, but nothing happens by chance: what becomes of requests is decided at a gate.
    pub(crate) fn behind(self, gate: Arc<Gate>, spread: Spread) -> Self {
        self.healed.store(true, Ordering::Relaxed);
        self.rest();
        Self { gate: Some(gate), gathering: None, spread, ..self }
    }

    /// Faults stop; workers still die, but only so often.
    pub(crate) fn heal(&self) {
        self.healed.store(true, Ordering::Relaxed);
        self.trace.line("-", "FAULTS STOP");
    }

    /// Workers do not die any more.
    pub(crate) fn rest(&self) {
        self.rests.store(true, Ordering::Relaxed);
    }

    /// Whether everything is quiet.
    pub(crate) fn rests(&self) -> bool {
        self.rests.load(Ordering::Relaxed)
    }

    /// Whether the user who opened a fan-out was answered.
    pub(crate) fn is_opened(&self, id: uuid::Uuid) -> bool {
        let model = lock(&self.model);
        model.fanouts.get(&id).is_some_and(|fanout| fanout.opened)
            || model.estimated.get(&id).is_some_and(|fanout| fanout.opened)
    }

    pub(crate) fn healed(&self) -> bool {
        self.healed.load(Ordering::Relaxed)
    }

    /// A rate of the plan; none once faults have stopped.
    pub(crate) fn rate(&self, rate: u32) -> u32 {
        if self.healed() { 0 } else { rate }
    }

    pub(crate) fn next_invocation(&self) -> u64 {
        self.invocations.fetch_add(1, Ordering::Relaxed)
    }

    /// Calls of batch APIs at once: in all, and of one kind, which leaves a quarter of them to others, but may have one.
    pub(crate) fn places(&self) -> (usize, usize) {
        (self.calls_at_once, (self.calls_at_once - self.calls_at_once.div_ceil(4)).max(1))
    }

    /// How strictly the delivery of notices is looked at.
    pub(crate) fn strictness(&self) -> Strictness {
        let exact = self.plan.calm && self.plan.skew.is_zero();
        let concurrency = self.variables.get(variables::NOTIFY_CONCURRENCY).and_then(|number| number.parse().ok());
        // One receiver may have a quarter of the invocations, and one in any case.
        let calls_max = (concurrency.unwrap_or(0) / 4).max(1);
        Strictness { exact, slack: self.plan.skew * 2, calls_max }
    }

    /// Something does not hold that must hold.
    pub(crate) fn violate(&self, what: String) {
        self.trace.line("!", &format!("VIOLATION: {what}"));
        lock(&self.violations).push(what);
    }

    /// What was found so far does not count.
    pub(crate) fn forgive(&self) {
        lock(&self.violations).clear();
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        lock(&self.violations).clone()
    }

    /// Counts a fault.
    pub(crate) fn count(&self, fault: &'static str) {
        *lock(&self.stats).faults.entry(fault).or_default() += 1;
    }

    /// Counts a request of a step, or a crash before or after it. Returns how many there were.
    pub(crate) fn reach(&self, step: &'static str, kind: &str, fault: Fault) -> Reached {
        let mut stats = lock(&self.stats);
        let reached = stats.reached.entry((step, kind.to_owned())).or_default();
        match fault {
            Fault::CrashBefore => reached.before += 1,
            Fault::CrashAfter => reached.after += 1,
            _ => reached.made += 1,
        }
        *reached
    }

    /// Notes what a step needs to be allowed.
    pub(crate) fn need(&self, step: &'static str, actions: Vec<(String, String)>) {
        let actions = actions.into_iter().map(|(action, resource)| (step, action, resource));
        lock(&self.stats).actions.extend(actions);
    }

    /// Puts a message that a step sent in its queue, late or never if it is to be so.
    pub(crate) fn post(&self, queue: &str, body: String, delay: Duration) -> String {
        let id = self.queues.next_id();
        // With a delay it is a message that came twice and waits for the try that the first one began.
        let first =
            queue == "NotifyQueue" && delay.is_zero() && !body.contains("\"due\"") && !body.contains("\"waits\"");
        if first && self.plan.calm && body.contains("\"fanout\"") {
            let problem = {
                let mut model = lock(&self.model);
                // A worker that delivered a share meanwhile sends it, too.
                let most = 1 + u32::from(model.reports_progress(&body));
                model.hooks.hinted(&body, most)
            };
            problem.into_iter().for_each(|problem| self.violate(problem));
        }
        // A task that follows an end is made again from the header; other tasks are their users'.
        let own = queue == "RegisterQueue" && !body.contains("\"fanout\":{");
        let hint = !own && (queue != "AckQueue" || body.contains("\"batch\""));
        if hint && self.post.chance(self.rate(self.plan.message_lost)) {
            self.count("messages lost");
            self.trace.line(&id, &format!("LOST on its way to {queue}: {body}"));
            return id;
        }
        if let Some(times) = sent_on(&body) {
            // Without limits of its own, nothing here is so much that it is sent on.
            if self.gathering.as_ref().is_none_or(|gathering| times > gathering.times) {
                self.violate(format!("acks are sent on for the time {times}: {body}"));
            }
            self.count("acks sent on");
        }
        let late = if self.post.chance(self.rate(self.plan.message_late)) {
            self.count("messages late");
            self.post.skewed(Duration::from_secs(1), self.plan.message_delay)
        } else {
            self.post.millis(0, 1_500)
        };
        self.queues.send(queue, id.clone(), body, delay + late, hint);
        id
    }

    /// When a message that was done comes again, if it does.
    pub(crate) fn again(&self) -> Option<Duration> {
        self.post.chance(self.rate(self.plan.message_again)).then(|| {
            self.count("messages again");
            self.post.skewed(Duration::from_millis(100), self.plan.message_delay)
        })
    }
}
