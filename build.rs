//! Options of the linker for the program.

use std::env;

#[expect(
    clippy::disallowed_methods,
    reason = "cargo tells a build script its target in a variable"
)]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = env::var("TARGET").unwrap_or_default();
    // rustc links this target with LLD.
    if target == "x86_64-unknown-linux-gnu" {
        // Functions of the same machine code are stored once.
        println!("cargo::rustc-link-arg-bin=conclave=-Wl,--icf=all");
        // With a profile, functions that hardly run are apart from the others, and stay unread.
        println!("cargo::rustc-link-arg-bin=conclave=-Wl,-z,keep-text-section-prefix");
    }
}
