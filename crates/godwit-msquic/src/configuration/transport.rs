//! What settings mean to the transport.
//!
//! A window is what a stream or connection begins with: it grows with the network where that is worth it, as it does
//! everywhere in Godwit. What only shapes work within MsQuic has no meaning here, and is kept and told all the same.

use crate::abi::{CongestionControlAlgorithm, Setting, SettingValues, Status};
use crate::credential::Credential;
use godwit_transport::{CongestionAlgorithm, CongestionControl, TransportConfig};
use std::time::Duration;

/// How long an application may take to judge the peer's certificate.
const APPROVAL: Duration = Duration::from_secs(30);

/// Bytes of headers in a packet over IPv4, by which the largest packet and its payload differ.
const IPV4_HEADERS: u64 = 28;

/// The transport's settings.
///
/// # Errors
/// [`Status::INVALID_PARAMETER`] if they cannot be had together.
pub(super) fn config(settings: &SettingValues, credential: &Credential) -> Result<TransportConfig, Status> {
    let get = |setting: Setting| settings.get(setting).unwrap_or(setting.place().default);
    let millis = |setting| Duration::from_millis(get(setting));
    let enabled = |setting| get(setting) != 0;
    let mut config = TransportConfig::default();
    config.max_idle_timeout = millis(Setting::IdleTimeoutMs);
    if config.max_idle_timeout.is_zero() {
        config.max_idle_timeout = NEVER;
    }
    config.handshake_timeout = millis(Setting::HandshakeIdleTimeoutMs);
    if config.handshake_timeout.is_zero() {
        config.handshake_timeout = NEVER;
    }
    config.keep_alive = Some(millis(Setting::KeepAliveIntervalMs)).filter(|interval| !interval.is_zero());
    config.initial_stream_window = stream_window(settings);
    config.max_stream_window = config.max_stream_window.max(config.initial_stream_window);
    config.initial_connection_window = get(Setting::ConnFlowControlWindow);
    config.max_connection_window = config.max_connection_window.max(config.initial_connection_window);
    config.max_bidi_streams = get(Setting::PeerBidiStreamCount);
    config.max_uni_streams = get(Setting::PeerUnidiStreamCount);
    config.max_ack_delay = millis(Setting::MaxAckDelayMs);
    config.initial_rtt = millis(Setting::InitialRttMs);
    config.max_mtu = payload(get(Setting::MaximumMtu));
    if enabled(Setting::DatagramReceiveEnabled) {
        config.datagrams.max_frame_size = 65_535;
    } else {
        config.datagrams.max_frame_size = 0;
    }
    config.reset_stream_at = enabled(Setting::ReliableResetEnabled);
    config.grease_quic_bit = enabled(Setting::GreaseQuicBitEnabled);
    config.timestamps = enabled(Setting::OneWayDelayEnabled);
    config.ecn = enabled(Setting::EcnEnabled);
    config.fresh_cid_after = Some(millis(Setting::DestCidUpdateIdleTimeoutMs)).filter(|it| !it.is_zero());
    config.migration.allowed = enabled(Setting::MigrationEnabled);
    if get(Setting::CongestionControlAlgorithm) == u64::from(CongestionControlAlgorithm::BBR.0) {
        config.congestion = CongestionControl::from(CongestionAlgorithm::Bbr);
    }
    config.key_update_after = get(Setting::MaxBytesPerKey).checked_div(config.initial_mtu.into());
    config.approval = credential.indicates_certificates().then_some(APPROVAL);
    config.approval_before_finished = true;
    config.validate().map_err(|_| Status::INVALID_PARAMETER)?;
    Ok(config)
}

/// Longer than anybody waits: there is no timeout that is none.
const NEVER: Duration = Duration::from_secs(10 * 365 * 86_400);

/// The largest window of any kind of stream: all of them begin with one window here.
fn stream_window(settings: &SettingValues) -> u64 {
    let default = Setting::StreamRecvWindowDefault;
    let default = settings.get(default).unwrap_or(default.place().default);
    let of_kinds = [
        Setting::StreamRecvWindowBidiLocalDefault,
        Setting::StreamRecvWindowBidiRemoteDefault,
        Setting::StreamRecvWindowUnidiDefault,
    ];
    of_kinds.iter().filter_map(|kind| settings.get(*kind)).fold(default, u64::max)
}

/// The payload of a packet of this size.
fn payload(mtu: u64) -> u16 {
    u16::try_from(mtu.saturating_sub(IPV4_HEADERS)).unwrap_or(u16::MAX).min(TransportConfig::ANY_MTU)
}
