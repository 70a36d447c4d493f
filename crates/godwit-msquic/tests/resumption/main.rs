//! Sessions that are resumed, and 0-RTT, as programs see them: both ends in one process, through the function table.
#![cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]

mod ends;

use ends::{Client, Seen, Server, client, server_configuration};
use godwit_msquic::abi::{SendResumptionFlags, ServerResumptionLevel as Level, Status};

const DATA: &[u8] = b"what the server wants to know again";
const EARLY: &[u8] = b"said before the handshake";

/// A client of the first server's that has got a ticket with [`DATA`].
fn ticket_of(server: &Server, configuration: godwit_msquic::abi::Handle) -> Vec<u8> {
    let visitor = Client::new();
    visitor.start(configuration, server);
    let told = server.news.until(is_connected);
    let [(Seen::Connected { resumed: false }, connection)] = told[..] else { panic!("{told:?}") };
    assert_eq!(server.send_ticket(connection, DATA, SendResumptionFlags::NONE), Status::SUCCESS);
    let told = visitor.news.until(|seen| matches!(seen, Seen::Ticket(_)));
    let [(Seen::Connected { resumed: false }, _), (Seen::Ticket(ticket), _)] = &told[..] else {
        panic!("{told:?}")
    };
    let ticket = ticket.clone();
    visitor.end();
    server.news.until(|seen| *seen == Seen::Over);
    ticket
}

fn is_connected(seen: &Seen) -> bool {
    matches!(seen, Seen::Connected { .. })
}

fn is_sent(seen: &Seen) -> bool {
    matches!(seen, Seen::Sent { .. })
}

fn is_received(seen: &Seen) -> bool {
    matches!(seen, Seen::Received { .. })
}

/// What a server is told when a client comes back and speaks at once; `then` may have a say in between.
fn come_back(
    server: &Server,
    configuration: godwit_msquic::abi::Handle,
    ticket: &[u8],
    then: impl FnOnce(usize),
) -> Vec<Seen> {
    let visitor = Client::new();
    assert_eq!(visitor.set_ticket(ticket), Status::SUCCESS);
    visitor.say(EARLY);
    visitor.start(configuration, server);
    let first = server.news.next();
    then(first.1);
    let mut told = vec![first.0];
    while !(told.iter().any(is_connected) && told.iter().any(is_received)) {
        told.push(server.news.next().0);
    }
    let mut told_there = Vec::new();
    while !(told_there.iter().any(is_connected) && told_there.iter().any(is_sent)) {
        told_there.push(visitor.news.next().0);
    }
    let connected = told.iter().find(|seen| is_connected(seen)).unwrap();
    assert!(told_there.contains(connected), "both are told the same: {told_there:?}");
    let early = if told.contains(&received(true)) { EARLY.len() as u64 } else { 0 };
    assert!(told_there.contains(&Seen::Sent { early }), "{told_there:?}");
    visitor.end();
    server.news.until(|seen| *seen == Seen::Over);
    told
}

fn resumed() -> Seen {
    Seen::Resumed(DATA.to_vec())
}

fn received(early: bool) -> Seen {
    Seen::Received { bytes: EARLY.to_vec(), early }
}

#[test]
fn what_is_said_at_once_comes_before_the_handshake_each_time() {
    let (server, configuration) = (Server::new(Level::RESUME_AND_ZERO_RTT, Status::SUCCESS), client());
    let ticket = ticket_of(&server, configuration);
    let early =
        [resumed(), Seen::StreamStarted { early: true }, received(true), Seen::Connected { resumed: true }];
    for _ in 0..3 {
        assert_eq!(come_back(&server, configuration, &ticket, |_| {}), early);
    }
}

#[test]
fn a_server_may_resume_without_early_data() {
    let (server, configuration) = (Server::new(Level::RESUME_ONLY, Status::SUCCESS), client());
    let ticket = ticket_of(&server, configuration);
    let told = come_back(&server, configuration, &ticket, |_| {});
    let late =
        [resumed(), Seen::Connected { resumed: true }, Seen::StreamStarted { early: false }, received(false)];
    assert_eq!(told, late);
}

