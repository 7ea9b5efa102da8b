//! What users do in a run: policies and their changes, fan-outs, tasks. All of it follows from the seed.

mod fanouts;
mod rush;

use std::collections::BTreeMap;
use std::time::Duration;

use fanfold::backoff::Backoff;
use fanfold::policy::{KeyAfterFailure, Policy, Span, Way, Weight};
use fanfold::store::fanouts::Tolerance;
use serde_json::json;

pub(crate) use fanouts::{FanoutPlan, Seal};

use crate::api::Mood;
use crate::dice::Dice;
use crate::estimated::EstimatedPlan;
use crate::filled::{self, Filled};
use crate::lingering::Waits;
use crate::model::KindModel;
use crate::produced::ProducedPlan;
use crate::rates::{self, Counted};
use crate::webhooks::RECEIVERS;

/// A policy, and those that replace it.
#[derive(Clone, Debug)]
pub(crate) struct KindPlan {
    /// Each version with the moment from which it counts.
    pub(crate) versions: Vec<(Duration, Policy)>,
}

/// Tasks of no fan-out.
#[derive(Clone, Debug)]
pub(crate) struct SinglesPlan {
    pub(crate) name: String,
    pub(crate) start: Duration,
    pub(crate) tasks: usize,
    pub(crate) pace: Duration,
    pub(crate) chunk: usize,
}

/// Everything users do.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) workers: usize,
    pub(crate) kinds: Vec<KindPlan>,
    pub(crate) fanouts: Vec<FanoutPlan>,
    pub(crate) singles: Vec<SinglesPlan>,
    pub(crate) produced: Vec<ProducedPlan>,
    pub(crate) estimated: Vec<EstimatedPlan>,
    /// Different targets, and different keys of one scope.
    pub(crate) targets: usize,
    pub(crate) keys: usize,
    pub(crate) doomed: u32,
    /// Tasks for which the batch API refuses every call as a whole, in ten-thousandths.
    pub(crate) poison: u32,
    pub(crate) mood: Mood,
}

impl Scenario {
    pub(crate) fn draw(seed: u64, until: Duration, quiet: bool) -> Self {
        let dice = Dice::new(seed, "scenario");
        let kinds = (0..1 + dice.below(3)).map(|n| KindPlan::draw(&dice, n, until)).collect();
        let busy = until.mul_f64(0.7);
        let mut scenario = Self {
            workers: 2 + dice.below(6),
            kinds,
            fanouts: (0..dice.below(4)).map(|n| FanoutPlan::draw(&dice, n, busy)).collect(),
            singles: (0..1 + dice.below(3)).map(|n| SinglesPlan::draw(&dice, n, busy)).collect(),
            produced: Vec::new(),
            estimated: EstimatedPlan::draw_all(&Dice::new(seed, "estimated"), busy),
            targets: 1 + dice.below(4),
            keys: dice.pick(&[2, 4, 40, 40]),
            doomed: if dice.chance(5_000) { dice.between(100, 4_000) as u32 } else { 0 },
            poison: 0,
            mood: Mood::draw(&dice, until),
        };
        // Of dice of their own: everything else is drawn as it is without them.
        scenario.draw_calls(seed, quiet);
        let dice = Dice::new(seed, "tolerated");
        for plan in &mut scenario.fanouts {
            let tolerance = if dice.chance(6_000) {
                Tolerance::Count(dice.pick(&[0, 0, 1, 2, 5]))
            } else {
                Tolerance::Percentage(dice.pick(&[0, 500, 2_500, 6_000]))
            };
            plan.tolerated = dice.chance(3_000).then_some(tolerance);
        }
        let dice = Dice::new(seed, "nested");
        for plan in &mut scenario.fanouts {
            plan.lead_on(&dice, &scenario.kinds, busy, 2);
        }
        let dice = Dice::new(seed, "told");
        scenario.fanouts.iter_mut().for_each(|plan| plan.choose(&dice));
        let dice = Dice::new(seed, "rush");
        if !quiet && dice.chance(800) {
            scenario.rush(&dice);
        }
        // Where a kind hangs, nothing else is to delay the others.
        if !quiet {
            scenario.produced = ProducedPlan::draw(seed, &scenario.kinds, busy);
        }
        if quiet { scenario.hanging() } else { scenario }
    }

