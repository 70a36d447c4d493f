//! The function table: what an application gets of the library, and calls it by.
//!
//! Handles are null where something failed. What a call only says, and does not ask, returns nothing; the others return
//! a [`Status`], or begin something that an event ends and return that it is pending.

use super::address::{Address, AddressFamily};
use super::basic::{Boolean, Buffer, Handle, Uint62};
use super::credentials::CredentialConfig;
use super::events::{ConnectionCallbackHandler, ListenerCallbackHandler, StreamCallbackHandler};
use super::execution::{Execution, ExecutionConfig, GlobalExecutionConfigFlags, RegistrationConfig};
use super::flags::{
    ConnectionPoolFlags, ConnectionShutdownFlags, SendFlags, SendResumptionFlags, StreamOpenFlags,
    StreamShutdownFlags, StreamStartFlags,
};
use super::layout::layout;
use super::parameters::ParameterId;
use super::settings::Settings;
use super::status::Status;
use super::tls::{KeyingMaterialConfig, TlsAlertCode};
use std::ffi::{c_char, c_void};

/// Several connections to one server that are opened together (preview).
///
/// In C: `QUIC_CONNECTION_POOL_CONFIG`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ConnectionPoolConfig {
    /// Whose they are.
    pub registration: Handle,
    /// With what they are started.
    pub configuration: Handle,
    /// Who is told of their events.
    pub handler: ConnectionCallbackHandler,
    /// The context of each; may be null.
    pub context: *mut *mut c_void,
    /// The server's name, ended by a zero byte.
    pub server_name: *const c_char,
    /// The server's address; may be null.
    pub server_address: *const Address,
    /// In which family its name is looked up.
    pub family: AddressFamily,
    /// The server's port.
    pub server_port: u16,
    /// How many connections.
    pub number_of_connections: u16,
    /// What the server tells each of them by; may be null.
    pub cibir_ids: *mut *mut u8,
    /// Bytes of each of those.
    pub cibir_id_length: u8,
    /// What happens when one fails.
    pub flags: ConnectionPoolFlags,
}

layout! {
    ConnectionPoolConfig, "QUIC_CONNECTION_POOL_CONFIG", 72 {
        registration, "Registration", 0;
        configuration, "Configuration", 8;
        handler, "Handler", 16;
        context, "Context", 24;
        server_name, "ServerName", 32;
        server_address, "ServerAddress", 40;
        family, "Family", 48;
        server_port, "ServerPort", 50;
        number_of_connections, "NumberOfConnections", 52;
        cibir_ids, "CibirIds", 56;
        cibir_id_length, "CibirIdLength", 64;
        flags, "Flags", 68;
    }
}

/// Who is told that a registration is closed.
///
/// In C: `QUIC_REGISTRATION_CLOSE_CALLBACK_HANDLER`.
pub type RegistrationCloseCallbackHandler = Option<unsafe extern "C" fn(context: *mut c_void)>;

/// Opens a connection, in a partition that is chosen for it or by the application.
///
/// In C: `QUIC_CONNECTION_OPEN_FN`.
pub type ConnectionOpenFunction = unsafe extern "C" fn(
    registration: Handle,
    handler: ConnectionCallbackHandler,
    context: *mut c_void,
    connection: *mut Handle,
) -> Status;

