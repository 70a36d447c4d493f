//! The structs, in the order of the header, which documents them.

use super::Plain;
use std::ffi::{c_char, c_void};

/// Bytes of an address as text, with the zero at its end.
pub(crate) const ADDRESS_LENGTH: usize = 72;

macro_rules! structs {
    ($($name:ident is $c_name:ident with $size:literal bytes, $least:literal at least {
        $($field:ident: $type:ty,)*
    })*) => {
        $(
            #[doc = concat!("`", stringify!($c_name), "`.")]
            #[derive(Clone, Copy)]
            #[repr(C)]
            pub(crate) struct $name {
                $(pub(crate) $field: $type,)*
            }

            const _: () = assert!(size_of::<$name>() == $size && std::mem::offset_of!($name, size) == 0);
            const _: () = assert!($size == $(size_of::<$type>() +)* 0, "there is padding");

            // SAFETY: it is `repr(C)` and begins with its size, and numbers, pointers and arrays of bytes may be zero.
            unsafe impl Plain for $name {
                const NAME: &'static str = stringify!($c_name);
                const LEAST: usize = $least;
            }
        )*

        /// Name, size, and of each field the name, offset and size.
        #[cfg(test)]
        pub(crate) const LAYOUTS: &[(&str, usize, &[(&str, usize, usize)])] = &[$(
            (stringify!($c_name), size_of::<$name>(), &[
                $((stringify!($field), std::mem::offset_of!($name, $field), size_of::<$type>()),)*
            ]),
        )*];
    };
}

structs! {
    Error is godwit_error with 512 bytes, 32 at least {
        size: u32, status: i32, peer_code: u64, flags: u32, system_code: i32, message_length: u32, message: [u8; 484],
    }
    Header is godwit_header with 40 bytes, 40 at least {
        size: u32, flags: u32, name: *const c_char, name_length: u64, value: *const c_char, value_length: u64,
    }
    Address is godwit_address with 80 bytes, 80 at least {
        size: u32, flags: u32, text: [u8; ADDRESS_LENGTH],
    }
    RuntimeOptions is godwit_runtime_options with 16 bytes, 8 at least {
        size: u32, flags: u32, threads: u32, reserved: u32,
    }
    Response is godwit_response with 136 bytes, 136 at least {
        size: u32, flags: u32, status: u32, protocol: u32, content_length: u64, resolve_ns: u64, handshake_ns: u64,
        rtt_ns: u64, url: *const c_char, reason: *const c_char, remote_address: [u8; ADDRESS_LENGTH],
    }
    RequestHead is godwit_request_head with 120 bytes, 120 at least {
        size: u32, flags: u32, protocol: u32, reserved: u32, content_length: u64, method: *const c_char,
        path: *const c_char, authority: *const c_char, client_address: [u8; ADDRESS_LENGTH],
    }
    ConnectionInfo is godwit_connection_info with 688 bytes, 8 at least {
        size: u32, flags: u32, quic_version: u32, alpn_length: u32, max_datagram_length: u64, id: u64,
        alpn: [u8; 256], server_name: [u8; 256], remote_address: [u8; ADDRESS_LENGTH],
        local_address: [u8; ADDRESS_LENGTH],
    }
    Path is godwit_path with 216 bytes, 8 at least {
        size: u32, flags: u32, path: u32, state: u32, rtt_ns: u64, min_rtt_ns: u64, window: u64, bytes_in_flight: u64,
        packets_sent: u64, packets_lost: u64, mtu: u64, local_address: [u8; ADDRESS_LENGTH],
        remote_address: [u8; ADDRESS_LENGTH],
    }
    Event is godwit_event with 128 bytes, 128 at least {
        size: u32, kind: u32, tag: u64, handle: u64, parent: u64, status: i32, flags: u32, code: u64, data: *const u8,
        length: u64, headers: *const Header, header_count: u64, response: *const Response,
        request: *const RequestHead, connection: *const ConnectionInfo, path: *const Path, error: *const Error,
        lease: u64,
    }
    QueueOptions is godwit_queue_options with 8 bytes, 8 at least {
        size: u32, flags: u32,
    }
    ClientOptions is godwit_client_options with 104 bytes, 8 at least {
        size: u32, flags: u32, runtime: u64, roots_file: *const c_char, proxy: *const c_char,
        memory_file: *const c_char, session_file: *const c_char, versions: u32, family: u32, connect_timeout_ms: u64,
        timeout_ms: u64, idle_timeout_ms: u64, max_redirects: u32, reserved: u32, receive_limit: u64, send_limit: u64,
    }
    Request is godwit_request with 72 bytes, 8 at least {
        size: u32, flags: u32, method: *const c_char, url: *const c_char, headers: *const Header, header_count: u64,
        body_mode: u32, versions: u32, body: *const c_void, body_length: u64, timeout_ms: u64,
    }
    ResponseOptions is godwit_response_options with 48 bytes, 8 at least {
        size: u32, flags: u32, status: u32, body_mode: u32, headers: *const Header, header_count: u64,
        body: *const c_void, body_length: u64,
    }
    ServerOptions is godwit_server_options with 80 bytes, 8 at least {
        size: u32, flags: u32, runtime: u64, addresses: *const *const c_char, address_count: u64,
        certificate_file: *const c_char, key_file: *const c_char, max_connections: u64, max_body: u64,
        receive_limit: u64, send_limit: u64,
    }
    TransportOptions is godwit_transport_options with 88 bytes, 8 at least {
        size: u32, flags: u32, idle_timeout_ms: u64, handshake_timeout_ms: u64, keep_alive_ms: u64,
        max_bidirectional_streams: u64, max_unidirectional_streams: u64, max_stream_window: u64,
        max_connection_window: u64, send_buffer: u64, receive_limit: u64, send_limit: u64,
    }
    EndpointOptions is godwit_endpoint_options with 72 bytes, 8 at least {
        size: u32, flags: u32, runtime: u64, address: *const c_char, certificate_file: *const c_char,
        key_file: *const c_char, alpn: *const *const c_char, alpn_count: u64, transport: *const TransportOptions,
        max_connections: u64,
    }
    ConnectOptions is godwit_connect_options with 56 bytes, 8 at least {
        size: u32, flags: u32, address: *const c_char, server_name: *const c_char, alpn: *const *const c_char,
        alpn_count: u64, roots_file: *const c_char, transport: *const TransportOptions,
    }
    Statistics is godwit_statistics with 216 bytes, 8 at least {
        size: u32, flags: u32, udp_datagrams_sent: u64, udp_bytes_sent: u64, udp_datagrams_received: u64,
        udp_bytes_received: u64, packets_sent: u64, packets_received: u64, packets_dropped: u64, packets_lost: u64,
        bytes_lost: u64, spurious_losses: u64, congestion_events: u64, probe_timeouts: u64, rtt_ns: u64,
        min_rtt_ns: u64, latest_rtt_ns: u64, rtt_variance_ns: u64, window: u64, bytes_in_flight: u64, mtu: u64,
        streams_opened: u64, streams_opened_by_peer: u64, streams_open: u64, stream_bytes_sent: u64,
        stream_bytes_retransmitted: u64, stream_bytes_received: u64, key_updates: u64,
    }
}
