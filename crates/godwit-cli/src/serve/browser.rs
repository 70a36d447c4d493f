//! Opens the site in a browser that trusts this server.
//!
//! Browsers refuse QUIC with certificates of an authority that is not publicly known, even one the user has
//! installed. Chromium makes an exception for hosts that it is told to reach by QUIC in any case; a pin of the key
//! takes the place of the authority. Firefox and Safari have no such switches.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::target::Target;
use crate::error::{Failure, plain};

/// In the order in which they are looked for.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// The flags that make Chromium speak QUIC to a host with this key at once.
pub(super) fn trust_flags(target: &Target, pin: &str) -> [String; 2] {
    [
        format!("--origin-to-force-quic-on={}:{}", target.host, target.port),
        format!("--ignore-certificate-errors-spki-list={pin}"),
    ]
}

/// A browser on this machine.
#[derive(Debug)]
pub(super) struct Browser(PathBuf);

impl Browser {
    /// # Errors
    /// If `PATH` has none.
    pub(super) fn find() -> Result<Browser, Failure> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
        find_in(&folders).map(Browser).ok_or_else(|| {
            let names = NAMES.join(", ");
            Failure::new(format!(
                "--open needs Chromium or Chrome, and none of {names} is in PATH; install one, or leave --open out"
            ))
        })
    }

    /// Starts it with a profile of its own, which is removed with the returned window.
    pub(super) fn open(self, target: &Target, pin: &str) -> Result<Window, Failure> {
        let failed = |error: io::Error| {
            let remedy = "leave --open out and open the address by hand";
            Failure::file("cannot start the browser", &self.0, plain(&error), remedy)
        };
        let profile = Profile::create().map_err(failed)?;
        let mut command = Command::new(&self.0);
        command.args(trust_flags(target, pin)).arg("--no-first-run").arg("--no-default-browser-check");
        command.arg(format!("--user-data-dir={}", profile.0.display()));
        if is_root() {
            // Chromium's sandbox does not start for root.
            command.arg("--no-sandbox");
        }
        command.arg(target.url()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().map_err(failed)?;
        Ok(Window { process, _profile: profile })
    }
}

fn find_in(folders: &[PathBuf]) -> Option<PathBuf> {
    let candidates = NAMES.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    candidates.into_iter().find(|path| is_program(path))
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.with_extension("exe").is_file()
}

#[cfg(unix)]
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}

/// A running browser; it is closed when dropped.
#[derive(Debug)]
pub(super) struct Window {
    process: Child,
    /// Dropped after the process has ended.
    _profile: Profile,
}

impl Drop for Window {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A folder for the browser's data, removed when dropped.
#[derive(Debug)]
struct Profile(PathBuf);

impl Profile {
    fn create() -> io::Result<Profile> {
        let path = std::env::temp_dir().join(format!("godwit-browser-{}", std::process::id()));
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&path)?;
        Ok(Profile(path))
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_name_host_port_and_key() {
        let target = Target { host: "localhost".to_owned(), port: 443 };
        let flags = trust_flags(&target, "a/b+c=");
        assert_eq!(
            flags,
            ["--origin-to-force-quic-on=localhost:443", "--ignore-certificate-errors-spki-list=a/b+c="]
        );
    }

    #[cfg(unix)]
    #[test]
    fn only_programs_are_browsers() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let chromium = folder.path().join("chromium");
        std::fs::write(&chromium, "").unwrap();
        std::fs::set_permissions(&chromium, std::fs::Permissions::from_mode(0o644)).unwrap();
        let folders = [PathBuf::from("/nonexistent"), folder.path().to_owned()];
        assert_eq!(find_in(&folders), None);
        std::fs::set_permissions(&chromium, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find_in(&folders), Some(chromium));
    }
}
