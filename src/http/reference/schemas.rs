//! The schemas of the types that the handlers read and write.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use super::super::api::act::ConfirmBody;
use super::super::api::chat::Accepted;
use super::super::api::feedback::{FeedbackBody, NotedBody};
use super::super::api::health::{Health, Ready};
use super::super::api::plans::{PlanBody, UndoBody};
use super::super::api::quote::QuoteBody;
use super::super::api::reply_body::ReplyBody;
use super::super::api::run_bodies::{Cancelled, JournalBody, RunBody, RunPage};
use super::super::error::ProblemBody;
use crate::actions::reply::Reply;
use crate::app::{ActionInput, Authorization, ChatInput};
use crate::tools::answers::{AuthorizedBody, ExecutionView, PlanView};

/// Returns every schema by its name. The two directions differ: an optional field may be missing in
/// a request and is null in a response. A type that is used in both must have the same schema in
/// both.
pub(super) fn all() -> Map<String, Value> {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "#/components/schemas".into();
    settings.meta_schema = None;
    let mut requests = settings.clone().for_deserialize().into_generator();
    requests.subschema_for::<(ChatInput, ActionInput, ConfirmBody, FeedbackBody)>();
    requests.subschema_for::<(PlanBody, Authorization, UndoBody)>();
    let mut answers = settings.for_serialize().into_generator();
    answers.subschema_for::<(ProblemBody, ReplyBody, Accepted, QuoteBody, Health, Ready)>();
    answers.subschema_for::<(RunPage, RunBody, JournalBody, Cancelled, NotedBody)>();
    answers.subschema_for::<(Reply, PlanView, AuthorizedBody, ExecutionView)>();
    let mut all = requests.take_definitions(true);
    for (name, schema) in answers.take_definitions(true) {
        debug_assert!(
            all.get(&name).is_none_or(|known| *known == schema),
            "{name} differs by direction"
        );
        all.insert(name, schema);
    }
    all.sort_keys();
    all
}
