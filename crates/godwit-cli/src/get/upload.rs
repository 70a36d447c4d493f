//! Request bodies: nothing, a string, a file, or the standard input, sent while they are read.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::mpsc;

use crate::error::plain;

/// How much of a file is read at once.
const PIECE: usize = 256 << 10;
/// Pieces of a pipe that wait to be sent.
const WAITING: usize = 4;

/// Where `--data` takes the body from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    File(PathBuf),
    Stdin,
    Text(Bytes),
}

impl Source {
    /// Reads the argument: `@-`, `@FILE`, or the body itself.
    pub(super) fn parse(text: &str) -> Result<Source, String> {
        match text.strip_prefix('@') {
            None => Ok(Source::Text(Bytes::copy_from_slice(text.as_bytes()))),
            Some("-") => Ok(Source::Stdin),
            Some("") => Err("--data @: expected a file name or - after @".to_owned()),
            Some(path) => Ok(Source::File(PathBuf::from(path))),
        }
    }

    /// What the body is, if no header says so.
    pub(super) fn content_type(&self) -> &'static str {
        match self {
            Source::Text(_) => "application/x-www-form-urlencoded",
            Source::File(_) | Source::Stdin => "application/octet-stream",
        }
    }
}

/// The body of one request.
pub(super) struct Upload {
    kind: Kind,
    fault: Fault,
}

/// Why a body could not be read to its end: set by then, as the exchange is only told that it failed.
pub(super) type Fault = Arc<OnceLock<String>>;

enum Kind {
    File {
        file: File,
        remaining: u64,
    },
    None,
    /// Pieces that a thread reads: reading a pipe may block for long.
    Pipe(mpsc::Receiver<io::Result<Bytes>>),
    Text(Option<Bytes>),
}

impl Upload {
    /// Opens a source.
    ///
    /// # Errors
    /// If its file cannot be read.
    pub(super) fn open(source: Option<&Source>) -> io::Result<Upload> {
        let kind = match source {
            None => Kind::None,
            Some(Source::Text(text)) => Kind::Text(Some(text.clone())),
            Some(Source::Stdin) => Kind::pipe(io::stdin()),
            Some(Source::File(path)) => Kind::file(path)?,
        };
        Ok(Upload { kind, fault: Fault::default() })
    }

    /// Where a failure to read will be noted.
    pub(super) fn fault(&self) -> Fault {
        Arc::clone(&self.fault)
    }

    /// Its length in bytes, where it is known beforehand. `None` also where there is no body at all.
    pub(super) fn length(&self) -> Option<u64> {
        match &self.kind {
            Kind::None | Kind::Pipe(_) => None,
            Kind::Text(text) => Some(text.as_ref().map_or(0, |text| text.len() as u64)),
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
    *remaining -= piece.as_ref().map_or(*remaining, |piece| piece.len() as u64);
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

impl Body for Upload {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let piece = match &mut self.kind {
            Kind::None => None,
            Kind::Text(text) => text.take().filter(|text| !text.is_empty()).map(Ok),
            Kind::File { file, remaining } => next_piece(file, remaining),
            Kind::Pipe(pieces) => ready!(pieces.poll_recv(cx)),
        };
        if let Some(Err(error)) = &piece {
            let _ = self.fault.set(plain(error));
        }
        Poll::Ready(piece.map(|piece| piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        match self.kind {
            Kind::None => true,
            Kind::Pipe(_) => false,
            Kind::File { .. } | Kind::Text(_) => self.length() == Some(0),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self.kind {
            Kind::None => SizeHint::with_exact(0),
            _ => self.length().map_or_else(SizeHint::default, SizeHint::with_exact),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    fn collect(upload: Upload) -> io::Result<Vec<u8>> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async { Ok(upload.collect().await?.to_bytes().to_vec()) })
    }

    #[test]
    fn the_argument_says_where_from() {
        assert_eq!(Source::parse("a=b"), Ok(Source::Text(Bytes::from_static(b"a=b"))));
        assert_eq!(Source::parse("@-"), Ok(Source::Stdin));
        assert_eq!(Source::parse("@x.bin"), Ok(Source::File("x.bin".into())));
        assert!(Source::parse("@").is_err());
    }

    #[test]
    fn strings_and_files_have_lengths() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let contents: Vec<u8> = (0..600_000_u32).map(|n| (n % 251) as u8).collect();
        std::fs::write(&path, &contents).unwrap();
        let file = Upload::open(Some(&Source::File(path))).unwrap();
        assert_eq!(file.length(), Some(600_000));
        assert!(!file.is_end_stream());
        assert_eq!(collect(file).unwrap(), contents);

        let text = Upload::open(Some(&Source::parse("").unwrap())).unwrap();
        assert_eq!((text.length(), text.is_end_stream()), (Some(0), true));
        assert_eq!(Upload::open(None).unwrap().length(), None);
    }

    #[test]
    fn a_file_that_shrinks_is_an_error_and_one_that_grows_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, [7; 1000]).unwrap();
        let open = || Upload::open(Some(&Source::File(path.clone())));
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
        let pipe = Upload { kind, fault: Fault::default() };
        assert_eq!(pipe.length(), None);
        assert_eq!(collect(pipe).unwrap(), contents);
    }

    #[test]
    fn folders_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error = Upload::open(Some(&Source::File(folder.path().into()))).map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::IsADirectory);
    }
}
