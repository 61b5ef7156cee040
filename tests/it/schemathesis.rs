//! Runs Schemathesis against the real binary: requests made from `/openapi.json`, answers checked
//! against it.

use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;

use crate::support::MockProvider;
use crate::support::process::Home;

/// The variable with the path of Schemathesis. `make test` installs it and sets the variable.
const PROGRAM: &str = "CONCLAVE_SCHEMATHESIS";
const TOKEN: &str = "for-the-tests-of-the-interface-0123456789";

/// The checks that apply to a service with one token. `use_after_free` and
/// `ensure_resource_availability` are left out: they assume that DELETE removes a resource, but
/// here it only cancels a run.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_headers_conformance,response_schema_conformance,negative_data_rejection,\
                      positive_data_acceptance,missing_required_header,unsupported_method,allow_header_conformance,\
                      ignored_auth";

#[tokio::test]
async fn requests_made_from_the_document_get_only_documented_answers() {
    #[allow(clippy::disallowed_methods, reason = "the test's own switch, not the service's")]
    let program = std::env::var(PROGRAM).unwrap_or_else(|_| {
        panic!("{PROGRAM} names no program: run `make test`, or {PROGRAM}=$(scripts/schemathesis.sh) cargo nextest run")
    });
    let provider = MockProvider::start().await;
    let home = Home::sqlite();
    let service = home.serve(&provider, &[("CONCLAVE_TOKEN", TOKEN)]).await;
    let settings = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schemathesis.toml");
    let output = Command::new(program)
        .arg("--config-file")
        .arg(settings)
        .args([
            "run",
            &format!("{}/openapi.json", service.url),
            "--checks",
            CHECKS,
        ])
        .args(["--header", &format!("Authorization: Bearer {TOKEN}")])
        .current_dir(home.folder.path())
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    println!("{said}");
    assert!(output.status.success(), "see above");
    assert!(
        said.contains("21 selected / 21 total"),
        "it tested something"
    );
    service.kill().await;
}
