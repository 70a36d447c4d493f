//! Events of listeners.

use super::super::address::Address;
use super::super::basic::Handle;
use super::super::layout::{bits, codes, layout};
use super::super::status::Status;
use std::ffi::{c_char, c_void};

codes! {
    /// What has happened to a listener.
    ListenerEventType(u32), "QUIC_LISTENER_EVENT_TYPE" {
        /// A client wants to connect.
        NEW_CONNECTION = 0, "QUIC_LISTENER_EVENT_NEW_CONNECTION";
        /// It has stopped, and may be closed or started again. Nothing follows until then.
        STOP_COMPLETE = 1, "QUIC_LISTENER_EVENT_STOP_COMPLETE";
        /// Clients have to prove their addresses now, or not any more. Only if that is wished by a parameter.
        DOS_MODE_CHANGED = 2, "QUIC_LISTENER_EVENT_DOS_MODE_CHANGED";
    }
}

/// What is known of a client that wants to connect. All pointers are good during the callback only.
///
/// In C: `QUIC_NEW_CONNECTION_INFO`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct NewConnectionInfo {
    /// The version of QUIC, in the order of the machine.
    pub quic_version: u32,
    /// The server's address.
    pub local_address: *const Address,
    /// The client's address.
    pub remote_address: *const Address,
    /// Bytes of the ClientHello.
    pub crypto_buffer_length: u32,
    /// Bytes of the client's list of ALPNs.
    pub client_alpn_list_length: u16,
    /// Bytes of the server name; 0 if the client named none.
    pub server_name_length: u16,
    /// Bytes of the ALPN.
    pub negotiated_alpn_length: u8,
    /// The ClientHello.
    pub crypto_buffer: *const u8,
    /// The client's list: a byte with its length before each ALPN.
    pub client_alpn_list: *const u8,
    /// The ALPN on which both ends agree.
    pub negotiated_alpn: *const u8,
    /// The name of the server, which no zero byte ends; null if the client named none.
    pub server_name: *const c_char,
}

layout! {
    NewConnectionInfo, "QUIC_NEW_CONNECTION_INFO", 72 {
        quic_version, "QuicVersion", 0;
        local_address, "LocalAddress", 8;
        remote_address, "RemoteAddress", 16;
        crypto_buffer_length, "CryptoBufferLength", 24;
        client_alpn_list_length, "ClientAlpnListLength", 28;
        server_name_length, "ServerNameLength", 30;
        negotiated_alpn_length, "NegotiatedAlpnLength", 32;
        crypto_buffer, "CryptoBuffer", 40;
        client_alpn_list, "ClientAlpnList", 48;
        negotiated_alpn, "NegotiatedAlpn", 56;
        server_name, "ServerName", 64;
    }
}

/// What belongs to `NEW_CONNECTION`. A callback that does not return success refuses the connection.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct NewConnection {
    /// What is known of it.
    pub info: *const NewConnectionInfo,
    /// The connection, which is the application's if it takes it.
    pub connection: Handle,
}

/// What belongs to `STOP_COMPLETE`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct StopComplete {
    /// Its bits.
    pub flags: u8,
}

bits! {
    StopComplete, flags {
        /// Whether the application is closing the listener.
        APP_CLOSE_IN_PROGRESS = 0, app_close_in_progress, with_app_close_in_progress;
    }
}

/// What belongs to `DOS_MODE_CHANGED`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct DosModeChanged {
    /// Its bits.
    pub flags: u8,
}

bits! {
    DosModeChanged, flags {
        /// Whether clients have to prove their addresses.
        DOS_MODE_ENABLED = 0, dos_mode_enabled, with_dos_mode_enabled;
    }
}

super::events! {
    /// An event of a listener.
    ///
    /// In C: `QUIC_LISTENER_EVENT`.
    ListenerEvent, ListenerEventType, ListenerEventData, 2 {
        /// A client wants to connect.
        new_connection: NewConnection = NEW_CONNECTION, as_new_connection;
        /// The listener has stopped.
        stop_complete: StopComplete = STOP_COMPLETE, as_stop_complete;
        /// Whether clients have to prove their addresses has changed.
        dos_mode_changed: DosModeChanged = DOS_MODE_CHANGED, as_dos_mode_changed;
    } and {}
}

layout! {
    ListenerEvent, "QUIC_LISTENER_EVENT", 24 {
        kind, "Type", 0;
        data.new_connection, "NEW_CONNECTION", 8;
        data.new_connection.info, "NEW_CONNECTION.Info", 8;
        data.new_connection.connection, "NEW_CONNECTION.Connection", 16;
        data.stop_complete, "STOP_COMPLETE", 8;
        data.dos_mode_changed, "DOS_MODE_CHANGED", 8;
    } bits {
        "STOP_COMPLETE.AppCloseInProgress", data.stop_complete.flags, StopComplete::APP_CLOSE_IN_PROGRESS, 1;
        "STOP_COMPLETE.RESERVED", data.stop_complete.flags, 1, 7;
        "DOS_MODE_CHANGED.DosModeEnabled", data.dos_mode_changed.flags, DosModeChanged::DOS_MODE_ENABLED, 1;
        "DOS_MODE_CHANGED.RESERVED", data.dos_mode_changed.flags, 1, 7;
    }
}

/// Who is told of a listener's events.
///
/// In C: `QUIC_LISTENER_CALLBACK_HANDLER`.
pub type ListenerCallbackHandler =
    Option<unsafe extern "C" fn(listener: Handle, context: *mut c_void, event: *mut ListenerEvent) -> Status>;
