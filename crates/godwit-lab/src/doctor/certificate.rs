//! Judging a certificate chain: who vouches for it, how long it lasts, how heavy it is.

use rustls::CertificateError;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::public_key::PublicKey;

use super::finding::Findings;
use godwit_client::trust::{Facts, Roots, problem_in_words};
use godwit_text::{date, unix_now};

const DAY: i64 = 86_400;
/// A certificate that ends sooner should have been renewed by now.
const SOON: i64 = 14 * DAY;
/// Before the client's address is proven a server may send three times what it got: 3 x 1200 bytes, less what the
/// rest of the handshake takes (RFC 9000 section 8.1).
const FITS_FIRST_FLIGHT: usize = 2800;

/// Looks at the chain that `host` showed.
pub(super) fn examine(findings: &mut Findings, chain: &[CertificateDer<'_>], host: &str, roots: &Roots) {
    trust(findings, chain, host, roots);
    let Some(leaf) = chain.first() else { return };
    identity(findings, leaf);
    lifetime(findings, leaf);
    key(findings, leaf);
    weight(findings, chain);
}

/// Whether the chain is good for `host`.
pub(super) fn trust(findings: &mut Findings, chain: &[CertificateDer<'_>], host: &str, roots: &Roots) {
    let Some((leaf, rest)) = chain.split_first() else {
        return findings.broken("certificate", "the server showed none", "configure one");
    };
    let (Ok(verifier), Ok(name)) = (roots.verifier(), ServerName::try_from(host.to_owned())) else {
        return findings.warn("trust", "cannot be checked here", "give an authority with --cacert");
    };
    let facts = Facts::read(leaf);
    let names = facts.as_ref().map(Facts::names_in_words).unwrap_or_default();
    let issuer = facts.map(|facts| facts.issuer).unwrap_or_default();
    match verifier.verify_server_cert(leaf, rest, &name, &[], UnixTime::now()) {
        Ok(_) => findings.good("trust", format!("valid for {host}, issued by {issuer}")),
        Err(rustls::Error::InvalidCertificate(problem)) => {
            let (text, remedy) = refusal(&problem, host, &names, &issuer, rest.len());
            findings.broken("trust", text, remedy);
        }
        Err(error) => findings.broken("trust", format!("{error}"), "replace the certificate"),
    }
}

fn refusal(
    problem: &CertificateError,
    host: &str,
    names: &str,
    issuer: &str,
    intermediates: usize,
) -> (String, String) {
    use CertificateError as E;
    let text = |text: &str, remedy: &str| (text.to_owned(), remedy.to_owned());
    match problem {
        E::Expired | E::ExpiredContext { .. } => text("it has expired", "renew it"),
        E::NotValidYet | E::NotValidYetContext { .. } => {
            text("it is not valid yet", "check the clocks of both machines")
        }
        E::NotValidForName | E::NotValidForNameContext { .. } => {
            (format!("it is for {names}, not for {host}"), format!("get one that names {host}"))
        }
        E::UnknownIssuer if intermediates == 0 => (
            format!(
                "issued by {issuer}, which nobody here knows, and no intermediate certificate came along"
            ),
            "serve the whole chain (fullchain.pem); for a private authority give --cacert".to_owned(),
        ),
        E::UnknownIssuer => (
            format!("issued by {issuer}, which nobody here knows"),
            "use a public authority; for a private one give --cacert".to_owned(),
        ),
        E::BadSignature => (
            format!("{issuer}, in whose name it was issued, has not signed it"),
            "serve the chain that belongs to it; for a private authority give its present certificate"
                .to_owned(),
        ),
        E::Revoked => text("it was revoked", "get a new one with a new key"),
        other => (format!("it {}", problem_in_words(other)), "replace it".to_owned()),
    }
}

/// Which one it is.
fn identity(findings: &mut Findings, leaf: &CertificateDer<'_>) {
    let Ok(facts) = Facts::read(leaf) else { return };
    let names = facts.names_in_words();
    findings.good("certificate", format!("for {names}; its key's SHA-256 is {}", facts.pin));
}

fn lifetime(findings: &mut Findings, leaf: &CertificateDer<'_>) {
    let Ok(facts) = Facts::read(leaf) else {
        return findings.broken("certificate", "it cannot be read", "replace it");
    };
    let left = facts.not_after - unix_now();
    let ends = date(facts.not_after);
    if left <= 0 {
        findings.broken("lifetime", format!("it ended on {ends}"), "renew it");
    } else if left < SOON.min((facts.not_after - facts.not_before) / 4) {
        let days = left / DAY;
        let text = format!("it ends on {ends}, in {days} days");
        findings.warn("lifetime", text, "renew it, and look why that has not happened by itself");
    } else {
        findings.good("lifetime", format!("until {ends}, {} days more", left / DAY));
    }
}

fn key(findings: &mut Findings, leaf: &CertificateDer<'_>) {
    let parsed = X509Certificate::from_der(leaf);
    let key = parsed.as_ref().ok().and_then(|(_, parsed)| parsed.public_key().parsed().ok());
    match key {
        Some(PublicKey::EC(point)) => findings.good("key", format!("ECDSA, {} bits", point.key_size())),
        Some(PublicKey::RSA(rsa)) => {
            // The leading zero of DER's integers is counted by the parser.
            let bits = rsa.key_size() / 256 * 256;
            let text = format!("RSA, {bits} bits: handshakes cost the server many times what ECDSA costs");
            findings.warn("key", text, "ask for an ECDSA P-256 certificate");
        }
        Some(_) | None => findings.good("key", "of another kind (Ed25519?)"),
    }
}

fn weight(findings: &mut Findings, chain: &[CertificateDer<'_>]) {
    let bytes: usize = chain.iter().map(|certificate| certificate.len()).sum();
    let count = chain.len();
    let certificates = if count == 1 { "certificate" } else { "certificates" };
    let text = format!("{count} {certificates}, {bytes} bytes");
    if bytes <= FITS_FIRST_FLIGHT {
        return findings.good("chain", format!("{text}: fits the first flight of QUIC"));
    }
    let text =
        format!("{text}: more than a server may send before the client has answered, one round trip lost");
    findings.warn("chain", text, "use an ECDSA certificate with a short chain, without the root");
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    fn judge(
        change: impl FnOnce(&mut CertificateParams),
        trust: bool,
    ) -> Vec<super::super::finding::Finding> {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(["example.com".to_owned()]).unwrap();
        change(&mut params);
        let certificate = params.self_signed(&key).unwrap();
        let mut roots = Roots::none();
        if trust {
            roots.add_pem(certificate.pem().as_bytes()).unwrap();
        } else {
            let mut other = CertificateParams::new(["other".to_owned()]).unwrap();
            other.distinguished_name.push(rcgen::DnType::CommonName, "another");
            roots.add_pem(other.self_signed(&key).unwrap().pem().as_bytes()).unwrap();
        }
        let mut findings = Findings::new("test");
        examine(&mut findings, &[certificate.der().clone()], "example.com", &roots);
        findings.findings
    }

    fn of(findings: &[super::super::finding::Finding], topic: &str) -> (Level, String) {
        let finding = findings.iter().find(|finding| finding.topic == topic).unwrap();
        (finding.level, finding.text.clone())
    }

    #[test]
    fn a_good_certificate_is_good() {
        let findings = judge(|_| {}, true);
        for topic in ["trust", "lifetime", "key", "chain"] {
            assert_eq!(of(&findings, topic).0, Level::Good, "{findings:?}");
        }
    }

    #[test]
    fn a_certificate_of_an_authority_is_explained_in_words() {
        let authority = |params: &mut CertificateParams| {
            params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        };
        let (level, text) = of(&judge(authority, false), "trust");
        assert!(level == Level::Broken && text.contains("(CA:TRUE)"), "{text}");
        assert!(!text.contains("CaUsedAsEndEntity"), "{text}");
        assert_eq!(of(&judge(authority, true), "trust").0, Level::Good, "it was named");
    }

    #[test]
    fn one_certificate_is_one() {
        let text = of(&judge(|_| {}, true), "chain").1;
        assert!(text.starts_with("1 certificate, "), "{text}");
    }

    #[test]
    fn problems_are_told_apart() {
        let (level, text) = of(&judge(|_| {}, false), "trust");
        assert!(level == Level::Broken && text.contains("nobody here knows"), "{text}");
        let expired = judge(|params| params.not_after = date_time_ymd(2020, 1, 1), true);
        assert_eq!(of(&expired, "lifetime").0, Level::Broken);
        assert!(of(&expired, "trust").1.contains("expired"));
        let other = |params: &mut CertificateParams| {
            *params = CertificateParams::new(["example.org".to_owned()]).unwrap();
        };
        assert!(of(&judge(other, true), "trust").1.contains("it is for example.org, not for example.com"));
    }
}
