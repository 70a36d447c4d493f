//! The client.

use crate::settings;
use crate::streams::Over;
use anyhow::{Result, anyhow};
use godwit::ClientConfig;
use godwit::polled::{ConnKey, Event, PolledConnection, PolledEndpoint, PolledEvent};
use peer_perf::polled::Client;
use peer_perf::{Measure, Outcome, Timings, Work, idle};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often somebody who waits for the end of the standard input looks.
const NAP: Duration = Duration::from_millis(20);
/// Idle connections begun at a time.
const AT_ONCE: usize = 8;

pub fn measure(options: &Measure) -> Result<Outcome> {
    let any: IpAddr = if options.remote.is_ipv4() { [127, 0, 0, 1].into() } else { "::1".parse()? };
    let mut endpoint = settings::endpoint().bind(SocketAddr::new(any, 0)).build_polled()?;
    let mut clients = Clients::new(options)?;
    let (mut said, released) = (false, Arc::new(AtomicBool::new(false)));
    let naps = matches!(options.work, Work::Idle(_));
    clients.begin(&mut endpoint)?;
    while !released.load(Ordering::Relaxed) {
        let mut wait = endpoint.poll(Instant::now(), |endpoint, event| clients.on_event(endpoint, event))?;
        if let Some(outcome) = clients.take_outcome() {
            return outcome;
        }
        if matches!(options.work, Work::Idle(wanted) if clients.open == wanted) && !said {
            said = true;
            idle::opened(clients.open);
            let released = Arc::clone(&released);
            std::thread::spawn(move || {
                idle::until_released();
                released.store(true, Ordering::Relaxed);
            });
        }
        if naps {
            wait.until = wait.until.into_iter().chain([Instant::now() + NAP]).min();
        }
        endpoint.wait(&wait)?;
    }
    Ok(Outcome::Nothing)
}

/// What connections are for.
struct Clients {
    options: Measure,
    config: ClientConfig,
    /// On the only connection, if there is to be one.
    client: Option<Client>,
    timings: Option<Timings>,
    /// When those were begun that are not open yet.
    begun: HashMap<ConnKey, Instant>,
    open: usize,
    outcome: Option<Result<Outcome>>,
}

impl Clients {
    fn new(options: &Measure) -> Result<Self> {
        let timings = match options.work {
            Work::Handshakes { time, .. } => Some(Timings::begin(time)),
            _ => None,
        };
        Ok(Self {
            options: options.clone(),
            config: settings::client()?,
            client: None,
            timings,
            begun: HashMap::new(),
            open: 0,
            outcome: None,
        })
    }

    /// Begins the connections that are wanted now.
    fn begin(&mut self, endpoint: &mut PolledEndpoint) -> Result<()> {
        while self.wants_another() {
            let begun = Instant::now();
            let key = endpoint.connect(&self.config, self.options.remote, "localhost")?;
            self.begun.insert(key, begun);
        }
        Ok(())
    }

    fn wants_another(&self) -> bool {
        match self.options.work {
            Work::Handshakes { at_once, .. } => {
                self.begun.len() < at_once && self.timings.as_ref().is_some_and(Timings::goes_on)
            }
            Work::Idle(wanted) => self.begun.len() < AT_ONCE && self.open + self.begun.len() < wanted,
            _ => self.open + self.begun.len() == 0,
        }
    }

    fn take_outcome(&mut self) -> Option<Result<Outcome>> {
        if let Some(timings) = self.timings.take_if(|timings| self.begun.is_empty() && !timings.goes_on()) {
            return Some(Ok(Outcome::handshakes(timings)));
        }
        self.outcome.take()
    }

    fn on_event(&mut self, endpoint: &mut PolledEndpoint, event: PolledEvent) {
        let PolledEvent::Connection(key, event) = event else { return };
        if let Err(error) = self.on_connection(endpoint, key, event) {
            self.outcome.get_or_insert(Err(error));
        }
    }

    fn on_connection(&mut self, endpoint: &mut PolledEndpoint, key: ConnKey, event: Event) -> Result<()> {
        if let Event::Closed { reason } = event {
            let measured = self.timings.is_some() && !self.begun.contains_key(&key);
            return if measured { Ok(()) } else { Err(anyhow!("a connection ended: {reason}")) };
        }
        let Some(mut connection) = endpoint.connection(key) else { return Ok(()) };
        match event {
            Event::Connected => {
                self.on_connected(&mut connection)?;
                drop(connection);
                self.begin(endpoint)
            }
            Event::StreamsAvailable { .. } => {
                self.with_client(&mut connection, |client, over| client.go_on(over))
            }
            Event::Readable { id } => {
                self.with_client(&mut connection, |client, over| client.readable(over, id.as_u64()))
            }
            Event::Writable { id } => {
                self.with_client(&mut connection, |client, over| client.writable(over, id.as_u64()))
            }
            _ => Ok(()),
        }
    }

    fn on_connected(&mut self, connection: &mut PolledConnection<'_>) -> Result<()> {
        let begun = self.begun.remove(&connection.key());
        self.open += 1;
        match (self.options.work, &mut self.timings, begun) {
            (Work::Handshakes { .. }, Some(timings), Some(begun)) => {
                timings.record(begun);
                connection.close(0u32, b"");
                Ok(())
            }
            (Work::Idle(_), ..) => Ok(()),
            _ => {
                self.client = Some(Client::new(&self.options)?);
                self.with_client(connection, |client, over| client.go_on(over))
            }
        }
    }

    /// Does something with the client of the only connection.
    fn with_client(
        &mut self,
        connection: &mut PolledConnection<'_>,
        act: impl FnOnce(&mut Client, &mut Over<'_, '_>) -> Result<()>,
    ) -> Result<()> {
        let Some(client) = &mut self.client else { return Ok(()) };
        act(client, &mut Over(connection))?;
        if let Some(client) = self.client.take_if(|client| client.is_done()) {
            self.outcome = Some(Ok(client.outcome()));
            connection.close(0u32, b"");
        }
        Ok(())
    }
}
