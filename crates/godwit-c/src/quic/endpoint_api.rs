//! The functions for endpoints.

use super::endpoint::Endpoint;
use super::transport::{self, Limits};
use super::{lost, socket_address};
use crate::abi::{self, Plain};
use crate::border::call;
use crate::failure::Failure;
use crate::given;
use crate::handles;
use crate::queue::Queue;
use crate::runtime;
use crate::subject::Subject;
use crate::words::fixed;
use godwit::ServerConfig;
use std::ffi::c_char;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

/// Clients that may send ahead of the handshake, that are remembered.
const EARLY_SESSIONS: usize = 1 << 16;

/// An endpoint that has been looked at.
struct Wanted {
    address: Option<SocketAddr>,
    server: Option<ServerConfig>,
    limits: Limits,
    max_connections: u64,
}

/// # Safety
/// What the options point to is there.
unsafe fn wanted(options: &abi::EndpointOptions) -> Result<Wanted, Failure> {
    given::flags(options.flags, abi::ENDPOINT_RETRY | abi::ENDPOINT_EARLY_DATA, "an endpoint")?;
    // SAFETY: the caller's promise.
    unsafe {
        let address = given::text_if_any(options.address, "the address")?.map(socket_address).transpose()?;
        let chain = given::file(options.certificate_file, "certificate_file")?;
        let key = given::file(options.key_file, "key_file")?;
        let alpn = given::texts(options.alpn, options.alpn_count, "alpn")?;
        let (transport, limits) = transport::read(options.transport)?;
        let server = match (chain, key) {
            (None, None) => None,
            (Some(_), Some(_)) if alpn.is_empty() => {
                return Err(Failure::argument("a server speaks one protocol at least; name it in alpn"));
            }
            (Some(chain), Some(key)) => {
                let retry = options.flags & abi::ENDPOINT_RETRY != 0;
                let builder =
                    ServerConfig::from_pem_files(chain, key).alpn(alpn).transport(transport).retry(retry);
                let early = options.flags & abi::ENDPOINT_EARLY_DATA != 0;
                let builder = if early { builder.early_data(EARLY_SESSIONS) } else { builder };
                Some(builder.build().map_err(|error| lost::config(&error))?)
            }
            _ => {
                let text = "certificate_file and key_file belong together; give both, or neither";
                return Err(Failure::argument(text));
            }
        };
        Ok(Wanted { address, server, limits, max_connections: options.max_connections })
    }
}

/// Binds it; at any address if none is said, which is none of IPv6 where the system has none.
fn bind(wanted: &Wanted) -> io::Result<godwit::Endpoint> {
    let at = |address: SocketAddr| {
        let mut builder = godwit::Endpoint::builder().bind(address);
        if let Some(server) = &wanted.server {
            builder = builder.server(server.clone());
        }
        if wanted.max_connections != 0 {
            builder = builder.max_connections(usize::try_from(wanted.max_connections).unwrap_or(usize::MAX));
        }
        builder.build()
    };
    match wanted.address {
        Some(address) => at(address),
        None => at((Ipv6Addr::UNSPECIFIED, 0).into()).or_else(|_| at((Ipv4Addr::UNSPECIFIED, 0).into())),
    }
}

// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn godwit_endpoint_create(
    queue: u64,
    options: *const abi::EndpointOptions,
    tag: u64,
    endpoint: *mut u64,
    error: *mut abi::Error,
) -> i32 {
    let act = || {
        given::place(endpoint, "the place for the endpoint's handle")?;
        let queue = handles::get::<Queue>(queue)?;
        // SAFETY: the caller's promise.
        let options = unsafe { given::take_or_default(options) }?;
        // SAFETY: the caller's promise.
        let wanted = unsafe { wanted(&options) }?;
        let runtime = runtime::find(options.runtime)?;
        let inner = {
            let _within = runtime.enter();
            bind(&wanted)
                .map_err(|error| Failure::system("cannot bind the address of the endpoint", &error))?
        };
        let made = handles::insert(|handle| {
            let subject = Subject::new(handle, tag, queue);
            Arc::new(Endpoint::new(subject, runtime.clone(), inner, wanted.limits))
        })?;
        if wanted.server.is_some() {
            runtime.spawn(Arc::clone(&made).accept());
        }
        // SAFETY: the caller's promise.
        unsafe { given::put(endpoint, made.subject.handle, "the place for the endpoint's handle") }
    };
    // SAFETY: the caller's promise.
    unsafe { call(error, act) }
}

// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn godwit_endpoint_address(
    endpoint: u64,
    address: *mut abi::Address,
    error: *mut abi::Error,
) -> i32 {
    let act = || {
        let local = handles::get::<Endpoint>(endpoint)?.inner.local_addr();
        let local = local.map_err(|error| Failure::system("the endpoint has no address", &error))?;
        let text = fixed(&local.to_string()).0;
        // SAFETY: the caller's promise.
        unsafe { given::give(address, &abi::Address { text, ..abi::Address::zeroed() }) }
    };
    // SAFETY: the caller's promise.
    unsafe { call(error, act) }
}

// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn godwit_endpoint_rebind(
    endpoint: u64,
    address: *const c_char,
    error: *mut abi::Error,
) -> i32 {
    let act = || {
        let endpoint = handles::get::<Endpoint>(endpoint)?;
        // SAFETY: the caller's promise.
        let address = socket_address(unsafe { given::text(address, "the address") }?)?;
        let _within = endpoint.runtime.enter();
        let rebound = endpoint.inner.rebind(address);
        rebound.map(drop).map_err(|error| Failure::system("cannot bind that address", &error))
    };
    // SAFETY: the caller's promise.
    unsafe { call(error, act) }
}

// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn godwit_endpoint_shutdown(
    endpoint: u64,
    code: u64,
    reason: *const c_char,
    error: *mut abi::Error,
) -> i32 {
    let act = || {
        let endpoint = handles::get::<Endpoint>(endpoint)?;
        // SAFETY: the caller's promise.
        let reason = unsafe { given::text_if_any(reason, "the reason") }?.unwrap_or_default();
        endpoint.shut_down(given::code(code)?, reason)
    };
    // SAFETY: the caller's promise.
    unsafe { call(error, act) }
}
