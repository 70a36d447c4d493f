//! Coming back to a server: resumed sessions, 0-RTT, tokens.

use crate::support::{Net, client_builder, echo, on_every_net, server_builder, server_config};
use bytes::Bytes;
use godwit::resumption::{
    MemorySessions, Remembered, SessionKey, SessionStore, SessionTicket, SessionTickets,
};
use godwit::rustls::NamedGroup;
use godwit::{ClientConfig, Connecting, Connection, EarlyDataStatus, Endpoint, ServerConfig, ServerSecrets};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

on_every_net! {
    early_data_is_answered_before_the_handshake_is_over,
    early_streams_are_told_from_others,
    rejected_early_data_is_sent_again,
    processes_with_the_same_keys_resume_each_others_sessions,
    early_data_is_off_unless_asked_for,
    tokens_are_kept_and_used,
}

/// Accepts everybody, as early as it can, and sends everything back.
fn serve(server: &Endpoint) -> tokio::task::JoinHandle<Vec<bool>> {
    let server = server.clone();
    tokio::spawn(async move {
        let mut early = Vec::new();
        while let Some(incoming) = server.accept().await {
            let connection = match incoming.accept().into_early() {
                Ok(connection) => {
                    early.push(true);
                    connection
                }
                Err(connecting) => {
                    early.push(false);
                    let Ok(connection) = connecting.await else { continue };
                    connection
                }
            };
            tokio::spawn(echo(connection));
        }
        early
    })
}

async fn say(connection: &Connection, words: &[u8]) -> Vec<u8> {
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    send.write_all(words).await.unwrap();
    send.finish().unwrap();
    recv.read_to_end(1 << 20).await.unwrap()
}

/// A store in memory that can be waited for: how many tickets and how many tokens have come.
#[derive(Debug, Default)]
struct Watched {
    sessions: MemorySessions,
    come: watch::Sender<(u32, u32)>,
}

impl SessionStore for Watched {
    fn put_ticket(&self, key: &SessionKey, ticket: SessionTicket) {
        self.sessions.put_ticket(key, ticket);
        self.come.send_modify(|come| come.0 += 1);
    }

    fn take_ticket(&self, key: &SessionKey, early: bool) -> Option<SessionTicket> {
        self.sessions.take_ticket(key, early)
    }

    fn put_token(&self, key: &SessionKey, token: Bytes) {
        self.sessions.put_token(key, token);
        self.come.send_modify(|come| come.1 += 1);
    }

    fn take_token(&self, key: &SessionKey) -> Option<Bytes> {
        self.sessions.take_token(key)
    }

    fn remember(&self, key: &SessionKey, change: &mut dyn FnMut(&mut Remembered)) {
        self.sessions.remember(key, change);
    }

    fn remembered(&self, key: &SessionKey) -> Option<Remembered> {
        self.sessions.remembered(key)
    }

    fn put_group(&self, key: &SessionKey, group: NamedGroup) {
        self.sessions.put_group(key, group);
    }

    fn group(&self, key: &SessionKey) -> Option<NamedGroup> {
        self.sessions.group(key)
    }
}

/// A client and what it remembers.
struct Visitor {
    endpoint: Endpoint,
    config: ClientConfig,
    store: Arc<Watched>,
}

impl Visitor {
    fn new(net: Net) -> Self {
        let store = Arc::new(Watched::default());
        let config = client_builder().sessions(store.clone()).build().unwrap();
        Visitor { endpoint: net.client(), config, store }
    }

    fn early(net: Net) -> Self {
        let visitor = Self::new(net);
        let config = visitor.config.to_builder().early_data(true).build().unwrap();
        Visitor { config, ..visitor }
    }

    fn connect(&self, addr: SocketAddr) -> Connecting {
        self.endpoint.connect(&self.config, addr, "localhost").unwrap()
    }

    /// Connects, talks, and waits until the server's tickets and its token are there.
    async fn visit(&self, addr: SocketAddr) -> Connection {
        let mut come = self.store.come.subscribe();
        let (tickets, tokens) = *come.borrow();
        let connection = self.connect(addr).await.unwrap();
        assert_eq!(say(&connection, b"hello").await, b"hello");
        come.wait_for(|come| come.0 >= tickets + 2 && come.1 > tokens).await.unwrap();
        connection
    }
}

