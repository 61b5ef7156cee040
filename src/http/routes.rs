//! Routes with their description: no way leads into the router that does not also lead into the document.

use axum::Router;
use axum::handler::Handler;
use axum::routing::{delete, get, post};
use serde_json::{Map, Value, json};
use std::sync::Arc;

use super::reference::{Operation, Schemas};
use crate::app::App;

/// Describes one operation; stands beside its handler.
pub(super) type Describe = fn(&mut Schemas) -> Operation;

/// Who may use a group of routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Anybody.
    Open,
    /// Whoever has a token with this scope, if the service asks for tokens.
    Scope(&'static str),
}

/// A group of routes that ask for the same access.
pub(super) struct Routes {
    access: Access,
    router: Router<Arc<App>>,
    /// Path, method, description.
    described: Vec<(&'static str, &'static str, Describe)>,
}

impl Routes {
    pub fn of(access: Access) -> Self {
        Self { access, router: Router::new(), described: vec![] }
    }

    pub fn get<T: 'static>(self, path: &'static str, handler: impl Handler<T, Arc<App>>, describe: Describe) -> Self {
        let router = self.router.route(path, get(handler));
        Self { router, ..self }.described(path, "get", describe)
    }

    pub fn post<T: 'static>(self, path: &'static str, handler: impl Handler<T, Arc<App>>, describe: Describe) -> Self {
        let router = self.router.route(path, post(handler));
        Self { router, ..self }.described(path, "post", describe)
    }

    pub fn delete<T: 'static>(
        self,
        path: &'static str,
        handler: impl Handler<T, Arc<App>>,
        describe: Describe,
    ) -> Self {
        let router = self.router.route(path, delete(handler));
        Self { router, ..self }.described(path, "delete", describe)
    }

    fn described(mut self, path: &'static str, method: &'static str, describe: Describe) -> Self {
        self.described.push((path, method, describe));
        self
    }

    /// Adds the descriptions to the document's `paths`.
    pub fn describe(&self, schemas: &mut Schemas, paths: &mut Map<String, Value>) {
        for (path, method, describe) in &self.described {
            let operation = describe(schemas).finish(path, method, self.access);
            let item = paths.entry(*path).or_insert_with(|| json!({}));
            if let Value::Object(item) = item {
                item.insert((*method).to_owned(), operation);
            }
        }
    }

    pub fn into_router(self) -> Router<Arc<App>> {
        self.router
    }
}
