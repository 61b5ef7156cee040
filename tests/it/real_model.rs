//! Tests the whole committee on the real in-process model.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::process::conclave;

fn weights() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("data")
        .join(conclave::config::env::LOCAL_MODEL_DEFAULT);
    assert!(
        path.is_file(),
        "the weights are missing at {}: run `make model`",
        path.display()
    );
    path
}

#[tokio::test]
async fn real_model_committee_answers_a_simple_question() {
    let folder = TempDir::new().unwrap();
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/llm.config.local.json");
    let weights = weights();
    let variables = [
        ("CONCLAVE_CONFIG", config),
        ("LOCAL_MODEL_PATH", weights.to_str().unwrap()),
    ];
    let arguments = ["audit", "--json", "What is the capital of France?"];
    let output = conclave(folder.path(), &arguments, &variables)
        .output()
        .await
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{error}");
    let body: Value = serde_json::from_slice(&output.stdout).unwrap();
    let reply = body["reply"].as_str().unwrap();
    assert!(reply.contains("Paris"), "{reply}");
    assert!(
        reply.starts_with("## TL;DR") && reply.contains("## Audit appendix"),
        "{reply}"
    );
    assert_eq!(body["audit"]["agents"].as_array().unwrap().len(), 3);
    assert_eq!(body["meta"]["budget"]["estimatedUsd"], 0.0);
    let roles: Vec<&str> = body["audit"]["budget"]["calls"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|call| call["state"] == "answered")
        .map(|call| call["call"].as_str().unwrap())
        .collect();
    for step in ["plan", "r1/solver", "r1/critic", "r1/verifier", "synthesis"] {
        assert!(
            roles.contains(&step),
            "{step} was answered by the model: {roles:?}"
        );
    }
}
