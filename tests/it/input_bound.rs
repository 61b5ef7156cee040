//! Tests the bound of input tokens against real tokenizers. Also tests the caps with a provider
//! that bills as many tokens as the worst of them counts.

use std::collections::BTreeMap;

use async_trait::async_trait;
use conclave::committee::text_bound;
use conclave::domain::{BilledTokens, Mode};
use conclave::journal::{Ending, Event, RunState};
use conclave::llm::{ChatModel, ChatReply, ChatRequest, Error, Part};
use serde::Deserialize;
use serde_json::Value;
use tempfile::TempDir;

use crate::money::{ScriptedModel, service, submit};
use crate::support::{Scenario, Setup};

/// A text with its token count by tokenizer.
#[derive(Deserialize)]
struct Counted {
    kind: String,
    text: String,
    counts: BTreeMap<String, u64>,
}

fn corpus() -> Vec<Counted> {
    #[allow(
        clippy::disallowed_methods,
        reason = "the test's own switch, not the service's"
    )]
    let path = std::env::var("CONCLAVE_TOKENIZER_COUNTS")
        .expect("CONCLAVE_TOKENIZER_COUNTS names the file that scripts/tokenizers.sh prints");
    std::fs::read_to_string(path)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn no_tokenizer_counts_more_than_the_bound() {
    let mut closest: BTreeMap<(String, String), f64> = BTreeMap::new();
    let mut above = vec![];
    for Counted { kind, text, counts } in corpus() {
        assert!(counts.len() >= 3, "at least three tokenizers");
        let bound = text_bound(&text);
        for (tokenizer, count) in counts {
            if count > bound {
                above.push(format!(
                    "{tokenizer} makes {count} of {text:?}, and the bound is {bound}"
                ));
            }
            let share = closest.entry((kind.clone(), tokenizer)).or_default();
            *share = share.max(count as f64 / bound as f64);
        }
    }
    for ((kind, tokenizer), share) in &closest {
        println!("{kind}, {tokenizer}: at most {share:.3} of the bound");
    }
    assert_eq!(above, [""; 0]);
}

/// The bound of the built-in prompts leaves half as reserve, for vocabularies that need more tokens
/// for English.
#[test]
fn prompts_use_less_than_two_thirds_of_their_reserved_tokens() {
    for Counted { text, counts, .. } in corpus()
        .into_iter()
        .filter(|counted| counted.kind == "prompt")
    {
        let reserved = text.len() as f64 / 1.9;
        let most = counts.values().max().copied().unwrap() as f64;
        assert!(most * 1.5 <= reserved, "{most} of {reserved}: {text}");
    }
}

/// Bills one token for every byte that a user or a model wrote, in the longer of both normal forms.
/// Bills English prompts at the count of the worst tokenizer plus 30 %.
struct WorstTokenizer(ScriptedModel);

#[async_trait]
impl ChatModel for WorstTokenizer {
    async fn chat(&self, request: &ChatRequest) -> Result<ChatReply, Error> {
        let reply = self.0.chat(request).await?;
        let schema = request
            .schema
            .as_ref()
            .map_or(0, |schema| schema.value.value().to_string().len());
        let ours = ((request.system.len() + schema) as f64 * 0.28 * 1.3).ceil() as u64;
        let parts = request.messages.iter().flat_map(|message| &message.parts);
        let texts = parts.filter_map(|part| match part {
            Part::Text(text) => Some(text_bound(text)),
            Part::Image(_) => None,
        });
        let input = ours + texts.sum::<u64>();
        let output = (reply.text.len() as u64).min(u64::from(request.max_tokens));
        let usage = Some(BilledTokens {
            input,
            output,
            ..BilledTokens::default()
        });
        Ok(ChatReply { usage, ..reply })
    }
}

#[tokio::test]
async fn honest_bills_of_the_worst_tokenizer_stay_within_the_caps() {
    let alphabets = [
        "the pump was replaced in March ",
        "ճնշումը ընկնում է ",
        "ʃʒɡŋθð ",
        "שָׁלוֹם ",
        "e\u{301}\u{323}\u{308}",
        "水泵更换了",
        "🇩🇪👩🏽‍🔬",
        "Xq7 ",
    ];
    let folder = TempDir::new().unwrap();
    let model = WorstTokenizer(ScriptedModel(Scenario::converging()));
    let app = service(&folder, "only", &Setup::default(), model).await;
    let (mut answered, mut refused) = (0, 0);
    for (number, alphabet) in alphabets.into_iter().enumerate() {
        for length in [200, 6000, 20_000] {
            for (mode, cap) in [(Mode::Ask, 0.10), (Mode::Deep, 0.50)] {
                // Without the prefix, a pending question would take the next message as its answer.
                let start = format!("new: {} {number} ", Scenario::converging().message);
                let message: String = start
                    .chars()
                    .chain(alphabet.chars().cycle())
                    .take(length)
                    .collect();
                let asked = answered + refused;
                let run = submit(&app, asked, mode, &message).await.unwrap();
                app.finished(run).await.unwrap().unwrap();
                let row = app.run(run).await.unwrap().unwrap();
                assert!(
                    row.spent.dollars() <= cap,
                    "{} of {cap} for {length} of {alphabet}",
                    row.spent
                );
                let events: Vec<Event> = app
                    .entries(run)
                    .await
                    .unwrap()
                    .into_iter()
                    .map(|e| e.event)
                    .collect();
                let Some(Event::Finished(finished)) = events.last() else {
                    panic!("{run} has no end")
                };
                match &finished.ending {
                    Ending::Replied { reply } => {
                        assert!(
                            !reply.meta.budget.exceeded,
                            "{length} of {alphabet}: {}",
                            over(&events)
                        );
                        answered += 1;
                    }
                    _ => {
                        assert_eq!(
                            (row.state, row.spent.dollars()),
                            (RunState::Failed, 0.0),
                            "refused for free"
                        );
                        refused += 1;
                    }
                }
            }
        }
    }
    println!("{answered} answered, {refused} refused before anything was bought");
    assert!(answered > 40, "{answered} answered, {refused} refused");
}

/// Returns the calls that cost more than was reserved for them.
fn over(events: &[Event]) -> Value {
    let mut reserved = BTreeMap::new();
    let mut over = vec![];
    for event in events {
        match event {
            Event::CallSent(sent) => {
                reserved.insert(
                    sent.call.clone(),
                    sent.reserved
                        .as_ref()
                        .map(|reservation| reservation.input_tokens),
                );
            }
            Event::CallSettled(settled) => over.push(format!(
                "{}: {:?} input tokens reserved, {:?} billed",
                settled.call,
                reserved.get(&settled.call),
                settled.usage.as_ref().map(|usage| usage.input)
            )),
            _ => {}
        }
    }
    over.into()
}
