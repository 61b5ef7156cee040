//! Peer review (SPEC 5): before anybody revises, every member that answered checks the positions on the contested claims,
//! without knowing who holds them. In `deep` each is asked twice, the second time with everything in reverse order, since
//! models favour what they read first.

use std::collections::BTreeMap;

use futures_util::future::{join, join_all};
use rand::seq::SliceRandom;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::budget::{self, InputBound, LEAST_OUTPUT_TOKENS};
use super::call::{Ask, buy_json};
use super::case::Case;
use super::contested::Claim;
use super::hedge::Hedge;
use super::prompts::set;
use super::table::{SCAFFOLDING_TOKENS, Table};
use super::{Committee, Failure};
use crate::config::{OutputForm, PromptSet};
use crate::domain::{Agent, Finding, Judgement, Mode, Review, Role, Status, Usd};
use crate::journal::{AgentOutcome, Event, Reviewed, reviewed_key};

/// Output tokens of a review: so many at least, and for each position.
const BASE_TOKENS: u32 = 160;
const TOKENS_A_POSITION: u32 = 110;

/// However many positions there are.
pub(super) const MOST_TOKENS: u32 = 2000;

/// Of the time that the rounds have left, reviews take at most this share.
const SHARE_OF_TIME: f64 = 0.4;

/// Characters of a reason that are kept.
const REASON_CHARS: usize = 300;

/// What a reviewer hands in.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PeerReview {
    /// One for each position of each contested claim.
    pub verdicts: Vec<Verdict>,
}

/// What a reviewer finds of one position.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    /// The id of the claim, such as "C1".
    pub claim: String,
    /// The letter of the position, such as "A".
    pub position: String,
    pub finding: Finding,
    /// The calculation, fact, case or wording that decides it, in one or two sentences.
    pub reason: String,
}

/// Who reviews, and how often.
struct Board {
    reviewers: Vec<Agent>,
    passes: u8,
    notes: Vec<String>,
}

/// What the members find of the claims; empty if nobody can be asked. Recorded once.
///
/// # Errors
/// As every call.
pub async fn hold(
    table: &Table<'_>,
    round: u8,
    claims: &[Claim],
    judgement: &Judgement,
    latest: &BTreeMap<Agent, AgentOutcome>,
    revisions: Usd,
) -> Result<(), Failure> {
    if claims.is_empty() || table.house.policy.review.is_off() || table.run.recall(&reviewed_key(round)).is_some() {
        return Ok(());
    }
    let Board { reviewers, passes, mut notes } = seat(table, claims, judgement, latest, revisions);
    let now = Instant::now();
    let until = now + table.until.saturating_duration_since(now).mul_f64(SHARE_OF_TIME);
    let asked = reviewers.iter().map(|agent| async move {
        let first = ask(table, round, *agent, claims, Pass::First, until);
        if passes < 2 {
            return Ok((first.await?, None));
        }
        let (first, second) = join(first, ask(table, round, *agent, claims, Pass::Swapped, until)).await;
        Ok::<_, Failure>((first?, Some(second?)))
    });
    let mut reviews = vec![];
    for (agent, outcome) in reviewers.iter().zip(join_all(asked).await) {
        match outcome? {
            (Ok(first), None) => reviews.extend(collate(*agent, claims, &first, None)),
            (Ok(first), Some(Ok(second))) => reviews.extend(collate(*agent, claims, &first, Some(&second))),
            (Ok(only), Some(Err(cause))) | (Err(cause), Some(Ok(only))) => {
                notes.push(format!("{agent} reviewed once only: {cause}"));
                reviews.extend(collate(*agent, claims, &only, None));
            }
            (Err(cause), _) => notes.push(format!("{agent} did not review: {cause}")),
        }
    }
    table.run.record(Event::Reviewed(Box::new(Reviewed { round, reviews, notes }))).await?;
    Ok(())
}

