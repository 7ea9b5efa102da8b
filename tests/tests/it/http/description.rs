//! `docs/openapi.json`: it has the routes that there are, and what they answer in the other tests.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use fanfold_local::Template;
use serde_json::Value;

use super::{HttpAnswer, Server};

static DESCRIPTION: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("../../../../docs/openapi.json")).unwrap());

type Routes = BTreeSet<(String, String)>;

fn described() -> Routes {
    let paths = DESCRIPTION["paths"].as_object().unwrap();
    let methods = |(path, methods): (&String, &Value)| {
        let methods: Vec<String> = methods.as_object().unwrap().keys().map(|method| method.to_uppercase()).collect();
        methods.into_iter().map(|method| (method, path.clone())).collect::<Vec<_>>()
    };
    paths.iter().flat_map(methods).collect()
}

/// What is described of a route, by the path as it was called.
fn operation(method: &str, path: &str) -> Option<&'static Value> {
    let path = path.split('?').next().unwrap();
    let fits = |template: &str| {
        let (template, path) = (template.split('/'), path.split('/'));
        template.clone().count() == path.clone().count()
            && template.zip(path).all(|(want, got)| want == got || (want.starts_with('{') && !got.is_empty()))
    };
    let paths = DESCRIPTION["paths"].as_object().unwrap();
    paths.iter().find(|(template, _)| fits(template))?.1.get(method.to_ascii_lowercase())
}

/// Checks that an answer is one of those described.
#[track_caller]
pub(super) fn check(method: &str, path: &str, reply: &HttpAnswer) {
    let (status, code) = (reply.status.to_string(), reply.body["code"].as_str().unwrap_or_default());
    let operation = operation(method, path);
    if let "unknown_route" | "method_not_allowed" = code {
        assert!(operation.is_none(), "{method} {path} is described, but answers {code}");
        return;
    }
    let response = &operation.unwrap_or_else(|| panic!("{method} {path} is not described"))["responses"][&status];
    assert!(!response.is_null(), "{method} {path} is not described to answer {status} {code}");
    if reply.status >= 400 {
        assert!(codes(response).iter().any(|known| known == code), "{method} {path} is not described to answer {code}");
    } else {
        let required = required(&response["content"]["application/json"]["schema"]);
        assert!(!required.is_empty());
        let missing: Vec<_> = required.iter().filter(|name| reply.body.get(name.as_str()).is_none()).collect();
        assert!(missing.is_empty(), "{method} {path} does not answer {missing:?}");
        let headers = response["headers"].as_object().into_iter().flatten();
        headers.for_each(|(name, _)| assert!(reply.headers.contains_key(name), "{method} {path} sends no {name}"));
    }
}

fn resolve(value: &Value) -> &Value {
    value["$ref"].as_str().map_or(value, |reference| DESCRIPTION.pointer(reference.trim_start_matches('#')).unwrap())
}

fn required(schema: &Value) -> Vec<String> {
    let names = resolve(schema)["required"].as_array().into_iter().flatten();
    names.map(|name| name.as_str().unwrap().to_owned()).collect()
}

fn codes(response: &Value) -> Vec<String> {
    let schema = &resolve(response)["content"]["application/problem+json"]["schema"];
    let codes = schema["allOf"][1]["properties"]["code"]["enum"].as_array().unwrap();
    codes.iter().map(|code| code.as_str().unwrap().to_owned()).collect()
}

/// The codes of the problems that each route is described to return.
pub(super) fn problems() -> impl Iterator<Item = (String, String, Vec<String>)> {
    described().into_iter().map(|(method, template)| {
        let responses = operation(&method, &template).unwrap()["responses"].as_object().unwrap();
        let problems = responses.iter().filter(|(status, _)| status.as_str() >= "400");
        let codes = problems.flat_map(|(_, response)| codes(response)).collect();
        (method, template, codes)
    })
}

#[test]
fn the_template_has_the_routes_described() {
    let template = Template::parse(include_str!("../../../../template.yaml")).unwrap();
    let routes: Routes = template.routes().iter().map(|route| (route.method.clone(), route.path.clone())).collect();
    assert_eq!(routes, described());
}

/// The routers show their paths only in their debug form, and their methods only in answers to
/// another.
#[tokio::test(start_paused = true)]
async fn the_routers_have_the_routes_described() {
    let server = Server::start().await;
    let written = format!("{:?}", server.router);
    let paths: BTreeSet<&str> = written.split('"').filter(|text| text.starts_with('/')).collect();
    // Fallbacks are written like routes.
    let paths = paths.into_iter().filter(|path| !path.contains("{*"));
    let mut routes = Routes::new();
    for path in paths {
        let called = path.replace("{id}", super::NOBODY).replace("{kind}", "parcel");
        let reply = server.call("BREW", &called, &[], "").await;
        reply.problem(405, "method_not_allowed");
        let allowed = reply.headers["allow"].to_str().unwrap().split(',').map(str::to_owned);
        // A route that takes GET takes HEAD.
        routes.extend(allowed.filter(|method| method != "HEAD").map(|method| (method, path.to_owned())));
    }
    assert_eq!(routes, described());
}

/// Ids are for generated clients, links for who follows them.
#[test]
fn operations_are_named_once_and_links_lead_to_them() {
    let paths = DESCRIPTION["paths"].as_object().unwrap();
    let operations: Vec<&Value> = paths.values().flat_map(|methods| methods.as_object().unwrap().values()).collect();
    let ids: BTreeSet<&str> = operations.iter().map(|operation| operation["operationId"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), operations.len());
    let responses = operations.iter().flat_map(|operation| operation["responses"].as_object().unwrap().values());
    let links = responses.filter_map(|response| response["links"].as_object()).flat_map(|links| links.values());
    let targets: Vec<&str> = links.map(|link| link["operationId"].as_str().unwrap()).collect();
    assert!(!targets.is_empty() && targets.iter().all(|target| ids.contains(target)), "{targets:?}");
}