#[test]
fn nothing_is_lost_at_a_server_that_knows_nothing_of_the_ticket() {
    let (server, configuration) = (Server::new(Level::RESUME_AND_ZERO_RTT, Status::SUCCESS), client());
    let ticket = ticket_of(&server, configuration);
    for level in [Level::RESUME_AND_ZERO_RTT, Level::NO_RESUME] {
        let other = Server::new(level, Status::SUCCESS);
        let told = come_back(&other, configuration, &ticket, |_| {});
        let late =
            [Seen::Connected { resumed: false }, Seen::StreamStarted { early: false }, received(false)];
        assert_eq!(told, late);
    }
}

#[test]
fn the_callback_may_reject_a_session() {
    let configurations = (server_configuration(Level::RESUME_AND_ZERO_RTT), client());
    let server = Server::with(configurations.0, Status::SUCCESS);
    let ticket = ticket_of(&server, configurations.1);
    let strict = Server::with(configurations.0, Status::CONNECTION_REFUSED);
    let told = come_back(&strict, configurations.1, &ticket, |_| {});
    let late = [
        resumed(),
        Seen::Connected { resumed: false },
        Seen::StreamStarted { early: false },
        received(false),
    ];
    assert_eq!(told, late);
}

#[test]
fn the_decision_may_be_put_off() {
    let configurations = (server_configuration(Level::RESUME_AND_ZERO_RTT), client());
    let server = Server::with(configurations.0, Status::PENDING);
    for is_good in [false, true] {
        let ticket = ticket_of(&server, configurations.1);
        let told = come_back(&server, configurations.1, &ticket, |connection| {
            assert!(server.news.is_empty(), "everything waits");
            assert_eq!(server.validate(connection, is_good), Status::PENDING);
        });
        assert_eq!(told[0], resumed());
        assert!(told.contains(&Seen::Connected { resumed: is_good }), "{told:?}");
        assert!(told.contains(&received(is_good)), "{told:?}");
    }
}

#[test]
fn tickets_may_be_sent_late_and_several_times() {
    let (server, configuration) = (Server::new(Level::RESUME_ONLY, Status::SUCCESS), client());
    let visitor = Client::new();
    visitor.start(configuration, &server);
    let (_, connection) = server.news.next();
    visitor.news.until(is_connected);
    let (none, last) = (SendResumptionFlags::NONE, SendResumptionFlags::FINAL);
    for (number, flags) in [none, none, last].into_iter().enumerate() {
        let data = vec![number as u8; 1000];
        assert_eq!(server.send_ticket(connection, &data, flags), Status::SUCCESS);
        assert!(matches!(visitor.news.next(), (Seen::Ticket(ticket), _) if ticket.len() > 1000));
    }
    assert_eq!(server.send_ticket(connection, DATA, none), Status::INVALID_STATE);
    assert_eq!(server.validate(connection, true), Status::INVALID_STATE);
    visitor.end();
}

#[test]
fn what_cannot_be_is_refused() {
    let (server, configuration) = (Server::new(Level::NO_RESUME, Status::SUCCESS), client());
    let visitor = Client::new();
    for bytes in [&b""[..], b"no ticket", &[0; 500]] {
        assert_eq!(visitor.set_ticket(bytes), Status::INVALID_PARAMETER);
    }
    visitor.start(configuration, &server);
    let (_, connection) = server.news.next();
    visitor.news.until(is_connected);
    let none = SendResumptionFlags::NONE;
    assert_eq!(visitor.set_ticket(b"no ticket"), Status::INVALID_STATE);
    assert_eq!(server.send_ticket(connection, DATA, none), Status::INVALID_STATE);
    assert_eq!(server.send_ticket(connection, &[0; 1001], none), Status::INVALID_PARAMETER);
    let own = visitor.connection.addr();
    assert_eq!(server.send_ticket(own, DATA, none), Status::INVALID_PARAMETER);
    assert_eq!(server.validate(own, true), Status::INVALID_PARAMETER);
    visitor.end();
}
