//! What a client is to be like, and why it cannot.

use crate::abi;
use crate::failure::Failure;
use crate::given;
use godwit_client::trust::Roots;
use godwit_client::{BuildError, Client, ClientBuilder, Family, Versions};

const FLAGS: u32 = abi::CLIENT_ACCEPT_ANY_CERTIFICATE
    | abi::CLIENT_ONLY_ROOTS_FILE
    | abi::CLIENT_NO_REDIRECTS
    | abi::CLIENT_PROXY_FROM_ENVIRONMENT
    | abi::CLIENT_EARLY_DATA;

/// What the options say.
///
/// # Safety
/// The texts that they point to are there.
pub(super) unsafe fn builder(options: &abi::ClientOptions) -> Result<ClientBuilder, Failure> {
    given::flags(options.flags, FLAGS, "a client")?;
    let has = |flag| options.flags & flag != 0;
    // SAFETY: the caller's promise.
    let (roots, memory, sessions, proxy) = unsafe {
        (
            given::file(options.roots_file, "roots_file")?,
            given::file(options.memory_file, "memory_file")?,
            given::file(options.session_file, "session_file")?,
            given::text_if_any(options.proxy, "proxy")?,
        )
    };
    let mut builder = Client::builder().family(family(options.family)?);
    builder = match (has(abi::CLIENT_ONLY_ROOTS_FILE), roots) {
        (false, None) => builder,
        (false, Some(file)) => builder.root_file(file),
        (true, file) => builder.roots(only(file)?),
    };
    if has(abi::CLIENT_ACCEPT_ANY_CERTIFICATE) {
        builder = builder.danger_accept_any_certificate();
    }
    if has(abi::CLIENT_PROXY_FROM_ENVIRONMENT) {
        builder = builder.proxy_from_environment();
    }
    if let Some(proxy) = proxy {
        builder = builder.proxy(proxy);
    }
    if let Some(file) = memory {
        builder = builder.memory_file(file);
    }
    if let Some(file) = sessions {
        builder = builder.session_file(file).early_data(has(abi::CLIENT_EARLY_DATA));
    }
    if let Some(versions) = versions(options.versions)? {
        builder = builder.versions(versions);
    }
    if let Some(limit) = given::time(options.connect_timeout_ms) {
        builder = builder.connect_timeout(limit);
    }
    if let Some(limit) = given::time(options.timeout_ms) {
        builder = builder.timeout(limit);
    }
    if let Some(time) = given::time(options.idle_timeout_ms) {
        builder = builder.idle_timeout(time);
    }
    Ok(match redirects(options.max_redirects, has(abi::CLIENT_NO_REDIRECTS))? {
        Some(most) => builder.max_redirects(most),
        None => builder,
    })
}

/// Those in a file alone.
fn only(file: Option<std::path::PathBuf>) -> Result<Roots, Failure> {
    let file = file.ok_or_else(|| {
        Failure::argument("only what is in roots_file is to be trusted, and that is NULL; name a file")
    })?;
    crate::quic::roots(Some(&file), true)
}

fn redirects(most: u32, none: bool) -> Result<Option<u8>, Failure> {
    match (most, none) {
        (_, true) => Ok(Some(0)),
        (0, false) => Ok(None),
        (most, false) => {
            let wrong = |_| Failure::argument(format!("max_redirects is {most}, expected 255 at most"));
            u8::try_from(most).map(Some).map_err(wrong)
        }
    }
}

fn family(number: u32) -> Result<Family, Failure> {
    Ok(match number {
        abi::FAMILY_ANY => Family::Any,
        abi::FAMILY_IPV4 => Family::V4,
        abi::FAMILY_IPV6 => Family::V6,
        other => {
            return Err(Failure::argument(format!(
                "the family is {other}, expected one of GODWIT_FAMILY_..."
            )));
        }
    })
}

/// Versions of HTTP; `None` for those of whoever has a default.
pub(super) fn versions(number: u32) -> Result<Option<Versions>, Failure> {
    Ok(Some(match number {
        abi::VERSIONS_DEFAULT => return Ok(None),
        abi::VERSIONS_AUTO => Versions::Auto,
        abi::VERSIONS_HTTP_1 => Versions::Http1,
        abi::VERSIONS_HTTP_2 => Versions::Http2,
        abi::VERSIONS_HTTP_3 => Versions::Http3,
        abi::VERSIONS_TCP => Versions::Tcp,
        other => {
            return Err(Failure::argument(format!(
                "versions is {other}, expected one of GODWIT_VERSIONS_..."
            )));
        }
    }))
}

/// Why there is no client.
pub(super) fn failure(error: &BuildError) -> Failure {
    let status = match error {
        BuildError::Tls(_) => abi::ERROR_TLS,
        BuildError::Proxy { .. } => abi::ERROR_ARGUMENT,
        _ => abi::ERROR_FILE,
    };
    Failure::new(status, error.to_string())
}
