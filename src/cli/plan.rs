//! `conclave plan`: a plan of tool calls, its authorization at the terminal, and its undo.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::sync::Arc;

use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};

use super::ask::refused;
use super::exit::{Done, Exit, fail, failing};
use super::output::user;
use super::plan_text;
use super::printable::without_controls;
use super::quote;
use super::remote;
use super::show::start;
use super::terminal::{say, say_json, text_of};
use crate::app::{App, Authorization, AuthorizedSteps, Authorizing, PlanInput, RequestIds};
use crate::committee::Quote;
use crate::config::{self, Env};
use crate::domain::{Context, EvidenceFocus, RunId, Source, ToolPlan, Usd, User};
use crate::journal::{Ending, Rejection};
use crate::tools::answers::{ExecutionState, ExecutionView, PlanState, PlanView};

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
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// Who asks. Default: $USER.
    #[arg(long, value_name = "ID")]
    user: Option<String>,
}

/// Where plans are made and executed.
enum Service<'a> {
    Here(Arc<App>),
    There(&'a Env, &'a str),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Authorized {
    execution: Option<ExecutionView>,
    rejection: Option<Rejection>,
}

/// A price, as the API gives it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Price {
    cap_usd: f64,
    expected_usd: f64,
    worst_usd: f64,
    calls: usize,
}

impl From<Price> for Quote {
    fn from(price: Price) -> Self {
        Quote {
            cap: Usd::from_dollars(price.cap_usd),
            expected: Usd::from_dollars(price.expected_usd),
            worst: Usd::from_dollars(price.worst_usd),
            calls: price.calls,
        }
    }
}

pub(super) async fn run(env: &Env, arguments: PlanArguments) -> Done {
    let user = user(env, arguments.user.as_ref());
    let service = match &arguments.server {
        Some(server) => Service::There(env, server),
        None => {
            let config = config::load(env).map_err(failing(Exit::Configuration))?;
            if config.tools_workspace.is_none() {
                let why = "tool plans are off: set TOOLS_WORKSPACE to the folder that they work in";
                return Err(fail(Exit::Configuration, why));
            }
            Service::Here(start(config).await?)
        }
    };
    if let Some(execution) = arguments.undo {
        let undone = service.undo(execution, user).await?;
        return shown(&undone, arguments.json);
    }
    let message = text_of(arguments.message.as_deref(), "request").map_err(failing(Exit::Usage))?;
    let input = PlanInput {
        source: Source::Cli,
        user: user.clone(),
        context: Context::default(),
        message,
        focus: EvidenceFocus {
            file: arguments.file.clone(),
            diagnostic: arguments.diagnostic.clone(),
        },
    };
    if arguments.quote {
        let of_cap = " for the plan, and again for each execution";
        return quote::print(&service.quote(input).await?, of_cap, arguments.json);
    }
    let plan = service.propose(input).await?;
    if arguments.json && !arguments.yes {
        print_json(&plan);
    } else if !arguments.json {
        say(format_args!("{}", plan_text::plan(&plan)));
    }
    if let Some(rejection) = &plan.rejection {
        if arguments.json && arguments.yes {
            print_json(&plan);
        }
        return Err(fail(Exit::Refused, plan_text::rejection(rejection)));
    }
    if plan.state == PlanState::Completed || plan.state == PlanState::Halted {
        eprintln!("conclave: this plan was executed before: {:?}", plan.state);
        return Ok(());
    }
    let asker = Asker { service, user, env };
    if arguments.yes {
        let done = asker.authorize(&plan, AuthorizedSteps::Plan).await?;
        return shown(&done, arguments.json);
    }
    if arguments.json {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        eprintln!("conclave: nothing was executed; --yes authorizes the whole plan");
        return Ok(());
    }
    asker.interact(plan).await
}

