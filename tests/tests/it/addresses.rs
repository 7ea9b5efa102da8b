//! Sources and receivers of notices at private addresses: users name their URLs, but not where a deployment may call.

use fanfold::clock::{Timestamp, World};
use fanfold::config::Surroundings;
use fanfold::notice::Notice;
use fanfold::producing::Source;
use fanfold::store::fanouts::FanoutState;
use fanfold::tracking::OpenRequest;
use fanfold_http_client::Guard;
use fanfold_local::Engine;
use fanfold_notify::{HttpWebhooks, Webhooks};
use fanfold_produce::{AllSources, SourceRequest, Sources};
use fanfold_tests::{Crash, ScriptedApi, TestStack, policy};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::hostile::server::{Deed, Server};

/// The environment of a function whose deployment names these hosts.
fn deployed(hosts: &'static str) -> Surroundings {
    let engine = Engine::memory().unwrap();
    let lookup = move |name: &str| (name == "BATCH_API_PRIVATE_HOSTS").then(|| hosts.to_owned());
    Surroundings::new(engine.dynamodb(), engine.sqs(), World::system(), lookup)
}

/// Asks a source as `produce` does. Returns why there is no answer.
async fn ask(hosts: &'static str, url: &str) -> Option<String> {
    let surroundings = deployed(hosts);
    let sources = AllSources::from_environment(&surroundings, Guard::deployed(&surroundings));
    let ask = SourceRequest { fanout: Uuid::nil(), partition: 0, of: 1, cursor: Value::Null };
    sources.ask(&Source::Url(url.to_owned()), &ask, Timestamp(1_000)).await.err().map(|error| error.message)
}

/// Posts a notice as `notify` does. Returns why it was not received.
async fn post(hosts: &'static str, url: &str, notice: &Notice) -> Option<String> {
    let surroundings = deployed(hosts);
    let webhooks = HttpWebhooks::from_environment(&surroundings, Guard::deployed(&surroundings)).unwrap();
    webhooks.post(url, notice, World::system().now()).await.err().map(|error| error.to_string())
}

#[tokio::test]
async fn private_sources_and_receivers_are_called_only_if_the_deployment_names_their_host() {
    let server = Server::start(|_, _| Deed::answer("200 OK", "", json!({"tasks": []}).to_string())).await;
    let stack = TestStack::new(policy(json!({})), ScriptedApi::always_succeeds(), Crash::never()).await;
    let open = OpenRequest { items: 0, seal: true, ..OpenRequest::default() };
    let header = stack.tracking.open(open, None).await.unwrap().fanout;
    assert_eq!(header.state, FanoutState::Completed);
    let notice = Notice::ended(&header);
    let port = server.url.rsplit(':').next().unwrap().split('/').next().unwrap().to_owned();
    for host in ["127.0.0.1", "localhost"] {
        let url = format!("http://{host}:{port}");
        for problem in [ask("", &url).await, post("other.example", &url, &notice).await] {
            let expected =
                format!("`{host}` has no public address, and is not a host whose private addresses may be called");
            assert!(problem.as_ref().is_some_and(|problem| problem.ends_with(&expected)), "{problem:?}");
        }
        assert_eq!(server.heard().len(), 0);
    }
    for host in ["127.0.0.1", "localhost"] {
        let url = format!("http://{host}:{port}");
        assert_eq!((ask(host, &url).await, post(host, &url, &notice).await), (None, None));
    }
    assert_eq!(server.heard().len(), 4);
    for url in ["https://169.254.169.254/latest/meta-data/", "https://[fd00:ec2::254]/", "https://10.0.0.1/"] {
        for problem in [ask("127.0.0.1", url).await, post("127.0.0.1", url, &notice).await] {
            assert!(problem.as_ref().is_some_and(|problem| problem.contains("no public address")), "{problem:?}");
        }
    }
}
