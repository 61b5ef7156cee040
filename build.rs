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
        // Stores functions of the same machine code once.
        println!("cargo::rustc-link-arg-bin=conclave=-Wl,--icf=all");
        // Keeps apart what a profile found to run often, seldom and never, so that fewer pages of
        // the program are read and mapped.
        println!("cargo::rustc-link-arg-bin=conclave=-Wl,-z,keep-text-section-prefix");
    }
}
