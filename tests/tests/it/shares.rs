//! Shares of keys: the same here and by the expressions of docs/partitioning.md, and even.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use fanfold::share::share;
use serde_json::json;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Texts that languages encode or escape in different ways, and plain ones.
fn keys() -> Vec<String> {
    let mut keys: Vec<String> = (0..500).map(|n| format!("order {n}")).collect();
    keys.extend(["", "0", "é", "日本", "🦀", "a\nb", "\"", "\\", "NY/00501", "\u{0}", " "].map(str::to_owned));
    keys
}

const NUMBERS: [u32; 6] = [1, 2, 3, 16, 1_000, 1_024];

/// A block of the page in a language.
fn block(language: &str) -> String {
    let page = std::fs::read_to_string(root().join("docs/partitioning.md")).unwrap();
    let begin = format!("```{language}\n");
    let rest = &page[page.find(&begin).unwrap() + begin.len()..];
    rest[..rest.find("```").unwrap()].to_owned()
}

/// What a program makes of the keys on its standard input. None: this machine does not have it.
fn shares(program: &str, flag: &str, script: &str) -> Option<Vec<Vec<u32>>> {
    let mut child =
        Command::new(program).args([flag, script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
    let input = json!({"keys": keys(), "numbers": NUMBERS}).to_string();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

fn wanted() -> Vec<Vec<u32>> {
    keys().iter().map(|key| NUMBERS.iter().map(|n| share(key, *n)).collect()).collect()
}

#[test]
fn python_gives_the_same_shares() {
    let script = format!(
        "{}\nimport json, sys\nasked = json.load(sys.stdin)\nprint(json.dumps([[share(key, n) for n in asked['numbers']] for key in asked['keys']]))",
        block("python")
    );
    assert_eq!(shares("python3", "-c", &script).expect("this test needs python3"), wanted());
}

#[test]
fn javascript_gives_the_same_shares() {
    let script = format!(
        "{}\nconst asked = JSON.parse(require('node:fs').readFileSync(0, 'utf8'));\n\
         console.log(JSON.stringify(asked.keys.map((key) => asked.numbers.map((n) => share(key, n)))));",
        block("javascript")
    );
    match shares("node", "-e", &script) {
        Some(shares) => assert_eq!(shares, wanted()),
        None => eprintln!("not run: this machine has no node"),
    }
}

#[test]
fn the_page_shows_what_is() {
    let page = std::fs::read_to_string(root().join("docs/partitioning.md")).unwrap();
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with("| (empty)") || line.starts_with("| `"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    assert_eq!(rows.len(), 8);
    for row in rows {
        let key = if row[0] == "(empty)" { "" } else { row[0].trim_matches('`') };
        let number = u64::from_str_radix(row[1].trim_matches('`'), 16).unwrap();
        for (shown, of) in row[2..].iter().zip([2, 3, 8, 16, 1_000]) {
            assert_eq!(share(key, of).to_string(), *shown, "{key} of {of}");
            assert_eq!(u64::from(share(key, of)), number % u64::from(of), "{key} of {of}");
        }
    }
}

/// ZIP codes, towns and coordinates of the example's data, which are real: each once.
fn real_keys() -> BTreeSet<String> {
    let orders = std::fs::read_to_string(root().join("examples/parcels/orders.csv")).unwrap();
    let columns: Vec<&str> = orders.lines().next().unwrap().split(',').collect();
    let at = |name: &str| columns.iter().position(|column| *column == name).unwrap();
    let [zip, city, state] = ["zip_code", "city", "state"].map(at);
    let [latitude, longitude] = ["latitude", "longitude"].map(at);
    let rows = orders.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    let keys = |row: Vec<&str>| {
        let (town, place) = (format!("{}, {}", row[city], row[state]), format!("{},{}", row[latitude], row[longitude]));
        [row[zip].to_owned(), town, place]
    };
    rows.flat_map(keys).collect()
}

#[test]
fn shares_of_a_hundred_thousand_real_keys_are_even() {
    let keys = real_keys();
    assert!(keys.len() > 100_000, "{}", keys.len());
    for of in 2..=16_u32 {
        let mut counts = vec![0_u64; of as usize];
        keys.iter().for_each(|key| counts[share(key, of) as usize] += 1);
        let even = keys.len() as f64 / f64::from(of);
        let off = counts.iter().map(|count| (*count as f64 / even - 1.0).abs()).fold(0.0, f64::max);
        println!("{of} shares: {:.2} % off at most", off * 100.0);
        assert!(off <= 0.05, "{of}: {counts:?}");
    }
}
