//! Where the weights for the tests are.

use std::path::{Path, PathBuf};

pub fn weights() -> PathBuf {
    let fetched = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../data/models/SmolLM2-135M-Instruct.Q4_1.gguf");
    let path = std::env::var_os("LOCAL_MODEL_PATH").map_or(fetched, PathBuf::from);
    assert!(
        path.is_file(),
        "the weights are not at {}: run `make model`, or set LOCAL_MODEL_PATH to a GGUF file",
        path.display()
    );
    path
}
