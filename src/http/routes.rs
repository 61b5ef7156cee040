//! Groups of routes. `reference/openapi.json` describes each route.

use std::sync::Arc;

use axum::handler::Handler;
use axum::routing::{MethodRouter, delete, get, post};
use axum::{Router, middleware};

use super::auth;
use crate::app::{App, Requirement};

/// A group of routes with the same requirement.
pub(super) struct Routes {
    /// What the routes require of a token. `None`: they require no token.
    needs: Option<Requirement>,
    router: Router<Arc<App>>,
    /// Path and method of each route.
    operations: Vec<(&'static str, &'static str)>,
}

impl Routes {
    pub fn open() -> Self {
        Self {
            needs: None,
            router: Router::new(),
            operations: vec![],
        }
    }

    pub fn needing(needs: Requirement) -> Self {
        Self {
            needs: Some(needs),
            ..Self::open()
        }
    }

    pub fn get<T: 'static>(self, path: &'static str, handler: impl Handler<T, Arc<App>>) -> Self {
        self.with(path, "get", get(handler))
    }

    pub fn post<T: 'static>(self, path: &'static str, handler: impl Handler<T, Arc<App>>) -> Self {
        self.with(path, "post", post(handler))
    }

    pub fn delete<T: 'static>(
        self,
        path: &'static str,
        handler: impl Handler<T, Arc<App>>,
    ) -> Self {
        self.with(path, "delete", delete(handler))
    }

    fn with(
        mut self,
        path: &'static str,
        method: &'static str,
        handler: MethodRouter<Arc<App>>,
    ) -> Self {
        self.operations.push((path, method));
        self.router = self.router.route(path, handler);
        self
    }

    /// Returns path and method of each route, with what it requires of a token.
    pub fn operations(
        &self,
    ) -> impl Iterator<Item = (&'static str, &'static str, Option<Requirement>)> {
        let all = self.operations.iter();
        all.map(|(path, method)| (*path, *method, self.needs))
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
