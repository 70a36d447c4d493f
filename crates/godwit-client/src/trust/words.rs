//! What is wrong with a certificate, where the library that found it only has names for it.

use rustls::CertificateError;

/// What is wrong with a certificate, as the rest of a sentence about it ("the certificate …"); for problems that are
/// not about its dates, its names or its issuer, which whoever tells them knows more of.
pub fn problem_in_words(problem: &CertificateError) -> String {
    use CertificateError as E;
    let words = match problem {
        E::BadEncoding => "is not well-formed",
        E::UnhandledCriticalExtension => "has a critical extension that is not known here",
        E::InvalidPurpose | E::InvalidPurposeContext { .. } => "is not for servers (extended key usage)",
        E::BadSignature => "is not signed by the authority in whose name it was issued",
        E::Revoked => "has been revoked",
        E::UnknownRevocationStatus => "may have been revoked: its authority does not say",
        E::ExpiredRevocationList | E::ExpiredRevocationListContext { .. } => {
            "may have been revoked: the list that says so is too old"
        }
        E::Other(other) => return other_in_words(&other.to_string()),
        other => return format!("cannot be used ({})", in_small_letters(&other.to_string())),
    };
    words.to_owned()
}

/// Of an error that is not the library's own, of which only the name can be seen.
fn other_in_words(name: &str) -> String {
    let words = match name {
        _ if name.contains("CaUsedAsEndEntity") => {
            "is that of an authority (CA:TRUE), which a server must not show as its own"
        }
        _ if name.contains("EndEntityUsedAsCa") => "is from one that is no authority (CA:FALSE)",
        _ if name.contains("UnsupportedCertVersion") => {
            "is not of version 3, the only one that is checked here"
        }
        _ if name.contains("PathLenConstraintViolated") => {
            "has more intermediates than its authority permits"
        }
        _ if name.contains("NameConstraintViolation") => "is for names that its authority may not certify",
        _ if name.contains("MaximumPathDepthExceeded") => "has too many intermediates",
        _ if name.contains("SignatureAlgorithm") => "is signed in a way that is not known here",
        _ => return format!("cannot be used ({})", in_small_letters(name)),
    };
    words.to_owned()
}

/// `InvalidSerialNumber { … }` as `invalid serial number`: a name in code is no word for people.
fn in_small_letters(name: &str) -> String {
    let name = name.split(['(', '{']).next().unwrap_or(name).trim();
    if name.contains(' ') {
        return name.to_owned();
    }
    let mut words = String::new();
    for character in name.chars() {
        if character.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(character.to_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::OtherError;
    use std::sync::Arc;

    #[test]
    fn problems_have_words() {
        let other = |name: &str| {
            let error = std::io::Error::other(name.to_owned());
            problem_in_words(&CertificateError::Other(OtherError(Arc::new(error))))
        };
        assert!(other("CaUsedAsEndEntity").contains("(CA:TRUE)"));
        assert!(other("UnsupportedCertVersion").contains("version 3"));
        assert_eq!(other("InvalidSerialNumber"), "cannot be used (invalid serial number)");
        assert_eq!(problem_in_words(&CertificateError::BadEncoding), "is not well-formed");
        let last = problem_in_words(&CertificateError::ApplicationVerificationFailure);
        assert_eq!(last, "cannot be used (application verification failure)");
    }
}
