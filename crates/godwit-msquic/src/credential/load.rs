//! What a program asks for when it loads credentials: its structure, checked and copied.
//!
//! The checks and their order are those of MsQuic on Linux, where the TLS library verifies certificates whether the
//! program asks for that or not, so that each combination that cannot be has the same status.
//!
//! Invariant: of a [`Request`] nothing points into memory of the program.

use crate::abi::{
    AllowedCipherSuiteFlags, CertificateFile, CertificateFileProtected, CertificatePkcs12, CredentialConfig,
    CredentialFlags, CredentialType, Status,
};
use std::ffi::{CStr, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use zeroize::Zeroizing;

/// Bytes of a password, without the zero byte that ends it. They are overwritten when they are dropped.
pub(super) type Password = Zeroizing<Vec<u8>>;

/// Flags of what OpenSSL does not do.
const NOT_SUPPORTED: CredentialFlags = CredentialFlags(
    CredentialFlags::ENABLE_OCSP.0
        | CredentialFlags::USE_SUPPLIED_CREDENTIALS.0
        | CredentialFlags::USE_SYSTEM_MAPPER.0
        | CredentialFlags::INPROC_PEER_CERTIFICATE.0,
);

/// Flags that say how the system verifies certificates, which it does not do on Linux.
const FOR_THE_SYSTEM: CredentialFlags = CredentialFlags(
    CredentialFlags::REVOCATION_CHECK_END_CERT.0
        | CredentialFlags::REVOCATION_CHECK_CHAIN.0
        | CredentialFlags::REVOCATION_CHECK_CHAIN_EXCLUDE_ROOT.0
        | CredentialFlags::IGNORE_NO_REVOCATION_CHECK.0
        | CredentialFlags::IGNORE_REVOCATION_OFFLINE.0
        | CredentialFlags::CACHE_ONLY_URL_RETRIEVAL.0
        | CredentialFlags::REVOCATION_CHECK_CACHE_ONLY.0
        | CredentialFlags::DISABLE_AIA.0,
);

/// Where the certificate and its key are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// There is none (clients).
    Nothing,
    /// In files of PEM.
    Files { key: PathBuf, chain: PathBuf, password: Option<Password> },
    /// In one piece (PKCS #12).
    Pkcs12 { bytes: Zeroizing<Vec<u8>>, password: Option<Password> },
}

/// Credentials that are to be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) flags: CredentialFlags,
    pub(super) source: Source,
    /// The cipher suites that may be used, if not all.
    pub(super) suites: Option<AllowedCipherSuiteFlags>,
    /// A file with who may sign certificates beside whom the system trusts.
    pub(super) authorities: Option<PathBuf>,
}

impl Request {
    /// Reads what a program has written.
    ///
    /// # Errors
    /// The status of MsQuic if that cannot be.
    ///
    /// # Safety
    /// The pointers that the type and the flags call for must be null or lead to what they are declared to lead to:
    /// structures that are aligned, texts that end with a zero byte, and as many bytes as are said to be there.
    pub(super) unsafe fn read(config: &CredentialConfig) -> Result<Self, Status> {
        let flags = config.flags;
        check_flags(config)?;
        // SAFETY: the caller's promise.
        let source = unsafe { read_source(config) }?;
        let suites = match flags.contains(CredentialFlags::SET_ALLOWED_CIPHER_SUITES) {
            true => Some(allowed(config.allowed_cipher_suites)?),
            false => None,
        };
        let authorities = match flags.contains(CredentialFlags::SET_CA_CERTIFICATE_FILE) {
            // SAFETY: the caller's promise.
            true => unsafe { text(config.ca_certificate_file) }.map(path),
            false => None,
        };
        Ok(Request { flags, source, suites, authorities })
    }
}

/// Says which flags cannot be, or cannot be together.
fn check_flags(config: &CredentialConfig) -> Result<(), Status> {
    let flags = config.flags;
    if flags.contains(CredentialFlags::LOAD_ASYNCHRONOUS) && config.async_handler.is_none() {
        return Err(Status::INVALID_PARAMETER);
    }
    if has_any(flags, NOT_SUPPORTED) {
        return Err(Status::NOT_SUPPORTED);
    }
    if flags.contains(CredentialFlags::DEFER_CERTIFICATE_VALIDATION)
        && !flags.contains(CredentialFlags::INDICATE_CERTIFICATE_RECEIVED)
    {
        return Err(Status::INVALID_PARAMETER);
    }
    if has_any(flags, FOR_THE_SYSTEM) || !config.reserved.is_null() {
        return Err(Status::INVALID_PARAMETER);
    }
    Ok(())
}

fn has_any(flags: CredentialFlags, of: CredentialFlags) -> bool {
    flags.0 & of.0 != 0
}

