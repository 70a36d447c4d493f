//! What the tests of this folder have in common: certificates made for them, structures as programs fill them in, and
//! handshakes in memory.

use super::Credential;
use crate::abi::{
    AllowedCipherSuiteFlags, CertificateFile, CertificatePkcs12, CredentialConfig, CredentialFlags,
    CredentialType, Status,
};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    date_time_ymd,
};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::quic::{ClientConnection, KeyChange, ServerConnection, Version};
use rustls::{ClientConfig, Error, ServerConfig};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tempfile::TempDir;

pub(super) const ALPN: &[u8] = b"sample";

/// A file that lies beside the code.
pub(super) fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/credential/testdata").join(name)
}

/// The structure with nothing set but these.
pub(super) fn config(kind: CredentialType, flags: CredentialFlags) -> CredentialConfig {
    CredentialConfig {
        kind,
        flags,
        certificate: ptr::null_mut(),
        principal: ptr::null(),
        reserved: ptr::null_mut(),
        async_handler: None,
        allowed_cipher_suites: AllowedCipherSuiteFlags::NONE,
        ca_certificate_file: ptr::null(),
    }
}

pub(super) fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}

/// What makes a certificate what it is.
pub(super) struct Wanted {
    pub(super) names: &'static [&'static str],
    pub(super) expired: bool,
    pub(super) purpose: Option<ExtendedKeyUsagePurpose>,
}

impl Default for Wanted {
    fn default() -> Self {
        Wanted { names: &["localhost"], expired: false, purpose: None }
    }
}

/// An authority, and files of what it issues. They are gone with it.
pub(super) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: TempDir,
}

impl Authority {
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::default();
        // Each has a name of its own: authorities are looked for by name.
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("Test authority {}", NUMBER.fetch_add(1, Ordering::Relaxed));
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("authority.pem"), issuer.pem()).unwrap();
        Authority { issuer, folder }
    }

    pub(super) fn file(&self) -> PathBuf {
        self.folder.path().join("authority.pem")
    }

    /// Issues a certificate.
    pub(super) fn issue(&self, wanted: &Wanted) -> Files {
        let key = KeyPair::generate().unwrap();
        let own = params(wanted).signed_by(&key, &self.issuer).unwrap();
        Files::new(&own.pem(), &key)
    }
}

fn params(wanted: &Wanted) -> CertificateParams {
    let names: Vec<String> = wanted.names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.distinguished_name.push(DnType::CommonName, "Test peer");
    params.extended_key_usages.extend(wanted.purpose.clone());
    if wanted.expired {
        (params.not_before, params.not_after) = (date_time_ymd(2000, 1, 1), date_time_ymd(2001, 1, 1));
    }
    params
}

/// A certificate and its key in files.
pub(super) struct Files {
    folder: TempDir,
    chain: CString,
    key: CString,
}

impl Files {
    fn new(chain: &str, key: &KeyPair) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [chain_file, key_file] = ["chain.pem", "key.pem"].map(|name| folder.path().join(name));
        std::fs::write(&chain_file, chain).unwrap();
        std::fs::write(&key_file, key.serialize_pem()).unwrap();
        Files { chain: c_path(&chain_file), key: c_path(&key_file), folder }
    }

    /// One that its owner has signed; marked as that of an authority, as most tools do.
    pub(super) fn self_signed(wanted: &Wanted) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = params(wanted);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Files::new(&params.self_signed(&key).unwrap().pem(), &key)
    }

    pub(super) fn chain_file(&self) -> PathBuf {
        self.folder.path().join("chain.pem")
    }

    pub(super) fn load(&self, flags: CredentialFlags, more: &More<'_>) -> Result<Credential, Status> {
        let files =
            CertificateFile { private_key_file: self.key.as_ptr(), certificate_file: self.chain.as_ptr() };
        let mut config = config(CredentialType::CERTIFICATE_FILE, flags);
        config.certificate = ptr::from_ref(&files).cast_mut().cast();
        more.load(config)
    }
}

/// What else a program may set.
#[derive(Default)]
pub(super) struct More<'a> {
    pub(super) authorities: Option<&'a Path>,
    pub(super) suites: Option<AllowedCipherSuiteFlags>,
}

