//! Runs against the sandbox in combinations of all that it can do: what it did is what the run says, whatever went wrong in between.
//! Each two settings come together once; `just sandbox` runs all combinations.

use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;

use serde_json::{Value, json};

use crate::folder::{Folder, summary};

const FANFOLD: &str = env!("CARGO_BIN_EXE_fanfold");
const ROWS: usize = 24;
const MAX_BATCH: usize = 6;

/// The combinations that run at a time: they mostly wait.
const AT_ONCE: usize = 6;

/// What an API takes: its preset (none: Fanfold's own JSON), its constants, and the content of a row.
type Shape = (&'static str, &'static str, fn(usize) -> Value);

const SHAPES: [Shape; 14] = [
    ("slots", "{}", |n| json!({"ref": n})),
    ("strict", "{}", |n| json!({"ref": n})),
    ("algolia", r#"{"application": "A"}"#, |n| json!({"objectID": n.to_string()})),
    ("bigquery", "{}", |n| json!({"ref": n})),
    ("dynamodb", r#"{"table": "T"}"#, |n| json!({"ref": {"S": n.to_string()}})),
    ("elasticsearch", "{}", |n| json!({"ref": n})),
    ("eventbridge", r#"{"source": "s", "detail_type": "t"}"#, |n| json!({"ref": n})),
    ("hubspot", "{}", |n| json!({"properties": {"ref": n}})),
    ("kinesis", r#"{"stream": "S"}"#, |n| json!({"ref": n})),
    ("openai-embeddings", "{}", |n| json!({"input": n.to_string()})),
    ("resend", "{}", |n| json!({"from": "a@example.com", "to": ["b@example.com"], "subject": n.to_string()})),
    ("salesforce", "{}", |n| json!({"attributes": {"type": "Account"}, "Name": n.to_string()})),
    ("ses", r#"{"from": "a@example.com", "template": "T"}"#, |n| json!({"to": "b@example.com", "data": {"ref": n}})),
    ("sqs", r#"{"queue_url": "q"}"#, |n| json!({"ref": n})),
];

/// The other settings, and the options of the sandbox for each of their values.
const SETTINGS: [&[&[&str]]; 7] = [
    &[&[], &["--latency", "1ms..50ms"], &["--rate", "3"], &["--slow", "10%", "--slow-for", "3s"]],
    &[&[], &["--fail", "10%"]],
    &[&[], &["--retry", "5%"]],
    &[&[], &["--poison", "5%"]],
    &[&[], &["--errors", "10%"]],
    &[&[], &["--lose", "10%"]],
    &[&[], &["--later", "30%", "--later-for", "1s"]],
];
const PACE: usize = 0;
/// The pace with calls that are answered late.
const SLOW: usize = 3;
const FAIL: usize = 1;
const RETRY: usize = 2;
const POISON: usize = 3;
const ERRORS: usize = 4;
const LOSE: usize = 5;
const LATER: usize = 6;

/// A shape, and a value of each setting.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Combination {
    shape: usize,
    values: [usize; SETTINGS.len()],
}

impl Combination {
    fn shape(&self) -> Shape {
        SHAPES[self.shape]
    }

    fn is_strict(&self) -> bool {
        self.shape().0 == "strict"
    }

    /// A strict call is not answered later.
    fn is_possible(&self) -> bool {
        !(self.is_strict() && self.values[LATER] > 0)
    }

    fn options(&self) -> Vec<&'static str> {
        let preset = match self.shape().0 {
            "slots" => vec![],
            "strict" => vec!["--strict"],
            preset => vec!["--as", preset],
        };
        let options = SETTINGS.iter().zip(self.values).flat_map(|(values, at)| values[at].iter().copied());
        preset.into_iter().chain(options).collect()
    }

    /// Whether an answer may get lost, so that a member may be done twice by an API that remembers no keys.
    fn may_be_silent(&self) -> bool {
        self.values[LOSE] > 0 || self.values[PACE] == SLOW
    }

    fn remembers_keys(&self) -> bool {
        matches!(self.shape().0, "slots" | "strict" | "resend")
    }

    /// The pairs of values in it, the shape among them.
    fn pairs(&self) -> Vec<[(usize, usize); 2]> {
        let shape = (SETTINGS.len(), self.shape);
        let all: Vec<(usize, usize)> = self.values.into_iter().enumerate().chain([shape]).collect();
        (0..all.len()).flat_map(|one| (0..one).map(move |other| (one, other))).map(|(a, b)| [all[b], all[a]]).collect()
    }

    fn any(shape: usize, random: &mut fastrand::Rng) -> Self {
        Self { shape, values: SETTINGS.map(|values| random.usize(..values.len())) }
    }

    fn folder(&self) -> Folder {
        let folder = Folder::new();
        let (name, with, content) = self.shape();
        let rows: String = (0..ROWS).map(|n| format!("{}\n", content(n))).collect();
        folder.write("rows.ndjson", rows);
        // Elsewhere no answer may be too late, however busy the machine is: nothing may be called again then.
        let timeout = if self.values[PACE] == SLOW { "1s" } else { "30s" };
        let mut api = json!({"url": "http://127.0.0.1:${PORT}/", "timeout": timeout});
        match name {
            "slots" => {}
            "strict" => api["mode"] = json!("strict"),
            preset => {
                api["use"] = json!(preset);
                api["with"] = serde_json::from_str(with).unwrap();
            }
        }
        if self.values[LATER] > 0 {
            api["answers_within"] = json!("5m");
        }
        let mut policy = json!({
            "kind": "row", "target": "kind", "max_batch": MAX_BATCH, "linger": "500ms", "max_in_flight": 2,
            "max_attempts": 20, "refusals": "fail", "backoff": {"base": "100ms", "max": "500ms"}, "batch_api": api,
        });
        if name == "dynamodb" {
            policy["distinct"] = json!("content.ref.S");
        }
        folder.write("policy.yaml", policy.to_string());
        let log = folder.path().join("calls.ndjson");
        let start = [&[FANFOLD, "sandbox", "--log", log.to_str().unwrap()], &self.options()[..]].concat();
        folder.write("run.yaml", json!({ "start": start }).to_string());
        folder
    }

    /// Runs it, and checks that all is as it was promised. Returns what it took.
    fn check(&self) -> String {
        let folder = self.folder();
        let mut command = folder.command(&["--json"]);
        for name in
            ["OPENAI_API_KEY", "GOOGLE_TOKEN", "SALESFORCE_TOKEN", "RESEND_API_KEY", "HUBSPOT_TOKEN", "ALGOLIA_API_KEY"]
        {
            command.env(format!("FANFOLD_SECRET_{name}"), "a secret");
        }
        let credentials = [("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b"), ("AWS_REGION", "eu-west-1")];
        let summary = summary(&command.envs(credentials).output().unwrap());
        let text = std::fs::read_to_string(folder.path().join("calls.ndjson")).unwrap();
        let calls: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let ledger = Ledger::of(&calls);
        let shown = || format!("{self:?}: {:?}\n{summary}\n{text}", self.options());
        assert_eq!((&summary["total"], &summary["open"]), (&json!(ROWS), &json!(0)), "{}", shown());
        assert_eq!((ledger.count("unreadable"), ledger.count("key conflict")), (0, 0), "{}", shown());
        // What succeeded is what was done, and nothing else.
        let succeeded = ledger.members.values().filter(|member| member.succeeded > 0).count();
        assert_eq!(summary["succeeded"], succeeded, "{}", shown());
        assert_eq!(summary["failed"], ROWS - succeeded, "{}", shown());
        if self.values[FAIL] + self.values[POISON] == 0 {
            assert_eq!(succeeded, ROWS, "{}", shown());
        }
        for (name, member) in &ledger.members {
            assert!(member.succeeded == 0 || member.failed == 0, "{name}: {}", shown());
        }
        assert!(ledger.largest <= MAX_BATCH, "{}", shown());
        if self.remembers_keys() || !self.may_be_silent() {
            let again: Vec<&String> =
                ledger.members.iter().filter(|(_, member)| member.succeeded > 1).map(|(name, _)| name).collect();
            assert!(again.is_empty(), "{again:?} were done again: {}", shown());
        }
        self.check_calls(&summary, calls.len(), &shown)
    }

    /// Without faults that pass, a batch is called once, and each bad member costs at most the calls that halve it out.
    fn check_calls(&self, summary: &Value, calls: usize, shown: &dyn Fn() -> String) -> String {
        let batches = usize::try_from(summary["batches"].as_u64().unwrap()).unwrap();
        let bad = usize::try_from(summary["failed"].as_u64().unwrap()).unwrap();
        let halvings = MAX_BATCH.next_power_of_two().ilog2() as usize;
        let most = batches + 2 * halvings * bad;
        let passing = [RETRY, ERRORS, LOSE].iter().any(|setting| self.values[*setting] > 0) || self.values[PACE] > 1;
        assert!(passing || calls <= most, "{calls} calls, at most {most}: {}", shown());
        let least = ROWS.div_ceil(MAX_BATCH);
        format!("{calls:3} calls in {batches} batches (least: {least}), {bad:2} failed: {:?}", self.options())
    }
}

/// What became of a member, by the sandbox's log.
#[derive(Default)]
struct Member {
    succeeded: usize,
    failed: usize,
}

/// What the sandbox did, by its log.
struct Ledger {
    members: BTreeMap<String, Member>,
    because: BTreeMap<String, usize>,
    largest: usize,
}

impl Ledger {
    fn of(calls: &[Value]) -> Self {
        let mut ledger = Self { members: BTreeMap::new(), because: BTreeMap::new(), largest: 0 };
        for call in calls {
            *ledger.because.entry(call["because"].as_str().unwrap().to_owned()).or_default() += 1;
            let members = call["members"].as_array().unwrap();
            ledger.largest = ledger.largest.max(members.len());
            for (name, outcome) in members.iter().zip(call["outcomes"].as_array().unwrap()) {
                let member = ledger.members.entry(name.as_str().unwrap().to_owned()).or_default();
                match outcome.as_str().unwrap() {
                    "succeeded" => member.succeeded += 1,
                    "failed" => member.failed += 1,
                    _ => {}
                }
            }
        }
        ledger
    }

    fn count(&self, because: &str) -> usize {
        self.because.get(because).copied().unwrap_or_default()
    }
}

/// Combinations with all pairs of values. Of many that are drawn the one is taken that adds most pairs.
fn pairwise() -> Vec<Combination> {
    let mut random = fastrand::Rng::with_seed(13);
    let mut wanted: HashSet<[(usize, usize); 2]> = HashSet::new();
    for shape in 0..SHAPES.len() {
        for _ in 0..2_000 {
            let any = Combination::any(shape, &mut random);
            wanted.extend(any.pairs().into_iter().filter(|_| any.is_possible()));
        }
    }
    let mut chosen: Vec<Combination> = Vec::new();
    while !wanted.is_empty() {
        let shape = chosen.len() % SHAPES.len();
        let drawn = (0..500).map(|_| Combination::any(shape, &mut random)).filter(Combination::is_possible);
        let gain = |one: &Combination| one.pairs().iter().filter(|pair| wanted.contains(*pair)).count();
        let best = drawn.max_by_key(gain).unwrap();
        best.pairs().iter().for_each(|pair| _ = wanted.remove(pair));
        chosen.push(best);
    }
    chosen
}

fn every() -> Vec<Combination> {
    let mut all: Vec<Combination> =
        (0..SHAPES.len()).map(|shape| Combination { shape, values: [0; SETTINGS.len()] }).collect();
    for (setting, values) in SETTINGS.iter().enumerate() {
        let with = |one: Combination| {
            (0..values.len()).map(move |value| {
                let mut values = one.values;
                values[setting] = value;
                Combination { values, ..one }
            })
        };
        all = all.into_iter().flat_map(with).collect();
    }
    all.retain(Combination::is_possible);
    all
}

/// Checks these, some at a time.
fn check(combinations: Vec<Combination>) {
    let left = Mutex::new(combinations);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(one) = { left.lock().unwrap().pop() } {
                    eprintln!("{}", one.check());
                }
            });
        }
    });
}

#[test]
fn what_was_done_is_what_a_run_says_whatever_goes_wrong() {
    check(pairwise());
}

#[test]
#[ignore = "every combination takes half an hour: `just sandbox`"]
fn in_every_combination() {
    check(every());
}
