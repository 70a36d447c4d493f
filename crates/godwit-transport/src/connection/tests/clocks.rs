//! Timestamps with acknowledgements (draft-huitema-quic-ts): what one direction takes is told from the other.

use super::*;
use godwit_wire::frame::Frames;
use godwit_wire::transport_parameters::Timestamps;

const THERE: Duration = Duration::from_millis(8);
const BACK: Duration = Duration::from_millis(3);

fn transport(timestamps: bool) -> TransportConfig {
    TransportConfig { timestamps, ..TransportConfig::default() }
}

/// One exchange in which the ways take so long, of something that is acknowledged at once.
fn ping(pair: &mut Pair, there: Duration, back: Duration) {
    pair.client.ping();
    pair.server.machine.spaces.data.space.acks.on_immediate_ack();
    pair.delay = there;
    pair.exchange(true);
    pair.delay = back;
    pair.exchange(false);
}

#[test]
fn delays_are_known_if_both_ends_want_that() {
    for (client, server) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut pair = Pair::with(transport(client), transport(server));
        pair.run(20);
        let both = client && server;
        let expected = Timestamps { receive: both, send: both };
        assert_eq!([pair.client.timestamps(), pair.server.timestamps()], [expected; 2]);
        ping(&mut pair, THERE, BACK);
        for stats in [pair.client.stats(), pair.server.stats()] {
            assert_eq!(stats.one_way_delay.is_some(), both, "{stats:?}");
            assert_eq!(stats.latest_one_way_delay.is_some(), both, "{stats:?}");
        }
    }
}

#[test]
fn a_longer_way_there_is_told_from_a_longer_way_back() {
    let mut pair = Pair::new(transport(true));
    pair.run(20);
    let latest = |pair: &Pair| pair.client.stats().latest_one_way_delay.unwrap().as_millis();
    // The fastest round trip, by which the clocks are compared.
    ping(&mut pair, Duration::from_millis(5), Duration::from_millis(5));
    assert_eq!(latest(&pair), 5);
    ping(&mut pair, THERE, BACK);
    assert_eq!(latest(&pair), 8);
    ping(&mut pair, BACK, THERE);
    assert_eq!(latest(&pair), 3);
    ping(&mut pair, Duration::from_millis(5), Duration::from_millis(80));
    assert_eq!(latest(&pair), 5);
    let smoothed = pair.client.stats().one_way_delay.unwrap();
    assert!(smoothed > BACK && smoothed < THERE, "{smoothed:?}");
}

#[test]
fn each_ack_frame_of_one_rtt_packets_has_a_timestamp_in_front() {
    for enabled in [false, true] {
        let mut pair = Pair::new(transport(enabled));
        pair.run(20);
        let clocks = &pair.server.machine.parts.clocks;
        let acks = &mut pair.server.machine.spaces.data.space.acks;
        let stamp = clocks.stamp(pair.now);
        assert_eq!(stamp.is_some(), enabled);
        // Where there is no room for both the acknowledgement goes alone.
        for (number, room, stamped) in [(1000, 40, enabled), (1010, 10, false)] {
            acks.on_packet_received(number, pair.now, true, Ecn::NotEct);
            let (payload, _, ()) = crate::packet::testing::payload(room, |packet| {
                crate::connection::acks::write(acks, packet, &mut 0, stamp);
            });
            let kinds: Vec<_> = Frames::new(&payload).map(|frame| frame.unwrap().frame_type()).collect();
            assert_eq!(kinds, if stamped { vec![0x2f5, 0x02] } else { vec![0x02] }, "{room}");
        }
    }
}
