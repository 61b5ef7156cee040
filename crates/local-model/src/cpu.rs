//! Checks that the processor has the vector instructions that llama.cpp was compiled for.
//!
//! The Rust code of this build runs on every x86-64 and arm64 processor. The CPU kernels of
//! llama.cpp may not: their build reads the `GGML_*` variables of `.cargo/config.toml`. This module
//! reads the same variables, so that both always agree.

use crate::Error;

/// Refuses a processor that lacks an instruction set of the kernels. Call it before any function of
/// llama.cpp.
///
/// # Errors
/// [`Error::Cpu`] names what is missing.
pub(crate) fn check() -> Result<(), Error> {
    let missing = missing(&instruction_sets());
    if missing.is_empty() {
        Ok(())
    } else {
        Err(Error::Cpu {
            missing: missing.join(", "),
        })
    }
}

/// An instruction set: its name, whether the kernels use it, and whether this processor and
/// operating system support it.
type InstructionSet = (&'static str, bool, bool);

#[cfg(target_arch = "x86_64")]
fn instruction_sets() -> [InstructionSet; 6] {
    use std::is_x86_feature_detected as detected;
    let set = |name, variable, present| (name, is_on(variable), present);
    [
        set("sse4.2", option_env!("GGML_SSE42"), detected!("sse4.2")),
        set("avx", option_env!("GGML_AVX"), detected!("avx")),
        set("avx2", option_env!("GGML_AVX2"), detected!("avx2")),
        set("fma", option_env!("GGML_FMA"), detected!("fma")),
        set("f16c", option_env!("GGML_F16C"), detected!("f16c")),
        set("bmi2", option_env!("GGML_BMI2"), detected!("bmi2")),
    ]
}

/// On arm64, the kernels use only the baseline.
#[cfg(not(target_arch = "x86_64"))]
fn instruction_sets() -> [InstructionSet; 0] {
    []
}

/// Interprets the variable as cmake does. If it is unset, llama.cpp uses the instruction set.
#[cfg(target_arch = "x86_64")]
fn is_on(variable: Option<&str>) -> bool {
    !variable.is_some_and(|value| {
        ["OFF", "0", "NO", "FALSE", "N", ""].contains(&value.to_uppercase().as_str())
    })
}

fn missing(sets: &[InstructionSet]) -> Vec<&'static str> {
    let missing = sets.iter().filter(|(_, used, present)| *used && !present);
    missing.map(|(name, ..)| *name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_set_that_is_used_and_absent_is_missing() {
        let sets = [
            ("a", true, true),
            ("b", true, false),
            ("c", false, true),
            ("d", false, false),
        ];
        assert_eq!(missing(&sets), vec!["b"]);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_variable_is_read_as_cmake_reads_it() {
        assert!([None, Some("ON"), Some("1")].into_iter().all(is_on));
        let off = ["OFF", "off", "0", ""].map(Some);
        assert!(!off.into_iter().any(is_on));
    }
}
