//! A stream: what the application wants of it, until it is done.

use super::transport::{Limits, USUAL_LIMIT};
use crate::abi;
use crate::failure::Failure;
use crate::handles::{Kind, Thing};
use crate::intake::Intake;
use crate::outbox::Outbox;
use crate::subject::Subject;
use godwit::ApplicationCode;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// A QUIC stream.
pub(crate) struct Stream {
    pub(crate) subject: Arc<Subject>,
    pub(super) outbox: Arc<Outbox>,
    pub(super) intake: Intake,
    pub(super) sends: bool,
    pub(super) receives: bool,
    commands: UnboundedSender<Command>,
    stops: UnboundedSender<ApplicationCode>,
    /// The other ends, until somebody works for the stream.
    orders: Mutex<Option<Orders>>,
}

/// What the application wants, apart from sending bytes.
pub(super) struct Orders {
    pub(super) commands: UnboundedReceiver<Command>,
    pub(super) stops: UnboundedReceiver<ApplicationCode>,
}

/// What the application wants of what is sent.
pub(super) enum Command {
    Reset(ApplicationCode),
    Priority(u8, bool),
}

impl Thing for Stream {
    const KIND: Kind = Kind::Stream;

    /// Breaks it off unheard.
    fn close(&self) {
        self.subject.close();
        self.outbox.abandon(&Failure::cancelled());
    }

    fn set_tag(&self, tag: u64) -> bool {
        self.subject.set_tag(tag);
        true
    }
}

impl Stream {
    pub(super) fn new(subject: Arc<Subject>, limits: Limits, sends: bool, receives: bool) -> Stream {
        let outbox = Outbox::new(&subject, limits.send, u64::from(USUAL_LIMIT));
        if sends {
            outbox.open();
        }
        let ((commands, heard_commands), (stops, heard_stops)) = (unbounded_channel(), unbounded_channel());
        let orders = Mutex::new(Some(Orders { commands: heard_commands, stops: heard_stops }));
        let intake = Intake::new(limits.receive, USUAL_LIMIT);
        Stream { subject, outbox, intake, sends, receives, commands, stops, orders }
    }

    /// Nobody hears a command after the end, and nobody needs to.
    pub(super) fn command(&self, command: Command) {
        let _ = self.commands.send(command);
    }

    /// As [`Stream::command`].
    pub(super) fn stop(&self, code: ApplicationCode) {
        let _ = self.stops.send(code);
    }

    /// Its other ends, for whoever works for it.
    pub(super) fn take_orders(&self) -> Option<Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Nothing more can be sent.
    pub(super) fn tell_stopped(&self, failure: &Failure) {
        self.outbox.abandon(failure);
        self.tell_end(abi::EVENT_STREAM_STOPPED, failure);
    }

    /// Nothing more comes.
    pub(super) fn tell_reset(&self, failure: &Failure) {
        self.tell_end(abi::EVENT_STREAM_RESET, failure);
    }

    fn tell_end(&self, kind: u32, failure: &Failure) {
        let code = failure.peer_code.map_or(0, |(code, _)| code);
        self.subject.tell(self.subject.event(kind).with_code(code).with_failure(failure));
    }
}