fn key() -> SessionKey {
    SessionKey::new("localhost", vec![b"test".to_vec()], 1)
}

async fn early_data_is_answered_before_the_handshake_is_over(net: Net) {
    let server = net.server_with(server_builder().early_data(10).build().unwrap());
    let visitor = Visitor::early(net);
    let addr = server.local_addr().unwrap();
    let serving = serve(&server);
    let first = visitor.visit(addr).await;
    assert_eq!((first.early_data_status(), first.is_resumed()), (EarlyDataStatus::NotTried, false));
    first.remember_application_data(vec![1, 2, 3].into());
    first.close(0, b"");
    let connection = visitor.connect(addr).into_early().expect("there is a ticket that permits it");
    assert_eq!(connection.remembered().unwrap().application, vec![1, 2, 3]);
    assert_eq!(say(&connection, b"early").await, b"early");
    assert_eq!(connection.connected().await.unwrap(), EarlyDataStatus::Accepted);
    assert!(connection.is_resumed());
    assert_eq!(connection.alpn().as_deref(), Some(&b"test"[..]));
    assert_eq!(say(&connection, &[7; 100_000]).await, [7; 100_000]);
    connection.close(0, b"");
    assert_eq!(connection.early_data_status(), EarlyDataStatus::Accepted, "still known");
    server.stop_accepting();
    assert_eq!(serving.await.unwrap(), [false, true]);
}

async fn early_streams_are_told_from_others(net: Net) {
    let server = net.server_with(server_builder().early_data(10).build().unwrap());
    let visitor = Visitor::early(net);
    let addr = server.local_addr().unwrap();
    let serving = serve(&server);
    visitor.visit(addr).await.close(0, b"");
    serving.abort();
    let _ = serving.await;
    let connection = visitor.connect(addr).into_early().unwrap();
    connection.open_uni().await.unwrap().write_all(b"early").await.unwrap();
    // What is written leaves in a 0-RTT packet only as long as the server has not answered, and it does not before it
    // has accepted.
    while connection.stats().packets_sent_by_type.zero_rtt == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let at_server = server.accept().await.unwrap().accept().into_early().expect("0-RTT is accepted");
    assert!(at_server.accept_uni().await.unwrap().is_early());
    assert_eq!(at_server.connected().await.unwrap(), EarlyDataStatus::Accepted);
    connection.connected().await.unwrap();
    connection.open_uni().await.unwrap().write_all(b"late").await.unwrap();
    assert!(!at_server.accept_uni().await.unwrap().is_early());
}

async fn rejected_early_data_is_sent_again(net: Net) {
    let visitor = Visitor::early(net);
    let server = net.server_with(server_builder().early_data(10).build().unwrap());
    serve(&server);
    visitor.visit(server.local_addr().unwrap()).await.close(0, b"");
    // Another process: it does not know the session.
    let other = net.server_with(server_builder().early_data(10).build().unwrap());
    let serving = serve(&other);
    let connection = visitor.connect(other.local_addr().unwrap()).into_early().unwrap();
    let words = vec![9; 30_000];
    assert_eq!(say(&connection, &words).await, words);
    assert_eq!(connection.connected().await.unwrap(), EarlyDataStatus::Rejected);
    assert!(!connection.is_resumed());
    other.stop_accepting();
    assert_eq!(serving.await.unwrap(), [false]);
}

async fn processes_with_the_same_keys_resume_each_others_sessions(net: Net) {
    let secrets = ServerSecrets::from_bytes(&[7; 64]);
    let same = ServerSecrets::from_bytes(&secrets.to_bytes());
    let visitor = Visitor::new(net);
    let rotating = Arc::new(SessionTickets::new(&secrets, &godwit::crypto_provider()));
    let servers: [ServerConfig; 3] = [
        server_builder().early_data(5).session_tickets(rotating).build().unwrap(),
        server_builder().ticket_keys(&same).build().unwrap(),
        server_builder().ticket_keys(&ServerSecrets::from_bytes(&[8; 64])).build().unwrap(),
    ];
    let servers = servers.map(|config| net.server_with(config));
    servers.iter().for_each(|server| drop(serve(server)));
    let mut resumed = Vec::new();
    for at in [0, 1, 0, 2] {
        let connection = visitor.visit(servers[at].local_addr().unwrap()).await;
        assert_eq!(connection.early_data_status(), EarlyDataStatus::NotTried);
        resumed.push(connection.is_resumed());
        connection.close(0, b"");
    }
    assert_eq!(resumed, [false, true, true, false]);
}

