//! What tells an operator of trouble: alarms, metrics and the CloudWatch dashboard of `template.yaml`, and their documentation.

use std::collections::BTreeSet;

use fanfold::metrics::ALL;
use fanfold_local::Template;
use serde_json::{Value, json};

use crate::template::{TEXT, resources};

const RUNBOOK: &str = include_str!("../../../docs/operations.md");
const DEPLOYING: &str = include_str!("../../../docs/deploying.md");

/// Every alarm says so where the parameters ask for it, and says when it is over.
#[test]
fn every_alarm_goes_to_the_topics_of_the_parameters() {
    let document = Template::document(TEXT).unwrap();
    let told = |condition, topic| json!({"Fn::If": [condition, {"Ref": topic}, {"Ref": "AWS::NoValue"}]});
    let topics = json!([told("Alarms", "AlarmTopicArn"), told("MailsAlarms", "AlarmTopic")]);
    for (name, alarm) in resources("AWS::CloudWatch::Alarm") {
        assert_eq!((&alarm["AlarmActions"], &alarm["OKActions"]), (&topics, &topics), "{name}");
        assert!(alarm["AlarmDescription"].as_str().is_some_and(|text| text.len() > 20), "{name}");
        // Alarms on metrics that are not written would only ever be in want of data.
        let own = alarm["Namespace"] == "Fanfold";
        assert_eq!(own, document["Resources"][&name]["Condition"] == "WritesMetrics", "{name}");
    }
}

/// The headings name every alarm, and no other.
#[test]
fn every_alarm_has_a_runbook() {
    let alarms: BTreeSet<String> = resources("AWS::CloudWatch::Alarm").into_keys().collect();
    let headings = RUNBOOK.lines().filter_map(|line| line.strip_prefix("### "));
    let words = headings.flat_map(|heading| heading.split([' ', ',', '`'])).filter(|word| word.ends_with("Alarm"));
    assert_eq!(words.map(str::to_owned).collect::<BTreeSet<_>>(), alarms);
}

/// Names of metrics in a text.
fn named(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("fanfold_")).collect()
}

/// Alarms and the dashboard show metrics that there are, and the documentation has a row for each.
#[test]
fn metrics_are_those_that_the_code_has() {
    let all: BTreeSet<&str> = ALL.iter().map(|(name, _)| *name).collect();
    let shown = named(TEXT);
    assert!(shown.is_subset(&all), "{:?}", shown.difference(&all));
    let documented: BTreeSet<&str> =
        RUNBOOK.lines().filter(|line| line.starts_with("| `fanfold_")).flat_map(named).collect();
    assert_eq!(documented, all);
}

/// The body is JSON once the names are put in.
#[test]
fn the_dashboard_can_be_read() {
    let body = resources("AWS::CloudWatch::Dashboard").remove("Dashboard").unwrap();
    let body: Value = serde_json::from_str(body["DashboardBody"]["Fn::Sub"].as_str().unwrap()).unwrap();
    let widgets = body["widgets"].as_array().unwrap();
    let place = |widget: &Value| ["x", "y"].map(|name| widget[name].as_u64().unwrap());
    let places: BTreeSet<[u64; 2]> = widgets.iter().map(place).collect();
    assert_eq!((places.len(), widgets.len()), (15, 15), "two lie on one another");
    for widget in widgets {
        let metrics = widget["properties"]["metrics"].as_array().unwrap();
        assert!(!metrics.is_empty() && metrics.len() <= 10, "{widget}");
    }
}

/// Every parameter and output is described, and no other.
#[test]
fn parameters_and_outputs_are_documented() {
    let document = Template::document(TEXT).unwrap();
    for (section, head) in [("Parameters", "| parameter |"), ("Outputs", "| output |")] {
        let names: BTreeSet<&str> = document[section].as_object().unwrap().keys().map(String::as_str).collect();
        let rows = DEPLOYING.lines().skip_while(|line| !line.starts_with(head)).skip(2);
        let rows = rows.take_while(|line| line.starts_with("| "));
        let documented: BTreeSet<&str> = rows.filter_map(|row| row.split('`').nth(1)).collect();
        assert_eq!(documented, names, "{section}");
    }
}