    /// Draws what shapes batches and their calls.
    fn draw_calls(&mut self, seed: u64, quiet: bool) {
        let dice = Dice::new(seed, "filling");
        self.kinds.iter_mut().for_each(|plan| plan.fill(&dice));
        let dice = Dice::new(seed, "lingering");
        self.kinds.iter_mut().for_each(|plan| plan.linger(&dice));
        self.kinds.iter_mut().for_each(|plan| plan.keep(&dice));
        let dice = Dice::new(seed, "moments");
        self.kinds.iter_mut().for_each(|plan| plan.shorten(&dice));
        let dice = Dice::new(seed, "priority");
        self.kinds.iter_mut().for_each(|plan| plan.rank(&dice));
        let dice = Dice::new(seed, "later");
        if !quiet {
            self.kinds.iter_mut().for_each(|plan| plan.answer_later(&dice));
        }
        let dice = Dice::new(seed, "queued");
        self.kinds.iter_mut().for_each(|plan| plan.queue(&dice));
        let dice = Dice::new(seed, "mapped");
        self.kinds.iter_mut().for_each(|plan| plan.map(&dice));
        // If a kind hangs, the tasks of others must not wait, so there are no rates.
        let dice = Dice::new(seed, "pacing");
        if !quiet && dice.chance(5_000) {
            for plan in &mut self.kinds {
                rates::draw(&dice, plan.versions.iter_mut().map(|(_, policy)| policy));
            }
        }
        // Where a kind hangs, nothing else is to delay the others.
        let dice = Dice::new(seed, "poison");
        if !quiet && dice.chance(4_000) {
            self.poison = dice.pick(&[100, 500, 2_000]);
        }
    }

    /// The same, but the batch API of one kind hangs and has a crowd of tasks; all others work.
    fn hanging(mut self) -> Self {
        while self.kinds.len() < 2 {
            let mut other = self.kinds[0].clone();
            other.versions.iter_mut().for_each(|(_, policy)| policy.kind.push_str("-too"));
            self.kinds.push(other);
        }
        for (_, policy) in &mut self.kinds[0].versions {
            (policy.max_batch, policy.max_in_flight) = (Some(1), 4);
            policy.batch_api.timeout = Span::from_secs(60);
        }
        for (_, policy) in self.kinds.iter_mut().flat_map(|kind| &mut kind.versions) {
            (policy.min_batch, policy.min_batch_wait) = (None, None);
        }
        for (_, policy) in self.kinds.iter_mut().skip(1).flat_map(|kind| &mut kind.versions) {
            (policy.max_batch, policy.max_in_flight) = (Some(8), 4);
        }
        self.targets = self.targets.max(3);
        for plan in &mut self.singles {
            (plan.tasks, plan.pace) = (plan.tasks.max(40), plan.pace.min(Duration::from_secs(2)));
        }
        self.mood = Mood { hangs: Some(self.kinds[0].versions[0].1.kind.clone()), ..Mood::default() };
        self
    }

