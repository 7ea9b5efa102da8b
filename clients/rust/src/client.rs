//! The client of the HTTP API.

use std::time::Duration;

use aws_sigv4::sign::v4;
use aws_types::SdkConfig;
use futures::{Stream, stream};
use http::Method;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;
use uuid::Uuid;

use crate::compact::Entry;
use crate::error::ClientError;
use crate::http::{Http, Signer};
use crate::models::{AckAnswer, AddedItems, Count, CountAnswer, Fanout, Mode};

/// Items that one request may add; for more, `add` sends several requests.
const ITEMS_PER_ADD_MAX: u64 = 709_632;

/// The most bytes of an idempotency key.
const KEY_BYTES_MAX: usize = 255;

/// How long one request waits for an end; API Gateway ends a request after 30 s.
const WAIT_MAX: Duration = Duration::from_secs(20);

/// How a fan-out is opened; see [`Fanfold::open`].
#[derive(Clone, Debug, Default, Serialize)]
pub struct OpenFanout {
    /// Items, at most 709,632; `add` adds more.
    pub items: u64,
    /// Whether to seal it at once: no more items can be added.
    pub seal: bool,
    /// How it is tracked; by default exactly. An estimated one has counters instead of items: `total` begins at `items`, and
    /// [`Fanfold::count`] counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// A name of your own, which notices and responses to acks carry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_key: Option<String>,
    /// Where Fanfold reports its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notify: Option<Value>,
    /// Which ends, and which percentages of its items as progress, Fanfold reports: `{"ends": ["succeeded", "failed"], "progress": ["50%"]}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notify_on: Option<Value>,
    /// It fails when more items fail than this number, or percentage (`"5%"`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerated_failures: Option<Value>,
    /// It expires after this time without activity: `{"open": "7d", "sealed": "14d"}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_limit: Option<Value>,
    /// An item of another fan-out. The end of this fan-out acks it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// A task, `{"kind": …, "content": {…}}`, that Fanfold registers when the fan-out has ended. With `"results": true` its content
    /// also has what became of each item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub then: Option<Value>,
    /// At most 100 tasks, `{"kind": …, "content": …}` each. They are the items, so `items` stays 0, and the fan-out is sealed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<Vec<Value>>,
    /// Pass one to repeat this call after a restart. Without it, each call opens another fan-out.
    #[serde(skip)]
    pub idempotency_key: Option<String>,
}

/// Opens fan-outs, adds items, seals fan-outs, waits for their ends. Clones share their connections.
#[derive(Clone, Debug)]
pub struct Fanfold {
    pub(crate) http: Http,
}

impl Fanfold {
    /// A client of the API at `url`: output `Url` of the stack, or what `fanfold up` prints. It does not sign requests: see
    /// [`Self::signed`].
    ///
    /// # Errors
    /// The URL cannot be used.
    pub fn new(url: &str) -> Result<Self, ClientError> {
        Ok(Self { http: Http::new(url)? })
    }

    /// Signs requests for AWS_IAM, as the deployed API requires, with the credentials and for the region of this configuration.
    ///
    /// # Errors
    /// The configuration has no credentials or no region.
    pub fn signed(mut self, config: &SdkConfig) -> Result<Self, ClientError> {
        self.http.signer = Some(Signer::new(config)?);
        Ok(self)
    }

