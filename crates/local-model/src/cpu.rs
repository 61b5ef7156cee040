//! The check that the processor has the vector instructions for which llama.cpp was compiled.
//!
//! `is_x86_feature_detected!` folds to `true` for whatever the compiler was told to assume, so the processor is asked
//! directly.

use crate::Error;

/// Refuses a processor without AVX2 or FMA if this build uses them.
#[cfg(all(target_arch = "x86_64", target_feature = "avx2", target_feature = "fma"))]
pub(crate) fn check() -> Result<(), Error> {
    use std::arch::x86_64::{__cpuid, __cpuid_count};

    let highest = __cpuid(0).eax;
    let basic = __cpuid(1).ecx;
    let extended = if highest >= 7 { __cpuid_count(7, 0).ebx } else { 0 };
    let missing = missing(basic, extended);
    if missing.is_empty() { Ok(()) } else { Err(Error::Cpu { missing: missing.join(", ") }) }
}

/// A build for the baseline instruction set runs everywhere.
#[cfg(not(all(target_arch = "x86_64", target_feature = "avx2", target_feature = "fma")))]
pub(crate) fn check() -> Result<(), Error> {
    Ok(())
}

/// Names what is absent from leaf 1 (`ecx`) and leaf 7 (`ebx`) of CPUID. Bit numbers: Intel SDM, volume 2, CPUID.
#[cfg(any(test, all(target_arch = "x86_64", target_feature = "avx2", target_feature = "fma")))]
fn missing(leaf1_ecx: u32, leaf7_ebx: u32) -> Vec<&'static str> {
    let needed = [
        ("fma", leaf1_ecx, 12),
        ("avx enabled by the system", leaf1_ecx, 27),
        ("avx", leaf1_ecx, 28),
        ("f16c", leaf1_ecx, 29),
        ("avx2", leaf7_ebx, 5),
        ("bmi2", leaf7_ebx, 8),
    ];
    needed.into_iter().filter(|&(_, register, bit)| register >> bit & 1 == 0).map(|(name, ..)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_with_everything_lacks_nothing() {
        assert_eq!(missing(u32::MAX, u32::MAX), Vec::<&str>::new());
    }

    #[test]
    fn a_processor_without_avx2_is_named() {
        assert_eq!(missing(u32::MAX, !(1 << 5)), vec!["avx2"]);
    }

    #[test]
    fn the_machine_that_runs_the_tests_passes() {
        assert_eq!(check(), Ok(()));
    }
}