impl Service<'_> {
    async fn quote(&self, input: PlanInput) -> Result<Quote, Exit> {
        match self {
            Service::There(env, server) => {
                let answer = remote::post(env, server, "/api/plans/quote", &body(&input)).await?;
                let price: Price = read(answer)?;
                Ok(price.into())
            }
            Service::Here(app) => {
                let quoted = app.quote_plan(input).await;
                quoted.map_err(|rejected| refused(&rejected))
            }
        }
    }

    async fn propose(&self, input: PlanInput) -> Result<PlanView, Exit> {
        match self {
            Service::There(env, server) => {
                read(remote::post(env, server, "/api/plans", &body(&input)).await?)
            }
            Service::Here(app) => {
                let submitted = app.plan_tools(input, RequestIds::default()).await;
                let run = submitted.map_err(|rejected| refused(&rejected))?.run;
                ended(app, run).await?;
                let plan = app
                    .tool_plan(run)
                    .await
                    .map_err(|rejected| refused(&rejected))?;
                plan.ok_or_else(|| fail(Exit::Unexpected, "the run has no plan"))
            }
        }
    }

    async fn undo(&self, execution: RunId, user: User) -> Result<ExecutionView, Exit> {
        match self {
            Service::There(env, server) => {
                let body = json!({ "source": Source::Cli, "user": user });
                let path = format!("/api/executions/{execution}/undo");
                read(remote::post(env, server, &path, &body).await?)
            }
            Service::Here(app) => {
                let started = app.undo(execution, Source::Cli, user).await;
                let run = started.map_err(|rejected| refused(&rejected))?.run;
                ended(app, run).await?;
                app.execution(run)
                    .await
                    .map_err(|rejected| refused(&rejected))
            }
        }
    }
}

/// A user who authorizes at the terminal.
struct Asker<'a> {
    service: Service<'a>,
    user: User,
    env: &'a Env,
}

impl Asker<'_> {
    /// Asks before each step, as `y/N/a/c`, and before the first step also whether the plan is to be
    /// changed.
    async fn interact(&self, mut plan: PlanView) -> Done {
        let mut may_change = plan.executions.is_empty();
        let mut edit = None;
        while let Some(next) = plan.next_step.clone() {
            let steps = plan.plan.steps.clone();
            let Some(step) = steps.iter().find(|step| step.step_id == next) else {
                break;
            };
            say(format_args!("{}", plan_text::asked(step, &plan)));
            let choice = choice(may_change).map_err(failing(Exit::Unexpected))?;
            let authorized = match choice {
                'y' => {
                    self.authorize(&plan, AuthorizedSteps::Step(Some(next)))
                        .await?
                }
                'a' => {
                    let done = self.authorize(&plan, AuthorizedSteps::Plan).await?;
                    return shown(&done, false);
                }
                'm' if may_change => {
                    if let Some(done) = self.modified(&plan, &mut edit).await? {
                        return shown(&done, false);
                    }
                    continue;
                }
                _ => {
                    let done = steps.iter().take_while(|it| it.step_id != step.step_id);
                    eprintln!(
                        "conclave: the plan is cancelled; {} of {} steps were executed",
                        done.count(),
                        steps.len()
                    );
                    return Ok(());
                }
            };
            may_change = false;
            shown(&authorized, false)?;
            let executed = &authorized.authorization.steps;
            let place = steps
                .iter()
                .position(|step| executed.contains(&step.step_id));
            let following = place.and_then(|place| steps.get(place + 1));
            plan.next_step = following.map(|step| step.step_id.clone());
        }
        Ok(())
    }

    /// Lets the user edit the plan, and executes it. `None` if it is unchanged or rejected; then the
    /// text is kept for the next edit.
    async fn modified(
        &self,
        plan: &PlanView,
        edit: &mut Option<String>,
    ) -> Result<Option<ExecutionView>, Exit> {
        let text = match edit.take() {
            Some(text) => text,
            None => serde_json::to_string_pretty(&plan.plan).unwrap_or_default(),
        };
        let text = match self.edited(&text) {
            Ok(text) => edit.insert(text),
            Err(error) => {
                eprintln!("conclave: the editor gave no plan: {error}");
                return Ok(None);
            }
        };
        let changed: ToolPlan = match serde_json::from_str(text) {
            Ok(changed) => changed,
            Err(error) => {
                eprintln!("conclave: this is not a plan: {error}; m opens your text again");
                return Ok(None);
            }
        };
        if changed == plan.plan {
            eprintln!("conclave: the plan is unchanged");
            return Ok(None);
        }
        let steps = AuthorizedSteps::Modified(Some(Box::new(changed)));
        match self.authorized(plan, steps).await? {
            Authorized {
                execution: Some(execution),
                ..
            } => Ok(Some(execution)),
            Authorized { rejection, .. } => {
                let why = rejection.as_ref().map(plan_text::rejection);
                let why = without_controls(&why.unwrap_or_default()).into_owned();
                eprintln!("conclave: {why}\nm opens your text again");
                Ok(None)
            }
        }
    }

    /// Opens a text in the user's editor, and returns it as it was saved.
    fn edited(&self, text: &str) -> std::io::Result<String> {
        let mut file = tempfile::Builder::new()
            .prefix("conclave-plan-")
            .suffix(".json")
            .tempfile()?;
        file.write_all(text.as_bytes())?;
        file.flush()?;
        let editor = ["VISUAL", "EDITOR"]
            .into_iter()
            .find_map(|name| self.env.get(name));
        let mut words = editor.unwrap_or("vi").split_whitespace();
        let program = words.next().unwrap_or("vi");
        let status = std::process::Command::new(program)
            .args(words)
            .arg(file.path())
            .status()?;
        if !status.success() {
            let why = format!("{program} ended with {status}");
            return Err(std::io::Error::other(why));
        }
        std::fs::read_to_string(file.path())
    }

    async fn authorize(
        &self,
        plan: &PlanView,
        steps: AuthorizedSteps,
    ) -> Result<ExecutionView, Exit> {
        let authorized = self.authorized(plan, steps).await?;
        authorized.execution.ok_or_else(|| {
            let why = authorized.rejection.map(|rejection| rejection.message);
            fail(Exit::Refused, why.unwrap_or_default())
        })
    }

    async fn authorized(
        &self,
        plan: &PlanView,
        steps: AuthorizedSteps,
    ) -> Result<Authorized, Exit> {
        match &self.service {
            Service::There(env, server) => {
                let (mode, step, changed) = match steps {
                    AuthorizedSteps::Step(step) => ("step", step, None),
                    AuthorizedSteps::Plan => ("plan", None, None),
                    AuthorizedSteps::Modified(changed) => ("modified", None, changed),
                };
                let mut body = json!({ "source": Source::Cli, "user": self.user, "mode": mode });
                if let Value::Object(body) = &mut body {
                    body.extend(step.map(|step| ("stepId".to_owned(), json!(step))));
                    body.extend(changed.map(|plan| ("plan".to_owned(), json!(plan))));
                }
                let path = format!("/api/plans/{}/authorize", plan.plan_id);
                read(remote::post(env, server, &path, &body).await?)
            }
            Service::Here(app) => {
                let given = Authorization {
                    plan: plan.plan_id.parse().map_err(failing(Exit::Unexpected))?,
                    source: Source::Cli,
                    user: self.user.clone(),
                    context: None,
                    steps,
                };
                match app
                    .authorize(given)
                    .await
                    .map_err(|rejected| refused(&rejected))?
                {
                    Authorizing::Rejected(rejection) => Ok(Authorized {
                        execution: None,
                        rejection: Some(*rejection),
                    }),
                    Authorizing::Started(submitted) => {
                        ended(app, submitted.run).await?;
                        let execution = app.execution(submitted.run).await;
                        Ok(Authorized {
                            execution: Some(execution.map_err(|rejected| refused(&rejected))?),
                            rejection: None,
                        })
                    }
                }
            }
        }
    }
}

