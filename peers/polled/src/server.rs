//! The server.

use crate::settings;
use crate::streams::Over;
use anyhow::Result;
use godwit::polled::{ConnKey, Event, PolledEndpoint, PolledEvent};
use peer_perf::Serve;
use peer_perf::polled::Answers;
use std::collections::HashMap;
use std::time::Instant;

pub fn serve(options: &Serve) -> Result<()> {
    let builder = settings::endpoint().server(settings::server(options)?).bind(options.listen);
    let mut endpoint = builder.build_polled()?;
    println!("listening {}", endpoint.local_addr()?);
    let mut server = Server::default();
    loop {
        let wait = endpoint.poll(Instant::now(), |endpoint, event| server.on_event(endpoint, event))?;
        endpoint.wait(&wait)?;
    }
}

/// Answers, by connection.
#[derive(Default)]
struct Server(HashMap<ConnKey, Answers>);

impl Server {
    fn on_event(&mut self, endpoint: &mut PolledEndpoint, event: PolledEvent) {
        match event {
            PolledEvent::Incoming(client) => {
                // One that is gone meanwhile cannot be accepted.
                let _ = endpoint.accept(client);
            }
            PolledEvent::Connection(key, Event::Closed { .. }) => drop(self.0.remove(&key)),
            PolledEvent::Connection(_, Event::Finished { .. }) => {}
            PolledEvent::Connection(key, event) => self.on_connection(endpoint, key, event),
            _ => {}
        }
    }

    fn on_connection(&mut self, endpoint: &mut PolledEndpoint, key: ConnKey, event: Event) {
        let Some(mut connection) = endpoint.connection(key) else { return };
        match event {
            // What came on them is told of each.
            Event::StreamOpened { direction } => while connection.accept(direction).is_some() {},
            Event::Readable { id } => {
                self.0.entry(key).or_default().readable(&mut Over(&mut connection), id.as_u64());
            }
            Event::Writable { id } => {
                self.0.entry(key).or_default().writable(&mut Over(&mut connection), id.as_u64());
            }
            _ => {}
        }
    }
}
