//! Routes with their description: no way leads into the router that does not also lead into the document.

use std::sync::Arc;

use axum::handler::Handler;
use axum::routing::{delete, get, post};
use axum::{Router, middleware};
use serde_json::{Map, Value, json};

use super::auth;
use super::reference::{Operation, Schemas};
use crate::app::{App, Requirement};

/// Describes one operation; stands beside its handler.
pub(super) type Describe = fn(&mut Schemas) -> Operation;

/// A group of routes that ask for the same access.
pub(super) struct Routes {
    /// What they ask of a token; `None`: anybody may use them.
    needs: Option<Requirement>,
    router: Router<Arc<App>>,
    /// Path, method, description.
    described: Vec<(&'static str, &'static str, Describe)>,
}

impl Routes {
    pub fn open() -> Self {
        Self {
            needs: None,
            router: Router::new(),
            described: vec![],
        }
    }

    pub fn needing(needs: Requirement) -> Self {
        Self {
            needs: Some(needs),
            ..Self::open()
        }
    }

    pub fn get<T: 'static>(
        self,
        path: &'static str,
        handler: impl Handler<T, Arc<App>>,
        describe: Describe,
    ) -> Self {
        let router = self.router.route(path, get(handler));
        Self { router, ..self }.described(path, "get", describe)
    }

    pub fn post<T: 'static>(
        self,
        path: &'static str,
        handler: impl Handler<T, Arc<App>>,
        describe: Describe,
    ) -> Self {
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
            let operation = describe(schemas).finish(path, method, self.needs);
            let item = paths.entry(*path).or_insert_with(|| json!({}));
            if let Value::Object(item) = item {
                item.insert((*method).to_owned(), operation);
            }
        }
    }

    /// The routes behind their door.
    pub fn into_router(self, app: &Arc<App>) -> Router<Arc<App>> {
        match self.needs {
            None => self.router,
            Some(needs) => self.router.route_layer(middleware::from_fn_with_state(
                (Arc::clone(app), needs),
                auth::require,
            )),
        }
    }
}
