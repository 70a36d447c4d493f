//! Parameters of the library.

use super::kept::{OfLibrary, of_library};
use super::{Given, Room, counts};
use crate::abi::parameters::{global as p, private_global as private};
use crate::abi::plain::{read, read_all};
use crate::abi::{
    AeadAlgorithmType, Boolean, GLOBAL_EXECUTION_CONFIG_MIN_SIZE, GlobalSettings, LoadBalancingMode,
    ParameterId, SettingValues, StatelessRetryConfig, StatisticsV2, Status, TlsProvider, XdpMapConfig,
};
use crate::configuration::CONFIGURATIONS;
use crate::{settings, worker};
use godwit_transport::ServerId;
use std::mem::offset_of;

/// The version of MsQuic whose interface this is.
const LIBRARY_VERSION: [u32; 4] = [2, 6, 0, 0];

/// Of what sources this is, as text that a zero byte ends.
const SOURCES: &str = concat!("godwit-", env!("CARGO_PKG_VERSION"), "\0");

/// How much memory handshakes may take, in 65,535ths of the machine's, until it is set.
const RETRY_MEMORY: u16 = 65;

/// What the sockets can do: several datagrams are received at once (0x2) and sent at once (0x4), and several sockets may have
/// one port (0x8).
const DATAPATH_FEATURES: u32 = 0x2 | 0x4 | 0x8;

/// Bytes of the shortest [`GlobalSettings`].
const GLOBAL_SETTINGS_MIN_SIZE: usize = offset_of!(GlobalSettings, fixed_server_id);

pub(super) fn get(parameter: ParameterId, room: &mut Room<'_>) -> Result<(), Status> {
    match parameter {
        p::RETRY_MEMORY_PERCENT => room.put(of_library().retry_memory.unwrap_or(RETRY_MEMORY)),
        p::SUPPORTED_VERSIONS => {
            let versions = super::versions::SPOKEN;
            room.put_bytes(&versions.map(u32::to_be_bytes).concat())
        }
        p::LOAD_BALACING_MODE => room.put(of_library().load_balancing.unwrap_or_default()),
        p::PERF_COUNTERS => put_whole_ones(&counts::all(), room),
        p::LIBRARY_VERSION => room.put(LIBRARY_VERSION),
        p::SETTINGS => room.put_settings(&settings::own(), &settings::globals()),
        p::GLOBAL_SETTINGS => global_settings(&of_library(), room),
        p::VERSION_SETTINGS => of_library().versions.get(room),
        p::LIBRARY_GIT_HASH => room.put_bytes(SOURCES.as_bytes()),
        p::EXECUTION_CONFIG => execution(&of_library().execution, room),
        p::TLS_PROVIDER => room.put(TlsProvider::OPENSSL.0),
        p::STATISTICS_V2_SIZES => {
            let sizes = StatisticsV2::SIZES.map(|size| u32::try_from(size).unwrap_or(u32::MAX));
            put_whole_ones(&sizes, room)
        }
        p::STATELESS_RETRY_CONFIG => Err(Status::NOT_SUPPORTED),
        p::XDP_MAP_CONFIG => xdp_maps(&of_library().xdp_maps, room),
        private::VERSION_NEGOTIATION_ENABLED => {
            room.put(Boolean::from(of_library().versions.negotiated.unwrap_or_default()))
        }
        private::IN_USE => room.put(Boolean::from(worker::is_in_use())),
        private::DATAPATH_FEATURES => {
            room.need(size_of::<u32>())?;
            worker::pool().ok_or(Status::INVALID_STATE)?;
            room.put(DATAPATH_FEATURES)
        }
        _ => Err(Status::INVALID_PARAMETER),
    }
}

