//! Links as other functions do, and takes the line breaks and indents out of the API's description, which is half as large then.

use std::error::Error;
use std::fs;
use std::path::Path;

#[path = "../build.rs"]
mod link;

/// Made from the code by `fanfold-openapi`; its strings have no line breaks.
const DESCRIPTION: &str = "../../docs/openapi.json";

fn main() -> Result<(), Box<dyn Error>> {
    link::main();
    println!("cargo::rerun-if-changed={DESCRIPTION}");
    let short: String = fs::read_to_string(DESCRIPTION)?.lines().map(str::trim_start).collect();
    fs::write(Path::new(&std::env::var("OUT_DIR")?).join("openapi.json"), short)?;
    Ok(())
}
