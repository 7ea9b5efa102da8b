//! Fan-outs with a producer as a run's scenario has them.

use std::time::Duration;

use fanfold::policy::{Destination, NoticesQueue, Policy};
use fanfold::producing::Producer;
use fanfold::store::fanouts::Tolerance;
use fanfold::tracking::OpenRequest;
use serde_json::{Value, json};

use super::NOBODY;
use super::again::AgainPlan;
use crate::dice::Dice;
use crate::objects::{Texts, named, one_text, several_texts};
use crate::scenario::KindPlan;

/// A fan-out with a producer.
#[derive(Clone, Debug)]
pub(crate) struct ProducedPlan {
    pub(super) name: String,
    pub(super) start: Duration,
    pub(super) rows: Vec<Value>,
    pub(super) partitions: u32,
    /// Whether its source picks the rows of a partition; otherwise it answers all.
    pub(super) picks: bool,
    /// Whether it picks them by their position, as objects of S3 are read, whatever their keys are.
    pub(super) by_position: bool,
    /// Whether its pages are written down although they are always the same: bad rows are tolerated.
    pub(super) kept: bool,
    /// Whether some rows may be bad.
    pub(super) spoiled: bool,
    /// How many bad rows a partition tolerates, if not all there are.
    pub(super) strict: Option<Tolerance>,
    /// Its rows as objects have them, where these are cut into pages as objects of S3 are.
    pub(super) texts: Option<Texts>,
    /// The kind of its rows, if they are of one of their own: the key of its policy shares them out. The second version
    /// of that policy has another key.
    pub(super) own: Option<KindPlan>,
    pub(super) notify: bool,
    pub(super) tolerated: Option<Tolerance>,
    pub(super) cancel: Option<Duration>,
    pub(super) again: Option<AgainPlan>,
}

impl ProducedPlan {
    /// Of dice of their own: everything else is drawn as it is without them.
    pub(crate) fn draw(seed: u64, kinds: &[KindPlan], busy: Duration) -> Vec<Self> {
        let dice = Dice::new(seed, "produced");
        let positions = Dice::new(seed, "produced by place");
        let (bad, cut) = (Dice::new(seed, "bad rows"), Dice::new(seed, "objects"));
        let strict = Dice::new(seed, "bad rows tolerated");
        let again = Dice::new(seed, "again");
        let (several, shared) = (Dice::new(seed, "several objects"), Dice::new(seed, "rows of a kind of their own"));
        let count = if dice.chance(4_000) { 1 + dice.below(2) } else { 0 };
        let plan = |n: usize| {
            let rows = (0..dice.below(25)).map(|row| Self::row(&dice, kinds, row)).collect();
            let by_position = positions.chance(3_000);
            Self {
                name: format!("produced{n}"),
                start: dice.millis(0, busy.as_millis() as u64 / 2),
                rows,
                partitions: 1 + dice.below(4) as u32,
                picks: dice.chance(5_000) || by_position,
                by_position,
                kept: positions.chance(3_000),
                spoiled: false,
                strict: None,
                texts: None,
                own: None,
                notify: dice.chance(8_000),
                tolerated: dice
                    .chance(3_000)
                    .then(|| dice.pick(&[Tolerance::Count(1), Tolerance::Percentage(0), Tolerance::Percentage(2_500)])),
                cancel: dice.chance(2_000).then(|| dice.skewed(Duration::from_millis(1), busy)),
                again: None,
            }
        };
        let mut plans: Vec<Self> = (0..count).map(plan).collect();
        for plan in &mut plans {
            plan.spoil(&bad);
            plan.again = AgainPlan::draw(&again, &mut plan.rows, plan.by_position);
            plan.cut_up(&cut, &several);
            plan.limit_bad_rows(&strict);
            if !plan.by_position && shared.chance(5_000) {
                plan.share_by_policy(&kinds[0].versions[0].1);
            }
        }
        plans
    }

