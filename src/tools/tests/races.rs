//! The file tools beside others that change the same files, and their bounds.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::tools::tool::Tool;
use serde_json::json;

use super::place::{Place, Stop};

#[test]
fn a_link_swapped_in_during_an_operation_never_leads_out() {
    let place = Place::new();
    fs::create_dir(place.inside("real")).unwrap();
    fs::write(place.inside("real/secret"), "inside").unwrap();
    fs::create_dir(place.inside("target")).unwrap();
    let stop = AtomicBool::new(false);
    let (mut done, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                // `real` is a folder, then missing, then a link to the outside, and again.
                fs::rename(place.inside("real"), place.inside("aside")).unwrap();
                symlink(place.outside(""), place.inside("real")).unwrap();
                fs::remove_file(place.inside("real")).unwrap();
                fs::rename(place.inside("aside"), place.inside("real")).unwrap();
            }
        });
        let _stop = Stop(&stop);
        let started = std::time::Instant::now();
        while started.elapsed().as_secs() < 3 {
            for result in [
                place.workspace.read("real/secret"),
                place
                    .workspace
                    .write("real/secret", "inside")
                    .map(|it| it.before.unwrap()),
            ] {
                match result {
                    Ok(text) => {
                        assert_eq!(text, "inside");
                        done += 1;
                    }
                    Err(_) => refused += 1,
                }
            }
            let found = place.text(
                Tool::FileSearch,
                &json!({ "pattern": "secret", "root": "." }),
            );
            assert!(!found.contains("secret"), "{found}");
        }
    });
    println!("race: {done} operations succeeded, {refused} were refused");
    assert!(done > 0 && refused > 0);
    place.assert_clean();
}

#[test]
fn a_file_swapped_for_a_link_is_never_written_through() {
    let place = Place::new();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let _ = fs::remove_file(place.inside("file"));
                let _ = symlink("../outside/secret", place.inside("file"));
                let _ = fs::remove_file(place.inside("file"));
                let _ = fs::write(place.inside("file"), "inside");
            }
        });
        let _stop = Stop(&stop);
        for _ in 0..10_000 {
            if let Ok(change) = place.workspace.write("file", "changed") {
                assert_ne!(change.before.as_deref(), Some("secret"));
            }
            assert_ne!(place.workspace.read("file").unwrap_or_default(), "secret");
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(
        fs::read_to_string(place.outside("secret")).unwrap(),
        "secret"
    );
}

#[test]
fn a_reader_never_sees_a_torn_or_missing_file() {
    let place = Place::new();
    let (a, b) = ("a".repeat(300_000), "b".repeat(200_000));
    place.put("file", &a);
    let stop = AtomicBool::new(false);
    let mut reads = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _stop = Stop(&stop);
            for round in 0..300 {
                let text = if round % 2 == 0 { &b } else { &a };
                place.workspace.write("file", text).unwrap();
            }
        });
        while !stop.load(Ordering::Relaxed) {
            let text = fs::read_to_string(place.inside("file")).unwrap();
            assert!(text == a || text == b, "torn: {} bytes", text.len());
            reads += 1;
        }
    });
    println!("atomicity: {reads} reads during 300 writes");
    assert!(reads > 10);
    place.assert_clean();
}

#[test]
fn no_content_is_lost_between_concurrent_writers() {
    let place = Place::new();
    place.put("file", "start");
    let changes: Vec<(String, String)> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let workspace = &place.workspace;
                scope.spawn(move || {
                    let mut changes = Vec::new();
                    for round in 0..50 {
                        let text = format!("{writer}-{round}");
                        let change = workspace.write("file", &text).unwrap();
                        changes.push((change.before.unwrap(), text));
                    }
                    changes
                })
            })
            .collect();
        writers
            .into_iter()
            .flat_map(|writer| writer.join().unwrap())
            .collect()
    });
    // Every content was replaced exactly once, except the last one: a chain without gaps.
    let mut replaced: Vec<_> = changes.iter().map(|(before, _)| before.clone()).collect();
    replaced.push(fs::read_to_string(place.inside("file")).unwrap());
    replaced.sort();
    let mut written: Vec<_> = changes.into_iter().map(|(_, text)| text).collect();
    written.push("start".to_owned());
    written.sort();
    assert_eq!(replaced, written);
    place.assert_clean();
}

#[test]
fn of_two_that_create_one_file_one_fails() {
    let place = Place::new();
    for round in 0..50 {
        let path = format!("file{round}");
        let created: usize = std::thread::scope(|scope| {
            let tries: Vec<_> = (0..4)
                .map(|it| {
                    let (workspace, path) = (&place.workspace, &path);
                    scope
                        .spawn(move || usize::from(workspace.create(path, &it.to_string()).is_ok()))
                })
                .collect();
            tries.into_iter().map(|it| it.join().unwrap()).sum()
        });
        assert_eq!(created, 1);
    }
    place.assert_clean();
}

