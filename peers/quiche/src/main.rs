//! quiche as a peer for the interop runner's cases, and to measure against; `peers/README.md` describes its command
//! line.
//!
//! It has no setting for cipher suites of TLS 1.3 or for key updates, and neither version 2, ECN nor preferred
//! addresses.

mod perf;
mod requests;
mod session;

use anyhow::{Context, Result, bail};
use peer_perf::{Measure, Serve};
use quiche::{Config, ConnectionId, Header, RecvInfo, Type};
use requests::Work;
use session::{Session, identity};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const UNSUPPORTED: i32 = 127;
const CASES: [&str; 7] = ["handshake", "transfer", "retry", "resumption", "zerortt", "multiconnect", "http3"];
/// A server takes what it is offered; a client would have to offer nothing else.
const SERVER_CASES: [&str; 1] = ["chacha20"];
/// In front of the original connection id in the token of a Retry. The peers meet on the loopback only.
const TOKEN: &[u8] = b"peer-quiche";
const NAP: Duration = Duration::from_millis(50);
const TICKET: Duration = Duration::from_secs(5);

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    match words.next().as_deref() {
        Some("perf-server") => perf::serve(&Serve::parse(words)?),
        Some("perf-client") => Ok(perf::measure(&Measure::parse(words)?)?.print()),
        _ => interop(),
    }
}

fn interop() -> Result<()> {
    let (mut flags, mut arguments) = (BTreeMap::new(), std::env::args().skip(2));
    while let (Some(name), Some(value)) = (arguments.next(), arguments.next()) {
        flags.insert(name, value);
    }
    let flag = |name: &str, default: &str| flags.get(name).cloned().unwrap_or(default.to_owned());
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let (case, server) = (variable("TESTCASE"), variable("ROLE") == "server");
    if !CASES.contains(&case.as_str()) && !(server && SERVER_CASES.contains(&case.as_str())) {
        eprintln!("peer: unsupported test case {case}");
        std::process::exit(UNSUPPORTED);
    }
    let mut config = settings(&case)?;
    if server {
        let certs = PathBuf::from(flag("--certs", "/certs"));
        let name = |file: &str| certs.join(file).to_string_lossy().into_owned();
        config.load_cert_chain_from_pem_file(&name("cert.pem"))?;
        config.load_priv_key_from_pem_file(&name("priv.key"))?;
        serve(&case, config, &PathBuf::from(flag("--www", "/www")), flag("--listen", "[::]:443").parse()?)
    } else {
        fetch(&case, config, &variable("REQUESTS"), &PathBuf::from(flag("--downloads", "/downloads")))
    }
}

fn settings(case: &str) -> Result<Config> {
    let mut config = Config::new(quiche::PROTOCOL_VERSION)?;
    let alpn: &[u8] = if case == "http3" { b"h3" } else { b"hq-interop" };
    config.set_application_protos(&[alpn])?;
    config.verify_peer(false);
    config.log_keys();
    config.set_max_idle_timeout(60_000);
    config.set_max_recv_udp_payload_size(1500);
    config.set_max_send_udp_payload_size(1350);
    config.set_initial_max_data(512 << 10);
    config.set_initial_max_stream_data_bidi_local(256 << 10);
    config.set_initial_max_stream_data_bidi_remote(256 << 10);
    config.set_initial_max_stream_data_uni(256 << 10);
    config.set_initial_max_streams_bidi(100);
    config.set_initial_max_streams_uni(100);
    config.set_active_connection_id_limit(4);
    if case == "zerortt" {
        config.enable_early_data();
        // All requests in the first flight.
        config.set_initial_congestion_window_packets(32);
    }
    Ok(config)
}

/// Waits for a datagram until then, at most for a nap.
fn receive(
    socket: &UdpSocket,
    buffer: &mut [u8],
    until: Option<Instant>,
) -> Result<Option<(usize, SocketAddr)>> {
    let left = until.map_or(NAP, |until| until.saturating_duration_since(Instant::now()).min(NAP));
    socket.set_read_timeout(Some(left.max(Duration::from_micros(100))))?;
    match socket.recv_from(buffer) {
        Ok(received) => Ok(Some(received)),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(None),
        // What an earlier datagram met with.
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(None),
        Err(error) => Err(error.into()),
    }
}

// The server ----------------------------------------------------------------------------------------------

fn serve(case: &str, mut config: Config, root: &Path, listen: SocketAddr) -> Result<()> {
    let socket = UdpSocket::bind(listen)?;
    let local = socket.local_addr()?;
    println!("listening {local}");
    let mut sessions: Vec<Session> = Vec::new();
    let mut buffer = vec![0; 65_536];
    loop {
        let until = sessions.iter().filter_map(Session::deadline).min();
        if let Some((len, from)) = receive(&socket, &mut buffer, until)? {
            let datagram = &mut buffer[..len];
            if let Ok(header) = Header::from_slice(datagram, session::ID_LEN) {
                let index = match sessions.iter().position(|session| session.owns(&header.dcid)) {
                    Some(index) => Some(index),
                    None => accept(case, &mut config, &header, &socket, from, root)?.map(|session| {
                        sessions.push(session);
                        sessions.len() - 1
                    }),
                };
                if let Some(session) = index.and_then(|index| sessions.get_mut(index)) {
                    session.receive(datagram, RecvInfo { from, to: local });
                }
            }
        }
        for session in &mut sessions {
            session.work(&socket)?;
        }
        sessions.retain(|session| !session.connection.is_closed());
    }
}

