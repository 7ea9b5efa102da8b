//! The HTTP client under the SDK: its requests to both services end here, without a socket.

use std::sync::Arc;

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use bytes::Bytes;

use super::fault::{Fate, Interceptor, Service, ServiceAnswer, ServiceRequest};
use super::{dynamodb, sqs};
use crate::usage::Meter;

const JSON: &str = "application/x-amz-json-1.0";

/// The embedded services as one HTTP endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Connector(pub(crate) Arc<Services>);

/// What is served: by the endpoint, and to steps in the same process.
#[derive(Debug)]
pub(crate) struct Services {
    pub(crate) dynamodb: dynamodb::Tables,
    pub(crate) sqs: sqs::Queues,
    pub(crate) meter: Meter,
    pub(crate) interceptor: Option<Arc<dyn Interceptor>>,
}

/// An answer, and the header by which the SDK keeps SQS errors apart.
pub(crate) struct EngineAnswer {
    pub(crate) reply: ServiceAnswer,
    pub(crate) query_error: Option<String>,
}

impl EngineAnswer {
    pub(crate) fn new(status: u16, body: impl Into<Bytes>) -> Self {
        Self { reply: ServiceAnswer { status, body: body.into() }, query_error: None }
    }
}

impl HttpClient for Connector {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let services = Arc::clone(&self.0);
        HttpConnectorFuture::new(async move {
            // The database answers without ever waiting, so a caller in a loop must give way to others now and then.
            tokio::task::coop::consume_budget().await;
            let (service, operation) = route(&request)?;
            let body = request.body().bytes().unwrap_or_default();
            let answer = match &services.interceptor {
                None => services.answer(service, operation, body).await,
                Some(interceptor) => {
                    let call =
                        ServiceRequest { service, operation: operation.to_owned(), body: Bytes::copy_from_slice(body) };
                    services.answer_with(interceptor.as_ref(), &call).await?
                }
            };
            into_response(answer)
        })
    }
}

impl Services {
    async fn answer(&self, service: Service, operation: &str, body: &[u8]) -> EngineAnswer {
        match service {
            Service::DynamoDb => self.dynamodb.answer(operation, body, &self.meter),
            Service::Sqs => self.sqs.answer(operation, body, &self.meter).await,
        }
    }

    async fn answer_with(
        &self,
        interceptor: &dyn Interceptor,
        call: &ServiceRequest,
    ) -> Result<EngineAnswer, ConnectorError> {
        match interceptor.before(call).await {
            Fate::Pass => {}
            Fate::Lost => return Err(lost()),
            Fate::Answered(reply) => return Ok(EngineAnswer { reply, query_error: None }),
        }
        let answer = self.answer(call.service, &call.operation, &call.body).await;
        match interceptor.after(call, &answer.reply).await {
            Fate::Pass => Ok(answer),
            Fate::Lost => Err(lost()),
            Fate::Answered(reply) => Ok(EngineAnswer { reply, query_error: None }),
        }
    }
}

fn lost() -> ConnectorError {
    ConnectorError::io("the connection was lost".into())
}

fn route(request: &HttpRequest) -> Result<(Service, &str), ConnectorError> {
    let target = request.headers().get("x-amz-target").unwrap_or_default();
    match target.split_once('.') {
        Some(("DynamoDB_20120810", operation)) => Ok((Service::DynamoDb, operation)),
        Some(("AmazonSQS", operation)) => Ok((Service::Sqs, operation)),
        _ => Err(ConnectorError::user(format!("no embedded service answers the target {target:?}").into())),
    }
}

fn into_response(answer: EngineAnswer) -> Result<HttpResponse, ConnectorError> {
    let status = StatusCode::try_from(answer.reply.status).map_err(|error| ConnectorError::user(error.into()))?;
    let mut response = HttpResponse::new(status, SdkBody::from(answer.reply.body));
    response.headers_mut().insert("content-type", JSON);
    if let Some(query_error) = answer.query_error {
        response.headers_mut().insert("x-amzn-query-error", query_error);
    }
    Ok(response)
}
