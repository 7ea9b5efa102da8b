//! Calls of AWS APIs for which no SDK is built in: one request each, signed by version 4 of AWS's scheme.

mod error;

use std::fmt::Write as _;
use std::time::{Duration, UNIX_EPOCH};

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings, UriPathNormalizationMode,
    sign,
};
use aws_sigv4::sign::v4;
use fanfold::clock::Timestamp;
use fanfold::config::{Surroundings, variables};
use fanfold::policy::domain;
use reqwest::{Method, RequestBuilder, Response};

pub use self::error::{AwsError, Refused};
use crate::HttpClient;

/// A service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Amazon EventBridge.
    EventBridge,
    /// AWS Lambda.
    Lambda,
    /// Amazon S3.
    S3,
    /// AWS Step Functions.
    StepFunctions,
}

impl Service {
    const ALL: [Self; 4] = [Self::EventBridge, Self::Lambda, Self::S3, Self::StepFunctions];

    /// What it signs by, and what its endpoint begins with.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::EventBridge => "events",
            Self::Lambda => "lambda",
            Self::S3 => "s3",
            Self::StepFunctions => "states",
        }
    }

    /// The variable with an endpoint in place of AWS's, as SDKs know it.
    fn variable(self) -> &'static str {
        match self {
            Self::EventBridge => "AWS_ENDPOINT_URL_EVENTBRIDGE",
            Self::Lambda => "AWS_ENDPOINT_URL_LAMBDA",
            Self::S3 => "AWS_ENDPOINT_URL_S3",
            Self::StepFunctions => "AWS_ENDPOINT_URL_SFN",
        }
    }

    /// How it wants to be signed. S3 takes paths as they are sent, and a hash of the body.
    fn settings(self) -> SigningSettings {
        let mut settings = SigningSettings::default();
        if self == Self::S3 {
            settings.percent_encoding_mode = PercentEncodingMode::Single;
            settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
            settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
        }
        settings
    }
}

