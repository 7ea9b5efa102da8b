//! Calls of AWS APIs for which no SDK is built in: one request each, signed by version 4 of AWS's scheme.

mod error;
pub mod lambda;
mod service;

use std::fmt::Write as _;
use std::time::{Duration, UNIX_EPOCH};

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use fanfold::clock::Timestamp;
use fanfold::config::{Surroundings, variables};
use fanfold::policy::domain;
use reqwest::{Method, RequestBuilder, Response};

pub use self::error::{AwsError, ERROR_TYPE, PASSING, Refused, THROTTLED, error_code};
pub use self::service::Service;
use crate::HttpClient;

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

/// A request to be signed.
#[derive(Clone, Copy, Debug)]
pub struct Unsigned<'a> {
    /// Its method.
    pub method: &'a str,
    /// Its URL, with the query.
    pub url: &'a str,
    /// Its headers.
    pub headers: &'a [(&'a str, &'a str)],
    /// Its body.
    pub body: &'a [u8],
}

fn missing(what: &str) -> String {
    format!("the environment has no {what} to call AWS with")
}

/// The region in the host of a URL: `SERVICE.REGION.amazonaws.com`.
fn region_of(url: &str) -> Option<&str> {
    let host = url.split_once("://")?.1.split(['/', '?', ':']).next()?;
    let inner = host.strip_suffix(".amazonaws.com").or_else(|| host.strip_suffix(".amazonaws.com.cn"))?;
    inner.split_once('.').map(|(_, region)| region).filter(|region| !region.contains('.'))
}

/// AWS as this process reaches it.
#[derive(Clone, Debug)]
pub struct Aws {
    client: HttpClient,
    region: Option<String>,
    credentials: Option<Credentials>,
    endpoints: [(Service, Option<String>); Service::ALL.len()],
}

impl Aws {
    /// With region, credentials and endpoints of the environment, where Lambda puts them. What is missing is reported when it is
    /// needed: most stacks call none of these.
    #[must_use]
    pub fn from_environment(surroundings: &Surroundings) -> Self {
        Self::new(|name| surroundings.optional(name))
    }

    /// The same with variables that `variables` looks up.
    pub fn new(variables: impl Fn(&'static str) -> Option<String>) -> Self {
        let [id, secret, token] =
            [variables::ACCESS_KEY_ID, variables::SECRET_ACCESS_KEY, variables::SESSION_TOKEN].map(&variables);
        let everywhere = variables(variables::ENDPOINT_URL);
        let endpoint = |service: Service| (service, variables(service.variable()).or_else(|| everywhere.clone()));
        Self {
            client: HttpClient::default(),
            region: variables(variables::REGION),
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
        let region = self.region()?;
        let url = self.url(call, region);
        let headers: Vec<(&str, &str)> = call.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let unsigned = Unsigned { method: call.method.as_str(), url: &url, headers: &headers, body: &call.body };
        let signature = self.signature((call.service.name(), region), call.service.settings(), &unsigned, now)?;
        let mut request = self.client.request(call.method.clone(), &url).map_err(|error| error.to_string())?;
        for (name, value) in headers {
            request = request.header(name, value);
        }
        for (name, value) in signature {
            request = request.header(name, value);
        }
        Ok(request)
    }

    fn region(&self) -> Result<&str, String> {
        self.region.as_deref().ok_or_else(|| missing("AWS_REGION"))
    }

    /// The headers that sign a request to any service, by its name in signatures. The region is that of the host, if it is AWS's.
    ///
    /// # Errors
    /// The environment has no region or credentials, or the request cannot be signed.
    pub fn sign(
        &self,
        service: &str,
        unsigned: &Unsigned<'_>,
        now: Timestamp,
    ) -> Result<Vec<(String, String)>, String> {
        let region = region_of(unsigned.url).map_or_else(|| self.region(), Ok)?;
        self.signature((service, region), SigningSettings::default(), unsigned, now)
    }

    fn signature(
        &self,
        (service, region): (&str, &str),
        settings: SigningSettings,
        unsigned: &Unsigned<'_>,
        now: Timestamp,
    ) -> Result<Vec<(String, String)>, String> {
        let credentials = self.credentials.clone().ok_or_else(|| missing("AWS credentials"))?;
        let problem = |error: &dyn std::error::Error| format!("the call cannot be signed: {error}");
        let identity = credentials.into();
        let params = v4::SigningParams::builder()
            .identity(&identity)
            .region(region)
            .name(service)
            .time(UNIX_EPOCH + Duration::from_millis(now.0))
            .settings(settings)
            .build()
            .map_err(|error| problem(&error))?
            .into();
        let Unsigned { method, url, headers, body } = *unsigned;
        let signable = SignableRequest::new(method, url, headers.iter().copied(), SignableBody::Bytes(body))
            .map_err(|error| problem(&error))?;
        let (signature, _) = sign(signable, &params).map_err(|error| problem(&error))?.into_parts();
        Ok(signature.headers().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// The endpoint in place of AWS's, if the environment has one for a service.
    fn endpoint(&self, service: Service) -> Option<&str> {
        let given = self.endpoints.iter().find(|(known, _)| *known == service);
        given.and_then(|(_, endpoint)| endpoint.as_deref()).map(|given| given.trim_end_matches('/'))
    }

    /// Where a call goes. AWS has a host for each bucket, but no certificate for names with dots; emulators take the bucket from
    /// the path.
    fn url(&self, call: &AwsCall, region: &str) -> String {
        let given = self.endpoint(call.service);
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
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_region_of_a_signature_is_that_of_the_host() {
        assert_eq!(region_of("https://sqs.eu-west-1.amazonaws.com/"), Some("eu-west-1"));
        assert_eq!(region_of("https://email.us-east-1.amazonaws.com/v2/email?x"), Some("us-east-1"));
        assert_eq!(region_of("https://events.cn-north-1.amazonaws.com.cn"), Some("cn-north-1"));
        for url in ["http://localhost:4566/", "https://example.com/", "https://s3.amazonaws.com/", "x"] {
            assert_eq!(region_of(url), None, "{url}");
        }
        let aws = Aws::new(|name| (name != variables::REGION).then(|| "x".to_owned()));
        let unsigned = |url| Unsigned { method: "POST", url, headers: &[("x-amz-target", "A.B")], body: b"{}" };
        let signed = aws.sign("sqs", &unsigned("https://sqs.eu-west-1.amazonaws.com/"), Timestamp(0)).unwrap();
        let authorization = &signed.iter().find(|(name, _)| name == "authorization").unwrap().1;
        assert!(authorization.contains("/eu-west-1/sqs/aws4_request") && authorization.contains("x-amz-target"));
        let error = aws.sign("sqs", &unsigned("http://localhost:1/"), Timestamp(0)).unwrap_err();
        assert!(error.contains("AWS_REGION"), "{error}");
    }

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
