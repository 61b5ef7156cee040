//! Rate limits per token and per network. A client can invent user ids, but not these.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use super::auth::{Token, network};
use super::rate::Rate;
use crate::config::Limits;

/// The rate limits of clients, in this process.
pub struct ClientRate {
    /// `None`: no limit; likewise for `addresses`.
    tokens: Option<Rate<Token>>,
    addresses: Option<Rate<IpAddr>>,
}

impl ClientRate {
    pub fn new(limits: &Limits) -> Self {
        fn rate<K: std::hash::Hash + Eq + Clone>(per_minute: Option<u32>) -> Option<Rate<K>> {
            per_minute
                .and_then(NonZeroU32::new)
                .map(|most| Rate::per_minute(most, most))
        }
        Self {
            tokens: rate(limits.token_per_minute),
            addresses: rate(limits.address_per_minute),
        }
    }

    /// Counts one request.
    ///
    /// # Errors
    /// Which limit is reached, and the time until the next request is allowed.
    pub fn take(
        &self,
        token: Option<&Token>,
        peer: IpAddr,
    ) -> Result<(), (&'static str, Duration)> {
        if let (Some(rate), Some(token)) = (&self.tokens, token) {
            rate.take(token).map_err(|wait| ("with this token", wait))?;
        }
        if let Some(rate) = &self.addresses {
            rate.take(&network(peer))
                .map_err(|wait| ("from this address", wait))?;
        }
        Ok(())
    }
}
