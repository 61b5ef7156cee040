//! `splice_patch`: replaces one symbol of a source file by the content of another file.

use super::call::{Call, Role, Run, Spec, parameter};
use super::lsp_check::manifest_of;
use super::output::{Output, ToolError, quoted};
use super::splice;

pub const SPEC: Spec = Spec {
    parameters: &[
        parameter("file", Role::Changed),
        parameter("symbol", Role::Text),
        parameter("kind", Role::Optional),
        parameter("with", Role::Path),
    ],
    is_mutating: true,
    check,
    run: Run::Program(|call| Box::pin(run(call))),
};

fn check(call: &Call) -> Result<(), ToolError> {
    call.programs().installed("splice")?;
    let file = call.argument("file");
    call.changeable_exists(file)?;
    call.workspace().read(call.argument("with"))?;
    manifest_of(call.workspace(), file)?;
    // The name as a whole word. Whether it is a definition, splice finds out.
    let symbol = call.argument("symbol");
    let name = symbol.rsplit("::").next().unwrap_or(symbol);
    let text = call.workspace().read(file)?;
    let mut words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    if words.any(|word| word == name) {
        return Ok(());
    }
    let (symbol, file) = (quoted(symbol), quoted(file));
    Err(format!("symbol {symbol} does not exist in {file}").into())
}

async fn run(call: Call) -> Result<Output, ToolError> {
    // `--name=value` keeps a symbol that begins with a dash from being read as an option.
    let symbol = format!("--symbol={}", call.argument("symbol"));
    let mut options = vec!["patch".into(), symbol.into()];
    // Splice spells kinds out where Rust uses keywords. Splice 3.1 finds no function under any kind
    // (it looks for `fn` among symbols of kind `function`), so for functions only the name counts;
    // splice refuses a name that is ambiguous.
    match call.argument("kind") {
        "" | "fn" | "function" => {}
        "mod" => options.push("--kind=module".into()),
        "type" => options.push("--kind=type-alias".into()),
        other => options.push(format!("--kind={other}").into()),
    }
    let files = vec![call.argument("file").to_owned()];
    splice::run(&call, options, &["file", "with"], files).await
}
