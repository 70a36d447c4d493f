use super::Inheritance;
use super::letter::{self, Line};
use godwit_transport::endpoint::Begun;
use godwit_wire::ConnectionId;
use std::io::{ErrorKind, Write};
use std::os::unix::net::UnixStream;

#[test]
fn lines_are_read_as_they_are_written() {
    let id = ConnectionId::new(&[0, 1, 0xab, 9, 9, 9, 9, 0xff]).unwrap();
    let lines = [
        Line::Generation(255),
        Line::Secrets(Box::new(std::array::from_fn(|n| n as u8))),
        Line::Socket(3, 70_000, 12),
        Line::Elder(254, 0, 13),
        Line::Descriptor(14, "web site: TCP".to_owned()),
        Line::Begun(Begun { id, generation: 1, shard: 2 }),
    ];
    let mut letter = String::new();
    lines.iter().for_each(|line| line.write(&mut letter));
    let read: Vec<Line> = letter.lines().map(|line| Line::read(line).unwrap()).collect();
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

fn read(letter: &str) -> Result<Inheritance, ErrorKind> {
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    ours.write_all(letter.as_bytes()).unwrap();
    drop(ours);
    Inheritance::read(theirs).map_err(|error| error.kind())
}

#[test]
fn letters_that_make_no_sense_are_refused() {
    let secrets = "ab".repeat(64);
    let greeting = letter::GREETING;
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
    let never_mind = String::from_utf8_lossy(letter::NEVER_MIND);
    assert_eq!(read(&format!("{whole}{never_mind}")).unwrap_err(), ErrorKind::TimedOut);
}
