//! Reads the header of a GGUF file: its quantization, and the size of a complete file.

use std::ffi::{CStr, CString};
use std::path::Path;
use std::ptr::NonNull;

use llama_cpp_sys_2 as sys;

use crate::native;

/// The header of a GGUF file, without its weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// `general.file_type`, a `llama_ftype`. `None` if the file has no such value.
    pub file_type: Option<u32>,
    /// Minimum size in bytes of a file with all its tensors.
    pub expected_bytes: u64,
}

/// Reads the header. Returns `None` if the file is missing or is not a GGUF file.
pub(crate) fn read(path: &Path) -> Option<Header> {
    native::redirect_log();
    let path = CString::new(path.to_str()?).ok()?;
    let file = File::open(&path)?;
    Some(Header {
        file_type: file.u32(c"general.file_type"),
        expected_bytes: file.expected_bytes()?,
    })
}

/// A header opened by llama.cpp.
struct File(NonNull<sys::gguf_context>);

impl File {
    fn open(path: &CStr) -> Option<Self> {
        let params = sys::gguf_init_params {
            no_alloc: true,
            ctx: std::ptr::null_mut(),
        };
        // SAFETY: `path` is NUL-terminated. With `no_alloc` and no `ctx`, only the header is read.
        // The result is null or owned by us.
        NonNull::new(unsafe { sys::gguf_init_from_file(path.as_ptr(), params) }).map(Self)
    }

    fn u32(&self, key: &CStr) -> Option<u32> {
        // SAFETY: the context is live. The id is checked before it is used, and so is the type,
        // because the getter aborts on another type.
        unsafe {
            let id = sys::gguf_find_key(self.0.as_ptr(), key.as_ptr());
            let is_u32 =
                id >= 0 && sys::gguf_get_kv_type(self.0.as_ptr(), id) == sys::GGUF_TYPE_UINT32;
            is_u32.then(|| sys::gguf_get_val_u32(self.0.as_ptr(), id))
        }
    }

    /// Returns the end of the last tensor.
    fn expected_bytes(&self) -> Option<u64> {
        // SAFETY: the context is live and every id is below the number of tensors.
        unsafe {
            let context = self.0.as_ptr();
            let end = (0..sys::gguf_get_n_tensors(context))
                .map(|id| {
                    sys::gguf_get_tensor_offset(context, id)
                        .saturating_add(sys::gguf_get_tensor_size(context, id))
                })
                .max()
                .unwrap_or(0);
            u64::try_from(sys::gguf_get_data_offset(context).saturating_add(end)).ok()
        }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: the pointer is from `gguf_init_from_file` and is freed once.
        unsafe { sys::gguf_free(self.0.as_ptr()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_gguf_has_no_header() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("model.gguf");
        std::fs::write(&path, b"GGUF\x03\x00\x00\x00 and no more")?;
        assert_eq!(read(&path), None);
        assert_eq!(read(&folder.path().join("absent.gguf")), None);
        Ok(())
    }
}
