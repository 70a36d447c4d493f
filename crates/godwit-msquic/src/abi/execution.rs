//! How work is spread over processors, and what a registration is opened with.

use super::layout::{codes, flags, layout, numbers};
use std::ffi::{c_char, c_int, c_void};

codes! {
    /// What a registration's work is arranged for.
    ExecutionProfile(u32), "QUIC_EXECUTION_PROFILE" {
        /// Short times to answer.
        LOW_LATENCY = 0, "QUIC_EXECUTION_PROFILE_LOW_LATENCY";
        /// Much data.
        MAX_THROUGHPUT = 1, "QUIC_EXECUTION_PROFILE_TYPE_MAX_THROUGHPUT";
        /// Work that nobody waits for.
        SCAVENGER = 2, "QUIC_EXECUTION_PROFILE_TYPE_SCAVENGER";
        /// Work that has to be done at once.
        REAL_TIME = 3, "QUIC_EXECUTION_PROFILE_TYPE_REAL_TIME";
    }
}

flags! {
    /// What threads are like (preview).
    GlobalExecutionConfigFlags(u32), "QUIC_GLOBAL_EXECUTION_CONFIG_FLAGS" {
        /// As usual.
        NONE = 0, "QUIC_GLOBAL_EXECUTION_CONFIG_FLAG_NONE";
        /// They have no processor that they prefer.
        NO_IDEAL_PROC = 0x8, "QUIC_GLOBAL_EXECUTION_CONFIG_FLAG_NO_IDEAL_PROC";
        /// They go before those of other programs.
        HIGH_PRIORITY = 0x10, "QUIC_GLOBAL_EXECUTION_CONFIG_FLAG_HIGH_PRIORITY";
        /// They run on their processor only.
        AFFINITIZE = 0x20, "QUIC_GLOBAL_EXECUTION_CONFIG_FLAG_AFFINITIZE";
    }
}

/// What a registration is opened with; a null pointer in its place is the same as all zero.
///
/// In C: `QUIC_REGISTRATION_CONFIG`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct RegistrationConfig {
    /// What the application calls itself, ended by a zero byte; may be null.
    pub app_name: *const c_char,
    /// What its work is arranged for.
    pub execution_profile: ExecutionProfile,
}

layout! {
    RegistrationConfig, "QUIC_REGISTRATION_CONFIG", 16 {
        app_name, "AppName", 0;
        execution_profile, "ExecutionProfile", 8;
    }
}

/// The threads of the library, which is a parameter that is set before the first registration (preview).
///
/// It ends with as many processors as it says, of which this declares the first.
///
/// In C: `QUIC_GLOBAL_EXECUTION_CONFIG`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GlobalExecutionConfig {
    /// What the threads are like.
    pub flags: GlobalExecutionConfigFlags,
    /// How long a thread without work looks for some before it sleeps, in microseconds.
    pub polling_idle_timeout_us: u32,
    /// How many processors follow.
    pub processor_count: u32,
    /// Their numbers.
    pub processor_list: [u16; 1],
}

numbers! {
    /// The size of the shortest.
    GLOBAL_EXECUTION_CONFIG_SIZES: usize {
        /// Bytes of a [`GlobalExecutionConfig`] that names no processor.
        GLOBAL_EXECUTION_CONFIG_MIN_SIZE = std::mem::offset_of!(GlobalExecutionConfig, processor_list),
            "QUIC_GLOBAL_EXECUTION_CONFIG_MIN_SIZE";
    }
}

layout! {
    GlobalExecutionConfig, "QUIC_GLOBAL_EXECUTION_CONFIG", 16 {
        flags, "Flags", 0;
        polling_idle_timeout_us, "PollingIdleTimeoutUs", 4;
        processor_count, "ProcessorCount", 8;
        processor_list, "ProcessorList", 12;
    }
}

/// A loop of the application's own in which work is done (preview).
///
/// In C: `QUIC_EXECUTION_CONFIG`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ExecutionConfig {
    /// The processor on which it runs.
    pub ideal_processor: u32,
    /// The descriptor of its epoll instance. In C: `QUIC_EVENTQ *`.
    pub event_queue: *mut c_int,
}

layout! {
    ExecutionConfig, "QUIC_EXECUTION_CONFIG", 16 {
        ideal_processor, "IdealProcessor", 0;
        event_queue, "EventQ", 8;
    }
}

/// One such loop, of which the application knows nothing (preview).
///
/// In C: `QUIC_EXECUTION`.
#[repr(C)]
#[derive(Debug)]
pub struct Execution {
    nothing: [u8; 0],
}

/// What an event of an application's own loop leads to: the data of its `struct epoll_event` points here (preview).
///
/// In C: `QUIC_SQE`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct SubmissionEntry {
    /// The descriptor that is waited for.
    pub descriptor: c_int,
    /// What is called with the event (`struct epoll_event`).
    pub completion: Option<unsafe extern "C" fn(event: *mut c_void)>,
}

layout! {
    SubmissionEntry, "QUIC_SQE", 16 {
        descriptor, "fd", 0;
        completion, "Completion", 8;
    }
}

/// A map of an XDP program for one interface (preview; of no effect on Linux).
///
/// In C: `QUIC_XDP_MAP_CONFIG`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct XdpMapConfig {
    /// The number of the interface.
    pub interface_index: u32,
    /// The descriptor of the map. In C: `QUIC_XDP_MAP_HANDLE`.
    pub map_handle: c_int,
}

layout! {
    XdpMapConfig, "QUIC_XDP_MAP_CONFIG", 8 {
        interface_index, "InterfaceIndex", 0;
        map_handle, "MapHandle", 4;
    }
}
