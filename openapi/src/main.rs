//! Writes the OpenAPI description to the standard output.

use std::io::Write;

fn main() -> std::io::Result<()> {
    std::io::stdout().write_all(fanfold_openapi::text()?.as_bytes())
}
