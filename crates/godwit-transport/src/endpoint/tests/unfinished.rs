//! What is kept of a client whose ClientHello is not complete, and for how long.

use super::*;

/// The first so many bytes of a hello.
fn front(hello: &[u8], len: usize) -> Vec<u8> {
    Initial::new(1, &hello[..len]).seal()
}

/// A 0-RTT packet of this client, or of whoever says so.
fn early(len: usize) -> Vec<u8> {
    let length = (0x4000 | len as u16).to_be_bytes();
    let mut packet = [&[0xd0, 0, 0, 0, 1, 8][..], cid(1).as_bytes(), &[0], &length].concat();
    packet.resize(packet.len() + len, 7);
    packet
}

fn datagrams_kept(rig: &mut Rig, hello: &[u8]) -> usize {
    let back = Initial { number: 90, offset: 900, ..Initial::new(1, &hello[900..]) }.seal();
    rig.receive(&back);
    let key = rig.endpoint.next_incoming().unwrap();
    rig.endpoint.incoming(key).unwrap().datagrams.len()
}

#[test]
fn early_data_is_kept_beside_half_a_hello_as_long_as_there_is_room() {
    let hello = client_hello(1500);
    for (sent, kept) in [(0, 0), (1, 1), (10, 10), (15, 15), (16, 15), (40, 15)] {
        let mut rig = Rig::new(false);
        rig.receive(&front(&hello, 900));
        for _ in 0..sent {
            rig.receive(&early(500));
        }
        assert_eq!(datagrams_kept(&mut rig, &hello), 2 + kept, "{sent} sent");
    }
    // And no more bytes than an initial window has.
    let mut rig = Rig::new(false);
    rig.receive(&front(&hello, 900));
    for _ in 0..10 {
        rig.receive(&early(8_000));
    }
    assert_eq!(datagrams_kept(&mut rig, &hello), 2 + 3);
}

#[test]
fn a_client_that_gives_up_is_not_waited_for() {
    let hello = client_hello(1500);
    let close = Frame::ConnectionClose { code: TransportErrorCode::NO_ERROR, frame_type: 0, reason: b"" };
    let give_up = Initial { number: 1, ..Initial::new(1, &[]) }.seal_with(&close);
    let mut rig = Rig::new(false);
    assert!(rig.receive(&give_up).is_empty() && rig.endpoint.is_idle(), "nor is anything begun with it");
    rig.receive(&front(&hello, 900));
    let mut forged = give_up.clone();
    forged[700] ^= 1;
    rig.receive(&forged);
    rig.receive_from("192.0.2.9:4000", &give_up);
    assert_eq!(rig.endpoint.incoming.len(), 1, "whoever has not its keys or its address does not end it");
    assert!(rig.receive(&give_up).is_empty(), "nobody is there to be answered");
    assert!(rig.endpoint.is_idle() && rig.endpoint.deadline().is_none());
    assert_eq!(rig.endpoint.incoming.incomplete().0, 0);
    // Who comes back is welcome.
    rig.receive(&front(&hello, 900));
    assert_eq!(datagrams_kept(&mut rig, &hello), 2);
}

#[test]
fn a_client_that_gives_up_while_the_application_decides_says_why() {
    let hello = client_hello(700);
    let close = |code| Frame::ConnectionClose { code, frame_type: 0, reason: b"" };
    let give_up =
        |number, code| Initial { number, ..Initial::new(1, &[]) }.seal_with(&close(TransportErrorCode(code)));
    let repeated = |number| Initial { number, ..Initial::new(1, &hello) }.seal();
    for (repeats, heard) in [(0, true), (20, true), (70, false)] {
        let mut rig = Rig::new(false);
        rig.endpoint.watch_incoming();
        rig.receive(&Initial::new(1, &hello).seal());
        let key = rig.endpoint.next_incoming().unwrap();
        let mut forged = give_up(1, 7);
        forged[700] ^= 1;
        rig.receive(&forged);
        rig.receive_from("192.0.2.9:4000", &give_up(1, 7));
        for number in 0..repeats {
            rig.receive(&repeated(2 + number));
        }
        assert!(rig.endpoint.incoming(key).is_some() && rig.endpoint.next_gone_incoming().is_none());
        rig.receive(&give_up(90, 0xc));
        let gone = rig.endpoint.next_gone_incoming();
        assert_eq!(gone.map(|gone| gone.key), heard.then_some(key), "{repeats} repeats");
        let code = gone.and_then(|gone| gone.closed_with);
        assert_eq!(code, heard.then_some(TransportErrorCode::APPLICATION_ERROR));
    }
}

