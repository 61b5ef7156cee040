//! `symbols_in_file`: the indexed symbols of the files that match a path or glob.

use serde_json::json;

use super::call::{Call, Role, Run, Spec, parameter};
use super::file_glob::matcher;
use super::magellan::{DATABASE, Symbol, check, index, rows};
use super::output::{Output, ToolError, quoted};

pub const SPEC: Spec = Spec {
    description: "List the indexed symbols of the files that match a path pattern.",
    parameters: &[parameter(
        "pattern",
        Role::Text,
        "Path of an indexed file, or a glob such as 'src/**/*.rs'.",
    )],
    is_mutating: false,
    check: |call| check(&call.toolbox),
    run: Run::Program(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Result<Output, ToolError> {
    let pattern = call.argument("pattern");
    let matcher = matcher(pattern)?;
    let index = index(&call).await?;
    let is_glob = pattern.contains(['*', '?', '[', '{']);
    if !is_glob && !index.files.iter().any(|it| it.path == pattern) {
        let file = quoted(pattern);
        return Err(ToolError::other(format!(
            "{file} is not indexed in {DATABASE}"
        )));
    }
    let mut symbols = index.symbols;
    symbols.retain(|it| it.file == pattern || matcher.is_match(&it.file));
    let line = |it: &Symbol| {
        let kind = it.kind_normalized.as_deref().unwrap_or("symbol");
        let name = it.display_fqn.as_deref().or(it.name.as_deref());
        format!(
            "{}:{}: {kind} {}",
            it.file,
            it.start_line,
            name.unwrap_or("?")
        )
    };
    let row = |it: &Symbol| {
        json!({ "file": it.file, "line": it.start_line, "end_line": it.end_line, "name": it.name,
                "kind": it.kind_normalized, "full_name": it.display_fqn })
    };
    Ok(rows("symbols", symbols, line, row))
}