async fn early_data_is_off_unless_asked_for(net: Net) {
    let cases = [
        (server_config(), Visitor::early(net)),
        (server_builder().early_data(5).build().unwrap(), Visitor::new(net)),
    ];
    for (server, visitor) in cases {
        let server = net.server_with(server);
        serve(&server);
        let addr = server.local_addr().unwrap();
        visitor.visit(addr).await.close(0, b"");
        let connection = visitor.connect(addr).into_early().expect_err("no 0-RTT").await.unwrap();
        assert_eq!(connection.early_data_status(), EarlyDataStatus::NotTried);
        assert!(connection.is_resumed());
    }
}

async fn tokens_are_kept_and_used(net: Net) {
    let server = net.server();
    let (mut visitor, addr) = (Visitor::new(net), server.local_addr().unwrap());
    let validated = tokio::spawn(async move {
        let mut validated = Vec::new();
        for _ in 0..3 {
            let incoming = server.accept().await.unwrap();
            validated.push(incoming.is_validated());
            tokio::spawn(echo(incoming.await.unwrap()));
        }
        validated
    });
    visitor.visit(addr).await.close(0, b"");
    assert!(visitor.store.remembered(&key()).is_some_and(|remembered| !remembered.rtt.is_zero()));
    visitor.visit(addr).await.close(0, b"");
    visitor.config = visitor.config.to_builder().network(1).build().unwrap();
    visitor.visit(addr).await.close(0, b"");
    assert_eq!(validated.await.unwrap(), [false, true, false], "not in another network");
}

/// A store that asks something of the endpoint, from another thread, before it gives anything.
#[derive(Debug, Default)]
struct Asking {
    sessions: MemorySessions,
    endpoint: std::sync::OnceLock<Endpoint>,
    asked: std::sync::atomic::AtomicU32,
}

impl Asking {
    /// It would never be told while the endpoint is locked.
    fn ask(&self) -> &MemorySessions {
        if let Some(endpoint) = self.endpoint.get().cloned() {
            let (tell, told) = std::sync::mpsc::channel();
            std::thread::spawn(move || tell.send(endpoint.connections()));
            told.recv_timeout(std::time::Duration::from_secs(60)).expect("the endpoint is not locked");
            self.asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
        &self.sessions
    }
}

impl SessionStore for Asking {
    fn put_ticket(&self, key: &SessionKey, ticket: SessionTicket) {
        self.sessions.put_ticket(key, ticket);
    }

    fn take_ticket(&self, key: &SessionKey, early: bool) -> Option<SessionTicket> {
        self.ask().take_ticket(key, early)
    }

    fn has_ticket(&self, key: &SessionKey) -> bool {
        self.ask().has_ticket(key)
    }

    fn put_token(&self, key: &SessionKey, token: Bytes) {
        self.sessions.put_token(key, token);
    }

    fn take_token(&self, key: &SessionKey) -> Option<Bytes> {
        self.ask().take_token(key)
    }

    fn remember(&self, key: &SessionKey, change: &mut dyn FnMut(&mut Remembered)) {
        self.sessions.remember(key, change);
    }

    fn remembered(&self, key: &SessionKey) -> Option<Remembered> {
        self.ask().remembered(key)
    }

    fn put_group(&self, key: &SessionKey, group: NamedGroup) {
        self.sessions.put_group(key, group);
    }

    fn group(&self, key: &SessionKey) -> Option<NamedGroup> {
        self.ask().group(key)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_asked_of_a_store_while_an_endpoint_is_locked() {
    let net = Net::NATIVE_V4;
    let server = net.server();
    serve(&server);
    let store = Arc::new(Asking::default());
    let config = client_builder().sessions(store.clone()).build().unwrap();
    let client = net.client();
    assert!(store.endpoint.set(client.clone()).is_ok());
    let address = server.local_addr().unwrap();
    for _ in 0..2 {
        let connection = client.connect(&config, address, "localhost").unwrap().await.unwrap();
        assert_eq!(say(&connection, b"hello").await, b"hello");
        connection.close(0, b"");
    }
    assert!(store.asked.load(std::sync::atomic::Ordering::Relaxed) >= 6);
}
