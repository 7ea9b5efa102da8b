//! Links a function whose panics end the process (functions/.cargo/config.toml) without an index of unwinding tables, most of which are
//! not there.

/// zig's linker takes the first two together, those of GCC and LLVM the last.
const WITHOUT_INDEX: [&str; 3] = ["-fno-unwind-tables", "-fno-asynchronous-unwind-tables", "-Wl,--no-eh-frame-hdr"];

pub(crate) fn main() {
    println!("cargo::rerun-if-changed=Cargo.toml");
    let is = |name, wanted: &str| std::env::var(name).is_ok_and(|value| value == wanted);
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_PANIC", "abort") {
        WITHOUT_INDEX.iter().for_each(|argument| println!("cargo::rustc-link-arg-bins={argument}"));
    }
}
