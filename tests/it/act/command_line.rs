//! Tests `conclave act` on the command line, both on its own and with a service.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::act::{keys, proposes, proposing};
use crate::cli::run;
use crate::support::process::conclave;
use crate::support::{MockProvider, TestApp};

#[tokio::test]
async fn the_command_line_acts_without_a_key_and_agrees_with_http() {
    let folder = TempDir::new().unwrap();
    let act = async |arguments: &[&str]| run(conclave(folder.path(), arguments, &[])).await;
    let (code, said_out, _) = act(&["act", "roll 2d6+3"]).await;
    assert!(code == 0 && said_out.starts_with("2d6 ("), "{said_out}");
    let (_, created, _) = act(&["act", "create a character named Aria"]).await;
    assert_eq!(created, "The sheet of Aria is kept.\n");
    let (_, checked, _) = act(&["act", "dex check dc 15"]).await;
    assert!(checked.starts_with("Aria: Dexterity: d20 ("), "{checked}");
    let (_, sneaked, _) = act(&["act", "/me sneaks, stealth"]).await;
    assert!(sneaked.contains("Dexterity (stealth)"), "{sneaked}");
    let (_, body, _) = act(&["act", "--json", "show my sheet"]).await;
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(keys(&body), ["intent", "mode", "executed", "actions"]);
    let (code, out, error) = act(&["act", "tell me a story"]).await;
    assert_eq!((code, out.as_str()), (4, ""));
    assert!(error.contains("help"), "{error}");
    let (code, offered, _) = act(&["act", "I roll 2d6+3"]).await;
    assert!(
        code == 0
            && offered
                .starts_with("Did you mean: roll {\"expression\":\"2d6+3\"}\nNothing was done."),
        "{offered}"
    );
    let id = offered.trim().rsplit(' ').next().unwrap();
    let (_, rolled, _) = act(&["act", "--confirm", id]).await;
    assert!(rolled.starts_with("2d6 ("), "{rolled}");
    // An enabled proposer whose model cannot be loaded is a configuration error.
    let local = concat!(env!("CARGO_MANIFEST_DIR"), "/llm.config.local.json");
    let variables = [
        ("CONCLAVE_CONFIG", local),
        ("LOCAL_MODEL_PATH", "missing.gguf"),
        ("PROPOSER_ENABLED", "1"),
        ("PROPOSER_PROVIDER", "local"),
    ];
    let story = conclave(folder.path(), &["act", "tell me a story"], &variables);
    let (code, _, error) = run(story).await;
    assert_eq!(code, 3, "{error}");
    let why = if cfg!(feature = "local") {
        "there are no weights at missing.gguf"
    } else {
        "no in-process model"
    };
    assert!(error.contains(why), "{error}");
    let (code, ..) = act(&["act", "--confirm", "01890000-0000-7000-8000-000000000000"]).await;
    assert_eq!(code, 4);
    let (_, catalog, _) = act(&["act", "--catalog"]).await;
    assert_eq!(
        serde_json::from_str::<Value>(&catalog)
            .unwrap()
            .as_array()
            .unwrap()
            .len(),
        15
    );
    let (_, discord, _) = act(&["act", "--discord-commands"]).await;
    assert_eq!(
        serde_json::from_str::<Value>(&discord).unwrap()[0]["name"],
        "act"
    );
    let (_, help, _) = act(&["act", "--help"]).await;
    assert!(help.contains("memory.search"), "{help}");
}

#[tokio::test]
async fn the_command_line_proposes_confirms_and_talks_to_a_service() {
    let provider = MockProvider::start().await;
    proposes(
        &provider,
        "memory.add",
        json!({ "content": "buy rope" }),
        0.94,
    );
    let app = TestApp::with(&provider, proposing()).await;
    let folder = TempDir::new().unwrap();
    let url = provider.url();
    let variables = [
        ("ANTHROPIC_API_KEY", "k"),
        ("ANTHROPIC_BASE_URL", url.as_str()),
        ("PROPOSER_ENABLED", "1"),
        ("PROPOSER_PROVIDER", "anthropic"),
    ];
    for server in [vec![], vec!["--server", app.url.as_str()]] {
        let act = async |arguments: &[&str]| {
            let arguments: Vec<&str> = std::iter::once("act")
                .chain(server.iter().copied())
                .chain(arguments.iter().copied())
                .collect();
            let (code, out, error) = run(conclave(folder.path(), &arguments, &variables)).await;
            (code, out + &error)
        };
        let (code, offered) = act(&["rope, keep it in mind"]).await;
        assert!(
            code == 0 && offered.contains("Did you mean: memory.add"),
            "{offered}"
        );
        let mut hint = offered
            .rsplit("--confirm ")
            .next()
            .unwrap()
            .split_whitespace();
        let id = hint.next().unwrap().to_owned();
        assert_eq!(
            hint.collect::<Vec<_>>(),
            server,
            "the hint is the whole command"
        );
        assert_eq!(
            act(&["--confirm", &id]).await,
            (0, "Remembered: buy rope\n".to_owned())
        );
        let (code, again) = act(&["--confirm", &id]).await;
        assert!(code == 4 && again.contains("confirmed already"), "{again}");
        let (_, found) = act(&["/memory search rope"]).await;
        assert_eq!(found, "- buy rope\n");
        // Without a guild, a proposal is confirmed where it was made.
        let (_, offered) = act(&["--guild", "g1", "rope, keep it in mind"]).await;
        let (_, behind) = offered.split_once("--confirm ").unwrap();
        let id = behind.split_whitespace().next().unwrap();
        let (code, kept) = act(&["--confirm", id]).await;
        assert_eq!((code, &*kept), (0, "Remembered: buy rope\n"));
    }
}
