//! Runs through every schedule of a case, depth first: each begins anew and follows the choices of the one before up to the
//! last that had an alternative.
//!
//! Two reductions leave schedules out, neither of which can hide anything. Requests that touch nothing in common commute, so
//! only one of their orders is run (sleep sets). And what can follow depends only on the tables, on what was sent and said
//! outside, and on what each worker has heard: where all of this was met before, what follows was run before.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::choices::{Choice, Fate, Move};
use super::gate::{Picked, hash};
use super::ground::{Case, Ground, text};
use super::stage::{Player, Stage};
use super::touches::Sort;
use crate::lock;

/// How a schedule ended.
enum End {
    /// With everybody done or dead.
    Whole,
    /// Where another schedule had been before.
    Seen,
    /// Where nothing was left that does not commute.
    Asleep,
}

/// What the schedules of a case came to.
#[derive(Debug, Default)]
pub struct Report {
    /// The case.
    pub name: &'static str,
    /// Schedules run to their end.
    pub whole: u64,
    /// Schedules cut off where another had been before.
    pub seen: u64,
    /// Schedules cut off where only what commutes was left.
    pub asleep: u64,
    /// States that were met.
    pub states: usize,
    /// States in which schedules ended: from each of them the stack came to rest and was looked at.
    pub ends: usize,
    /// What does not hold that must hold, with the trace of its schedule. The first one ends the case.
    pub failure: Option<(Vec<String>, Vec<String>)>,
    /// Whether all schedules were run.
    pub complete: bool,
    /// How long it took.
    pub took: Duration,
}

impl Report {
    /// Schedules that were begun.
    #[must_use]
    pub fn schedules(&self) -> u64 {
        self.whole + self.seen + self.asleep
    }
}

/// Explores a case: with at most so many faults per schedule, for at most so long.
///
/// # Errors
/// The case cannot be prepared, or a schedule that is repeated goes another way.
pub fn explore(case: &Case, faults: usize, most: Duration) -> Result<Report, String> {
    let began = Instant::now();
    let mut ground = on_a_thread_of_time(Ground::new(case))??;
    let mut explorer = Explorer {
        faults,
        path: Vec::new(),
        seen: HashMap::new(),
        ends: HashSet::new(),
        report: Report { name: case.name, ..Report::default() },
    };
    while began.elapsed() < most {
        // Tokens of transactions must differ between schedules: the engine remembers them.
        fastrand::seed(explorer.report.schedules());
        let stage = on_a_thread_of_time(explorer.schedule(&ground))??;
        ground.leave(&stage);
        if explorer.report.failure.is_some() || !explorer.next() {
            explorer.report.complete = explorer.report.failure.is_none();
            break;
        }
    }
    let Explorer { seen, ends, report, .. } = explorer;
    Ok(Report { states: seen.len(), ends: ends.len(), took: began.elapsed(), ..report })
}

/// Runs something in paused time.
fn on_a_thread_of_time<T>(work: impl Future<Output = T>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    Ok(runtime.map_err(text)?.block_on(work))
}

struct Explorer {
    faults: usize,
    path: Vec<Choice>,
    /// What was asleep when each state was met.
    seen: HashMap<u64, Vec<Move>>,
    ends: HashSet<u64>,
    report: Report,
}

impl Explorer {
    /// Runs one schedule: what is chosen, and from there on the first choice everywhere.
    async fn schedule(&mut self, ground: &Ground) -> Result<Stage, String> {
        let stage = ground.begin()?;
        let mut players = stage.play(&ground.actors).await?;
        // What is chosen last is new. What comes before was answered before.
        let (mut at, known) = (0_usize, self.path.len().saturating_sub(1));
        let end = loop {
            stage.wait_at_gates(&mut players).await?;
            if let Some(last) = at.checked_sub(1).filter(|last| *last >= known) {
                self.path[last].reply = stage.gate.reply();
            }
            if at == known {
                ground.go_on_from(&stage, self.path.last().and_then(|choice| choice.scene.as_ref())).await?;
            }
            let before = hash(standing(&stage, &players));
            if at == self.path.len() {
                let (end, choice) = self.choose(&stage, &players, before);
                match choice {
                    Some(choice) => self.path.push(choice),
                    None => break end,
                }
            }
            let choice = &self.path[at];
            if choice.before != before {
                let standing = standing(&stage, &players);
                return Err(format!("{}: a repeated schedule goes another way: {standing:?}", self.report.name));
            }
            let picked = Picked { fault: choice.chosen.fate.fault(), reply: choice.reply.clone() };
            stage.gate.pick(&players[choice.chosen.player].name, picked);
            at += 1;
        };
        match end {
            End::Whole => {
                self.report.whole += 1;
                if self.ends.insert(state(&stage, &players)) && stage.sim.violations().is_empty() {
                    stage.rest(ground, &players).await?;
                }
            }
            End::Seen => self.report.seen += 1,
            End::Asleep => self.report.asleep += 1,
        }
        let violations = stage.sim.violations();
        if !violations.is_empty() {
            self.report.failure = Some((violations, stage.sim.trace.take()));
        }
        Ok(stage)
    }