/// The table of version 2: 32 functions, and seven of previews behind them, which programs that know of previews read
/// whether they call them or not.
///
/// In C: `QUIC_API_TABLE`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ApiTable {
    /// Sets the context that a handle's callbacks are given.
    pub set_context: unsafe extern "C" fn(handle: Handle, context: *mut c_void),
    /// The context of a handle.
    pub get_context: unsafe extern "C" fn(handle: Handle) -> *mut c_void,
    /// Sets who is told of a handle's events, and the context. What kind of function it is follows from the handle.
    pub set_callback_handler:
        unsafe extern "C" fn(handle: Handle, handler: *mut c_void, context: *mut c_void),
    /// Sets a parameter, which is copied.
    pub set_param: unsafe extern "C" fn(
        handle: Handle,
        parameter: ParameterId,
        buffer_length: u32,
        buffer: *const c_void,
    ) -> Status,
    /// Reads a parameter. The length is an answer, too: what was written, or what is needed.
    pub get_param: unsafe extern "C" fn(
        handle: Handle,
        parameter: ParameterId,
        buffer_length: *mut u32,
        buffer: *mut c_void,
    ) -> Status,
    /// Opens a registration.
    pub registration_open:
        unsafe extern "C" fn(config: *const RegistrationConfig, registration: *mut Handle) -> Status,
    /// Closes a registration, once all that is open in it is closed: waits for that.
    pub registration_close: unsafe extern "C" fn(registration: Handle),
    /// Shuts all connections of a registration down.
    pub registration_shutdown:
        unsafe extern "C" fn(registration: Handle, flags: ConnectionShutdownFlags, error_code: Uint62),
    /// Opens a configuration with ALPNs and, if they are not null, settings of the size that the program knows.
    pub configuration_open: unsafe extern "C" fn(
        registration: Handle,
        alpn_buffers: *const Buffer,
        alpn_buffer_count: u32,
        settings: *const Settings,
        settings_size: u32,
        context: *mut c_void,
        configuration: *mut Handle,
    ) -> Status,
    /// Closes a configuration.
    pub configuration_close: unsafe extern "C" fn(configuration: Handle),
    /// Loads credentials into a configuration.
    pub configuration_load_credential:
        unsafe extern "C" fn(configuration: Handle, credential_config: *const CredentialConfig) -> Status,
    /// Opens a listener.
    pub listener_open: unsafe extern "C" fn(
        registration: Handle,
        handler: ListenerCallbackHandler,
        context: *mut c_void,
        listener: *mut Handle,
    ) -> Status,
    /// Closes a listener, once it has stopped: waits for that.
    pub listener_close: unsafe extern "C" fn(listener: Handle),
    /// Starts a listener at an address, or at any if that is null.
    pub listener_start: unsafe extern "C" fn(
        listener: Handle,
        alpn_buffers: *const Buffer,
        alpn_buffer_count: u32,
        local_address: *const Address,
    ) -> Status,
    /// Stops a listener.
    pub listener_stop: unsafe extern "C" fn(listener: Handle),
    /// Opens a connection of a client.
    pub connection_open: ConnectionOpenFunction,
    /// Closes a connection: nothing follows.
    pub connection_close: unsafe extern "C" fn(connection: Handle),
    /// Shuts a connection down. The handle may be that of one of its streams.
    pub connection_shutdown:
        unsafe extern "C" fn(connection: Handle, flags: ConnectionShutdownFlags, error_code: Uint62),
    /// Starts a connection to a server.
    pub connection_start: unsafe extern "C" fn(
        connection: Handle,
        configuration: Handle,
        family: AddressFamily,
        server_name: *const c_char,
        server_port: u16,
    ) -> Status,
    /// Gives a connection that a listener took what it is to be served with.
    pub connection_set_configuration:
        unsafe extern "C" fn(connection: Handle, configuration: Handle) -> Status,
    /// Sends a resumption ticket, with data for the application that finds it again.
    pub connection_send_resumption_ticket: unsafe extern "C" fn(
        connection: Handle,
        flags: SendResumptionFlags,
        data_length: u16,
        resumption_data: *const u8,
    ) -> Status,
    /// Opens a stream.
    pub stream_open: unsafe extern "C" fn(
        connection: Handle,
        flags: StreamOpenFlags,
        handler: StreamCallbackHandler,
        context: *mut c_void,
        stream: *mut Handle,
    ) -> Status,
    /// Closes a stream: nothing follows.
    pub stream_close: unsafe extern "C" fn(stream: Handle),
    /// Starts a stream.
    pub stream_start: unsafe extern "C" fn(stream: Handle, flags: StreamStartFlags) -> Status,
    /// Shuts a stream down.
    pub stream_shutdown:
        unsafe extern "C" fn(stream: Handle, flags: StreamShutdownFlags, error_code: Uint62) -> Status,
    /// Sends data on a stream. The buffers, and the list of them, are lent until the event that says so.
    pub stream_send: unsafe extern "C" fn(
        stream: Handle,
        buffers: *const Buffer,
        buffer_count: u32,
        flags: SendFlags,
        client_send_context: *mut c_void,
    ) -> Status,
    /// Gives data back that was received and kept.
    pub stream_receive_complete: unsafe extern "C" fn(stream: Handle, buffer_length: u64),
    /// Whether there are events for data that comes.
    pub stream_receive_set_enabled: unsafe extern "C" fn(stream: Handle, is_enabled: Boolean) -> Status,
    /// Sends a datagram.
    pub datagram_send: unsafe extern "C" fn(
        connection: Handle,
        buffers: *const Buffer,
        buffer_count: u32,
        flags: SendFlags,
        client_send_context: *mut c_void,
    ) -> Status,
    /// Says whether a ticket will do, about which a callback returned pending.
    pub connection_resumption_ticket_validation_complete:
        unsafe extern "C" fn(connection: Handle, result: Boolean) -> Status,
    /// Says whether a certificate will do, about which a callback returned pending.
    pub connection_certificate_validation_complete:
        unsafe extern "C" fn(connection: Handle, result: Boolean, tls_alert: TlsAlertCode) -> Status,
    /// Opens a connection of a client in a partition.
    pub connection_open_in_partition: unsafe extern "C" fn(
        registration: Handle,
        partition_index: u16,
        handler: ConnectionCallbackHandler,
        context: *mut c_void,
        connection: *mut Handle,
    ) -> Status,
    /// Lends a stream memory to receive into (preview).
    pub stream_provide_receive_buffers:
        unsafe extern "C" fn(stream: Handle, buffer_count: u32, buffers: *const Buffer) -> Status,
    /// Opens and starts several connections (preview).
    pub connection_pool_create:
        unsafe extern "C" fn(config: *mut ConnectionPoolConfig, connection_pool: *mut Handle) -> Status,
    /// Makes loops of the application's own known (preview).
    pub execution_create: unsafe extern "C" fn(
        flags: GlobalExecutionConfigFlags,
        polling_idle_timeout_us: u32,
        count: u32,
        configs: *mut ExecutionConfig,
        executions: *mut *mut Execution,
    ) -> Status,
    /// Forgets them (preview).
    pub execution_delete: unsafe extern "C" fn(count: u32, executions: *mut *mut Execution),
    /// Does work of one, and returns the milliseconds until there is some again (preview).
    pub execution_poll: unsafe extern "C" fn(execution: *mut Execution) -> u32,
    /// Closes a registration without waiting (preview).
    pub registration_close2: unsafe extern "C" fn(
        registration: Handle,
        handler: RegistrationCloseCallbackHandler,
        context: *mut c_void,
    ),
    /// Exports keying material of a connection's TLS (preview).
    pub connection_export_keying_material: unsafe extern "C" fn(
        connection: Handle,
        config: *const KeyingMaterialConfig,
        output: *mut u8,
    ) -> Status,
}

