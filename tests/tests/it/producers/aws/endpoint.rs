//! What stands where Lambda's and S3's endpoints would: it checks that calls are signed, and answers them as AWS does.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings, UriPathNormalizationMode,
    sign,
};
use aws_sigv4::sign::v4;
use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use fanfold::clock::Timestamp;
use fanfold::config::Surroundings;
use fanfold_http_client::Guard;
use fanfold_produce::AllSources;
use fanfold_tests::TestStack;
use serde_json::Value;

const ID: &str = "AKIDEXAMPLE";

const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

/// A call that came.
#[derive(Clone, Debug)]
pub(super) struct Heard {
    pub(super) path: String,
    pub(super) query: BTreeMap<String, String>,
    pub(super) range: Option<String>,
    pub(super) body: Bytes,
}

/// What Lambda answers: a status, the header that says that the function failed, and the payload.
pub(super) type Invoked = (u16, bool, Value);

/// What the endpoint has, and what it heard.
#[derive(Debug, Default)]
pub(super) struct Amazon {
    /// Objects of the bucket `rows`.
    pub(super) objects: Mutex<BTreeMap<String, Vec<u8>>>,
    /// Answers of functions, in order.
    pub(super) answers: Mutex<VecDeque<Invoked>>,
    /// Errors that come before anything else, as S3 writes them.
    pub(super) errors: Mutex<VecDeque<(u16, &'static str)>>,
    pub(super) heard: Mutex<Vec<Heard>>,
    /// When calls are signed.
    at: Mutex<Option<Timestamp>>,
}

/// Decodes a part of a URL.
fn decoded(text: &str) -> String {
    let mut bytes = text.bytes();
    let mut all = Vec::new();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let digits = [bytes.next().unwrap(), bytes.next().unwrap()];
                all.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
            }
            byte => all.push(byte),
        }
    }
    String::from_utf8(all).unwrap()
}

