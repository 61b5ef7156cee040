//! Selects the models of the cross-check and bounds its cost, before any claim is known.

use std::collections::BTreeMap;

use crate::committee::deps::Deps;
use crate::committee::money::budget::{self, InputBound, ModelText, SCAFFOLDING_TOKENS};
use crate::committee::output_shapes::CrossCheckReply;
use crate::committee::schemas::schema_of;
use crate::config::{OutputForm, PromptSet, RoleModel};
use crate::domain::{Agent, Mode, Role, Usd};
use crate::journal::{CheckScope, CheckSize};
use crate::scoring;

/// Output tokens of a pass: this base, plus an amount for each report and for each claim.
const BASE_TOKENS: u32 = 160;
const TOKENS_PER_REPORT: u32 = 60;
const TOKENS_PER_CLAIM: u32 = 80;

/// The most output tokens of a pass, for any number of claims.
pub const MAX_TOKENS: u32 = 2400;

/// The most tokens that labels, tags and fences of one report take in the prompt.
const LABEL_TOKENS: u64 = 260;

/// The most claims of one report that are shown.
const MAX_CLAIMS: usize = 4;

/// The most bytes of a claim and of a summary that are shown.
pub const CLAIM_BYTES: usize = 320;
pub const SUMMARY_BYTES: usize = 400;

/// Returns the roles whose models check, in the order of the passes. The first is the verifier,
/// unless its model is of the solver's family and another role's is not. The second prefers a model
/// that differs from the first.
pub fn checkers(roles: &BTreeMap<Role, RoleModel>) -> Vec<Role> {
    use Agent::{Critic, Editor, Implementer, Solver, Verifier, Visual};
    let family = |model: &RoleModel| scoring::family(&model.shown());
    let solver = roles.get(&Role::Agent(Solver)).map(family);
    let is_foreign = |model: &RoleModel| solver.as_ref().is_none_or(|it| *it != family(model));
    let candidates = [Verifier, Critic, Editor, Implementer, Visual].map(Role::Agent);
    let able = candidates.into_iter().chain([Role::Master]);
    let mut able: Vec<(Role, &RoleModel)> = able
        .filter_map(|role| Some((role, roles.get(&role)?)))
        .filter(|(_, model)| model.output == OutputForm::Json && model.prompts != PromptSet::Text)
        // The master writes the reply, so it checks only if it adds a foreign family.
        .filter(|(role, model)| *role != Role::Master || is_foreign(model))
        .collect();
    able.sort_by_key(|(_, model)| !is_foreign(model));
    let Some(((first, own), others)) = able.split_first() else {
        return vec![];
    };
    let is_own = |model: &RoleModel| model.provider == own.provider && model.model == own.model;
    let second = others
        .iter()
        .min_by_key(|(_, model)| (!is_foreign(model), is_own(model)));
    let second = second.map(|(role, _)| *role);
    std::iter::once(*first).chain(second).collect()
}

/// Returns the sizes in which a run's cross-check may be made, the largest first; empty if none is.
pub fn sizes(deps: &Deps, mode: Mode) -> Vec<CheckSize> {
    if !deps.policy.cross_check.covers(mode) {
        return vec![];
    }
    let most = if mode == Mode::Deep { 2 } else { 1 };
    let passes = u8::try_from(deps.checkers.len()).unwrap_or(most).min(most);
    let size = |passes, scope| CheckSize { passes, scope };
    let keys = (1..=passes)
        .rev()
        .map(|passes| size(passes, CheckScope::Key));
    let first = (passes > 0).then(|| size(1, CheckScope::First));
    keys.chain(first).collect()
}

/// Returns the worst-case cost of a cross-check of this size. `reports` are the most tokens of each
/// report; `read` bounds the tokens of the request.
pub fn worst_case(deps: &Deps, read: u64, reports: &[u64], size: CheckSize) -> Usd {
    let schema = schema_of::<CrossCheckReply>().bytes();
    let most = (SUMMARY_BYTES + claims_of(size.scope) * CLAIM_BYTES) as u64;
    let texts = reports
        .iter()
        .map(|tokens| ModelText::planned((*tokens).min(most)));
    let texts: Vec<ModelText> = texts.collect();
    let read = read + SCAFFOLDING_TOKENS + LABEL_TOKENS * reports.len() as u64;
    let cost = |role: Role| {
        let model = deps.role(role)?;
        let trusted = deps.prompts.system_bytes(model.prompts, "cross_check") + schema;
        let input = InputBound::new(trusted, read, &texts, 0);
        let output = model.limit_for(max_tokens(reports.len(), size.scope));
        Some(budget::worst_cost(model, input, output))
    };
    let checkers = deps.checkers.iter().copied().take(usize::from(size.passes));
    checkers.filter_map(cost).sum()
}

/// Returns the most output tokens of a pass, without thinking.
pub fn max_tokens(reports: usize, scope: CheckScope) -> u32 {
    let reports = u32::try_from(reports).unwrap_or(u32::MAX);
    let claims = u32::try_from(claims_of(scope)).unwrap_or(u32::MAX);
    let each = TOKENS_PER_REPORT.saturating_add(TOKENS_PER_CLAIM.saturating_mul(claims));
    let all = BASE_TOKENS.saturating_add(reports.saturating_mul(each));
    all.min(MAX_TOKENS)
}

/// Returns the most claims of one report that are shown.
pub fn claims_of(scope: CheckScope) -> usize {
    match scope {
        CheckScope::Key => MAX_CLAIMS,
        CheckScope::First => 1,
    }
}
