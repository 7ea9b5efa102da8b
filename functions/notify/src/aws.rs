//! Calls of AWS APIs for which no SDK is built in: one JSON request each, signed by version 4 of AWS's scheme.

use std::time::{Duration, UNIX_EPOCH};

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use fanfold::clock::Timestamp;
use fanfold::config::{Surroundings, variables};
use fanfold::limits::{ERROR_BYTES_MAX, NOTICE_TIMEOUT};
use fanfold::policy::domain;
use fanfold::text::shorten;
use fanfold_http_client::HttpClient;
use serde_json::Value;

use crate::DeliveryError;
use crate::webhooks::failure;

/// A service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    EventBridge,
    Lambda,
    StepFunctions,
}

impl Service {
    /// What it signs by, and what its endpoint begins with.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::EventBridge => "events",
            Self::Lambda => "lambda",
            Self::StepFunctions => "states",
        }
    }

    /// The variable with an endpoint in place of AWS's, as SDKs know it.
    fn variable(self) -> &'static str {
        match self {
            Self::EventBridge => "AWS_ENDPOINT_URL_EVENTBRIDGE",
            Self::Lambda => "AWS_ENDPOINT_URL_LAMBDA",
            Self::StepFunctions => "AWS_ENDPOINT_URL_SFN",
        }
    }
}

/// A call.
#[derive(Debug)]
pub(crate) struct AwsCall {
    pub(crate) service: Service,
    /// The path, percent-encoded.
    pub(crate) path: String,
    /// What `x-amz-target` says, of a service that goes by it.
    pub(crate) target: Option<&'static str>,
    pub(crate) media_type: &'static str,
    pub(crate) body: Vec<u8>,
}

/// AWS as this function reaches it.
#[derive(Clone, Debug)]
pub(crate) struct Aws {
    client: HttpClient,
    region: Option<String>,
    credentials: Option<Credentials>,
    endpoints: [(Service, Option<String>); 3],
}

impl Aws {
    /// With region, credentials and endpoints of the environment, where Lambda puts them. What is missing is reported when it is
    /// needed: most stacks call none of these.
    pub(crate) fn from_environment(surroundings: &Surroundings) -> Self {
        let [id, secret, token] = [variables::ACCESS_KEY_ID, variables::SECRET_ACCESS_KEY, variables::SESSION_TOKEN]
            .map(|name| surroundings.optional(name));
        let everywhere = surroundings.optional(variables::ENDPOINT_URL);
        let endpoint =
            |service: Service| (service, surroundings.optional(service.variable()).or_else(|| everywhere.clone()));
        Self {
            client: HttpClient::default(),
            region: surroundings.optional(variables::REGION),
            credentials: id.zip(secret).map(|(id, secret)| Credentials::new(id, secret, token, None, "environment")),
            endpoints: [Service::EventBridge, Service::Lambda, Service::StepFunctions].map(endpoint),
        }
    }

    /// The answer to a call.
    ///
    /// # Errors
    /// There is none, or it says that the call failed.
    pub(crate) async fn call(&self, call: AwsCall, now: Timestamp) -> Result<Vec<u8>, DeliveryError> {
        let request = self.request(&call, now).map_err(DeliveryError::Silent)?;
        let silent = |error: reqwest::Error| DeliveryError::Silent(failure(&error));
        let answer = request.timeout(NOTICE_TIMEOUT).body(call.body).send().await.map_err(silent)?;
        let status = answer.status();
        let named = answer.headers().get("x-amzn-errortype").and_then(|value| value.to_str().ok()).map(str::to_owned);
        let body = answer.bytes().await.map_err(silent)?;
        if status.is_success() {
            return Ok(body.to_vec());
        }
        let document: Value = serde_json::from_slice(&body).unwrap_or_default();
        let code = named.or_else(|| document["__type"].as_str().map(str::to_owned)).unwrap_or_default();
        let message = document["message"].as_str().or(document["Message"].as_str()).unwrap_or_default();
        Err(DeliveryError::Aws {
            service: call.service.name(),
            status,
            code: code_of(&code).to_owned(),
            message: shorten(message, ERROR_BYTES_MAX).into(),
        })
    }

    /// The signed request, but for its body.
    fn request(&self, call: &AwsCall, now: Timestamp) -> Result<reqwest::RequestBuilder, String> {
        let missing = |what: &str| format!("the environment has no {what} to call AWS with");
        let region = self.region.as_deref().ok_or_else(|| missing("AWS_REGION"))?;
        let credentials = self.credentials.clone().ok_or_else(|| missing("AWS credentials"))?;
        let given = self.endpoints.iter().find(|(service, _)| *service == call.service);
        let endpoint = given.and_then(|(_, endpoint)| endpoint.clone()).unwrap_or_else(|| {
            format!("https://{}.{region}.{}", call.service.name(), domain(region.starts_with("cn-")))
        });
        let url = format!("{}{}", endpoint.trim_end_matches('/'), call.path);
        let mut headers = vec![("content-type", call.media_type)];
        headers.extend(call.target.map(|target| ("x-amz-target", target)));
        let problem = |error: &dyn std::error::Error| format!("the call cannot be signed: {error}");
        let identity = credentials.into();
        let params = v4::SigningParams::builder()
            .identity(&identity)
            .region(region)
            .name(call.service.name())
            .time(UNIX_EPOCH + Duration::from_millis(now.0))
            .settings(SigningSettings::default())
            .build()
            .map_err(|error| problem(&error))?
            .into();
        let body = SignableBody::Bytes(&call.body);
        let signable =
            SignableRequest::new("POST", &url, headers.iter().copied(), body).map_err(|error| problem(&error))?;
        let (signature, _) = sign(signable, &params).map_err(|error| problem(&error))?.into_parts();
        let mut request = self.client.post(&url).map_err(|error| error.to_string())?;
        for (name, value) in headers.into_iter().chain(signature.headers()) {
            request = request.header(name, value);
        }
        Ok(request)
    }
}

/// The code of an error, which may stand between a namespace and a URL.
fn code_of(text: &str) -> &str {
    let text = text.split(':').next().unwrap_or_default();
    text.rsplit('#').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_code_is_read_without_its_namespace() {
        for text in
            ["TaskTimedOut", "com.amazonaws.swf.service.v2.model#TaskTimedOut", "TaskTimedOut:http://x.example/"]
        {
            assert_eq!(code_of(text), "TaskTimedOut");
        }
    }
}