/// The reviews that still speak of what the agents say now: whoever has revised a claim since no longer holds the position
/// that was reviewed, and nobody gains by a review of a position that he took up later. Who finds that another's position
/// holds and then gives up his own is heard: that is the least partial of all findings.
pub fn standing<'a>(events: impl Iterator<Item = &'a Event>) -> Vec<Review> {
    let mut reviews: Vec<Review> = vec![];
    for event in events {
        match event {
            Event::Reviewed(reviewed) => reviews.extend(reviewed.reviews.iter().cloned()),
            Event::AgentFinished(finished) => {
                for reason in finished.revision.iter().flat_map(|revision| &revision.reasons) {
                    for review in reviews.iter_mut().filter(|review| review.topic == reason.topic) {
                        review.holders.retain(|holder| holder != finished.agent.as_str());
                    }
                }
            }
            _ => {}
        }
    }
    reviews.retain(|review| !review.holders.is_empty());
    reviews
}

/// Everybody who gave a usable report in JSON reviews, twice in `deep`; where the money does not carry that beside the
/// revisions, once, and then only the core.
fn seat(
    table: &Table<'_>,
    claims: &[Claim],
    judgement: &Judgement,
    latest: &BTreeMap<Agent, AgentOutcome>,
    revisions: Usd,
) -> Board {
    let able = |agent: &Agent| {
        let json = table
            .house
            .role(Role::Agent(*agent))
            .is_some_and(|model| model.output == OutputForm::Json && model.prompts != PromptSet::Text);
        let discarded = judgement.scores.iter().any(|s| s.agent == agent.as_str() && s.status == Status::Discard);
        json && !discarded && matches!(latest.get(agent), Some(AgentOutcome::Answered { .. }))
    };
    let all: Vec<Agent> = table.trimmed.agents.iter().copied().filter(able).collect();
    let core: Vec<Agent> = all.iter().copied().filter(|agent| agent.is_core()).collect();
    let twice = table.case.question.mode == Mode::Deep;
    let choices = [
        (&all, 2u8, twice, ""),
        (&all, 1, true, "every reviewer is asked once"),
        (&core, 1, true, "the core reviews, once"),
    ];
    let left = table.run.ledger().left();
    let mut notes = vec![];
    for (reviewers, passes, wanted, less) in choices {
        if !wanted || reviewers.is_empty() {
            continue;
        }
        let worst: Usd = reviewers.iter().map(|agent| price(table, *agent, claims)).sum();
        let worst = (0..passes).map(|_| worst).sum::<Usd>();
        if worst + revisions <= left {
            if twice && passes < 2 {
                notes.push(format!("the cap has no room for two passes beside the revisions: {less}"));
            }
            return Board { reviewers: reviewers.clone(), passes, notes };
        }
    }
    let why =
        if all.is_empty() { "nobody can review in JSON" } else { "the cap has no room for it beside the revisions" };
    Board { reviewers: vec![], passes: 0, notes: vec![format!("no review: {why}")] }
}

fn price(table: &Table<'_>, agent: Agent, claims: &[Claim]) -> Usd {
    let Some(model) = table.house.role(Role::Agent(agent)) else { return Usd::ZERO };
    let texts: u64 = claims
        .iter()
        .flat_map(|claim| std::iter::once(&claim.topic).chain(claim.positions.iter().map(|p| &p.text)))
        .map(|text| budget::text_bound(text))
        .sum();
    let read = budget::text_bound(&table.case.full_text()) + SCAFFOLDING_TOKENS + texts;
    let input = InputBound::new(table.house.review_bytes(Role::Agent(agent)), read, &[], 0);
    let output = most_tokens(claims, model.max_tokens);
    budget::worst_case(model, input, output).map_or(Usd::ZERO, |reservation| reservation.amount)
}

fn most_tokens(claims: &[Claim], most: u32) -> u32 {
    let positions = u32::try_from(claims.iter().map(|claim| claim.positions.len()).sum::<usize>()).unwrap_or(u32::MAX);
    let wanted = BASE_TOKENS.saturating_add(TOKENS_A_POSITION.saturating_mul(positions));
    wanted.clamp(LEAST_OUTPUT_TOKENS, MOST_TOKENS).min(most)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    First,
    Swapped,
}

/// Claims and positions in the order in which one reviewer sees them: places in `claims` and their positions.
type Order = Vec<(usize, Vec<usize>)>;