pub(super) fn set(parameter: ParameterId, given: &Given<'_>) -> Result<(), Status> {
    let has_started = worker::has_started();
    match parameter {
        p::RETRY_MEMORY_PERCENT => set_retry_memory(given.exactly()?),
        p::LOAD_BALACING_MODE => set_load_balancing(given.exactly()?),
        p::SETTINGS => {
            settings::change(&SettingValues::read(given.bytes()?)?)?;
            CONFIGURATIONS.all().iter().for_each(|configuration| configuration.on_globals_changed());
            Ok(())
        }
        p::GLOBAL_SETTINGS => set_global_settings(given),
        p::VERSION_SETTINGS => {
            of_library().versions.set(given)?;
            on_versions_changed();
            Ok(())
        }
        p::EXECUTION_CONFIG => set_execution(given, has_started),
        p::STATELESS_RESET_KEY if !has_started => Err(Status::INVALID_STATE),
        p::STATELESS_RESET_KEY => {
            let key = given.bytes().ok().and_then(|bytes| bytes.try_into().ok());
            worker::set_reset_key(key.ok_or(Status::INVALID_PARAMETER)?);
            Ok(())
        }
        p::STATELESS_RETRY_CONFIG => set_retry_config(&given.at_least()?),
        p::XDP_MAP_CONFIG => set_xdp_maps(given, has_started),
        private::VERSION_NEGOTIATION_ENABLED => {
            of_library().versions.negotiated = Some(Boolean(given.at_least::<u8>()?).is_true());
            on_versions_changed();
            Ok(())
        }
        private::DATAPATH_DSCP_RECV_ENABLED => {
            given.yes_or_no()?;
            if has_started { Err(Status::INVALID_STATE) } else { Ok(()) }
        }
        _ => Err(Status::INVALID_PARAMETER),
    }
}

/// The library's choice of versions holds for servers at once, and for what clients begin from now on.
fn on_versions_changed() {
    worker::set_versions(&super::versions_of_servers());
    CONFIGURATIONS.all().iter().for_each(|configuration| configuration.on_globals_changed());
}

/// Writes as many of these numbers as there is room for, and no part of one. With no room for one it is said how much there is
/// to be had.
fn put_whole_ones<T: Copy>(numbers: &[T], room: &mut Room<'_>) -> Result<(), Status> {
    if room.bytes() < size_of::<T>() {
        return room.need(size_of_val(numbers));
    }
    let fit = room.bytes().checked_div(size_of::<T>()).unwrap_or(0);
    let some = numbers.get(..fit).unwrap_or(numbers);
    room.put_all(some)
}

fn global_settings(kept: &OfLibrary, room: &mut Room<'_>) -> Result<(), Status> {
    room.need_grown(GLOBAL_SETTINGS_MIN_SIZE, size_of::<GlobalSettings>())?;
    let bit = |is_set: bool, bit: u32| if is_set { 1 << bit } else { 0 };
    let told = GlobalSettings {
        is_set_flags: bit(kept.retry_memory.is_some(), GlobalSettings::RETRY_MEMORY_LIMIT)
            | bit(kept.load_balancing.is_some(), GlobalSettings::LOAD_BALANCING_MODE)
            | bit(kept.fixed_server_id.is_some(), GlobalSettings::FIXED_SERVER_ID),
        retry_memory_limit: kept.retry_memory.unwrap_or(RETRY_MEMORY),
        load_balancing_mode: LoadBalancingMode(kept.load_balancing.unwrap_or_default()),
        fixed_server_id: kept.fixed_server_id.unwrap_or_default(),
    };
    room.put_part(told, &GlobalSettings::LAYOUT);
    Ok(())
}

fn set_global_settings(given: &Given<'_>) -> Result<(), Status> {
    let bytes = given.bytes()?;
    if bytes.len() < GLOBAL_SETTINGS_MIN_SIZE {
        return Err(Status::INVALID_PARAMETER);
    }
    let mut all = [0; size_of::<GlobalSettings>()];
    all.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    let settings: GlobalSettings = read(&all).ok_or(Status::INVALID_PARAMETER)?;
    let is_set = |bit: u32| settings.is_set_flags & 1 << bit != 0;
    if is_set(GlobalSettings::LOAD_BALANCING_MODE) && settings.load_balancing_mode >= LoadBalancingMode::COUNT
    {
        return Err(Status::INVALID_PARAMETER);
    }
    let mut kept = of_library();
    if is_set(GlobalSettings::LOAD_BALANCING_MODE) {
        kept.load_balancing = Some(settings.load_balancing_mode.0);
    }
    if is_set(GlobalSettings::FIXED_SERVER_ID) && bytes.len() >= size_of::<GlobalSettings>() {
        kept.fixed_server_id = Some(settings.fixed_server_id);
    }
    drop(kept);
    worker::set_server_id(server_id());
    if is_set(GlobalSettings::RETRY_MEMORY_LIMIT) {
        set_retry_memory(settings.retry_memory_limit)
    } else {
        Ok(())
    }
}