/// A call.
#[derive(Clone, Debug)]
pub struct AwsCall {
    /// Of which service.
    pub service: Service,
    method: Method,
    bucket: Option<String>,
    path: String,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl AwsCall {
    /// Posts a body of a media type. `path`: percent-encoded.
    #[must_use]
    pub fn post(service: Service, path: impl Into<String>, media_type: &str, body: Vec<u8>) -> Self {
        let headers = vec![("content-type", media_type.to_owned())];
        Self { service, method: Method::POST, bucket: None, path: path.into(), headers, body }
    }

    /// Gets something from a bucket of S3. `path`: percent-encoded, with the query.
    #[must_use]
    pub fn from_bucket(bucket: &str, path: impl Into<String>) -> Self {
        Self {
            service: Service::S3,
            method: Method::GET,
            bucket: Some(bucket.to_owned()),
            path: path.into(),
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    /// With another header.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// AWS as this process reaches it.
#[derive(Clone, Debug)]
pub struct Aws {
    client: HttpClient,
    region: Option<String>,
    credentials: Option<Credentials>,
    endpoints: [(Service, Option<String>); 4],
}

impl Aws {
    /// With region, credentials and endpoints of the environment, where Lambda puts them. What is missing is reported when it is
    /// needed: most stacks call none of these.
    #[must_use]
    pub fn from_environment(surroundings: &Surroundings) -> Self {
        let [id, secret, token] = [variables::ACCESS_KEY_ID, variables::SECRET_ACCESS_KEY, variables::SESSION_TOKEN]
            .map(|name| surroundings.optional(name));
        let everywhere = surroundings.optional(variables::ENDPOINT_URL);
        let endpoint =
            |service: Service| (service, surroundings.optional(service.variable()).or_else(|| everywhere.clone()));
        Self {
            client: HttpClient::default(),
            region: surroundings.optional(variables::REGION),
            credentials: id.zip(secret).map(|(id, secret)| Credentials::new(id, secret, token, None, "environment")),
            endpoints: Service::ALL.map(endpoint),
        }
    }

    /// The answer to a call, if it is a success. Its body is still to be read, within the same time.
    ///
    /// # Errors
    /// There is no answer, or it says that the call failed.
    pub async fn send(&self, call: AwsCall, timeout: Duration, now: Timestamp) -> Result<Response, AwsError> {
        let request = self.request(&call, now).map_err(AwsError::NotMade)?;
        let answer = request.timeout(timeout).body(call.body).send().await.map_err(AwsError::NoAnswer)?;
        if answer.status().is_success() {
            Ok(answer)
        } else {
            Err(Refused::read(call.service, answer, now).await.into())
        }
    }

    /// The signed request, but for its body.
    fn request(&self, call: &AwsCall, now: Timestamp) -> Result<RequestBuilder, String> {
        let missing = |what: &str| format!("the environment has no {what} to call AWS with");
        let region = self.region.as_deref().ok_or_else(|| missing("AWS_REGION"))?;
        let credentials = self.credentials.clone().ok_or_else(|| missing("AWS credentials"))?;
        let url = self.url(call, region);
        let headers: Vec<(&str, &str)> = call.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let problem = |error: &dyn std::error::Error| format!("the call cannot be signed: {error}");
        let identity = credentials.into();
        let params = v4::SigningParams::builder()
            .identity(&identity)
            .region(region)
            .name(call.service.name())
            .time(UNIX_EPOCH + Duration::from_millis(now.0))
            .settings(call.service.settings())
            .build()
            .map_err(|error| problem(&error))?
            .into();
        let body = SignableBody::Bytes(&call.body);
        let signable = SignableRequest::new(call.method.as_str(), &url, headers.iter().copied(), body)
            .map_err(|error| problem(&error))?;
        let (signature, _) = sign(signable, &params).map_err(|error| problem(&error))?.into_parts();
        let mut request = self.client.request(call.method.clone(), &url).map_err(|error| error.to_string())?;
        for (name, value) in headers.into_iter().chain(signature.headers()) {
            request = request.header(name, value);
        }
        Ok(request)
    }

    /// Where a call goes. AWS has a host for each bucket, but no certificate for names with dots; emulators take the bucket from
    /// the path.
    fn url(&self, call: &AwsCall, region: &str) -> String {
        let given = self.endpoints.iter().find(|(service, _)| *service == call.service);
        let given = given.and_then(|(_, endpoint)| endpoint.as_deref()).map(|given| given.trim_end_matches('/'));
        let host = format!("{}.{region}.{}", call.service.name(), domain(region.starts_with("cn-")));
        let path = &call.path;
        match (given, call.bucket.as_deref()) {
            (Some(given), None) => format!("{given}{path}"),
            (Some(given), Some(bucket)) => format!("{given}/{bucket}{path}"),
            (None, None) => format!("https://{host}{path}"),
            (None, Some(bucket)) if bucket.contains('.') => format!("https://{host}/{bucket}{path}"),
            (None, Some(bucket)) => format!("https://{bucket}.{host}{path}"),
        }
    }
}

/// A text as a part of a path or a query, percent-encoded but for the bytes of `also`.
#[must_use]
pub fn percent_encoded(text: &str, also: &[u8]) -> String {
    text.bytes().fold(String::new(), |mut path, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || also.contains(&byte) {
            path.push(char::from(byte));
        } else {
            // Writing to a text does not fail.
            let _ = write!(path, "%{byte:02X}");
        }
        path
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_has_its_own_host_unless_its_name_or_the_endpoint_has_none() {
        let aws = |endpoint: Option<&str>| Aws {
            client: HttpClient::default(),
            region: None,
            credentials: None,
            endpoints: Service::ALL.map(|service| (service, endpoint.map(str::to_owned))),
        };
        let url = |endpoint, bucket, region| aws(endpoint).url(&AwsCall::from_bucket(bucket, "/a%20b"), region);
        assert_eq!(url(None, "rows", "eu-west-1"), "https://rows.s3.eu-west-1.amazonaws.com/a%20b");
        assert_eq!(url(None, "my.rows", "cn-north-1"), "https://s3.cn-north-1.amazonaws.com.cn/my.rows/a%20b");
        assert_eq!(url(Some("http://localhost:1/"), "rows", "eu-west-1"), "http://localhost:1/rows/a%20b");
        let call = AwsCall::post(Service::Lambda, "/x", "application/json", Vec::new());
        assert_eq!(aws(None).url(&call, "eu-west-1"), "https://lambda.eu-west-1.amazonaws.com/x");
        assert_eq!(percent_encoded("a/b c\u{e4}", b"/"), "a/b%20c%C3%A4");
    }
}
