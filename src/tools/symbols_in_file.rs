//! `symbols_in_file`: the indexed symbols of the files that match a path or glob.

use serde_json::{Value, json};

use super::arguments::Arguments;
use super::file_glob::{listing, matcher};
use super::magellan::{MAX_ROWS, Symbol, index};
use super::output::{ToolError, ToolOutput};
use super::path::one_line;
use super::programs::Programs;
use super::tool::Tool;
use super::workspace::Workspace;

const TOOL: Tool = Tool::SymbolsInFile;

pub async fn run(
    arguments: &Arguments,
    workspace: &Workspace,
    programs: &Programs,
) -> Result<ToolOutput, ToolError> {
    let pattern = arguments.required("pattern");
    let matcher = matcher(TOOL, pattern)?;
    let index = index(TOOL, workspace, programs).await?;
    let mut symbols = index.symbols;
    symbols.retain(|it| it.file == pattern || matcher.is_match(&it.file));
    let mut notes = Vec::new();
    if symbols.len() > MAX_ROWS {
        notes.push(format!(
            "only the first {MAX_ROWS} of {} symbols are listed",
            symbols.len()
        ));
        symbols.truncate(MAX_ROWS);
    }
    let text = listing(symbols.iter().map(line), "No symbols.", &notes);
    let rows: Vec<Value> = symbols.iter().map(row).collect();
    let value = json!({ "count": rows.len(), "symbols": rows, "notes": notes });
    Ok(ToolOutput::new(text, value))
}

fn line(symbol: &Symbol) -> String {
    let kind = symbol.kind_normalized.as_deref().unwrap_or("symbol");
    let name = symbol
        .display_fqn
        .as_deref()
        .or(symbol.name.as_deref())
        .unwrap_or("?");
    one_line(&format!(
        "{}:{}: {kind} {name}",
        symbol.file, symbol.start_line
    ))
}

fn row(symbol: &Symbol) -> Value {
    json!({
        "file": symbol.file,
        "line": symbol.start_line,
        "end_line": symbol.end_line,
        "name": symbol.name,
        "kind": symbol.kind_normalized,
        "full_name": symbol.display_fqn,
    })
}
