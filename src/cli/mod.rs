//! The command line: one file per command.

/// As `eprintln!`, but a standard error that cannot be written is ignored: the command goes on.
macro_rules! tell {
    ($($argument:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($argument)*);
    }};
}

mod act;
mod ask;
mod attach;
mod backup;
mod colour;
mod config;
mod doctor;
mod exit;
mod export;
mod feedback;
mod health;
mod import;
mod init;
mod input;
mod learned;
mod local;
mod new_file;
mod output;
mod plan;
mod plan_text;
mod printable;
mod progress;
mod prune;
mod quote;
mod recorded;
mod remote;
mod replay;
mod report;
mod restore;
mod runs;
mod score;
mod models_line;
mod serve;
mod show;
mod stop;
mod terminal;
mod token;
mod verify;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::app;
use crate::config::Env;
use crate::domain::Mode;

use exit::Exit;

/// How long the process waits at its end for tasks that cannot be aborted, such as CPU-heavy
/// pieces. Their runs are resumed later.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// A committee of language models: independent agents answer, an engine scores them, a master
/// writes one reply whose confidence is earned, inside a hard cost cap, with an audit.
#[derive(Debug, Parser)]
#[command(name = "conclave", version, max_term_width = 110, after_long_help = exit::HELP)]
struct Arguments {
    /// The config: a file, or the name of a built-in one (anthropic, openai, xai, openrouter,
    /// ollama, mixed, local). As CONCLAVE_CONFIG.
    #[arg(long, global = true, value_name = "FILE|NAME")]
    config: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the HTTP service.
    Serve,
    /// Ask the committee: one round, a concise reply.
    Ask(ask::AskArguments),
    /// Ask the committee and see the whole audit; up to two rounds.
    Audit(ask::AskArguments),
    /// Ask the committee thoroughly: up to three rounds, a larger cap, the whole audit.
    Deep(ask::AskArguments),
    /// Do what a text says: roll, check, sheets, memory and more; free unless a model is asked.
    #[command(after_long_help = act::listed())]
    Act(act::ActArguments),
    /// Plan calls of tools in the workspace, authorize them step by step, and take them back.
    Plan(plan::PlanArguments),
    /// Quote the price of a question before it is asked; calls no model.
    Quote(quote::QuoteArguments),
    /// List runs, newest first.
    Runs(runs::RunsArguments),
    /// Show a run again: its reply and its audit, from the journal.
    Show(show::ShowArguments),
    /// Prove that nothing in a run's journal was altered.
    Verify(recorded::RunArgument),
    /// Score recorded outputs with the engine that runs use; JSON Lines in and out, calls no model.
    Score {
        /// JSON Lines: {"id", "message", "outputs": [...]} or {"id", "message", "rounds": [[...],
        /// ...]}; an output is an agent's report or {"agent", "text"}, with "model" if its model is
        /// known. "-" reads standard input.
        file: PathBuf,
    },
    /// Score a run again from its journal under the current config; calls no model.
    Replay(replay::ReplayArguments),
    /// Say what you think of a reply: it goes into the run's journal.
    Feedback(feedback::FeedbackArguments),
    /// List learned answers, or revoke one.
    Learned(learned::LearnedArguments),
    /// Show the track record of models and of c_final, from the journals.
    Report(report::ReportArguments),
    /// Write finished runs with their journals as JSON Lines, one run a line.
    Export(export::ExportArguments),
    /// Import the runs of an export; every hash chain is verified first.
    Import {
        /// The file, or - for standard input.
        file: PathBuf,
    },
    /// Remove old runs for good.
    Prune(prune::PruneArguments),
    /// Copy the database to a new file while the service runs (SQLite).
    Backup {
        /// The new file. It is readable by you only, and never overwrites another.
        file: PathBuf,
    },
    /// Put a backup back in place of the database, while no service runs (SQLite).
    Restore(restore::RestoreArguments),
    /// Make, list and revoke the bearer tokens of the service.
    Token {
        #[command(subcommand)]
        command: token::TokenCommand,
    },
    /// Write a config and `.env` for the provider whose key is set or given, and probe its models.
    /// It reads no config, so it refuses --config.
    Init(init::InitArguments),
    /// Check the configuration, or print its schema.
    Config {
        #[command(subcommand)]
        command: config::ConfigCommand,
    },
    /// Probe every role's model the way a run would use it. Costs a few cents at most with the
    /// shipped models.
    Doctor {
        /// Only look at the configuration and the database; call no model.
        #[arg(long)]
        offline: bool,
    },
    /// Ask a running service whether it is up (for container health checks).
    Health(health::HealthArguments),
    /// Print a completion script for a shell.
    Completions {
        /// The shell to complete in.
        shell: clap_complete::Shell,
    },
}

