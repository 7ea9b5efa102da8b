//! The wire between the SDK and the embedded services: every request of a worker passes here and meets its fault.

use std::sync::Arc;

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use serde_json::{Value, json};
use std::time::Duration;

use crate::faults::Fault;
use crate::lag::show_past;
use crate::lock;
use crate::request::Request;
use crate::sim::Sim;
use crate::small::{Gate, Picked, Touches};
use crate::worker::Worker;

/// The HTTP client of one worker.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    pub(crate) sim: Arc<Sim>,
    pub(crate) worker: Arc<Worker>,
    pub(crate) inner: SharedHttpClient,
}

/// One end of the wire.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) sim: Arc<Sim>,
    pub(crate) worker: Arc<Worker>,
    inner: SharedHttpConnector,
}

/// A service's answer.
#[derive(Clone, Debug)]
pub(crate) struct WireAnswer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl WireAnswer {
    pub(crate) fn ok(body: Value) -> Self {
        Self { status: 200, body }
    }

    pub(crate) fn error(status: u16, name: &str) -> Self {
        Self { status, body: json!({"__type": name, "message": "injected"}) }
    }

    /// The kind of error, if it is one.
    fn error_name(&self) -> &str {
        let name = self.body["__type"].as_str().unwrap_or("");
        name.rsplit('#').next().unwrap_or(name)
    }
}

impl HttpClient for Wire {
    fn http_connector(&self, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
        let inner = self.inner.http_connector(settings, components);
        SharedHttpConnector::new(Line { sim: Arc::clone(&self.sim), worker: Arc::clone(&self.worker), inner })
    }
}

impl HttpConnector for Line {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let line = self.clone();
        HttpConnectorFuture::new(async move { line.pass(&request).await })
    }
}

impl Line {
    async fn pass(&self, request: &HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let (service, operation) = target.split_once('.').unwrap_or_default();
        let body = serde_json::from_slice(request.body().bytes().unwrap_or_default()).unwrap_or_default();
        let sqs = service == "AmazonSQS";
        let request = if sqs { Request::sqs(operation, body) } else { Request::dynamodb(operation, body) };
        let reply = self.fated(&request, sqs).await?;
        let status = StatusCode::try_from(reply.status).map_err(|error| ConnectorError::user(error.into()))?;
        let mut response = HttpResponse::new(status, body_of(&reply.body));
        response.headers_mut().insert("content-type", "application/x-amz-json-1.0");
        Ok(response)
    }

    /// Lets a request meet its fault.
    async fn fated(&self, request: &Request, sqs: bool) -> Result<WireAnswer, ConnectorError> {
        let sim = &self.sim;
        let (who, step) = self.worker.who();
        let reached = sim.reach(step, &request.kind, Fault::None);
        sim.need(step, request.actions());
        self.looks(request, &who);
        self.heeds(request, &who, step);
        self.comes_back(request, &who);
        self.adds_up(request);
        self.sweeps(request, &who);
        if let Some(gate) = &sim.gate {
            return self.picked(gate, request, sqs, &who).await;
        }
        tokio::time::sleep(sim.dice.millis(1, 12)).await;
        let fault = sim.fault(step, &request.kind, sqs, reached);
        lock(&sim.heeding).read_with(request, fault, &who);
        if let Some(ended) = self.before(request, sqs, fault, &who).await {
            return ended;
        }
        let reply = self.apply(request, sqs, fault == Fault::Partial).await?;
        self.log(request, &who, if reply.status == 200 { "ok" } else { reply.error_name() });
        tokio::time::sleep(sim.dice.millis(0, 8)).await;
        self.after(request, sqs, fault, &who, reply).await
    }

    /// Lets a request of a small case wait until it is picked. DynamoDB takes the statements of a batch one by one.
    async fn picked(&self, gate: &Gate, request: &Request, sqs: bool, who: &str) -> Result<WireAnswer, ConnectorError> {
        let statements = request.body["Statements"].as_array().map_or(&[][..], Vec::as_slice);
        let Some((last, first)) = statements.split_last().filter(|_| gate.closed()) else {
            return self.meet(gate, request, sqs, who, true).await;
        };
        let mut responses = Vec::with_capacity(statements.len());
        for (at, statement) in first.iter().chain([last]).enumerate() {
            let one = Request::dynamodb(&request.operation, json!({ "Statements": [statement] }));
            let reply = self.meet(gate, &one, false, who, at == first.len()).await?;
            match &reply.body["Responses"][0] {
                Value::Null => return Ok(reply),
                response => responses.push(response.clone()),
            }
        }
        Ok(WireAnswer::ok(json!({ "Responses": responses })))
    }