/// Begins a connection, if this is the first packet of one and its address need not be proven.
fn accept(
    case: &str,
    config: &mut Config,
    header: &Header<'_>,
    socket: &UdpSocket,
    from: SocketAddr,
    root: &Path,
) -> Result<Option<Session>> {
    if header.ty != Type::Initial {
        return Ok(None);
    }
    let mut out = [0; 1500];
    if !quiche::version_is_supported(header.version) {
        let len = quiche::negotiate_version(&header.scid, &header.dcid, &mut out)?;
        socket.send_to(&out[..len], from)?;
        return Ok(None);
    }
    let local = socket.local_addr()?;
    let work = Work::answers(case, root);
    if case != "retry" {
        let id = identity();
        let connection = quiche::accept(&ConnectionId::from_ref(&id), None, local, from, config)?;
        return Ok(Some(Session::new(connection, Some(header.dcid.to_vec()), work)?));
    }
    let token = header.token.as_deref().unwrap_or_default();
    let Some(original) = token.strip_prefix(TOKEN) else {
        let token = [TOKEN, &header.dcid].concat();
        let id = identity();
        let id = ConnectionId::from_ref(&id);
        let len = quiche::retry(&header.scid, &header.dcid, &id, &token, header.version, &mut out)?;
        socket.send_to(&out[..len], from)?;
        return Ok(None);
    };
    let original = ConnectionId::from_ref(original);
    let connection = quiche::accept(&header.dcid, Some(&original), local, from, config)?;
    Ok(Some(Session::new(connection, None, work)?))
}

// The client ----------------------------------------------------------------------------------------------

fn fetch(case: &str, mut config: Config, requests: &str, folder: &Path) -> Result<()> {
    let (mut host, mut paths) = (String::new(), Vec::new());
    for url in requests.split_whitespace() {
        let rest = url.strip_prefix("https://").context("only https:// URLs")?;
        let (authority, path) = rest.split_once('/').context("a URL without a path")?;
        host = authority.to_owned();
        paths.push(path.to_owned());
    }
    let (name, port) = host.rsplit_once(':').context("a URL without a port")?;
    let name = name.trim_matches(['[', ']']);
    let ip: IpAddr = if name == "localhost" { "127.0.0.1" } else { name }.parse()?;
    let remote = SocketAddr::new(ip, port.parse()?);
    let groups: Vec<&[String]> = match case {
        "multiconnect" => paths.chunks(1).collect(),
        "resumption" | "zerortt" => vec![&paths[..1], &paths[1..]],
        _ => vec![&paths],
    };
    let mut ticket: Option<Vec<u8>> = None;
    for (number, group) in groups.iter().enumerate() {
        // Where the ticket is for, there is another connection.
        let resumes = matches!(case, "resumption" | "zerortt");
        let wanted = resumes && number == 0;
        let work = Work::requests(case, &host, group, folder);
        let shown = ticket.as_deref().filter(|_| resumes);
        ticket = connection(&mut config, name, remote, work, shown, wanted)?;
    }
    Ok(())
}

/// Fetches everything over one connection, and returns its session ticket.
fn connection(
    config: &mut Config,
    name: &str,
    remote: SocketAddr,
    work: Work,
    ticket: Option<&[u8]>,
    wanted: bool,
) -> Result<Option<Vec<u8>>> {
    let any = if remote.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any)?;
    // For the address that the system takes.
    socket.connect(remote)?;
    let local = socket.local_addr()?;
    let id = identity();
    let name = name.parse::<IpAddr>().is_err().then_some(name);
    let mut connection = quiche::connect(name, &ConnectionId::from_ref(&id), local, remote, config)?;
    if let Some(ticket) = ticket {
        connection.set_session(ticket)?;
    }
    let mut session = Session::new(connection, None, work)?;
    let mut buffer = vec![0; 65_536];
    let mut done_at: Option<Instant> = None;
    // 0-RTT is possible from the second packet on.
    session.work(&socket)?;
    session.work(&socket)?;
    while !session.connection.is_closed() {
        if let Some((len, from)) = receive(&socket, &mut buffer, session.deadline())? {
            session.receive(&mut buffer[..len], RecvInfo { from, to: local });
        }
        session.work(&socket)?;
        if session.work.is_done() {
            let since = done_at.get_or_insert_with(Instant::now).elapsed();
            if !wanted || session.connection.session().is_some() || since > TICKET {
                // Not as an application: before HANDSHAKE_DONE, a Handshake probe would then never end (quiche's
                // lib.rs:4566 sends an acknowledgement, :5347 not the PING by which it would count as sent).
                let _ = session.connection.close(false, 0, b"");
            }
        }
    }
    if !session.work.is_done() {
        let (ours, theirs) = (session.connection.local_error(), session.connection.peer_error());
        bail!("the connection ended: {ours:?} {theirs:?}");
    }
    Ok(session.connection.session().map(<[u8]>::to_vec))
}
