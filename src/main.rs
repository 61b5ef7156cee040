fn main() {
    println!("{}", serde_json::to_string_pretty(&conclave::config::json_schema()).unwrap_or_default());
}
