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

use super::Failure;
use super::budget::{self, InputBound};
use super::call::{Ask, buy_json};
use super::case::Case;
use super::contested::{Claim, one_line};
use super::hedge::Hedge;
use super::prompts::{Rendered, set};
use super::table::Table;
use crate::config::{OutputForm, PromptSet, RoleModel};
use crate::domain::{Agent, Finding, Judgement, Mode, Review, Role, Status, Usd};
use crate::journal::{AgentOutcome, Event, Reviewed, reviewed_key, settled_key};
use crate::llm::Image;

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

/// Has the members check the claims, and records what they find, once; `revisions` is set aside for those who revise after it.
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
    let seat = || seat(table, round, claims, judgement, latest, revisions);
    let Board { reviewers, passes, mut notes } = table.run.compute("choosing reviewers", seat).await??;
    // What reviewers and their repairs cost is not taken from those who revise.
    let held = table.run.ledger().held();
    table.run.hold(held + revisions);
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
    let outcomes = join_all(asked).await;
    table.run.hold(held);
    let mut reviews = vec![];
    for (agent, outcome) in reviewers.iter().zip(outcomes) {
        let passes = outcome?;
        let unread = unread(&passes);
        if unread > 0 {
            notes.push(format!("{unread} findings of {agent} name nothing that was shown"));
        }
        match passes {
            (Ok(first), None) => reviews.extend(collate(*agent, claims, &first.found, None)),
            (Ok(first), Some(Ok(second))) => {
                reviews.extend(collate(*agent, claims, &first.found, Some(&second.found)));
            }
            (Ok(only), Some(Err(cause))) | (Err(cause), Some(Ok(only))) => {
                notes.push(format!("{agent} reviewed once only: {cause}"));
                reviews.extend(collate(*agent, claims, &only.found, None));
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
    let mut found: Vec<(u8, Review)> = vec![];
    for event in events {
        match event {
            Event::Reviewed(reviewed) => {
                // Who has looked at a claim again is heard with what he found last.
                let again = |old: &Review| {
                    reviewed.reviews.iter().any(|new| new.reviewer == old.reviewer && new.topic == old.topic)
                };
                found.retain(|(_, old)| !again(old));
                found.extend(reviewed.reviews.iter().map(|review| (reviewed.round, review.clone())));
            }
            Event::AgentFinished(finished) => {
                for reason in finished.revision.iter().flat_map(|revision| &revision.reasons) {
                    let about = |(round, review): &(u8, Review)| {
                        if *round == finished.round {
                            review.claim == reason.claim
                        } else {
                            review.topic == reason.topic
                        }
                    };
                    for known in found.iter_mut().filter(|known| about(known)) {
                        known.1.holders.retain(|holder| holder != finished.agent.as_str());
                    }
                    // What he held against a position may be against the one that he takes now.
                    found.retain(|known| !about(known) || known.1.reviewer != finished.agent || known.1.value() > 0.0);
                }
            }
            _ => {}
        }
    }
    found.into_iter().map(|(_, review)| review).filter(|review| !review.holders.is_empty()).collect()
}

/// Everybody who gave a usable report in JSON reviews, twice in `deep`; where the money does not carry that beside the
/// revisions, once, then only the core, then one of each side.
fn seat(
    table: &Table<'_>,
    round: u8,
    claims: &[Claim],
    judgement: &Judgement,
    latest: &BTreeMap<Agent, AgentOutcome>,
    revisions: Usd,
) -> Result<Board, Failure> {
    let able = |agent: &Agent| {
        let json = table
            .house
            .role(Role::Agent(*agent))
            .is_some_and(|model| model.output == OutputForm::Json && model.prompts != PromptSet::Text);
        let discarded = judgement.scores.iter().any(|s| s.agent == agent.as_str() && s.status == Status::Discard);
        json && !discarded && matches!(latest.get(agent), Some(AgentOutcome::Answered { .. }))
    };
    let all: Vec<Agent> = table.trimmed.agents.iter().copied().filter(able).collect();
    if all.is_empty() {
        let notes = vec!["no review: nobody can review in JSON".to_owned()];
        return Ok(Board { reviewers: vec![], passes: 0, notes });
    }
    let core: Vec<Agent> = all.iter().copied().filter(|agent| agent.is_core()).collect();
    let few = of_each_side(&all, claims);
    let twice = table.case.question.mode == Mode::Deep;
    let choices = [(&all, 2u8, twice), (&all, 1, true), (&core, 1, true), (&few, 1, true)];
    let left = table.run.ledger().left();
    for (reviewers, passes, _) in choices.into_iter().filter(|(seats, _, wanted)| *wanted && !seats.is_empty()) {
        let calls =
            reviewers.iter().flat_map(|agent| Pass::ALL.into_iter().take(usize::from(passes)).map(|p| (*agent, p)));
        let mut worst = Usd::ZERO;
        for (agent, pass) in calls {
            worst += price(table, round, agent, pass, claims)?;
        }
        if worst + revisions <= left {
            let mut notes = vec![];
            if twice && passes < 2 {
                notes.push("the cap has no room for two passes beside the revisions".to_owned());
            }
            if reviewers.len() < all.len() {
                let names: Vec<&str> = reviewers.iter().map(|agent| agent.as_str()).collect();
                notes.push(format!("the cap has room for few reviewers beside the revisions: {}", names.join(", ")));
            }
            return Ok(Board { reviewers: reviewers.clone(), passes, notes });
        }
    }
    let why = "no review: the cap has no room for it beside the revisions";
    Ok(Board { reviewers: vec![], passes: 0, notes: vec![why.to_owned()] })
}

/// The first holder of each of the two weightiest positions of the first claim.
fn of_each_side(able: &[Agent], claims: &[Claim]) -> Vec<Agent> {
    let Some(claim) = claims.first() else { return vec![] };
    let holder = |agents: &Vec<String>| able.iter().copied().find(|a| agents.iter().any(|name| name == a.as_str()));
    claim.positions.iter().take(2).filter_map(|position| holder(&position.agents)).collect()
}

/// What one pass costs at worst; nothing if it is in the journal already.
fn price(table: &Table<'_>, round: u8, agent: Agent, pass: Pass, claims: &[Claim]) -> Result<Usd, Failure> {
    let Some(model) = table.house.role(Role::Agent(agent)) else { return Ok(Usd::ZERO) };
    if table.run.recall(&settled_key(&step(round, agent, pass))).is_some() {
        return Ok(Usd::ZERO);
    }
    let order = order(table.case, round, agent, claims, pass);
    let prompt = prompt(table, agent, model, claims, &order)?;
    let schema = schemars::schema_for!(PeerReview).to_value().to_string().len();
    let read = budget::text_bound(&prompt.user);
    let input = InputBound::new(prompt.system.len() + schema, read, &[], images(table, agent).len());
    let output = model.limit_for(most_tokens(claims));
    Ok(budget::worst_case(model, input, output).map_or(Usd::ZERO, |reservation| reservation.amount))
}

fn images<'a>(table: &Table<'a>, agent: Agent) -> &'a [Image] {
    if agent == Agent::Visual { &table.case.images } else { &[] }
}

