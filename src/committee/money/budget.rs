//! Computes what a call costs at worst, and fits a plan under the cap.

use unicode_normalization::{IsNormalized, UnicodeNormalization as _, is_nfkc_quick};

use crate::config::RoleModel;
use crate::domain::{Agent, BilledTokens, ProviderKind, Reservation, Role, Usd};
use crate::journal::{CheckScope, CheckSize, LeftOut, Trimmed};

/// The most tokens in the user part of a prompt beside the question: labels, fences, hints,
/// instructions.
pub const SCAFFOLDING_TOKENS: u64 = 700;

/// The longest plan, in tokens.
pub const PLAN_TOKENS: u32 = 700;

/// The least bytes per token of the service's own prompts and schemas, which are English prose and
/// JSON keys. Tokenizers up to 2025 need more than three bytes per token for them. Those since
/// Claude 4.7 count about 30 % more tokens.
const TRUSTED_BYTES_PER_TOKEN: f64 = 1.9;

/// The factor by which another vendor's tokenizer may exceed a reported token count.
const TOKENIZER_SPREAD: f64 = 1.3;

/// The tokens that a vendor adds around a request: roles, separators, tool preambles.
const OVERHEAD_TOKENS: u64 = 400;

/// The most tokens that any vendor counts for one image.
const IMAGE_TOKENS: u64 = 5000;

/// A million dollars. Sums of thousands of such settlements still fit into a database's integer.
const MAX_SETTLED_COST: Usd = Usd::from_nanos(1_000_000_000_000_000);

/// The shares of its usual length to which the synthesis is shrunk before an agent is left out.
const SHARES: [f64; 5] = [1.0, 0.85, 0.7, 0.6, MIN_SHARE];
const MIN_SHARE: f64 = 0.5;

/// A model-written text inside a prompt. Its own token count is a tighter bound than its
/// characters.
#[derive(Debug, Clone, Copy, Default)]
pub struct ModelText {
    /// The [`text_bound`] of the text; `None` if it is not written yet.
    pub bound: Option<u64>,
    pub tokens: u64,
}

impl ModelText {
    pub fn of(text: &str, tokens: u64) -> Self {
        Self {
            bound: Some(text_bound(text)),
            tokens,
        }
    }

    /// Returns the bound of a text still to be written, of at most `tokens` tokens.
    pub fn planned(tokens: u64) -> Self {
        Self {
            bound: None,
            tokens,
        }
    }

    fn tokens_at_most(self) -> u64 {
        let by_tokens = (self.tokens as f64 * TOKENIZER_SPREAD).ceil() as u64;
        self.bound.map_or(by_tokens, |bound| by_tokens.min(bound))
    }
}

/// Upper bounds of a request's input tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InputBound {
    /// The stable prefix, which may be billed as a cache write.
    pub stable: u64,
    pub volatile: u64,
}

impl InputBound {
    /// `trusted_bytes` counts the prompts ([`trusted_bytes`]) and schemas. `user_bound` is the
    /// [`text_bound`] of the user parts. `model_texts` are the texts of models within them, taken
    /// at their own count.
    pub fn new(
        trusted_bytes: usize,
        user_bound: u64,
        model_texts: &[ModelText],
        images: usize,
    ) -> Self {
        let stable =
            (trusted_bytes as f64 / TRUSTED_BYTES_PER_TOKEN).ceil() as u64 + OVERHEAD_TOKENS;
        let written: u64 = model_texts.iter().filter_map(|text| text.bound).sum();
        let read: u64 = model_texts.iter().map(|text| text.tokens_at_most()).sum();
        Self {
            stable,
            volatile: user_bound.saturating_sub(written) + read + IMAGE_TOKENS * images as u64,
        }
    }

    pub fn total(self) -> u64 {
        self.stable + self.volatile
    }
}

/// Returns the bytes of a prompt's stable part. An operator's own prompts and goals may be in any
/// script, and each byte of a character beyond ASCII may be a token.
pub fn trusted_bytes(prompt: &str) -> usize {
    let beyond_ascii = prompt.bytes().filter(|byte| !byte.is_ascii()).count();
    let ascii = prompt.len() - beyond_ascii;
    ascii + (beyond_ascii as f64 * TRUSTED_BYTES_PER_TOKEN).ceil() as usize
}

/// Returns the most tokens that a text of unknown origin can make. A byte-level vocabulary has a
/// token for every byte, so a text has at most as many tokens as bytes. Some tokenizers first
/// normalize the text to NFKC, which can be longer: the longer form counts.
pub fn text_bound(text: &str) -> u64 {
    // ASCII is normalized wherever it stands.
    if is_nfkc_quick(beyond_ascii(text)) == IsNormalized::Yes {
        return text.len() as u64;
    }
    let normalized: usize = text.nfkc().map(char::len_utf8).sum();
    text.len().max(normalized) as u64
}