    /// Sets how often a request is sent, retries included, before its error is returned; by default 5.
    #[must_use]
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.http.attempts = attempts.max(1);
        self
    }

    /// Sends a request for which there is no method here, and returns the document of the response. `path` begins with `/` and
    /// may have a query. It is sent again as other requests are: set [`Self::attempts`] to 1 for one that must not be repeated.
    ///
    /// # Errors
    /// The API refuses it, or cannot be reached.
    pub async fn request(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, ClientError> {
        self.http.call(method, path, body, None).await
    }

    /// Opens a fan-out. The result's `items()` are its items.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn open(&self, fanout: &OpenFanout) -> Result<Fanout, ClientError> {
        let key = fanout.idempotency_key.clone().unwrap_or_else(new_key);
        self.http.call(Method::POST, "/fanouts", Some(&json!(fanout)), Some(&key)).await
    }

    /// Opens up to 1,000 fan-outs in one request; their own keys are of no account. All are checked before the first is opened. Repeat
    /// a call that failed under the same key: it opens the rest. Without a key, each call opens others.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn open_several(&self, fanouts: &[OpenFanout], key: Option<&str>) -> Result<Vec<Fanout>, ClientError> {
        #[derive(serde::Deserialize)]
        struct Opened {
            fanouts: Vec<Fanout>,
        }
        let key = key.map_or_else(new_key, str::to_owned);
        let body = json!({"fanouts": fanouts});
        let opened: Opened = self.http.call(Method::POST, "/fanouts/open", Some(&body), Some(&key)).await?;
        Ok(opened.fanouts)
    }

    /// Adds items to an open fan-out. Sends several requests for more than 709,632. If one of them fails, the items of those before it are
    /// added, and the same call with the same key adds the rest. Without a key, each call adds further items.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn add(&self, fanout: Uuid, items: u64, key: Option<&str>) -> Result<AddedItems, ClientError> {
        let key = key.map_or_else(new_key, str::to_owned);
        let path = format!("/fanouts/{fanout}/items");
        let mut added = AddedItems { fanout, groups: Vec::new() };
        for part in 0..items.div_ceil(ITEMS_PER_ADD_MAX).max(1) {
            let body = json!({"items": (items - part * ITEMS_PER_ADD_MAX).min(ITEMS_PER_ADD_MAX)});
            let key = if part == 0 { key.clone() } else { part_key(&key, part) };
            let answer: AddedItems = self.http.call(Method::POST, &path, Some(&body), Some(&key)).await?;
            added.groups.extend(answer.groups);
        }
        Ok(added)
    }

    /// Seals a fan-out: no more items can be added. If all items are acked already, this completes it: check `complete`.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn seal(&self, fanout: Uuid) -> Result<Fanout, ClientError> {
        self.http.call(Method::POST, &format!("/fanouts/{fanout}/seal"), None, None).await
    }

    /// Cancels a fan-out.
    ///
    /// # Errors
    /// It has completed, failed or expired (409); see [`ClientError`].
    pub async fn cancel(&self, fanout: Uuid) -> Result<Fanout, ClientError> {
        self.http.call(Method::DELETE, &format!("/fanouts/{fanout}"), None, None).await
    }

    /// Reissues the failed items of a fan-out that has ended, as the API's description of `POST /fanouts/{id}/reissue` says. Returns
    /// the new fan-out.
    ///
    /// # Errors
    /// It has not ended, has no failed items, or was reissued before (409); see [`ClientError`].
    pub async fn reissue(&self, fanout: Uuid, request: &Value, key: Option<&str>) -> Result<Fanout, ClientError> {
        let key = key.map_or_else(new_key, str::to_owned);
        self.http.call(Method::POST, &format!("/fanouts/{fanout}/reissue"), Some(request), Some(&key)).await
    }

    /// Wakes what the outstanding items of a fan-out wait for, page by page. Returns what that is, by numbers of items.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn wake(&self, fanout: Uuid) -> Result<Value, ClientError> {
        let (mut all, mut path) = (serde_json::Map::new(), Some(format!("/fanouts/{fanout}/reissue")));
        while let Some(at) = path {
            let body = json!({"items": "outstanding"});
            let page: Value = self.http.call(Method::POST, &at, Some(&body), None).await?;
            for (name, count) in page["woken"].as_object().into_iter().flatten() {
                let before = all.get(name).and_then(Value::as_u64).unwrap_or_default();
                all.insert(name.clone(), json!(before + count.as_u64().unwrap_or_default()));
            }
            path = page["next"].as_str().map(str::to_owned);
        }
        Ok(Value::Object(all))
    }

    /// Resumes the failed partitions of a fan-out's producer where they stopped. Returns all of its partitions, as the API shows them.
    ///
    /// # Errors
    /// It has no producer, or is not open (409); see [`ClientError`].
    pub async fn resume_producer(&self, fanout: Uuid) -> Result<Vec<Value>, ClientError> {
        #[derive(serde::Deserialize)]
        struct Producer {
            partitions: Vec<Value>,
        }
        let path = format!("/fanouts/{fanout}/producer/resume");
        let producer: Producer = self.http.call(Method::POST, &path, None, None).await?;
        Ok(producer.partitions)
    }

    /// Returns a fan-out's present state.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn get(&self, fanout: Uuid) -> Result<Fanout, ClientError> {
        self.http.call(Method::GET, &format!("/fanouts/{fanout}"), None, None).await
    }

    /// Returns a fan-out's present state, and also counts in open groups, which costs a read of each.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn get_exact(&self, fanout: Uuid) -> Result<Fanout, ClientError> {
        self.http.call(Method::GET, &format!("/fanouts/{fanout}?progress=exact"), None, None).await
    }

    /// Waits until a fan-out has ended; its state is the end.
    ///
    /// # Errors
    /// [`ClientError::NotEnded`] when the time is up; see [`ClientError`].
    pub async fn wait(&self, fanout: Uuid, timeout: Duration) -> Result<Fanout, ClientError> {
        let deadline = Instant::now().checked_add(timeout);
        let mut pause = Duration::from_millis(250);
        loop {
            let began = Instant::now();
            let left = deadline.map_or(WAIT_MAX, |deadline| deadline.saturating_duration_since(began));
            let ask = left.min(WAIT_MAX).as_secs();
            let wait = if ask == 0 { String::new() } else { format!("?wait={ask}s") };
            let answer: Fanout = self.http.call(Method::GET, &format!("/fanouts/{fanout}{wait}"), None, None).await?;
            if answer.has_ended() {
                return Ok(answer);
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(ClientError::NotEnded(Box::new(answer)));
            }
            // If the server answers at once, pause before the next request.
            if ask == 0 || began.elapsed() < Duration::from_secs(ask) / 2 {
                let rest = deadline.map_or(pause, |deadline| deadline.saturating_duration_since(Instant::now()));
                tokio::time::sleep(pause.min(rest)).await;
                pause = (pause * 2).min(Duration::from_secs(5));
            }
        }
    }

    /// Acks items in one request. `refused` of the result lists items that do not exist. For many items use
    /// [`AckBuffer`](crate::AckBuffer).
    ///
    /// # Errors
    /// None of the items exists (422, `invalid_acks`); see [`ClientError`].
    pub async fn ack(&self, items: &[Entry], failed: &[Entry]) -> Result<AckAnswer, ClientError> {
        self.http.call(Method::POST, "/acks", Some(&json!({"items": items, "failed": failed})), None).await
    }

    /// Counts in estimated fan-outs, at most 1,000 entries. Not retried, since a retry could count twice: after an error other than a
    /// refusal (4xx) the count may have been applied. `refused` of the result lists fan-outs in which nothing was counted.
    ///
    /// # Errors
    /// All counts were refused (422, `invalid_counts`); see [`ClientError`].
    pub async fn count(&self, counts: &[Count]) -> Result<CountAnswer, ClientError> {
        self.http.call_once(Method::POST, "/counts", &json!({"counts": counts})).await
    }

    pub(crate) fn pages<T: Page>(&self, first: String) -> impl Stream<Item = Result<T, ClientError>> {
        stream::try_unfold(Some(first), async move |path| {
            let Some(path) = path else { return Ok(None) };
            let page: T = self.http.call(Method::GET, &path, None, None).await?;
            let next = page.next().filter(|next| *next != path);
            Ok(Some((page, next)))
        })
    }
}

/// A page of a list.
pub(crate) trait Page: serde::de::DeserializeOwned {
    /// The path of the next page.
    fn next(&self) -> Option<String>;
}

#[allow(clippy::disallowed_methods, reason = "outside the server, nothing is simulated")]
fn new_key() -> String {
    Uuid::new_v4().to_string()
}

/// The key of a further request of `add`. A call is repeated under the same keys, by any of the clients.
fn part_key(key: &str, number: u64) -> String {
    let part = format!("{key}-{number}");
    if part.len() <= KEY_BYTES_MAX {
        return part;
    }
    // The signer's hash, HMAC-SHA256 in hex: it needs no further dependency.
    format!("part-{}", v4::calculate_signature(key, number.to_string().as_bytes()))
}