/// Seeded by run, round and reviewer; the second pass turns everything round.
fn order(case: &Case, round: u8, agent: Agent, claims: &[Claim], pass: Pass) -> Order {
    let mut random = case.random(50_000 + u64::from(round) * 100 + agent as u64);
    let mut order: Order = claims
        .iter()
        .enumerate()
        .map(|(at, claim)| {
            let mut positions: Vec<usize> = (0..claim.positions.len()).collect();
            positions.shuffle(&mut random);
            (at, positions)
        })
        .collect();
    order.shuffle(&mut random);
    if pass == Pass::Swapped {
        order.reverse();
        order.iter_mut().for_each(|(_, positions)| positions.reverse());
    }
    order
}

/// A finding with its reason, by place of claim and position.
type Found = ((usize, usize), Finding, String);

/// One pass of one reviewer; the inner error says why there is none.
async fn ask(
    table: &Table<'_>,
    round: u8,
    agent: Agent,
    claims: &[Claim],
    pass: Pass,
    until: Instant,
) -> Result<Result<Vec<Found>, String>, Failure> {
    let role = Role::Agent(agent);
    let Some(model) = table.house.role(role) else { return Ok(Err("not configured".to_owned())) };
    let order = order(table.case, round, agent, claims, pass);
    let mut values = table.case.values(Some(table.plan.task_type.as_str()), &[]);
    let images: &[_] = if agent == Agent::Visual { &table.case.images } else { &[] };
    set(&mut values, "images", json!(images.len()));
    set(&mut values, "claims", shown(claims, &order));
    let step = format!("r{round}/review/{agent}");
    let ask = Ask {
        step: if pass == Pass::First { step } else { format!("{step}/swapped") },
        role,
        prompt: table.house.prompts.render(model.prompts, "review", values)?,
        images,
        model_texts: vec![],
        max_tokens: most_tokens(claims, model.max_tokens),
        until,
        hedge: Hedge::Never,
    };
    let bought = buy_json::<PeerReview>(table.run, table.house, ask).await?;
    Ok(bought.map(|typed| read(&typed.value, claims, &order)).map_err(|unbought| unbought.cause))
}

fn shown(claims: &[Claim], order: &Order) -> Value {
    let claim = |(at, positions): &(usize, Vec<usize>)| {
        let claim = claims.get(*at)?;
        let positions: Vec<Value> = positions
            .iter()
            .filter_map(|p| claim.positions.get(*p))
            .enumerate()
            .map(|(n, position)| json!({ "letter": letter(n), "text": position.text }))
            .collect();
        Some(json!({ "id": claim.id, "topic": claim.topic, "positions": positions }))
    };
    Value::Array(order.iter().filter_map(claim).collect())
}

/// A, B, ... Z; there are never so many agents.
fn letter(at: usize) -> String {
    u8::try_from(at).ok().filter(|at| *at < 26).map_or_else(|| format!("P{at}"), |at| char::from(b'A' + at).to_string())
}

/// The verdicts by place; what names no claim or position that was shown is left out, and so is a second verdict on one.
fn read(review: &PeerReview, claims: &[Claim], order: &Order) -> Vec<Found> {
    let mut found: Vec<Found> = vec![];
    for verdict in &review.verdicts {
        let Some(at) = claims.iter().position(|claim| claim.id.eq_ignore_ascii_case(verdict.claim.trim())) else {
            continue;
        };
        let Some((_, positions)) = order.iter().find(|(own, _)| *own == at) else { continue };
        let named = verdict.position.trim();
        let place = positions.iter().enumerate().find(|(n, _)| letter(*n).eq_ignore_ascii_case(named));
        let Some((_, position)) = place else { continue };
        if found.iter().all(|(place, ..)| *place != (at, *position)) {
            let reason: String = verdict.reason.trim().chars().take(REASON_CHARS).collect();
            found.push(((at, *position), verdict.finding, reason));
        }
    }
    found
}

/// Both passes of one reviewer put together, in the order of the claims. A position that the second pass left out counts as
/// undecided there.
fn collate(reviewer: Agent, claims: &[Claim], first: &[Found], second: Option<&[Found]>) -> Vec<Review> {
    let of = |found: &[Found], place: (usize, usize)| {
        found.iter().find(|(own, ..)| *own == place).map(|(_, finding, reason)| (*finding, reason.clone()))
    };
    let places = claims.iter().enumerate().flat_map(|(c, claim)| (0..claim.positions.len()).map(move |p| (c, p)));
    let review = |place: (usize, usize)| {
        let claim = claims.get(place.0)?;
        let position = claim.positions.get(place.1)?;
        let (finding, reason) = of(first, place)?;
        let swapped = second.map(|second| of(second, place).map_or(Finding::Undecided, |(finding, _)| finding));
        Some(Review {
            reviewer,
            topic: claim.topic.clone(),
            on_final_answer: claim.on_final_answer,
            position: position.text.clone(),
            holders: position.agents.clone(),
            finding,
            swapped,
            reason,
        })
    };
    places.filter_map(review).collect()
}