    /// Makes some rows bad, where bad rows are tolerated.
    fn spoil(&mut self, dice: &Dice) {
        self.spoiled = dice.chance(4_000) && (self.kept || !self.by_position);
        let bad: Vec<&mut Value> = self.rows.iter_mut().filter(|_| self.spoiled && dice.chance(2_000)).collect();
        bad.into_iter().for_each(|row| row["kind"] = json!(NOBODY));
    }

    /// Puts its rows in an object, or in several.
    fn cut_up(&mut self, cut: &Dice, several: &Dice) {
        if self.by_position && cut.chance(6_000) {
            self.texts = Some(one_text(&self.rows, cut));
        }
        if self.by_position && several.chance(4_500) {
            self.texts = Some(several_texts(&self.rows, several));
        }
    }

    /// Draws how many bad rows are tolerated. Which rows are in a part of an object is known to who cuts it.
    fn limit_bad_rows(&mut self, dice: &Dice) {
        if self.spoiled && self.texts.is_none() && dice.chance(5_000) {
            let percentages = [0, 1_000, 2_500].map(Tolerance::Percentage);
            let most = Tolerance::Count(dice.below(4) as u64);
            self.strict = Some(if dice.chance(6_000) { most } else { dice.pick(&percentages) });
        }
    }

    /// Has its rows share a kind of their own, whose policy is like this one. No two rows have the same key.
    fn share_by_policy(&mut self, like: &Policy) {
        let kind = format!("{}-rows", self.name);
        for row in &mut self.rows {
            let number = row["content"]["row"].to_string();
            row["content"]["mirror"] = json!(format!("m{number}"));
            row["content"]["k"] = json!(number);
            if row["kind"] != NOBODY {
                row["kind"] = json!(kind);
            }
        }
        let with = |key: &str| {
            let (kind, key) = (kind.clone(), Some(key.to_owned()));
            Policy { kind, key, scope: None, partitions: 1, ..like.clone() }
        };
        // When the second one counts is decided as rows come.
        let versions = ["content.k", "content.mirror"].map(|key| (Duration::ZERO, with(key)));
        self.own = Some(KindPlan { versions: versions.into() });
    }

    /// The kind of its rows, if it is their own.
    pub(crate) fn own_kind(&self) -> Option<&KindPlan> {
        self.own.as_ref()
    }

    fn row(dice: &Dice, kinds: &[KindPlan], row: usize) -> Value {
        let kind = &kinds[dice.below(kinds.len())].versions[0].1.kind;
        let (target, key) = (format!("t{}", dice.below(3)), format!("k{}", dice.below(60)));
        json!({"kind": kind, "content": {"t": target, "k": key, "row": row}})
    }

    /// What its user asks for.
    pub(super) fn request(&self) -> Option<OpenRequest> {
        let tolerated = self.strict.unwrap_or(Tolerance::Count(self.rows.len() as u64));
        // Pages of one that is not cut here are those of `fixed_page`.
        let one = Texts::from([("a.ndjson".to_owned(), String::new())]);
        let producer = match self.by_position {
            true => json!({
                "source": {"s3": named(self.texts.as_ref().unwrap_or(&one))},
                "partitions": self.partitions,
                "tolerated_bad_rows": self.kept.then_some(tolerated),
            }),
            false => json!({
                "source": {"url": "https://rows.example/"},
                "partitions": self.partitions,
                "key": self.own.is_none().then_some("content.row"),
                "tolerated_bad_rows": self.spoiled.then_some(tolerated),
            }),
        };
        let producer: Producer = serde_json::from_value(producer).ok()?;
        Some(OpenRequest {
            user_key: Some(self.name.clone()),
            notify: self.notify.then_some(Destination::Queue(NoticesQueue::Notices)),
            producer: Some(producer),
            tolerated_failures: self.tolerated,
            ..OpenRequest::default()
        })
    }
}
