//! `conclave plan`: a plan of tool calls, its authorization at the terminal, and its undo.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use axum::http::header::CONTENT_TYPE;
use clap::Args;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use tower::ServiceExt as _;

use super::exit::{Done, Exit, fail, failing};
use super::input::text_of;
use super::local::{start, with_prompts};
use super::output::user;
use super::plan_text;
use super::printable::without_controls;
use super::quote;
use super::remote;
use super::stop::{interruptible, stop_signal};
use super::terminal::{say, say_json};
use crate::app::App;
use crate::config::{self, Env};
use crate::domain::{RunId, Source, ToolPlan};
use crate::http;
use crate::journal::StepChanges;
use crate::tools::answers::{AuthorizedBody, ExecutionState, ExecutionView, PlanState, PlanView};

#[derive(Debug, Args)]
pub(super) struct PlanArguments {
    /// What is to be done, such as "Fix the E0425 error in src/lib.rs"; "-" or nothing reads it
    /// from standard input.
    message: Option<String>,
    /// The file that you look at, relative to the workspace.
    #[arg(long, value_name = "PATH")]
    file: Option<String>,
    /// The code of the diagnostic that you look at, such as E0425.
    #[arg(long, value_name = "CODE")]
    diagnostic: Option<String>,
    /// Print the price of the plan with the explanation of one execution; calls no model.
    #[arg(long, conflicts_with_all = ["yes", "undo"])]
    quote: bool,
    /// Authorize the whole plan without a question.
    #[arg(long, conflicts_with = "undo")]
    yes: bool,
    /// Take the changes of an execution back. A file that was changed since stays as it is.
    #[arg(long, value_name = "EXECUTION", conflicts_with = "message")]
    undo: Option<RunId>,
    /// Print what the API answers. Without --yes nothing is executed.
    #[arg(long)]
    json: bool,
    /// Ask a running service instead of working in this process; CONCLAVE_TOKEN is its token.
    #[arg(long, value_name = "URL", value_parser = remote::server_address)]
    server: Option<String>,
    /// Who asks. Default: $USER.
    #[arg(long, value_name = "ID")]
    user: Option<String>,
}

/// The API of plans as this command's user sees it.
struct Service<'a> {
    env: &'a Env,
    arguments: &'a PlanArguments,
    /// The service in this process with its API, if no server is asked.
    here: Option<(Arc<App>, Router)>,
}

pub(super) async fn run(env: &Env, arguments: PlanArguments) -> Done {
    let mut here = None;
    if arguments.server.is_none() {
        let config = with_prompts(env, config::load(env)).map_err(failing(Exit::Configuration))?;
        if config.tools_workspace.is_none() {
            let why = "tool plans are off: set TOOLS_WORKSPACE to the folder that they work in";
            return Err(fail(Exit::Configuration, why));
        }
        let app = start(config).await?;
        here = Some((Arc::clone(&app), http::tools_here(app)));
    }
    let arguments = &arguments;
    let service = Service {
        env,
        arguments,
        here,
    };
    if let Some(execution) = arguments.undo {
        let path = format!("/api/executions/{execution}/undo");
        return shown(&service.post(&path, json!({})).await?, arguments.json);
    }
    let message = text_of(arguments.message.as_deref(), "request").map_err(failing(Exit::Usage))?;
    let asked = json!({ "context": {}, "message": message, "file": arguments.file,
                        "diagnostic": arguments.diagnostic });
    if arguments.quote {
        let price: Value = service.post("/api/plans/quote", asked).await?;
        let of_cap = " for the plan, and again for each execution";
        quote::print_body(&price, of_cap, arguments.json);
        return Ok(());
    }
    let plan: PlanView = service.post("/api/plans", asked).await?;
    let is_last = !arguments.yes || plan.rejection.is_some();
    if arguments.json && is_last {
        print_json(&plan);
    } else if !arguments.json {
        say(format_args!("{}", plan_text::plan(&plan)));
    }
    if let Some(rejection) = &plan.rejection {
        return Err(fail(Exit::Refused, plan_text::rejection(rejection)));
    }
    if plan.state == PlanState::Completed || plan.state == PlanState::Halted {
        tell!("conclave: this plan was executed before: {:?}", plan.state);
        return Ok(());
    }
    if arguments.yes {
        return shown(
            &service.executed(&plan, json!({ "mode": "plan" })).await?,
            arguments.json,
        );
    }
    if arguments.json {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        tell!("conclave: nothing was executed; --yes authorizes the whole plan");
        return Ok(());
    }
    service.interact(plan).await
}