/// Returns the characters of a text that are not ASCII.
fn beyond_ascii(text: &str) -> impl Iterator<Item = char> {
    let mut rest = text;
    std::iter::from_fn(move || {
        // Whole blocks are checked much faster than bytes.
        let blocks = rest.as_bytes().chunks(32).take_while(|it| it.is_ascii());
        rest = rest.get(blocks.map(<[u8]>::len).sum()..)?;
        rest = rest.get(rest.bytes().position(|byte| !byte.is_ascii())?..)?;
        let mut chars = rest.chars();
        let next = chars.next();
        rest = chars.as_str();
        next
    })
}

/// Returns the worst-case cost of a call; `None` for the in-process model, which costs nothing.
pub fn worst_case(model: &RoleModel, input: InputBound, max_tokens: u32) -> Option<Reservation> {
    let output_tokens = u64::from(max_tokens);
    // Anthropic caches only the marked stable prefix. Others choose by themselves what they cache.
    let (cacheable, plain) = match model.kind {
        ProviderKind::Anthropic => (input.stable, input.volatile),
        ProviderKind::Openai | ProviderKind::Local => (input.total(), 0),
    };
    let amount = model.price?.worst(cacheable, plain, output_tokens);
    Some(Reservation {
        input_tokens: input.total(),
        output_tokens,
        amount,
    })
}

/// Returns the amount of the worst case; zero for the in-process model.
pub fn worst_cost(model: &RoleModel, input: InputBound, max_tokens: u32) -> Usd {
    worst_case(model, input, max_tokens).map_or(Usd::ZERO, |worst| worst.amount)
}

/// Returns the output tokens that a fitted panel gives to a role.
pub fn given(max_tokens: &[(Role, u32)], role: Role) -> Option<u32> {
    let own = max_tokens.iter().find(|(own, _)| *own == role);
    own.map(|(_, tokens)| *tokens)
}

/// Returns the cost of the reported usage, or the cost that the provider states if that is more; at
/// most [`MAX_SETTLED_COST`]. A larger figure would say no more than that the cap is exceeded.
pub fn cost(model: &RoleModel, usage: &BilledTokens, stated: Usd) -> Usd {
    let computed = model.price.map_or(Usd::ZERO, |price| price.cost(usage));
    computed.max(stated).min(MAX_SETTLED_COST)
}

/// A call of the plan, as input of [`fit`].
#[derive(Debug, Clone)]
pub struct Wanted<'a> {
    pub role: Role,
    pub model: &'a RoleModel,
    /// Its usual output limit in the run's mode.
    pub limit: u32,
    /// Upper bound of its input, without what other agents will have written.
    pub input: InputBound,
}

/// Returns the worst-case cost of a cross-check of a size, given the most output tokens of each
/// role.
pub type CheckCost<'a> = dyn Fn(&[(Role, u32)], CheckSize) -> Usd + Sync + 'a;

/// What fits under the cap: the agents in order, with the output tokens that each may use.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    pub trimmed: Trimmed,
    /// The money to earmark for the synthesis, and for a repetition of the solver after a crash.
    pub held: Usd,
    /// The money to earmark for the cross-check, in addition.
    pub check: Usd,
}

