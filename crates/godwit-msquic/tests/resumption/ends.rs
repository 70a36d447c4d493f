//! Both ends of connections in this process, as programs have them that call the functions of the table.

use godwit_msquic::abi::*;
use std::ffi::{CString, c_void};
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::ptr::{null, null_mut};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

/// Longer than anything takes, so that a test ends that waits in vain.
const IN_VAIN: Duration = Duration::from_secs(60);

/// What an end was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    Resumed(Vec<u8>),
    Connected {
        resumed: bool,
    },
    Ticket(Vec<u8>),
    StreamStarted {
        early: bool,
    },
    Received {
        bytes: Vec<u8>,
        early: bool,
    },
    /// All of a stream, so much of it with 0-RTT.
    Sent {
        early: u64,
    },
    Over,
}

/// What was told, and to which handle.
type Told = (Seen, usize);

pub(crate) fn table() -> &'static ApiTable {
    static TABLE: OnceLock<usize> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        let mut table: *const c_void = null();
        // SAFETY: there is a place for a pointer.
        assert_eq!(unsafe { godwit_msquic::open_version(API_VERSION_2, &raw mut table) }, Status::SUCCESS);
        table.addr()
    });
    // SAFETY: it is the library's table, which is there as long as the process.
    unsafe { &*std::ptr::with_exposed_provenance(*table) }
}

fn registration() -> Handle {
    static REGISTRATION: OnceLock<usize> = OnceLock::new();
    let opened = REGISTRATION.get_or_init(|| {
        let mut handle = null_mut();
        // SAFETY: there is a place for a handle.
        assert_eq!(unsafe { (table().registration_open)(null(), &raw mut handle) }, Status::SUCCESS);
        handle.addr()
    });
    handle(*opened)
}

fn handle(number: usize) -> Handle {
    std::ptr::without_provenance_mut(number)
}

/// Who listens to an end, and what it answers.
pub(crate) struct Ear {
    told: Mutex<Sender<Told>>,
    configuration: usize,
    /// What the callback returns that is told of a session.
    on_resumed: Status,
}

impl Ear {
    fn hear(&self, seen: Seen, of: Handle) {
        let _ = self.told.lock().unwrap().send((seen, of.addr()));
    }

    /// # Safety
    /// The context is one that was leaked here.
    unsafe fn of(context: *mut c_void) -> &'static Self {
        // SAFETY: the caller promises it.
        unsafe { &*context.cast::<Self>() }
    }
}

/// An end's news.
pub(crate) struct News(Receiver<Told>);

impl News {
    /// What is told next.
    pub(crate) fn next(&self) -> Told {
        self.0.recv_timeout(IN_VAIN).unwrap()
    }

