//! What stands where AWS's endpoints would: it keeps and checks the calls that come.

use super::*;

const ID: &str = "AKIDEXAMPLE";

const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

const SESSION: &str = "a session";

/// A call that came.
#[derive(Clone, Debug)]
pub(super) struct Heard {
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Heard {
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Whether it was signed for a service in the minute before.
    pub(super) fn is_signed_for(&self, service: &str, before: Timestamp) -> bool {
        (0..60).any(|seconds| self.is_signed_at(service, Timestamp(before.0 - 1_000 * seconds)))
    }

    /// Whether it is signed, as AWS would find out: from what came, and from the secret.
    pub(super) fn is_signed_at(&self, service: &str, at: Timestamp) -> bool {
        let identity = Credentials::new(ID, SECRET, Some(SESSION.to_owned()), None, "test").into();
        let params = v4::SigningParams::builder().identity(&identity).region("eu-west-1").name(service);
        let time = UNIX_EPOCH + Duration::from_millis(at.0);
        let params = params.time(time).settings(SigningSettings::default()).build().unwrap().into();
        let url = format!("http://{}{}", self.header("host"), self.path);
        let named = ["content-type", "x-amz-target"].into_iter().filter(|name| self.headers.contains_key(*name));
        let headers = named.map(|name| (name, self.header(name)));
        let signable = SignableRequest::new("POST", url, headers, SignableBody::Bytes(&self.body)).unwrap();
        let (signature, _) = sign(signable, &params).unwrap().into_parts();
        let expected: BTreeMap<_, _> = signature.headers().collect();
        expected.iter().all(|(name, value)| self.header(name) == *value) && expected.contains_key("authorization")
    }
}

type Answers = Arc<Mutex<VecDeque<(u16, Value)>>>;

/// What stands where AWS's endpoints would, and the step beside the stack's own that calls it.
pub(super) struct Aws {
    pub(super) stack: TestStack,
    pub(super) notify: Notify,
    pub(super) heard: Arc<Mutex<Vec<Heard>>>,
    pub(super) answers: Answers,
}

impl Aws {
    /// The endpoint gives these answers, then successes.
    pub(super) async fn over(
        stack: TestStack,
        heard: Arc<Mutex<Vec<Heard>>>,
        answers: impl IntoIterator<Item = (u16, Value)>,
    ) -> Self {
        let answers: Answers = Arc::new(Mutex::new(answers.into_iter().collect()));
        let (hear, answer) = (Arc::clone(&heard), Arc::clone(&answers));
        let endpoint = Router::new().fallback(async move |uri: Uri, headers: HeaderMap, body: Bytes| {
            hear.lock().unwrap().push(Heard { path: uri.path().to_owned(), headers, body });
            let (status, body) = answer.lock().unwrap().pop_front().unwrap_or((200, json!({})));
            (StatusCode::from_u16(status).unwrap(), body.to_string())
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, endpoint).await });
        let ours = stack.surroundings().clone();
        let lookup = move |name: &str| match name {
            "AWS_REGION" => Some("eu-west-1".to_owned()),
            "AWS_ACCESS_KEY_ID" => Some(ID.to_owned()),
            "AWS_SECRET_ACCESS_KEY" => Some(SECRET.to_owned()),
            "AWS_SESSION_TOKEN" => Some(SESSION.to_owned()),
            "AWS_ENDPOINT_URL_SFN" | "AWS_ENDPOINT_URL" => Some(url.clone()),
            _ => ours.optional(name.to_owned().leak()),
        };
        let Surroundings { dynamodb, sqs, world, .. } = stack.surroundings().clone();
        let surroundings = Surroundings::new(dynamodb, sqs, world, lookup);
        let webhooks = Arc::<fanfold_tests::ScriptedWebhooks>::clone(&stack.webhooks);
        let notify = Notify::from_environment(&surroundings, webhooks).unwrap();
        Self { stack, notify, heard, answers }
    }

    pub(super) async fn answering(answers: impl IntoIterator<Item = (u16, Value)>) -> Self {
        Self::over(stack().await, Arc::default(), answers).await
    }

    /// Opens a fan-out of three items with a notice of its end to there.
    pub(super) async fn open(&self, destination: Value) -> (Uuid, Vec<ItemId>) {
        self.open_on(destination, json!({})).await
    }

    /// The same with these notices.
    pub(super) async fn open_on(&self, destination: Value, on: Value) -> (Uuid, Vec<ItemId>) {
        self.open_as(destination, on, OpenRequest::default()).await
    }

    /// The same with other fields.
    async fn open_as(&self, destination: Value, on: Value, other: OpenRequest) -> (Uuid, Vec<ItemId>) {
        let (notify, on): (Destination, NotifyOn) =
            (serde_json::from_value(destination).unwrap(), serde_json::from_value(on).unwrap());
        notify.check("notify").unwrap();
        on.check(Some(&notify)).unwrap();
        let (notify, notify_on) = (Some(notify), Some(on));
        let request = OpenRequest { items: 3, seal: true, notify, notify_on, ..other };
        let opened = self.stack.tracking.open(request, None).await.unwrap();
        (opened.fanout.id, expand(opened.fanout.id, &opened.groups).collect())
    }

    /// One that completes, of whose items one failed.
    pub(super) async fn complete(&self, destination: Value) -> Uuid {
        let (fanout, ids) = self.open(destination).await;
        let request = AckRequest { failed: done(&ids[..1]).items, ..done(&ids[1..]) };
        self.stack.ack.apply(&request).await.unwrap();
        fanout
    }

    /// One that is cancelled, of whose items one succeeded.
    pub(super) async fn cancel(&self, destination: Value) -> Uuid {
        let (fanout, ids) = self.open(destination).await;
        self.stack.ack.apply(&done(&ids[..1])).await.unwrap();
        self.stack.tracking.cancel(fanout).await.unwrap();
        fanout
    }

    /// One of whose items one failed, which is more than it tolerates.
    pub(super) async fn fail(&self, destination: Value) -> Uuid {
        let other = OpenRequest { tolerated_failures: Some(Tolerance::Count(0)), ..OpenRequest::default() };
        let (fanout, ids) = self.open_as(destination, json!({}), other).await;
        let request = AckRequest { failed: done(&ids[..1]).items, ..AckRequest::default() };
        self.stack.ack.apply(&request).await.unwrap();
        fanout
    }

    /// One that expires, of whose items one succeeded.
    pub(super) async fn expire(&self, destination: Value) -> Uuid {
        let limit = IdleLimit { open: None, sealed: Some(Span::from_secs(60)) };
        let other = OpenRequest { idle_limit: Some(limit), ..OpenRequest::default() };
        let (fanout, ids) = self.open_as(destination, json!({}), other).await;
        self.stack.ack.apply(&done(&ids[..1])).await.unwrap();
        self.stack.clock.skip(5 * MINUTE);
        assert!(self.stack.tracking.expire(self.stack.header(fanout).await).await.unwrap());
        fanout
    }

    /// Makes the next try, whenever it is due.
    pub(super) async fn next_try(&self, fanout: Uuid) -> Fanout {
        self.deliver(fanout, self.stack.header(fanout).await.notice.due).await;
        self.stack.header(fanout).await
    }

    pub(super) async fn deliver(&self, fanout: Uuid, due: Option<Timestamp>) {
        self.stack.clock.skip(5 * MINUTE);
        self.notify.deliver(vec![message("m", &NotifyMessage::due(About::Fanout(fanout), due))]).await;
    }

    pub(super) fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }
}
