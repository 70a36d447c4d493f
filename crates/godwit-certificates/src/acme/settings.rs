//! Who issues certificates, and on what terms.

use std::path::PathBuf;

use crate::CertificateError;

/// How an ACME server is shown that a name is ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Method {
    /// By a certificate shown on port 443 (RFC 8737).
    #[default]
    TlsAlpn01,
    /// By a text over plain HTTP on port 80 (RFC 8555 section 8.3).
    Http01,
}

/// An ACME server, and where to keep what it gives.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// `letsencrypt`, `letsencrypt-staging`, or the URL of a directory.
    pub directory: String,
    /// Where the server's operator can write to.
    pub email: Option<String>,
    /// The server's terms of service are accepted. Nothing is asked of it otherwise.
    pub accept_terms: bool,
    /// For account and certificates; `None`: in the user's data folder.
    pub folder: Option<PathBuf>,
    /// How names are proved.
    pub method: Method,
    /// A root certificate (PEM) to trust the server by, besides the usual ones.
    pub ca: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            directory: "letsencrypt".to_owned(),
            email: None,
            accept_terms: false,
            folder: None,
            method: Method::default(),
            ca: None,
        }
    }
}

impl Settings {
    /// The directory's URL.
    pub fn url(&self) -> &str {
        match self.directory.as_str() {
            "letsencrypt" => instant_acme::LetsEncrypt::Production.url(),
            "letsencrypt-staging" => instant_acme::LetsEncrypt::Staging.url(),
            url => url,
        }
    }

    /// Whether the server can be asked for a certificate with these names.
    ///
    /// # Errors
    /// If the terms are not accepted, the URL is not one, or a name cannot be proved.
    pub fn check(&self, names: &[String]) -> Result<(), CertificateError> {
        let url = self.url();
        let host = url.parse::<http::Uri>().ok().filter(|uri| uri.scheme_str() == Some("https"));
        if host.as_ref().and_then(http::Uri::host).is_none() {
            return Err(CertificateError::new(format!(
                "the ACME directory {url:?} is not an https:// URL; give letsencrypt, letsencrypt-staging or the URL \
                 that your certificate authority names"
            )));
        }
        if !self.accept_terms {
            return Err(CertificateError::new(format!(
                "no certificate can be asked for until the terms of service of {url} are accepted; read them and \
                 set accept_terms = true"
            )));
        }
        if names.is_empty() {
            return Err(CertificateError::new("an automatic certificate needs at least one host name"));
        }
        names.iter().try_for_each(|name| check_name(name))
    }
}

fn check_name(name: &str) -> Result<(), CertificateError> {
    if name == "*" || name.starts_with("*.") {
        return Err(CertificateError::new(format!(
            "a certificate for {name} cannot be issued automatically (that needs a proof by DNS); list the hosts by \
             name, or give a certificate in files"
        )));
    }
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let is_address = name.parse::<std::net::IpAddr>().is_ok();
    if is_address || name.len() > 253 || !name.contains('.') || !name.split('.').all(label) {
        return Err(CertificateError::new(format!(
            "{name:?} is not a public host name, so no authority can issue a certificate for it; give a certificate \
             in files, or use tls = \"local\""
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_issued_is_said_beforehand() {
        let settings = Settings { accept_terms: true, ..Settings::default() };
        let check = |name: &str| settings.check(&[name.to_owned()]).map_err(|failure| failure.to_string());
        assert!(check("www.example.com").is_ok());
        for (name, part) in [
            ("*.example.com", "proof by DNS"),
            ("*", "proof by DNS"),
            ("localhost", "not a public host name"),
            ("192.0.2.1", "not a public host name"),
            ("a..b", "not a public host name"),
            ("-a.b", "not a public host name"),
            ("a/../b.c", "not a public host name"),
        ] {
            let message = check(name).unwrap_err();
            assert!(message.contains(part), "{name}: {message}");
        }
        let refused = Settings { accept_terms: false, ..settings.clone() };
        assert!(refused.check(&["a.b".to_owned()]).unwrap_err().to_string().contains("accept_terms = true"));
        let plain = Settings { directory: "http://a.test/dir".to_owned(), ..settings.clone() };
        assert!(plain.check(&["a.b".to_owned()]).unwrap_err().to_string().contains("https://"));
        assert!(settings.check(&[]).is_err());
    }
}