impl More<'_> {
    pub(super) fn load(&self, mut config: CredentialConfig) -> Result<Credential, Status> {
        let file = self.authorities.map(c_path);
        if let Some(file) = &file {
            config.flags = config.flags | CredentialFlags::SET_CA_CERTIFICATE_FILE;
            config.ca_certificate_file = file.as_ptr();
        }
        if let Some(suites) = self.suites {
            config.flags = config.flags | CredentialFlags::SET_ALLOWED_CIPHER_SUITES;
            config.allowed_cipher_suites = suites;
        }
        // SAFETY: what the structure leads to lives in this call and those of its callers.
        unsafe { Credential::load(&config) }
    }
}

/// A client without a certificate.
pub(super) fn client(flags: CredentialFlags, more: &More<'_>) -> Credential {
    more.load(config(CredentialType::NONE, CredentialFlags::CLIENT | flags)).unwrap()
}

/// Loads a piece of PKCS #12 as a server.
pub(super) fn load_pkcs12(bytes: &[u8], password: Option<&str>) -> Result<Credential, Status> {
    let password = password.map(|password| CString::new(password).unwrap());
    let pkcs12 = CertificatePkcs12 {
        asn1_blob: bytes.as_ptr(),
        asn1_blob_length: bytes.len() as u32,
        private_key_password: password.as_ref().map_or(ptr::null(), |password| password.as_ptr()),
    };
    let mut config = config(CredentialType::CERTIFICATE_PKCS12, CredentialFlags::NONE);
    config.certificate = ptr::from_ref(&pkcs12).cast_mut().cast();
    // SAFETY: all that the structure leads to lives longer than this call.
    unsafe { Credential::load(&config) }
}

/// How a handshake in memory went: both ends, or the end that failed first.
#[derive(Debug)]
pub(super) enum Outcome {
    Done(Box<(ClientConnection, ServerConnection)>),
    ClientFailed(Error),
    ServerFailed(Error),
}

impl Outcome {
    pub(super) fn done(self) -> (ClientConnection, ServerConnection) {
        match self {
            Outcome::Done(both) => *both,
            failed => panic!("{failed:?}"),
        }
    }

    pub(super) fn client_failure(self) -> Error {
        match self {
            Outcome::ClientFailed(error) => error,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn server_failure(self) -> Error {
        match self {
            Outcome::ServerFailed(error) => error,
            other => panic!("{other:?}"),
        }
    }
}

/// A handshake with a server of this name.
pub(super) fn shake(client: &Credential, server: &Credential, name: &'static str) -> Outcome {
    let client = client.client_tls(&[ALPN.to_vec()], false).unwrap();
    let server = server.server_tls(&[ALPN.to_vec()], false).unwrap();
    shake_with(client, server, name)
}

/// A handshake with these settings.
pub(super) fn shake_with(
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
    name: &'static str,
) -> Outcome {
    let name = ServerName::try_from(name).unwrap();
    let mut client = ClientConnection::new(client, Version::V1, name, b"client".to_vec()).unwrap();
    let mut server = ServerConnection::new(server, Version::V1, b"server".to_vec()).unwrap();
    loop {
        let to_server = written(|to| client.write_hs(to));
        if let Err(error) = to_server.iter().try_for_each(|message| server.read_hs(message)) {
            return Outcome::ServerFailed(error);
        }
        let to_client = written(|to| server.write_hs(to));
        if let Err(error) = to_client.iter().try_for_each(|message| client.read_hs(message)) {
            return Outcome::ClientFailed(error);
        }
        if to_server.is_empty() && to_client.is_empty() {
            return Outcome::Done(Box::new((client, server)));
        }
    }
}

/// All that an end has to say now, by levels of protection.
fn written(mut write: impl FnMut(&mut Vec<u8>) -> Option<KeyChange>) -> Vec<Vec<u8>> {
    let mut levels = Vec::new();
    loop {
        let mut message = Vec::new();
        let change = write(&mut message);
        if change.is_none() && message.is_empty() {
            return levels;
        }
        levels.push(message);
    }
}

/// The certificates that a peer has shown.
pub(super) fn shown(peer: Option<&[CertificateDer<'static>]>) -> Vec<CertificateDer<'static>> {
    peer.unwrap_or_default().to_vec()
}
