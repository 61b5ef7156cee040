//! The accepted values of environment variables, and the secrets that are not shown.

use super::*;

#[test]
fn lists_are_read_as_sets_and_unset_differs_from_empty() {
    let sets = |name: &str, value: &str| {
        let config = loaded(&[], &[(name, value)]).unwrap();
        let joined = |set: BTreeSet<String>| set.into_iter().collect::<Vec<_>>().join(" ");
        (joined(config.cors_origins), joined(config.attachment_hosts))
    };
    let default = "cdn.discordapp.com media.discordapp.net";
    let two = "https://app.example.org http://localhost:3000";
    let sorted = "http://localhost:3000 https://app.example.org";
    assert_eq!(sets("CORS_ORIGINS", ""), (String::new(), default.into()));
    assert_eq!(sets("CORS_ORIGINS", two), (sorted.into(), default.into()));
    for (given, expected) in [
        ("", ""),
        (" ", ""),
        ("b.example, A.example", "a.example b.example"),
    ] {
        assert_eq!(sets("ATTACHMENT_HOSTS", given).1, expected, "{given:?}");
    }
}

#[test]
fn no_secret_shows_in_debug_output() {
    let variables = env(&[
        ("ANTHROPIC_API_KEY", "planted-secret"),
        ("CONCLAVE_TOKEN", "planted-secret-token"),
        ("DATABASE_URL", "postgres://ada:planted-secret@db/conclave"),
    ]);
    let config = from_text(SHIPPED, &variables).unwrap();
    assert!(!format!("{config:?} {variables:?}").contains("planted-secret"));
}

#[test]
fn the_keys_of_disabled_providers_are_known_too() {
    let variables = [("XAI_API_KEY", "xai-key"), ("OPENROUTER_API_KEY", "or-key")];
    let config = loaded(&[], &variables).unwrap();
    let keys = config.provider_keys.iter();
    let keys: Vec<&str> = keys.map(secrecy::ExposeSecret::expose_secret).collect();
    for (_, key) in variables {
        assert!(keys.contains(&key), "{keys:?}");
    }
}

#[test]
fn a_password_of_the_database_is_known_in_every_form() {
    let passwords = |address: &str| {
        let variables = [("DATABASE_URL", address), ("PGPASSWORD", "of-the-driver")];
        let config = loaded(&[], &variables).unwrap();
        let passwords = config.database_passwords.iter();
        let passwords: Vec<&str> = passwords
            .map(secrecy::ExposeSecret::expose_secret)
            .collect();
        passwords.join(" ")
    };
    for (address, expected) in [
        ("postgres://ada:plain@db/x", "plain of-the-driver"),
        (
            "postgres://ada:s%40cret@db/x",
            "s%40cret s@cret of-the-driver",
        ),
        (
            "postgres://ada@db/x?password=a%2Fb+c&sslmode=require",
            "a/b c a%2Fb+c of-the-driver",
        ),
        ("postgres://ada@db/x", "of-the-driver"),
        ("sqlite://a.db", ""),
    ] {
        assert_eq!(passwords(address), expected, "{address}");
    }
}

#[test]
fn a_password_of_a_provider_is_known_in_every_form() {
    let changes = [(
        "/providers/anthropic/proxy",
        json!("http://bob:p%40ss@proxy:3128"),
    )];
    let variables = [("ANTHROPIC_BASE_URL", "http://ada:short@gateway/v1")];
    let config = loaded(&changes, &variables).unwrap();
    let secrets = config.providers["anthropic"].secrets.iter();
    let secrets: Vec<&str> = secrets.map(secrecy::ExposeSecret::expose_secret).collect();
    // The last of each address is the base64 of "bob:p@ss" and "ada:short".
    assert_eq!(
        secrets,
        ["p%40ss", "p@ss", "Ym9iOnBAc3M=", "short", "YWRhOnNob3J0"]
    );
}

#[test]
fn a_wrong_address_of_a_database_is_not_shown() {
    let bad = [
        "sqlite::memory:",
        "sqlite://:memory:",
        "sqlite://data/\u{fffd}.db",
        "sqlite:",
        "sqlite://",
        "sqlite://?mode=rwc",
        "data/conclave.db",
        "mysql://ada:planted-secret@db/x",
        "postgres://ada:planted-secret@db",
        "postgres://ada:planted-secret@/conclave",
        "postgres://ada:planted-secret#@db/conclave",
        "postgres://ada:planted-secret@db/conclave?passwrod=planted-secret",
        "postgres://ada:planted-secret@db/conclave?sslmode=planted-secret",
        "postgres://ada:planted-secret@db,other/conclave",
        "sqlite://a.db?mode=ro",
    ];
    for bad in bad {
        let problems = loaded(&[], &[("DATABASE_URL", bad)]).unwrap_err();
        let shown = problems.to_string();
        assert!(!shown.contains("planted-secret"), "{shown}");
        assert_eq!(places(Err(problems)), ["DATABASE_URL"], "{bad}");
    }
}

