//! The llama.cpp library of the process. It is started once, and its log goes to `tracing`.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_void};
use std::sync::{Once, OnceLock};

use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_sys_2::{
    GGML_LOG_LEVEL_CONT, GGML_LOG_LEVEL_ERROR, GGML_LOG_LEVEL_WARN, ggml_log_level, ggml_log_set,
    llama_log_set,
};

thread_local! {
    /// The last error that llama.cpp logged on this thread. Its functions return no reason.
    static LAST_ERROR: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Returns the started library, or `None` if other code in the process has started it.
pub(crate) fn backend() -> Option<&'static LlamaBackend> {
    static BACKEND: OnceLock<Option<LlamaBackend>> = OnceLock::new();
    redirect_log();
    BACKEND.get_or_init(|| LlamaBackend::init().ok()).as_ref()
}

/// Redirects llama.cpp's log, which otherwise goes to standard error.
pub(crate) fn redirect_log() {
    static REDIRECTED: Once = Once::new();
    REDIRECTED.call_once(|| {
        // SAFETY: `forward_log` is a plain function, valid as long as the process, and ignores its
        // data pointer.
        unsafe {
            llama_log_set(Some(forward_log), std::ptr::null_mut());
            ggml_log_set(Some(forward_log), std::ptr::null_mut());
        }
    });
}

/// Takes the last error that llama.cpp logged on this thread. Returns `otherwise` if there is none.
pub(crate) fn last_error(otherwise: &str) -> String {
    LAST_ERROR
        .with(RefCell::take)
        .unwrap_or_else(|| otherwise.to_owned())
}

/// Forwards a log line. Errors and warnings become debug events, since the caller reports its own
/// error. All other lines become trace events.
unsafe extern "C" fn forward_log(level: ggml_log_level, text: *const c_char, _data: *mut c_void) {
    if text.is_null() || (level == GGML_LOG_LEVEL_CONT && !tracing::enabled!(tracing::Level::TRACE))
    {
        return;
    }
    // SAFETY: llama.cpp passes a NUL-terminated string that is valid during this call.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    let text = text.trim();
    if text.is_empty() || text == "." {
        return;
    }
    if level == GGML_LOG_LEVEL_ERROR {
        // Skips the error if the thread is ending or the cell is borrowed. A panic must never cross
        // C code.
        let _ = LAST_ERROR.try_with(|last| {
            last.try_borrow_mut()
                .map(|mut last| *last = Some(text.to_owned()))
        });
    }
    if level == GGML_LOG_LEVEL_ERROR || level == GGML_LOG_LEVEL_WARN {
        tracing::debug!(target: "llama_cpp", "{text}");
    } else {
        tracing::trace!(target: "llama_cpp", "{text}");
    }
}
