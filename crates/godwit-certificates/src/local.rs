//! An authority of this user's own, for trying things out on this machine.
//!
//! The data folder (`dirs::data_dir()/godwit`, on Linux `~/.local/share/godwit`) holds four files:
//! `ca.pem` and `ca.key`, made once and good for ten years, and `localhost.pem` and `localhost.key`, a certificate
//! for this machine's names that lives for 90 days and is issued again a week before its end, when the names have
//! changed, or when it does not come from the authority that lies beside it. Sites with further names have a pair
//! `sites-….pem` and `sites-….key` each.
//!
//! The authority is never replaced silently while it is valid: somebody may have told a browser to trust it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};

use super::{Facts, Identity, files, from_files};
use crate::CertificateError;
use godwit_text::plain_error;
use godwit_text::unix_now;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

const DAY: i64 = 86_400;
const AUTHORITY_DAYS: i64 = 3650;
const LEAF_DAYS: i64 = 90;
/// A certificate with less than this left is issued again.
const RENEW_DAYS: i64 = 7;
/// Certificates begin a little in the past: other machines' clocks may be slow.
const BACKDATE: i64 = 3600;

/// The file a client has to trust for [`identity_for`], whether it exists or not; `None` without a home folder.
pub fn authority_file() -> Option<PathBuf> {
    Some(folder()?.join("ca.pem"))
}

/// That file, if it is there and its authority has issued a certificate with these facts.
pub fn authority_of(facts: &Facts) -> Option<PathBuf> {
    let file = authority_file()?;
    let authority = Facts::read(&CertificateDer::from_pem_file(&file).ok()?).ok()?;
    (authority.subject == facts.issuer).then_some(file)
}

/// The folder for what this program keeps; `None` without a home folder.
pub fn folder() -> Option<PathBuf> {
    Some(dirs::data_dir()?.join("godwit"))
}

/// The certificate for this machine's names and these further ones of sites that are tried out here, issued now if
/// there is none to use.
///
/// # Errors
/// If the data folder cannot be found, read or written, or holds an authority that is broken; if a name cannot
/// stand in a certificate.
pub fn identity_for(further: &[String]) -> Result<Identity, CertificateError> {
    let folder = folder().ok_or_else(|| {
        CertificateError::new(
            "no data folder to keep a certificate in: set HOME or XDG_DATA_HOME, or give a certificate with \
             --cert and --key, or in the configuration file",
        )
    })?;
    let mut all = names();
    let mut further: Vec<_> = further.iter().filter(|name| !all.contains(name)).cloned().collect();
    further.sort();
    further.dedup();
    // Servers of other sites do not take each other's certificate away.
    let stem = match further.as_slice() {
        [] => "localhost".to_owned(),
        names => format!("sites-{}", files::mark(&names.join(" "))),
    };
    all.append(&mut further);
    identity_in(&folder, unix_now(), &all, &stem)
}

/// The names this machine answers to locally.
fn names() -> Vec<String> {
    let mut names = vec!["localhost".to_owned(), "*.localhost".to_owned()];
    names.extend(host_name().filter(|name| name != "localhost"));
    names.extend(["127.0.0.1".to_owned(), "::1".to_owned()]);
    names
}

/// The machine's own name, if it is one that a certificate can carry.
pub fn host_name() -> Option<String> {
    let from_kernel = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let variable = || std::env::var("HOSTNAME").or_else(|_| std::env::var("COMPUTERNAME")).ok();
    let name = from_kernel.or_else(variable)?.trim().trim_end_matches('.').to_ascii_lowercase();
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    (name.len() <= 253 && name.split('.').all(label)).then_some(name)
}

/// [`identity_for`] with its surroundings given.
fn identity_in(folder: &Path, now: i64, names: &[String], stem: &str) -> Result<Identity, CertificateError> {
    let unwritable = |error: io::Error| {
        CertificateError::file(
            "data folder",
            folder,
            format!("cannot keep a certificate there: {}", plain_error(&error)),
            "make it writable, set XDG_DATA_HOME to another place, or give a certificate with --cert and --key, or in \
             the configuration file",
        )
    };
    files::make_private_folder(folder).map_err(unwritable)?;
    let _lock = files::lock(folder).map_err(unwritable)?;
    let authority = match Authority::load(folder, now)? {
        Some(authority) => authority,
        None => Authority::create(folder, now)?.map_err(unwritable)?,
    };
    let (certificate, key) = (folder.join(format!("{stem}.pem")), folder.join(format!("{stem}.key")));
    if let Ok(mut identity) = from_files(&certificate, &key)
        && is_usable(&identity.facts, &authority.facts, now, names)
    {
        identity.authority = Some(authority.file);
        return Ok(identity);
    }
    let (leaf, leaf_key) = authority.issue(now, names)?;
    files::write_private(&key, &leaf_key).map_err(unwritable)?;
    files::write_private(&certificate, &leaf).map_err(unwritable)?;
    let mut identity = from_files(&certificate, &key)?;
    identity.authority = Some(authority.file);
    Ok(identity)
}