#[test]
fn a_short_token_is_warned_of_and_not_shown() {
    let warned = |token: &str| {
        let warnings = loaded(&[], &[("CONCLAVE_TOKEN", token)]).unwrap().warnings;
        assert!(!format!("{warnings:?}").contains(token));
        let places = warnings.into_iter().map(|warning| warning.place);
        places.collect::<Vec<_>>()
    };
    assert_eq!(warned("fifteen charact"), ["CONCLAVE_TOKEN"]);
    assert_eq!(warned("sixteen characte"), [""; 0]);
}

#[test]
fn variables_that_cannot_be_obeyed_are_problems() {
    let bad = [
        ("CONCLAVE_TOKEN", "пароль-пароль-пароль"),
        ("CONCLAVE_TOKEN", "sixteen\u{fffd}characte"),
        ("ANTHROPIC_API_KEY", "sk-a\nb"),
        ("LOG_FORMAT", "xml"),
        ("RUST_LOG", "conclave=loud"),
        ("ATTACHMENT_HOSTS", "https://cdn.example/x"),
        ("ATTACHMENT_HOSTS", "cdn.example:443"),
        ("ATTACHMENT_HOSTS", "*.example"),
        ("ATTACHMENT_HOSTS", "cdn.example,*"),
        ("ATTACHMENT_HOSTS", "a*.example"),
        ("ATTACHMENT_HOSTS", "cdn.example;media.example"),
        ("ATTACHMENT_HOSTS", "cdn.example."),
        ("ATTACHMENT_HOSTS", ".example"),
        ("CORS_ORIGINS", "*"),
        ("CORS_ORIGINS", "https://*.example.org"),
        ("CORS_ORIGINS", "null"),
        ("CORS_ORIGINS", "https://app.example.org/"),
        ("CORS_ORIGINS", "app.example.org"),
        ("CORS_ORIGINS", "ftp://app.example.org"),
        ("DECISION_STRATEGY", "always_llm"),
        ("EXECUTIVE_DECISION_STRATEGY", "split:committee_first=50"),
        ("HEURISTIC_THRESHOLD", "1.5"),
        ("CONCLAVE_BIND", "localhost"),
        ("NORMAL_MAX_USD", "ten cents"),
        ("NORMAL_MAX_USD", "$0.10"),
        ("DEEP_MAX_USD", "-1"),
        ("DEEP_MAX_USD", "NaN"),
        ("NORMAL_MAX_USD", "inf"),
        ("NORMAL_MAX_USD", "1000001"),
    ];
    for (name, value) in bad {
        assert_eq!(places_with(&[], &[(name, value)]), [name], "{value}");
    }
    let good = [
        ("LOG_FORMAT", "json"),
        ("RUST_LOG", "info,conclave=debug"),
        ("ATTACHMENT_HOSTS", "192.0.2.7, [2001:db8::1] cdn.example"),
        ("DECISION_STRATEGY", "heuristic_first"),
        ("EXECUTIVE_HEURISTIC_THRESHOLD", "0.5"),
        ("GOALS", "be kind; be brief"),
        ("CONCLAVE_BIND", "localhost:8080"),
        ("NORMAL_MAX_USD", "0"),
        ("NORMAL_MAX_USD", "0.25"),
        ("NORMAL_MAX_USD", "1000000"),
        ("DATABASE_URL", "sqlite://data/conclave.db"),
        ("DATABASE_URL", "sqlite:///srv/a.db"),
        ("DATABASE_URL", "sqlite:////srv/a.db"),
        ("DATABASE_URL", "sqlite:a.db?mode=rwc"),
        ("DATABASE_URL", "postgres://db/conclave"),
        (
            "DATABASE_URL",
            "postgresql://ada:s%40crt@db.example:6432/conclave?sslmode=verify-full",
        ),
        ("DATABASE_URL", "postgres:///conclave?host=/run/postgresql"),
    ];
    for (name, value) in good {
        assert_eq!(
            places_with(&[], &[(name, value)]),
            [""; 0],
            "{name} {value}"
        );
    }
}

#[test]
fn every_problem_of_the_environment_is_listed_with_a_file_and_without() {
    let wrong = [
        ("CONCLAVE_BIND", "x"),
        ("CONCLAVE_PROMPTS_DIR", "no/such/folder"),
        ("DECISION_STRATEGY", "zz"),
        ("HEURISTIC_THRESHOLD", "3"),
        ("NORMAL_MAX_USD", "y"),
    ];
    let names = wrong.map(|(name, _)| name);
    let proposer = [("PROPOSER_ENABLED", "true"), ("PROPOSER_PROVIDER", "q")];
    let found = places_with(&[], &[&wrong[..], &proposer].concat());
    assert_eq!(found, [&names[..], &["PROPOSER_PROVIDER"]].concat());
    let no_file = [("CONCLAVE_CONFIG", "no/such.json"), ("DATABASE_URL", "z")];
    let mut expected = [&names[..], &no_file.map(|(name, _)| name)].concat();
    expected.sort_unstable();
    let found = places(load(&env(&[&wrong[..], &no_file].concat())));
    assert_eq!(found, expected);
}
