pub mod committee;
pub mod domain;
pub mod llm;
