//! What is said between generations, and (in `generations`) two of them on one socket.

mod generations;

use crate::Inheritance;
use crate::protocol::{self, Line};
use godwit_base::SeededRng;
use godwit_transport::Begun;
use godwit_transport::tls::resumption::SessionTickets;
use godwit_transport::tls::secrets::ServerSecrets;
use godwit_wire::ConnectionId;
use rustls::server::ProducesTickets;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

#[test]
fn lines_are_read_as_they_are_written() {
    let id = ConnectionId::new(&[0, 1, 0xab, 9, 9, 9, 9, 0xff]).unwrap();
    let lines = [
        Line::Name("[::]:443 and more".to_owned()),
        Line::PreviousKey(Box::new([7; 32])),
        Line::Generation(255),
        Line::Secrets(Box::new(std::array::from_fn(|n| n as u8))),
        Line::Socket(3, 70_000, 12),
        Line::OlderShard(254, 0, 13),
        Line::Descriptor(14, "web site: TCP".to_owned()),
        Line::Begun(Begun { id, generation: 1, shard: 2 }),
    ];
    let mut offer = String::new();
    lines.iter().for_each(|line| line.write(&mut offer));
    let read: Vec<Line> = offer.lines().map(|line| Line::read(line).unwrap()).collect();
    assert_eq!(read, lines);
}

#[test]
fn what_is_not_known_or_makes_no_sense_is_skipped() {
    for line in [
        "",
        "generation",
        "generation 256",
        "generation -1",
        "secrets 00",
        "previous 00",
        "secrets zz",
        "socket 1 2",
        "elder 1 1 x",
        "descriptor 7",
        "begun 1 1 001",
        "begun 1 1 000102030405060708090a0b0c0d0e0f1011121314",
        "weather 12 sunny",
    ] {
        assert_eq!(Line::read(line), None, "{line}");
    }
}

fn read(offer: &str) -> Result<Inheritance, ErrorKind> {
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    ours.write_all(offer.as_bytes()).unwrap();
    drop(ours);
    Inheritance::read(theirs).map_err(|error| error.kind())
}

#[test]
fn offers_that_make_no_sense_are_refused() {
    let secrets = "ab".repeat(64);
    let greeting = protocol::GREETING;
    let whole = format!("{greeting}\ngeneration 7\nweather sunny\nsecrets {secrets}\nend\n");
    let read_whole = read(&whole).unwrap();
    assert_eq!((read_whole.generation(), read_whole.shards()), (7, 0));
    assert_eq!(read("").unwrap_err(), ErrorKind::InvalidData);
    assert_eq!(read("hello\nend\n").unwrap_err(), ErrorKind::InvalidData);
    assert_eq!(read(&format!("{greeting}\nend\n")).unwrap_err(), ErrorKind::InvalidData);
    assert_eq!(read(whole.trim_end_matches("end\n")).unwrap_err(), ErrorKind::UnexpectedEof);
    // A descriptor that was not passed on.
    let stolen = whole.replace("weather sunny", "socket 0 0 2");
    assert_eq!(read(&stolen).unwrap_err(), ErrorKind::InvalidInput);
    let never_mind = String::from_utf8_lossy(protocol::NEVER_MIND);
    assert_eq!(read(&format!("{whole}{never_mind}")).unwrap_err(), ErrorKind::TimedOut);
}

#[test]
fn what_was_issued_before_the_last_change_of_keys_is_good_in_the_next_generation() {
    let mut rng = SeededRng::new(1);
    let first = ServerSecrets::from_rng(&mut rng);
    let present = first.rotated(&mut rng);
    let tickets = |secrets| SessionTickets::new(secrets, &godwit_transport::tls::provider());
    let issued = [tickets(&first).encrypt(b"early").unwrap(), tickets(&present).encrypt(b"late").unwrap()];
    let mut offer = format!("{}\n", protocol::GREETING);
    Line::Name("[::]:443".to_owned()).write(&mut offer);
    Line::Generation(1).write(&mut offer);
    Line::Secrets(Box::new(present.to_bytes())).write(&mut offer);
    let without = format!("{offer}end\n");
    Line::PreviousKey(Box::new(present.previous_token_key().unwrap())).write(&mut offer);
    let inherited = read(&format!("{offer}end\n")).unwrap();
    assert_eq!(inherited.name(), "[::]:443");
    let opened = issued.each_ref().map(|ticket| tickets(inherited.secrets()).decrypt(ticket));
    assert_eq!(opened, [Some(b"early".to_vec()), Some(b"late".to_vec())]);
    let inherited = read(&without).unwrap();
    let opened = issued.each_ref().map(|ticket| tickets(inherited.secrets()).decrypt(ticket));
    assert_eq!(opened, [None, Some(b"late".to_vec())]);
}

#[test]
fn the_older_generation_hears_of_refusals() {
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let secrets = "ab".repeat(64);
    ours.write_all(format!("{}\ngeneration 7\nsecrets {secrets}\nend\n", protocol::GREETING).as_bytes())
        .unwrap();
    let inheritance = Inheritance::read(theirs).unwrap();
    inheritance.predecessor().unwrap().give_up("no key\nnor certificate");
    inheritance.decline().unwrap();
    let mut heard = String::new();
    ours.read_to_string(&mut heard).unwrap();
    assert_eq!(heard, "sorry no key\ndeclined\n");
}