    /// The scenario in lines for people.
    pub(crate) fn describe(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "{} workers, {} targets, {} keys, {} in 10,000 tasks are doomed and {} poison, {:?}",
            self.workers, self.targets, self.keys, self.doomed, self.poison, self.mood
        )];
        for (at, policy) in self.kinds.iter().flat_map(|kind| &kind.versions) {
            lines.push(format!("from {at:?}: {}", serde_json::json!(policy)));
        }
        lines.extend(self.fanouts.iter().map(|plan| format!("{plan:?}")));
        lines.extend(self.singles.iter().map(|plan| format!("{plan:?}")));
        lines.extend(self.produced.iter().map(|plan| format!("{plan:?}")));
        lines.extend(self.estimated.iter().map(|plan| format!("{plan:?}")));
        lines
    }

    /// The kinds that users have tasks of, and those of the rows of one source.
    pub(crate) fn all_kinds(&self) -> impl Iterator<Item = &KindPlan> {
        self.kinds.iter().chain(self.produced.iter().filter_map(ProducedPlan::own_kind))
    }

    /// What holds for each kind, whichever version of its policy counts.
    pub(crate) fn kind_models(&self) -> BTreeMap<String, KindModel> {
        let model = |plan: &KindPlan| {
            let policies = || plan.versions.iter().map(|(_, policy)| policy);
            let first = &plan.versions[0].1;
            let model = KindModel {
                max_batch: policies().map(|policy| policy.max_batch() as usize).max().unwrap_or(0),
                filling: Filled::of(policies()),
                waits: Waits::of(policies()),
                max_in_flight: policies().map(|policy| policy.max_in_flight as usize).max().unwrap_or(0),
                max_attempts: first.max_attempts,
                backoff: Backoff::from(&first.backoff),
                // Where the key changes, no two tasks have the same key, and nothing is checked about keys.
                keyed: first.key.is_some() && policies().all(|policy| policy.key == first.key),
                partitions: first.partitions,
                scope: first.scope.clone(),
                releases: first.key_after_failure == KeyAfterFailure::Release,
                notify: first.notify.is_some(),
                keeps: first.keep_results,
                lane_rate: first.lane_rate.as_ref().and_then(Counted::of),
                kind_rate: first.kind_rate.as_ref().and_then(Counted::of),
                answers_within: first.batch_api.answers_within.map(|within| within.0),
                queued: matches!(first.batch_api.way, Way::Sqs(_)),
                max_calls: first.max_calls.map_or(usize::MAX, |calls| calls as usize),
            };
            (first.kind.clone(), model)
        };
        self.all_kinds().map(model).collect()
    }
}

impl KindPlan {
    fn draw(dice: &Dice, n: usize, until: Duration) -> Self {
        let mut policy = json!({
            "kind": format!("kind{n}"), "target": "content.t", "partitions": dice.pick(&[1, 1, 1, 3]),
            "max_batch": 1 + dice.below(8), "linger": dice.below(4), "max_in_flight": 1 + dice.below(4),
            "max_attempts": 1 + dice.below(8),
            "backoff": {"base": dice.pick(&[1, 1, 4]), "max": dice.pick(&[4, 20, 120])},
            "batch_api": {"url": "https://a.example/batch", "timeout": dice.pick(&[5, 10, 30, 90])},
        });
        if dice.chance(6_000) {
            policy["key"] = json!("content.k");
            policy["key_after_failure"] = json!(dice.pick(&["release", "release", "keep"]));
            if dice.chance(4_000) {
                policy["scope"] = json!(dice.pick(&["kind", "content.t"]));
            }
        }
        if dice.chance(5_000) {
            policy["notify"] =
                dice.pick(&[json!({"queue": "notices"}), json!({"url": RECEIVERS[0]}), json!({"url": RECEIVERS[1]})]);
        }
        let mut versions = vec![(Duration::ZERO, policy.clone())];
        for _ in 0..if dice.chance(4_000) { 1 + dice.below(3) } else { 0 } {
            let mut change = |field: &str, value: usize| {
                if dice.chance(5_000) {
                    policy[field] = json!(value);
                }
            };
            change("max_batch", 1 + dice.below(8));
            change("max_in_flight", 1 + dice.below(4));
            change("linger", dice.below(4));
            policy["batch_api"]["url"] = json!(dice.pick(&["https://a.example/batch", "https://b.example/batch"]));
            versions.push((dice.millis(0, until.as_millis() as u64), policy.clone()));
        }
        versions.sort_by_key(|(at, _)| *at);
        let typed = |(at, policy): (Duration, serde_json::Value)| Some((at, serde_json::from_value(policy).ok()?));
        Self { versions: versions.into_iter().filter_map(typed).collect() }
    }

