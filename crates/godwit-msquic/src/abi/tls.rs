//! What TLS has agreed upon, its secrets, and the keys and secrets that applications hand over.

use super::layout::{bits, codes, flags, layout};
use std::ffi::c_char;

codes! {
    /// Which library does TLS.
    TlsProvider(u32), "QUIC_TLS_PROVIDER" {
        /// That of Windows.
        SCHANNEL = 0, "QUIC_TLS_PROVIDER_SCHANNEL";
        /// OpenSSL, or something of its kind.
        OPENSSL = 1, "QUIC_TLS_PROVIDER_OPENSSL";
    }
}

codes! {
    /// With which alert a handshake ends whose certificate an application refuses (RFC 8446, section 6).
    TlsAlertCode(u32), "QUIC_TLS_ALERT_CODES" {
        /// None: no alert.
        SUCCESS = 0xffff, "QUIC_TLS_ALERT_CODE_SUCCESS";
        /// `unexpected_message`
        UNEXPECTED_MESSAGE = 10, "QUIC_TLS_ALERT_CODE_UNEXPECTED_MESSAGE";
        /// `bad_certificate`
        BAD_CERTIFICATE = 42, "QUIC_TLS_ALERT_CODE_BAD_CERTIFICATE";
        /// `unsupported_certificate`
        UNSUPPORTED_CERTIFICATE = 43, "QUIC_TLS_ALERT_CODE_UNSUPPORTED_CERTIFICATE";
        /// `certificate_revoked`
        CERTIFICATE_REVOKED = 44, "QUIC_TLS_ALERT_CODE_CERTIFICATE_REVOKED";
        /// `certificate_expired`
        CERTIFICATE_EXPIRED = 45, "QUIC_TLS_ALERT_CODE_CERTIFICATE_EXPIRED";
        /// `certificate_unknown`
        CERTIFICATE_UNKNOWN = 46, "QUIC_TLS_ALERT_CODE_CERTIFICATE_UNKNOWN";
        /// `illegal_parameter`
        ILLEGAL_PARAMETER = 47, "QUIC_TLS_ALERT_CODE_ILLEGAL_PARAMETER";
        /// `unknown_ca`
        UNKNOWN_CA = 48, "QUIC_TLS_ALERT_CODE_UNKNOWN_CA";
        /// `access_denied`
        ACCESS_DENIED = 49, "QUIC_TLS_ALERT_CODE_ACCESS_DENIED";
        /// `insufficient_security`
        INSUFFICIENT_SECURITY = 71, "QUIC_TLS_ALERT_CODE_INSUFFICIENT_SECURITY";
        /// `internal_error`
        INTERNAL_ERROR = 80, "QUIC_TLS_ALERT_CODE_INTERNAL_ERROR";
        /// `user_canceled`
        USER_CANCELED = 90, "QUIC_TLS_ALERT_CODE_USER_CANCELED";
        /// `certificate_required`
        CERTIFICATE_REQUIRED = 116, "QUIC_TLS_ALERT_CODE_CERTIFICATE_REQUIRED";
        /// The largest number that an alert can have.
        MAX = 255, "QUIC_TLS_ALERT_CODE_MAX";
    }
}

impl TlsAlertCode {
    /// The alert, if it is one.
    pub fn alert(self) -> Option<u8> {
        self.0.try_into().ok()
    }
}

flags! {
    /// Cipher suites that may be used.
    AllowedCipherSuiteFlags(u32), "QUIC_ALLOWED_CIPHER_SUITE_FLAGS" {
        /// Those that the library prefers.
        NONE = 0, "QUIC_ALLOWED_CIPHER_SUITE_NONE";
        /// `TLS_AES_128_GCM_SHA256`
        AES_128_GCM_SHA256 = 0x1, "QUIC_ALLOWED_CIPHER_SUITE_AES_128_GCM_SHA256";
        /// `TLS_AES_256_GCM_SHA384`
        AES_256_GCM_SHA384 = 0x2, "QUIC_ALLOWED_CIPHER_SUITE_AES_256_GCM_SHA384";
        /// `TLS_CHACHA20_POLY1305_SHA256`
        CHACHA20_POLY1305_SHA256 = 0x4, "QUIC_ALLOWED_CIPHER_SUITE_CHACHA20_POLY1305_SHA256";
    }
}

