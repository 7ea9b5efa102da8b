//! HTTPS to AWS, over hyper's client and HTTP/1.1, the only version that DynamoDB and SQS speak. The SDK's own client would add
//! HTTP/2 and proxies: a twelfth of a function's size, unused.

use std::error::Error;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::connection::{CaptureSmithyConnection, ConnectionMetadata};
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::retry::ErrorKind;
use axum::http::Request;
use fanfold::text;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{CaptureConnection, HttpConnector as TcpConnector, capture_connection};
use hyper_util::rt::{TokioExecutor, TokioTimer};

/// One pool of connections for the clients of all services. TLS is set up with the first request, so that a function need not
/// read hundreds of certificates at its start.
#[derive(Clone, Debug, Default)]
pub(crate) struct Https(Arc<OnceLock<Result<Pool, String>>>);

type Pool = Client<HttpsConnector<TcpConnector>, SdkBody>;

/// Sends requests within the times that the SDK allows.
#[derive(Debug)]
struct Connector {
    https: Https,
    /// From a request to the head of its answer.
    read_timeout: Option<Duration>,
    /// To have a TCP connection.
    connect_timeout: Option<Duration>,
}

impl HttpClient for Https {
    fn http_connector(&self, settings: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(Connector {
            https: self.clone(),
            read_timeout: settings.read_timeout(),
            connect_timeout: settings.connect_timeout(),
        })
    }
}

impl Https {
    /// The clients of all services have the same settings, so the first one's count.
    fn pool(&self, connect_timeout: Option<Duration>) -> Result<&Pool, String> {
        let made = self.0.get_or_init(|| {
            let mut tcp = TcpConnector::new();
            tcp.enforce_http(false);
            tcp.set_nodelay(true);
            tcp.set_connect_timeout(connect_timeout);
            let https = HttpsConnectorBuilder::new()
                .with_provider_and_native_roots(rustls::crypto::ring::default_provider())
                .map_err(|error| format!("the certificates of this system cannot be read: {error}"))?
                .https_or_http()
                .enable_http1()
                .wrap_connector(tcp);
            Ok(Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(https))
        });
        made.as_ref().map_err(Clone::clone)
    }
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let (https, read, connect) = (self.https.clone(), self.read_timeout, self.connect_timeout);
        HttpConnectorFuture::new(async move {
            let pool = https.pool(connect).map_err(|problem| ConnectorError::other(problem.into(), None))?;
            let mut request = request.try_into_http1x().map_err(|error| ConnectorError::user(error.into()))?;
            let connection = capture_connection(&mut request);
            offer(&request, connection);
            let answer = match read {
                Some(read) => tokio::time::timeout(read, pool.request(request))
                    .await
                    .map_err(|elapsed| ConnectorError::timeout(elapsed.into()))?,
                None => pool.request(request).await,
            };
            let answer = answer.map_err(|error| connector_error(error.into()))?;
            HttpResponse::try_from(answer.map(SdkBody::from_body_1_x))
                .map_err(|error| ConnectorError::other(error.into(), None))
        })
    }
}

/// Lets the SDK close the connection: it does so after answers that report a fault behind it.
fn offer(request: &Request<SdkBody>, connection: CaptureConnection) {
    let Some(wanted) = request.extensions().get::<CaptureSmithyConnection>() else { return };
    wanted.set_connection_retriever(move || {
        connection.connection_metadata().as_ref()?;
        let connection = connection.clone();
        let poison = move || connection.connection_metadata().iter().for_each(|made| made.poison());
        Some(ConnectionMetadata::builder().proxied(false).poison_fn(poison).build())
    });
}

/// Converts an error for the SDK, which decides by it whether to try again.
fn connector_error(error: BoxError) -> ConnectorError {
    if let Some(hyper) = cause::<hyper::Error>(&*error) {
        if hyper.is_user() {
            return ConnectorError::user(error);
        }
        if hyper.is_incomplete_message() {
            return ConnectorError::other(error, Some(ErrorKind::TransientError));
        }
        if hyper.is_closed() || hyper.is_canceled() {
            return ConnectorError::io(error);
        }
    }
    let no_connection = cause::<hyper_util::client::legacy::Error>(&*error).is_some_and(|error| error.is_connect());
    match cause::<std::io::Error>(&*error) {
        Some(io) if io.kind() == std::io::ErrorKind::TimedOut => ConnectorError::timeout(error),
        io if no_connection || io.is_some() => ConnectorError::io(error),
        _ => ConnectorError::other(error, None),
    }
}

