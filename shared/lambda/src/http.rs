//! Functions invoked by the HTTP API, alone or beside a queue.

use axum::Router;
use fanfold::delivery::Step;
use fanfold_http::with_fallbacks;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::Value;
use tower::ServiceExt;

use crate::emf::Metrics;
use crate::http_event::{HttpAnswer, HttpEvent};
use crate::queue::deliver;

/// Serves HTTP routes until Lambda ends the process.
///
/// # Errors
/// The runtime API cannot be reached.
pub async fn http(router: Router) -> Result<(), Error> {
    let (router, metrics) = (&with_fallbacks(router), &Metrics::install());
    let invoke = async |event: LambdaEvent<HttpEvent>| {
        let answer = route(router, event.payload).await;
        metrics.write();
        answer
    };
    lambda_runtime::run(service_fn(invoke)).await
}

/// Serves a step that takes messages of its queue as well as HTTP requests.
///
/// # Errors
/// The runtime API cannot be reached.
pub async fn queue_or_http(step: &dyn Step, router: Router) -> Result<(), Error> {
    let (router, metrics) = (&with_fallbacks(router), &Metrics::install());
    let invoke = async |event: LambdaEvent<Value>| {
        let answer = answer(step, router, event.payload).await;
        metrics.write();
        answer
    };
    lambda_runtime::run(service_fn(invoke)).await
}

/// Messages come in `Records`; everything else is a request.
async fn answer(step: &dyn Step, router: &Router, payload: Value) -> Result<Value, Error> {
    if payload.get("Records").is_some() {
        let response = deliver(step, serde_json::from_value(payload)?).await;
        return Ok(serde_json::to_value(response)?);
    }
    Ok(serde_json::to_value(route(router, serde_json::from_value(payload)?).await?)?)
}

async fn route(router: &Router, event: HttpEvent) -> Result<HttpAnswer, Error> {
    let request = event.into_request()?;
    HttpAnswer::of(router.clone().oneshot(request).await?).await
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use axum::routing::post;
    use serde_json::json;

    use super::*;
    use crate::queue::tests::{Picky, event};

    #[tokio::test]
    async fn a_function_takes_messages_and_requests() {
        let router = Router::new().route("/tasks", post(async |body: String| format!("got {body}")));
        let answer = async |payload| answer(&Picky, &router, payload).await;
        let failures = answer(event()).await.unwrap();
        assert_eq!(failures["batchItemFailures"].as_array().unwrap().len(), 2);
        let request = json!({
            "version": "2.0", "routeKey": "POST /tasks", "rawPath": "/tasks", "rawQueryString": "",
            "headers": {"content-type": "application/json", "host": "x"}, "body": "{}", "isBase64Encoded": false,
            "requestContext": {
                "http": {"method": "POST", "path": "/tasks", "protocol": "HTTP/1.1", "sourceIp": "::1", "userAgent": "t"},
                "stage": "$default", "requestId": "r", "timeEpoch": 0, "apiId": "a", "accountId": "0", "routeKey": "",
                "domainName": "x", "domainPrefix": "x", "time": "",
            },
        });
        let response = answer(request.clone()).await.unwrap();
        assert_eq!((&response["statusCode"], &response["body"]), (&json!(200), &json!("got {}")));
        // What is not called JSON comes as base64, and goes so.
        let stream =
            json!({"body": "YQpiCg==", "isBase64Encoded": true, "headers": {"content-type": "application/x-ndjson"}});
        let mut request = request;
        request.as_object_mut().unwrap().extend(stream.as_object().unwrap().clone());
        let response = answer(request).await.unwrap();
        assert_eq!((&response["statusCode"], &response["body"]), (&json!(200), &json!("got a\nb\n")));
    }
}