codes! {
    /// The version of TLS.
    TlsProtocolVersion(u32), "QUIC_TLS_PROTOCOL_VERSION" {
        /// Not agreed upon yet.
        UNKNOWN = 0, "QUIC_TLS_PROTOCOL_UNKNOWN";
        /// TLS 1.3.
        TLS_1_3 = 0x3000, "QUIC_TLS_PROTOCOL_1_3";
    }
}

codes! {
    /// The cipher of a suite.
    CipherAlgorithm(u32), "QUIC_CIPHER_ALGORITHM" {
        /// Not agreed upon yet.
        NONE = 0, "QUIC_CIPHER_ALGORITHM_NONE";
        /// AES with a key of 128 bits.
        AES_128 = 0x660e, "QUIC_CIPHER_ALGORITHM_AES_128";
        /// AES with a key of 256 bits.
        AES_256 = 0x6610, "QUIC_CIPHER_ALGORITHM_AES_256";
        /// ChaCha20.
        CHACHA20 = 0x6612, "QUIC_CIPHER_ALGORITHM_CHACHA20";
    }
}

codes! {
    /// The hash of a suite.
    HashAlgorithm(u32), "QUIC_HASH_ALGORITHM" {
        /// Not agreed upon yet.
        NONE = 0, "QUIC_HASH_ALGORITHM_NONE";
        /// SHA-256.
        SHA_256 = 0x800c, "QUIC_HASH_ALGORITHM_SHA_256";
        /// SHA-384.
        SHA_384 = 0x800d, "QUIC_HASH_ALGORITHM_SHA_384";
    }
}

codes! {
    /// The key exchange of a suite, of which TLS 1.3 has none.
    KeyExchangeAlgorithm(u32), "QUIC_KEY_EXCHANGE_ALGORITHM" {
        /// None.
        NONE = 0, "QUIC_KEY_EXCHANGE_ALGORITHM_NONE";
    }
}

codes! {
    /// The group of the key exchange, by its number at IANA.
    TlsGroup(u32), "QUIC_TLS_GROUP" {
        /// Not agreed upon yet.
        UNKNOWN = 0, "QUIC_TLS_GROUP_UNKNOWN";
        /// secp256r1.
        SECP256R1 = 23, "QUIC_TLS_GROUP_SECP256R1";
        /// secp384r1.
        SECP384R1 = 24, "QUIC_TLS_GROUP_SECP384R1";
        /// x25519.
        X25519 = 29, "QUIC_TLS_GROUP_X25519";
        /// ML-KEM-512.
        MLKEM512 = 512, "QUIC_TLS_GROUP_MLKEM512";
        /// ML-KEM-768.
        MLKEM768 = 513, "QUIC_TLS_GROUP_MLKEM768";
        /// ML-KEM-1024.
        MLKEM1024 = 514, "QUIC_TLS_GROUP_MLKEM1024";
        /// secp256r1 and ML-KEM-768.
        SECP256R1MLKEM768 = 4587, "QUIC_TLS_GROUP_SECP256R1MLKEM768";
        /// x25519 and ML-KEM-768.
        X25519MLKEM768 = 4588, "QUIC_TLS_GROUP_X25519MLKEM768";
        /// secp384r1 and ML-KEM-1024.
        SECP384R1MLKEM1024 = 4589, "QUIC_TLS_GROUP_SECP384R1MLKEM1024";
    }
}

codes! {
    /// The cipher suite, by its number at IANA.
    CipherSuite(u32), "QUIC_CIPHER_SUITE" {
        /// `TLS_AES_128_GCM_SHA256`
        AES_128_GCM_SHA256 = 0x1301, "QUIC_CIPHER_SUITE_TLS_AES_128_GCM_SHA256";
        /// `TLS_AES_256_GCM_SHA384`
        AES_256_GCM_SHA384 = 0x1302, "QUIC_CIPHER_SUITE_TLS_AES_256_GCM_SHA384";
        /// `TLS_CHACHA20_POLY1305_SHA256`
        CHACHA20_POLY1305_SHA256 = 0x1303, "QUIC_CIPHER_SUITE_TLS_CHACHA20_POLY1305_SHA256";
    }
}

