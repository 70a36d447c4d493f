//! Why a request failed, in one line that says what was expected, what came and what to do.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::session::ExchangeError;
use crate::trust::RefusedCertificate;
use godwit_text::{plain_error, shell_word, size};

/// Why a request failed. It is displayed as a sentence without capital and full stop, with what to do at its end.
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    text: String,
    remedy: Option<Remedy>,
    whole_origin: bool,
    tried: Arc<[Tried]>,
    certificate: Option<Arc<RefusedCertificate>>,
    cause: Option<Cause>,
}

/// What an error comes from: of a connection, or of the body that was to be sent.
type Cause = Arc<dyn std::error::Error + Send + Sync>;

/// An address that was tried, and gave no connection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tried {
    /// The address, with the port.
    pub address: SocketAddr,
    /// What came of it.
    pub outcome: TriedOutcome,
    /// The same as a sentence, without capital and full stop.
    pub text: String,
}

/// What came of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TriedOutcome {
    /// Nothing came back.
    Silent,
    /// The machine says that nobody listens on the port.
    NobodyListens,
    /// Somebody answered, and does not speak TLS: the port is probably for plain HTTP.
    NotTls,
    /// Somebody answered, but it came to no connection.
    Failed,
    /// This machine cannot send there.
    NoWay,
}

/// What an [`Error`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The server's name has no address.
    Resolve,
    /// No connection came about.
    Connect,
    /// The server's certificate was not accepted.
    Certificate,
    /// The request, or its body, cannot be sent.
    Request,
    /// The connection, or the exchange on it, failed.
    Exchange,
    /// A redirect that is not followed.
    Redirect,
    /// The server answered with something that was not asked for.
    Response,
    /// The server's status says that it failed.
    Status,
    /// It took too long.
    Timeout,
    /// What came could not be kept.
    File,
}

/// What may help. A program says it with the names of its own options; [`Error`] displays it in general words.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remedy {
    /// More time for connecting.
    LongerConnectTimeout,
    /// Addresses of IPv4 are not to be excluded.
    AllowIpv4,
    /// Addresses of IPv6 are not to be excluded.
    AllowIpv6,
    /// HTTP/3 alone, for a server that does without TCP.
    OnlyHttp3,
    /// Other versions than HTTP/2.
    OtherVersions,
    /// No check of certificates.
    AcceptAnyCertificate,
    /// The authority that issued the server's certificate is to be trusted.
    TrustIssuer,
    /// Another disk.
    OtherDisk,
    /// Another file.
    OtherFile,
    /// Fewer transfers at a time.
    FewerAtATime,
    /// More time for the whole.
    MoreTime,
    /// More redirects.
    MoreRedirects,
    /// Redirects are to be followed.
    FollowRedirects,
    /// The body is to come from something that can be read again.
    RepeatableBody,
    /// The file with the body.
    BodyFile,
}

impl fmt::Display for Remedy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Remedy::LongerConnectTimeout => " (a longer time limit for connecting waits longer)",
            Remedy::AllowIpv4 => "; allow IPv4 too",
            Remedy::AllowIpv6 => "; allow IPv6 too",
            Remedy::OnlyHttp3 => " (HTTP/3 alone does without TCP)",
            Remedy::OtherVersions => "; allow other versions of HTTP too",
            Remedy::TrustIssuer => "; to trust the authority, add its certificate to the roots",
            Remedy::OtherDisk => ", or write to another disk",
            Remedy::OtherFile => "; choose another place",
            Remedy::FewerAtATime => "; fetch fewer at a time, or raise `ulimit -n`",
            Remedy::MoreTime => "; give it more time",
            Remedy::MoreRedirects => "; if they lead anywhere, allow more",
            Remedy::RepeatableBody => "; request that URL, or send a body that can be read again",
            Remedy::AcceptAnyCertificate | Remedy::FollowRedirects | Remedy::BodyFile => "",
        })
    }
}

impl Error {
    /// Something about one URL.
    pub fn new(kind: ErrorKind, text: impl Into<String>) -> Error {
        Error {
            kind,
            text: text.into(),
            remedy: None,
            whole_origin: false,
            tried: Arc::default(),
            certificate: None,
            cause: None,
        }
    }

    /// With the error that it explains.
    pub(crate) fn caused_by(self, error: ExchangeError) -> Error {
        Error { cause: error.into_cause(), ..self }
    }

    /// Something about the server that all its URLs share.
    pub(crate) fn of_origin(kind: ErrorKind, text: impl Into<String>) -> Error {
        Error { whole_origin: true, ..Error::new(kind, text) }
    }

    /// With what may help.
    pub(crate) fn remedy_of(self, remedy: Remedy) -> Error {
        Error { remedy: Some(remedy), ..self }
    }

    /// With the certificate that it is about.
    pub(crate) fn of_certificate(self, certificate: Option<&RefusedCertificate>) -> Error {
        Error { certificate: certificate.cloned().map(Arc::new), ..self }
    }