    /// Draws whether results are kept.
    fn keep(&mut self, dice: &Dice) {
        let keeps = dice.chance(4_000);
        self.versions.iter_mut().for_each(|(_, policy)| policy.keep_results = keeps);
    }

    /// Draws what else limits its batches.
    fn fill(&mut self, dice: &Dice) {
        let (weighs, counts, parts) = (dice.chance(4_000), dice.chance(3_000), dice.chance(3_000));
        for (_, policy) in &mut self.versions {
            if weighs {
                policy.weight = Some(filled::WEIGHT.to_owned());
                policy.max_weight = Weight::from_whole(dice.pick(&[5, 12, 25]));
            }
            if parts {
                policy.distinct = Some(filled::DISTINCT.to_owned());
            }
            if counts {
                policy.max_batch_bytes = Some(dice.pick(&[400, 700, 2_000]));
            }
        }
    }
}

impl KindPlan {
    /// Draws what else decides for how long its leaders wait for more tasks. Some versions do without.
    fn linger(&mut self, dice: &Dice) {
        let (flushes, quiet, enough) = (dice.chance(4_000), dice.chance(4_000), dice.chance(3_000));
        for (_, policy) in &mut self.versions {
            if flushes && dice.chance(9_000) {
                policy.flush_when = Some(filled::FLUSH_WHEN.to_owned());
            }
            let linger = policy.linger.0.as_secs();
            if quiet && linger > 1 {
                policy.quiet = Some(Span::from_secs(dice.between(1, linger - 1)));
            }
            if enough && dice.chance(9_000) {
                policy.min_batch = Some(dice.between(1, policy.max_batch().into()) as u32);
                policy.min_batch_wait = Some(Span::from_secs(dice.between(1, 5)));
            }
        }
    }
}

impl KindPlan {
    /// Draws whether its leaders wait for less than a second, or for parts of one.
    fn shorten(&mut self, dice: &Dice) {
        let moments = dice.chance(3_000);
        for (_, policy) in self.versions.iter_mut().filter(|_| moments && dice.chance(8_000)) {
            let linger = dice.pick(&[50, 300, 900, 1_500, 2_300]);
            policy.linger = Span(Duration::from_millis(linger));
            policy.quiet = policy.quiet.map(|_| Span(dice.millis(1, linger - 1)));
            policy.min_batch_wait = policy.min_batch_wait.map(|_| Span(dice.millis(1, 2_500)));
        }
    }

    /// Draws whether its tasks have head starts. Some versions do without.
    fn rank(&mut self, dice: &Dice) {
        let (ranks, all) = (dice.chance(4_000), dice.chance(7_000));
        for (_, policy) in &mut self.versions {
            if ranks && (all || dice.chance(5_000)) {
                policy.priority = Some(filled::PRIORITY.to_owned());
            }
        }
    }
}

impl SinglesPlan {
    fn draw(dice: &Dice, n: usize, busy: Duration) -> Self {
        let pause = busy.as_millis() as u64 / 12;
        // Some come as a crowd: many requests at a time, each of which may concern many lanes.
        let crowd = dice.chance(600);
        Self {
            name: format!("singles{n}"),
            start: dice.millis(0, busy.as_millis() as u64 / 2),
            tasks: if crowd { 40 + dice.below(80) } else { 1 + dice.below(20) },
            pace: dice.skewed(Duration::from_millis(50), Duration::from_millis(pause.max(50))),
            chunk: 1 + dice.below(if crowd { 40 } else { 10 }),
        }
    }
}
