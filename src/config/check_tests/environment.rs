//! The accepted values of environment variables, and the secrets that are not shown.

use super::*;

#[test]
fn origins_are_written_as_browsers_send_them() {
    let origins = |text: &str| {
        let variables = env(&[("ANTHROPIC_API_KEY", "k"), ("CORS_ORIGINS", text)]);
        from_text(SHIPPED, &variables).map(|config| {
            config
                .cors_origins
                .into_iter()
                .collect::<Vec<_>>()
                .join(" ")
        })
    };
    assert_eq!(origins(""), Ok(String::new()));
    let two = "https://app.example.org http://localhost:3000";
    assert_eq!(
        origins(two),
        Ok("http://localhost:3000 https://app.example.org".into())
    );
    for bad in [
        "*",
        "null",
        "https://app.example.org/",
        "app.example.org",
        "ftp://app.example.org",
    ] {
        assert_eq!(
            places(origins(bad).map(|_| unreachable!())),
            ["CORS_ORIGINS"],
            "{bad}"
        );
    }
}

#[test]
fn no_secret_shows_in_debug_output() {
    let variables = env(&[
        ("ANTHROPIC_API_KEY", "planted-secret"),
        ("CONCLAVE_TOKEN", "planted-secret-token"),
    ]);
    let config = from_text(SHIPPED, &variables).unwrap();
    assert!(!format!("{config:?} {variables:?}").contains("planted-secret"));
}

#[test]
fn a_database_is_of_sqlite_or_postgresql_and_its_address_is_not_shown() {
    let good = [
        "sqlite://data/conclave.db",
        "sqlite:///srv/a.db",
        "sqlite:a.db?mode=rwc",
        "postgres://db/conclave",
        "postgresql://ada:s%40crt@db.example:6432/conclave?sslmode=verify-full",
        "postgres:///conclave?host=/run/postgresql",
    ];
    for good in good {
        assert_eq!(
            places_with(&[], &[("DATABASE_URL", good)]),
            [""; 0],
            "{good}"
        );
    }
    let secret = "planted-secret";
    let bad = [
        "sqlite:",
        "sqlite://",
        "sqlite://?mode=rwc",
        "data/conclave.db",
        "mysql://ada:planted-secret@db/x",
        "postgres://ada:planted-secret@db",
        "postgres://ada:planted-secret@/conclave",
        "postgres://ada:planted-secret#@db/conclave",
    ];
    for bad in bad {
        let variables = [("ANTHROPIC_API_KEY", "k"), ("DATABASE_URL", bad)];
        assert_eq!(places_with(&[], &variables[1..]), ["DATABASE_URL"], "{bad}");
        let shown = details(SHIPPED, &variables).join("");
        assert!(!shown.contains(secret), "{shown}");
    }
    let address = "postgres://ada:planted-secret@db/conclave";
    let config = from_text(
        SHIPPED,
        &env(&[("ANTHROPIC_API_KEY", "k"), ("DATABASE_URL", address)]),
    )
    .unwrap();
    assert!(!format!("{config:?}").contains(secret));
}

#[test]
fn a_short_token_is_warned_of_and_not_shown() {
    let warned = |token: &str| {
        let config = from_text(
            SHIPPED,
            &env(&[("ANTHROPIC_API_KEY", "k"), ("CONCLAVE_TOKEN", token)]),
        )
        .unwrap();
        assert!(!format!("{:?}", config.warnings).contains(token));
        config
            .warnings
            .into_iter()
            .map(|warning| warning.place)
            .collect::<Vec<_>>()
    };
    assert_eq!(warned("fifteen charact"), ["CONCLAVE_TOKEN"]);
    assert_eq!(warned("sixteen characte"), [""; 0]);
}

#[test]
fn variables_that_cannot_be_obeyed_are_problems() {
    for (name, value) in [
        ("LOG_FORMAT", "xml"),
        ("RUST_LOG", "conclave=loud"),
        ("ATTACHMENT_HOSTS", "https://cdn.example/x"),
        ("ATTACHMENT_HOSTS", "cdn.example:443"),
        ("DECISION_STRATEGY", "always_llm"),
        ("EXECUTIVE_DECISION_STRATEGY", "split:committee_first=50"),
        ("HEURISTIC_THRESHOLD", "1.5"),
        ("CONCLAVE_BIND", "localhost"),
    ] {
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
    ];
    assert_eq!(places_with(&[], &good), [""; 0]);
}

#[test]
fn attachment_hosts_set_to_nothing_are_none_and_unset_are_the_default() {
    let hosts = |variables: &[(&str, &str)]| {
        let variables = [&[("ANTHROPIC_API_KEY", "k")], variables].concat();
        from_text(SHIPPED, &env(&variables))
            .unwrap()
            .attachment_hosts
            .into_iter()
            .collect::<Vec<_>>()
    };
    assert_eq!(hosts(&[]), ["cdn.discordapp.com", "media.discordapp.net"]);
    assert_eq!(hosts(&[("ATTACHMENT_HOSTS", "")]), [""; 0]);
    assert_eq!(hosts(&[("ATTACHMENT_HOSTS", " ")]), [""; 0]);
    assert_eq!(
        hosts(&[("ATTACHMENT_HOSTS", "b.example, A.example")]),
        ["a.example", "b.example"]
    );
}

#[test]
fn a_wildcard_among_the_attachment_hosts_is_refused() {
    for hosts in ["*.example", "cdn.example,*", "a*.example"] {
        let variables = [("ANTHROPIC_API_KEY", "k"), ("ATTACHMENT_HOSTS", hosts)];
        let problems = from_text(SHIPPED, &env(&variables))
            .unwrap_err()
            .to_string();
        assert!(
            problems.contains("ATTACHMENT_HOSTS") && problems.contains("must be named in full"),
            "{problems}"
        );
    }
}

#[test]
fn every_problem_of_the_environment_is_listed_even_without_a_file() {
    let variables = env(&[
        ("CONCLAVE_CONFIG", "no/such.json"),
        ("CONCLAVE_BIND", "x"),
        ("NORMAL_MAX_USD", "y"),
        ("CONCLAVE_PROMPTS_DIR", "no/such/folder"),
        ("DATABASE_URL", "z"),
    ]);
    let expected = [
        "CONCLAVE_BIND",
        "CONCLAVE_CONFIG",
        "CONCLAVE_PROMPTS_DIR",
        "DATABASE_URL",
        "NORMAL_MAX_USD",
    ];
    assert_eq!(places(load(&variables)), expected);
}