/// Returns the body of a request for a plan.
fn body(input: &PlanInput) -> Value {
    let PlanInput {
        source,
        user,
        context,
        message,
        focus,
    } = input;
    json!({ "source": source, "user": user, "context": context, "message": message,
            "file": focus.file, "diagnostic": focus.diagnostic })
}

/// Waits for the end of a run.
async fn ended(app: &App, run: RunId) -> Done {
    let finished = app.finished(run).await.map_err(failing(Exit::Unexpected))?;
    match finished.map(|finished| finished.ending) {
        Some(Ending::Acted { .. }) => Ok(()),
        Some(Ending::Failed { cause, detail }) => Err(fail(cause.into(), detail)),
        Some(Ending::Replied { .. } | Ending::Cancelled) | None => {
            Err(fail(Exit::Unexpected, "the run was cancelled"))
        }
    }
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, Exit> {
    serde_json::from_value(value).map_err(failing(Exit::Server))
}

/// Reads the user's choice. No answer is a no.
fn choice(may_change: bool) -> std::io::Result<char> {
    let (letters, more) = if may_change {
        ("y/N/a/c/m", ", m=modify the plan")
    } else {
        ("y/N/a/c", "")
    };
    eprint!("Execute? [{letters}] (y=yes, n=no, a=all, c=cancel plan{more}) ");
    std::io::stderr().flush()?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(line.trim().to_lowercase().chars().next().unwrap_or('n'))
}

/// Prints an execution. A halted one has an exit code of its own.
fn shown(view: &ExecutionView, as_json: bool) -> Done {
    if as_json {
        print_json(view);
    } else {
        say(format_args!("{}", plan_text::execution(view)));
    }
    if view.state == ExecutionState::Completed {
        Ok(())
    } else {
        Err(Exit::Refused)
    }
}

fn print_json(value: &impl serde::Serialize) {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    say_json(&text);
}
