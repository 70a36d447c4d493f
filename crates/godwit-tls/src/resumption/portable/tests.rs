use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn what_is_written_is_read(
        (issued, lifetime, age_add, early) in any::<(u64, u32, u32, bool)>(),
        ticket in proptest::collection::vec(any::<u8>(), 1..2000),
        secret in proptest::collection::vec(any::<u8>(), 0..64),
        parameters in proptest::collection::vec(any::<u8>(), 0..200),
        chain in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..1000), 1..8),
    ) {
        let chain = chain.into_iter().map(CertificateDer::from).collect();
        let suite = CipherSuite::TLS13_AES_256_GCM_SHA384;
        let ticket =
            PortableTicket { suite, issued, lifetime, age_add, early, ticket, secret, parameters, chain };
        let bytes = ticket.to_bytes().unwrap();
        prop_assert!(PortableTicket::from_bytes(&bytes) == Some(ticket));
    }

    #[test]
    fn anything_may_stand_on_paper(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let bytes = [&[1, 0x13, 0x01], &bytes[..]].concat();
        let _ = PortableTicket::from_bytes(&bytes).map(|ticket| ticket.expires());
    }
}
