//! The OpenAPI description of the HTTP API. Each function describes its own routes; here they are put together.
//!
//! `docs/openapi.json` is this description, written by `cargo run -p fanfold-openapi > docs/openapi.json`.

use fanfold_http::Code;
use fanfold_http::openapi::Describer;
use serde_json::{Value, json};

/// About the API as a whole.
fn about() -> String {
    let code = |code: Code| format!("`{}` ({})", code.name(), code.status().as_u16());
    format!(
        "Groups tasks into batches, and reports exactly when the last item of a fan-out is done. Errors are problem documents \
         (RFC 9457) with codes that never change. A path without a route gets {}, a method that a path does not take gets {}. \
         The gateway in front of the deployed API answers requests that are not signed, and requests above its rate limit, \
         without a problem document.",
        code(Code::UnknownRoute),
        code(Code::MethodNotAllowed)
    )
}

/// The description.
#[must_use]
pub fn document() -> Value {
    let mut describer = Describer::default();
    fanfold_api::describe(&mut describer);
    fanfold_register::describe(&mut describer);
    fanfold_ack::describe(&mut describer);
    fanfold_handle::describe(&mut describer);
    let info = json!({
        "title": "Fanfold",
        "version": env!("CARGO_PKG_VERSION"),
        "description": about(),
        "license": {"name": "Apache 2.0", "identifier": "Apache-2.0"},
    });
    let servers = json!([
        {"url": "http://localhost:8080", "description": "`fanfold up`, which needs no signature"},
        {
            "url": "https://{api}.execute-api.{region}.amazonaws.com",
            "description": "The deployed stack: the address in its output `Url`",
            "variables": {"api": {"default": "api"}, "region": {"default": "us-east-1"}},
        },
    ]);
    describer.document(&info, &servers)
}

/// The description as it is in `docs/openapi.json`.
///
/// # Errors
/// It cannot be written as JSON, which does not happen.
pub fn text() -> Result<String, serde_json::Error> {
    // Fields in the order of their names, whatever other crates of a build make of serde_json's maps.
    let mut document = document();
    document.sort_all_objects();
    serde_json::to_string_pretty(&document).map(|text| text + "\n")
}