/// The suites that are known of those that are allowed, of which there must be one.
fn allowed(suites: AllowedCipherSuiteFlags) -> Result<AllowedCipherSuiteFlags, Status> {
    match suites.0 & !suites.unknown() {
        0 => Err(Status::INVALID_PARAMETER),
        known => Ok(AllowedCipherSuiteFlags(known)),
    }
}

/// # Safety
/// As [`Request::read`] has it.
unsafe fn read_source(config: &CredentialConfig) -> Result<Source, Status> {
    let certificate = config.certificate;
    let source = match config.kind {
        CredentialType::NONE => config.flags.contains(CredentialFlags::CLIENT).then_some(Source::Nothing),
        // SAFETY: the type says what the pointer leads to, by the caller's promise.
        CredentialType::CERTIFICATE_FILE => unsafe { read_files(certificate) },
        // SAFETY: as above.
        CredentialType::CERTIFICATE_FILE_PROTECTED => unsafe { read_protected_files(certificate) },
        // SAFETY: as above.
        CredentialType::CERTIFICATE_PKCS12 => unsafe { read_pkcs12(certificate) },
        // Those of Windows, and those that there are not.
        _ => return Err(Status::NOT_SUPPORTED),
    };
    source.ok_or(Status::INVALID_PARAMETER)
}

/// # Safety
/// The pointer must be null or lead to a [`CertificateFile`] with texts that end with a zero byte.
unsafe fn read_files(certificate: *const c_void) -> Option<Source> {
    // SAFETY: the caller's promise.
    let files = unsafe { certificate.cast::<CertificateFile>().as_ref() }?;
    // SAFETY: the caller's promise.
    let (key, chain) = unsafe { (text(files.private_key_file)?, text(files.certificate_file)?) };
    Some(Source::Files { key: path(key), chain: path(chain), password: None })
}

/// # Safety
/// The pointer must be null or lead to a [`CertificateFileProtected`] with texts that end with a zero byte.
unsafe fn read_protected_files(certificate: *const c_void) -> Option<Source> {
    // SAFETY: the caller's promise.
    let files = unsafe { certificate.cast::<CertificateFileProtected>().as_ref() }?;
    // SAFETY: the caller's promise.
    let (key, chain) = unsafe { (text(files.private_key_file)?, text(files.certificate_file)?) };
    // SAFETY: the caller's promise.
    let password = unsafe { text(files.private_key_password) }?;
    Some(Source::Files { key: path(key), chain: path(chain), password: Some(password) })
}

/// # Safety
/// The pointer must be null or lead to a [`CertificatePkcs12`] with as many bytes as it says, and a password that ends
/// with a zero byte, or null.
unsafe fn read_pkcs12(certificate: *const c_void) -> Option<Source> {
    // SAFETY: the caller's promise.
    let pkcs12 = unsafe { certificate.cast::<CertificatePkcs12>().as_ref() }?;
    if pkcs12.asn1_blob.is_null() || pkcs12.asn1_blob_length == 0 {
        return None;
    }
    // SAFETY: the caller's promise; the bytes are copied before the call ends.
    let bytes =
        unsafe { std::slice::from_raw_parts(pkcs12.asn1_blob, pkcs12.asn1_blob_length as usize) }.to_vec();
    // SAFETY: the caller's promise.
    let password = unsafe { text(pkcs12.private_key_password) };
    Some(Source::Pkcs12 { bytes: bytes.into(), password })
}

/// The bytes of a text, without the zero byte at its end; none if it is null.
///
/// # Safety
/// The pointer must be null or lead to bytes of which one is zero.
unsafe fn text(text: *const c_char) -> Option<Password> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller's promise; the bytes are copied before the call ends.
    Some(unsafe { CStr::from_ptr(text) }.to_bytes().to_vec().into())
}