fn prompt(
    table: &Table<'_>,
    agent: Agent,
    model: &RoleModel,
    claims: &[Claim],
    order: &Order,
) -> Result<Rendered, Failure> {
    let mut values = table.case.values(Some(table.plan.task_type.as_str()), &[]);
    set(&mut values, "images", json!(images(table, agent).len()));
    set(&mut values, "claims", shown(claims, order));
    Ok(table.house.prompts.render(model.prompts, "review", values)?)
}

/// Tokens of a review, thinking not counted.
fn most_tokens(claims: &[Claim]) -> u32 {
    let positions = u32::try_from(claims.iter().map(|claim| claim.positions.len()).sum::<usize>()).unwrap_or(u32::MAX);
    let wanted = BASE_TOKENS.saturating_add(TOKENS_A_POSITION.saturating_mul(positions));
    wanted.min(MOST_TOKENS)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    First,
    Swapped,
}

impl Pass {
    const ALL: [Pass; 2] = [Pass::First, Pass::Swapped];
}

fn step(round: u8, agent: Agent, pass: Pass) -> String {
    let step = format!("r{round}/review/{agent}");
    if pass == Pass::First { step } else { format!("{step}/swapped") }
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

/// What was read of one pass.
struct Reading {
    found: Vec<Found>,
    /// Verdicts that name no claim or position that was shown.
    unread: usize,
}

/// Of both passes.
fn unread(passes: &(Result<Reading, String>, Option<Result<Reading, String>>)) -> usize {
    let of = |pass: &Result<Reading, String>| pass.as_ref().map_or(0, |reading| reading.unread);
    of(&passes.0) + passes.1.as_ref().map_or(0, of)
}

/// One pass of one reviewer; the inner error says why there is none.
async fn ask(
    table: &Table<'_>,
    round: u8,
    agent: Agent,
    claims: &[Claim],
    pass: Pass,
    until: Instant,
) -> Result<Result<Reading, String>, Failure> {
    let role = Role::Agent(agent);
    let Some(model) = table.house.role(role) else { return Ok(Err("not configured".to_owned())) };
    let order = order(table.case, round, agent, claims, pass);
    let ask = Ask {
        step: step(round, agent, pass),
        role,
        prompt: prompt(table, agent, model, claims, &order)?,
        images: images(table, agent),
        model_texts: vec![],
        max_tokens: model.max_tokens,
        answer_tokens: Some(most_tokens(claims)),
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

/// The verdicts by place. Two that contradict each other on one position leave it undecided.
fn read(review: &PeerReview, claims: &[Claim], order: &Order) -> Reading {
    let mut reading = Reading { found: vec![], unread: 0 };
    for verdict in &review.verdicts {
        let Some(place) = place(verdict, claims, order) else {
            reading.unread += 1;
            continue;
        };
        let known = reading.found.iter_mut().find(|(own, ..)| *own == place);
        match known {
            Some((_, finding, _)) if *finding != verdict.finding => *finding = Finding::Undecided,
            Some(_) => {}
            None => {
                let reason: String = one_line(&verdict.reason).chars().take(REASON_CHARS).collect();
                reading.found.push((place, verdict.finding, reason));
            }
        }
    }
    reading
}

/// Where a verdict belongs, by what stood under its letter: "A", "a)", "Position A".
fn place(verdict: &Verdict, claims: &[Claim], order: &Order) -> Option<(usize, usize)> {
    let at = claims.iter().position(|claim| claim.id.eq_ignore_ascii_case(verdict.claim.trim()))?;
    let (_, positions) = order.iter().find(|(own, _)| *own == at)?;
    let mut words = verdict.position.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let named = words.find(|word| !word.eq_ignore_ascii_case("position"))?;
    let (_, position) = positions.iter().enumerate().find(|(n, _)| letter(*n).eq_ignore_ascii_case(named))?;
    Some((at, *position))
}

/// Both passes of one reviewer put together, in the order of the claims. A position that one of two passes left out counts as
/// undecided there.
fn collate(reviewer: Agent, claims: &[Claim], first: &[Found], second: Option<&[Found]>) -> Vec<Review> {
    let of = |found: &[Found], place: (usize, usize)| {
        found.iter().find(|(own, ..)| *own == place).map(|(_, finding, reason)| (*finding, reason.clone()))
    };
    let places = claims.iter().enumerate().flat_map(|(c, claim)| (0..claim.positions.len()).map(move |p| (c, p)));
    let review = |place: (usize, usize)| {
        let claim = claims.get(place.0)?;
        let position = claim.positions.get(place.1)?;
        let both = (of(first, place), second.map(|second| of(second, place)));
        let (finding, swapped, reason) = match both {
            (Some((finding, reason)), None) => (finding, None, reason),
            (Some((finding, reason)), Some(second)) => {
                (finding, Some(second.map_or(Finding::Undecided, |(finding, _)| finding)), reason)
            }
            (None, Some(Some((second, reason)))) => (Finding::Undecided, Some(second), reason),
            (None, None | Some(None)) => return None,
        };
        Some(Review {
            reviewer,
            claim: claim.id.clone(),
            topic: claim.topic.clone(),
            on_final_answer: claim.on_final_answer,
            position: position.text.clone(),
            own: position.agents.iter().any(|holder| holder == reviewer.as_str()),
            holders: position.agents.clone(),
            finding,
            swapped,
            reason,
        })
    };
    places.filter_map(review).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{AgentReport, Obtained};
    use crate::journal::{AgentFinished, Revised, RevisionReason};

    fn review(reviewer: Agent, position: &str, holders: &[&str]) -> Review {
        Review {
            reviewer,
            claim: "C1".into(),
            topic: "final answer".into(),
            on_final_answer: true,
            position: position.into(),
            own: holders.contains(&reviewer.as_str()),
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
            // What he found of his own position, and what he held against the one that he takes now.
            review(Agent::Critic, "60", &["critic", "verifier"]),
            Review { finding: Finding::Fails, ..review(Agent::Critic, "61", &["verifier"]) },
        ];
        let reasons =
            vec![RevisionReason { claim: "C1".into(), topic: "final answer".into(), reason: "31 + 30 = 61".into() }];
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
        let left = standing(events.iter());
        assert_eq!(left[0], reviews[0]);
        assert!(left[1..].iter().all(|review| !review.counts()), "nobody is a judge of his own position: {left:?}");
        assert_eq!(standing(events[..1].iter()), reviews);
        // A later look at a claim takes the place of the earlier one.
        let again = Event::Reviewed(Box::new(Reviewed { round: 3, reviews: reviews[..1].to_vec(), notes: vec![] }));
        let found = standing(events[..1].iter().chain([&again]));
        assert_eq!(found.iter().filter(|review| review.reviewer == Agent::Critic).count(), 1);
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
        let first =
            hand(vec![verdict("C1", "Position A", Finding::Holds), verdict(" c2", "b)", Finding::Fails)], &straight);
        let second = hand(
            vec![
                verdict("C1", "B", Finding::Holds),
                verdict("C2", "B", Finding::Holds),
                verdict("C2", "B", Finding::Fails),
                verdict("C9", "A", Finding::Fails),
                verdict("C2", "Q", Finding::Fails),
            ],
            &reversed,
        );
        assert_eq!((first.unread, second.unread), (0, 2));
        let found = collate(Agent::Critic, &claims, &first.found, Some(&second.found));
        let told: Vec<_> = found.iter().map(|r| (r.position.as_str(), r.finding, r.swapped)).collect();
        assert_eq!(
            told,
            [
                ("one", Finding::Holds, Some(Finding::Holds)),
                ("three", Finding::Undecided, Some(Finding::Undecided)),
                ("four", Finding::Fails, Some(Finding::Undecided)),
            ]
        );
    }
}
