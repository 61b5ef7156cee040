//! The file tools on a real folder: what they do, and that nothing leaves the workspace.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::process::Command;

use crate::tools::tool::Tool;
use crate::tools::workspace::hash;
use serde_json::json;

use super::place::{Place, mkfifo};

#[test]
fn a_file_is_created_read_written_and_put_back() {
    let place = Place::new();
    let created = place
        .run(
            Tool::FileCreate,
            &json!({ "path": "a.txt", "contents": "one\n" }),
        )
        .unwrap();
    assert_eq!(created.text, "Created 'a.txt' with 4 bytes.");
    assert_eq!(created.changed[0].before, None);
    assert_eq!(created.changed[0].after_hash, Some(hash("one\n")));
    fs::set_permissions(place.inside("a.txt"), fs::Permissions::from_mode(0o751)).unwrap();

    let written = place
        .run(
            Tool::FileWrite,
            &json!({ "path": "a.txt", "contents": "two\n" }),
        )
        .unwrap();
    assert_eq!(written.text, "Wrote 4 bytes to 'a.txt'.");
    let change = &written.changed[0];
    assert_eq!(change.before.as_deref(), Some("one\n"));
    assert_eq!(change.before_hash, Some(hash("one\n")));
    assert_eq!(
        fs::metadata(place.inside("a.txt")).unwrap().mode() & 0o777,
        0o751
    );
    assert_eq!(
        place.text(Tool::FileRead, &json!({ "path": "a.txt" })),
        "two\n"
    );

    let restore = |now: Option<&str>, old: Option<&str>| {
        place
            .workspace
            .restore("a.txt", now, old)
            .map_err(|error| error.to_string())
    };
    restore(change.after_hash.as_deref(), change.before.as_deref()).unwrap();
    assert_eq!(fs::read_to_string(place.inside("a.txt")).unwrap(), "one\n");
    assert_eq!(
        fs::metadata(place.inside("a.txt")).unwrap().mode() & 0o777,
        0o751
    );
    // The same undo again would overwrite what is there now.
    assert_eq!(
        restore(change.after_hash.as_deref(), change.before.as_deref()).unwrap_err(),
        format!(
            "file 'a.txt' changed since: expected {}, found {}",
            hash("two\n"),
            hash("one\n")
        )
    );
    restore(created.changed[0].after_hash.as_deref(), None).unwrap();
    assert!(!place.inside("a.txt").exists());
    restore(None, Some("back")).unwrap();
    assert_eq!(fs::read_to_string(place.inside("a.txt")).unwrap(), "back");
    assert_eq!(
        restore(None, Some("x")).unwrap_err(),
        "file 'a.txt' already exists"
    );
    place.assert_clean();
}

