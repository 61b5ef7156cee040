//! The programs that tools start, and the environment that they see.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Variables that a program gets besides `PATH` and `LANG=C`, if they are set.
const PASSED_ON: [&str; 3] = ["HOME", "CARGO_HOME", "RUSTUP_HOME"];

/// Programs as found once; `None`: not installed.
#[derive(Debug, Clone, Default)]
pub struct Programs {
    pub splice: Option<PathBuf>,
    pub magellan: Option<PathBuf>,
    pub cargo: Option<PathBuf>,
    /// The whole environment of every program.
    pub environment: Vec<(OsString, OsString)>,
    /// Where `cargo check` builds; `None`: `target/conclave-check` of the project.
    pub target_dir: Option<PathBuf>,
}

impl Programs {
    /// Looks programs up by a variable reader such as `std::env::var_os`.
    #[must_use]
    pub fn find(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let path = variable("PATH").unwrap_or_default();
        let mut environment = vec![("PATH".into(), path.clone()), ("LANG".into(), "C".into())];
        for name in PASSED_ON {
            environment.extend(variable(name).map(|value| (name.into(), value)));
        }
        Self {
            splice: executable("splice", &path),
            magellan: executable("magellan", &path),
            cargo: executable("cargo", &path),
            environment,
            target_dir: None,
        }
    }
}

/// Only absolute folders count: a relative one would mean another program in each folder.
fn executable(name: &str, path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    file.metadata()
        .is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_in_absolute_folders_and_see_few_variables() {
        let programs = Programs::find(|name| match name {
            "PATH" => Some("bin:/bin".into()),
            "HOME" => Some("/home/x".into()),
            _ => None,
        });
        assert_eq!((programs.splice, programs.magellan), (None, None));
        let names: Vec<_> = programs.environment.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["PATH", "LANG", "HOME"]);
        assert_eq!(
            executable("sh", OsStr::new("bin:/bin")),
            Some("/bin/sh".into())
        );
        assert_eq!(executable("sh", OsStr::new("bin:.")), None);
    }
}
