//! Certificates, keys, and how the peer's are judged.

use super::basic::Handle;
use super::layout::{codes, flags, layout};
use super::status::Status;
use super::tls::AllowedCipherSuiteFlags;
use std::ffi::{c_char, c_void};

codes! {
    /// What the pointer in [`CredentialConfig`] leads to.
    CredentialType(u32), "QUIC_CREDENTIAL_TYPE" {
        /// To nothing: a client without a certificate.
        NONE = 0, "QUIC_CREDENTIAL_TYPE_NONE";
        /// To [`CertificateHash`] (Windows).
        CERTIFICATE_HASH = 1, "QUIC_CREDENTIAL_TYPE_CERTIFICATE_HASH";
        /// To [`CertificateHashStore`] (Windows).
        CERTIFICATE_HASH_STORE = 2, "QUIC_CREDENTIAL_TYPE_CERTIFICATE_HASH_STORE";
        /// To a certificate of the system's (Windows).
        CERTIFICATE_CONTEXT = 3, "QUIC_CREDENTIAL_TYPE_CERTIFICATE_CONTEXT";
        /// To [`CertificateFile`].
        CERTIFICATE_FILE = 4, "QUIC_CREDENTIAL_TYPE_CERTIFICATE_FILE";
        /// To [`CertificateFileProtected`].
        CERTIFICATE_FILE_PROTECTED = 5, "QUIC_CREDENTIAL_TYPE_CERTIFICATE_FILE_PROTECTED";
        /// To [`CertificatePkcs12`].
        CERTIFICATE_PKCS12 = 6, "QUIC_CREDENTIAL_TYPE_CERTIFICATE_PKCS12";
    }
}

flags! {
    /// How credentials are used.
    CredentialFlags(u32), "QUIC_CREDENTIAL_FLAGS" {
        /// A server's, loaded within the call.
        NONE = 0, "QUIC_CREDENTIAL_FLAG_NONE";
        /// They are a client's.
        CLIENT = 0x1, "QUIC_CREDENTIAL_FLAG_CLIENT";
        /// The call returns before they are loaded, and the handler is called then.
        LOAD_ASYNCHRONOUS = 0x2, "QUIC_CREDENTIAL_FLAG_LOAD_ASYNCHRONOUS";
        /// The peer's certificate is not verified.
        NO_CERTIFICATE_VALIDATION = 0x4, "QUIC_CREDENTIAL_FLAG_NO_CERTIFICATE_VALIDATION";
        /// OCSP responses are stapled (Windows).
        ENABLE_OCSP = 0x8, "QUIC_CREDENTIAL_FLAG_ENABLE_OCSP";
        /// There is an event when the peer's certificate has come.
        INDICATE_CERTIFICATE_RECEIVED = 0x10, "QUIC_CREDENTIAL_FLAG_INDICATE_CERTIFICATE_RECEIVED";
        /// What is wrong with it is told in that event, in place of ending the handshake.
        DEFER_CERTIFICATE_VALIDATION = 0x20, "QUIC_CREDENTIAL_FLAG_DEFER_CERTIFICATE_VALIDATION";
        /// A server demands a certificate of clients.
        REQUIRE_CLIENT_AUTHENTICATION = 0x40, "QUIC_CREDENTIAL_FLAG_REQUIRE_CLIENT_AUTHENTICATION";
        /// The TLS library verifies the certificate, and not the system.
        USE_TLS_BUILTIN_CERTIFICATE_VALIDATION = 0x80, "QUIC_CREDENTIAL_FLAG_USE_TLS_BUILTIN_CERTIFICATE_VALIDATION";
        /// The revocation of the last certificate of the chain is looked up (Windows).
        REVOCATION_CHECK_END_CERT = 0x100, "QUIC_CREDENTIAL_FLAG_REVOCATION_CHECK_END_CERT";
        /// That of the whole chain (Windows).
        REVOCATION_CHECK_CHAIN = 0x200, "QUIC_CREDENTIAL_FLAG_REVOCATION_CHECK_CHAIN";
        /// That of the chain but for its root (Windows).
        REVOCATION_CHECK_CHAIN_EXCLUDE_ROOT = 0x400, "QUIC_CREDENTIAL_FLAG_REVOCATION_CHECK_CHAIN_EXCLUDE_ROOT";
        /// Certificates that do not say where to look it up will do (Windows).
        IGNORE_NO_REVOCATION_CHECK = 0x800, "QUIC_CREDENTIAL_FLAG_IGNORE_NO_REVOCATION_CHECK";
        /// So will those for which the place does not answer (Windows).
        IGNORE_REVOCATION_OFFLINE = 0x1000, "QUIC_CREDENTIAL_FLAG_IGNORE_REVOCATION_OFFLINE";
        /// The cipher suites are those that are listed.
        SET_ALLOWED_CIPHER_SUITES = 0x2000, "QUIC_CREDENTIAL_FLAG_SET_ALLOWED_CIPHER_SUITES";
        /// The event holds the peer's certificate as DER and its chain as PKCS #7, each in a [`Buffer`](super::Buffer).
        USE_PORTABLE_CERTIFICATES = 0x4000, "QUIC_CREDENTIAL_FLAG_USE_PORTABLE_CERTIFICATES";
        /// Credentials are those that were given, not those of the user (Windows).
        USE_SUPPLIED_CREDENTIALS = 0x8000, "QUIC_CREDENTIAL_FLAG_USE_SUPPLIED_CREDENTIALS";
        /// The system finds the user of a certificate (Windows).
        USE_SYSTEM_MAPPER = 0x1_0000, "QUIC_CREDENTIAL_FLAG_USE_SYSTEM_MAPPER";
        /// What is missing of a chain is looked for on this machine only (Windows).
        CACHE_ONLY_URL_RETRIEVAL = 0x2_0000, "QUIC_CREDENTIAL_FLAG_CACHE_ONLY_URL_RETRIEVAL";
        /// So is revocation (Windows).
        REVOCATION_CHECK_CACHE_ONLY = 0x4_0000, "QUIC_CREDENTIAL_FLAG_REVOCATION_CHECK_CACHE_ONLY";
        /// The peer's certificate is handled in this process (Windows).
        INPROC_PEER_CERTIFICATE = 0x8_0000, "QUIC_CREDENTIAL_FLAG_INPROC_PEER_CERTIFICATE";
        /// Who may sign certificates stands in the file that is named.
        SET_CA_CERTIFICATE_FILE = 0x10_0000, "QUIC_CREDENTIAL_FLAG_SET_CA_CERTIFICATE_FILE";
        /// What is missing of a chain is not looked for (Windows).
        DISABLE_AIA = 0x20_0000, "QUIC_CREDENTIAL_FLAG_DISABLE_AIA";
    }
}