fn is_usable(leaf: &Facts, authority: &Facts, now: i64, names: &[String]) -> bool {
    let sorted = |names: &[String]| {
        let mut names = names.to_vec();
        names.sort();
        names
    };
    leaf.issuer == authority.subject
        && leaf.not_before <= now
        && leaf.not_after - now >= RENEW_DAYS * DAY
        && sorted(&leaf.names) == sorted(names)
}

struct Authority {
    file: PathBuf,
    pem: String,
    key: KeyPair,
    facts: Facts,
}

impl Authority {
    /// The authority in the folder; `None` if there is none yet, or it has so little time left that a
    /// certificate would outlive it.
    fn load(folder: &Path, now: i64) -> Result<Option<Authority>, CertificateError> {
        let (file, key_file) = (folder.join("ca.pem"), folder.join("ca.key"));
        if !file.exists() {
            return Ok(None);
        }
        let remedy = format!(
            "to start over with a new authority (browsers will have to be told again), remove {}",
            folder.display()
        );
        let broken =
            |problem: String| CertificateError::file("local certificate authority", &file, problem, &remedy);
        let identity = from_files(&file, &key_file).map_err(|failure| broken(failure.to_string()))?;
        if identity.facts.not_after < now + LEAF_DAYS * DAY {
            return Ok(None);
        }
        let text = |path: &Path| std::fs::read_to_string(path).map_err(|error| broken(plain_error(&error)));
        let key = KeyPair::from_pem(&text(&key_file)?).map_err(|error| broken(error.to_string()))?;
        Ok(Some(Authority { pem: text(&file)?, key, facts: identity.facts, file }))
    }

    /// Makes an authority. The outer error is a certificate that could not be made, the inner one a file that
    /// could not be written.
    fn create(folder: &Path, now: i64) -> Result<io::Result<Authority>, CertificateError> {
        let key = generate()?;
        let mut params = CertificateParams::default();
        // The name tells this authority from its predecessors: a certificate of an older one is then noticed.
        let mark: String =
            key.public_key_raw().iter().rev().take(4).map(|byte| format!("{byte:02x}")).collect();
        let host = host_name().unwrap_or_else(|| "this machine".to_owned());
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, "Godwit local authority");
        params.distinguished_name.push(DnType::CommonName, format!("Godwit on {host:.40} ({mark})"));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        set_validity(&mut params, now, AUTHORITY_DAYS);
        let certificate = params.self_signed(&key).map_err(impossible)?;
        let facts = Facts::read(certificate.der()).map_err(CertificateError::new)?;
        let authority = Authority { file: folder.join("ca.pem"), pem: certificate.pem(), key, facts };
        let written = files::write_private(&folder.join("ca.key"), &authority.key.serialize_pem())
            .and_then(|()| files::write_private(&authority.file, &authority.pem));
        Ok(written.map(|()| authority))
    }

    /// A certificate for these names and its key, both in PEM.
    fn issue(&self, now: i64, names: &[String]) -> Result<(String, String), CertificateError> {
        let key = generate()?;
        let mut params = CertificateParams::new(names.to_vec()).map_err(impossible)?;
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, names.first().map_or("localhost", String::as_str));
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        set_validity(&mut params, now, LEAF_DAYS);
        let issuer = Issuer::from_ca_cert_pem(&self.pem, &self.key).map_err(impossible)?;
        let certificate = params.signed_by(&key, &issuer).map_err(impossible)?;
        Ok((certificate.pem(), key.serialize_pem()))
    }
}

fn generate() -> Result<KeyPair, CertificateError> {
    KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(impossible)
}

fn impossible(error: rcgen::Error) -> CertificateError {
    CertificateError::new(format!(
        "cannot make a certificate: {error}; give one with --cert and --key, or in the configuration file"
    ))
}

