//! How C spells the types of the functions in the table, and of what is handed to them.

use godwit_msquic::abi::*;
use std::ffi::{c_char, c_void};

/// A type that C knows, too.
trait Spelled {
    fn spelled() -> String;
}

macro_rules! spelled {
    ($($type:ty, $spelled:literal;)*) => {
        $(impl Spelled for $type {
            fn spelled() -> String {
                $spelled.into()
            }
        })*
    };
}

spelled! {
    (), "void";
    Address, "QUIC_ADDR";
    AddressFamily, "QUIC_ADDRESS_FAMILY";
    Boolean, "BOOLEAN";
    Buffer, "QUIC_BUFFER";
    ConnectionEvent, "QUIC_CONNECTION_EVENT";
    AeadAlgorithmType, "QUIC_AEAD_ALGORITHM_TYPE";
    CipherAlgorithm, "QUIC_CIPHER_ALGORITHM";
    CipherSuite, "QUIC_CIPHER_SUITE";
    ConnectionPoolFlags, "QUIC_CONNECTION_POOL_FLAGS";
    ExecutionProfile, "QUIC_EXECUTION_PROFILE";
    HashAlgorithm, "QUIC_HASH_ALGORITHM";
    KeyExchangeAlgorithm, "QUIC_KEY_EXCHANGE_ALGORITHM";
    TlsGroup, "QUIC_TLS_GROUP";
    TlsProtocolVersion, "QUIC_TLS_PROTOCOL_VERSION";
    i32, "int32_t";
    ConnectionPoolConfig, "QUIC_CONNECTION_POOL_CONFIG";
    ConnectionShutdownFlags, "QUIC_CONNECTION_SHUTDOWN_FLAGS";
    CredentialConfig, "QUIC_CREDENTIAL_CONFIG";
    Execution, "QUIC_EXECUTION";
    ExecutionConfig, "QUIC_EXECUTION_CONFIG";
    GlobalExecutionConfigFlags, "QUIC_GLOBAL_EXECUTION_CONFIG_FLAGS";
    KeyingMaterialConfig, "QUIC_KEYING_MATERIAL_CONFIG";
    ListenerEvent, "QUIC_LISTENER_EVENT";
    Opaque, "struct QUIC_HANDLE";
    ParameterId, "uint32_t";
    RegistrationConfig, "QUIC_REGISTRATION_CONFIG";
    SendFlags, "QUIC_SEND_FLAGS";
    SendResumptionFlags, "QUIC_SEND_RESUMPTION_FLAGS";
    Settings, "QUIC_SETTINGS";
    Status, "QUIC_STATUS";
    StreamEvent, "QUIC_STREAM_EVENT";
    StreamOpenFlags, "QUIC_STREAM_OPEN_FLAGS";
    StreamShutdownFlags, "QUIC_STREAM_SHUTDOWN_FLAGS";
    StreamStartFlags, "QUIC_STREAM_START_FLAGS";
    TlsAlertCode, "QUIC_TLS_ALERT_CODES";
    c_char, "char";
    c_void, "void";
    u16, "uint16_t";
    u32, "uint32_t";
    u64, "uint64_t";
    u8, "uint8_t";
}

impl<T: Spelled> Spelled for *const T {
    fn spelled() -> String {
        format!("const {} *", T::spelled())
    }
}

impl<T: Spelled> Spelled for *mut T {
    fn spelled() -> String {
        format!("{} *", T::spelled())
    }
}

impl<T: Spelled> Spelled for Option<T> {
    fn spelled() -> String {
        T::spelled()
    }
}

macro_rules! functions {
    ($(($($argument:ident),+))*) => {
        $(impl<Returned: Spelled, $($argument: Spelled),+> Spelled
            for unsafe extern "C" fn($($argument),+) -> Returned
        {
            fn spelled() -> String {
                format!("{} (*)({})", Returned::spelled(), [$($argument::spelled()),+].join(", "))
            }
        })*
    };
}

functions! { (A) (A, B) (A, B, C) (A, B, C, D) (A, B, C, D, E) (A, B, C, D, E, F) (A, B, C, D, E, F, G) }

/// The spelling of the member to which a function leads.
fn of<T, M: Spelled>(_: fn(&T) -> M) -> String {
    M::spelled()
}

macro_rules! members {
    ($type:ty: $($member:ident)*) => {
        [$((std::mem::offset_of!($type, $member), of(|it: &$type| it.$member))),*]
            .into_iter()
            .map(|(offset, spelled)| {
                let field = <$type>::LAYOUT.fields.iter().find(|field| field.offset == offset).unwrap();
                (<$type>::LAYOUT.c_name, field.c_name, spelled)
            })
    };
}

/// The name of a type in C, that of one of its members, and how C spells the type of that.
pub(crate) fn members() -> Vec<(&'static str, &'static str, String)> {
    let table = members! { ApiTable:
        set_context get_context set_callback_handler set_param get_param registration_open registration_close
        registration_shutdown configuration_open configuration_close configuration_load_credential listener_open
        listener_close listener_start listener_stop connection_open connection_close connection_shutdown
        connection_start connection_set_configuration connection_send_resumption_ticket stream_open stream_close
        stream_start stream_shutdown stream_send stream_receive_complete stream_receive_set_enabled datagram_send
        connection_resumption_ticket_validation_complete connection_certificate_validation_complete
        connection_open_in_partition stream_provide_receive_buffers connection_pool_create execution_create
        execution_delete execution_poll registration_close2 connection_export_keying_material
    };
    assert_eq!(table.len(), ApiTable::SLOTS);
    let mut others = Vec::new();
    others.extend(members! { Buffer: length buffer });
    others.extend(members! { CertificateFile: private_key_file certificate_file });
    others.extend(members! { CertificatePkcs12: asn1_blob asn1_blob_length private_key_password });
    others.extend(members! { ConnectionPoolConfig:
        registration configuration handler context server_name server_address family server_port
        number_of_connections cibir_ids cibir_id_length flags
    });
    others.extend(members! { CredentialConfig: principal reserved async_handler ca_certificate_file });
    others.extend(members! { DatapathHooks: create get_local_address get_remote_address });
    others.extend(members! { ExecutionConfig: ideal_processor event_queue });
    others.extend(members! { HandshakeInfo:
        tls_protocol_version cipher_algorithm cipher_strength hash hash_strength key_exchange_algorithm
        key_exchange_strength cipher_suite tls_group
    });
    others.extend(members! { KeyingMaterialConfig: label context_length context output_length });
    others.extend(members! { NewConnectionInfo:
        quic_version local_address remote_address crypto_buffer_length client_alpn_list_length server_name_length
        negotiated_alpn_length crypto_buffer client_alpn_list negotiated_alpn server_name
    });
    others.extend(members! { PrivateTransportParameter: kind length buffer });
    others.extend(members! { RegistrationConfig: app_name execution_profile });
    others.extend(members! { StatelessRetryConfig: algorithm rotation_ms secret_length secret });
    others.extend(members! { VersionSettings:
        acceptable_versions offered_versions fully_deployed_versions acceptable_versions_length
        offered_versions_length fully_deployed_versions_length
    });
    table.chain(others).collect()
}