#[test]
fn refusals_have_fixed_words() {
    let place = Place::new();
    place.put("src/lib.rs", "");
    fs::write(place.inside("binary"), [0xff, 0xfe]).unwrap();
    fs::write(place.inside("nul"), "a\0b").unwrap();
    fs::write(place.inside("big"), vec![b'x'; (1 << 20) + 1]).unwrap();
    fs::write(place.inside("full"), vec![b'x'; 1 << 20]).unwrap();
    let read = |path: &str| json!({ "path": path });
    let write = |path: &str| json!({ "path": path, "contents": "new" });
    let look = |root: &str| json!({ "pattern": "x", "root": root });
    for (tool, given, expected) in [
        (
            Tool::FileRead,
            read("none"),
            "Precondition failed: file 'none' does not exist",
        ),
        (
            Tool::FileRead,
            read("no/ne"),
            "Precondition failed: file 'no/ne' does not exist",
        ),
        (
            Tool::FileRead,
            read("src"),
            "Precondition failed: 'src' is a folder, not a text file",
        ),
        (
            Tool::FileRead,
            read("binary"),
            "Precondition failed: file 'binary' is not UTF-8 text",
        ),
        (
            Tool::FileRead,
            read("nul"),
            "Precondition failed: file 'nul' is not UTF-8 text",
        ),
        (Tool::FileRead, read("full"), "holds"),
        (
            Tool::FileRead,
            read("big"),
            "Precondition failed: file 'big' has 1048577 bytes, more than the limit of 1048576",
        ),
        (
            Tool::FileWrite,
            write("no/ne"),
            "Precondition failed: file 'no/ne' does not exist",
        ),
        (
            Tool::FileWrite,
            write("src"),
            "Precondition failed: 'src' is a folder, not a text file",
        ),
        (
            Tool::FileWrite,
            write("binary"),
            "Precondition failed: file 'binary' is not UTF-8 text",
        ),
        (
            Tool::FileCreate,
            write("src/lib.rs"),
            "Precondition failed: file 'src/lib.rs' already exists",
        ),
        (
            Tool::FileCreate,
            write("src"),
            "Precondition failed: file 'src' already exists",
        ),
        (
            Tool::FileCreate,
            write("a/b/c"),
            "Precondition failed: folder 'a' does not exist",
        ),
        (Tool::FileCreate, write("src/new"), "holds"),
        (
            Tool::FileSearch,
            look("none"),
            "Precondition failed: root 'none' does not exist",
        ),
        (Tool::FileGlob, look("src"), "holds"),
        (
            Tool::LspCheck,
            read("src"),
            "Precondition failed: 'cargo' is not installed",
        ),
        (
            Tool::SplicePlan,
            json!({ "file": "p" }),
            "Precondition failed: 'splice' is not installed",
        ),
        (
            Tool::SymbolsInFile,
            json!({ "pattern": "p" }),
            "Precondition failed: 'magellan' is not installed",
        ),
    ] {
        assert_eq!(place.precondition(tool, &given), expected);
        assert_eq!(place.precondition(tool, &given), expected);
    }
    for (tool, given, expected) in [
        (
            Tool::FileRead,
            read("none"),
            "file_read failed: file 'none' does not exist",
        ),
        (
            Tool::FileWrite,
            write("none"),
            "file_write failed: file 'none' does not exist",
        ),
        (
            Tool::FileWrite,
            write("."),
            "file_write failed: '.' is a folder, not a text file",
        ),
        (
            Tool::FileCreate,
            write("src"),
            "file_create failed: file 'src' already exists",
        ),
        (
            Tool::FileCreate,
            write("a/b"),
            "file_create failed: folder 'a' does not exist",
        ),
        (
            Tool::FileCreate,
            write("src/lib.rs/x"),
            "file_create failed: folder 'src/lib.rs' does not exist",
        ),
        (
            Tool::FileRead,
            read("../x"),
            "Operation not allowed: path '../x' leaves the workspace",
        ),
        (
            Tool::FileSearch,
            json!({ "pattern": "(", "root": "." }),
            "file_search failed: invalid pattern '(': regex parse error:\n    (?:()\n    ^\nerror: unclosed group",
        ),
        (
            Tool::FileGlob,
            json!({ "pattern": "[", "root": "." }),
            "file_glob failed: invalid pattern '[': unclosed character class; missing ']'",
        ),
    ] {
        assert_eq!(place.text(tool, &given), expected);
    }
    assert_eq!(fs::read(place.inside("binary")).unwrap(), [0xff, 0xfe]);
    place.assert_clean();
}

#[test]
fn no_link_leads_out_of_the_workspace() {
    let place = Place::new();
    place.put("real/file", "inside");
    symlink(place.outside("secret"), place.inside("absolute")).unwrap();
    symlink("../outside/secret", place.inside("relative")).unwrap();
    symlink("../outside", place.inside("folder")).unwrap();
    symlink("/proc/self/root", place.inside("root")).unwrap();
    symlink("/proc/self/cwd", place.inside("cwd")).unwrap();
    symlink("../outside/new", place.inside("dangling")).unwrap();
    symlink("loop", place.inside("loop")).unwrap();
    symlink("real", place.inside("alias")).unwrap();
    let secret = place.outside("secret").display().to_string();
    let through_root = format!("root{secret}");
    for path in [
        "absolute",
        "relative",
        "folder/secret",
        &through_root,
        "dangling",
        "cwd/x",
    ] {
        let expected = format!("Operation not allowed: path '{path}' leaves the workspace");
        assert_eq!(
            place.text(Tool::FileRead, &json!({ "path": path })),
            expected
        );
        assert_eq!(
            place.precondition(Tool::FileRead, &json!({ "path": path })),
            expected
        );
        for tool in [Tool::FileWrite, Tool::FileCreate] {
            let given = json!({ "path": path, "contents": "overwritten" });
            assert!(place.run(tool, &given).is_err(), "{tool} {path}");
            assert_ne!(place.precondition(tool, &given), "holds", "{tool} {path}");
        }
        for tool in [Tool::FileSearch, Tool::FileGlob] {
            assert!(
                place
                    .run(tool, &json!({ "pattern": "s", "root": path }))
                    .is_err()
            );
        }
    }
    assert_eq!(
        place.text(
            Tool::FileCreate,
            &json!({ "path": "folder/new", "contents": "x" })
        ),
        "file_create failed: 'folder/new' goes through the symbolic link 'folder'"
    );
    assert_eq!(
        place.text(
            Tool::FileWrite,
            &json!({ "path": "absolute", "contents": "x" })
        ),
        "file_write failed: 'absolute' is a symbolic link, not a text file"
    );
    assert!(
        place
            .run(Tool::FileRead, &json!({ "path": "loop" }))
            .is_err()
    );
    // A link that stays inside can be read and not written through.
    assert_eq!(
        place.text(Tool::FileRead, &json!({ "path": "alias/file" })),
        "inside"
    );
    assert_eq!(
        place.text(
            Tool::FileWrite,
            &json!({ "path": "alias/file", "contents": "x" })
        ),
        "file_write failed: 'alias/file' goes through the symbolic link 'alias'"
    );
    assert_eq!(
        place.text(Tool::FileGlob, &json!({ "pattern": "**", "root": "." })),
        "real/file",
        "a walk does not follow links"
    );
    assert!(place.workspace.real_path("folder/secret").is_err());
    place.assert_clean();
}

