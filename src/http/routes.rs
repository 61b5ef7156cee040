//! Routes with their descriptions. A route cannot be added to the router without its description.

use std::sync::Arc;

use axum::handler::Handler;
use axum::routing::{delete, get, post};
use axum::{Router, middleware};
use serde_json::{Map, Value, json};

use super::auth;
use super::reference::operation::{Operation, Schemas};
use crate::app::{App, Requirement};

/// Describes one operation. Such a function is defined beside the handler.
pub(super) type Describe = fn(&mut Schemas) -> Operation;

/// A group of routes with the same requirement.
pub(super) struct Routes {
    /// What the routes require of a token. `None`: they require no token.
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

    /// Returns the router, with the token check that its routes require.
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