#[test]
fn search_and_glob_honour_ignore_files_and_are_sorted() {
    let place = Place::new();
    place.put(".gitignore", "target/\n*.log\n!keep.log\n/only-top\n");
    place.put(".git/info/exclude", "excluded\n");
    for path in [
        "a.rs",
        "a/z.rs",
        "a/b.rs",
        "a.log",
        "keep.log",
        "target/x.rs",
        "only-top",
        "a/only-top",
        ".hidden",
        "excluded",
        "a/c/tmp.txt",
        "a/c/not.txt",
    ] {
        place.put(path, "needle 1\nnothing\n  needle 2\t.\n");
    }
    place.put("a/c/.ignore", "tmp.*\n");
    place.put("a/.gitignore", "!a.log\nc/not.txt");
    fs::write(place.inside("binary"), "\0needle").unwrap();
    let all = place.text(Tool::FileGlob, &json!({ "pattern": "**", "root": "." }));
    assert_eq!(all, "a.rs\na/b.rs\na/only-top\na/z.rs\nbinary\nkeep.log");
    for (pattern, root, expected) in [
        ("*.rs", ".", "a.rs"),
        ("**/*.rs", ".", "a.rs\na/b.rs\na/z.rs"),
        ("*.rs", "a", "a/b.rs\na/z.rs"),
        ("*.rs", "a/b.rs", "a/b.rs"),
        ("{b,z}.rs", "a", "a/b.rs\na/z.rs"),
        ("*.rs", "target", "target/x.rs"),
        ("*.py", ".", "No files match."),
    ] {
        let given = json!({ "pattern": pattern, "root": root });
        assert_eq!(
            place.text(Tool::FileGlob, &given),
            expected,
            "{pattern} in {root}"
        );
    }
    let found = place
        .run(
            Tool::FileSearch,
            &json!({ "pattern": r"needle \d", "root": "a" }),
        )
        .unwrap();
    assert_eq!(
        found.text,
        "a/b.rs:1: needle 1\na/b.rs:3:   needle 2    .\na/only-top:1: needle 1\na/only-top:3:   needle 2    .\na/z.rs:1: needle 1\na/z.rs:3:   needle 2    ."
    );
    assert_eq!(found.value["count"], 6);
    let given = json!({ "pattern": "needle", "root": "." });
    let again: Vec<_> = (0..3)
        .map(|_| place.run(Tool::FileSearch, &given).unwrap())
        .collect();
    assert!(again.windows(2).all(|two| two[0] == two[1]));
}

#[test]
fn outputs_and_results_are_bounded_and_say_so() {
    let place = Place::new();
    place.put("long", &"line with x\n".repeat(20_000));
    place.put("wide", &"x".repeat(700_000));
    let read = place
        .run(Tool::FileRead, &json!({ "path": "wide" }))
        .unwrap();
    assert!(read.text.ends_with("\n[634464 of 700000 bytes left out]"));
    let found = place
        .run(Tool::FileSearch, &json!({ "pattern": "x", "root": "long" }))
        .unwrap();
    assert_eq!(found.value["count"], 1000);
    assert!(found.text.ends_with("[stopped after 1000 matches]"));
    let found = place
        .run(Tool::FileSearch, &json!({ "pattern": "x", "root": "wide" }))
        .unwrap();
    assert!(found.text.len() < 600, "{}", found.text.len());
    fs::write(place.inside("huge"), vec![b'x'; (8 << 20) + 1]).unwrap();
    let found = place.text(Tool::FileSearch, &json!({ "pattern": "x", "root": "huge" }));
    assert_eq!(
        found,
        "No matches.\n[files above 8388608 bytes are left out]"
    );
    for file in 0..5_001 {
        fs::write(place.inside(&format!("f{file}")), "").unwrap();
    }
    let listed = place
        .run(Tool::FileGlob, &json!({ "pattern": "f*", "root": "." }))
        .unwrap();
    assert_eq!(listed.value["count"], 5000);
    assert!(listed.text.contains("[stopped after 5000 files]"));
}

#[test]
fn a_slow_expression_ends_in_time() {
    let place = Place::new();
    fs::write(place.inside("text"), "abcdefghij klmno\n".repeat(400_000)).unwrap();
    let started = std::time::Instant::now();
    let given = json!({ "pattern": r"[a-q](?-u:\w|\w\w|\w\w\w){60}!$", "root": "." });
    let text = place.text(Tool::FileSearch, &given);
    println!(
        "slow expression: {:?}, {}",
        started.elapsed(),
        text.lines().last().unwrap()
    );
    assert!(started.elapsed().as_secs() < 20);
}
