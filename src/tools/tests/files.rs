//! The file tools on a real folder: what they do, and that nothing leaves the workspace.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use super::super::in_doubt::{before, compared, doubted};
use super::super::tool::Tool::{FileCreate, FileGlob, FileRead, FileSearch, FileWrite};
use super::super::undo::put_back;
use super::super::workspace::{Before, hash, unfinished};
use super::{Place, made};
use crate::journal::Restore;

#[test]
fn a_file_is_created_read_written_and_put_back() {
    let place = Place::new();
    let created = place.text(FileCreate, &["a.txt", "one\n"]);
    assert_eq!(created, "Created 'a.txt' with 4 bytes.");
    let file = place.inside("a.txt");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o751)).unwrap();
    let written = place.text(FileWrite, &["a.txt", "two\n"]);
    assert_eq!(written, "Wrote 4 bytes to 'a.txt'.");
    assert_eq!(place.text(FileRead, &["a.txt"]), "two\n");

    let (two, one) = (hash("two\n"), hash("one\n"));
    let restore = |before: Before<'_>, old: Option<&str>| {
        let restored = place.toolbox.workspace.change("a.txt", before, old);
        restored.map(drop).map_err(|error| error.message)
    };
    restore(Before::Hash(&two), Some("one\n")).unwrap();
    assert_eq!(place.content("a.txt"), "one\n");
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o751);
    // The same undo again would overwrite what is there now.
    let changed = format!("file 'a.txt' changed since: expected {two}, found {one}");
    assert_eq!(restore(Before::Hash(&two), Some("one\n")), Err(changed));
    restore(Before::Hash(&one), None).unwrap();
    assert!(!file.exists());
    restore(Before::Nothing, Some("back")).unwrap();
    assert_eq!(place.content("a.txt"), "back");
    let exists = "file 'a.txt' already exists".to_owned();
    assert_eq!(restore(Before::Nothing, Some("x")), Err(exists));
    place.assert_clean();
}

#[tokio::test]
async fn a_finished_step_has_its_change_whatever_is_written_later() {
    let place = Place::with(&[("a.txt", "one")], |_| None);
    let step = place.step(FileWrite, &["a.txt", "two"]).unwrap();
    let old = before(&step).await;
    step.run(&old).await.unwrap();
    place.put("a.txt", "by another program");
    let (changes, _) = compared(&step, old.clone(), true).await;
    assert_eq!(changes[0].after, Some(hash("two")));
    // One that was interrupted may not have come so far.
    let (changes, states) = compared(&step, old, false).await;
    let other = "'a.txt' has other content than before and than was to be written";
    assert_eq!((changes.len(), &*states), (0, &[other.to_owned()][..]));
}

#[tokio::test]
async fn a_file_that_changed_since_the_step_began_is_not_replaced() {
    let place = Place::with(&[("a.txt", "one")], |_| None);
    let step = place.step(FileWrite, &["a.txt", "two"]).unwrap();
    let old = before(&step).await;
    place.put("a.txt", "by another program");
    let error = step.run(&old).await.unwrap_err().message;
    assert!(
        error.starts_with("file 'a.txt' changed since: expected"),
        "{error}"
    );
    assert_eq!(place.content("a.txt"), "by another program");
}

