//! A file's body, read in pieces as the client takes them: from memory where the system has them there, otherwise on a
//! thread for blocking work.
//!
//! It holds one descriptor, of which [all together have so many](super::open), or none of a file that is [opened for each
//! piece](super::closed), and at most one piece, for which [all together have so much memory](super::memory). Nothing is read
//! ahead.

use std::fs::File;
use std::future::Future;
use std::io::{self, Read};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::task::JoinHandle;

use super::closed::ClosedFile;
use super::memory::{FileMemory, Room};
use super::open::OpenFile;
use super::page_cache;
use super::piece_buffer::{self, PieceBuffer, Reading};

/// Bytes that are read at a time: as many as the client has taken before, within these bounds if there is room for
/// them. Clients that ask for much and take none of it hold little of each file.
const PIECE: std::ops::RangeInclusive<usize> = 16 << 10..=piece_buffer::LARGEST;

/// Pieces from memory after which others have their turn.
const AT_A_TIME: u32 = 4;

/// Sends exactly the announced length: of a file that grows no more, and with one that shrinks it fails.
pub(super) struct FileBody {
    state: State,
    memory: FileMemory,
    left: u64,
    taken: u64,
    /// Pieces from memory since others had their turn.
    in_a_row: u32,
    _reading: Reading,
}

enum State {
    Idle(Source),
    Reading(JoinHandle<io::Result<(Source, Bytes)>>),
    Over,
}

/// Where the bytes come from.
pub(super) enum Source {
    Open(File, OpenFile),
    Closed(ClosedFile),
}

impl FileBody {
    /// So many bytes from where the file stands.
    pub(super) fn new(source: Source, length: u64, memory: FileMemory) -> FileBody {
        FileBody {
            state: State::Idle(source),
            memory,
            left: length,
            taken: 0,
            in_a_row: 0,
            _reading: Reading::begin(),
        }
    }

    /// Notes that a piece was read, which is given out.
    fn give(&mut self, source: Source, piece: Bytes) -> Frame<Bytes> {
        self.left = self.left.saturating_sub(piece.len() as u64);
        self.taken = self.taken.saturating_add(piece.len() as u64);
        // The last piece closes the file, however long it takes to be sent.
        if self.left > 0 {
            self.state = State::Idle(source);
        }
        Frame::data(piece)
    }
}

impl Body for FileBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = self.get_mut();
        if this.left == 0 {
            this.state = State::Over;
        }
        loop {
            match std::mem::replace(&mut this.state, State::Over) {
                State::Over => return Poll::Ready(None),
                State::Idle(source) => {
                    let taken = usize::try_from(this.taken).unwrap_or(usize::MAX);
                    let most = taken.clamp(*PIECE.start(), *PIECE.end());
                    let most = usize::try_from(this.left).map_or(most, |left| left.min(most));
                    if this.in_a_row == AT_A_TIME {
                        this.in_a_row = 0;
                        this.state = State::Idle(source);
                        cx.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    let room = this.memory.room(most);
                    let room = match source.known_piece(room) {
                        Ok(piece) => {
                            this.in_a_row += 1;
                            return Poll::Ready(Some(Ok(this.give(source, piece))));
                        }
                        Err(room) => room,
                    };
                    this.in_a_row = 0;
                    this.state = State::Reading(tokio::task::spawn_blocking(move || source.piece(room)));
                }
                State::Reading(mut reading) => {
                    let Poll::Ready(read) = Pin::new(&mut reading).poll(cx) else {
                        this.state = State::Reading(reading);
                        return Poll::Pending;
                    };
                    let (source, piece) = match read.unwrap_or_else(|error| Err(io::Error::other(error))) {
                        Ok(read) => read,
                        Err(error) => return Poll::Ready(Some(Err(error))),
                    };
                    if piece.is_empty() {
                        let error = io::Error::other("the file became shorter while it was sent");
                        return Poll::Ready(Some(Err(error)));
                    }
                    return Poll::Ready(Some(Ok(this.give(source, piece))));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

impl Source {
    /// A piece, if the system has it in memory; otherwise its room, and the file stands where it stood.
    fn known_piece(&self, room: Room) -> Result<Bytes, Room> {
        let Source::Open(file, _) = self else { return Err(room) };
        let mut buffer = PieceBuffer::of(room.bytes());
        match page_cache::read(file, buffer.bytes()) {
            Ok(()) => Ok(room.filled(buffer)),
            Err(_) => Err(room),
        }
    }

    /// Blocks.
    fn piece(self, room: Room) -> io::Result<(Source, Bytes)> {
        let mut piece = Vec::with_capacity(room.bytes());
        let mut read = |file: &mut File| file.take(room.bytes() as u64).read_to_end(&mut piece);
        let source = match self {
            Source::Open(mut file, place) => {
                read(&mut file)?;
                Source::Open(file, place)
            }
            Source::Closed(mut closed) => {
                let count = read(&mut closed.open()?)?;
                closed.at = closed.at.saturating_add(count as u64);
                Source::Closed(closed)
            }
        };
        Ok((source, room.filled(piece)))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use godwit_body::NetworkShares;
    use http_body_util::BodyExt;

    use super::*;

    async fn send(there: usize, announced: u64) -> Result<Bytes, io::Error> {
        let path = tempfile::NamedTempFile::new().unwrap();
        let content: Vec<u8> = (0..there).map(|n| (n % 251) as u8).collect();
        path.as_file().write_all(&content).unwrap();
        let sent = content_of(&path, announced, FileMemory::of_process()).await?;
        assert!(content.starts_with(&sent));
        let memory = FileMemory::of(20_000);
        assert_eq!(content_of(&path, announced, memory.clone()).await?, sent, "in many pieces");
        assert_eq!(memory.left(), 20_000);
        Ok(sent)
    }

    async fn content_of(
        path: &tempfile::NamedTempFile,
        announced: u64,
        memory: FileMemory,
    ) -> io::Result<Bytes> {
        let place = NetworkShares::of(1).take(1, None).unwrap();
        let source = Source::Open(File::open(path.path()).unwrap(), place);
        let body = FileBody::new(source, announced, memory);
        Ok(body.collect().await?.to_bytes())
    }

    #[tokio::test]
    async fn no_more_and_no_less_is_sent_than_announced() {
        assert_eq!(send(200_000, 200_000).await.unwrap().len(), 200_000);
        assert_eq!(send(200_000, 150_000).await.unwrap().len(), 150_000, "it grew");
        assert!(send(100_000, 100_001).await.is_err(), "it shrank");
        assert!(send(0, 0).await.unwrap().is_empty());
    }
}