/// Fits one round, the cross-check and the synthesis into `left`. The sizes of the cross-check come
/// with its cost, the largest first; there are none if none is made. The steps are:
///
/// 1. The synthesis is shrunk, down to half; a lone solver too.
/// 2. Optional agents are dropped, the last named first.
/// 3. The cross-check is made smaller, then dropped.
/// 4. The critic is dropped, then the verifier. The freed money may pay for a cross-check of the
///    others.
///
/// `None` if the solver and the synthesis do not fit.
///
/// If a process dies in the round, all of its calls are in doubt and count at their reservations.
/// Therefore [`fit`] prefers a length at which the earmarked money also pays for one more solver
/// call and the synthesis, both at their least lengths. No agent is dropped for that. But a
/// cross-check of a panel without the whole core must leave that money over.
pub fn fit(
    agents: &[Wanted<'_>],
    synthesis: &Wanted<'_>,
    (sizes, cost): (&[CheckSize], &CheckCost<'_>),
    left: Usd,
) -> Option<Fitted> {
    let is_solver = |wanted: &&Wanted<'_>| wanted.role == Role::Agent(Agent::Solver);
    let solver = agents.iter().find(is_solver);
    let repetition = solver.map_or(Usd::ZERO, |solver| least(solver, synthesis));
    let mut kept: Vec<&Wanted<'_>> = agents.iter().collect();
    let mut left_out = vec![];
    let mut is_whole = true;
    loop {
        let is_optional = |it: &&Wanted<'_>| it.role.agent().is_some_and(|it| !it.is_core());
        let optional = kept.iter().rposition(is_optional);
        // The cross-check is not made smaller for an optional agent.
        let tries = if optional.is_some() { 1 } else { usize::MAX };
        let sizes = sizes.iter().copied().map(Some).chain([None]);
        for size in sizes.take(tries) {
            let is_free = is_whole || size.is_none();
            let least_spare = if is_free { Usd::ZERO } else { repetition };
            let spares = [repetition, least_spare];
            let fitted = longest(&kept, synthesis, (size, cost), spares, left);
            if let Some(mut fitted) = fitted {
                left_out.append(&mut fitted.trimmed.left_out);
                fitted.trimmed.left_out = left_out;
                return Some(fitted);
            }
        }
        let at = |agent| kept.iter().position(|it| it.role == Role::Agent(agent));
        let next = optional.or_else(|| at(Agent::Critic).or_else(|| at(Agent::Verifier)))?;
        let dropped = kept.remove(next).role.agent()?;
        is_whole &= !dropped.is_core();
        left_out.push(LeftOut::Agent(dropped));
    }
}

/// Fits these agents with the longest outputs that leave the first of `spares` over; if there are
/// none, the second.
fn longest(
    kept: &[&Wanted<'_>],
    synthesis: &Wanted<'_>,
    (size, cost): (Option<CheckSize>, &CheckCost<'_>),
    spares: [Usd; 2],
    left: Usd,
) -> Option<Fitted> {
    let tries = spares.into_iter();
    let mut tries = tries.flat_map(|spare| SHARES.map(|share| (share, spare)));
    tries.find_map(|(share, spare)| {
        let (max_tokens, panel, held) = shrunk_to(kept, synthesis, share);
        let check = size.map_or(Usd::ZERO, |size| cost(&max_tokens, size));
        let reserve = (held + check).max(spare);
        if panel + reserve > left {
            return None;
        }
        let is_small = size.is_some_and(|size| size.scope == CheckScope::First);
        let trimmed = Trimmed {
            agents: kept.iter().filter_map(|it| it.role.agent()).collect(),
            max_tokens,
            left_out: Vec::from_iter(is_small.then_some(LeftOut::Claims)),
            cross_check: size,
            epoch: None,
            refit: None,
        };
        Some(Fitted {
            trimmed,
            held: reserve - check,
            check,
        })
    })
}

/// Returns the agents that the cap left out.
pub fn left_out(trimmed: &Trimmed) -> impl Iterator<Item = Agent> {
    trimmed.left_out.iter().filter_map(|it| match it {
        LeftOut::Agent(agent) => Some(*agent),
        LeftOut::Claims | LeftOut::Other(_) => None,
    })
}

/// Returns the least cost of one agent and the synthesis.
pub fn least(agent: &Wanted<'_>, synthesis: &Wanted<'_>) -> Usd {
    let (_, panel, held) = shrunk_to(&[agent], synthesis, MIN_SHARE);
    panel + held
}

/// Shrinks outputs to a share. Returns the output tokens of each role, the worst-case cost of the
/// agents, and the money to earmark for the synthesis.
fn shrunk_to(
    agents: &[&Wanted<'_>],
    synthesis: &Wanted<'_>,
    share: f64,
) -> (Vec<(Role, u32)>, Usd, Usd) {
    let agent_share = match agents {
        [only] if only.role == Role::Agent(Agent::Solver) => share,
        // Shorter reports would be cut. Dropping an agent is better.
        _ => 1.0,
    };
    let shrunk = |wanted: &Wanted<'_>, share: f64| {
        ((f64::from(wanted.limit) * share) as u32).max(wanted.model.least_tokens())
    };
    let mut max_tokens = vec![];
    let mut panel = Usd::ZERO;
    for wanted in agents {
        let tokens = shrunk(wanted, agent_share);
        panel += worst_cost(wanted.model, wanted.input, tokens);
        max_tokens.push((wanted.role, tokens));
    }
    max_tokens.push((synthesis.role, shrunk(synthesis, share)));
    let held = synthesis_hold(&max_tokens, synthesis);
    (max_tokens, panel, held)
}

/// Returns the worst-case cost of the agents with the given output tokens.
pub fn panel_cost(agents: &[Wanted<'_>], max_tokens: &[(Role, u32)]) -> Usd {
    let cost = |wanted: &Wanted<'_>| {
        let tokens = given(max_tokens, wanted.role).unwrap_or(wanted.limit);
        worst_cost(wanted.model, wanted.input, tokens)
    };
    agents.iter().map(cost).sum()
}

/// Returns the cost of the synthesis if every agent writes as much as it may.
pub fn synthesis_hold(max_tokens: &[(Role, u32)], synthesis: &Wanted<'_>) -> Usd {
    let (mut input, mut written) = (synthesis.input, synthesis.limit);
    for (role, tokens) in max_tokens {
        if *role == synthesis.role {
            written = *tokens;
        } else {
            input.volatile += ModelText::planned(u64::from(*tokens)).tokens_at_most();
        }
    }
    worst_cost(synthesis.model, input, written)
}

#[cfg(test)]
mod tests;