flags! {
    /// Where a certificate is looked for (Windows).
    CertificateHashStoreFlags(u32), "QUIC_CERTIFICATE_HASH_STORE_FLAGS" {
        /// Among those of the user.
        NONE = 0, "QUIC_CERTIFICATE_HASH_STORE_FLAG_NONE";
        /// Among those of the machine.
        MACHINE_STORE = 0x1, "QUIC_CERTIFICATE_HASH_STORE_FLAG_MACHINE_STORE";
    }
}

/// A certificate by its hash (Windows).
///
/// In C: `QUIC_CERTIFICATE_HASH`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CertificateHash {
    /// SHA-1 of the certificate.
    pub sha_hash: [u8; 20],
}

layout! { CertificateHash, "QUIC_CERTIFICATE_HASH", 20 { sha_hash, "ShaHash", 0; } }

/// A certificate by its hash and where it is kept (Windows).
///
/// In C: `QUIC_CERTIFICATE_HASH_STORE`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CertificateHashStore {
    /// Whose it is.
    pub flags: CertificateHashStoreFlags,
    /// SHA-1 of the certificate.
    pub sha_hash: [u8; 20],
    /// The name of the place, ended by a zero byte.
    pub store_name: [c_char; 128],
}

layout! {
    CertificateHashStore, "QUIC_CERTIFICATE_HASH_STORE", 152 {
        flags, "Flags", 0;
        sha_hash, "ShaHash", 4;
        store_name, "StoreName", 24;
    }
}

/// A certificate chain and its key in files of PEM.
///
/// In C: `QUIC_CERTIFICATE_FILE`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CertificateFile {
    /// The path of the key, ended by a zero byte.
    pub private_key_file: *const c_char,
    /// The path of the chain, ended by a zero byte.
    pub certificate_file: *const c_char,
}

layout! {
    CertificateFile, "QUIC_CERTIFICATE_FILE", 16 {
        private_key_file, "PrivateKeyFile", 0;
        certificate_file, "CertificateFile", 8;
    }
}

/// The same with a key that a password protects.
///
/// In C: `QUIC_CERTIFICATE_FILE_PROTECTED`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CertificateFileProtected {
    /// The path of the key, ended by a zero byte.
    pub private_key_file: *const c_char,
    /// The path of the chain, ended by a zero byte.
    pub certificate_file: *const c_char,
    /// The password, ended by a zero byte.
    pub private_key_password: *const c_char,
}