/// Returns the command line with all its commands and flags, for completions and the reference
/// (`docs/cli.md`).
pub fn command_line() -> clap::Command {
    Arguments::command()
}

/// Parses the command line and executes its command on a runtime of its own.
pub fn main() -> ExitCode {
    // With one worker, a task that never waits would stop all others.
    let workers = std::thread::available_parallelism().map_or(2, |cores| cores.get().max(2));
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            tell!("conclave: the runtime cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let exit = runtime.block_on(run());
    // Without a time limit, a CPU-heavy piece would delay the exit until it ends.
    runtime.shutdown_timeout(LAST_WAIT);
    exit.into()
}

async fn run() -> Exit {
    let matches = command_line().color(colours()).try_get_matches();
    let parsed = matches.and_then(|matches| Arguments::from_arg_matches(&matches));
    let arguments = match parsed {
        Ok(arguments) => arguments,
        Err(error) => {
            let _ = error.print();
            let is_help = !error.use_stderr();
            return if is_help { Exit::Done } else { Exit::Usage };
        }
    };
    let _kept = ignore_file_size_signal();
    let mut env = Env::load();
    if let Some(config) = &arguments.config {
        env = env.with_config(config);
    }
    let quiet = !matches!(arguments.command, Command::Serve);
    app::init_telemetry(&env, if quiet { "warn" } else { "info" });
    let done = match arguments.command {
        Command::Serve => serve::run(&env).await,
        Command::Ask(arguments) => ask::run(&env, Mode::Ask, arguments).await,
        Command::Audit(arguments) => ask::run(&env, Mode::Audit, arguments).await,
        Command::Deep(arguments) => ask::run(&env, Mode::Deep, arguments).await,
        Command::Act(arguments) => act::run(&env, arguments).await,
        Command::Plan(arguments) => plan::run(&env, arguments).await,
        Command::Learned(arguments) => learned::run(&env, arguments).await,
        Command::Quote(arguments) => quote::run(&env, arguments).await,
        Command::Runs(arguments) => runs::run(&env, arguments).await,
        Command::Show(arguments) => show::run(&env, arguments).await,
        Command::Verify(arguments) => verify::run(&env, arguments).await,
        Command::Score { file } => score::run(&env, &file),
        Command::Replay(arguments) => replay::run(&env, arguments).await,
        Command::Feedback(arguments) => feedback::run(&env, arguments).await,
        Command::Report(arguments) => report::run(&env, arguments).await,
        Command::Export(arguments) => export::run(&env, arguments).await,
        Command::Import { file } => import::run(&env, file).await,
        Command::Prune(arguments) => prune::run(&env, arguments).await,
        Command::Backup { file } => backup::run(&env, file).await,
        Command::Restore(arguments) => restore::run(&env, arguments).await,
        Command::Token { command } => token::run(&env, command).await,
        Command::Config { command } => config::run(&env, &command),
        Command::Init(init) => init::run(&env, &init, arguments.config.is_some()).await,
        Command::Doctor { offline } => doctor::run(&env, offline).await,
        Command::Health(arguments) => health::run(&env, arguments).await,
        Command::Completions { shell } => {
            let mut script = vec![];
            clap_complete::generate(shell, &mut command_line(), "conclave", &mut script);
            let script = String::from_utf8_lossy(&script);
            terminal::say(format_args!("{}", script.trim_end()));
            Ok(())
        }
    };
    done.err().unwrap_or(Exit::Done)
}

/// Returns the colours of help and usage errors. clap itself ignores an empty `NO_COLOR`.
fn colours() -> clap::ColorChoice {
    match std::env::var_os("NO_COLOR") {
        Some(_) => clap::ColorChoice::Never,
        None => clap::ColorChoice::Auto,
    }
}

/// A write beyond the file size limit (`ulimit -f`, `LimitFSIZE`) raises SIGXFSZ, which kills the
/// process unless it listens for the signal. With a listener, which may be dropped, the write fails
/// with an error instead.
fn ignore_file_size_signal() -> std::io::Result<tokio::signal::unix::Signal> {
    const SIGXFSZ: i32 = 25;
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::from_raw(SIGXFSZ))
}
