//! The routines of tool plans that read a model's text, under one signature, for the benchmark of
//! their cost per byte.

use serde_json::{Map, Value};

use super::tool::Tool;
use super::{explain, file_glob, file_search, propose};
use crate::committee::routines::Routine;

pub const ROUTINES: &[Routine] = &[
    ("tool plan: parse", |text| drop(propose::parse(text))),
    ("tool plan: arguments", |text| {
        for tool in Tool::ALL {
            let names = tool.parameters().iter().map(|it| it.name.to_owned());
            let given: Map<String, Value> = names.map(|name| (name, Value::from(text))).collect();
            drop(tool.arguments(&given));
        }
    }),
    ("tool argument: glob", |text| drop(file_glob::matcher(text))),
    ("tool argument: pattern", |text| {
        drop(file_search::matcher(text));
    }),
    ("explanation: screen", |text| {
        drop(explain::objections(text, text, &[], &Value::Null));
    }),
];