/// The outermost cause of a type.
fn cause<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    text::chain(error).find_map(|error| error.downcast_ref())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use aws_sdk_dynamodb::config::{Credentials, Region, SharedCredentialsProvider};
    use aws_smithy_types::byte_stream::ByteStream;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpSocket, TcpStream};

    use super::*;
    use crate::{impatient, sdk_config};

    fn ask(https: &Https, read_timeout: Option<Duration>, url: &str) -> HttpConnectorFuture {
        let connector = Connector { https: https.clone(), read_timeout, connect_timeout: Some(Duration::from_secs(3)) };
        let request = Request::post(url).body(SdkBody::from("{}")).unwrap();
        connector.call(request.try_into().unwrap())
    }

    async fn serve<F: Future<Output = ()> + Send>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                serve(stream).await;
            }
        });
        url
    }

    #[tokio::test]
    async fn requests_share_a_connection() {
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        let url = serve(move |mut stream| {
            counted.fetch_add(1, Ordering::SeqCst);
            async move {
                tokio::spawn(async move {
                    while stream.read(&mut [0; 1_024]).await.is_ok_and(|read| read > 0) {
                        stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 4\r\n\r\nno\r\n").await.unwrap();
                    }
                });
            }
        })
        .await;
        let https = Https::default();
        for _ in 0..3 {
            let answer = ask(&https, None, &url).await.unwrap();
            assert_eq!(answer.status().as_u16(), 400);
            let body = ByteStream::new(answer.into_body()).collect().await.unwrap();
            assert_eq!(body.into_bytes(), "no\r\n");
        }
        assert_eq!(connections.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn the_sdk_learns_what_is_worth_another_try() {
        let https = Https::default();
        // Nobody listens at its port, and nobody else gets it.
        let nobody = TcpSocket::new_v4().unwrap();
        nobody.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let refused = ask(&https, None, &format!("http://{}/", nobody.local_addr().unwrap())).await.unwrap_err();
        assert!(refused.is_io(), "{refused:?}");
        let hangs_up = serve(async |mut stream| {
            assert!(stream.read(&mut [0; 1_024]).await.unwrap() > 0);
        })
        .await;
        let cut = ask(&https, None, &hangs_up).await.unwrap_err();
        assert!(cut.is_io() || cut.as_other() == Some(ErrorKind::TransientError), "{cut:?}");
        let silent = serve(|stream| async move {
            tokio::spawn(async move {
                let _open = stream;
                std::future::pending::<()>().await;
            });
        })
        .await;
        let late = ask(&https, Some(Duration::from_millis(20)), &silent).await.unwrap_err();
        assert!(late.is_timeout(), "{late:?}");
        let nowhere = ask(&https, None, "ftp://127.0.0.1/").await.unwrap_err();
        assert!(!nowhere.is_timeout(), "{nowhere:?}");
    }

    /// As a connection is that was lost while the function was frozen.
    #[tokio::test]
    async fn a_request_whose_connection_is_dead_is_sent_again_over_another() {
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        let url = serve(move |mut stream| {
            let dead = counted.fetch_add(1, Ordering::SeqCst) == 0;
            async move {
                tokio::spawn(async move {
                    while stream.read(&mut [0; 4_096]).await.is_ok_and(|read| read > 0) {
                        if !dead {
                            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
                        }
                    }
                });
            }
        })
        .await;
        let credentials = SharedCredentialsProvider::new(Credentials::new("id", "secret", None, None, "test"));
        let config = sdk_config().into_builder().endpoint_url(url).region(Region::new("us-east-1"));
        let config = impatient(config.credentials_provider(credentials).build(), Duration::from_secs(2));
        let call = aws_sdk_dynamodb::Client::new(&config).list_tables().send();
        tokio::time::timeout(Duration::from_secs(60), call).await.expect("it waits for ever").unwrap();
        assert!(connections.load(Ordering::SeqCst) > 1);
    }
}
