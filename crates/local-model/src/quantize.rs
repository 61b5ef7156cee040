//! Converts small models in a quantization that is slow on CPUs to Q8_0, once. It needs several
//! times less time for a prompt. The copy is stored next to the original.

use std::ffi::CString;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use llama_cpp_2::gguf::GgufContext;
use llama_cpp_sys_2 as sys;

use crate::native;

/// Only a model below this number of bytes is converted, since the copy is up to twice as large.
const SMALL_BYTES: u64 = 1 << 30;

/// `general.file_type` values without a fast kernel: Q4_0, Q4_1, Q5_0, Q5_1, Q5_K_S, Q5_K_M.
const SLOW_FILE_TYPES: [u32; 6] = [
    sys::LLAMA_FTYPE_MOSTLY_Q4_0,
    sys::LLAMA_FTYPE_MOSTLY_Q4_1,
    sys::LLAMA_FTYPE_MOSTLY_Q5_0,
    sys::LLAMA_FTYPE_MOSTLY_Q5_1,
    sys::LLAMA_FTYPE_MOSTLY_Q5_K_S,
    sys::LLAMA_FTYPE_MOSTLY_Q5_K_M,
];

/// Returns the file to load for `source`: its Q8_0 copy, which is made if there is none, or the
/// file itself. Never fails: without a copy, the slower original is used.
pub(crate) fn fast_version(source: &Path, threads: usize) -> PathBuf {
    let Ok(about) = fs::metadata(source) else {
        return source.to_owned();
    };
    let is_slow = file_type(source).is_some_and(|kind| SLOW_FILE_TYPES.contains(&kind));
    if !is_slow || about.len() >= SMALL_BYTES {
        return source.to_owned();
    }
    let copy = copy_path(source);
    if is_usable(&copy, about.modified().ok()) {
        return copy;
    }
    let started = Instant::now();
    match write_copy(source, &copy, threads) {
        Ok(()) => {
            tracing::info!(copy = %copy.display(), took_ms = started.elapsed().as_millis(), "requantized the model to Q8_0");
            copy
        }
        Err(reason) => {
            tracing::warn!(model = %source.display(), %reason, "the model stays in its slow quantization");
            source.to_owned()
        }
    }
}

/// Returns `general.file_type` of a GGUF file, a `llama_ftype`, if the file has one.
fn file_type(path: &Path) -> Option<u32> {
    native::redirect_log();
    let header = GgufContext::from_file(path)?;
    let id = header.find_key("general.file_type");
    let is_u32 = id >= 0 && header.kv_type(id) == sys::GGUF_TYPE_UINT32;
    is_u32.then(|| header.val_u32(id))
}

/// Returns `<folder>/<stem>.q8_0.gguf`.
fn copy_path(source: &Path) -> PathBuf {
    let mut name = source.file_stem().unwrap_or_default().to_owned();
    name.push(".q8_0.gguf");
    source.with_file_name(name)
}

/// True if a copy is Q8_0 and is not older than its source.
fn is_usable(copy: &Path, source_modified: Option<SystemTime>) -> bool {
    let made = fs::metadata(copy).and_then(|about| about.modified()).ok();
    let is_fresh = made.is_some() && made >= source_modified;
    is_fresh && file_type(copy) == Some(sys::LLAMA_FTYPE_MOSTLY_Q8_0)
}

/// Writes to a temporary file next to `copy` and renames it. So no reader sees an incomplete file,
/// and two concurrent writers do no harm.
fn write_copy(source: &Path, copy: &Path, threads: usize) -> Result<(), String> {
    let io = |error: std::io::Error| error.to_string();
    let folder = copy.parent().unwrap_or(Path::new(""));
    let mut partial = tempfile::Builder::new();
    // As other files: the umask has the last word.
    partial
        .suffix(".partial")
        .permissions(Permissions::from_mode(0o666));
    let partial = partial.tempfile_in(folder).map_err(io)?;
    quantize(source, partial.path(), threads)?;
    partial.as_file().sync_all().map_err(io)?;
    partial.persist(copy).map_err(|error| io(error.error))?;
    Ok(())
}

fn quantize(source: &Path, target: &Path, threads: usize) -> Result<(), String> {
    let c_path = |path: &Path| {
        path.to_str()
            .and_then(|path| CString::new(path).ok())
            .ok_or("path is not valid text")
    };
    let (source, target) = (c_path(source)?, c_path(target)?);
    // SAFETY: a function without arguments that returns a value.
    let mut params = unsafe { sys::llama_model_quantize_default_params() };
    params.ftype = sys::LLAMA_FTYPE_MOSTLY_Q8_0;
    params.allow_requantize = true;
    params.nthread = i32::try_from(threads).unwrap_or(1);
    // SAFETY: both paths are NUL-terminated and outlive the call, and the parameters contain no
    // other pointers. llama.cpp catches its own exceptions.
    let status =
        unsafe { sys::llama_model_quantize(source.as_ptr(), target.as_ptr(), &raw const params) };
    if status == 0 {
        Ok(())
    } else {
        Err(native::last_error("llama.cpp gave no reason"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copy_lies_beside_its_source() {
        let copy = copy_path(Path::new("/m/Tiny-1.5B.Q4_1.gguf"));
        assert_eq!(copy, Path::new("/m/Tiny-1.5B.Q4_1.q8_0.gguf"));
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_a_reason_not_a_panic() {
        let copy = Path::new("/absent/model.q8_0.gguf");
        let refused = write_copy(Path::new("model.gguf"), copy, 1);
        assert!(refused.is_err_and(|reason| reason.contains("/absent/")));
    }

    #[test]
    fn a_copy_that_is_not_a_model_is_not_usable() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let copy = folder.path().join("model.q8_0.gguf");
        assert!(!is_usable(&copy, Some(SystemTime::UNIX_EPOCH)));
        fs::write(&copy, b"GGUF")?;
        assert!(!is_usable(&copy, Some(SystemTime::UNIX_EPOCH)));
        Ok(())
    }
}
