//! Our transport parameters against quinn's: two readers of the same RFC that do not share a line.

use godwit_wire::transport_parameters::TransportParameters as Ours;
use godwit_wire::{Reader, Side, Writer};
use quinn_proto::transport_parameters::TransportParameters as Theirs;

/// Parameters that quinn does not know, or reads in its own way: reset_stream_at, version_information, enable_timestamp,
/// cibir_encoding, disable_1rtt_encryption, grease_quic_bit and min_ack_delay, which it takes twice.
const OWN_WAYS: [u64; 7] = [0x1d, 0x11, 0x7158, 0x1000, 0xbaad, 0x2ab2, 0xff04_de1b];
const INITIAL_SOURCE_CID: u64 = 0x0f;
const PREFERRED_ADDRESS: u64 = 0x0d;

/// The first byte says who sent them. What one accepts is accepted by the other, and means the same to it.
pub fn transport_parameters(bytes: &[u8]) -> bool {
    let Some((side, bytes)) = bytes.split_first() else { return false };
    let (sender, receiver) = if side & 1 == 0 {
        (Side::Server, quinn_proto::Side::Client)
    } else {
        (Side::Client, quinn_proto::Side::Server)
    };
    let ours = Ours::decode(bytes, sender);
    let theirs = Theirs::read(receiver, &mut &*bytes);
    let mut parameters = match (ours, theirs) {
        (Ok(parameters), _) => parameters,
        (Err(error), Ok(theirs)) => {
            let rest = without_own_ways(bytes);
            assert!(Ours::decode(&rest, sender).is_ok(), "{error}, but quinn has read {theirs:?}");
            return false;
        }
        (Err(_), Err(_)) => return false,
    };
    // An address that is none is nothing that the RFC forbids; quinn does.
    parameters.preferred_address.take_if(|address| address.ipv4.is_none() && address.ipv6.is_none());
    // Numbers need not be in their shortest form, which quinn wants: it gets what we write.
    let mut buffer = [0; Ours::MAX_LEN];
    let mut writer = Writer::new(&mut buffer);
    parameters.encode(&mut writer, u64::from(*side)).expect("what was accepted fits");
    let theirs = Theirs::read(receiver, &mut writer.written())
        .unwrap_or_else(|error| panic!("quinn refuses {parameters:?}: {error:?}"));
    let mut written = Vec::new();
    theirs.write(&mut written);
    parameters.reset_stream_at = false;
    parameters.version_information = None;
    parameters.timestamps = Default::default();
    parameters.cibir_encoding = None;
    parameters.disable_1rtt_encryption = false;
    assert_eq!(Ours::decode(&written, sender), Ok(parameters), "they mean the same to both");
    true
}

/// All parameters but those, and but the preferred address of a server that has no connection id (RFC 9000 section 18.2),
/// which quinn takes.
fn without_own_ways(bytes: &[u8]) -> Vec<u8> {
    let (mut reader, mut parameters) = (Reader::new(bytes), Vec::new());
    while !reader.is_empty() {
        let before = bytes.len() - reader.remaining();
        let (Ok(number), Ok(value)) = (reader.varint(), reader.prefixed()) else { break };
        parameters.push((number, value, &bytes[before..bytes.len() - reader.remaining()]));
    }
    let has_no_cid =
        parameters.iter().any(|(number, value, _)| *number == INITIAL_SOURCE_CID && value.is_empty());
    let is_own_way = |number: u64| OWN_WAYS.contains(&number) || has_no_cid && number == PREFERRED_ADDRESS;
    let others = parameters.into_iter().filter(|(number, ..)| !is_own_way(*number));
    others.flat_map(|(.., whole)| whole).copied().collect()
}