#[tokio::test]
async fn what_a_killed_write_left_is_removed_and_no_other_file() {
    let own = "docs/.conclave-0123456789abcdef01234567.tmp";
    let place = Place::with(&[("docs/a.txt", "one"), (own, "of the user")], |_| None);
    let step = place.step(FileWrite, &["docs/a.txt", "two"]).unwrap();
    let old = before(&step).await;
    let left = ["one", "two"].map(|text| unfinished("docs/a.txt", text));
    left.iter().for_each(|path| place.put(path, "t"));
    doubted(&step, old).await;
    assert_eq!(
        left.clone().map(|path| place.inside(&path).exists()),
        [false; 2]
    );

    // An undo that is begun again does the same, whatever it finds.
    let restore = Restore {
        path: "docs/a.txt".to_owned(),
        expected: Some(hash("two")),
        old: Some("one".to_owned()),
    };
    for (now, is_back) in [("two", true), ("one", true), ("other", false)] {
        place.put("docs/a.txt", now);
        place.put(&left[0], "o");
        let done = put_back(&place.toolbox.workspace, std::slice::from_ref(&restore));
        assert_eq!(done.is_ok(), is_back, "{now}");
        assert!(!place.inside(&left[0]).exists(), "{now}");
    }
    assert_eq!(place.content(own), "of the user");
    // Two steps changed the file: from "zero" to "one", and then to "two".
    let first = Restore {
        expected: restore.old.as_deref().map(hash),
        old: Some("zero".to_owned()),
        ..restore.clone()
    };
    let both = [restore, first];
    for (now, left) in [("two", "one"), ("one", "one"), ("zero", "zero")] {
        place.put("docs/a.txt", now);
        put_back(&place.toolbox.workspace, &both).unwrap();
        assert_eq!(place.content("docs/a.txt"), left, "{now}");
    }
    place.put("docs/a.txt", "other");
    put_back(&place.toolbox.workspace, &both).unwrap_err();
}

#[test]
fn a_path_may_begin_with_the_workspace() {
    let place = Place::new();
    let root = place.toolbox.workspace.root.display().to_string();
    let relative = |path: &str| place.toolbox.relative(path);
    assert_eq!(relative(&format!("{root}/src/a.rs")).unwrap(), "src/a.rs");
    assert_eq!(relative("./src/a.rs").unwrap(), "src/a.rs");
    for path in ["/etc/passwd", "../a.rs", "src/../a.rs"] {
        assert!(relative(path).is_err(), "{path}");
    }
}

#[test]
fn a_folder_that_replaces_the_workspace_is_opened_and_a_link_is_not() {
    let mut place = Place::new();
    let inside = place.inside("");
    fs::remove_dir_all(&inside).unwrap();
    fs::create_dir(&inside).unwrap();
    place.put("a.txt", "new");
    place.run(FileRead, &["a.txt"]).unwrap_err();
    place.toolbox = place.toolbox.current();
    assert_eq!(place.text(FileRead, &["a.txt"]), "new");

    fs::rename(&inside, place.outside("moved")).unwrap();
    symlink(place.outside(""), place.folder.path().join("inside")).unwrap();
    place.toolbox = place.toolbox.current();
    place.run(FileRead, &["secret"]).unwrap_err();
    assert_eq!(place.text(FileRead, &["a.txt"]), "new");
}

