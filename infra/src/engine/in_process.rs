//! What requests need no more that never leave the process: signatures, a search for their endpoint, headers that are not read.

use aws_runtime::invocation_id::InvocationIdInterceptor;
use aws_runtime::request_info::RequestInfoInterceptor;
use aws_runtime::service_clock_skew::ServiceClockSkewInterceptor;
use aws_runtime::user_agent::UserAgentInterceptor;
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::auth::{AuthScheme, AuthSchemeEndpointConfig, AuthSchemeId, Sign};
use aws_smithy_runtime_api::client::endpoint::EndpointFuture;
use aws_smithy_runtime_api::client::identity::{
    Identity, IdentityCacheLocation, IdentityFuture, ResolveIdentity, SharedIdentityResolver,
};
use aws_smithy_runtime_api::client::interceptors::context::BeforeSerializationInterceptorContextRef;
use aws_smithy_runtime_api::client::interceptors::{Intercept, disable_interceptor, dyn_dispatch_hint};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::runtime_components::{GetIdentityResolver, RuntimeComponents};
use aws_smithy_types::config_bag::ConfigBag;
use aws_smithy_types::endpoint;

/// Why an interceptor of the SDK does not run.
const CAUSE: &str = "the request stays in the process";

/// Takes the place of the scheme that signs requests, and leaves them as they are.
#[derive(Clone, Debug)]
pub(super) struct Unsigned(Identity);

impl Unsigned {
    pub(super) fn new() -> Self {
        Self(Identity::new((), None))
    }
}

impl AuthScheme for Unsigned {
    fn scheme_id(&self) -> AuthSchemeId {
        AuthSchemeId::from("sigv4")
    }

    fn identity_resolver(&self, _: &dyn GetIdentityResolver) -> Option<SharedIdentityResolver> {
        Some(SharedIdentityResolver::new(self.clone()))
    }

    fn signer(&self) -> &dyn Sign {
        self
    }
}

impl ResolveIdentity for Unsigned {
    fn resolve_identity<'a>(&'a self, _: &'a RuntimeComponents, _: &'a ConfigBag) -> IdentityFuture<'a> {
        IdentityFuture::ready(Ok(self.0.clone()))
    }

    fn cache_location(&self) -> IdentityCacheLocation {
        IdentityCacheLocation::IdentityResolver
    }
}

impl Sign for Unsigned {
    fn sign_http_request(
        &self,
        _: &mut HttpRequest,
        _: &Identity,
        _: AuthSchemeEndpointConfig<'_>,
        _: &RuntimeComponents,
        _: &ConfigBag,
    ) -> Result<(), BoxError> {
        Ok(())
    }
}

/// The one endpoint there is.
#[derive(Debug)]
pub(super) struct Endpoint(endpoint::Endpoint);

impl Endpoint {
    pub(super) fn new() -> Self {
        Self(endpoint::Endpoint::builder().url("http://embedded.localhost").build())
    }

    fn resolve(&self) -> EndpointFuture<'_> {
        EndpointFuture::ready(Ok(self.0.clone()))
    }
}

impl aws_sdk_dynamodb::config::endpoint::ResolveEndpoint for Endpoint {
    fn resolve_endpoint<'a>(&'a self, _: &'a aws_sdk_dynamodb::config::endpoint::Params) -> EndpointFuture<'a> {
        self.resolve()
    }
}

impl aws_sdk_sqs::config::endpoint::ResolveEndpoint for Endpoint {
    fn resolve_endpoint<'a>(&'a self, _: &'a aws_sdk_sqs::config::endpoint::Params) -> EndpointFuture<'a> {
        self.resolve()
    }
}

/// Switches off what only adds headers for a service's statistics.
#[derive(Debug)]
pub(super) struct Unadorned;

#[dyn_dispatch_hint]
impl Intercept for Unadorned {
    fn name(&self) -> &'static str {
        "Unadorned"
    }

    fn read_before_execution(
        &self,
        _: &BeforeSerializationInterceptorContextRef<'_>,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let state = config.interceptor_state();
        state.store_put(disable_interceptor::<UserAgentInterceptor>(CAUSE));
        state.store_put(disable_interceptor::<RequestInfoInterceptor>(CAUSE));
        state.store_put(disable_interceptor::<InvocationIdInterceptor>(CAUSE));
        state.store_put(disable_interceptor::<ServiceClockSkewInterceptor>(CAUSE));
        Ok(())
    }
}