/// With nothing for handshakes, every client has to prove its address.
fn set_retry_memory(part: u16) -> Result<(), Status> {
    of_library().retry_memory = Some(part);
    worker::set_retries_always(part == 0);
    Ok(())
}

fn set_load_balancing(mode: u16) -> Result<(), Status> {
    if mode > LoadBalancingMode::SERVER_ID_IP.0 {
        return Err(Status::INVALID_PARAMETER);
    }
    let mut kept = of_library();
    if worker::is_in_use() && kept.load_balancing.unwrap_or_default() != mode {
        return Err(Status::INVALID_STATE);
    }
    kept.load_balancing = Some(mode);
    drop(kept);
    worker::set_server_id(server_id());
    Ok(())
}

/// What connection ids show to load balancers, as it was set.
fn server_id() -> Option<ServerId> {
    let kept = of_library();
    match LoadBalancingMode(kept.load_balancing.unwrap_or_default()) {
        LoadBalancingMode::SERVER_ID_IP => Some(ServerId::LocalAddress),
        // In the order in which it is in memory.
        LoadBalancingMode::SERVER_ID_FIXED => {
            Some(ServerId::Fixed(kept.fixed_server_id.unwrap_or_default().to_ne_bytes()))
        }
        _ => None,
    }
}

fn execution(kept: &[u8], room: &mut Room<'_>) -> Result<(), Status> {
    if kept.is_empty() {
        room.put_nothing();
        return Ok(());
    }
    room.put_bytes(kept)
}

/// Bytes before the numbers of processors, and where there is said how many there are.
const PROCESSORS_AT: usize = offset_of!(crate::abi::GlobalExecutionConfig, processor_count);

fn set_execution(given: &Given<'_>, has_started: bool) -> Result<(), Status> {
    if given.length() == 0 {
        of_library().execution.clear();
        return Ok(());
    }
    let bytes = given.bytes()?;
    let (head, processors) =
        bytes.split_at_checked(GLOBAL_EXECUTION_CONFIG_MIN_SIZE).ok_or(Status::INVALID_PARAMETER)?;
    let count = head.get(PROCESSORS_AT..).and_then(read::<u32>).ok_or(Status::INVALID_PARAMETER)? as usize;
    let of_list = count.checked_mul(size_of::<u16>()).and_then(|length| processors.get(..length));
    let listed: Vec<u16> = read_all(of_list.ok_or(Status::INVALID_PARAMETER)?);
    let there_are = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if listed.iter().any(|processor| usize::from(*processor) >= there_are) {
        return Err(Status::INVALID_PARAMETER);
    }
    if !has_started {
        let length = head.len().saturating_add(size_of_val(listed.as_slice()));
        of_library().execution = bytes.get(..length).unwrap_or(bytes).to_vec();
    }
    Ok(())
}

fn set_retry_config(config: &StatelessRetryConfig) -> Result<(), Status> {
    let length = match config.algorithm {
        AeadAlgorithmType::AES_128_GCM => 16,
        AeadAlgorithmType::AES_256_GCM => 32,
        _ => return Err(Status::INVALID_PARAMETER),
    };
    if config.secret.is_null() || config.rotation_ms == 0 || config.secret_length != length {
        return Err(Status::INVALID_PARAMETER);
    }
    // SAFETY: the application has given so many bytes, and leaves them as they are during the call.
    let secret = unsafe { std::slice::from_raw_parts(config.secret, length as usize) };
    worker::set_token_secret(secret, config.rotation_ms);
    Ok(())
}

fn xdp_maps(kept: &[u8], room: &mut Room<'_>) -> Result<(), Status> {
    if kept.is_empty() {
        room.put_nothing();
        return Ok(());
    }
    // There is no other answer to who has given nowhere to write.
    room.put_bytes(kept).map_err(|_| room.too_small(kept.len()))
}

fn set_xdp_maps(given: &Given<'_>, has_started: bool) -> Result<(), Status> {
    let bytes = if given.length() == 0 { &[] } else { given.bytes()? };
    if !bytes.len().is_multiple_of(size_of::<XdpMapConfig>()) {
        return Err(Status::INVALID_PARAMETER);
    }
    if has_started {
        return Err(Status::INVALID_STATE);
    }
    of_library().xdp_maps = bytes.to_vec();
    settings::set_xdp_wanted(!bytes.is_empty());
    Ok(())
}
