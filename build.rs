//! Options of the linker for the program.

use std::env;

#[expect(
    clippy::disallowed_methods,
    reason = "cargo tells a build script its target in a variable"
)]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = env::var("TARGET").unwrap_or_default();
    // rustc links this target with LLD, which stores functions of the same machine code once.
    if target == "x86_64-unknown-linux-gnu" {
        println!("cargo::rustc-link-arg-bin=conclave=-Wl,--icf=all");
    }
}
