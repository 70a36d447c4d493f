//! Identifiers that all connection ids of a server have, and those of its clients, so that datagrams of several servers with one port
//! can be told apart (draft-banks-quic-cibir, as MsQuic has it).

use crate::WireError;
use godwit_wire::transport_parameters::CibirEncoding;
use godwit_wire::{Side, TransportErrorCode};

/// An identifier of 1 to 6 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CidIdentifier {
    len: u8,
    bytes: [u8; Self::MAX_LEN],
}

impl CidIdentifier {
    /// The most bytes.
    pub const MAX_LEN: usize = 6;

    /// These bytes; `None` if there are none or more than six.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut identifier =
            CidIdentifier { len: u8::try_from(bytes.len()).ok()?, bytes: [0; Self::MAX_LEN] };
        identifier.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        (!bytes.is_empty()).then_some(identifier)
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
}

/// What is to be with a peer that has, or has not, an identifier in its connection ids (the transport parameter
/// cibir_encoding).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Cibir {
    /// It is not used here, and nobody looks at what the peer says of it.
    #[default]
    Ignored,
    /// It is not used here, and a peer that uses it is refused.
    Refused,
    /// Both ends use it, or there is no connection. Connection ids of 14 bytes or more have these bytes behind the first two, or
    /// behind the number for load balancers and two more. The peer is told that they begin with them, as MsQuic does, and has to
    /// say the same of ids of the same length. What is given out before it is known that this holds has those of
    /// [`EndpointConfig::cid_identifier`](crate::EndpointConfig::cid_identifier).
    Used(CidIdentifier),
}

impl Cibir {
    /// What the peer is told.
    pub(crate) const fn encoding(self) -> Option<CibirEncoding> {
        match self {
            Cibir::Used(CidIdentifier { len, .. }) => Some(CibirEncoding { length: len, offset: 0 }),
            Cibir::Ignored | Cibir::Refused => None,
        }
    }

    /// What the connection ids of this end have.
    pub(crate) const fn identifier(self) -> Option<CidIdentifier> {
        match self {
            Cibir::Used(identifier) => Some(identifier),
            Cibir::Ignored | Cibir::Refused => None,
        }
    }

    /// What the peer says to the end on this side.
    ///
    /// # Errors
    /// If they do not fit together: a client is told that it is refused.
    pub(crate) fn check(self, side: Side, peer: Option<CibirEncoding>) -> Result<(), WireError> {
        let code = match side {
            Side::Client => TransportErrorCode::TRANSPORT_PARAMETER_ERROR,
            Side::Server => TransportErrorCode::CONNECTION_REFUSED,
        };
        match (self, peer) {
            (Cibir::Refused, Some(_)) => Err(WireError::new(code, "cibir_encoding, which is not used here")),
            (Cibir::Used(_), None) => Err(WireError::new(code, "no cibir_encoding, which is used here")),
            (Cibir::Used(_), peer) if peer != self.encoding() => {
                Err(WireError::new(code, "a cibir_encoding that is another than here"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_have_one_to_six_bytes() {
        let lens = [0, 1, 6, 7].map(|len| CidIdentifier::new(&[9; 7][..len]).map(|it| it.as_bytes().len()));
        assert_eq!(lens, [None, Some(1), Some(6), None]);
        assert!(CidIdentifier::new(&[9; 300]).is_none());
    }

    #[test]
    fn both_ends_use_the_same_or_none_does() {
        let used = CidIdentifier::new(&[1, 2, 3]).map_or(Cibir::Ignored, Cibir::Used);
        let told = |length, offset| Some(CibirEncoding { length, offset });
        for (own, peer, good) in [
            (Cibir::Ignored, None, true),
            (Cibir::Ignored, told(3, 0), true),
            (Cibir::Refused, None, true),
            (Cibir::Refused, told(3, 0), false),
            (used, None, false),
            (used, told(3, 0), true),
            (used, told(4, 0), false),
            (used, told(3, 1), false),
        ] {
            let codes =
                [Side::Client, Side::Server].map(|side| own.check(side, peer).err().map(|it| it.code));
            let expected =
                [TransportErrorCode::TRANSPORT_PARAMETER_ERROR, TransportErrorCode::CONNECTION_REFUSED];
            assert_eq!(codes, expected.map(|code| Some(code).filter(|_| !good)), "{own:?} {peer:?}");
        }
    }
}