#[test]
fn who_was_refused_has_not_given_up() {
    let mut rig = Rig::new(false);
    rig.endpoint.watch_incoming();
    rig.receive(&Initial::new(1, &client_hello(700)).seal());
    let key = rig.endpoint.next_incoming().unwrap();
    assert!(rig.endpoint.refuse(key));
    let gone = rig.endpoint.next_gone_incoming().unwrap();
    assert_eq!((gone.key, gone.closed_with), (key, None));
}

#[test]
fn a_slow_hello_is_waited_for_half_a_minute_after_each_part_and_a_minute_in_all() {
    let hello = client_hello(1500);
    let part = |at: u64| {
        let (offset, number) = (100 * at, at);
        let crypto = &hello[offset as usize..][..100];
        Initial { number, offset, ..Initial::new(1, crypto) }.seal()
    };
    // Parts come every so many seconds; after so many it is forgotten.
    for (every, forgotten) in [(100, 30), (20, 60), (25, 60), (5, 60)] {
        let (mut rig, mut parts) = (Rig::new(false), 0);
        let began = rig.now;
        for second in 0..=70 {
            rig.now = began + Duration::from_secs(second);
            rig.endpoint.on_timeout(rig.now);
            let waits = second > 0 && second < forgotten;
            assert_eq!(rig.endpoint.incoming.len(), usize::from(waits), "every {every} s, after {second} s");
            if second >= forgotten {
                break;
            }
            if second % every == 0 {
                rig.receive(&part(parts));
                parts += 1;
            }
        }
    }
}

/// Frames of one byte each, with gaps between them, of which none says what has not been said before.
fn in_bits(number: u64, hello: &[u8]) -> Vec<u8> {
    let mut frames = [0; 1000];
    let mut writer = Writer::new(&mut frames);
    for offset in (0..400).step_by(2) {
        Frame::Crypto { offset, data: &hello[offset as usize..][..1] }.encode(&mut writer).unwrap();
    }
    let len = writer.len();
    Initial { number, ..Initial::new(1, &[]) }.seal_raw(&frames[..len])
}

#[test]
fn what_says_nothing_new_of_a_hello_is_opened_so_often_and_no_more() {
    let hello = client_hello(1500);
    let back = Initial { number: 90, offset: 900, ..Initial::new(1, &hello[900..]) }.seal();
    let front = Initial { number: 91, ..Initial::new(1, &hello[..900]) }.seal();
    for (sent, opened, gets_in) in [(0, 1, true), (63, 64, true), (64, 65, false), (10_000, 65, false)] {
        let mut rig = Rig::new(false);
        for number in 0..=sent.min(200) {
            rig.receive(&in_bits(number, &hello));
        }
        let again = in_bits(201, &hello);
        for _ in 201..=sent {
            rig.receive(&again);
        }
        assert_eq!(rig.endpoint.incoming.opened(), opened, "{sent} sent");
        rig.receive(&front);
        rig.receive(&back);
        assert_eq!(rig.endpoint.next_incoming().is_some(), gets_in, "behind {sent}");
        if gets_in {
            continue;
        }
        // Others are not concerned, from the same address even, and it has a time like every other.
        for (number, part) in [&hello[..900], &hello[900..]].into_iter().enumerate() {
            let (number, offset) = (number as u64, 900 * number as u64);
            rig.receive(&Initial { number, offset, ..Initial::new(2, part) }.seal());
        }
        assert!(rig.endpoint.next_incoming().is_some(), "another hello in two parts");
        rig.now += Duration::from_secs(60);
        rig.endpoint.on_timeout(rig.now);
        assert_eq!(rig.endpoint.incoming.len(), 0);
        rig.receive(&front);
        assert_eq!(datagrams_kept(&mut rig, &hello), 2, "the client may come again");
    }
}

#[test]
fn what_comes_early_beside_half_a_hello_is_not_opened() {
    let hello = client_hello(1500);
    let mut rig = Rig::new(false);
    rig.receive(&front(&hello, 900));
    (0..1000).for_each(|_| _ = rig.receive(&early(1300)));
    assert_eq!(rig.endpoint.incoming.opened(), 1);
    assert_eq!(datagrams_kept(&mut rig, &hello), 2 + 15);
}