impl Amazon {
    /// Begins to answer, and returns sources that ask it.
    pub(super) async fn serve(self: &Arc<Self>, stack: &TestStack) -> AllSources {
        let amazon = Arc::clone(self);
        let answer = move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| {
            let amazon = Arc::clone(&amazon);
            async move { amazon.answer(&method, &uri, &headers, body) }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
        let lookup = move |name: &str| match name {
            "AWS_REGION" => Some("eu-west-1".to_owned()),
            "AWS_ACCESS_KEY_ID" => Some(ID.to_owned()),
            "AWS_SECRET_ACCESS_KEY" => Some(SECRET.to_owned()),
            "AWS_ENDPOINT_URL" => Some("http://127.0.0.1:1".to_owned()),
            "AWS_ENDPOINT_URL_S3" | "AWS_ENDPOINT_URL_LAMBDA" => Some(url.clone()),
            _ => None,
        };
        let Surroundings { dynamodb, sqs, world, .. } = stack.surroundings().clone();
        AllSources::from_environment(&Surroundings::new(dynamodb, sqs, world, lookup), Guard::allowing([]))
    }

    /// Calls are signed at this time.
    pub(super) fn signed_at(&self, at: Timestamp) {
        *self.at.lock().unwrap() = Some(at);
    }

    fn answer(&self, method: &Method, uri: &Uri, headers: &HeaderMap, body: Bytes) -> Response {
        let service = if method == Method::GET { "s3" } else { "lambda" };
        if !self.is_signed(service, method, uri, headers, &body) {
            return (StatusCode::FORBIDDEN, error("SignatureDoesNotMatch")).into_response();
        }
        let query = uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
        let query: BTreeMap<String, String> = query.map(|(name, value)| (name.to_owned(), decoded(value))).collect();
        let range = headers.get("range").map(|range| range.to_str().unwrap().to_owned());
        let heard = Heard { path: uri.path().to_owned(), query: query.clone(), range: range.clone(), body };
        self.heard.lock().unwrap().push(heard);
        if let Some((status, code)) = self.errors.lock().unwrap().pop_front() {
            return (StatusCode::from_u16(status).unwrap(), error(code)).into_response();
        }
        if service == "lambda" {
            let (status, failed, payload) = self.answers.lock().unwrap().pop_front().unwrap();
            let failed = failed.then_some([("x-amz-function-error", "Unhandled")]);
            return (
                StatusCode::from_u16(status).unwrap(),
                failed.unwrap_or([("x-amz-executed-version", "7")]),
                payload.to_string(),
            )
                .into_response();
        }
        match uri.path().strip_prefix("/rows/").unwrap() {
            "" => self.list(&query).into_response(),
            key => self.object(&decoded(key), range.as_deref(), headers),
        }
    }

    fn object(&self, key: &str, range: Option<&str>, headers: &HeaderMap) -> Response {
        let objects = self.objects.lock().unwrap();
        let Some(bytes) = objects.get(key) else {
            return (StatusCode::NOT_FOUND, error("NoSuchKey")).into_response();
        };
        let etag = format!("\"{}\"", bytes.len());
        if headers.get("if-match").is_some_and(|wanted| *wanted != etag) {
            return (StatusCode::PRECONDITION_FAILED, error("PreconditionFailed")).into_response();
        }
        let encoding = if key.contains("compressed") { "gzip" } else { "" };
        let about = [("etag", etag), ("content-encoding", encoding.to_owned())];
        let Some(range) = range else { return (about, bytes.clone()).into_response() };
        let (first, last) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
        let (first, last): (usize, usize) = (first.parse().unwrap(), last.parse().unwrap());
        if first >= bytes.len() {
            return (StatusCode::RANGE_NOT_SATISFIABLE, error("InvalidRange")).into_response();
        }
        let last = last.min(bytes.len() - 1);
        let given = [("content-range", format!("bytes {first}-{last}/{}", bytes.len()))];
        (StatusCode::PARTIAL_CONTENT, about, given, bytes[first..=last].to_vec()).into_response()
    }

    /// Three names at a time.
    fn list(&self, query: &BTreeMap<String, String>) -> String {
        assert_eq!((query["list-type"].as_str(), query["encoding-type"].as_str()), ("2", "url"));
        let objects = self.objects.lock().unwrap();
        let after = query.get("start-after");
        let mut keys =
            objects.keys().filter(|key| key.starts_with(&query["prefix"]) && after.is_none_or(|after| *key > after));
        let mut contents = String::new();
        for key in keys.by_ref().take(3) {
            let key = key.replace('+', "%2B").replace(' ', "+");
            write!(contents, "<Contents><Key>{key}</Key><Size>1</Size></Contents>").unwrap();
        }
        let more = keys.next().is_some();
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>{more}</IsTruncated>{contents}</ListBucketResult>"
        )
    }

    /// Whether a call is signed, as AWS would find out: from what came, and from the secret.
    fn is_signed(&self, service: &str, method: &Method, uri: &Uri, headers: &HeaderMap, body: &Bytes) -> bool {
        let at = self.at.lock().unwrap().unwrap();
        let identity = Credentials::new(ID, SECRET, None, None, "test").into();
        let mut settings = SigningSettings::default();
        if service == "s3" {
            settings.percent_encoding_mode = PercentEncodingMode::Single;
            settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
            settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
        }
        let params = v4::SigningParams::builder().identity(&identity).region("eu-west-1").name(service);
        let time = UNIX_EPOCH + Duration::from_millis(at.0);
        let params = params.time(time).settings(settings).build().unwrap().into();
        let url = format!("http://{}{uri}", headers["host"].to_str().unwrap());
        let named = ["content-type", "if-match", "range"]
            .into_iter()
            .filter_map(|name| Some((name, headers.get(name)?.to_str().unwrap())));
        let signable = SignableRequest::new(method.as_str(), url, named, SignableBody::Bytes(body)).unwrap();
        let (signature, _) = sign(signable, &params).unwrap().into_parts();
        let mut expected = signature.headers().peekable();
        expected.peek().is_some() && expected.all(|(name, value)| headers.get(name).is_some_and(|it| it == value))
    }
}

fn error(code: &str) -> String {
    format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>it says why</Message></Error>")
}
