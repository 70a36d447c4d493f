//! What is kept of an ACME server: one folder for each, closed to other users.
//!
//! `account.json` is the account with its key. Each certificate is one file, its private key first and then the
//! chain, so that the two are always replaced together. What is being written has a lock beside it, for servers
//! that share the folder.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use super::Settings;
use crate::CertificateError;
use crate::{Facts, Identity, files, provider};
use godwit_text::plain_error;

/// How often to ask whether another server has finished.
const AGAIN: Duration = Duration::from_millis(250);

/// The folder of one ACME server.
#[derive(Clone, Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    /// # Errors
    /// If it cannot be made or written.
    pub(super) fn open(settings: &Settings) -> Result<Folder, CertificateError> {
        let remedy = "make it writable for this user, or set acme.folder to another place";
        let base = match &settings.folder {
            Some(folder) => folder.clone(),
            None => dirs::data_dir().map(|data| data.join("godwit/acme")).ok_or_else(|| {
                CertificateError::new(
                    "no data folder to keep certificates in: set acme.folder, HOME or XDG_DATA_HOME",
                )
            })?,
        };
        let path = base.join(name_of(settings.url()));
        let fail =
            |error: io::Error| CertificateError::file("ACME folder", &path, plain_error(&error), remedy);
        files::make_private_folder(&path).map_err(fail)?;
        // Found out now rather than when the certificate has been issued.
        let probe = path.join(format!("probe-{}-{:?}", std::process::id(), std::thread::current().id()));
        files::write_private(&probe, "").map_err(fail)?;
        std::fs::remove_file(probe).map_err(fail)?;
        Ok(Folder(path))
    }

    pub(super) fn certificate(&self, names: &[String]) -> Place {
        let mut sorted = names.to_vec();
        sorted.sort();
        let first = names.first().map_or("none", String::as_str);
        let stem = format!("{first:.100}-{}", files::mark(&sorted.join(" ")));
        Place { file: self.0.join(format!("{stem}.pem")), lock: self.0.join(format!("{stem}.lock")) }
    }

    pub(super) fn account(&self) -> Place {
        Place { file: self.0.join("account.json"), lock: self.0.join("account.lock") }
    }
}

/// The host, and a mark of the whole URL.
fn name_of(url: &str) -> String {
    let uri = url.parse::<http::Uri>().ok();
    let host = uri.as_ref().and_then(http::Uri::host).unwrap_or("unknown");
    let safe: String =
        host.chars().filter(|c| c.is_ascii_alphanumeric() || ".-".contains(*c)).take(100).collect();
    format!("{safe}-{}", files::mark(url))
}

/// A file, and the lock that stands for it.
#[derive(Clone, Debug)]
pub(super) struct Place {
    file: PathBuf,
    lock: PathBuf,
}

impl Place {
    /// Waits until no other server writes the file; none does until the returned value is dropped.
    pub(super) async fn lock(&self) -> io::Result<File> {
        loop {
            if let Some(held) = files::try_lock(&self.lock)? {
                return Ok(held);
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.file
    }

    /// `None` if there is no such file.
    pub(super) fn read(&self) -> io::Result<Option<String>> {
        match std::fs::read_to_string(&self.file) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn write(&self, contents: &str) -> io::Result<()> {
        files::write_private(&self.file, contents)
    }

    /// Puts the file aside: it is of no more use, but somebody may want to look at it.
    pub(super) fn put_aside(&self) -> io::Result<()> {
        std::fs::rename(&self.file, self.file.with_extension("old"))
    }
}

/// Reads a key and a chain from one text, and makes sure that they are good for `names`.
///
/// # Errors
/// In words.
pub(super) fn parse(text: &str, names: &[String]) -> Result<Identity, String> {
    let chain: Result<Vec<CertificateDer<'static>>, _> =
        CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    let chain = chain.map_err(|_| "the certificate chain is damaged")?;
    let key = PrivateKeyDer::from_pem_slice(text.as_bytes())
        .map_err(|_| "the private key is missing or damaged")?;
    let facts = Facts::read(chain.first().ok_or("there is no certificate in it")?)?;
    CertifiedKey::from_der(chain.clone(), key.clone_key(), &provider())
        .map_err(|error| format!("certificate and key cannot be used: {error}"))?;
    let has = |name: &&String| facts.names.iter().any(|has| has.eq_ignore_ascii_case(name));
    match names.iter().find(|name| !has(name)) {
        Some(missing) => Err(format!("the certificate is not for {missing}")),
        None => Ok(Identity { chain, key, facts, authority: None }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(folder: &Path) -> Settings {
        Settings { accept_terms: true, folder: Some(folder.to_owned()), ..Settings::default() }
    }

    #[test]
    fn every_server_and_every_list_of_names_has_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let place = |settings: &Settings, names: &[&str]| {
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            Folder::open(settings).unwrap().certificate(&names).file
        };
        let production = settings(folder.path());
        let staging = Settings { directory: "letsencrypt-staging".to_owned(), ..production.clone() };
        let a = place(&production, &["a.test", "b.test"]);
        assert_ne!(a, place(&staging, &["a.test", "b.test"]));
        assert_ne!(a, place(&production, &["a.test"]));
        assert_eq!(a.parent(), place(&production, &["b.test", "a.test"]).parent());
        assert!(a.to_string_lossy().contains("/acme-v02.api.letsencrypt.org-"), "{}", a.display());
    }

    #[test]
    fn a_certificate_for_other_names_is_not_taken() {
        let made = rcgen::generate_simple_self_signed(["a.test".to_owned()]).unwrap();
        let text = format!("{}{}", made.signing_key.serialize_pem(), made.cert.pem());
        let name = |name: &str| [name.to_owned()];
        assert_eq!(parse(&text, &name("A.test")).unwrap().facts.names, ["a.test"]);
        assert!(parse(&text, &name("b.test")).unwrap_err().contains("not for b.test"));
        assert!(parse(&made.cert.pem(), &name("a.test")).unwrap_err().contains("private key"));
        assert!(parse(&text[..text.len() - 40], &name("a.test")).unwrap_err().contains("damaged"));
        let other = rcgen::generate_simple_self_signed(["a.test".to_owned()]).unwrap();
        let mixed = format!("{}{}", other.signing_key.serialize_pem(), made.cert.pem());
        assert!(parse(&mixed, &name("a.test")).unwrap_err().contains("cannot be used"));
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn files_are_private_and_locks_exclude() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let place = Folder::open(&settings(folder.path())).unwrap().account();
        assert_eq!(place.read().unwrap(), None);
        place.write("{}").unwrap();
        assert_eq!(place.file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let held = place.lock().await.unwrap();
        assert!(files::try_lock(&place.lock).unwrap().is_none());
        drop(held);
        assert!(files::try_lock(&place.lock).unwrap().is_some());
        place.put_aside().unwrap();
        assert_eq!(place.read().unwrap(), None);
    }
}
