//! Runs that others protect.

use super::*;
use crate::connection::boundary::Transmitted;
use crate::unprotected::UnprotectedRuns;

/// How many runs were left unprotected, and all datagrams that the client sent.
type Sent = (usize, Vec<Vec<u8>>);

/// Sends from the client what there is to send; with `apart`, large runs are protected when the batch is full.
fn send(pair: &mut Pair, apart: bool, sent: &mut Sent) {
    let (mut runs, mut memory) = (UnprotectedRuns::new(), SendingMemory::default());
    pair.batch.clear();
    loop {
        let unprotected = apart.then_some(&mut runs);
        let machine = &mut pair.client.machine;
        if machine.transmit_apart(pair.now, &mut pair.batch, &mut pair.rng, unprotected, &mut memory)
            == Transmitted::Idle
        {
            break;
        }
    }
    sent.0 += runs.len();
    runs.protect(&mut pair.batch).unwrap();
    pair.now += pair.delay;
    for (_, datagram) in pair.batch.datagrams() {
        pair.server.machine.receive(pair.now, pair.server_path, Ecn::NotEct, &mut datagram.to_vec());
        sent.1.push(datagram.to_vec());
    }
    pair.server.machine.on_batch_end(pair.now);
}

/// Connections on a path so short that the pacer lets many packets go at once.
fn close_by() -> Pair {
    let mut pair = Pair::new(TransportConfig::default());
    pair.delay = Duration::from_micros(20);
    pair.run(20);
    pair
}

/// How much the server can read of a stream.
fn read(pair: &mut Pair, id: StreamId) -> usize {
    let mut bytes = 0;
    while let Ok(ReadChunk::Data(chunk)) = pair.server.read(pair.now, id, usize::MAX) {
        bytes += chunk.len();
    }
    bytes
}

/// A client that sends two megabytes, and updates its keys in the middle.
fn transfer(apart: bool) -> Sent {
    transfer_with(apart, None)
}

/// The same, where an update is due after so many packets (and waits for the peer's acknowledgement of the one before).
fn transfer_with(apart: bool, update_after: Option<u64>) -> Sent {
    let mut pair = close_by();
    pair.client.machine.spaces.data.keys.as_deref_mut().unwrap().set_update_after(update_after);
    let id = pair.client.open(Direction::Unidirectional).unwrap();
    let (mut left, mut received, mut updated) = (2_000_000, 0, false);
    let mut sent = (0, Vec::new());
    for _ in 0..500 {
        if left > 0 {
            left -= pair.client.write(id, Bytes::from(vec![left as u8; left])).unwrap();
        }
        if received > 1_000_000 && !updated {
            updated = pair.client.machine.update_keys(pair.now) || update_after.is_some();
        }
        send(&mut pair, apart, &mut sent);
        pair.exchange(false);
        pair.client.on_timeout(pair.now);
        pair.server.on_timeout(pair.now);
        received += read(&mut pair, id);
        if received == 2_000_000 {
            break;
        }
    }
    assert!(received == 2_000_000 && updated && pair.client.stats().packets_lost == 0);
    let updates =
        [&pair.client, &pair.server].map(|end| end.machine.spaces.data.keys.as_ref().unwrap().updates());
    assert!(updates[0] == updates[1] && (updates[0] == 1 || update_after.is_some()), "{updates:?}");
    sent
}

#[test]
fn what_others_protect_is_byte_for_byte_what_the_connection_would_send() {
    let (none, expected) = transfer(false);
    let (runs, datagrams) = transfer(true);
    assert_eq!(none, 0);
    assert!(runs > 10, "{runs} runs were left to others");
    assert!(datagrams == expected, "{} and {} datagrams", datagrams.len(), expected.len());
}

#[test]
fn handshakes_small_runs_and_closes_are_protected_at_once() {
    let mut pair = Pair::new(TransportConfig::default());
    pair.delay = Duration::from_micros(20);
    let mut sent = (0, Vec::new());
    for _ in 0..20 {
        send(&mut pair, true, &mut sent);
        pair.exchange(false);
        pair.client.on_timeout(pair.now);
        pair.server.on_timeout(pair.now);
    }
    assert!(events(&mut pair.client).contains(&Event::Confirmed));
    let id = pair.client.open(Direction::Unidirectional).unwrap();
    // Ten packets.
    assert_eq!(pair.client.write(id, Bytes::from(vec![1; 11_000])), Ok(11_000));
    let mut received = 0;
    while received < 11_000 {
        send(&mut pair, true, &mut sent);
        pair.exchange(false);
        received += read(&mut pair, id);
        pair.now += Duration::from_millis(1);
        pair.client.on_timeout(pair.now);
        pair.server.on_timeout(pair.now);
    }
    pair.client.close(pair.now, 7, b"enough");
    send(&mut pair, true, &mut sent);
    assert_eq!(sent.0, 0);
    assert!(!pair.server.machine.lifecycle.is_open(), "the close was understood");
}

#[test]
fn no_run_is_left_to_others_in_which_the_keys_may_be_updated() {
    let [expected, sent] = [false, true].map(|apart| transfer_with(apart, Some(1)));
    assert!(expected == sent && sent.0 == 0, "{} runs were left to others", sent.0);
}
