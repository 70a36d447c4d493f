//! The types, constants and layouts of the ABI.
//!
//! Names are as the rest of Godwit has them, and each says what it is called in C; a member has the same name as in C but
//! for its spelling (`IdleTimeoutMs` is `idle_timeout_ms`, `Type` is `kind`). Numbers that C declares as `enum` are types
//! of their own that hold any number, as a program may give any. "Preview" marks what C declares only for programs that
//! ask for previews; "Windows" what has no use on Linux.
//!
//! [`LAYOUTS`] and [`CONSTANTS`] list all of it under the names of C, for the test that asks a C compiler.

mod address;
mod api_table;
mod basic;
mod credentials;
mod events;
mod execution;
mod flags;
pub mod layout;
pub mod parameters;
pub(crate) mod plain;
mod settings;
mod statistics;
mod status;
mod tls;

pub use address::*;
pub use api_table::*;
pub use basic::*;
pub use credentials::*;
pub use events::*;
pub use execution::*;
pub use flags::*;
pub use parameters::{
    DatapathCreateHook, DatapathGetAddressHook, DatapathHooks, DatapathReceiveHook, DatapathSendHook, Level,
    ParameterId, PrivateTransportParameter,
};
pub use settings::*;
pub use statistics::*;
pub use status::*;
pub use tls::*;

use layout::{Constants, Layout};

/// Every type that has members.
pub const LAYOUTS: &[Layout] = &[
    Address::LAYOUT,
    AddressText::LAYOUT,
    ApiTable::LAYOUT,
    Buffer::LAYOUT,
    CertificateFile::LAYOUT,
    CertificateFileProtected::LAYOUT,
    CertificateHash::LAYOUT,
    CertificateHashStore::LAYOUT,
    CertificatePkcs12::LAYOUT,
    ConnectionEvent::LAYOUT,
    ConnectionPoolConfig::LAYOUT,
    CredentialConfig::LAYOUT,
    DatapathHooks::LAYOUT,
    ExecutionConfig::LAYOUT,
    GlobalExecutionConfig::LAYOUT,
    GlobalSettings::LAYOUT,
    HandshakeInfo::LAYOUT,
    KeyingMaterialConfig::LAYOUT,
    ListenerEvent::LAYOUT,
    ListenerStatistics::LAYOUT,
    NetworkStatistics::LAYOUT,
    NewConnectionInfo::LAYOUT,
    PrivateTransportParameter::LAYOUT,
    RegistrationConfig::LAYOUT,
    Settings::LAYOUT,
    Layout { fields: &[], bits: Settings::BITS, ..Settings::LAYOUT },
    StatelessRetryConfig::LAYOUT,
    Statistics::LAYOUT,
    StatisticsV2::LAYOUT,
    StreamEvent::LAYOUT,
    StreamStatistics::LAYOUT,
    SubmissionEntry::LAYOUT,
    TicketKeyConfig::LAYOUT,
    TlsSecrets::LAYOUT,
    VersionSettings::LAYOUT,
    XdpMapConfig::LAYOUT,
];

/// Every constant, and the types whose values they are.
pub const CONSTANTS: &[Constants] = &[
    AddressFamily::CONSTANTS,
    AeadAlgorithmType::CONSTANTS,
    AllowedCipherSuiteFlags::CONSTANTS,
    CertificateHashStoreFlags::CONSTANTS,
    CipherAlgorithm::CONSTANTS,
    CipherSuite::CONSTANTS,
    CongestionControlAlgorithm::CONSTANTS,
    ConnectionEventType::CONSTANTS,
    ConnectionPoolFlags::CONSTANTS,
    ConnectionShutdownFlags::CONSTANTS,
    CredentialFlags::CONSTANTS,
    CredentialType::CONSTANTS,
    DatagramSendState::CONSTANTS,
    ExecutionProfile::CONSTANTS,
    GLOBAL_EXECUTION_CONFIG_SIZES,
    GlobalExecutionConfigFlags::CONSTANTS,
    HashAlgorithm::CONSTANTS,
    KeyExchangeAlgorithm::CONSTANTS,
    LIMITS,
    ListenerEventType::CONSTANTS,
    LoadBalancingMode::CONSTANTS,
    PerformanceCounter::CONSTANTS,
    ReceiveFlags::CONSTANTS,
    STATISTICS_V2_SIZES,
    SendFlags::CONSTANTS,
    SendResumptionFlags::CONSTANTS,
    ServerResumptionLevel::CONSTANTS,
    Status::CONSTANTS,
    StreamEventType::CONSTANTS,
    StreamOpenFlags::CONSTANTS,
    StreamSchedulingScheme::CONSTANTS,
    StreamShutdownFlags::CONSTANTS,
    StreamStartFlags::CONSTANTS,
    TlsAlertCode::CONSTANTS,
    TlsGroup::CONSTANTS,
    TlsProtocolVersion::CONSTANTS,
    TlsProvider::CONSTANTS,
    UINT62,
    parameters::PREFIXES,
    parameters::configuration::ALL,
    parameters::connection::ALL,
    parameters::global::ALL,
    parameters::listener::ALL,
    parameters::private_configuration::ALL,
    parameters::private_connection::ALL,
    parameters::private_global::ALL,
    parameters::private_stream::ALL,
    parameters::stream::ALL,
    parameters::tls::ALL,
];