impl Committee {
    /// Bytes of a role's stable prompt for a review, its schema included.
    fn review_bytes(&self, role: Role) -> usize {
        let Some(model) = self.role(role) else { return 0 };
        let schema = schemars::schema_for!(PeerReview).to_value().to_string().len();
        self.prompts.system_bytes(model.prompts, "review") + schema
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{AgentReport, Obtained};
    use crate::journal::{AgentFinished, Revised, RevisionReason};

    fn review(reviewer: Agent, position: &str, holders: &[&str]) -> Review {
        Review {
            reviewer,
            topic: "final answer".into(),
            on_final_answer: true,
            position: position.into(),
            holders: holders.iter().map(|name| (*name).to_owned()).collect(),
            finding: Finding::Holds,
            swapped: None,
            reason: String::new(),
        }
    }

    #[test]
    fn a_revised_position_is_held_by_nobody_and_the_new_one_gains_no_holder() {
        let reviews = vec![
            review(Agent::Critic, "61", &["solver"]),
            review(Agent::Solver, "60", &["critic"]),
            review(Agent::Verifier, "60", &["critic"]),
        ];
        let reasons = vec![RevisionReason { topic: "final answer".into(), reason: "31 + 30 = 61".into() }];
        let revised = AgentFinished {
            round: 2,
            agent: Agent::Critic,
            outcome: AgentOutcome::Answered {
                report: AgentReport::empty(Agent::Critic),
                obtained: Obtained::Clean,
                truncated: false,
                notes: vec![],
                tokens: 1,
            },
            reused_from: None,
            revision: Some(Revised { obtained: Obtained::Clean, reasons, refused: vec![] }),
        };
        let events = [
            Event::Reviewed(Box::new(Reviewed { round: 2, reviews: reviews.clone(), notes: vec![] })),
            Event::AgentFinished(Box::new(revised)),
        ];
        assert_eq!(standing(events.iter()), reviews[..1]);
        assert_eq!(standing(events[..1].iter()), reviews);
    }

    fn claim(id: &str, positions: &[&str]) -> Claim {
        let position = |text: &&str| crate::domain::Position {
            text: (*text).to_owned(),
            agents: vec!["solver".into()],
            units: vec![],
        };
        Claim {
            id: id.into(),
            topic: format!("topic of {id}"),
            on_final_answer: false,
            positions: positions.iter().map(position).collect(),
        }
    }

    fn verdict(claim: &str, position: &str, finding: Finding) -> Verdict {
        Verdict { claim: claim.into(), position: position.into(), finding, reason: "checked".into() }
    }

    #[test]
    fn verdicts_are_read_by_what_was_shown_under_the_letter() {
        let claims = [claim("C1", &["one", "two"]), claim("C2", &["three", "four"])];
        let (straight, reversed): (Order, Order) =
            (vec![(0, vec![0, 1]), (1, vec![0, 1])], vec![(1, vec![1, 0]), (0, vec![1, 0])]);
        let hand = |verdicts: Vec<Verdict>, order: &Order| read(&PeerReview { verdicts }, &claims, order);
        let first = hand(vec![verdict("C1", "A", Finding::Holds), verdict(" c2", "b", Finding::Fails)], &straight);
        let second = hand(
            vec![
                verdict("C1", "B", Finding::Holds),
                verdict("C1", "B", Finding::Fails),
                verdict("C9", "A", Finding::Fails),
                verdict("C2", "Q", Finding::Fails),
            ],
            &reversed,
        );
        let found = collate(Agent::Critic, &claims, &first, Some(&second));
        let told: Vec<_> = found.iter().map(|r| (r.position.as_str(), r.finding, r.swapped)).collect();
        assert_eq!(
            told,
            [("one", Finding::Holds, Some(Finding::Holds)), ("four", Finding::Fails, Some(Finding::Undecided)),]
        );
    }
}