#[test]
fn pipes_devices_and_sockets_are_refused_at_once() {
    let place = Place::new();
    mkfifo(&place.inside("pipe"));
    let _socket = std::os::unix::net::UnixListener::bind(place.inside("socket")).unwrap();
    assert_eq!(
        place.text(Tool::FileRead, &json!({ "path": "pipe" })),
        "file_read failed: 'pipe' is a named pipe, not a text file"
    );
    assert_eq!(
        place.text(
            Tool::FileWrite,
            &json!({ "path": "socket", "contents": "" })
        ),
        "file_write failed: 'socket' is a socket, not a text file"
    );
    assert_eq!(
        place.text(Tool::FileSearch, &json!({ "pattern": "x", "root": "pipe" })),
        "file_search failed: 'pipe' is a named pipe, not a text file"
    );
    assert_eq!(
        place.text(Tool::FileSearch, &json!({ "pattern": "x", "root": "." })),
        "No matches."
    );
}

/// The device is made in the test's own folder: a test must never touch `/dev`, because one that
/// runs as root and fails would replace the machine's device.
#[test]
fn a_device_is_refused() {
    let place = Place::new();
    let device = place.inside("device");
    let made = Command::new("mknod")
        .arg(&device)
        .args(["c", "1", "3"])
        .status()
        .unwrap();
    if !made.success() {
        println!("not tested: this user cannot make a device");
        return;
    }
    let before = fs::metadata(&device).unwrap().ino();
    for (tool, given, expected) in [
        (Tool::FileRead, json!({ "path": "device" }), "file_read"),
        (
            Tool::FileWrite,
            json!({ "path": "device", "contents": "x" }),
            "file_write",
        ),
    ] {
        assert_eq!(
            place.text(tool, &given),
            format!("{expected} failed: 'device' is a device, not a text file")
        );
    }
    let empty = hash("");
    assert!(
        place
            .workspace
            .restore("device", Some(&empty), Some("x"))
            .is_err()
    );
    assert!(
        place
            .workspace
            .restore("device", Some(&empty), None)
            .is_err()
    );
    assert_eq!(fs::metadata(&device).unwrap().ino(), before);
    place.assert_clean();
}

#[test]
fn a_file_with_two_names_is_read_and_not_written() {
    let place = Place::new();
    fs::hard_link(place.outside("secret"), place.inside("hard")).unwrap();
    assert_eq!(
        place.text(Tool::FileRead, &json!({ "path": "hard" })),
        "secret"
    );
    let expected = "file 'hard' has 2 hard links; a write would separate them";
    let given = json!({ "path": "hard", "contents": "x" });
    assert_eq!(
        place.text(Tool::FileWrite, &given),
        format!("file_write failed: {expected}")
    );
    assert_eq!(
        place.precondition(Tool::FileWrite, &given),
        format!("Precondition failed: {expected}")
    );
    place.assert_clean();
}

#[test]
fn odd_names_work_or_fail_with_one_line() {
    let place = Place::new();
    let longest = "n".repeat(255);
    for name in ["a\nb", "ü 'x'", "-rf", "a\\b", "*", longest.as_str()] {
        let given = json!({ "path": name, "contents": "x" });
        place.run(Tool::FileCreate, &given).unwrap();
        place.run(Tool::FileWrite, &given).unwrap();
        assert_eq!(fs::read_to_string(place.inside(name)).unwrap(), "x");
    }
    assert_eq!(
        place.precondition(Tool::FileCreate, &json!({ "path": "a\nb", "contents": "" })),
        "Precondition failed: file 'a\\nb' already exists"
    );
    let listed = place
        .run(Tool::FileGlob, &json!({ "pattern": "a*", "root": "." }))
        .unwrap();
    assert_eq!(listed.text, "a\\nb\na\\b");
    assert_eq!(listed.value["paths"], json!(["a\nb", "a\\b"]));
    let long = "n".repeat(256);
    assert_eq!(
        place.text(Tool::FileCreate, &json!({ "path": long, "contents": "" })),
        format!("file_create failed: cannot create '{long}': File name too long (os error 36)")
    );
    let deep = "d/".repeat(2000) + "x";
    assert!(place.run(Tool::FileRead, &json!({ "path": deep })).is_err());
    place.assert_clean();
}
