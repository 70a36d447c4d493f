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
        let lend = |buffer: &Buffer| {
            // SAFETY: the caller promises it.
            let lent = unsafe { LentBuffer::new(buffer.buffer, buffer.length as usize, Arc::clone(&loan)) };
            Bytes::from_owner(lent)
        };
        let buffers = request.buffers.iter().filter(|buffer| buffer.length > 0).map(lend).collect();
        stream.sending.outstanding.push_back(Outstanding {
            number,
            context: request.context,
            is_given_back: false,
        });
        let may_be_early = request.flags.contains(SendFlags::ALLOW_ZERO_RTT);
        // With no bytes at all it is given back at once, which is told after those before it.
        let unsent = Unsent { buffers, may_be_early };
        stream.sending.cancels_on_loss |= request.flags.contains(SendFlags::CANCEL_ON_LOSS);
        stream.sending.queue.push_back(unsent);
        if request.flags.contains(SendFlags::FIN) {
            stream.sending.want_finish();
        }
        stream.sending.is_delayed = request.flags.contains(SendFlags::DELAY_SEND);
        drop(loan);
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
        'requests: while let Some(unsent) = sending.queue.front_mut() {
            if !is_connected && !unsent.may_be_early {
                break;
            }
            while let Some(buffer) = unsent.buffers.front_mut() {
                let before = buffer.len();
                let outcome = match copies {
                    false => transport.write_from(id, buffer),
                    true => copy_into(transport, id, buffer),
                };
                let taken = before.saturating_sub(buffer.len());
                changed |= taken > 0;
                if early == EarlyDataStatus::Offered {
                    sending.early_bytes = sending.early_bytes.saturating_add(taken as u64);
                }
                if outcome.is_err() {
                    // Why, an event says.
                    break 'requests;
                }
                if !buffer.is_empty() {
                    break 'requests;
                }
                unsent.buffers.pop_front();
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
        loop {
            let loans = self.given_back.take();
            if loans.is_empty() {
                return;
            }
            for loan in loans {
                if let Some(stream) = self.streams.get_mut(loan.stream) {
                    stream.sending.on_given_back(loan.send);
                    self.settle_stream(loan.stream);
                }
            }
        }
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
