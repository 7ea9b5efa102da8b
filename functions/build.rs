//! Links a function to run at a fixed address: 40,000 addresses need not be written into it at each start.

fn main() {
    println!("cargo::rerun-if-changed=Cargo.toml");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
