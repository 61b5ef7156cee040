pub mod app;
pub mod attachments;
pub mod clock;
pub mod committee;
pub mod config;
pub mod domain;
pub mod journal;
pub mod llm;