layout! {
    CertificateFileProtected, "QUIC_CERTIFICATE_FILE_PROTECTED", 24 {
        private_key_file, "PrivateKeyFile", 0;
        certificate_file, "CertificateFile", 8;
        private_key_password, "PrivateKeyPassword", 16;
    }
}

/// A certificate chain and its key in one piece (PKCS #12, RFC 7292).
///
/// In C: `QUIC_CERTIFICATE_PKCS12`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CertificatePkcs12 {
    /// Where it begins.
    pub asn1_blob: *const u8,
    /// Bytes of it.
    pub asn1_blob_length: u32,
    /// The password, ended by a zero byte; null if there is none.
    pub private_key_password: *const c_char,
}

layout! {
    CertificatePkcs12, "QUIC_CERTIFICATE_PKCS12", 24 {
        asn1_blob, "Asn1Blob", 0;
        asn1_blob_length, "Asn1BlobLength", 8;
        private_key_password, "PrivateKeyPassword", 16;
    }
}

/// What is called when credentials have been loaded: with the configuration, its context and how it went.
///
/// In C: `QUIC_CREDENTIAL_LOAD_COMPLETE_HANDLER`.
pub type CredentialLoadCompleteHandler =
    Option<unsafe extern "C" fn(configuration: Handle, context: *mut c_void, status: Status)>;

/// The credentials of a configuration.
///
/// In C: `QUIC_CREDENTIAL_CONFIG`. What is one pointer here is a union of pointers there.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct CredentialConfig {
    /// What the pointer leads to.
    pub kind: CredentialType,
    /// How they are used.
    pub flags: CredentialFlags,
    /// The certificate.
    pub certificate: *mut c_void,
    /// The name of a user or host, ended by a zero byte (Windows); may be null.
    pub principal: *const c_char,
    /// Of no use.
    pub reserved: *mut c_void,
    /// What is called when they are loaded, if that goes on after the call.
    pub async_handler: CredentialLoadCompleteHandler,
    /// The cipher suites that may be used, if the flags say so.
    pub allowed_cipher_suites: AllowedCipherSuiteFlags,
    /// The path of a file of PEM with who may sign certificates, ended by a zero byte, if the flags say so.
    pub ca_certificate_file: *const c_char,
}

layout! {
    CredentialConfig, "QUIC_CREDENTIAL_CONFIG", 56 {
        kind, "Type", 0;
        flags, "Flags", 4;
        certificate, "CertificateHash", 8;
        certificate, "CertificateHashStore", 8;
        certificate, "CertificateContext", 8;
        certificate, "CertificateFile", 8;
        certificate, "CertificateFileProtected", 8;
        certificate, "CertificatePkcs12", 8;
        principal, "Principal", 16;
        reserved, "Reserved", 24;
        async_handler, "AsyncHandler", 32;
        allowed_cipher_suites, "AllowedCipherSuites", 40;
        ca_certificate_file, "CaCertificateFile", 48;
    }
}

impl CredentialConfig {
    /// The pointer, if the type says that it leads to files.
    pub fn certificate_file(&self) -> Option<*const CertificateFile> {
        self.pointer_of(CredentialType::CERTIFICATE_FILE)
    }

    /// The pointer, if the type says that it leads to files of which the key has a password.
    pub fn certificate_file_protected(&self) -> Option<*const CertificateFileProtected> {
        self.pointer_of(CredentialType::CERTIFICATE_FILE_PROTECTED)
    }

    /// The pointer, if the type says that it leads to PKCS #12.
    pub fn certificate_pkcs12(&self) -> Option<*const CertificatePkcs12> {
        self.pointer_of(CredentialType::CERTIFICATE_PKCS12)
    }

    /// The pointer, if it is of this type. It may be null whatever the type.
    fn pointer_of<T>(&self, kind: CredentialType) -> Option<*const T> {
        (self.kind == kind).then_some(self.certificate.cast_const().cast())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::{null, null_mut};

    #[test]
    fn the_pointer_is_of_the_type_that_is_said() {
        let mut file = CertificateFile { private_key_file: null(), certificate_file: null() };
        let config = CredentialConfig {
            kind: CredentialType::CERTIFICATE_FILE,
            flags: CredentialFlags::NONE,
            certificate: (&raw mut file).cast(),
            principal: null(),
            reserved: null_mut(),
            async_handler: None,
            allowed_cipher_suites: AllowedCipherSuiteFlags::NONE,
            ca_certificate_file: null(),
        };
        assert_eq!(config.certificate_file(), Some(&raw const file));
        assert_eq!(config.certificate_file_protected(), None);
        assert_eq!(config.certificate_pkcs12(), None);
    }
}