fn path(bytes: Password) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::Handle;
    use crate::credential::testing::config;
    use std::ptr;

    type Type = CredentialType;
    type Flags = CredentialFlags;

    fn read(config: &CredentialConfig) -> Result<Request, Status> {
        // SAFETY: what the tests put there lives longer than the call.
        unsafe { Request::read(config) }
    }

    /// A client without a certificate, with these flags.
    fn read_client(flags: Flags) -> Result<Request, Status> {
        read(&config(Type::NONE, Flags::CLIENT | flags))
    }

    fn pointing_to<T>(kind: Type, to: &T) -> CredentialConfig {
        let mut config = config(kind, Flags::NONE);
        config.certificate = ptr::from_ref(to).cast_mut().cast();
        config
    }

    #[test]
    fn a_client_needs_no_certificate_and_a_server_does() {
        let request = read_client(Flags::NONE).unwrap();
        assert_eq!((request.source, request.suites, request.authorities), (Source::Nothing, None, None));
        assert_eq!(read(&config(Type::NONE, Flags::NONE)), Err(Status::INVALID_PARAMETER));
    }

    #[test]
    fn what_only_windows_has_is_not_supported() {
        for kind in [
            Type::CERTIFICATE_HASH,
            Type::CERTIFICATE_HASH_STORE,
            Type::CERTIFICATE_CONTEXT,
            CredentialType(7),
        ] {
            for flags in [Flags::NONE, Flags::CLIENT] {
                assert_eq!(read(&config(kind, flags)), Err(Status::NOT_SUPPORTED), "{kind:?}");
            }
        }
        for flag in [
            Flags::ENABLE_OCSP,
            Flags::USE_SUPPLIED_CREDENTIALS,
            Flags::USE_SYSTEM_MAPPER,
            Flags::INPROC_PEER_CERTIFICATE,
        ] {
            assert_eq!(read_client(flag), Err(Status::NOT_SUPPORTED), "{flag:?}");
        }
    }

    #[test]
    fn the_system_is_not_told_how_to_verify() {
        for flag in [
            Flags::REVOCATION_CHECK_END_CERT,
            Flags::REVOCATION_CHECK_CHAIN,
            Flags::REVOCATION_CHECK_CHAIN_EXCLUDE_ROOT,
            Flags::IGNORE_NO_REVOCATION_CHECK,
            Flags::IGNORE_REVOCATION_OFFLINE,
            Flags::CACHE_ONLY_URL_RETRIEVAL,
            Flags::REVOCATION_CHECK_CACHE_ONLY,
            Flags::DISABLE_AIA,
        ] {
            assert_eq!(read_client(flag), Err(Status::INVALID_PARAMETER), "{flag:?}");
        }
    }

    #[test]
    fn flags_that_change_nothing_here_are_taken() {
        for flag in [
            Flags::USE_TLS_BUILTIN_CERTIFICATE_VALIDATION,
            Flags::USE_PORTABLE_CERTIFICATES,
            Flags::NO_CERTIFICATE_VALIDATION,
            Flags::INDICATE_CERTIFICATE_RECEIVED,
            Flags::INDICATE_CERTIFICATE_RECEIVED | Flags::DEFER_CERTIFICATE_VALIDATION,
            Flags::REQUIRE_CLIENT_AUTHENTICATION,
            // Without a name for the file there is no file.
            Flags::SET_CA_CERTIFICATE_FILE,
        ] {
            assert_eq!(read_client(flag).unwrap().flags, Flags::CLIENT | flag);
        }
    }

    #[test]
    fn who_defers_judgement_must_be_told_of_the_certificate() {
        assert_eq!(read_client(Flags::DEFER_CERTIFICATE_VALIDATION), Err(Status::INVALID_PARAMETER));
    }

    #[test]
    fn who_loads_later_must_have_a_handler() {
        unsafe extern "C" fn handler(_: Handle, _: *mut c_void, _: Status) {}
        let mut config = config(Type::NONE, Flags::CLIENT | Flags::LOAD_ASYNCHRONOUS);
        assert_eq!(read(&config), Err(Status::INVALID_PARAMETER));
        config.async_handler = Some(handler);
        assert!(read(&config).is_ok());
    }

    #[test]
    fn what_is_reserved_stays_null() {
        let mut config = config(Type::NONE, Flags::CLIENT);
        config.reserved = ptr::dangling_mut();
        assert_eq!(read(&config), Err(Status::INVALID_PARAMETER));
    }

    #[test]
    fn the_first_thing_that_is_wrong_is_told() {
        let deferred = Flags::DEFER_CERTIFICATE_VALIDATION;
        assert_eq!(read_client(deferred | Flags::ENABLE_OCSP), Err(Status::NOT_SUPPORTED));
        let hash = config(Type::CERTIFICATE_HASH, Flags::CLIENT | Flags::DISABLE_AIA);
        assert_eq!(read(&hash), Err(Status::INVALID_PARAMETER));
        let mut suites = config(Type::CERTIFICATE_HASH, Flags::SET_ALLOWED_CIPHER_SUITES);
        suites.allowed_cipher_suites = AllowedCipherSuiteFlags::NONE;
        assert_eq!(read(&suites), Err(Status::NOT_SUPPORTED));
    }

    #[test]
    fn of_the_allowed_suites_one_must_be_known() {
        let suites = |suites| {
            let mut config = config(Type::NONE, Flags::CLIENT | Flags::SET_ALLOWED_CIPHER_SUITES);
            config.allowed_cipher_suites = AllowedCipherSuiteFlags(suites);
            read(&config).map(|request| request.suites)
        };
        assert_eq!(suites(0), Err(Status::INVALID_PARAMETER));
        assert_eq!(suites(0x8), Err(Status::INVALID_PARAMETER));
        assert_eq!(suites(0xc), Ok(Some(AllowedCipherSuiteFlags::CHACHA20_POLY1305_SHA256)));
        let mut unasked = config(Type::NONE, Flags::CLIENT);
        unasked.allowed_cipher_suites = AllowedCipherSuiteFlags(0x1);
        assert_eq!(read(&unasked).unwrap().suites, None);
    }

    #[test]
    fn files_have_both_names() {
        let files = |key: Option<&CStr>, chain: Option<&CStr>| {
            let pointer = |name: Option<&CStr>| name.map_or(ptr::null(), CStr::as_ptr);
            CertificateFile { private_key_file: pointer(key), certificate_file: pointer(chain) }
        };
        let (key, chain) = (Some(c"/a key"), Some(c"/a chain"));
        let read_files = |files: CertificateFile| read(&pointing_to(Type::CERTIFICATE_FILE, &files));
        let expected = Source::Files { key: "/a key".into(), chain: "/a chain".into(), password: None };
        assert_eq!(read_files(files(key, chain)).unwrap().source, expected);
        for (key, chain) in [(None, chain), (key, None), (None, None)] {
            assert_eq!(read_files(files(key, chain)), Err(Status::INVALID_PARAMETER));
        }
        assert_eq!(read(&config(Type::CERTIFICATE_FILE, Flags::NONE)), Err(Status::INVALID_PARAMETER));
    }

    #[test]
    fn protected_files_have_a_password_too() {
        let mut files = CertificateFileProtected {
            private_key_file: c"/a key".as_ptr(),
            certificate_file: c"/a chain".as_ptr(),
            private_key_password: c"secret".as_ptr(),
        };
        let read_files =
            |files: &CertificateFileProtected| read(&pointing_to(Type::CERTIFICATE_FILE_PROTECTED, files));
        let password = Some(b"secret".to_vec().into());
        let expected = Source::Files { key: "/a key".into(), chain: "/a chain".into(), password };
        assert_eq!(read_files(&files).unwrap().source, expected);
        files.private_key_password = ptr::null();
        assert_eq!(read_files(&files), Err(Status::INVALID_PARAMETER));
        (files.private_key_password, files.private_key_file) = (c"secret".as_ptr(), ptr::null());
        assert_eq!(read_files(&files), Err(Status::INVALID_PARAMETER));
        (files.private_key_file, files.certificate_file) = (c"/a key".as_ptr(), ptr::null());
        assert_eq!(read_files(&files), Err(Status::INVALID_PARAMETER));
        let nothing = config(Type::CERTIFICATE_FILE_PROTECTED, Flags::NONE);
        assert_eq!(read(&nothing), Err(Status::INVALID_PARAMETER));
    }

    #[test]
    fn a_piece_has_bytes_and_maybe_a_password() {
        let bytes = [1, 2, 3];
        let mut pkcs12 = CertificatePkcs12 {
            asn1_blob: bytes.as_ptr(),
            asn1_blob_length: 3,
            private_key_password: ptr::null(),
        };
        let read_piece = |pkcs12: &CertificatePkcs12| read(&pointing_to(Type::CERTIFICATE_PKCS12, pkcs12));
        let expected = |password| Source::Pkcs12 { bytes: bytes.to_vec().into(), password };
        assert_eq!(read_piece(&pkcs12).unwrap().source, expected(None));
        pkcs12.private_key_password = c"".as_ptr();
        assert_eq!(read_piece(&pkcs12).unwrap().source, expected(Some(Vec::new().into())));
        pkcs12.asn1_blob_length = 0;
        assert_eq!(read_piece(&pkcs12), Err(Status::INVALID_PARAMETER));
        (pkcs12.asn1_blob, pkcs12.asn1_blob_length) = (ptr::null(), 3);
        assert_eq!(read_piece(&pkcs12), Err(Status::INVALID_PARAMETER));
        assert_eq!(read(&config(Type::CERTIFICATE_PKCS12, Flags::NONE)), Err(Status::INVALID_PARAMETER));
    }

    #[test]
    fn the_file_of_authorities_is_looked_at_if_the_flag_is_set() {
        let mut config = config(Type::NONE, Flags::CLIENT);
        config.ca_certificate_file = c"/authorities".as_ptr();
        assert_eq!(read(&config).unwrap().authorities, None);
        config.flags = Flags::CLIENT | Flags::SET_CA_CERTIFICATE_FILE;
        assert_eq!(read(&config).unwrap().authorities, Some("/authorities".into()));
    }
}
