//! What went wrong before anything was fetched, and what may help when something failed, with the names of the options
//! of `godwit get`.

use godwit_certificates::local;
use godwit_client::trust::RefusedCertificate;
use godwit_client::{BuildError, Error, Origin, Remedy, Target, shortened};

use crate::error::Failure;
use crate::output::shell_word;

/// The error about a URL of `origin` in one line that ends with what to do.
pub(super) fn in_words(error: &Error, origin: &Origin) -> String {
    let remedy = match error.remedy() {
        Some(Remedy::TrustIssuer) => trust_issuer(error.certificate(), origin),
        Some(remedy) => remedy_in_words(remedy),
        None => String::new(),
    };
    format!("{}{remedy}", error.text())
}

fn remedy_in_words(remedy: &Remedy) -> String {
    let fixed = match remedy {
        Remedy::LongerConnectTimeout => " (--connect-timeout waits longer)",
        Remedy::AllowIpv4 => "; leave out -6",
        Remedy::AllowIpv6 => "; leave out -4",
        Remedy::OnlyHttp3 => " (--http3 tries QUIC alone)",
        Remedy::OtherVersions => "; leave out --http2",
        Remedy::AcceptAnyCertificate => " (--insecure goes on without the check)",
        Remedy::OtherDisk => ", or write to another disk with -o",
        Remedy::OtherFile => "; choose another place with -o or --output-dir",
        Remedy::FewerAtATime => "; fetch fewer at a time with --parallel, or raise `ulimit -n`",
        Remedy::MoreTime => "; give it more time with --max-time",
        Remedy::MoreRedirects => "; if they lead anywhere, allow more with --max-redirs",
        Remedy::FollowRedirects => " (-L does)",
        Remedy::RepeatableBody => "; give that URL, or a file (@FILE)",
        Remedy::BodyFile => "; --data @FILE takes a file to send",
        other => return other.to_string(),
    };
    fixed.to_owned()
}

/// The authority of this machine is pointed to only if it is the one that has issued the certificate.
fn trust_issuer(shown: Option<&RefusedCertificate>, origin: &Origin) -> String {
    let local = shown.filter(|_| origin.is_local()).and_then(|shown| local::authority_of(&shown.facts));
    if let Some(file) = local {
        let word = shell_word(&file.to_string_lossy()).into_owned();
        return format!("; for `godwit serve` on this machine add --cacert {word}");
    }
    let trust = "; to trust the authority, give its certificate with --cacert FILE";
    match shown {
        Some(shown) if !shown.issuer_sent && shown.facts.issuer != shown.facts.subject => {
            format!(
                "{trust}; if it is not known because it is one in between, the server has to send its certificate too"
            )
        }
        _ => trust.to_owned(),
    }
}

/// Reads a URL; the problem begins with it.
pub(super) fn target(text: &str) -> Result<Target, String> {
    Target::parse(text).map_err(|problem| {
        // The library knows no options.
        let problem = problem.replace("give it in a header '", "give it with -H '");
        format!("{}: {problem}", shortened(text).escape_debug())
    })
}

/// Why there is no client: a bad proxy is wrong usage, as any bad value is.
pub(super) fn of_client(error: BuildError) -> Failure {
    match error {
        BuildError::Proxy { name, problem } if name == "proxy" => {
            Failure::usage(format!("--proxy: {problem}"))
        }
        BuildError::Proxy { name, problem } => {
            Failure::usage(format!("--env-proxy: {name} in the environment: {problem}"))
        }
        BuildError::Dns { url, problem } => {
            Failure::usage(format!("--doh-url {}: {problem}", url.escape_debug()))
        }
        BuildError::MemoryFile { file, problem } => Failure::file(
            "memory of servers",
            &file,
            problem,
            "--alt-svc takes a file that godwit wrote, or one that does not exist yet",
        ),
        error => Failure::new(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn options_are_named() {
        let target = Target::parse("https://a.example/").unwrap();
        let full = Error::writing(&"x", 5 << 20, &io::ErrorKind::StorageFull.into());
        assert_eq!(
            in_words(&full, target.origin()),
            "no room left for x after 5 MiB; make room, or write to another disk with -o"
        );
        let words = trust_issuer(None, target.origin());
        assert_eq!(words, "; to trust the authority, give its certificate with --cacert FILE");
    }
}
