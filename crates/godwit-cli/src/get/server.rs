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

enum Link {
    /// Not connected yet.
    Apart,
    /// It cannot be reached: nobody waits for that a second time.
    Failed(Problem),
    /// Connected, perhaps not any more.
    Open(Client),
}

/// A share in the connection.
pub(super) struct Session {
    pub(super) client: Client,
    /// What connecting took, for the URL that caused it: DNS and handshake.
    pub(super) fresh: Option<(Duration, Duration)>,
}

impl Server {
    pub(super) fn new(origin: Origin) -> Server {
        Server { origin, link: Mutex::new(Link::Apart) }
    }

    /// The connection, made now if there is none that takes requests. Others wait for it meanwhile.
    pub(super) async fn session(&self, network: &Network) -> Result<Session, Problem> {
        let mut link = self.link.lock().await;
        match &*link {
            Link::Failed(problem) => return Err(problem.clone()),
            Link::Open(client) if !client.is_closed() => {
                return Ok(Session { client: client.clone(), fresh: None });
            }
            Link::Apart | Link::Open(_) => {}
        }
        match network.connect(&self.origin).await {
            Ok(Connected { client, dns, handshake }) => {
                *link = Link::Open(client.clone());
                Ok(Session { client, fresh: Some((dns, handshake)) })
            }
            Err(problem) => {
                *link = Link::Failed(problem.clone());
                Err(problem)
            }
        }
    }
}
