//! Request bodies: nothing, bytes, a file, or what is read or produced while it is sent.
//!
//! A [`BodySource`] is what a request is made with; it is opened for each attempt to send the request, unless what it
//! has can be had once only.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use godwit_text::plain_error;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use tokio::sync::mpsc;

use crate::give_up::{GiveUp, GivenUp};

/// Any error, as bodies have them.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// How much of a file is read at once.
const PIECE: usize = 256 << 10;
/// Pieces of a pipe that wait to be sent.
const WAITING: usize = 4;

/// Where a request's body comes from.
#[derive(Clone, Default)]
pub struct BodySource(Source);

#[derive(Clone, Default)]
enum Source {
    #[default]
    Empty,
    Bytes(Bytes),
    File(PathBuf),
    Once(Arc<Mutex<Option<Once>>>),
}

/// What can be sent once.
enum Once {
    Reader(Box<dyn Read + Send>),
    Stream(UnsyncBoxBody<Bytes, BoxError>),
}

impl BodySource {
    /// No body.
    pub fn empty() -> BodySource {
        BodySource::default()
    }

    /// These bytes.
    pub fn bytes(bytes: impl Into<Bytes>) -> BodySource {
        BodySource(Source::Bytes(bytes.into()))
    }

    /// The contents of a file, read while they are sent.
    pub fn file(path: impl Into<PathBuf>) -> BodySource {
        BodySource(Source::File(path.into()))
    }

    /// What a thread reads. It can be sent once: requests with it are not repeated.
    pub fn reader(from: impl Read + Send + 'static) -> BodySource {
        BodySource::once(Once::Reader(Box::new(from)))
    }

    /// What another body produces. It can be sent once: requests with it are not repeated.
    pub fn stream<B>(body: B) -> BodySource
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        // Nothing is nothing, whatever made it.
        match body.size_hint().exact() {
            Some(0) if body.is_end_stream() => BodySource::empty(),
            _ => BodySource::once(Once::Stream(body.map_err(Into::into).boxed_unsync())),
        }
    }

    fn once(once: Once) -> BodySource {
        BodySource(Source::Once(Arc::new(Mutex::new(Some(once)))))
    }

    /// Whether it can be sent more than once.
    pub fn is_repeatable(&self) -> bool {
        !matches!(self.0, Source::Once(_))
    }

    /// The file, if it is one.
    pub(crate) fn path(&self) -> Option<&Path> {
        match &self.0 {
            Source::File(path) => Some(path),
            _ => None,
        }
    }

    /// Begins to send it.
    ///
    /// # Errors
    /// If its file cannot be read, or it has been sent.
    pub(crate) fn open(&self) -> io::Result<RequestBody> {
        let kind = match &self.0 {
            Source::Empty => Kind::None,
            Source::Bytes(bytes) => Kind::Bytes(Some(bytes.clone())),
            Source::File(path) => Kind::file(path)?,
            Source::Once(once) => match once.lock().unwrap_or_else(PoisonError::into_inner).take() {
                Some(Once::Reader(from)) => Kind::pipe(from),
                Some(Once::Stream(body)) => Kind::Stream(body),
                None => return Err(io::Error::other("the body can be sent once, and it has been")),
            },
        };
        Ok(RequestBody { kind, fault: Fault::default(), given_up: None })
    }
}

impl fmt::Debug for BodySource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match &self.0 {
            Source::Empty => "BodySource(empty)",
            Source::Bytes(_) => "BodySource(bytes)",
            Source::File(_) => "BodySource(file)",
            Source::Once(_) => "BodySource(once)",
        })
    }
}

impl From<Bytes> for BodySource {
    fn from(bytes: Bytes) -> BodySource {
        BodySource::bytes(bytes)
    }
}

impl From<Vec<u8>> for BodySource {
    fn from(bytes: Vec<u8>) -> BodySource {
        BodySource::bytes(bytes)
    }
}

impl From<String> for BodySource {
    fn from(text: String) -> BodySource {
        BodySource::bytes(text)
    }
}

impl From<&'static str> for BodySource {
    fn from(text: &'static str) -> BodySource {
        BodySource::bytes(text)
    }
}

/// The body of one request.
pub(crate) struct RequestBody {
    kind: Kind,
    fault: Fault,
    /// It ends when this is so.
    given_up: Option<GivenUp>,
}

/// Why a body could not be read to its end: set by then, as the exchange is only told that it failed.
pub(crate) type Fault = Arc<OnceLock<String>>;

enum Kind {
    File {
        file: File,
        remaining: u64,
    },
    None,
    /// Pieces that a thread reads: reading a pipe may block for long.
    Pipe(mpsc::Receiver<io::Result<Bytes>>),
    Stream(UnsyncBoxBody<Bytes, BoxError>),
    Bytes(Option<Bytes>),
}

impl RequestBody {
    /// Where a failure to read will be noted.
    pub(crate) fn fault(&self) -> Fault {
        Arc::clone(&self.fault)
    }

    /// Has a body that somebody else produces end when what is returned is dropped.
    pub(crate) fn until_given_up(&mut self) -> Option<GiveUp> {
        if !matches!(self.kind, Kind::Stream(_) | Kind::Pipe(_)) {
            return None;
        }
        let (give_up, given_up) = GiveUp::new();
        self.given_up = Some(given_up);
        Some(give_up)
    }

