//! A browser on this machine that trusts this server, whoever has signed its certificate.
//!
//! Browsers refuse QUIC with certificates of an authority that is not publicly known, even one the user has
//! installed. Chromium makes an exception for hosts that it is told to reach by QUIC in any case; a pin of the key
//! takes the place of the authority. Firefox and Safari have no such switches.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::SiteAddress;

/// The flags that make Chromium speak QUIC to a host with this key at once.
pub(crate) fn trust_flags(site: &SiteAddress, pin: &str) -> [String; 2] {
    [
        format!("--origin-to-force-quic-on={}:{}", site.host, site.port),
        format!("--ignore-certificate-errors-spki-list={pin}"),
    ]
}

/// A browser on this machine: Chromium or Chrome.
#[derive(Debug)]
pub struct Browser(PathBuf);

/// No browser was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NoBrowser;

impl fmt::Display for NoBrowser {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Browser::NAMES.join(", ");
        write!(
            formatter,
            "--open needs Chromium or Chrome, and none of {names} is in PATH; install one, or leave --open out"
        )
    }
}

impl std::error::Error for NoBrowser {}

impl Browser {
    /// The programs that [`Browser::find`] looks for, in this order.
    pub const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

    /// The first of them that `PATH` has.
    ///
    /// # Errors
    /// If it has none.
    pub fn find() -> Result<Browser, NoBrowser> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
        find_in(&folders).map(Browser).ok_or(NoBrowser)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Opens a site whose certificate has this key (the SHA-256 of its public key in base64, as
    /// [`godwit_certificates::Facts::pin`] has it), with a profile of its own, which is removed with the returned
    /// window.
    ///
    /// # Errors
    /// If the folder of the profile cannot be made, or the browser not be started.
    pub fn open(&self, site: &SiteAddress, pin: &str) -> io::Result<Window> {
        let profile = Profile::create()?;
        let mut command = Command::new(&self.0);
        command.args(trust_flags(site, pin)).arg("--no-first-run").arg("--no-default-browser-check");
        command.arg(format!("--user-data-dir={}", profile.0.display()));
        if is_root() {
            // Chromium's sandbox does not start for root.
            command.arg("--no-sandbox");
        }
        command.arg(site.url()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn()?;
        Ok(Window { process, _profile: profile })
    }
}

fn find_in(folders: &[PathBuf]) -> Option<PathBuf> {
    let candidates =
        Browser::NAMES.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
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
pub struct Window {
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
        let site = SiteAddress::new("localhost", 443);
        let flags = trust_flags(&site, "a/b+c=");
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
