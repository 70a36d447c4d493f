//! Credentials as programs load them, and handshakes with them.

mod agreeing;
mod clients;
mod loading;
mod resuming;
mod servers;
mod telling;

use super::testing::{
    ALPN, Authority, Files, More, Wanted, c_path, client, config, load_pkcs12, shake, shake_with, shown,
    testdata,
};
use super::*;
use crate::abi::{CertificateFileProtected, CredentialFlags as Flags, CredentialType};
use rcgen::ExtendedKeyUsagePurpose;
use rustls::{AlertDescription, CertificateError, CipherSuite, Error};
use std::path::Path;
use std::ptr;

const JUDGES_LATER: Flags =
    Flags(Flags::INDICATE_CERTIFICATE_RECEIVED.0 | Flags::DEFER_CERTIFICATE_VALIDATION.0);
const REQUIRES: Flags = Flags::REQUIRE_CLIENT_AUTHENTICATION;
const ANYBODY: Flags = Flags::NO_CERTIFICATE_VALIDATION;

/// In the year 2020.
const NOW: UnixTime = UnixTime::since_unix_epoch(std::time::Duration::from_secs(1_600_000_000));

fn server_of(authority: &Authority, wanted: &Wanted) -> Credential {
    authority.issue(wanted).load(Flags::NONE, &More::default()).unwrap()
}

fn trusting(file: &Path) -> More<'_> {
    More { authorities: Some(file), suites: None }
}

/// Why a client that trusts the authority ends the handshake with a server that has such a certificate.
fn why_refused(wanted: &Wanted, name: &'static str) -> Error {
    let authority = Authority::new();
    let client = client(Flags::NONE, &trusting(&authority.file()));
    shake(&client, &server_of(&authority, wanted), name).client_failure()
}