codes! {
    /// Which AEAD protects the tokens of Retry packets.
    AeadAlgorithmType(u32), "QUIC_AEAD_ALGORITHM_TYPE" {
        /// AES-128-GCM.
        AES_128_GCM = 0, "QUIC_AEAD_ALGORITHM_AES_128_GCM";
        /// AES-256-GCM.
        AES_256_GCM = 1, "QUIC_AEAD_ALGORITHM_AES_256_GCM";
    }
}

/// What a handshake has agreed upon; a parameter of connections.
///
/// In C: `QUIC_HANDSHAKE_INFO`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HandshakeInfo {
    /// The version of TLS.
    pub tls_protocol_version: TlsProtocolVersion,
    /// The cipher.
    pub cipher_algorithm: CipherAlgorithm,
    /// Bits of its key.
    pub cipher_strength: i32,
    /// The hash.
    pub hash: HashAlgorithm,
    /// Bits of its output; 0 where that is not told.
    pub hash_strength: i32,
    /// The key exchange.
    pub key_exchange_algorithm: KeyExchangeAlgorithm,
    /// Bits of that; 0.
    pub key_exchange_strength: i32,
    /// The cipher suite.
    pub cipher_suite: CipherSuite,
    /// The group; programs older than 2.5 have no room for it.
    pub tls_group: TlsGroup,
}

impl HandshakeInfo {
    /// Bytes of it in programs older than 2.5.
    pub const MIN_SIZE: usize = std::mem::offset_of!(Self, tls_group);
}

layout! {
    HandshakeInfo, "QUIC_HANDSHAKE_INFO", 36 {
        tls_protocol_version, "TlsProtocolVersion", 0;
        cipher_algorithm, "CipherAlgorithm", 4;
        cipher_strength, "CipherStrength", 8;
        hash, "Hash", 12;
        hash_strength, "HashStrength", 16;
        key_exchange_algorithm, "KeyExchangeAlgorithm", 20;
        key_exchange_strength, "KeyExchangeStrength", 24;
        cipher_suite, "CipherSuite", 28;
        tls_group, "TlsGroup", 32;
    }
}

/// The secrets of a connection, for programs that decrypt what was recorded. The application sets a parameter to where
/// they are to be written, and they come while the handshake goes on.
///
/// In C: `QUIC_TLS_SECRETS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TlsSecrets {
    /// Bytes of each secret; at most 64.
    pub secret_length: u8,
    /// Which of them are there.
    pub is_set: u8,
    /// The client's random number.
    pub client_random: [u8; 32],
    /// Of 0-RTT packets.
    pub client_early_traffic_secret: [u8; 64],
    /// Of the client's Handshake packets.
    pub client_handshake_traffic_secret: [u8; 64],
    /// Of the server's Handshake packets.
    pub server_handshake_traffic_secret: [u8; 64],
    /// Of the client's first 1-RTT packets.
    pub client_traffic_secret0: [u8; 64],
    /// Of the server's first 1-RTT packets.
    pub server_traffic_secret0: [u8; 64],
}

bits! {
    TlsSecrets, is_set {
        /// Whether the client's random number is there.
        CLIENT_RANDOM = 0, has_client_random, with_client_random;
        /// Whether the secret of 0-RTT packets is there.
        CLIENT_EARLY_TRAFFIC_SECRET = 1, has_client_early_traffic_secret, with_client_early_traffic_secret;
        /// Whether the client's Handshake secret is there.
        CLIENT_HANDSHAKE_TRAFFIC_SECRET = 2, has_client_handshake_traffic_secret, with_client_handshake_traffic_secret;
        /// Whether the server's Handshake secret is there.
        SERVER_HANDSHAKE_TRAFFIC_SECRET = 3, has_server_handshake_traffic_secret, with_server_handshake_traffic_secret;
        /// Whether the client's first 1-RTT secret is there.
        CLIENT_TRAFFIC_SECRET0 = 4, has_client_traffic_secret0, with_client_traffic_secret0;
        /// Whether the server's first 1-RTT secret is there.
        SERVER_TRAFFIC_SECRET0 = 5, has_server_traffic_secret0, with_server_traffic_secret0;
    }
}

