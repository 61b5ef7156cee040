//! Later rounds: whether one is held, for which agents, and its outcomes.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use schemars::JsonSchema;
use tokio::time::Instant;

use crate::committee::call::prompts::Rendered;
use crate::committee::failure::Failure;
use crate::committee::money::budget::{self, InputBound, trusted_bytes};
use crate::committee::money::trim;
use crate::committee::output_shapes::Decisions;
use crate::committee::schemas::schema_of;
use crate::committee::stages::open_claims::Open;
use crate::committee::stages::resolve;
use crate::committee::stages::round_context::{RoundContext, RoundInput};
use crate::config::RoleModel;
use crate::domain::{
    Agent, AgentReport, CORE_AGENTS, Earmark, Judgement, Resolution, Role, Status, Usd,
};
use crate::journal::step;
use crate::journal::{AgentFinished, AgentOutcome, Event, RoundSkipped, SkipReason, Transcript};

/// The least share of its first output limit that an agent may use when it reports again.
const MIN_SHARE: f64 = 0.5;

/// A later round that is held.
pub(super) struct LaterRound {
    round: u8,
    open: Open,
    /// The share of its first output limit that an agent may use when it reports again.
    share: f64,
}

/// What a round lacks beside the synthesis after it.
struct Shortage {
    worst: Usd,
    left: Usd,
}

