//! Links a function whose panics end the process (functions/.cargo/config.toml) without an index of unwinding tables, most of which are
//! not there.

/// zig's linker takes the first two together, those of GCC and LLVM the last.
const WITHOUT_INDEX: [&str; 3] = ["-fno-unwind-tables", "-fno-asynchronous-unwind-tables", "-Wl,--no-eh-frame-hdr"];

pub(crate) fn main() {
    println!("cargo::rerun-if-changed=Cargo.toml");
    let has = |name, wanted: &str| std::env::var(name).is_ok_and(|value| value.contains(wanted));
    if has("CARGO_CFG_TARGET_OS", "linux") && has("CARGO_ENCODED_RUSTFLAGS", "force-unwind-tables=no") {
        WITHOUT_INDEX.iter().for_each(|argument| println!("cargo::rustc-link-arg-bins={argument}"));
    }
}
