//! The file tools beside others that change the same files.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;

use super::super::call::Toolbox;
use super::super::output::ToolError;
use super::super::tool::Tool::FileSearch;
use super::super::workspace::Before;
use super::Place;

/// Stops the other thread also when an assertion fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Repeats `other` on a thread of its own until `work` is done.
fn beside(other: impl Fn() + Sync, work: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                other();
            }
        });
        let _stop = Stop(&stop);
        work();
    });
}

impl Place {
    /// Writes a file, and returns what was replaced.
    fn write(&self, path: &str, text: &str) -> Result<String, ToolError> {
        let written = self
            .toolbox
            .workspace
            .change(path, Before::Anything, Some(text));
        written.map(|change| change.old.unwrap())
    }
}

#[test]
fn a_link_swapped_in_during_an_operation_never_leads_out() {
    let place = Place::new();
    place.put("real/secret", "inside");
    let (real, aside) = (place.inside("real"), place.inside("aside"));
    // `real` is a folder, then missing, then a link to the outside, and again.
    let swaps = || {
        fs::rename(&real, &aside).unwrap();
        symlink(place.outside(""), &real).unwrap();
        fs::remove_file(&real).unwrap();
        fs::rename(&aside, &real).unwrap();
    };
    let (mut done, mut refused) = (0, 0);
    beside(swaps, || {
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(3) {
            let read = place.toolbox.workspace.read("real/secret");
            for result in [read, place.write("real/secret", "inside")] {
                done += usize::from(result.is_ok());
                refused += usize::from(result.is_err());
                assert_eq!(result.unwrap_or("inside".to_owned()), "inside");
            }
            let found = place.text(FileSearch, &["secret", "."]);
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
    let file = place.inside("file");
    let swaps = || {
        let _ = fs::remove_file(&file);
        let _ = symlink("../outside/secret", &file);
        let _ = fs::remove_file(&file);
        let _ = fs::write(&file, "inside");
    };
    beside(swaps, || {
        for _ in 0..10_000 {
            let replaced = place.write("file", "changed").unwrap_or_default();
            assert_ne!(replaced, "secret");
            let read = place.toolbox.workspace.read("file").unwrap_or_default();
            assert_ne!(read, "secret");
        }
    });
    place.assert_clean();
}

#[test]
fn a_reader_never_sees_a_torn_or_missing_file() {
    let place = Place::new();
    let (a, b) = ("a".repeat(300_000), "b".repeat(200_000));
    place.put("file", &a);
    let reads = AtomicBool::new(false);
    let read = || {
        let text = place.content("file");
        assert!(text == a || text == b, "torn: {} bytes", text.len());
        reads.store(true, Ordering::Relaxed);
    };
    beside(read, || {
        for round in 0..300 {
            let text = if round % 2 == 0 { &b } else { &a };
            place.write("file", text).unwrap();
        }
    });
    assert!(reads.load(Ordering::Relaxed));
    place.assert_clean();
}

#[test]
fn of_two_that_create_one_file_one_fails() {
    let place = Place::new();
    for round in 0..50 {
        let (path, workspace) = (format!("file{round}"), &place.toolbox.workspace);
        let create = || workspace.change(&path, Before::Nothing, Some("x")).is_ok();
        let created = std::thread::scope(|scope| {
            let threads = [(); 4].map(|()| scope.spawn(create));
            threads.map(|thread| usize::from(thread.join().unwrap()))
        });
        assert_eq!(created.into_iter().sum::<usize>(), 1);
    }
    place.assert_clean();
}

#[tokio::test]
async fn steps_that_change_files_wait_for_those_of_another_process() {
    let place = Place::new();
    // It has a handle of the folder and a mutex of its own, as another process has.
    let other = Toolbox::open(&place.inside(""), |_| None).unwrap();
    let lock = place.toolbox.lock_workspace().await;
    assert!(
        other.lock_workspace().now_or_never().is_none(),
        "two at once"
    );
    drop(lock);
    other.lock_workspace().await;
}
