//! Tests the SQLite file: backups, several processes, and defects of the file.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use conclave::journal::{
    BackendStore as _, Claim, Error, JournalStore as _, RunFilter, RunReader as _, SqliteStore,
};
use tempfile::TempDir;

use super::{LEASE, at, id, new_run};

#[tokio::test]
async fn a_backup_of_sqlite_is_a_whole_database() {
    let folder = TempDir::new().unwrap();
    let store = SqliteStore::open(&folder.path().join("conclave.db"), "one")
        .await
        .unwrap();
    store.accept(new_run(1, Some("k"), "one")).await.unwrap();
    let copy = folder.path().join("copy.db");
    store.backup(&copy).await.unwrap();
    store.accept(new_run(2, None, "two")).await.unwrap();
    assert!(
        store.backup(&copy).await.is_err(),
        "an old backup is not overwritten"
    );
    let copied = SqliteStore::open(&copy, "two").await.unwrap();
    assert_eq!(
        copied.entries(id(1), 0).await.unwrap(),
        store.entries(id(1), 0).await.unwrap()
    );
    assert_eq!(
        copied.run(id(2)).await.unwrap(),
        None,
        "it came after the backup"
    );
}

#[tokio::test]
async fn a_second_process_shares_the_file_and_takes_over_after_a_death() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("conclave.db");
    let first = SqliteStore::open(&path, "one").await.unwrap();
    let second = SqliteStore::open(&path, "two").await.unwrap();
    first.accept(new_run(1, None, "one")).await.unwrap();
    let held = first
        .claim(Claim::Oldest, "one", LEASE, at(10))
        .await
        .unwrap();
    assert!(held.is_some());
    second.release_dead().await.unwrap();
    assert_eq!(
        second
            .claim(Claim::Oldest, "two", LEASE, at(11))
            .await
            .unwrap(),
        None,
        "the first is alive"
    );
    // A process that died leaves its file behind, without the lock.
    drop(first);
    std::fs::write(path.with_extension("db.owners").join("one"), "").unwrap();
    second.release_dead().await.unwrap();
    let taken = second
        .claim(Claim::Oldest, "two", LEASE, at(11))
        .await
        .unwrap();
    assert_eq!(taken.map(|lease| lease.run), Some(id(1)));
}

#[tokio::test]
async fn an_impossible_row_is_reported_with_its_column() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("conclave.db");
    let store = SqliteStore::open(&path, "one").await.unwrap();
    store.accept(new_run(1, None, "one")).await.unwrap();
    let raw = rusqlite::Connection::open(&path).unwrap();
    raw.execute_batch("UPDATE runs SET state = 'asleep'")
        .unwrap();
    let error = store.run(id(1)).await.unwrap_err();
    assert!(
        matches!(
            error,
            Error::Corrupt {
                table: "runs",
                column: "state",
                ..
            }
        ),
        "{error}"
    );
    // It hides no other run.
    store.accept(new_run(2, None, "two")).await.unwrap();
    let listed = store
        .runs(&RunFilter {
            limit: 9,
            ..RunFilter::default()
        })
        .await
        .unwrap();
    assert_eq!(listed.iter().map(|run| run.id).collect::<Vec<_>>(), [id(2)]);
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_is_a_clear_error() {
    let folder = TempDir::new().unwrap();
    let blocker = folder.path().join("file");
    std::fs::write(&blocker, "").unwrap();
    let error = SqliteStore::open(&blocker.join("conclave.db"), "one")
        .await
        .err()
        .unwrap();
    assert!(matches!(error, Error::Unavailable(_)), "{error}");
}

#[tokio::test]
async fn processes_can_create_the_database_at_the_same_time() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("conclave.db");
    let open = |n: u32| {
        let path = path.clone();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async { SqliteStore::open(&path, &format!("o{n}")).await.map(drop) })
        })
    };
    let opened: Vec<_> = (0..8).map(open).collect();
    for result in opened {
        result.join().unwrap().unwrap();
    }
}

#[tokio::test]
async fn what_is_no_database_of_this_program_is_refused_and_stays_as_it_is() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("notes.db");
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE notes (a)").unwrap();
    drop(other);
    let text = folder.path().join("app.conf");
    fs::write(&text, "a = 1\n".repeat(400)).unwrap();
    let inner = folder.path().join("folder");
    fs::create_dir(&inner).unwrap();
    for (path, mode, why) in [
        (&path, 0o644, "another program"),
        (&text, 0o644, "no SQLite database"),
        (&inner, 0o755, "it is a folder"),
    ] {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        let before = fs::read(path).ok();
        let refused = SqliteStore::open(path, "a").await.err().unwrap();
        assert!(refused.to_string().contains(why), "{refused}");
        assert_eq!(fs::read(path).ok(), before);
        assert_eq!(fs::metadata(path).unwrap().mode() & 0o777, mode);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
}