impl ApiTable {
    /// How many functions it has.
    pub const SLOTS: usize = size_of::<Self>() / size_of::<*const ()>();
    /// How many of them programs without previews know.
    pub const SLOTS_WITHOUT_PREVIEWS: usize = 32;
}

const _: () = assert!(ApiTable::SLOTS == 39);
const _: () = assert!(
    std::mem::offset_of!(ApiTable, stream_provide_receive_buffers) == ApiTable::SLOTS_WITHOUT_PREVIEWS * 8
);

layout! {
    ApiTable, "QUIC_API_TABLE", 312 {
        set_context, "SetContext", 0;
        get_context, "GetContext", 8;
        set_callback_handler, "SetCallbackHandler", 16;
        set_param, "SetParam", 24;
        get_param, "GetParam", 32;
        registration_open, "RegistrationOpen", 40;
        registration_close, "RegistrationClose", 48;
        registration_shutdown, "RegistrationShutdown", 56;
        configuration_open, "ConfigurationOpen", 64;
        configuration_close, "ConfigurationClose", 72;
        configuration_load_credential, "ConfigurationLoadCredential", 80;
        listener_open, "ListenerOpen", 88;
        listener_close, "ListenerClose", 96;
        listener_start, "ListenerStart", 104;
        listener_stop, "ListenerStop", 112;
        connection_open, "ConnectionOpen", 120;
        connection_close, "ConnectionClose", 128;
        connection_shutdown, "ConnectionShutdown", 136;
        connection_start, "ConnectionStart", 144;
        connection_set_configuration, "ConnectionSetConfiguration", 152;
        connection_send_resumption_ticket, "ConnectionSendResumptionTicket", 160;
        stream_open, "StreamOpen", 168;
        stream_close, "StreamClose", 176;
        stream_start, "StreamStart", 184;
        stream_shutdown, "StreamShutdown", 192;
        stream_send, "StreamSend", 200;
        stream_receive_complete, "StreamReceiveComplete", 208;
        stream_receive_set_enabled, "StreamReceiveSetEnabled", 216;
        datagram_send, "DatagramSend", 224;
        connection_resumption_ticket_validation_complete, "ConnectionResumptionTicketValidationComplete", 232;
        connection_certificate_validation_complete, "ConnectionCertificateValidationComplete", 240;
        connection_open_in_partition, "ConnectionOpenInPartition", 248;
        stream_provide_receive_buffers, "StreamProvideReceiveBuffers", 256;
        connection_pool_create, "ConnectionPoolCreate", 264;
        execution_create, "ExecutionCreate", 272;
        execution_delete, "ExecutionDelete", 280;
        execution_poll, "ExecutionPoll", 288;
        registration_close2, "RegistrationClose2", 296;
        connection_export_keying_material, "ConnectionExportKeyingMaterial", 304;
    }
}
