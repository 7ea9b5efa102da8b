//! `fanfold dashboard`: the dashboard of a stack that runs elsewhere. Requests of its page go on to that stack's HTTP API, with the
//! credentials of this command.

use std::process::ExitCode;
use std::sync::Arc;

use axum::body::{Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router, routing};
use clap::Args;
use fanfold::limits::BODY_BYTES_MAX;
use fanfold_client::{ClientError, Fanfold};
use fanfold_dashboard::{Dashboard, PATH};
use fanfold_local::http::{self, Timeouts};
use serde_json::{Value, json};

use super::connection::Connection;
use super::plotted::{Plotted, Refused};
use super::print::print;
use crate::failure::Failure;
use crate::guard::{Callers, guard};
use crate::say::say;
use crate::serve;
use crate::stop::Stop;

/// Serves the dashboard of a stack on this machine until Ctrl-C or SIGTERM.
///
///   fanfold dashboard --endpoint https://….execute-api.eu-west-1.amazonaws.com
///
/// The page's requests go on to the stack's HTTP API, signed with your credentials.
/// Only the page can send them. With --json it prints {"dashboard": …}, the
/// address, once the page is served.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct DashboardArgs {
    /// Where to listen: HOST:PORT.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8081")]
    listen: String,
    #[command(flatten)]
    connection: Connection,
}

pub(super) async fn run(args: DashboardArgs) -> Result<ExitCode, Failure> {
    let plotted = args.connection.deployed().map(|(stack, cli)| Arc::new(Plotted::new(stack, cli)));
    let json = args.connection.json();
    // The page looks again by itself, and a person sees what failed.
    let stack = args.connection.patient(1)?;
    let listener = serve::bind(&args.listen).await?;
    let address = listener.local_addr().map_err(|error| Failure::io("--listen", error))?;
    let stop = Stop::listen()?;
    let forward = Arc::new(Forward { api: stack.api });
    let mut routes = Router::new().fallback(pass_on).with_state(forward);
    if let Some(plotted) = plotted {
        routes = routes.merge(Router::new().route("/metrics", routing::get(metrics)).with_state(plotted));
    }
    let router = guard(routes, Dashboard::default(), Callers::Page);
    let served = tokio::spawn(http::serve(listener, router, Timeouts::default()));
    let url = format!("http://{address}{PATH}");
    if json {
        print(&format!("{:#}", json!({"dashboard": url})))?;
    } else {
        say(format_args!("The dashboard is at {url}; stop it with Ctrl-C"));
    }
    stop.asked().await;
    served.abort();
    Ok(ExitCode::SUCCESS)
}

/// What the page plots.
async fn metrics(State(plotted): State<Arc<Plotted>>) -> Response {
    match plotted.text().await {
        Ok(text) => text.into_response(),
        Err(Refused(why)) => refusal(StatusCode::FORBIDDEN, &why),
    }
}

/// What passes requests on.
struct Forward {
    api: Fanfold,
}

/// Passes a request of the page on.
async fn pass_on(State(forward): State<Arc<Forward>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let Ok(body) = to_bytes(body, BODY_BYTES_MAX).await else {
        return refusal(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large");
    };
    match forward.send(parts.method, path, &body).await {
        Ok(answer) => Json(answer).into_response(),
        Err(ClientError::Api { status, problem, .. }) => {
            let fields = problem.errors.iter().map(|error| json!({"field": error.field, "problem": error.problem}));
            let document =
                json!({"code": problem.code, "detail": problem.detail, "errors": fields.collect::<Vec<_>>()});
            (StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY), Json(document)).into_response()
        }
        Err(error) => refusal(StatusCode::BAD_GATEWAY, &error.to_string()),
    }
}

impl Forward {
    async fn send(&self, method: Method, path: &str, body: &Bytes) -> Result<Value, ClientError> {
        let document = match body.as_ref() {
            [] => None,
            body => Some(serde_json::from_slice(body).map_err(|error| ClientError::Setting(error.to_string()))?),
        };
        self.api.request(method, path, document.as_ref()).await
    }
}

fn refusal(status: StatusCode, detail: &str) -> Response {
    (status, Json(json!({"detail": detail}))).into_response()
}
