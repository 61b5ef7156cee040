//! The schema in the prompt, for providers that have no structured output.

use conclave_lenient_json::Schema;

/// The description of the tool whose arguments are the reply.
pub(super) const ABOUT_TOOL: &str = "Gives the reply. Call it exactly once, with the whole reply.";

/// Returns the system text followed by the schema, for providers that cannot enforce it.
pub(super) fn with_instruction(system: &str, schema: &Schema) -> String {
    let schema = schema.for_vendor();
    let instruction = format!(
        "Reply with exactly one JSON object, without prose or code fences around it, that satisfies this JSON \
         Schema:\n{schema}"
    );
    if system.is_empty() {
        instruction
    } else {
        format!("{system}\n\n{instruction}")
    }
}
