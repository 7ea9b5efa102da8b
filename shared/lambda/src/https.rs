//! HTTPS to AWS.

use aws_smithy_http_client::{Builder, tls};
use aws_smithy_runtime_api::client::http::{HttpClient, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;

/// A client that sets TLS up with the first request. The SDK's own does so when the clients of services are made, and reads
/// hundreds of certificates before a function could ask for work.
#[derive(Debug)]
pub(crate) struct Https(SharedHttpClient);

impl Https {
    pub(crate) fn new() -> Self {
        let tls = tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring);
        Self(Builder::new().tls_provider(tls).build_https())
    }
}

impl HttpClient for Https {
    fn http_connector(&self, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
        self.0.http_connector(settings, components)
    }
}