    /// Its length in bytes, where it is known beforehand. `None` also where there is no body at all.
    pub(crate) fn length(&self) -> Option<u64> {
        match &self.kind {
            Kind::None | Kind::Pipe(_) => None,
            Kind::Stream(body) => body.size_hint().exact(),
            Kind::Bytes(bytes) => Some(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Kind::File { remaining, .. } => Some(*remaining),
        }
    }
}

impl Kind {
    fn file(path: &Path) -> io::Result<Kind> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if metadata.is_file() {
            Ok(Kind::File { file, remaining: metadata.len() })
        } else {
            Ok(Kind::pipe(file))
        }
    }

    fn pipe(mut from: impl Read + Send + 'static) -> Kind {
        let (sender, receiver) = mpsc::channel(WAITING);
        std::thread::spawn(move || {
            loop {
                let piece = read_piece(&mut from, PIECE);
                let over = piece.as_ref().map_or(true, Bytes::is_empty);
                if piece.as_ref().is_ok_and(Bytes::is_empty) || sender.blocking_send(piece).is_err() || over {
                    return;
                }
            }
        });
        Kind::Pipe(receiver)
    }
}

fn next_piece(file: &mut File, remaining: &mut u64) -> Option<io::Result<Bytes>> {
    if *remaining == 0 {
        return None;
    }
    let max = usize::try_from(*remaining).unwrap_or(usize::MAX).min(PIECE);
    let piece = match read_piece(file, max) {
        // The length has been announced: what is there now has to match it.
        Ok(piece) if piece.is_empty() => Err(io::Error::other("it became shorter while it was sent")),
        piece => piece,
    };
    let taken = piece.as_ref().map_or(*remaining, |piece| piece.len() as u64);
    *remaining = remaining.saturating_sub(taken);
    Some(piece)
}

fn read_piece(from: &mut impl Read, max: usize) -> io::Result<Bytes> {
    let mut piece = vec![0; max];
    loop {
        match from.read(&mut piece) {
            Ok(length) => {
                piece.truncate(length);
                return Ok(Bytes::from(piece));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(given_up) = &mut self.given_up
            && let Poll::Ready(error) = given_up.poll(cx)
        {
            self.given_up = None;
            return Poll::Ready(Some(Err(error.into())));
        }
        let piece = match &mut self.kind {
            Kind::None => None,
            Kind::Stream(body) => {
                let frame = ready!(Pin::new(body).poll_frame(cx));
                if let Some(Err(error)) = &frame {
                    let _ = self.fault.set(error.to_string());
                }
                return Poll::Ready(frame);
            }
            Kind::Bytes(bytes) => bytes.take().filter(|bytes| !bytes.is_empty()).map(Ok),
            Kind::File { file, remaining } => next_piece(file, remaining),
            Kind::Pipe(pieces) => ready!(pieces.poll_recv(cx)),
        };
        if let Some(Err(error)) = &piece {
            let _ = self.fault.set(plain_error(error));
        }
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece?))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::None => true,
            Kind::Pipe(_) => false,
            Kind::Stream(body) => body.is_end_stream(),
            Kind::File { .. } | Kind::Bytes(_) => self.length() == Some(0),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::None => SizeHint::with_exact(0),
            Kind::Stream(body) => body.size_hint(),
            _ => self.length().map_or_else(SizeHint::default, SizeHint::with_exact),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect(body: RequestBody) -> Result<Vec<u8>, BoxError> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async { Ok(body.collect().await?.to_bytes().to_vec()) })
    }

    #[test]
    fn strings_and_files_have_lengths() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let contents: Vec<u8> = (0..600_000_u32).map(|n| (n % 251) as u8).collect();
        std::fs::write(&path, &contents).unwrap();
        let file = BodySource::file(path).open().unwrap();
        assert_eq!(file.length(), Some(600_000));
        assert!(!file.is_end_stream());
        assert_eq!(collect(file).unwrap(), contents);

        let text = BodySource::bytes("").open().unwrap();
        assert_eq!((text.length(), text.is_end_stream()), (Some(0), true));
        assert_eq!(BodySource::empty().open().unwrap().length(), None);
    }

    #[test]
    fn a_file_that_shrinks_is_an_error_and_one_that_grows_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, [7; 1000]).unwrap();
        let open = || BodySource::file(path.clone()).open();
        let file = open().unwrap();
        std::fs::write(&path, [7; 2000]).unwrap();
        assert_eq!(collect(file).unwrap().len(), 1000);

        let file = open().unwrap();
        let fault = file.fault();
        std::fs::write(&path, [7; 10]).unwrap();
        assert!(collect(file).unwrap_err().to_string().contains("shorter"));
        assert_eq!(fault.get().unwrap(), "it became shorter while it was sent");
    }

    #[test]
    fn pipes_are_read_by_a_thread() {
        let contents = vec![9; 3 * PIECE + 1];
        let kind = Kind::pipe(io::Cursor::new(contents.clone()));
        let pipe = RequestBody { kind, fault: Fault::default(), given_up: None };
        assert_eq!(pipe.length(), None);
        assert_eq!(collect(pipe).unwrap(), contents);
    }

    #[test]
    fn a_stream_is_sent_once() {
        let source = BodySource::stream(http_body_util::Full::new(Bytes::from_static(b"abc")));
        assert!(!source.is_repeatable());
        let body = source.open().unwrap();
        assert_eq!((body.length(), collect(body).unwrap()), (Some(3), b"abc".to_vec()));
        assert!(source.open().map(|_| ()).unwrap_err().to_string().contains("once"));
        let nothing = BodySource::stream(http_body_util::Empty::<Bytes>::new());
        assert!(nothing.is_repeatable() && nothing.open().unwrap().length().is_none());
    }

    #[test]
    fn folders_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error = BodySource::file(folder.path()).open().map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::IsADirectory);
    }
}