impl RoundContext<'_> {
    /// Records that a later round begins, or why it is skipped. A decision made before a crash
    /// stands, because time and money look different afterwards. `None`: this round and all later
    /// ones are skipped.
    pub(super) fn begin(
        &self,
        round: u8,
        mut open: Open,
        input: &RoundInput<'_>,
        judgement: &Judgement,
    ) -> Result<Option<LaterRound>, Failure> {
        let run = self.run;
        if run.recorded(&step::skip(round)).is_some() {
            return Ok(None);
        }
        if let Some(started) = run.recorded(&step::round(round)) {
            let is_asked = |agent: &Agent| started.agents.contains(agent);
            open.holders.retain(is_asked);
            open.reporting_again.retain(is_asked);
            return Ok(Some(self.fit(round, open, input)?.0));
        }
        if let Some(why) = self.reason_to_skip(round, &open, judgement) {
            return self.skip(round, &why);
        }
        let (mut held, mut shortage) = self.fit(round, open, input)?;
        if shortage.is_some() && !held.open.holders.is_empty() {
            held.open.reporting_again.clear();
            shortage = self.earmark_synthesis(&held, input)?;
        }
        if let Some(Shortage { worst, left }) = shortage {
            let why = format!("it may cost {worst}, but only {left} is left under the cap");
            return self.skip(round, &SkipReason::Other(why));
        }
        let why = if held.open.holders.is_empty() {
            "some core outputs are not VALID".to_owned()
        } else {
            let mut seen = BTreeSet::new();
            let topics = input.claims.iter().map(|claim| claim.topic.as_str());
            let topics: Vec<&str> = topics.filter(|topic| seen.insert(*topic)).collect();
            format!("contested: {}", topics.join(", "))
        };
        self.start(round, held.open.agents(), why)?;
        Ok(Some(held))
    }

    /// Records that a round and all after it are skipped.
    fn skip(&self, first: u8, why: &SkipReason) -> Result<Option<LaterRound>, Failure> {
        for round in first..=self.plan.rounds {
            let why = why.clone();
            let skipped = RoundSkipped { round, why };
            self.run.record(Event::RoundSkipped(skipped))?;
        }
        Ok(None)
    }

    /// Returns why a further round is not held, if so, apart from its cost.
    fn reason_to_skip(&self, round: u8, open: &Open, judgement: &Judgement) -> Option<SkipReason> {
        let other = |why: &str| Some(SkipReason::Other(why.to_owned()));
        if open.agents().is_empty() {
            if judgement.disagreements.iter().any(|it| !it.settled) {
                return other(
                    "what is contested was said in plain text, which has no claims to concede",
                );
            }
            let is_valid = |agent: &Agent| {
                let status = judgement.status_of(*agent);
                status.is_none_or(|status| status == Status::Valid)
            };
            return Some(if CORE_AGENTS.iter().all(is_valid) {
                SkipReason::Settled
            } else {
                SkipReason::NoAnswer
            });
        }
        if round > 2
            && open.reporting_again.is_empty()
            && let Some(why) = self.without_move(round - 1)
        {
            return Some(why);
        }
        if self.until <= Instant::now() {
            return other("no time is left for it");
        }
        None
    }

    /// Fits a round beside the synthesis after it, for which it earmarks the money. Returns the round
    /// with the larger share that fits, and what it lacks if neither does.
    fn fit(
        &self,
        round: u8,
        open: Open,
        input: &RoundInput<'_>,
    ) -> Result<(LaterRound, Option<Shortage>), Failure> {
        let share = 1.0;
        let mut held = LaterRound { round, open, share };
        let mut shortage = self.earmark_synthesis(&held, input)?;
        if shortage.is_some() {
            held.share = MIN_SHARE;
            shortage = self.earmark_synthesis(&held, input)?;
        }
        Ok((held, shortage))
    }

    /// Earmarks the money for the synthesis after a round. Returns what the round lacks beside it.
    fn earmark_synthesis(
        &self,
        held: &LaterRound,
        input: &RoundInput<'_>,
    ) -> Result<Option<Shortage>, Failure> {
        let LaterRound { round, open, share } = held;
        let again = &open.reporting_again;
        let written = input.latest.iter().map(|(agent, outcome)| {
            let limit = again
                .contains(agent)
                .then(|| self.may_write(*agent, *share));
            outcome.tokens().max(limit.map_or(0, u64::from))
        });
        let cost = trim::synthesis_cost(self.stage(), &self.trimmed, written.collect())?;
        self.run.earmark(Earmark::Synthesis, cost);
        let decisions = self.worst_decisions(*round, &open.holders, input)?;
        let worst = decisions + self.worst_reports(again, *share)?;
        let left = self.run.ledger().left();
        Ok((worst > left).then_some(Shortage { worst, left }))
    }

    /// Returns the worst-case cost of the decisions of these agents.
    fn worst_decisions(
        &self,
        round: u8,
        agents: &[Agent],
        input: &RoundInput<'_>,
    ) -> Result<Usd, Failure> {
        self.worst::<Decisions>(agents, |agent, model| {
            let held = resolve::held(self.request, round, agent, input.claims);
            let limit = model.limit_for(resolve::max_tokens(&held));
            Ok((self.resolve_prompt(model, &held)?, 0, limit))
        })
    }

    /// Returns the worst-case cost of new reports of these agents, each at this share of its first
    /// output limit.
    fn worst_reports(&self, agents: &[Agent], share: f64) -> Result<Usd, Failure> {
        self.worst::<AgentReport>(agents, |agent, model| {
            let limit = self.may_write(agent, share);
            let prompt = self.prompt(agent, model, limit)?;
            Ok((prompt, self.images(agent).len(), limit))
        })
    }

    /// Returns the worst-case cost of one call of each agent for a `T`. `call` gives its prompt, the
    /// number of images and the output limit.
    fn worst<T: JsonSchema + 'static>(
        &self,
        agents: &[Agent],
        call: impl Fn(Agent, &RoleModel) -> Result<(Rendered, usize, u32), Failure>,
    ) -> Result<Usd, Failure> {
        let schema = schema_of::<T>().bytes();
        let mut worst = Usd::ZERO;
        for agent in agents {
            let Some(model) = self.deps.role(Role::Agent(*agent)) else {
                continue;
            };
            let (prompt, images, limit) = call(*agent, model)?;
            let read = budget::text_bound(&prompt.user);
            let input = InputBound::new(trusted_bytes(&prompt.system) + schema, read, &[], images);
            worst += budget::worst_cost(model, input, limit);
        }
        Ok(worst)
    }

    /// Returns why a later round settles nothing further; `None` if an agent conceded a claim in it,
    /// or reported again.
    fn without_move(&self, round: u8) -> Option<SkipReason> {
        let events = self.run.events();
        let outcomes = Transcript::of(&events).outcomes;
        let mut of_round = outcomes.iter().filter(|it| it.round == round);
        let moved = |finished: &AgentFinished| match &finished.resolved {
            Some(resolved) => resolved.resolutions.iter().any(Resolution::concedes),
            None => finished.outcome.is_answered(),
        };
        if of_round.clone().any(|it| moved(it)) {
            None
        } else if of_round.any(|it| it.outcome.is_answered()) {
            Some(SkipReason::Kept)
        } else {
            Some(SkipReason::Other(
                "no agent decided in the round before".to_owned(),
            ))
        }
    }

    /// Runs one later round with all agents at once. Returns the outcomes in the order of the
    /// agents.
    pub(super) async fn later_round(
        &self,
        held: &LaterRound,
        input: &RoundInput<'_>,
    ) -> Result<Vec<(Agent, AgentOutcome)>, Failure> {
        let LaterRound { round, open, share } = held;
        let turns = open.agents().into_iter().map(|agent| async move {
            let earlier = input.latest.get(&agent).filter(|it| it.is_answered());
            let outcome = match earlier.filter(|_| open.holders.contains(&agent)) {
                Some(earlier) => self.decide(*round, agent, earlier, input.claims).await?,
                None => self.turn(*round, agent, *share, self.until).await?,
            };
            Ok((agent, outcome))
        });
        join_all(turns).await.into_iter().collect()
    }
}