impl Service<'_> {
    /// Posts a body in the name of the user, and returns the answer of the API.
    async fn post<T: DeserializeOwned>(&self, path: &str, mut body: Value) -> Result<T, Exit> {
        if let Value::Object(fields) = &mut body {
            let user = user(self.env, self.arguments.user.as_ref());
            fields.insert("source".to_owned(), json!(Source::Cli));
            fields.insert("user".to_owned(), json!(user));
        }
        let answer = match (&self.here, &self.arguments.server) {
            (Some((app, api)), _) => answered(app, api, path, &body).await?,
            (None, server) => {
                let server = server.as_deref().unwrap_or_default();
                tokio::select! {
                    answer = remote::post(self.env, server, path, &body) => answer?,
                    _ = stop_signal() => {
                        let why = "interrupted; the server names a run only at its end, so this one goes on";
                        return Err(fail(Exit::Interrupted, format!("{why}: {server}/api/runs?kind=all")));
                    }
                }
            }
        };
        serde_json::from_value(answer).map_err(failing(Exit::Server))
    }

    async fn authorized(&self, plan: &PlanView, body: Value) -> Result<AuthorizedBody, Exit> {
        let path = format!("/api/plans/{}/authorize", plan.plan_id);
        self.post(&path, body).await
    }

    async fn executed(&self, plan: &PlanView, body: Value) -> Result<ExecutionView, Exit> {
        let authorized = self.authorized(plan, body).await?;
        authorized.execution.ok_or_else(|| {
            let why = authorized.rejection.map(|rejection| rejection.message);
            fail(Exit::Refused, why.unwrap_or_default())
        })
    }

    /// Asks before each step, as `y/N/a/c`, and before the first step also whether the plan is to be
    /// changed.
    async fn interact(&self, plan: PlanView) -> Done {
        let steps = &plan.plan.steps;
        let is_done = |id: &String| plan.next_step.as_ref().is_some_and(|next| next != id);
        let done = steps
            .iter()
            .take_while(|step| is_done(&step.step_id))
            .count();
        let mut may_change = plan.executions.is_empty();
        let mut edit = None;
        let mut number = done;
        while let Some(step) = steps.get(number) {
            put(&plan_text::asked(number, step, &plan));
            match choice(may_change).await? {
                'y' => {
                    let body = json!({ "mode": "step", "stepId": step.step_id });
                    shown(&self.executed(&plan, body).await?, false)?;
                }
                'a' => {
                    let body = json!({ "mode": "plan" });
                    return shown(&self.executed(&plan, body).await?, false);
                }
                'm' if may_change => {
                    if let Some(done) = self.modified(&plan, &mut edit).await? {
                        return shown(&done, false);
                    }
                    continue;
                }
                said => {
                    let all = steps.len();
                    let mut what = "nothing more is executed";
                    if said == 'c' {
                        self.executed(&plan, json!({ "mode": "cancel" })).await?;
                        what = "the plan is cancelled";
                    }
                    tell!("conclave: {what}; {number} of {all} steps were executed");
                    return Ok(());
                }
            }
            may_change = false;
            number += 1;
        }
        Ok(())
    }

    /// Lets the user edit the plan, and executes it if the user confirms it. `None` if it is unchanged,
    /// rejected or not confirmed; then the text is kept for the next edit.
    async fn modified(
        &self,
        plan: &PlanView,
        edit: &mut Option<String>,
    ) -> Result<Option<ExecutionView>, Exit> {
        let text = edit.take();
        let text = text.unwrap_or_else(|| pretty(&plan.plan));
        let why = match self.edited(&text) {
            Err(error) => format!("the editor gave no plan: {error}"),
            Ok(text) => match serde_json::from_str::<ToolPlan>(edit.insert(text)) {
                Err(error) => format!("this is not a plan: {error}; m opens your text again"),
                Ok(changed) if changed == plan.plan => "the plan is unchanged".to_owned(),
                Ok(changed) => {
                    let check = json!({ "mode": "check", "plan": changed });
                    let mut authorized = self.sent(plan, check, edit.as_deref()).await?;
                    let mut why = "nothing was executed".to_owned();
                    if let Some(changes) = authorized.changes.take()
                        && confirmed(&changed, &changes).await?
                    {
                        let all =
                            json!({ "mode": "modified", "plan": changed, "changes": changes });
                        authorized = self.sent(plan, all, edit.as_deref()).await?;
                    }
                    if let Some(execution) = authorized.execution {
                        return Ok(Some(execution));
                    }
                    if let Some(rejection) = &authorized.rejection {
                        why = without_controls(&plan_text::rejection(rejection)).into_owned();
                    }
                    format!("{why}; m opens your text again")
                }
            },
        };
        tell!("conclave: {why}");
        Ok(None)
    }

    /// Sends a plan that the user changed. The answer is empty if the API refuses the request, which
    /// says why. After another failure the user's text stays in a file.
    async fn sent(
        &self,
        plan: &PlanView,
        body: Value,
        text: Option<&str>,
    ) -> Result<AuthorizedBody, Exit> {
        match self.authorized(plan, body).await {
            Err(Exit::Refused) => Ok(AuthorizedBody::default()),
            Err(exit) => {
                if let Some((_, path)) = file(text.unwrap_or_default())
                    .ok()
                    .and_then(|file| file.keep().ok())
                {
                    tell!("conclave: your text is in {}", path.display());
                }
                Err(exit)
            }
            sent => sent,
        }
    }

    /// Opens a text in the user's editor, and returns it as it was saved.
    fn edited(&self, text: &str) -> std::io::Result<String> {
        let file = file(text)?;
        let mut editors = ["VISUAL", "EDITOR"].into_iter();
        let editor = editors.find_map(|name| self.env.get(name)).unwrap_or("vi");
        let mut words = editor.split_whitespace();
        let program = words.next().unwrap_or("vi");
        let status = std::process::Command::new(program)
            .args(words)
            .arg(file.path())
            .status()
            .map_err(|error| std::io::Error::other(format!("{program}: {error}")))?;
        if !status.success() {
            let why = format!("{program} ended with {status}");
            return Err(std::io::Error::other(why));
        }
        std::fs::read_to_string(file.path())
    }
}

