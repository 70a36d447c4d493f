//! Limits of connections, as the application gives them.

use crate::abi;
use crate::failure::Failure;
use crate::given;
use godwit::{DatagramOverflow, TransportConfig};

/// The largest DATAGRAM frame that is taken: any that fits a packet.
const MOST_DATAGRAM: u64 = 65535;
/// Bytes of a stream that may be lent, or wait, where nothing else is said.
pub(super) const USUAL_LIMIT: u32 = 1 << 18;

/// How much of a stream may be lent to the application, and may wait; zero for what is usual.
#[derive(Clone, Copy, Default)]
pub(super) struct Limits {
    pub(super) receive: u64,
    pub(super) send: u64,
}

/// What the options say.
///
/// # Safety
/// They are null, or as long as their size says.
pub(super) unsafe fn read(
    options: *const abi::TransportOptions,
) -> Result<(TransportConfig, Limits), Failure> {
    // SAFETY: the caller's promise.
    let options = unsafe { given::take_or_default(options) }?;
    given::flags(options.flags, abi::TRANSPORT_DATAGRAMS | abi::TRANSPORT_NO_MIGRATION, "the transport")?;
    let mut config = TransportConfig::default();
    if let Some(time) = given::time(options.idle_timeout_ms) {
        config.max_idle_timeout = time;
    }
    if let Some(time) = given::time(options.handshake_timeout_ms) {
        config.handshake_timeout = time;
    }
    config.keep_alive = given::time(options.keep_alive_ms);
    set_streams(&mut config.max_bidi_streams, options.max_bidirectional_streams);
    set_streams(&mut config.max_uni_streams, options.max_unidirectional_streams);
    if options.max_stream_window != 0 {
        config.max_stream_window = options.max_stream_window;
        config.initial_stream_window = config.initial_stream_window.min(options.max_stream_window);
    }
    if options.max_connection_window != 0 {
        config.max_connection_window = options.max_connection_window;
        config.initial_connection_window =
            config.initial_connection_window.min(options.max_connection_window);
    }
    if options.send_buffer != 0 {
        config.send_buffer = options.send_buffer;
    }
    let takes_datagrams = options.flags & abi::TRANSPORT_DATAGRAMS != 0;
    config.datagrams.max_frame_size = if takes_datagrams { MOST_DATAGRAM } else { 0 };
    config.datagrams.overflow = DatagramOverflow::Refuse;
    config.migration.allowed = options.flags & abi::TRANSPORT_NO_MIGRATION == 0;
    config
        .validate()
        .map_err(|problem| Failure::argument(format!("the limits of the transport: {problem}")))?;
    Ok((config, Limits { receive: options.receive_limit, send: options.send_limit }))
}

fn set_streams(streams: &mut u64, wanted: u64) {
    match wanted {
        0 => {}
        u64::MAX => *streams = 0,
        wanted => *streams = wanted,
    }
}
