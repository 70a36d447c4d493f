//! Tickets that a server gives out by itself, when it likes.

use super::*;
use godwit_tls::resumption::{EarlySessions, MemorySessions, NewSession, SessionKey, SessionStore};
use rustls::server::StoresServerSessions;
use std::sync::Mutex;

const ALPN: &[&[u8]] = &[b"test"];
const TICKET: &[u8] = b"a ticket of the application's";

/// The sessions that TLS has made, and one that a client may resume.
#[derive(Debug, Default)]
struct Sessions {
    made: Mutex<Vec<(Vec<u8>, Vec<u8>)>>,
    resumable: Option<Vec<u8>>,
}

impl StoresServerSessions for Sessions {
    fn put(&self, name: Vec<u8>, session: Vec<u8>) -> bool {
        self.made.lock().unwrap().push((name, session));
        true
    }

    fn get(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn take(&self, name: &[u8]) -> Option<Vec<u8>> {
        self.resumable.clone().filter(|_| name == TICKET)
    }

    fn can_cache(&self) -> bool {
        true
    }
}

struct Visits {
    pair: Pair,
    /// Sessions are resumed with the same settings only.
    tls: Arc<rustls::ClientConfig>,
    store: Arc<MemorySessions>,
    late_tickets: bool,
}

impl Visits {
    fn new(late_tickets: bool) -> Self {
        let mut pair = Pair::new(false);
        let tls = deterministic::early_server_config(ALPN, Arc::new(EarlySessions::new(1)));
        let config = ServerConfig { withhold_tickets: true, ..ServerConfig::new(tls, Arc::default()) };
        pair.server = Endpoint::new(endpoint_config(1), Some(Arc::new(config)), Box::new(SeededRng::new(4)));
        Visits { pair, tls: deterministic::early_client_config(ALPN), store: Arc::default(), late_tickets }
    }

    /// A client comes to a server with these sessions; both ends of its connection.
    fn visit(&mut self, sessions: Arc<Sessions>, early: bool) -> (ConnKey, ConnKey) {
        let mut config = ClientConfig::new(self.tls.clone(), Arc::default());
        config.resumption.store = Some(self.store.clone());
        config.late_tickets = self.late_tickets;
        let Pair { client, server, now, .. } = &mut self.pair;
        let path = path_to(SERVER.parse().unwrap());
        let visitor = client.connect(*now, &config, path, deterministic::SERVER_NAME, None).unwrap();
        let config = server.server.as_ref().unwrap().with_sessions(sessions, early);
        server.server = Some(Arc::new(config));
        self.pair.run_millis(200);
        let host = self.pair.server.slots.iter().map(|(key, _)| ConnKey(key)).last().unwrap();
        (visitor, host)
    }

    fn withheld(&mut self, host: ConnKey) -> Option<NewSession> {
        self.pair.server.with(host, |connection| connection.next_withheld_ticket()).unwrap()
    }

    fn send(&mut self, host: ConnKey, withheld: NewSession, early: bool) {
        let ticket = NewSession { ticket: TICKET.to_vec(), lifetime: 3600, ..withheld };
        assert!(self.pair.server.with(host, |connection| connection.send_ticket(&ticket, early)).unwrap());
    }

    fn got(&self, early: bool) -> bool {
        let name = deterministic::SERVER_NAME;
        let key = SessionKey::new(name, vec![b"test".to_vec()], version::V1);
        let ticket = self.store.take_ticket(&key, true);
        ticket.is_some_and(|ticket| {
            assert_eq!(ticket.permits_early_data(), early);
            self.store.put_ticket(&key, ticket);
            true
        })
    }
}

#[test]
fn withheld_tickets_go_out_when_the_application_says_so_and_as_it_says() {
    for early in [false, true] {
        let mut visits = Visits::new(false);
        let sessions = Arc::new(Sessions::default());
        let (_, host) = visits.visit(sessions.clone(), true);
        assert!(!visits.got(early), "nothing goes by itself");
        let withheld = visits.withheld(host).unwrap();
        let (name, session) = sessions.made.lock().unwrap().first().cloned().unwrap();
        assert_eq!(withheld.ticket, name);
        visits.send(host, withheld, early);
        visits.pair.run_millis(100);
        assert!(visits.got(early));
        let resumable = Arc::new(Sessions { resumable: Some(session), ..Sessions::default() });
        let (visitor, host) = visits.visit(resumable, early);
        let connection = visits.pair.client.connection(visitor).unwrap();
        assert!(connection.is_resumed());
        assert_eq!(connection.early_data_status() == EarlyDataStatus::Accepted, early);
        assert!(visits.withheld(host).is_some(), "and there are tickets for the next time");
    }
}

#[test]
fn there_are_as_many_as_tls_has_made_and_all_are_told_apart() {
    let mut visits = Visits::new(false);
    let (_, host) = visits.visit(Arc::default(), true);
    let withheld: Vec<_> = std::iter::from_fn(|| visits.withheld(host)).collect();
    assert_eq!(withheld.len(), 2);
    assert_ne!(withheld[0].nonce, withheld[1].nonce);
    let mut too_long = withheld[0].clone();
    too_long.ticket = vec![0; 70_000];
    let server = &mut visits.pair.server;
    assert_eq!(server.with(host, |connection| connection.send_ticket(&too_long, true)), Some(false));
}

#[test]
fn late_tickets_reach_clients_that_wait_for_them() {
    for late_tickets in [false, true] {
        let mut visits = Visits::new(late_tickets);
        let (_, host) = visits.visit(Arc::default(), true);
        for (number, pause) in [0, 1_000, 20_000].into_iter().enumerate() {
            let wanted = late_tickets || number == 0;
            // Nothing happens for so long, and what is not in use is given back.
            visits.pair.run_millis(pause);
            let made = NewSession { lifetime: 1, age_add: 2, nonce: vec![3], ticket: vec![4] };
            let withheld = visits.withheld(host).unwrap_or(made);
            visits.send(host, withheld, true);
            visits.pair.run_millis(100);
            assert_eq!(visits.got(true), wanted, "{number}");
            visits.store.clear();
        }
        assert_eq!(visits.pair.client.clients().count(), 1, "all is well with the connection");
    }
}
