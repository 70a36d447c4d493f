//! Connecting: names are looked up, and their addresses tried one after the other.

use super::connection::Connection;
use super::endpoint::{Endpoint, Trust};
use super::{information, lost, transport};
use crate::abi;
use crate::border::call;
use crate::failure::Failure;
use crate::given;
use crate::handles;
use crate::subject::Subject;
use godwit::ClientConfig;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;

const FLAGS: u32 =
    abi::CONNECT_ACCEPT_ANY_CERTIFICATE | abi::CONNECT_EARLY_DATA | abi::CONNECT_ONLY_ROOTS_FILE;

/// Where to.
struct Target {
    host: String,
    port: u16,
    name: String,
    config: ClientConfig,
    early: bool,
}

/// `example.com:4433`, `[::1]:4433` taken apart.
fn host_and_port(address: &str) -> Result<(String, u16), Failure> {
    let wrong = || {
        let shown = address.escape_debug();
        Failure::argument(format!(
            "\"{shown}\" is no address with a port; write it as example.com:4433 or [::1]:4433"
        ))
    };
    let (host, port) = address.rsplit_once(':').ok_or_else(wrong)?;
    let port = port.parse().map_err(|_| wrong())?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if host.is_empty() || (host.contains(':') && host.parse::<IpAddr>().is_err()) {
        return Err(wrong());
    }
    Ok((host.to_owned(), port))
}

/// # Safety
/// What the options point to is there.
unsafe fn target(
    endpoint: &Endpoint,
    options: &abi::ConnectOptions,
) -> Result<(Target, transport::Limits), Failure> {
    given::flags(options.flags, FLAGS, "a connection")?;
    let has = |flag| options.flags & flag != 0;
    // SAFETY: the caller's promise.
    unsafe {
        let (host, port) = host_and_port(given::text(options.address, "the address")?)?;
        let name = given::text_if_any(options.server_name, "server_name")?.unwrap_or(&host).to_owned();
        let alpn = given::texts(options.alpn, options.alpn_count, "alpn")?;
        if alpn.is_empty() {
            return Err(Failure::argument("a client offers one protocol at least; name it in alpn"));
        }
        let trust = Trust {
            anybody: has(abi::CONNECT_ACCEPT_ANY_CERTIFICATE),
            only_file: has(abi::CONNECT_ONLY_ROOTS_FILE),
            file: given::file(options.roots_file, "roots_file")?,
        };
        if trust.only_file && trust.file.is_none() {
            let text = "only what is in roots_file is to be trusted, and that is NULL; name a file";
            return Err(Failure::argument(text));
        }
        let (transport, limits) = transport::read(options.transport)?;
        let early = has(abi::CONNECT_EARLY_DATA);
        let builder = endpoint.config(trust)?.to_builder().alpn(alpn).early_data(early).transport(transport);
        let config = builder.build().map_err(|error| lost::config(&error))?;
        Ok((Target { host, port, name, config, early }, limits))
    }
}

async fn resolve(target: &Target) -> Result<Vec<SocketAddr>, Failure> {
    if let Ok(address) = target.host.parse::<IpAddr>() {
        return Ok(vec![(address, target.port).into()]);
    }
    let absent = |why: String| {
        Failure::new(abi::ERROR_RESOLVE, format!("{} has no address: {why}", target.host.escape_debug()))
    };
    let found = tokio::net::lookup_host((target.host.as_str(), target.port)).await;
    let found: Vec<_> = found.map_err(|error| absent(error.to_string()))?.collect();
    if found.is_empty() { Err(absent("nothing was found".to_owned())) } else { Ok(found) }
}

/// Connects to one address.
async fn try_one(
    connection: &Connection,
    endpoint: &Endpoint,
    target: &Target,
    address: SocketAddr,
) -> Result<godwit::Connection, Failure> {
    let connecting = endpoint.inner.connect(&target.config, address, &target.name);
    let connecting = connecting.map_err(|error| lost::connect(&error))?;
    let connecting = match connecting.into_early() {
        Ok(early) if target.early => {
            connection.settle(Ok(early.clone()));
            early.connected().await.map_err(|error| lost::connection(&error))?;
            return Ok(early);
        }
        // It was not asked for, so that it is not there.
        Ok(early) => {
            return early.connected().await.map(|_| early.clone()).map_err(|error| lost::connection(&error));
        }
        Err(connecting) => connecting,
    };
    connecting.await.map_err(|error| lost::connection(&error))
}

async fn run(connection: Arc<Connection>, endpoint: Arc<Endpoint>, target: Target) {
    let attempts = async {
        let mut outcome = Err(Failure::new(abi::ERROR_RESOLVE, "there is no address to try"));
        for address in resolve(&target).await? {
            outcome = try_one(&connection, &endpoint, &target, address).await;
            let is_final = outcome.is_ok() || connection.check_open().is_err();
            if is_final || connection.inner().is_ok() {
                break;
            }
        }
        outcome
    };
    let Some(outcome) = connection.subject.unless_closed(attempts).await else { return };
    match outcome {
        Ok(inner) => establish(connection, inner).await,
        Err(failure) => match connection.inner() {
            // It was told of before the handshake, which then failed.
            Ok(early) => connection.work(early).await,
            Err(_) => connection.fail(failure),
        },
    }
}

async fn establish(connection: Arc<Connection>, inner: godwit::Connection) {
    if connection.check_open().is_err() {
        // It was broken off meanwhile.
        return inner.close(godwit::ApplicationCode::default(), b"");
    }
    connection.settle(Ok(inner.clone()));
    let event = connection.subject.event(abi::EVENT_CONNECTED);
    connection.subject.tell(event.lending(|lent| lent.connection = Some(Box::new(information::of(&inner)))));
    connection.work(inner).await;
}

// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn godwit_endpoint_connect(
    endpoint: u64,
    options: *const abi::ConnectOptions,
    tag: u64,
    connection: *mut u64,
    error: *mut abi::Error,
) -> i32 {
    let act = || {
        given::place(connection, "the place for the connection's handle")?;
        let endpoint = handles::get::<Endpoint>(endpoint)?;
        if endpoint.is_shut_down.load(Ordering::Acquire) {
            return Err(Failure::new(abi::ERROR_CLOSED, "the endpoint was shut down; make another one"));
        }
        // SAFETY: the caller's promise.
        let (target, limits) = unsafe { target(&endpoint, &given::take(options)?) }?;
        let made = handles::insert(|handle| {
            let subject = Subject::of(&endpoint.subject, handle, tag);
            Arc::new(Connection::pending(subject, endpoint.runtime.clone(), limits))
        })?;
        endpoint.runtime.spawn(run(Arc::clone(&made), Arc::clone(&endpoint), target));
        // SAFETY: the caller's promise.
        unsafe { given::put(connection, made.subject.handle, "the place for the connection's handle") }
    };
    // SAFETY: the caller's promise.
    unsafe { call(error, act) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_host_and_a_port() {
        let parts = |text| host_and_port(text).ok();
        assert_eq!(parts("example.com:4433"), Some(("example.com".to_owned(), 4433)));
        assert_eq!(parts("[::1]:1"), Some(("::1".to_owned(), 1)));
        assert_eq!(parts("127.0.0.1:65535"), Some(("127.0.0.1".to_owned(), 65535)));
        for wrong in ["", "example.com", ":1", "a:b:1", "a:65536", "[]:1", "::1"] {
            let failure = host_and_port(wrong).unwrap_err();
            assert_eq!(failure.status, abi::ERROR_ARGUMENT, "{wrong}");
        }
    }
}
