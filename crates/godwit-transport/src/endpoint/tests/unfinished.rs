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