#[test]
fn refusals_have_fixed_words() {
    let place = Place::new();
    place.put("src/lib.rs", "");
    place.put("nul", "a\0b");
    place.put("full", &"x".repeat(1 << 20));
    fs::write(place.inside("binary"), [0xff, 0xfe]).unwrap();
    place.hold(
        r"file_read no/ne -> ? file 'no/ne' does not exist
        file_read binary -> ? file 'binary' is not UTF-8 text
        file_read nul -> ? file 'nul' is not UTF-8 text
        file_read full -> ? holds
        file_read none -> ! file 'none' does not exist
        file_write no/ne new -> ? file 'no/ne' does not exist
        file_write src new -> ? 'src' is a folder, not a text file
        file_write none new -> ! file 'none' does not exist
        file_write . new -> ! '.' is a folder, not a text file
        file_create src new -> ! file 'src' already exists
        file_create a/b/c new -> ? folder 'a/b' does not exist
        file_create src/lib.rs/x new -> ! folder 'src/lib.rs' does not exist
        file_search ( . -> ! invalid pattern '(': regex parse error:\n    (?:()\n    ^\nerror: unclosed group
        file_glob x src -> ? holds
        file_glob [ . -> ! invalid pattern '[': unclosed character class; missing ']'
        lsp_check src -> ? 'cargo' is not installed
        splice_plan p -> ? 'splice' is not installed
        symbols_in_file p -> ? 'magellan' is not installed",
    );
    assert_eq!(place.check(FileCreate, &["src/new", ""]), "holds");
    assert_eq!(fs::read(place.inside("binary")).unwrap(), [0xff, 0xfe]);
    place.assert_clean();
}

#[test]
fn no_link_leads_out_of_the_workspace() {
    let place = Place::new();
    place.put("real/file", "inside");
    let secret = place.outside("secret").display().to_string();
    for (link, target) in [
        ("absolute", secret.as_str()),
        ("relative", "../outside/secret"),
        ("folder", "../outside"),
        ("root", "/proc/self/root"),
        ("cwd", "/proc/self/cwd"),
        ("dangling", "../outside/new"),
        ("loop", "loop"),
        ("alias", "real"),
    ] {
        symlink(target, place.inside(link)).unwrap();
    }
    let rooted = format!("root{secret}");
    let paths = "absolute relative folder/secret dangling cwd/x".split(' ');
    for path in paths.chain([rooted.as_str()]) {
        let refused = format!("file_read {path} -> X '{path}' leaves the workspace");
        place.hold(&refused);
        let (file, root) = ([path, "x"], ["x", path]);
        for (tool, values) in [
            (FileWrite, file),
            (FileCreate, file),
            (FileSearch, root),
            (FileGlob, root),
        ] {
            assert!(place.run(tool, &values).is_err(), "{tool} {path}");
            assert_ne!(place.check(tool, &values), "holds", "{tool} {path}");
        }
    }
    // A link that stays inside can be read and not written through. A walk does not follow links.
    place.hold(
        "file_create folder/new x -> ! 'folder/new' goes through the symbolic link 'folder'
        file_write absolute x -> ! 'absolute' goes through the symbolic link 'absolute'
        file_write alias/file x -> ! 'alias/file' goes through the symbolic link 'alias'
        file_read alias/file -> = inside
        file_glob ** . -> = real/file",
    );
    assert!(place.run(FileRead, &["loop"]).is_err());
    for path in ["folder/secret", "absolute", "alias/file"] {
        assert!(place.toolbox.workspace.real_path(path).is_err());
    }
    place.assert_clean();
}

/// The device is made in the test's own folder: a test must never touch `/dev`, because one that
/// runs as root and fails would replace the machine's device.
#[test]
fn pipes_devices_sockets_and_second_names_are_refused() {
    let place = Place::new();
    assert!(made("mkfifo", &place.inside("pipe"), &[]));
    let _socket = std::os::unix::net::UnixListener::bind(place.inside("socket")).unwrap();
    fs::hard_link(place.outside("secret"), place.inside("hard")).unwrap();
    let mut kinds = vec![("pipe", "a named pipe"), ("socket", "a socket")];
    // Not every user can make a device.
    let is_made = made("mknod", &place.inside("device"), &["c", "1", "3"]);
    kinds.extend(is_made.then_some(("device", "a device")));
    for (name, kind) in kinds {
        let before = fs::metadata(place.inside(name)).unwrap().ino();
        for step in ["file_read NAME", "file_search x NAME", "file_write NAME x"] {
            let step = step.replace("NAME", name);
            place.hold(&format!("{step} -> ! '{name}' is {kind}, not a text file"));
        }
        for old in [Some("x"), None] {
            let workspace = &place.toolbox.workspace;
            assert!(workspace.change(name, Before::Anything, old).is_err());
        }
        assert_eq!(fs::metadata(place.inside(name)).unwrap().ino(), before);
    }
    place.hold(
        "file_read hard -> = secret
        file_write hard x -> ! file 'hard' has 2 hard links; a write would separate them
        file_write hard x -> ? file 'hard' has 2 hard links; a write would separate them
        file_search x . -> = No matches.",
    );
    place.assert_clean();
}

#[test]
fn odd_names_work_or_fail_with_one_line() {
    let place = Place::new();
    let longest = "n".repeat(255);
    for name in ["ü 'x'", "-rf", "a\\b", "*", longest.as_str()] {
        place.run(FileCreate, &[name, "x"]).unwrap();
        place.run(FileWrite, &[name, "y"]).unwrap();
        assert_eq!(place.content(name), "y");
    }
    place.put("a\nb", "");
    for name in ["a\nb", "a\u{202e}b"] {
        let refused = "file_create failed: Invalid arguments for 'file_create': 'path' must not contain invisible characters";
        assert_eq!(place.text(FileCreate, &[name, ""]), refused);
    }
    assert_eq!(place.text(FileGlob, &["a*", "."]), "a\\nb\na\\b");
    let long = "n".repeat(256);
    let too_long = format!("cannot create '{long}': File name too long (os error 36)");
    place.hold(&format!("file_create {long} x -> ! {too_long}"));
    assert!(place.run(FileRead, &[&("d/".repeat(2000) + "x")]).is_err());
    place.assert_clean();
}

#[test]
fn search_and_glob_honour_ignore_files_and_are_sorted() {
    let place = Place::new();
    for path in "a.rs a/z.rs a/b.rs a.log keep.log target/x.rs only-top a/only-top .hidden \
                 excluded a/c/tmp.txt a/c/not.txt"
        .split_whitespace()
    {
        place.put(path, "needle 1\nnothing\n  needle 2\t.\n");
    }
    place.put(".gitignore", "target/\n*.log\n!keep.log\n/only-top\n");
    place.put(".git/info/exclude", "excluded\n");
    place.put("a/c/.ignore", "tmp.*\n");
    place.put("a/.gitignore", "!a.log\nc/not.txt");
    place.put("binary", "\0needle");
    place.hold(
        r"file_glob ** . -> = a.rs\na/b.rs\na/only-top\na/z.rs\nbinary\nkeep.log
        file_glob *.rs . -> = a.rs
        file_glob **/*.rs . -> = a.rs\na/b.rs\na/z.rs
        file_glob *.rs a -> = a/b.rs\na/z.rs
        file_glob *.rs a/b.rs -> = a/b.rs
        file_glob {b,z}.rs a -> = a/b.rs\na/z.rs
        file_glob *.rs target -> = target/x.rs
        file_glob *.py . -> = No files match.",
    );
    let found = place.text(FileSearch, &[r"needle \d", "a"]);
    let lines = ["b.rs", "only-top", "z.rs"]
        .map(|file| format!("a/{file}:1: needle 1\na/{file}:3:   needle 2    ."));
    assert_eq!(found, lines.join("\n"));
}

#[test]
fn outputs_and_results_are_bounded_and_say_so() {
    let place = Place::new();
    place.put("long", &"line with x\n".repeat(20_000));
    place.put("wide", &"ä".repeat(350_000));
    place.put("huge", &"x".repeat((8 << 20) + 1));
    let read = place.text(FileRead, &["wide"]);
    assert!(read.ends_with("\n[634464 of 700000 bytes left out]"));
    let found = place.text(FileSearch, &["x", "long"]);
    assert!(found.ends_with("\nlong:1000: line with x\n[stopped after 1000 matches]"));
    place.put(
        "many",
        &"a line of some seventy letters, so that a thousand do not fit in it\n".repeat(1_200),
    );
    let found = place.text(FileSearch, &["seventy", "many"]);
    assert!(found.ends_with("bytes left out]\n[stopped after 1000 matches]"));
    assert!(place.text(FileSearch, &["ä", "wide"]).len() < 600);
    let huge = "No matches.\n[files above 8388608 bytes are left out]";
    assert_eq!(place.text(FileSearch, &["x", "huge"]), huge);
    let slow = Place::new();
    slow.put("text", &"abcdefghij klmno\n".repeat(400_000));
    let started = std::time::Instant::now();
    slow.text(FileSearch, &[r"[a-q](?-u:\w|\w\w|\w\w\w){60}!$", "."]);
    assert!(started.elapsed().as_secs() < 20, "it ends in time");
}