/// From an hour ago, so that it is never longer than `days` in all.
fn set_validity(params: &mut CertificateParams, now: i64, days: i64) {
    let at = |unix: i64| UNIX_EPOCH + Duration::from_secs(u64::try_from(unix).unwrap_or(0));
    let begin = now - BACKDATE;
    params.not_before = at(begin).into();
    params.not_after = at(begin + days * DAY).into();
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_795_294_367;

    fn names(extra: &[&str]) -> Vec<String> {
        ["localhost", "*.localhost", "127.0.0.1", "::1"]
            .iter()
            .chain(extra)
            .map(|name| (*name).to_owned())
            .collect()
    }

    #[test]
    fn a_certificate_is_kept_until_its_last_week_and_while_the_names_stay() {
        let folder = tempfile::tempdir().unwrap();
        let issue = |now, names: &[String]| identity_in(folder.path(), now, names, "localhost").unwrap();
        let first = issue(NOW, &names(&["box"]));
        assert_eq!(first.facts.names, names(&["box"]));
        assert!(first.facts.not_after - first.facts.not_before <= 90 * DAY);
        assert_eq!(first.facts.pin.len(), 44);
        let authority = first.authority.clone().unwrap();
        let authority_text = std::fs::read_to_string(&authority).unwrap();

        let later = issue(NOW + 80 * DAY, &names(&["box"]));
        assert_eq!(later.chain, first.chain, "still good for more than a week");
        let renewed = issue(NOW + 84 * DAY, &names(&["box"]));
        assert_ne!(renewed.chain, first.chain, "less than a week was left");
        let renamed = issue(NOW + 84 * DAY, &names(&["other"]));
        assert_eq!(renamed.facts.names, names(&["other"]));
        assert_eq!(std::fs::read_to_string(&authority).unwrap(), authority_text, "the authority stays");

        let much_later = issue(NOW + 3600 * DAY, &names(&["other"]));
        assert_ne!(
            std::fs::read_to_string(&authority).unwrap(),
            authority_text,
            "it had too little time left"
        );
        assert_ne!(much_later.facts.issuer, renamed.facts.issuer);
    }

    #[test]
    fn the_chain_verifies_against_the_authority() {
        let folder = tempfile::tempdir().unwrap();
        let identity = identity_in(folder.path(), NOW, &names(&[]), "localhost").unwrap();
        let authority = std::fs::read(identity.authority.as_ref().unwrap()).unwrap();
        let mut roots = rustls::RootCertStore::empty();
        use rustls::pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject};
        roots.add(CertificateDer::from_pem_slice(&authority).unwrap()).unwrap();
        let verifier = rustls::client::WebPkiServerVerifier::builder_with_provider(
            std::sync::Arc::new(roots),
            crate::provider(),
        )
        .build()
        .unwrap();
        use rustls::client::danger::ServerCertVerifier;
        let now = UnixTime::since_unix_epoch(Duration::from_secs(NOW.unsigned_abs()));
        // Not "sub.localhost": rustls takes no wildcard for a name of one label, browsers do.
        for name in ["localhost", "127.0.0.1", "::1"] {
            let name = ServerName::try_from(name).unwrap();
            verifier.verify_server_cert(&identity.chain[0], &[], &name, &[], now).unwrap();
        }
        let stranger = ServerName::try_from("example.com").unwrap();
        assert!(verifier.verify_server_cert(&identity.chain[0], &[], &stranger, &[], now).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn keys_are_private() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        identity_in(&inner, NOW, &names(&[]), "localhost").unwrap();
        let mode = |name: &str| inner.join(name).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("ca.key"), mode("localhost.key"), mode("")), (0o600, 0o600, 0o700));
    }

    #[test]
    fn a_broken_authority_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        identity_in(folder.path(), NOW, &names(&[]), "localhost").unwrap();
        std::fs::write(folder.path().join("ca.key"), "scribble").unwrap();
        let message = identity_in(folder.path(), NOW, &names(&[]), "localhost").unwrap_err().to_string();
        assert!(message.contains("local certificate authority"), "{message}");
        assert!(message.contains("remove"), "{message}");
        assert_eq!(std::fs::read_to_string(folder.path().join("ca.key")).unwrap(), "scribble");
    }

    #[test]
    fn a_damaged_leaf_is_issued_again() {
        let folder = tempfile::tempdir().unwrap();
        identity_in(folder.path(), NOW, &names(&[]), "localhost").unwrap();
        std::fs::write(folder.path().join("localhost.pem"), "scribble").unwrap();
        assert_eq!(
            identity_in(folder.path(), NOW, &names(&[]), "localhost").unwrap().facts.names,
            names(&[])
        );
    }
}