/// Writes a text into a new file, for an editor.
fn file(text: &str) -> std::io::Result<NamedTempFile> {
    let mut file = tempfile::Builder::new()
        .prefix("conclave-plan-")
        .suffix(".json")
        .tempfile()?;
    file.write_all(text.as_bytes())?;
    Ok(file)
}

/// Shows a changed plan, and asks whether to execute all of it.
async fn confirmed(changed: &ToolPlan, changes: &[StepChanges]) -> Result<bool, Exit> {
    put(&plan_text::changed(changed, changes));
    let choices = [('y', "yes"), ('n', "no")];
    Ok(answer("Execute the changed plan? [y/N] ", &choices).await? == 'y')
}

/// Posts a body to the API in this process. A signal that ends the program cancels the run.
async fn answered(app: &App, api: &Router, path: &str, body: &Value) -> Result<Value, Exit> {
    let request = Request::post(path).header(CONTENT_TYPE, "application/json");
    let request = request.body(Body::from(body.to_string()));
    let request = request.map_err(failing(Exit::Unexpected))?;
    let response = async {
        api.clone()
            .oneshot(request)
            .await
            .map_err(failing(Exit::Unexpected))
    };
    let response = interruptible(app, response).await?;
    let status = response.status().as_u16();
    let bytes = to_bytes(response.into_body(), usize::MAX).await;
    let bytes = bytes.map_err(failing(Exit::Unexpected))?;
    remote::outcome(status, serde_json::from_slice(&bytes).unwrap_or_default())
}

/// Prints what a question is about, on standard error if standard output is no terminal.
fn put(text: &str) {
    say(format_args!("{text}"));
    if !std::io::stdout().is_terminal() {
        tell!("{}", without_controls(text));
    }
}

/// Reads the user's choice. No answer is a no.
async fn choice(may_change: bool) -> Result<char, Exit> {
    let (letters, more) = if may_change {
        ("y/N/a/c/m", ", m=modify the plan")
    } else {
        ("y/N/a/c", "")
    };
    let question = format!("Execute? [{letters}] (y=yes, n=no, a=all, c=cancel plan{more}) ");
    let all = [
        ('y', "yes"),
        ('n', "no"),
        ('a', "all"),
        ('c', "cancel"),
        ('m', "modify"),
    ];
    let choices = if may_change { &all[..] } else { &all[..4] };
    answer(&question, choices).await
}

/// Asks until the answer is one of the letters or words, or empty, or at its end: the last two are a
/// no. A word that only begins like a choice is none.
async fn answer(question: &str, choices: &[(char, &str)]) -> Result<char, Exit> {
    loop {
        let _ = write!(std::io::stderr(), "{question}");
        let line = line().await?;
        let said = line.trim().to_lowercase();
        let is_said = |(letter, word): &&(char, &str)| said == *word || said == letter.to_string();
        match choices.iter().find(is_said) {
            Some((letter, _)) => return Ok(*letter),
            None if said.is_empty() => return Ok('n'),
            None => tell!("conclave: answer with one of the letters, or with its word"),
        }
    }
}

/// Reads a line of standard input; empty at its end. A signal that ends the program ends it.
async fn line() -> Result<String, Exit> {
    let (sender, line) = tokio::sync::oneshot::channel();
    // The end of the program does not wait for this thread.
    std::thread::spawn(move || {
        let mut line = vec![];
        let read = std::io::stdin().lock().read_until(b'\n', &mut line);
        let _ = sender.send(read.map(|_| String::from_utf8_lossy(&line).into_owned()));
    });
    tokio::select! {
        Ok(read) = line => read.map_err(failing(Exit::Unexpected)),
        _ = stop_signal() => Err(fail(Exit::Interrupted, "nothing more is executed")),
    }
}

/// Prints an execution. A halted one has an exit code of its own.
fn shown(view: &ExecutionView, as_json: bool) -> Done {
    if as_json {
        print_json(view);
    } else {
        say(format_args!("{}", plan_text::execution(view)));
    }
    match view.state {
        ExecutionState::Completed | ExecutionState::Closed => Ok(()),
        _ => Err(Exit::Refused),
    }
}

fn print_json(value: &impl Serialize) {
    say_json(&pretty(value));
}

fn pretty(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}
