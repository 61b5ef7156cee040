//! Measures a typical load of the committee: a plan under a schema, three agents in parallel, a
//! synthesis.
//!
//! `cargo run --release -p conclave-local-model --example measure -- MODEL.gguf [THREADS]`

use std::time::{Duration, Instant};

use conclave_local_model::{Completion, LocalModel, Message, Options, Request, Role};
use serde_json::json;

const TEXT: &str = "A committee of independent agents looks at a question from several sides before one answer is written. \
    The first agent proposes a solution and states its assumptions. The second looks for errors and for cases in which \
    the solution does not hold. The third checks every number and every claim that can be checked. ";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next();
    let mut options = Options::new(path.ok_or("usage: measure MODEL.gguf [THREADS]")?);
    let threads = arguments.next().map(|threads| threads.parse());
    options.threads = threads.transpose()?;
    let started = Instant::now();
    let model = LocalModel::load(options)?;
    let seconds = started.elapsed().as_secs_f64();
    println!("load       {seconds:6.2} s  {}", model.name());

    let started = Instant::now();
    let plan = model.complete(plan()).await?;
    report("plan", started.elapsed(), std::slice::from_ref(&plan));
    println!("{}", plan.text);

    let together = Instant::now();
    let (a, b, c) = tokio::try_join!(
        model.complete(agent("solver", 200)),
        model.complete(agent("critic", 200)),
        model.complete(agent("checker", 200))
    )?;
    let agents = [a, b, c];
    report("3 agents", together.elapsed(), &agents);

    let synthesis = Instant::now();
    let last = model.complete(agent("editor", 200)).await?;
    report("synthesis", synthesis.elapsed(), &[last]);
    println!("committee  {:6.2} s", started.elapsed().as_secs_f64());

    let started = Instant::now();
    let prompt = model.complete(agent("solver", 1)).await?;
    report("prefill", started.elapsed(), &[prompt]);
    for width in 1..=4 {
        let started = Instant::now();
        let writers = (0..width).map(|_| {
            let model = model.clone();
            #[allow(
                clippy::disallowed_methods,
                reason = "the writers are all awaited below"
            )]
            tokio::spawn(async move {
                let user =
                    Message::new(Role::User, "Write a long essay on how to plan a city park.");
                model.complete(Request::new(vec![user], 200)).await
            })
        });
        let writers: Vec<_> = writers.collect();
        let mut replies = Vec::new();
        for writer in writers {
            replies.push(writer.await??);
        }
        report(&format!("{width} writers"), started.elapsed(), &replies);
    }
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find(|line| line.starts_with("VmHWM"));
    println!("memory     {}", peak.unwrap_or("unknown"));
    Ok(())
}

fn report(what: &str, took: Duration, replies: &[Completion]) {
    let input: u32 = replies.iter().map(|reply| reply.input_tokens).sum();
    let output: u32 = replies.iter().map(|reply| reply.output_tokens).sum();
    let seconds = took.as_secs_f64();
    println!(
        "{what:<10} {seconds:6.2} s  {input} in, {output} out, {:.0} tokens/s in all, {:.0} written/s",
        f64::from(input + output) / seconds,
        f64::from(output) / seconds
    );
}

fn plan() -> Request {
    let schema = json!({
        "type": "object",
        "properties": {
            "kind": { "enum": ["factual", "analysis", "code", "creative"] },
            "difficulty": { "enum": ["low", "medium", "high"] },
            "strategy": { "enum": ["direct", "decompose", "debate"] },
            "needsTools": { "type": "boolean" }
        },
        "required": ["kind", "difficulty", "strategy", "needsTools"],
        "additionalProperties": false
    });
    let question = "What is the capital of France?";
    let mut request = agent("planner", 100);
    request.messages.push(Message::new(
        Role::User,
        format!("Classify the question as JSON: {question}"),
    ));
    request.schema = Some(schema);
    request
}

fn agent(role: &str, max_tokens: u32) -> Request {
    let system = Message::new(
        Role::System,
        format!("You are the {role} of a committee. {}", TEXT.repeat(5)),
    );
    let user = Message::new(
        Role::User,
        format!("As the {role}, write a long essay on how to plan a city park."),
    );
    Request::new(vec![system, user], max_tokens)
}
