//! Sending on a stream.
//!
//! What the application lends is handed to the transport as far as that has room. Where the connection buffers what it sends,
//! it is copied then, and given back at once; where it does not, the transport works with the application's own memory, and
//! gives it back when the peer has acknowledged it. Sends are completed in the order in which they were made.

use super::Start;
use super::lent::{LentBuffer, Loan, OpenLoan};
use super::sending::{Finish, Outstanding, Request, Unsent};
use crate::abi::{Buffer, SendFlags, Status};
use crate::worker::{State, StreamNews};
use bytes::Bytes;
use godwit_base::slab::Key;
use godwit_engine::ShardCx;
use godwit_transport::EarlyDataStatus;
use std::sync::Arc;

/// Bytes that are copied at once.
const MOST_COPIED: usize = 64 << 10;

impl State {
    /// Takes a request. The stream must be open for sending.
    ///
    /// # Safety
    /// The memory of the buffers stays there and as it is until the event that gives it back.
    pub(crate) unsafe fn queue_send(&mut self, key: Key, request: &Request<'_>) {
        let given_back = Arc::clone(&self.given_back);
        let Some(stream) = self.streams.get_mut(key) else { return };
        let number = stream.sending.next;
        stream.sending.next = number.wrapping_add(1);
        let length = request.buffers.iter().map(|buffer| u64::from(buffer.length)).sum();
        stream.sending.queued_bytes = stream.sending.queued_bytes.saturating_add(length);
        let loan = OpenLoan::new(Loan { stream: key, send: number }, given_back);
        stream.sending.outstanding.push_back(Outstanding {
            number,
            context: request.context,
            is_given_back: false,
            is_urgent: request.flags.contains(SendFlags::PRIORITY_WORK),
            is_canceled: false,
        });
        let may_be_early = request.flags.contains(SendFlags::ALLOW_ZERO_RTT);
        stream.sending.cancels_on_loss |= request.flags.contains(SendFlags::CANCEL_ON_LOSS);
        // SAFETY: the caller promises it.
        unsafe {
            lend(request.buffers, loan, |bytes| {
                stream.sending.queue.push_back(Unsent { bytes, may_be_early, is_copied: false })
            })
        };
        if request.flags.contains(SendFlags::FIN) {
            stream.sending.want_finish();
        }
        // Behind the end there is nothing to wait for.
        let ends = request.flags.contains(SendFlags::FIN);
        stream.sending.is_delayed = request.flags.contains(SendFlags::DELAY_SEND) && !ends;
    }

    /// Hands the transport what it has room for.
    pub(crate) fn pump(&mut self, cx: &mut ShardCx<'_>, key: Key) {
        let Some(stream) = self.streams.get_mut(key).filter(|stream| stream.start == Start::Open) else {
            return;
        };
        let Some(connection) = self.connections.get(stream.connection) else { return };
        let Some((id, conn)) = stream.id.zip(connection.key) else { return };
        let (copies, is_connected) = (connection.sends_are_buffered(), connection.is_connected);
        let Some(transport) = cx.endpoint_mut().connection_mut(conn) else { return };
        let sending = &mut stream.sending;
        let mut changed = false;
        if sending.cancels_on_loss {
            // A direction that is over has nothing to lose.
            let _ = transport.watch_loss(id);
        }
        let early = transport.early_data_status();
        if early == EarlyDataStatus::Rejected {
            sending.early_bytes = 0;
        }
        while let Some(Unsent { bytes, may_be_early, .. }) = sending.queue.front_mut() {
            if !is_connected && !*may_be_early {
                break;
            }
            if !bytes.is_empty() {
                let before = bytes.len();
                let outcome = match copies {
                    false => transport.write_from(id, bytes),
                    true => copy_into(transport, id, bytes),
                };
                let taken = before.saturating_sub(bytes.len());
                changed |= taken > 0;
                if early == EarlyDataStatus::Offered {
                    sending.early_bytes = sending.early_bytes.saturating_add(taken as u64);
                }
                // Why it failed, an event says.
                if outcome.is_err() || !bytes.is_empty() {
                    break;
                }
            }
            sending.queue.pop_front();
        }
        if sending.queue.is_empty() && sending.finish == Finish::Wanted && sending.ending.is_none() {
            sending.finish = Finish::Said;
            changed |= transport.finish(id).is_ok();
        }
        if changed && !sending.is_delayed {
            cx.endpoint_mut().touch(conn);
        }
        self.take_given_back();
    }

    /// Something of the stream was lost that is about to be sent again.
    pub(crate) fn on_data_lost(&mut self, key: Key) {
        let canceled = self.streams.get(key).is_some_and(|stream| stream.sending.is_canceled_by_loss());
        if canceled {
            self.tell_stream(key, StreamNews::CanceledOnLoss);
        }
    }

    /// Learns what was given back, and has it told.
    pub(crate) fn take_given_back(&mut self) {
        if self.given_back.has_some() {
            self.end_loans();
        }
    }

    fn end_loans(&mut self) {
        let mut loans = std::mem::take(&mut self.ended_loans);
        while self.given_back.take(&mut loans) {
            for loan in loans.drain(..) {
                if let Some(stream) = self.streams.get_mut(loan.stream) {
                    stream.sending.on_given_back(loan.send);
                    self.settle_stream(loan.stream);
                }
            }
        }
        self.ended_loans = loans;
    }

    /// What a send is refused for.
    pub(crate) fn refuses_send(&self, key: Key) -> Option<Status> {
        let stream = self.streams.get(key)?;
        let connection = self.connections.get(stream.connection)?;
        if connection.closed_remotely || stream.sending.is_stopped {
            return Some(Status::ABORTED);
        }
        (!stream.sending.is_open() || connection.closed_locally).then_some(Status::INVALID_STATE)
    }
}

/// Lends buffers, which together are a loan. Where there are no bytes, there is one without any, and the loan is at its end.
///
/// # Safety
/// The memory of the buffers stays there and as it is until the loan has ended.
unsafe fn lend(buffers: &[Buffer], loan: OpenLoan, mut queue: impl FnMut(Bytes)) {
    let mut buffers = buffers.iter().filter(|buffer| buffer.length > 0).peekable();
    let Some(first) = buffers.next() else { return queue(Bytes::new()) };
    if buffers.peek().is_none() {
        // SAFETY: the caller promises it.
        return queue(Bytes::from_owner(unsafe { lent(first, loan) }));
    }
    let loan = Arc::new(loan);
    for buffer in std::iter::once(first).chain(buffers) {
        // SAFETY: the caller promises it.
        queue(Bytes::from_owner(unsafe { lent(buffer, Arc::clone(&loan)) }));
    }
}

/// # Safety
/// As [`LentBuffer::new`].
unsafe fn lent<L>(buffer: &Buffer, loan: L) -> LentBuffer<L> {
    // SAFETY: the caller promises it.
    unsafe { LentBuffer::new(buffer.buffer, buffer.length as usize, loan) }
}

/// Copies as much as there is room for.
fn copy_into(
    transport: &mut godwit_transport::Connection,
    id: godwit_transport::StreamId,
    buffer: &mut Bytes,
) -> Result<(), godwit_transport::WriteError> {
    loop {
        let room = transport.write_room(id)?.min(buffer.len()).min(MOST_COPIED);
        if room == 0 {
            return if buffer.is_empty() { Ok(()) } else { transport.watch_writable(id) };
        }
        let piece = buffer.split_to(room);
        transport.write(id, Bytes::copy_from_slice(&piece))?;
    }
}