    /// With the addresses that it is about.
    pub(crate) fn having_tried(self, tried: Vec<Tried>) -> Error {
        Error { tried: tried.into(), ..self }
    }

    /// The same about the way through a proxy.
    pub(crate) fn through(self, proxy: &dyn fmt::Display) -> Error {
        Error { text: format!("through the proxy {proxy}: {}", self.text), remedy: None, ..self }
    }

    /// It was not finished in this time.
    pub(crate) fn too_slow(limit: Duration) -> Error {
        Error::new(ErrorKind::Timeout, format!("not finished in {}", seconds(limit)))
            .remedy_of(Remedy::MoreTime)
    }

    /// A file or pipe that a body could not be written to.
    pub fn writing(what: &dyn fmt::Display, written: u64, error: &io::Error) -> Error {
        use io::ErrorKind::{BrokenPipe, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        let problem = plain_error(error);
        let (text, remedy) = match error.kind() {
            StorageFull | QuotaExceeded => {
                let text = format!("no room left for {what} after {}; make room", size(written));
                (text, Some(Remedy::OtherDisk))
            }
            PermissionDenied | ReadOnlyFilesystem => {
                (format!("cannot write {what}: {problem}"), Some(Remedy::OtherFile))
            }
            _ if problem.starts_with("too many open files") => {
                (format!("cannot write {what}: {problem}"), Some(Remedy::FewerAtATime))
            }
            BrokenPipe => {
                (format!("{what} was closed by the program that reads it, after {written} bytes"), None)
            }
            _ => (format!("cannot write {what} after {written} bytes: {problem}"), None),
        };
        Error { remedy, ..Error::new(ErrorKind::File, text) }
    }

    /// A file that could not be begun.
    pub(crate) fn creating(path: &Path, error: &io::Error) -> Error {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        match (error.kind(), parent) {
            (io::ErrorKind::NotFound | io::ErrorKind::NotADirectory, Some(parent)) if !parent.is_dir() => {
                Error::no_folder(parent)
            }
            _ => Error::writing(&path.display(), 0, error),
        }
    }

    /// A folder to write into that is missing, or is something else.
    pub fn no_folder(folder: &Path) -> Error {
        let shown = folder.display();
        let text = if folder.exists() {
            format!("expected a folder at {shown}, found something else; choose another place")
        } else {
            let word = shell_word(&folder.to_string_lossy()).into_owned();
            format!("the folder {shown} does not exist; make it with `mkdir -p {word}`")
        };
        Error::new(ErrorKind::File, text)
    }

    /// What it is about.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What was expected and what came, without [`Error::remedy`].
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What may help, where that depends on how the client is used.
    pub fn remedy(&self) -> Option<&Remedy> {
        self.remedy.as_ref()
    }

    /// The server's certificate, where that was not accepted and could be read.
    pub fn certificate(&self) -> Option<&RefusedCertificate> {
        self.certificate.as_deref()
    }

    /// The addresses that were tried, where no connection came about. Of those that were begun when time ran out only
    /// the first is here.
    pub fn tried(&self) -> &[Tried] {
        &self.tried
    }

    /// True if it is the server as a whole that cannot be used: its other URLs fail alike.
    pub fn is_of_origin(&self) -> bool {
        self.whole_origin
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)?;
        self.remedy.as_ref().map_or(Ok(()), |remedy| remedy.fmt(formatter))
    }
}

/// The source of an exchange's failure is the error of the protocol that was used: [`godwit::http3::Error`], or one of
/// `hyper`.
impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_deref().map(|cause| cause as _)
    }
}

/// `10 s`, `2.5 s`.
pub(crate) fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_problems_say_what_to_do() {
        let text = |kind: io::ErrorKind| Error::writing(&"x", 5 << 20, &kind.into()).to_string();
        assert_eq!(
            text(io::ErrorKind::StorageFull),
            "no room left for x after 5 MiB; make room, or write to another disk"
        );
        assert!(text(io::ErrorKind::PermissionDenied).ends_with("; choose another place"));
        assert!(text(io::ErrorKind::BrokenPipe).contains("closed by the program that reads it"));
        assert_eq!(seconds(Duration::from_millis(2500)), "2.5 s");
    }

    #[test]
    fn a_missing_folder_is_named() {
        let error = io::ErrorKind::NotFound.into();
        let text = Error::creating(Path::new("/no/such folder/x"), &error).to_string();
        assert_eq!(
            text,
            "the folder /no/such folder does not exist; make it with `mkdir -p '/no/such folder'`"
        );
        // Some folders take no files, and say that there is none.
        let text = Error::creating(&std::env::temp_dir().join("x"), &io::ErrorKind::NotFound.into());
        assert!(text.to_string().starts_with("cannot write "), "{text}");
    }
}
