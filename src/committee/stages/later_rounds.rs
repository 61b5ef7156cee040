//! Later rounds: whether one is held, for which agents, and its outcomes.

use futures_util::future::join_all;
use schemars::JsonSchema;
use tokio::time::Instant;

use crate::committee::call::prompts::Rendered;
use crate::committee::failure::Failure;
use crate::committee::money::budget::{self, InputBound};
use crate::committee::money::trim;
use crate::committee::output_shapes::Decisions;
use crate::committee::schemas::schema_of;
use crate::committee::stages::open_claims::Open;
use crate::committee::stages::resolve;
use crate::committee::stages::round_context::{RoundContext, RoundInput};
use crate::config::RoleModel;
use crate::domain::{Agent, AgentReport, Earmark, Judgement, Resolution, Role, Usd};
use crate::journal::step::{RoundStep, SkipStep};
use crate::journal::{AgentOutcome, Event, RoundSkipped, RoundStarted, SkipReason, Transcript};

/// The shares of its first output limit that an agent may use when it reports again.
const SHARES: [f64; 2] = [1.0, 0.5];

/// What a further round may hold.
enum Affordable {
    Part(Open),
    /// The round is skipped, for this reason.
    Nothing(SkipReason),
}

impl RoundContext<'_> {
    /// Records that a later round begins, or why it is skipped. A decision made before a crash
    /// stands, because time and money look different afterwards. `None`: this round and all later
    /// ones are skipped.
    pub(super) async fn begin(
        &self,
        round: u8,
        open: Open,
        heard: &RoundInput<'_>,
        judgement: &Judgement,
    ) -> Result<Option<Open>, Failure> {
        if self.run.recorded(&SkipStep { round }).is_some() {
            return Ok(None);
        }
        if let Some(started) = self.run.recorded(&RoundStep { round }) {
            let asked = |agents: Vec<Agent>| {
                agents
                    .into_iter()
                    .filter(|a| started.agents.contains(a))
                    .collect()
            };
            return Ok(Some(Open {
                holders: asked(open.holders),
                anew: asked(open.anew),
            }));
        }
        let open = match self.affordable(round, open, heard, judgement)? {
            Affordable::Part(open) => open,
            Affordable::Nothing(why) => {
                for skipped in round..=self.plan.rounds {
                    self.run
                        .record(Event::RoundSkipped(RoundSkipped {
                            round: skipped,
                            why: why.clone(),
                        }))
                        .await?;
                }
                return Ok(None);
            }
        };
        let topics: Vec<&str> = heard
            .claims
            .iter()
            .map(|claim| claim.topic.as_str())
            .collect();
        let why = if open.holders.is_empty() {
            "some core outputs are not VALID".to_owned()
        } else {
            format!("contested: {}", topics.join(", "))
        };
        self.run
            .record(Event::RoundStarted(RoundStarted {
                round,
                agents: open.agents(),
                why,
                ahead: false,
            }))
            .await?;
        Ok(Some(open))
    }

    /// Returns the part of a further round that is needed and fits the time and money left.
    fn affordable(
        &self,
        round: u8,
        open: Open,
        heard: &RoundInput<'_>,
        judgement: &Judgement,
    ) -> Result<Affordable, Failure> {
        let nothing = |why: &str| Ok(Affordable::Nothing(SkipReason::Other(why.to_owned())));
        if open.agents().is_empty() {
            let prose = "what is contested was said in plain text, which has no claims to concede";
            let contested = judgement.disagreements.iter().any(|d| !d.settled);
            return if contested {
                nothing(prose)
            } else {
                Ok(Affordable::Nothing(SkipReason::Settled))
            };
        }
        if round > 2 && open.anew.is_empty() && !self.moved(round - 1) {
            return Ok(Affordable::Nothing(SkipReason::Kept));
        }
        if self
            .until
            .saturating_duration_since(Instant::now())
            .is_zero()
        {
            return nothing("no time is left for it");
        }
        let least = SHARES.last().copied().unwrap_or(1.0);
        let decisions = self.worst_decisions(round, &open.holders, heard)?;
        let mut worst = decisions + self.worst_reports(&open.anew, least)?;
        let mut left = self.left_beside_synthesis(&open.anew, least, heard)?;
        if worst <= left {
            return Ok(Affordable::Part(open));
        }
        if !open.holders.is_empty() {
            (worst, left) = (decisions, self.left_beside_synthesis(&[], least, heard)?);
            if worst <= left {
                return Ok(Affordable::Part(Open {
                    anew: vec![],
                    ..open
                }));
            }
        }
        nothing(&format!(
            "the cap cannot carry it: it may cost {worst}, and {left} is left"
        ))
    }

    /// Earmarks the money for the synthesis after a round in which these agents report anew, each
    /// with this share of its first output limit. Returns what is left for the round.
    fn left_beside_synthesis(
        &self,
        anew: &[Agent],
        share: f64,
        heard: &RoundInput<'_>,
    ) -> Result<Usd, Failure> {
        let written = heard.latest.iter().map(|(agent, outcome)| {
            let again = anew.contains(agent).then(|| self.may_write(*agent, share));
            outcome.tokens().max(again.map_or(0, u64::from))
        });
        let written = written.collect();
        let cost = trim::synthesis_cost(self.deps, self.request, &self.trimmed, written)?;
        self.run.earmark(Earmark::Synthesis, cost);
        Ok(self.run.ledger().left())
    }

    /// Returns the worst-case cost of the decisions of these agents.
    fn worst_decisions(
        &self,
        round: u8,
        agents: &[Agent],
        heard: &RoundInput<'_>,
    ) -> Result<Usd, Failure> {
        self.worst::<Decisions>(agents, |agent, model| {
            let held = resolve::held(self.request, round, agent, heard.claims);
            let limit = model.limit_for(resolve::max_tokens(&held));
            Ok((self.resolve_prompt(model, &held)?, 0, limit))
        })
    }

    /// Returns the worst-case cost of new reports of these agents, each at this share of its first
    /// output limit.
    fn worst_reports(&self, agents: &[Agent], share: f64) -> Result<Usd, Failure> {
        self.worst::<AgentReport>(agents, |agent, model| {
            let limit = self.may_write(agent, share);
            Ok((
                self.prompt(agent, model, limit)?,
                self.images(agent).len(),
                limit,
            ))
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
            let input = InputBound::new(prompt.system.len() + schema, read, &[], images);
            worst += budget::worst_cost(model, input, limit);
        }
        Ok(worst)
    }

    /// True if a round changed any report.
    pub(super) fn moved(&self, round: u8) -> bool {
        let events = self.run.events();
        let transcript = Transcript::of(&events);
        let mut of_round = transcript
            .outcomes
            .iter()
            .filter(|finished| finished.round == round);
        of_round.any(|finished| match (&finished.outcome, &finished.resolved) {
            (AgentOutcome::Answered { .. }, Some(resolved)) => {
                resolved.resolutions.iter().any(Resolution::concedes)
            }
            (AgentOutcome::Answered { .. }, None) => true,
            (AgentOutcome::Failed { .. }, _) => false,
        })
    }

    /// Runs one later round with all agents at once. Returns the outcomes in the order of the
    /// agents.
    pub(super) async fn later_round(
        &self,
        round: u8,
        open: &Open,
        heard: &RoundInput<'_>,
    ) -> Result<Vec<(Agent, AgentOutcome)>, Failure> {
        let decisions = self.worst_decisions(round, &open.holders, heard)?;
        let mut share = SHARES.last().copied().unwrap_or(1.0);
        for wanted in SHARES.iter().rev() {
            let left = self.left_beside_synthesis(&open.anew, *wanted, heard)?;
            if decisions + self.worst_reports(&open.anew, *wanted)? <= left {
                share = *wanted;
            }
        }
        self.left_beside_synthesis(&open.anew, share, heard)?;
        let turns = open.agents().into_iter().map(|agent| async move {
            let outcome = match heard
                .report(agent)
                .filter(|_| open.holders.contains(&agent))
            {
                Some(report) => self.decide(round, agent, report, heard).await?,
                None => self.turn(round, agent, share, self.until).await?,
            };
            Ok((agent, outcome))
        });
        join_all(turns).await.into_iter().collect()
    }
}
