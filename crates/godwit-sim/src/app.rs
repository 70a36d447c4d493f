//! What runs on a simulated host.

use godwit_base::Time;
use godwit_transport::IncomingKey;
use godwit_transport::{ConnKey, Endpoint, Event};
use std::any::Any;

/// An application on a host. It is called when something has happened and may do anything with the
/// endpoint; what it caused to be sent leaves when it returns.
pub trait Application: Any {
    /// The simulation begins.
    fn on_start(&mut self, _cx: &mut Context<'_>) {}

    /// Somebody wants to connect. Unless overridden, the connection is accepted.
    fn on_incoming(&mut self, cx: &mut Context<'_>, incoming: IncomingKey) {
        cx.accept(incoming);
    }

    /// Something happened on a connection.
    fn on_event(&mut self, cx: &mut Context<'_>, conn: ConnKey, event: Event);

    /// The time asked for with [`Context::wake_at`] has come.
    fn on_wake(&mut self, _cx: &mut Context<'_>) {}
}

/// What an application can do when it is called.
#[derive(Debug)]
pub struct Context<'a> {
    /// The time of the call.
    pub now: Time,
    /// The host's endpoint.
    pub endpoint: &'a mut Endpoint,
    pub(crate) wake: &'a mut Option<Time>,
}

impl Context<'_> {
    /// Asks to be called at this time, in place of any other time asked for before.
    pub fn wake_at(&mut self, time: Time) {
        *self.wake = Some(time);
    }

    /// Accepts an incoming connection with the endpoint's own configuration; `None` if that fails.
    pub fn accept(&mut self, incoming: IncomingKey) -> Option<ConnKey> {
        self.endpoint.accept(self.now, incoming, None).ok()
    }
}

/// An application that accepts what comes and does nothing.
#[derive(Debug, Default)]
pub struct Passive {
    /// All events, in order.
    pub events: Vec<(Time, ConnKey, Event)>,
}

impl Application for Passive {
    fn on_event(&mut self, cx: &mut Context<'_>, conn: ConnKey, event: Event) {
        self.events.push((cx.now, conn, event));
    }
}
