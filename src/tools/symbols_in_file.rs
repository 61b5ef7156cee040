//! `symbols_in_file`: the indexed symbols of the files that match a path or glob.

use super::call::{Call, Role, Run, Spec, parameter};
use super::file_glob::matcher;
use super::magellan::{Symbol, check, index, not_indexed};
use super::output::{Output, ToolError, listing};

pub const SPEC: Spec = Spec {
    parameters: &[parameter("pattern", Role::Text)],
    is_mutating: false,
    check: |call| check(&call.toolbox),
    run: Run::Program(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Result<Output, ToolError> {
    let pattern = call.argument("pattern");
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    let matcher = matcher(pattern)?;
    let index = index(&call).await?;
    let is_glob = pattern.contains(['*', '?', '[', '{']);
    if !is_glob && !index.files.iter().any(|it| it.path == pattern) {
        return Err(not_indexed(pattern));
    }
    let symbols = index.symbols.iter();
    let symbols = symbols.filter(|it| it.file == pattern || matcher.is_match(&it.file));
    let row = |it: &Symbol| {
        let kind = it.kind_normalized.as_deref().unwrap_or("symbol");
        let name = it.display_fqn.as_deref().or(it.name.as_deref());
        let (file, line) = (&it.file, it.start_line);
        format!("{file}:{line}: {kind} {}", name.unwrap_or("?"))
    };
    Ok(listing(symbols.map(row), "No symbols.", []))
}