    /// What is told up to and with what is `last`.
    pub(crate) fn until(&self, last: impl Fn(&Seen) -> bool) -> Vec<Told> {
        let mut all = Vec::new();
        loop {
            all.push(self.next());
            if all.last().is_some_and(|(seen, _)| last(seen)) {
                return all;
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.try_recv().is_err()
    }
}

fn ear(configuration: Handle, on_resumed: Status) -> (*mut c_void, News) {
    let (told, news) = channel();
    let ear = Ear { told: Mutex::new(told), configuration: configuration.addr(), on_resumed };
    (std::ptr::from_mut(Box::leak(Box::new(ear))).cast(), News(news))
}

fn configuration(resumption: ServerResumptionLevel, credential: &CredentialConfig) -> Handle {
    let mut values = SettingValues::default();
    values.set(Setting::ServerResumptionLevel, resumption.0.into());
    values.set(Setting::PeerBidiStreamCount, 10);
    values.set(Setting::PeerUnidiStreamCount, 10);
    let mut settings = [0_u64; size_of::<Settings>() / 8];
    // SAFETY: numbers are bytes, too.
    let bytes =
        unsafe { std::slice::from_raw_parts_mut(settings.as_mut_ptr().cast(), size_of_val(&settings)) };
    values.write(&values, bytes);
    settings[0] = values.is_set_flags();
    let mut alpn = *b"sample";
    let alpn = Buffer { length: 6, buffer: alpn.as_mut_ptr() };
    let mut opened = null_mut();
    // SAFETY: all of it lives during the calls.
    unsafe {
        let (settings, size) = (settings.as_ptr().cast(), size_of::<Settings>() as u32);
        let open = table().configuration_open;
        let status = open(registration(), &raw const alpn, 1, settings, size, null_mut(), &raw mut opened);
        assert_eq!(status, Status::SUCCESS);
        assert_eq!((table().configuration_load_credential)(opened, credential), Status::SUCCESS);
    }
    opened
}

/// A client's configuration.
pub(crate) fn client() -> Handle {
    // SAFETY: all zero is a structure in which nothing is set.
    let mut credential: CredentialConfig = unsafe { std::mem::zeroed() };
    credential.kind = CredentialType::NONE;
    credential.flags = CredentialFlags::CLIENT | CredentialFlags::NO_CERTIFICATE_VALIDATION;
    configuration(ServerResumptionLevel::NO_RESUME, &credential)
}

/// A server that listens.
pub(crate) struct Server {
    pub(crate) news: News,
    listener: Handle,
    pub(crate) address: SocketAddr,
}

impl Server {
    /// It answers with `on_resumed` when it is told of a session.
    pub(crate) fn new(resumption: ServerResumptionLevel, on_resumed: Status) -> Self {
        Self::with(server_configuration(resumption), on_resumed)
    }

    pub(crate) fn with(configuration: Handle, on_resumed: Status) -> Self {
        let (ear, news) = ear(configuration, on_resumed);
        let mut alpn = *b"sample";
        let alpn = Buffer { length: 6, buffer: alpn.as_mut_ptr() };
        let wanted: Address = SocketAddr::from(([127, 0, 0, 1], 0)).into();
        let (mut listener, mut bound, mut size) =
            (null_mut(), Address::unspecified(0), size_of::<Address>() as u32);
        // SAFETY: all of it lives during the calls, and the ear as long as the process.
        unsafe {
            let open = table().listener_open;
            let status = open(registration(), Some(listener_callback), ear, &raw mut listener);
            assert_eq!(status, Status::SUCCESS);
            let start = table().listener_start;
            assert_eq!(start(listener, &raw const alpn, 1, &raw const wanted), Status::SUCCESS);
            let (get, parameter) = (table().get_param, parameters::listener::LOCAL_ADDRESS);
            let status = get(listener, parameter, &raw mut size, (&raw mut bound).cast());
            assert_eq!(status, Status::SUCCESS);
        }
        Server { news, listener, address: bound.socket_address().unwrap() }
    }

    /// Gives the client a ticket with this data.
    pub(crate) fn send_ticket(&self, connection: usize, data: &[u8], flags: SendResumptionFlags) -> Status {
        let send = table().connection_send_resumption_ticket;
        // SAFETY: so many bytes are there.
        unsafe { send(handle(connection), flags, data.len() as u16, data.as_ptr()) }
    }

    pub(crate) fn validate(&self, connection: usize, is_good: bool) -> Status {
        let complete = table().connection_resumption_ticket_validation_complete;
        // SAFETY: the handle is one.
        unsafe { complete(handle(connection), is_good.into()) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SAFETY: the handle is one.
        unsafe { (table().listener_close)(self.listener) };
    }
}

/// A server's configuration with a certificate, and ticket keys, of its own.
pub(crate) fn server_configuration(resumption: ServerResumptionLevel) -> Handle {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let files = [("key.pem", made.signing_key.serialize_pem()), ("certificate.pem", made.cert.pem())];
    let [key, certificate] = files.map(|(name, content)| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        CString::new(path.as_os_str().as_bytes()).unwrap()
    });
    // SAFETY: all zero is a structure in which nothing is set.
    let (mut files, mut credential): (CertificateFile, CredentialConfig) = unsafe { std::mem::zeroed() };
    files.private_key_file = key.as_ptr();
    files.certificate_file = certificate.as_ptr();
    credential.kind = CredentialType::CERTIFICATE_FILE;
    credential.certificate = (&raw mut files).cast();
    configuration(resumption, &credential)
}

/// A client's connection.
pub(crate) struct Client {
    pub(crate) news: News,
    pub(crate) connection: Handle,
    ear: *mut c_void,
}

impl Client {
    pub(crate) fn new() -> Self {
        let (ear, news) = ear(null_mut(), Status::SUCCESS);
        let mut connection = null_mut();
        // SAFETY: there is a place for a handle, and the ear lives as long as the process.
        let status = unsafe {
            (table().connection_open)(registration(), Some(connection_callback), ear, &raw mut connection)
        };
        assert_eq!(status, Status::SUCCESS);
        Client { news, connection, ear }
    }

    pub(crate) fn set_ticket(&self, ticket: &[u8]) -> Status {
        let (set, parameter) = (table().set_param, parameters::connection::RESUMPTION_TICKET);
        // SAFETY: so many bytes are there.
        unsafe { set(self.connection, parameter, ticket.len() as u32, ticket.as_ptr().cast()) }
    }

    pub(crate) fn start(&self, configuration: Handle, server: &Server) {
        let remote: Address = server.address.into();
        let name = c"localhost".as_ptr();
        // SAFETY: all of it lives during the calls.
        unsafe {
            let (set, parameter) = (table().set_param, parameters::connection::REMOTE_ADDRESS);
            let size = size_of::<Address>() as u32;
            assert_eq!(set(self.connection, parameter, size, (&raw const remote).cast()), Status::SUCCESS);
            let (start, port) = (table().connection_start, server.address.port());
            let status = start(self.connection, configuration, AddressFamily::UNSPECIFIED, name, port);
            assert_eq!(status, Status::PENDING);
        }
    }

    /// Sends this on a stream of its own, with 0-RTT if there is any.
    pub(crate) fn say(&self, bytes: &'static [u8]) {
        let mut stream = null_mut();
        let (open, send) = (table().stream_open, table().stream_send);
        let flags = StreamOpenFlags::UNIDIRECTIONAL | StreamOpenFlags::ZERO_RTT;
        let buffer = Buffer { length: bytes.len() as u32, buffer: bytes.as_ptr().cast_mut() };
        // SAFETY: what is lent lives as long as the process, and is only read.
        unsafe {
            let lent = Box::leak(Box::new(buffer));
            let status = open(self.connection, flags, Some(stream_callback), self.ear, &raw mut stream);
            assert_eq!(status, Status::SUCCESS);
            let flags = SendFlags::ALLOW_ZERO_RTT | SendFlags::START | SendFlags::FIN;
            assert_eq!(send(stream, lent, 1, flags, null_mut()), Status::PENDING);
        }
    }

    /// Ends the connection, which is told to the server.
    pub(crate) fn end(self) {
        // SAFETY: the handle is one, and is not used any more.
        unsafe {
            (table().connection_shutdown)(self.connection, ConnectionShutdownFlags::NONE, 0);
            self.news.until(|seen| *seen == Seen::Over);
            (table().connection_close)(self.connection);
        }
    }
}

unsafe extern "C" fn listener_callback(_: Handle, context: *mut c_void, event: *mut ListenerEvent) -> Status {
    // SAFETY: the library gives both.
    let (ear, event) = unsafe { (Ear::of(context), &*event) };
    let Some(offered) = event.as_new_connection() else { return Status::SUCCESS };
    // SAFETY: what is set for a connection is a function for connections.
    unsafe {
        let handler = connection_callback as *mut c_void;
        (table().set_callback_handler)(offered.connection, handler, context);
        (table().connection_set_configuration)(offered.connection, handle(ear.configuration))
    }
}

/// # Safety
/// There are so many bytes.
unsafe fn bytes(at: *const u8, len: usize) -> Vec<u8> {
    if len == 0 {
        return Vec::new();
    }
    // SAFETY: the caller promises it.
    unsafe { std::slice::from_raw_parts(at, len) }.to_vec()
}

unsafe extern "C" fn connection_callback(
    connection: Handle,
    context: *mut c_void,
    event: *mut ConnectionEvent,
) -> Status {
    // SAFETY: the library gives both.
    let (ear, event) = unsafe { (Ear::of(context), &*event) };
    if let Some(it) = event.as_resumed() {
        // SAFETY: the library says so.
        let data = unsafe { bytes(it.resumption_state, it.resumption_state_length.into()) };
        ear.hear(Seen::Resumed(data), connection);
        return ear.on_resumed;
    }
    if let Some(it) = event.as_resumption_ticket_received() {
        // SAFETY: the library says so.
        let ticket = unsafe { bytes(it.resumption_ticket, it.resumption_ticket_length as usize) };
        ear.hear(Seen::Ticket(ticket), connection);
    }
    if let Some(it) = event.as_connected() {
        ear.hear(Seen::Connected { resumed: it.session_resumed.is_true() }, connection);
    }
    if let Some(it) = event.as_peer_stream_started() {
        let handler = stream_callback as *mut c_void;
        // SAFETY: what is set for a stream is a function for streams.
        unsafe { (table().set_callback_handler)(it.stream, handler, context) };
        ear.hear(Seen::StreamStarted { early: it.flags.contains(StreamOpenFlags::ZERO_RTT) }, connection);
    }
    if event.kind() == ConnectionEventType::SHUTDOWN_COMPLETE {
        ear.hear(Seen::Over, connection);
        if ear.configuration != 0 {
            // SAFETY: a server's handle is closed here, and a client's by who has opened it.
            unsafe { (table().connection_close)(connection) };
        }
    }
    Status::SUCCESS
}

unsafe extern "C" fn stream_callback(
    stream: Handle,
    context: *mut c_void,
    event: *mut StreamEvent,
) -> Status {
    // SAFETY: the library gives both.
    let (ear, event) = unsafe { (Ear::of(context), &*event) };
    if let Some(it) = event.as_receive() {
        // SAFETY: the library says so.
        let buffers = unsafe { std::slice::from_raw_parts(it.buffers, it.buffer_count as usize) };
        // SAFETY: as above.
        let pieces = buffers.iter().map(|it| unsafe { bytes(it.buffer, it.length as usize) });
        let bytes = pieces.collect::<Vec<_>>().concat();
        ear.hear(Seen::Received { bytes, early: it.flags.contains(ReceiveFlags::ZERO_RTT) }, stream);
    }
    if event.kind() == StreamEventType::SEND_SHUTDOWN_COMPLETE {
        let (mut early, mut size) = (0_u64, 8);
        let (get, parameter) = (table().get_param, parameters::stream::ZERO_RTT_LENGTH);
        // SAFETY: there is a place for so many bytes.
        let status = unsafe { get(stream, parameter, &raw mut size, (&raw mut early).cast()) };
        assert_eq!(status, Status::SUCCESS);
        ear.hear(Seen::Sent { early }, stream);
    }
    if event.kind() == StreamEventType::SHUTDOWN_COMPLETE {
        // SAFETY: the handle is not used any more.
        unsafe { (table().stream_close)(stream) };
    }
    Status::SUCCESS
}
