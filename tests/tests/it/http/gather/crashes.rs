//! A worker dies at each request while fan-outs are opened with tasks, gather, and are followed by theirs.

use std::collections::BTreeSet;

use fanfold_tests::deaths;

use super::*;

/// Two customers are opened in one request, which is repeated until it is answered, or never. Returns the struck request.
async fn run(crash: Crash, repeats: bool) -> Option<String> {
    let (server, _) = server(crash).await;
    let body = json!({"fanouts": (1..=2).map(gather).collect::<Vec<_>>()});
    for _ in 0..30 {
        let answer = server.post_once("/fanouts/open", "k", body.clone()).await;
        server.stack.crash.revive();
        if answer.status == 201 || !repeats {
            break;
        }
        assert!(answer.status >= 500, "{}", answer.body);
    }
    rest(&server).await;
    // Those whose header was written are completed, whoever asked.
    let listed = server.stack.insist(async || listed(&server).await).await;
    assert!(listed.len() <= 2 && (listed.len() == 2 || !repeats), "{listed:?}");
    let mut tasks = BTreeSet::new();
    let reports = reports(&server);
    for fanout in &listed {
        assert_eq!(
            (&fanout["state"], &fanout["total"], &fanout["missing"]),
            (&json!("completed"), &json!(2), &json!(0))
        );
        let task = fanout["then"]["id"].as_str().unwrap().to_owned();
        assert_eq!(fanout["then"]["registered"], true, "{fanout}");
        let contents = &reports[&task];
        assert!(contents.windows(2).all(|two| two[0] == two[1]), "the same content each time: {contents:?}");
        let customer = &contents[0]["customer"];
        assert_eq!(fanout["user_key"], format!("customer {customer}"));
        let failed = json!(u32::from(*customer == json!(2)));
        assert_eq!((contents[0]["results"].as_array().unwrap().len(), &contents[0]["fanout"]["failed"]), (2, &failed));
        tasks.insert(task);
    }
    assert_eq!(reports.len(), listed.len(), "a report each: {reports:?}");
    let members = server.stack.api.members_by_key();
    let all: Vec<_> = members.values().flatten().collect();
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "no task is in two batches");
    assert_eq!(all.len(), 3 * listed.len());
    server.stack.crash.struck()
}

/// The fan-outs as they stand.
async fn listed(server: &Server) -> Result<Vec<Value>, String> {
    let page = server.get("/fanouts").await;
    if page.status != 200 {
        return Err(page.body.to_string());
    }
    Ok(page.body["fanouts"].as_array().unwrap().clone())
}

deaths!(
    async |crash| run(crash, true).await,
    20,
    dies_before_a_request_and_is_asked_again: Before,
    dies_after_a_request_and_is_asked_again: After,
    loses_an_answer_and_is_asked_again: AnswerLost,
);

deaths!(
    async |crash| run(crash, false).await,
    20,
    dies_before_a_request_and_is_never_asked_again: Before,
    dies_after_a_request_and_is_never_asked_again: After,
);