layout! {
    TlsSecrets, "QUIC_TLS_SECRETS", 354 {
        secret_length, "SecretLength", 0;
        is_set, "IsSet", 1;
        client_random, "ClientRandom", 2;
        client_early_traffic_secret, "ClientEarlyTrafficSecret", 34;
        client_handshake_traffic_secret, "ClientHandshakeTrafficSecret", 98;
        server_handshake_traffic_secret, "ServerHandshakeTrafficSecret", 162;
        client_traffic_secret0, "ClientTrafficSecret0", 226;
        server_traffic_secret0, "ServerTrafficSecret0", 290;
    } bits {
        "IsSet.ClientRandom", is_set, Self::CLIENT_RANDOM, 1;
        "IsSet.ClientEarlyTrafficSecret", is_set, Self::CLIENT_EARLY_TRAFFIC_SECRET, 1;
        "IsSet.ClientHandshakeTrafficSecret", is_set, Self::CLIENT_HANDSHAKE_TRAFFIC_SECRET, 1;
        "IsSet.ServerHandshakeTrafficSecret", is_set, Self::SERVER_HANDSHAKE_TRAFFIC_SECRET, 1;
        "IsSet.ClientTrafficSecret0", is_set, Self::CLIENT_TRAFFIC_SECRET0, 1;
        "IsSet.ServerTrafficSecret0", is_set, Self::SERVER_TRAFFIC_SECRET0, 1;
    }
}

/// A key that protects resumption tickets; a parameter of configurations. The first one protects new tickets, all of
/// them open old ones.
///
/// In C: `QUIC_TICKET_KEY_CONFIG`.
#[repr(C)]
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct TicketKeyConfig {
    /// By what a ticket names it.
    pub id: [u8; 16],
    /// From what it is made.
    pub material: [u8; 64],
    /// Bytes of that; at most 64.
    pub material_length: u8,
}

layout! {
    TicketKeyConfig, "QUIC_TICKET_KEY_CONFIG", 81 {
        id, "Id", 0;
        material, "Material", 16;
        material_length, "MaterialLength", 80;
    }
}

/// From what the keys of Retry tokens are made, which several servers may share; a parameter of the library.
///
/// In C: `QUIC_STATELESS_RETRY_CONFIG`.
#[repr(C)]
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct StatelessRetryConfig {
    /// What the keys are for.
    pub algorithm: AeadAlgorithmType,
    /// How long a key is used, in milliseconds; 30,000 if nothing is set.
    pub rotation_ms: u32,
    /// Bytes of the secret: 16 or 32, as the algorithm has it.
    pub secret_length: u32,
    /// The secret.
    pub secret: *const u8,
}

layout! {
    StatelessRetryConfig, "QUIC_STATELESS_RETRY_CONFIG", 24 {
        algorithm, "Algorithm", 0;
        rotation_ms, "RotationMs", 4;
        secret_length, "SecretLength", 8;
        secret, "Secret", 16;
    }
}

/// What keying material is asked for (RFC 8446, section 7.5; preview).
///
/// In C: `QUIC_KEYING_MATERIAL_CONFIG`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct KeyingMaterialConfig {
    /// What it is for, ended by a zero byte.
    pub label: *const c_char,
    /// Bytes of the context.
    pub context_length: u32,
    /// The context; null if there is none.
    pub context: *const u8,
    /// Bytes that are wanted.
    pub output_length: u32,
}

layout! {
    KeyingMaterialConfig, "QUIC_KEYING_MATERIAL_CONFIG", 32 {
        label, "Label", 0;
        context_length, "ContextLength", 8;
        context, "Context", 16;
        output_length, "OutputLength", 24;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_byte_is_an_alert() {
        assert_eq!(TlsAlertCode::CERTIFICATE_REQUIRED.alert(), Some(116));
        assert_eq!(TlsAlertCode::MAX.alert(), Some(255));
        assert_eq!(TlsAlertCode::SUCCESS.alert(), None);
    }

    #[test]
    fn bits_are_set_and_taken_back_alone() {
        let none = TlsSecrets {
            secret_length: 0,
            is_set: 0,
            client_random: [0; 32],
            client_early_traffic_secret: [0; 64],
            client_handshake_traffic_secret: [0; 64],
            server_handshake_traffic_secret: [0; 64],
            client_traffic_secret0: [0; 64],
            server_traffic_secret0: [0; 64],
        };
        let two = none.with_client_random(true).with_server_traffic_secret0(true);
        assert_eq!(two.is_set, 0b10_0001);
        assert!(two.has_client_random() && two.has_server_traffic_secret0());
        assert_eq!(two.with_client_random(false).is_set, 0b10_0000);
    }
}