    /// Lets a request wait until it is picked, and meet what was picked for it. `last`: its answer is one of its own.
    async fn meet(
        &self,
        gate: &Gate,
        request: &Request,
        sqs: bool,
        who: &str,
        last: bool,
    ) -> Result<WireAnswer, ConnectorError> {
        let name = &self.worker.name;
        let Picked { fault, reply } = gate.pass(name, Touches::request(request, sqs, last)).await;
        if let Some(ended) = self.before(request, sqs, fault, who).await {
            return ended;
        }
        let reply = match reply {
            Some(reply) => reply,
            None => {
                let mut reply = self.apply(request, sqs, false).await?;
                if fault == Fault::Stale {
                    show_past(request, &mut reply.body, |record| gate.earlier(record));
                }
                reply
            }
        };
        gate.replied(reply.clone());
        let said = if reply.status == 200 { "ok" } else { reply.error_name() };
        self.log(request, who, if fault == Fault::Stale { "as it was in the beginning" } else { said });
        let reply = self.after(request, sqs, fault, who, reply).await;
        gate.heard(name, &request.kind, reply.as_ref().ok().map(|reply| &reply.body));
        reply
    }

    /// A fault before the request reaches the service; what comes back if it never does.
    async fn before(
        &self,
        request: &Request,
        sqs: bool,
        fault: Fault,
        who: &str,
    ) -> Option<Result<WireAnswer, ConnectorError>> {
        let sim = &self.sim;
        match fault {
            Fault::CrashBefore => {
                sim.count("crash before");
                self.log(request, who, "CRASH before");
                Some(self.worker.die(sim, &request.kind, fault).await)
            }
            Fault::Refused(status, name) => {
                sim.count(name);
                self.log(request, who, &format!("INJECTED {status} {name}"));
                Some(Ok(WireAnswer::error(status, name)))
            }
            Fault::LostBefore => {
                sim.count("request lost");
                self.log(request, who, "LOST before");
                Some(Err(lost()))
            }
            Fault::Late(span) => {
                sim.count("request applied late");
                self.log(request, who, &format!("LOST, applied in {span} ms"));
                self.apply_later(request.clone(), sqs, span, who.to_owned());
                Some(Err(lost()))
            }
            Fault::SlowBefore(span) => {
                sim.count("request slow");
                self.log(request, who, &format!("SLOW, {span} ms"));
                tokio::time::sleep(Duration::from_millis(span)).await;
                None
            }
            _ => None,
        }
    }

    /// A fault between the service and the one who asked.
    async fn after(
        &self,
        request: &Request,
        sqs: bool,
        fault: Fault,
        who: &str,
        reply: WireAnswer,
    ) -> Result<WireAnswer, ConnectorError> {
        let sim = &self.sim;
        match fault {
            Fault::CrashAfter => {
                sim.count("crash after");
                self.log(request, who, "CRASH after");
                self.worker.die(sim, &request.kind, fault).await
            }
            Fault::LostAfter => {
                sim.count("answer lost");
                self.log(request, who, "answer LOST");
                Err(lost())
            }
            Fault::AppliedButError => {
                sim.count("500 after it was applied");
                self.log(request, who, "INJECTED 500 after");
                Ok(WireAnswer::error(500, if sqs { "InternalFailure" } else { "InternalServerError" }))
            }
            Fault::SlowAfter(span) => {
                sim.count("answer slow");
                self.log(request, who, &format!("answer SLOW, {span} ms"));
                tokio::time::sleep(Duration::from_millis(span)).await;
                Ok(reply)
            }
            _ => Ok(reply),
        }
    }

    fn log(&self, request: &Request, who: &str, what: &str) {
        self.sim.trace.line(who, &format!("{} {} -> {what}", request.kind, request.names));
    }

    /// A request that the sender gave up, but the network did not.
    fn apply_later(&self, request: Request, sqs: bool, span: u64, who: String) {
        let line = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(span)).await;
            if let Ok(reply) = line.apply(&request, sqs, false).await {
                let what = if reply.status == 200 { "ok" } else { reply.error_name() };
                line.sim.trace.line(&who, &format!("{} {} (LATE) -> {what}", request.kind, request.names));
            }
        });
    }

    async fn apply(&self, request: &Request, sqs: bool, partial: bool) -> Result<WireAnswer, ConnectorError> {
        if sqs { self.apply_sqs(request, partial).await } else { self.apply_dynamodb(request, partial).await }
    }

    /// Asks the embedded DynamoDB.
    pub(crate) async fn raw(&self, operation: &str, body: &Value) -> Result<WireAnswer, ConnectorError> {
        let mut request = HttpRequest::new(body_of(body));
        request.headers_mut().insert("x-amz-target", format!("DynamoDB_20120810.{operation}"));
        let response = self.inner.call(request).await?;
        let body = serde_json::from_slice(response.body().bytes().unwrap_or_default()).unwrap_or_default();
        Ok(WireAnswer { status: response.status().as_u16(), body })
    }
}

/// A document as bytes. Displaying it takes several times as long.
fn body_of(document: &Value) -> SdkBody {
    SdkBody::from(serde_json::to_vec(document).unwrap_or_default())
}

fn lost() -> ConnectorError {
    ConnectorError::io("the connection was lost".into())
}
