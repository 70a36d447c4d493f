//! The work on a stream: bytes out as they wait, bytes in as there is room.

use super::connection::Connection;
use super::lost;
use super::stream::{Command, Orders, Stream};
use crate::abi;
use crate::failure::Failure;
use crate::outbox::{Piece, Report};
use bytes::Bytes;
use godwit::{ApplicationCode, ConnectionError, ReadError, RecvStream, SendStream, WriteError};
use std::future::poll_fn;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedReceiver;

/// Bytes that are read at a time.
const CHUNK: usize = 1 << 16;

fn stopped(code: u64) -> Failure {
    Failure::new(abi::ERROR_RESET, "the peer wants no more bytes on this stream").with_application_code(code)
}

/// Opens it, as soon as there is a connection that permits it.
pub(super) async fn open(stream: Arc<Stream>, connection: Arc<Connection>) {
    let opening = async {
        let inner = connection.opened().await?;
        let ends = if stream.receives {
            inner.open_bi().await.map(|(send, receive)| (send, Some(receive)))
        } else {
            inner.open_uni().await.map(|send| (send, None))
        };
        ends.map_err(|error| lost::connection(&error))
    };
    match stream.subject.unless_closed(opening).await {
        None => {}
        Some(Ok((send, receive))) => {
            let event = stream.subject.event(abi::EVENT_STREAM_OPENED);
            stream.subject.tell(event.with_code(send.id().as_u64()));
            work(stream, Some(send), receive).await;
        }
        Some(Err(failure)) => {
            stream.tell_stopped(&failure);
            if stream.receives {
                stream.tell_reset(&failure);
            }
        }
    }
}

/// Sends and receives on it, until both is done.
pub(super) async fn work(stream: Arc<Stream>, send: Option<SendStream>, receive: Option<RecvStream>) {
    let orders = stream.take_orders();
    let Some(Orders { mut commands, mut stops }) = orders else { return };
    let (mut send, mut receive) = (send, receive);
    let both = async {
        tokio::join!(
            async {
                if let Some(send) = &mut send {
                    send_all(&stream, send, &mut commands).await;
                }
            },
            async {
                if let Some(receive) = &mut receive {
                    receive_all(&stream, receive, &mut stops).await;
                }
            },
        );
    };
    if stream.subject.unless_closed(both).await.is_none() {
        // What was wanted just before the close is what the peer hears.
        while let (Ok(command), Some(send)) = (commands.try_recv(), &mut send) {
            obey(&stream, send, command);
        }
        if let (Ok(code), Some(receive)) = (stops.try_recv(), &mut receive) {
            receive.stop(code);
        }
    }
}

/// Sends, until everything is acknowledged or nothing more can be sent.
async fn send_all(stream: &Stream, send: &mut SendStream, commands: &mut UnboundedReceiver<Command>) {
    let mut is_finished = false;
    loop {
        let turn = tokio::select! {
            biased;
            Some(command) = commands.recv() => Turn::Command(command),
            piece = stream.outbox.next(), if !is_finished => Turn::Piece(piece),
            over = send.stopped() => Turn::Over(over),
        };
        let goes_on = match turn {
            Turn::Command(command) => obey(stream, send, command),
            Turn::Piece(Ok(Some(Piece::Bytes(bytes, report)))) => {
                write(stream, send, commands, bytes, report).await
            }
            Turn::Piece(Ok(Some(Piece::Trailers(_)))) => true,
            Turn::Piece(Ok(None)) => {
                is_finished = true;
                // If it cannot be finished, what comes next says why.
                let _ = send.finish();
                true
            }
            Turn::Piece(Err(_)) => false,
            Turn::Over(over) => {
                tell_over(stream, over);
                false
            }
        };
        if !goes_on {
            return;
        }
    }
}

enum Turn {
    Command(Command),
    Piece(Result<Option<Piece>, Failure>),
    Over(Result<Option<u64>, ConnectionError>),
}

/// Does as the application wants. False if that was the end.
fn obey(stream: &Stream, send: &mut SendStream, command: Command) -> bool {
    match command {
        Command::Priority(urgency, incremental) => {
            send.set_priority(urgency, incremental);
            true
        }
        Command::Reset(code) => {
            send.reset(code);
            stream
                .outbox
                .abandon(&Failure::new(abi::ERROR_STATE, "the stream was reset by this side before"));
            false
        }
    }
}

/// Hands bytes to the transport. False if nothing more can be sent.
async fn write(
    stream: &Stream,
    send: &mut SendStream,
    commands: &mut UnboundedReceiver<Command>,
    mut bytes: Bytes,
    report: Option<Report>,
) -> bool {
    loop {
        let written = tokio::select! {
            biased;
            Some(command) = commands.recv() => {
                if obey(stream, send, command) {
                    continue;
                }
                return false;
            }
            written = poll_fn(|cx| send.poll_write_chunk(cx, &mut bytes)) => written,
        };
        let failure = match written {
            Ok(()) => {
                if let Some(report) = report {
                    report.sent();
                }
                return true;
            }
            Err(WriteError::Stopped(code)) => stopped(code),
            Err(WriteError::ConnectionLost(error)) => lost::connection(&error),
            Err(error) => Failure::new(abi::ERROR_STATE, error.to_string()),
        };
        // The report comes before it.
        drop(report);
        stream.tell_stopped(&failure);
        return false;
    }
}

fn tell_over(stream: &Stream, over: Result<Option<u64>, ConnectionError>) {
    match over {
        Ok(None) => stream.subject.tell(stream.subject.event(abi::EVENT_STREAM_FINISHED)),
        Ok(Some(code)) => stream.tell_stopped(&stopped(code)),
        Err(error) => stream.tell_stopped(&lost::connection(&error)),
    }
}

/// Receives, until the end.
async fn receive_all(
    stream: &Stream,
    receive: &mut RecvStream,
    stops: &mut UnboundedReceiver<ApplicationCode>,
) {
    loop {
        let read = tokio::select! {
            biased;
            Some(code) = stops.recv() => return receive.stop(code),
            read = receive.read_chunk(CHUNK) => read,
        };
        let event = stream.subject.event(abi::EVENT_RECEIVED);
        match read {
            Ok(Some(mut bytes)) => {
                let permit = tokio::select! {
                    biased;
                    Some(code) = stops.recv() => return receive.stop(code),
                    permit = stream.intake.admit(&mut bytes) => permit,
                };
                stream.subject.tell(event.with_bytes(bytes, permit));
            }
            Ok(None) => return stream.subject.tell(event.with_flags(abi::EVENT_FLAG_END)),
            Err(ReadError::Reset(code)) => {
                let failure = Failure::new(abi::ERROR_RESET, "the peer broke this stream off");
                return stream.tell_reset(&failure.with_application_code(code));
            }
            Err(ReadError::ConnectionLost(error)) => return stream.tell_reset(&lost::connection(&error)),
            Err(_) => return,
        }
    }
}
