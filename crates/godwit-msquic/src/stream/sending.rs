//! What there is of a stream's sending direction.

use crate::abi::{Buffer, SendFlags};
use crate::context::Context;
use crate::worker::StreamNews;
use bytes::Bytes;
use std::collections::VecDeque;

/// The sending direction of a stream.
#[derive(Debug)]
pub(crate) struct Sending {
    /// What the transport has not taken, or not all of.
    pub(super) queue: VecDeque<Unsent>,
    /// What has not been told as complete, in order.
    pub(super) outstanding: VecDeque<Outstanding>,
    /// The number of the next send.
    pub(super) next: u64,
    /// Bytes of all sends together.
    pub(super) queued_bytes: u64,
    pub(super) finish: Finish,
    /// It ends when everything has been given back.
    pub(super) ending: Option<Ending>,
    pub(super) is_over: bool,
    /// The peer has been sent a reset, and not said that it knows.
    pub(super) awaits_peer: bool,
    /// It was given up but for its beginning, which the peer still gets.
    pub(super) leaves_part: bool,
    /// The peer does not read on.
    pub(crate) is_stopped: bool,
    /// It is given up as soon as anything of it is lost: said once, that holds for all that is sent.
    pub(super) cancels_on_loss: bool,
    /// The application did not want the last of it to cause a packet: it goes along with what else the connection sends.
    pub(super) is_delayed: bool,
    /// Bytes that the transport was given for 0-RTT packets. None if the server has refused those.
    pub(crate) early_bytes: u64,
    /// Bytes that were copied before the transport took them.
    pub(super) copied_bytes: u64,
}

/// How a direction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The peer has all.
    Graceful,
    /// It was given up.
    Aborted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finish {
    /// More may be sent.
    No,
    /// After what is in the queue.
    Wanted,
    /// The transport knows.
    Said,
}

/// A buffer of a request, or none: a request without any bytes is there as well.
#[derive(Debug)]
pub(super) struct Unsent {
    pub(super) bytes: Bytes,
    pub(super) may_be_early: bool,
    /// The application has its own memory back.
    pub(super) is_copied: bool,
}

#[derive(Debug)]
pub(super) struct Outstanding {
    pub(super) number: u64,
    pub(super) context: Context,
    pub(super) is_given_back: bool,
    /// That it is complete is to be told before other things.
    pub(super) is_urgent: bool,
    /// It was given back because the stream was given up.
    pub(super) is_canceled: bool,
}

/// What the application asks to be sent.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) buffers: &'a [Buffer],
    pub(crate) flags: SendFlags,
    pub(crate) context: Context,
}

impl Sending {
    /// A direction in which there is something to send, or not.
    pub(crate) const fn new(exists: bool) -> Self {
        Sending {
            queue: VecDeque::new(),
            outstanding: VecDeque::new(),
            next: 0,
            queued_bytes: 0,
            finish: Finish::No,
            ending: None,
            is_over: !exists,
            awaits_peer: false,
            leaves_part: false,
            is_stopped: false,
            cancels_on_loss: false,
            is_delayed: false,
            early_bytes: 0,
            copied_bytes: 0,
        }
    }

    /// Nothing more is sent, and that was told.
    pub(crate) const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether the application may send more.
    pub(crate) fn is_open(&self) -> bool {
        !self.is_over && self.ending.is_none() && self.finish == Finish::No
    }

    /// Bytes that the application has given to be sent, all together.
    pub(crate) const fn queued_bytes(&self) -> u64 {
        self.queued_bytes
    }

    /// Whether it has been ended, in one way or another.
    pub(crate) const fn is_ending(&self) -> bool {
        self.ending.is_some()
    }

    /// Ends the direction after what is in the queue. False if that was said before.
    pub(crate) fn want_finish(&mut self) -> bool {
        let news = self.is_open();
        if news {
            self.finish = Finish::Wanted;
            self.is_delayed = false;
        }
        news
    }

    /// Ends it. What the transport has not taken is given back.
    pub(crate) fn end(&mut self, how: Ending) {
        if self.ending.is_none() && !self.is_over {
            self.ending = Some(how);
        }
        self.queue.clear();
    }

    /// Whether a loss ends it.
    pub(super) const fn is_canceled_by_loss(&self) -> bool {
        self.cancels_on_loss && !self.is_over && self.ending.is_none()
    }

    /// Whether it makes a difference that the peer does not read on.
    pub(super) const fn can_be_stopped(&self) -> bool {
        self.ending.is_none() || self.leaves_part && !self.is_over
    }

    /// Whether nothing of it is to arrive any more that has not.
    pub(super) fn is_given_up(&self) -> bool {
        self.ending == Some(Ending::Aborted) && !self.leaves_part
    }

    /// The memory of this send was given back.
    pub(crate) fn on_given_back(&mut self, send: u64) {
        let is_given_up = self.is_given_up();
        if let Some(send) = self.outstanding.iter_mut().find(|it| it.number == send) {
            (send.is_given_back, send.is_canceled) = (true, is_given_up);
        }
    }

    /// What there is to tell about it now: of a stream that has not begun and waits for that, nothing about its end.
    pub(crate) fn next_news(&mut self, is_waiting: bool) -> Option<StreamNews> {
        if let Some(send) = self.outstanding.pop_front_if(|send| send.is_given_back) {
            let Outstanding { context, is_canceled: canceled, is_urgent, .. } = send;
            return Some(StreamNews::SendComplete { canceled, context, is_urgent });
        }
        let may_end = !is_waiting && !self.awaits_peer && self.outstanding.is_empty() && !self.is_over;
        let ending = self.ending.filter(|_| may_end)?;
        self.is_over = true;
        Some(StreamNews::SendShutdownComplete { graceful: ending == Ending::Graceful })
    }
}