    /// What can be chosen at a moment that no schedule was at before.
    fn choose(&mut self, stage: &Stage, players: &[Player], before: u64) -> (End, Option<Choice>) {
        if !stage.sim.violations().is_empty() {
            return (End::Seen, None);
        }
        let moves = self.moves(stage, players);
        if moves.is_empty() {
            return (End::Whole, None);
        }
        let mut asleep: Vec<Move> = match self.path.last() {
            None => Vec::new(),
            Some(last) => {
                let still = |one: &&Move| one.commutes(&last.chosen) && one.is_among(&moves);
                last.asleep.iter().chain(&last.done).filter(still).cloned().collect()
            }
        };
        // How many faults are still allowed belongs to what can follow.
        let state = hash((state(stage, players), before, self.left()));
        let mut todo: Vec<Move> = match self.seen.get_mut(&state) {
            None => {
                self.seen.insert(state, asleep.clone());
                moves.iter().filter(|one| !one.is_among(&asleep)).cloned().collect()
            }
            Some(slept) => {
                // What slept then and does not now was not chosen here.
                let missed = slept.iter().filter(|one| !one.is_among(&asleep)).cloned().collect::<Vec<_>>();
                if missed.is_empty() {
                    return (End::Seen, None);
                }
                slept.retain(|one| one.is_among(&asleep));
                asleep.clone_from(slept);
                missed
            }
        };
        if todo.is_empty() {
            return (End::Asleep, None);
        }
        let chosen = todo.remove(0);
        let scene = (!todo.is_empty()).then(|| stage.scene());
        (End::Whole, Some(Choice { chosen, todo, done: Vec::new(), moves, asleep, before, scene, reply: None }))
    }

    /// Everything that could happen next.
    fn moves(&self, stage: &Stage, players: &[Player]) -> Vec<Move> {
        let mut moves = Vec::new();
        for (player, _) in players.iter().enumerate().filter(|(_, player)| player.ended.is_none()) {
            let Some(touches) = stage.gate.waits(&players[player].name) else { continue };
            let begins = !self.path.iter().any(|choice| choice.chosen.player == player);
            let mut fates = vec![Fate::Passes];
            if self.left() > 0 {
                fates.extend(begins.then_some(Fate::DiesBefore));
                // Who hears nothing of what changed nothing could as well have asked later, or died before.
                let lasts = matches!(touches.sort, Sort::Write | Sort::Notice | Sort::Answer);
                fates.extend(lasts.then_some(Fate::DiesAfter));
                let lost = touches.answered && matches!(touches.sort, Sort::Write | Sort::Answer);
                fates.extend(lost.then_some(Fate::AnswerLost));
                let stale = touches.may_be_stale(|record| stage.gate.earlier(record).is_some());
                fates.extend(stale.then_some(Fate::Stale));
            }
            moves.extend(fates.into_iter().map(|fate| Move { player, fate, touches: Arc::clone(&touches) }));
        }
        moves
    }

    /// How many faults are still allowed.
    fn left(&self) -> usize {
        let faults = self.path.iter().filter(|choice| choice.chosen.fate != Fate::Passes).count();
        self.faults.saturating_sub(faults)
    }

    /// Turns to the next schedule; none is left if there is no other choice anywhere.
    fn next(&mut self) -> bool {
        while let Some(mut choice) = self.path.pop() {
            let left = self.left().saturating_sub(1);
            while !choice.todo.is_empty() {
                let next = choice.todo.remove(0);
                choice.done.push(std::mem::replace(&mut choice.chosen, next));
                choice.reply = None;
                if !choice.ends_asleep(left) {
                    self.path.push(choice);
                    return true;
                }
            }
        }
        false
    }
}

/// What stands at the gate.
fn standing(stage: &Stage, players: &[Player]) -> Vec<String> {
    let of = |player: &Player| match player.ended {
        None => stage.gate.waits(&player.name).map_or_else(String::new, |touches| touches.what.clone()),
        Some(ended) => format!("{ended:?}"),
    };
    players.iter().map(of).collect()
}

/// All that what can follow depends on.
fn state(stage: &Stage, players: &[Player]) -> u64 {
    let of = |player: &Player| match player.ended {
        None => (None, stage.gate.knows(&player.name)),
        // Who has ended knows nothing any more.
        ended => (ended, 0),
    };
    let model = lock(&stage.sim.model);
    let remembered = format!("{:?} {:?} {:?} {:?}", model.had, model.dropped, model.lanes, model.cut_before);
    let players: Vec<_> = players.iter().map(of).collect();
    hash((stage.gate.world(), players, remembered))
}
