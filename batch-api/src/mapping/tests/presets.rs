//! Presets on requests and answers as their documentation shows them (its addresses are in the presets' files).

mod aws;
mod others;

use fanfold::mapping::{Preset, preset_names};

use super::*;

/// A preset's batch API, with these constants.
fn preset(name: &str, with: Value) -> BatchApi {
    batch_api(json!({"use": name, "url": "https://example.com/", "with": with}))
}

/// The request for these contents.
fn sent(api: &BatchApi, contents: &[Value]) -> (String, Vec<(String, String)>) {
    let call = call(contents);
    let request = Request::new(api, &call).unwrap();
    let mapping = request.mapping.unwrap();
    let secrets =
        mapping.secrets().into_iter().map(|name| (name.clone(), Value::String(format!("<{name}>")))).collect();
    (String::from_utf8(request.body).unwrap(), mapping.head("key", secrets).unwrap().headers)
}

fn json_sent(api: &BatchApi, contents: &[Value]) -> Value {
    serde_json::from_str(&sent(api, contents).0).unwrap()
}

/// Outcomes and errors that an answer gives so many members.
fn outcomes(api: &BatchApi, contents: &[Value], status: u16, body: &Value) -> Vec<(MemberOutcome, Option<String>)> {
    let readings = read(api, &call(contents), status, body.to_string().as_bytes()).unwrap();
    assert_eq!(readings.problem, None);
    readings
        .members
        .into_iter()
        .map(|reading| reading.map(|reading| (reading.outcome, reading.error)).unwrap())
        .collect()
}

fn error(api: &BatchApi, contents: &[Value], status: u16, body: &Value) -> (bool, String) {
    let error = read(api, &call(contents), status, body.to_string().as_bytes()).unwrap_err();
    assert_eq!(error.cause, Cause::Status(status));
    (error.retriable, error.message)
}

fn why(outcome: MemberOutcome, error: &str) -> (MemberOutcome, Option<String>) {
    (outcome, Some(error.to_owned()))
}

const DONE: (MemberOutcome, Option<String>) = (Succeeded, None);

fn id(n: u128) -> String {
    Uuid::from_u128(n).to_string()
}

#[test]
fn every_preset_can_be_used_and_names_its_documentation() {
    for name in preset_names() {
        let preset = Preset::named(name).unwrap_or_else(|| panic!("{name}"));
        assert!(!preset.docs.is_empty() && preset.docs.iter().all(|docs| docs.starts_with("https://")), "{name}");
        assert!(preset.url.is_some() != preset.default_url.is_some(), "{name}");
        let with: Value =
            preset.with.keys().map(|name| (name.clone(), json!("x"))).collect::<Map<String, Value>>().into();
        batch_api(json!({"use": name, "url": "https://example.com/", "with": with}));
        for constant in
            preset.with.iter().filter(|(_, constant)| constant.default.is_none()).map(|(constant, _)| constant)
        {
            let mut fewer = with.clone();
            fewer.as_object_mut().unwrap().remove(constant);
            let policy = json!({"kind": "a", "target": "kind", "distinct": "kind",
                "batch_api": {"use": name, "url": "https://example.com/", "with": fewer}});
            let error = serde_json::from_value::<Policy>(policy).unwrap().check().unwrap_err().to_string();
            assert!(error.starts_with(&format!("`batch_api.with.{constant}`: is missing: `{name}` needs ")), "{error}");
        }
    }
}

/// The table in docs/batch-apis.md has a row for each, with its limit and its constants.
#[test]
fn the_documentation_lists_every_preset() {
    let document = include_str!("../../../../docs/batch-apis.md");
    for name in preset_names() {
        let preset = Preset::named(name).unwrap();
        let row = document
            .lines()
            .find(|line| line.starts_with(&format!("| `{name}` | ")))
            .unwrap_or_else(|| panic!("{name}"));
        let columns: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        for constant in preset.with.keys() {
            assert!(columns[2].contains(&format!("`{constant}`")), "{name}: {constant}");
        }
        let most = preset.limits.max_batch.map_or_else(|| "none".to_owned(), |most| most.to_string());
        assert!(columns[4].replace(',', "").starts_with(&most), "{name}: {most}");
        let matching = serde_json::to_value(preset.response.matching.unwrap()).unwrap();
        assert_eq!(columns[6], matching, "{name}");
        for secret in [&preset.request.headers].into_iter().flat_map(|headers| headers.values()) {
            if let Some((_, rest)) = secret.split_once("secret.") {
                let name = rest.trim_end_matches('}');
                assert!(document.contains(&format!("`{name}`")), "{name}");
            }
        }
    }
}
