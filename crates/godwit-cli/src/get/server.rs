//! One server: its connection is made when the first URL needs it, and shared.

use std::time::Duration;

use godwit::http3::Client;
use tokio::sync::Mutex;

use super::connect::{Connected, Network};
use super::problem::Problem;
use super::target::Origin;

/// A server and the connection to it.
pub(super) struct Server {
    pub(super) origin: Origin,
    link: Mutex<Link>,
}

struct Link {
    state: State,
    /// Connections begun so far.
    number: u64,
}

enum State {
    /// Not connected, or not any more.
    Apart,
    /// It cannot be reached: nobody waits for that a second time.
    Failed(Problem),
    Open(Client),
}

/// A share in the connection.
pub(super) struct Session {
    pub(super) client: Client,
    /// What connecting took, for the URL that caused it: DNS and handshake.
    pub(super) fresh: Option<(Duration, Duration)>,
    number: u64,
}

impl Server {
    pub(super) fn new(origin: Origin) -> Server {
        Server { origin, link: Mutex::new(Link { state: State::Apart, number: 0 }) }
    }

    /// The connection, made now if there is none. Others wait for it meanwhile.
    pub(super) async fn session(&self, network: &Network) -> Result<Session, Problem> {
        let mut link = self.link.lock().await;
        match &link.state {
            State::Failed(problem) => return Err(problem.clone()),
            State::Open(client) => {
                return Ok(Session { client: client.clone(), fresh: None, number: link.number });
            }
            State::Apart => {}
        }
        match network.connect(&self.origin).await {
            Ok(Connected { client, dns, handshake }) => {
                link.number += 1;
                link.state = State::Open(client.clone());
                Ok(Session { client, fresh: Some((dns, handshake)), number: link.number })
            }
            Err(problem) => {
                link.state = State::Failed(problem.clone());
                Err(problem)
            }
        }
    }

    /// The connection of `session` cannot be used any more: the next URL makes another one.
    pub(super) async fn leave(&self, session: &Session) {
        let mut link = self.link.lock().await;
        if link.number == session.number && matches!(link.state, State::Open(_)) {
            link.state = State::Apart;
        }
    }
}
