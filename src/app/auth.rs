//! Authenticates requests with the bearer tokens of the database and the token of the environment.
//!
//! Without any token the service is open, and then it listens on loopback only. A token counts from
//! its creation, and a revoked token still counts as created. So revoking the last token does not
//! open the service.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use tokio::time::Instant;

use super::rate::Rate;
use crate::clock::Clock;
use crate::config::{Config, GOOD_TOKEN_CHARS, Problems};
use crate::domain::{BearerToken, Scope, same_secret};
use crate::journal::{Error, TokenRow, TokenStore};

/// The number of wrong tokens a minute that a peer may send before it has to wait.
const WRONG_PER_MINUTE: NonZeroU32 = NonZeroU32::MIN.saturating_add(29);

/// Expired waits are removed when this number of peers has to wait.
const MANY_PEERS: usize = 1024;

/// What a route requires of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requirement {
    /// One of these scopes. Which runs it reaches, the handler decides.
    OneOf(&'static [Scope]),
    /// Any valid token.
    AnyToken,
}

/// Why a request was admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admitted {
    /// No token was ever created, and none is configured.
    Open,
    /// With the scopes of a token of the database; `None` for every scope.
    ByToken(Token, Option<Vec<Scope>>),
}

/// The token that admitted a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Token {
    /// The token of the environment.
    Fixed,
    /// A token of the database, by its id.
    Stored(String),
}

impl Token {
    /// Returns the id of a token of the database.
    pub fn id(self) -> Option<String> {
        match self {
            Token::Fixed => None,
            Token::Stored(id) => Some(id),
        }
    }
}

/// Why a request was refused.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error("no valid token")]
    NoToken,
    /// The token has none of these scopes, of which the route requires one.
    #[error("the token has none of the scopes {0:?}")]
    Lacks(&'static [Scope]),
    #[error("too many wrong tokens")]
    TooManyGuesses { retry_after: Duration },
    #[error(transparent)]
    Journal(#[from] Error),
}

/// Checks the tokens of requests.
pub struct Authenticator {
    fixed: Option<SecretString>,
    store: Arc<dyn TokenStore>,
    clock: Clock,
    /// True if a token was ever created. It never becomes false again.
    token_ever_created: AtomicBool,
    wrong_token_rate: Rate<IpAddr>,
    /// Peers that sent too many wrong tokens, and until when each of them has to wait.
    blocked_until: Mutex<HashMap<IpAddr, Instant>>,
}

impl Authenticator {
    pub fn new(config: &Config, store: Arc<dyn TokenStore>, clock: Clock) -> Self {
        Self {
            fixed: config.token.clone(),
            store,
            clock,
            token_ever_created: AtomicBool::new(false),
            wrong_token_rate: Rate::per_minute(WRONG_PER_MINUTE, WRONG_PER_MINUTE),
            blocked_until: Mutex::default(),
        }
    }

    /// Checks the token that a client sent.
    ///
    /// A token of the database has 256 random bits. It cannot be guessed, so a valid one is always
    /// accepted. The token of the environment may be short. A peer that sends too many wrong tokens
    /// cannot try a short one for a while.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn admit(
        &self,
        given: Option<&str>,
        peer: IpAddr,
        needs: Requirement,
    ) -> Result<Admitted, Refused> {
        if let Some(token) = given.and_then(BearerToken::parse)
            && let Some(row) = self.store.token(token.id()).await?
            && token.matches(&row.hash)
            && is_active(&row, self.clock.now())
        {
            permits(&row.scopes, needs)?;
            return Ok(Admitted::ByToken(Token::Stored(row.id), Some(row.scopes)));
        }
        if !self.is_needed().await? {
            return Ok(Admitted::Open);
        }
        let Some(given) = given else {
            return Err(Refused::NoToken);
        };
        let peer = network(peer);
        let wait = self.wait(peer);
        let right = self
            .fixed
            .as_ref()
            .filter(|fixed| same_secret(given, fixed.expose_secret()));
        // A valid long token works even when its address is blocked, because clients behind one NAT
        // share it.
        if right.is_some_and(|fixed| {
            wait.is_none() || fixed.expose_secret().chars().count() >= GOOD_TOKEN_CHARS
        }) {
            return Ok(Admitted::ByToken(Token::Fixed, None));
        }
        if let Some(retry_after) = wait {
            return Err(Refused::TooManyGuesses { retry_after });
        }
        if let Err(retry_after) = self.wrong_token_rate.take(&peer) {
            tracing::warn!(%peer, "too many wrong tokens from one address");
            self.block(peer, retry_after);
            return Err(Refused::TooManyGuesses { retry_after });
        }
        Err(Refused::NoToken)
    }

    /// True if a token of the database is still valid; for connections that stay open. Also true
    /// while the database does not answer.
    pub async fn still_works(&self, id: &str) -> bool {
        match self.store.token(id).await {
            Ok(row) => row.is_some_and(|row| is_active(&row, self.clock.now())),
            Err(_) => true,
        }
    }

    /// Checks that the service may listen on an address. Returns the problem to print if the address
    /// is reachable from outside and there is no valid token.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn listen_problem(&self, bind: SocketAddr) -> Result<Option<Problems>, Error> {
        if bind.ip().is_loopback() || self.fixed.is_some() {
            return Ok(None);
        }
        let now = self.clock.now();
        let guarded = self
            .store
            .tokens()
            .await?
            .iter()
            .any(|row| is_active(row, now));
        Ok((!guarded).then(|| Problems::unguarded(bind)))
    }

    async fn is_needed(&self) -> Result<bool, Error> {
        if self.fixed.is_some() || self.token_ever_created.load(Ordering::Relaxed) {
            return Ok(true);
        }
        let ever = !self.store.tokens().await?.is_empty();
        self.token_ever_created.fetch_or(ever, Ordering::Relaxed);
        Ok(ever)
    }

    fn wait(&self, peer: IpAddr) -> Option<Duration> {
        let waiting = self
            .blocked_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let left = waiting
            .get(&peer)?
            .saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    fn block(&self, peer: IpAddr, time: Duration) {
        let mut waiting = self
            .blocked_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if waiting.len() >= MANY_PEERS {
            waiting.retain(|_, until| *until > now);
        }
        waiting.insert(peer, now + time);
    }
}

/// True if a token is neither revoked nor expired.
pub fn is_active(token: &TokenRow, now: Timestamp) -> bool {
    token.revoked_at.is_none() && token.expires_at.is_none_or(|at| now < at)
}

/// True if scopes include this one; `admin` includes all.
pub fn includes(scopes: &[Scope], scope: Scope) -> bool {
    scopes.contains(&scope) || scopes.contains(&Scope::Admin)
}

fn permits(scopes: &[Scope], needs: Requirement) -> Result<(), Refused> {
    match needs {
        Requirement::OneOf(any) if !any.iter().any(|scope| includes(scopes, *scope)) => {
            Err(Refused::Lacks(any))
        }
        Requirement::OneOf(_) | Requirement::AnyToken => Ok(()),
    }
}

/// Returns the network of one customer. It is an IPv4 address, or the first 64 bits of an IPv6
/// address, because one customer has a whole /64.
pub(super) fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() >> 64 << 64).into()),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_one_ipv6_network_are_one_peer() {
        let network = |text: &str| network(text.parse().unwrap()).to_string();
        assert_eq!(network("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(network("::ffff:192.0.2.7"), "192.0.2.7");
    }
}
