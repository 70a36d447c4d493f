/*
 * The ABI of MsQuic, version 2 of its function table, on Linux with 64 bits, as Godwit serves it.
 *
 * Everything is declared, what belongs to previews and what is insecure among it. The crate's Rust types say what each
 * thing is for.
 */
#ifndef GODWIT_MSQUIC_H
#define GODWIT_MSQUIC_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Basic types and limits. */

typedef struct QUIC_HANDLE *HQUIC;
typedef unsigned char BOOLEAN;
typedef uint64_t QUIC_UINT62;

#ifndef FALSE
#define FALSE 0
#define TRUE 1
#endif

#define QUIC_API
#define QUIC_UINT62_MAX ((1ULL << 62) - 1)

#define QUIC_API_VERSION_1 1
#define QUIC_API_VERSION_2 2

#define QUIC_MAX_ALPN_LENGTH                255
#define QUIC_MAX_SNI_LENGTH                 65535
#define QUIC_MAX_RESUMPTION_APP_DATA_LENGTH 1000
#define QUIC_STATELESS_RESET_KEY_LENGTH     32
#define QUIC_MAX_TICKET_KEY_COUNT           16
#define QUIC_TLS_SECRETS_MAX_SECRET_LEN     64

typedef struct QUIC_BUFFER {
    uint32_t Length;
    uint8_t *Buffer;
} QUIC_BUFFER;

/* Status codes. */

#define QUIC_STATUS unsigned int

#define QUIC_FAILED(Status)    ((int)(Status) > 0)
#define QUIC_SUCCEEDED(Status) ((int)(Status) <= 0)

#define QUIC_STATUS_TLS_ALERT(Alert)  ((QUIC_STATUS)(200000256 + ((Alert) & 0xff)))
#define QUIC_STATUS_CERT_ERROR(Error) ((QUIC_STATUS)(200000512 + (Error)))

#define QUIC_STATUS_SUCCESS ((QUIC_STATUS)0)
#define QUIC_STATUS_PENDING ((QUIC_STATUS)-2)
#define QUIC_STATUS_CONTINUE ((QUIC_STATUS)-1)
#define QUIC_STATUS_OUT_OF_MEMORY ((QUIC_STATUS)12)
#define QUIC_STATUS_INVALID_PARAMETER ((QUIC_STATUS)22)
#define QUIC_STATUS_INVALID_STATE ((QUIC_STATUS)1)
#define QUIC_STATUS_NOT_SUPPORTED ((QUIC_STATUS)95)
#define QUIC_STATUS_NOT_FOUND ((QUIC_STATUS)2)
#define QUIC_STATUS_FILE_NOT_FOUND QUIC_STATUS_NOT_FOUND
#define QUIC_STATUS_BUFFER_TOO_SMALL ((QUIC_STATUS)75)
#define QUIC_STATUS_HANDSHAKE_FAILURE ((QUIC_STATUS)103)
#define QUIC_STATUS_ABORTED ((QUIC_STATUS)125)
#define QUIC_STATUS_ADDRESS_IN_USE ((QUIC_STATUS)98)
#define QUIC_STATUS_INVALID_ADDRESS ((QUIC_STATUS)97)
#define QUIC_STATUS_CONNECTION_TIMEOUT ((QUIC_STATUS)110)
#define QUIC_STATUS_CONNECTION_IDLE ((QUIC_STATUS)62)
#define QUIC_STATUS_INTERNAL_ERROR ((QUIC_STATUS)5)
#define QUIC_STATUS_CONNECTION_REFUSED ((QUIC_STATUS)111)
#define QUIC_STATUS_PROTOCOL_ERROR ((QUIC_STATUS)71)
#define QUIC_STATUS_VER_NEG_ERROR ((QUIC_STATUS)93)
#define QUIC_STATUS_UNREACHABLE ((QUIC_STATUS)113)
#define QUIC_STATUS_TLS_ERROR ((QUIC_STATUS)126)
#define QUIC_STATUS_USER_CANCELED ((QUIC_STATUS)130)
#define QUIC_STATUS_ALPN_NEG_FAILURE ((QUIC_STATUS)92)
#define QUIC_STATUS_STREAM_LIMIT_REACHED ((QUIC_STATUS)86)
#define QUIC_STATUS_ALPN_IN_USE ((QUIC_STATUS)91)
#define QUIC_STATUS_ADDRESS_NOT_AVAILABLE ((QUIC_STATUS)99)
#define QUIC_STATUS_CLOSE_NOTIFY QUIC_STATUS_TLS_ALERT(0)
#define QUIC_STATUS_BAD_CERTIFICATE QUIC_STATUS_TLS_ALERT(42)
#define QUIC_STATUS_UNSUPPORTED_CERTIFICATE QUIC_STATUS_TLS_ALERT(43)
#define QUIC_STATUS_REVOKED_CERTIFICATE QUIC_STATUS_TLS_ALERT(44)
#define QUIC_STATUS_EXPIRED_CERTIFICATE QUIC_STATUS_TLS_ALERT(45)
#define QUIC_STATUS_UNKNOWN_CERTIFICATE QUIC_STATUS_TLS_ALERT(46)
#define QUIC_STATUS_REQUIRED_CERTIFICATE QUIC_STATUS_TLS_ALERT(116)
#define QUIC_STATUS_CERT_EXPIRED QUIC_STATUS_CERT_ERROR(1)
#define QUIC_STATUS_CERT_UNTRUSTED_ROOT QUIC_STATUS_CERT_ERROR(2)
#define QUIC_STATUS_CERT_NO_CERT QUIC_STATUS_CERT_ERROR(3)

/* Addresses. */

typedef sa_family_t QUIC_ADDRESS_FAMILY;
#define QUIC_ADDRESS_FAMILY_UNSPEC AF_UNSPEC
#define QUIC_ADDRESS_FAMILY_INET   AF_INET
#define QUIC_ADDRESS_FAMILY_INET6  AF_INET6

typedef union QUIC_ADDR {
    struct sockaddr Ip;
    struct sockaddr_in Ipv4;
    struct sockaddr_in6 Ipv6;
} QUIC_ADDR;

typedef struct QUIC_ADDR_STR {
    char Address[64];
} QUIC_ADDR_STR;

/* Flags and modes. */

typedef uint32_t QUIC_STREAM_OPEN_FLAGS;
enum {
    QUIC_STREAM_OPEN_FLAG_NONE = 0,
    QUIC_STREAM_OPEN_FLAG_UNIDIRECTIONAL = 0x1,
    QUIC_STREAM_OPEN_FLAG_0_RTT = 0x2,
    QUIC_STREAM_OPEN_FLAG_DELAY_ID_FC_UPDATES = 0x4,
    QUIC_STREAM_OPEN_FLAG_APP_OWNED_BUFFERS = 0x8,
};

typedef uint32_t QUIC_STREAM_START_FLAGS;
enum {
    QUIC_STREAM_START_FLAG_NONE = 0,
    QUIC_STREAM_START_FLAG_IMMEDIATE = 0x1,
    QUIC_STREAM_START_FLAG_FAIL_BLOCKED = 0x2,
    QUIC_STREAM_START_FLAG_SHUTDOWN_ON_FAIL = 0x4,
    QUIC_STREAM_START_FLAG_INDICATE_PEER_ACCEPT = 0x8,
    QUIC_STREAM_START_FLAG_PRIORITY_WORK = 0x10,
};

typedef uint32_t QUIC_STREAM_SHUTDOWN_FLAGS;
enum {
    QUIC_STREAM_SHUTDOWN_FLAG_NONE = 0,
    QUIC_STREAM_SHUTDOWN_FLAG_GRACEFUL = 0x1,
    QUIC_STREAM_SHUTDOWN_FLAG_ABORT_SEND = 0x2,
    QUIC_STREAM_SHUTDOWN_FLAG_ABORT_RECEIVE = 0x4,
    QUIC_STREAM_SHUTDOWN_FLAG_ABORT = 0x6,
    QUIC_STREAM_SHUTDOWN_FLAG_IMMEDIATE = 0x8,
    QUIC_STREAM_SHUTDOWN_FLAG_INLINE = 0x10,
};

typedef uint32_t QUIC_RECEIVE_FLAGS;
enum {
    QUIC_RECEIVE_FLAG_NONE = 0,
    QUIC_RECEIVE_FLAG_0_RTT = 0x1,
    QUIC_RECEIVE_FLAG_FIN = 0x2,
};

typedef uint32_t QUIC_SEND_FLAGS;
enum {
    QUIC_SEND_FLAG_NONE = 0,
    QUIC_SEND_FLAG_ALLOW_0_RTT = 0x1,
    QUIC_SEND_FLAG_START = 0x2,
    QUIC_SEND_FLAG_FIN = 0x4,
    QUIC_SEND_FLAG_DGRAM_PRIORITY = 0x8,
    QUIC_SEND_FLAG_DELAY_SEND = 0x10,
    QUIC_SEND_FLAG_CANCEL_ON_LOSS = 0x20,
    QUIC_SEND_FLAG_PRIORITY_WORK = 0x40,
    QUIC_SEND_FLAG_CANCEL_ON_BLOCKED = 0x80,
};

typedef uint32_t QUIC_CONNECTION_SHUTDOWN_FLAGS;
enum {
    QUIC_CONNECTION_SHUTDOWN_FLAG_NONE = 0,
    QUIC_CONNECTION_SHUTDOWN_FLAG_SILENT = 0x1,
};

typedef uint32_t QUIC_SEND_RESUMPTION_FLAGS;
enum {
    QUIC_SEND_RESUMPTION_FLAG_NONE = 0,
    QUIC_SEND_RESUMPTION_FLAG_FINAL = 0x1,
};

typedef uint32_t QUIC_CONNECTION_POOL_FLAGS;
enum {
    QUIC_CONNECTION_POOL_FLAG_NONE = 0,
    QUIC_CONNECTION_POOL_FLAG_CLOSE_ON_FAILURE = 0x1,
};

typedef uint32_t QUIC_SERVER_RESUMPTION_LEVEL;
enum {
    QUIC_SERVER_NO_RESUME = 0,
    QUIC_SERVER_RESUME_ONLY = 1,
    QUIC_SERVER_RESUME_AND_ZERORTT = 2,
};

typedef uint32_t QUIC_STREAM_SCHEDULING_SCHEME;
enum {
    QUIC_STREAM_SCHEDULING_SCHEME_FIFO = 0,
    QUIC_STREAM_SCHEDULING_SCHEME_ROUND_ROBIN = 1,
    QUIC_STREAM_SCHEDULING_SCHEME_COUNT = 2,
};

typedef uint32_t QUIC_CONGESTION_CONTROL_ALGORITHM;
enum {
    QUIC_CONGESTION_CONTROL_ALGORITHM_CUBIC = 0,
    QUIC_CONGESTION_CONTROL_ALGORITHM_BBR = 1,
    QUIC_CONGESTION_CONTROL_ALGORITHM_MAX = 2,
};

typedef uint32_t QUIC_LOAD_BALANCING_MODE;
enum {
    QUIC_LOAD_BALANCING_DISABLED = 0,
    QUIC_LOAD_BALANCING_SERVER_ID_IP = 1,
    QUIC_LOAD_BALANCING_SERVER_ID_FIXED = 2,
    QUIC_LOAD_BALANCING_COUNT = 3,
};

typedef uint32_t QUIC_DATAGRAM_SEND_STATE;
enum {
    QUIC_DATAGRAM_SEND_UNKNOWN = 0,
    QUIC_DATAGRAM_SEND_SENT = 1,
    QUIC_DATAGRAM_SEND_LOST_SUSPECT = 2,
    QUIC_DATAGRAM_SEND_LOST_DISCARDED = 3,
    QUIC_DATAGRAM_SEND_ACKNOWLEDGED = 4,
    QUIC_DATAGRAM_SEND_ACKNOWLEDGED_SPURIOUS = 5,
    QUIC_DATAGRAM_SEND_CANCELED = 6,
};

#define QUIC_DATAGRAM_SEND_STATE_IS_FINAL(State) ((State) >= QUIC_DATAGRAM_SEND_LOST_DISCARDED)

/* Registrations, and where work is done. */

typedef uint32_t QUIC_EXECUTION_PROFILE;
enum {
    QUIC_EXECUTION_PROFILE_LOW_LATENCY = 0,
    QUIC_EXECUTION_PROFILE_TYPE_MAX_THROUGHPUT = 1,
    QUIC_EXECUTION_PROFILE_TYPE_SCAVENGER = 2,
    QUIC_EXECUTION_PROFILE_TYPE_REAL_TIME = 3,
};

typedef struct QUIC_REGISTRATION_CONFIG {
    const char *AppName;
    QUIC_EXECUTION_PROFILE ExecutionProfile;
} QUIC_REGISTRATION_CONFIG;

typedef uint32_t QUIC_GLOBAL_EXECUTION_CONFIG_FLAGS;
enum {
    QUIC_GLOBAL_EXECUTION_CONFIG_FLAG_NONE = 0,
    QUIC_GLOBAL_EXECUTION_CONFIG_FLAG_NO_IDEAL_PROC = 0x8,
    QUIC_GLOBAL_EXECUTION_CONFIG_FLAG_HIGH_PRIORITY = 0x10,
    QUIC_GLOBAL_EXECUTION_CONFIG_FLAG_AFFINITIZE = 0x20,
};

typedef struct QUIC_GLOBAL_EXECUTION_CONFIG {
    QUIC_GLOBAL_EXECUTION_CONFIG_FLAGS Flags;
    uint32_t PollingIdleTimeoutUs;
    uint32_t ProcessorCount;
    uint16_t ProcessorList[1];
} QUIC_GLOBAL_EXECUTION_CONFIG;

#define QUIC_GLOBAL_EXECUTION_CONFIG_MIN_SIZE ((uint32_t)offsetof(QUIC_GLOBAL_EXECUTION_CONFIG, ProcessorList))

typedef int QUIC_EVENTQ;
typedef struct epoll_event QUIC_CQE;
typedef void (*QUIC_EVENT_COMPLETION_HANDLER)(QUIC_CQE *Cqe);

typedef struct QUIC_SQE {
    int fd;
    QUIC_EVENT_COMPLETION_HANDLER Completion;
} QUIC_SQE;

typedef struct QUIC_EXECUTION QUIC_EXECUTION;

typedef struct QUIC_EXECUTION_CONFIG {
    uint32_t IdealProcessor;
    QUIC_EVENTQ *EventQ;
} QUIC_EXECUTION_CONFIG;

typedef int QUIC_XDP_MAP_HANDLE;

typedef struct QUIC_XDP_MAP_CONFIG {
    uint32_t InterfaceIndex;
    QUIC_XDP_MAP_HANDLE MapHandle;
} QUIC_XDP_MAP_CONFIG;

/* TLS. */

typedef uint32_t QUIC_TLS_PROVIDER;
enum {
    QUIC_TLS_PROVIDER_SCHANNEL = 0,
    QUIC_TLS_PROVIDER_OPENSSL = 1,
};

typedef uint32_t QUIC_TLS_ALERT_CODES;
enum {
    QUIC_TLS_ALERT_CODE_SUCCESS = 0xffff,
    QUIC_TLS_ALERT_CODE_UNEXPECTED_MESSAGE = 10,
    QUIC_TLS_ALERT_CODE_BAD_CERTIFICATE = 42,
    QUIC_TLS_ALERT_CODE_UNSUPPORTED_CERTIFICATE = 43,
    QUIC_TLS_ALERT_CODE_CERTIFICATE_REVOKED = 44,
    QUIC_TLS_ALERT_CODE_CERTIFICATE_EXPIRED = 45,
    QUIC_TLS_ALERT_CODE_CERTIFICATE_UNKNOWN = 46,
    QUIC_TLS_ALERT_CODE_ILLEGAL_PARAMETER = 47,
    QUIC_TLS_ALERT_CODE_UNKNOWN_CA = 48,
    QUIC_TLS_ALERT_CODE_ACCESS_DENIED = 49,
    QUIC_TLS_ALERT_CODE_INSUFFICIENT_SECURITY = 71,
    QUIC_TLS_ALERT_CODE_INTERNAL_ERROR = 80,
    QUIC_TLS_ALERT_CODE_USER_CANCELED = 90,
    QUIC_TLS_ALERT_CODE_CERTIFICATE_REQUIRED = 116,
    QUIC_TLS_ALERT_CODE_MAX = 255,
};

typedef uint32_t QUIC_ALLOWED_CIPHER_SUITE_FLAGS;
enum {
    QUIC_ALLOWED_CIPHER_SUITE_NONE = 0,
    QUIC_ALLOWED_CIPHER_SUITE_AES_128_GCM_SHA256 = 0x1,
    QUIC_ALLOWED_CIPHER_SUITE_AES_256_GCM_SHA384 = 0x2,
    QUIC_ALLOWED_CIPHER_SUITE_CHACHA20_POLY1305_SHA256 = 0x4,
};

typedef uint32_t QUIC_TLS_PROTOCOL_VERSION;
enum {
    QUIC_TLS_PROTOCOL_UNKNOWN = 0,
    QUIC_TLS_PROTOCOL_1_3 = 0x3000,
};

typedef uint32_t QUIC_CIPHER_ALGORITHM;
enum {
    QUIC_CIPHER_ALGORITHM_NONE = 0,
    QUIC_CIPHER_ALGORITHM_AES_128 = 0x660e,
    QUIC_CIPHER_ALGORITHM_AES_256 = 0x6610,
    QUIC_CIPHER_ALGORITHM_CHACHA20 = 0x6612,
};

typedef uint32_t QUIC_HASH_ALGORITHM;
enum {
    QUIC_HASH_ALGORITHM_NONE = 0,
    QUIC_HASH_ALGORITHM_SHA_256 = 0x800c,
    QUIC_HASH_ALGORITHM_SHA_384 = 0x800d,
};

typedef uint32_t QUIC_KEY_EXCHANGE_ALGORITHM;
enum {
    QUIC_KEY_EXCHANGE_ALGORITHM_NONE = 0,
};

typedef uint32_t QUIC_TLS_GROUP;
enum {
    QUIC_TLS_GROUP_UNKNOWN = 0,
    QUIC_TLS_GROUP_SECP256R1 = 23,
    QUIC_TLS_GROUP_SECP384R1 = 24,
    QUIC_TLS_GROUP_X25519 = 29,
    QUIC_TLS_GROUP_MLKEM512 = 512,
    QUIC_TLS_GROUP_MLKEM768 = 513,
    QUIC_TLS_GROUP_MLKEM1024 = 514,
    QUIC_TLS_GROUP_SECP256R1MLKEM768 = 4587,
    QUIC_TLS_GROUP_X25519MLKEM768 = 4588,
    QUIC_TLS_GROUP_SECP384R1MLKEM1024 = 4589,
};

typedef uint32_t QUIC_CIPHER_SUITE;
enum {
    QUIC_CIPHER_SUITE_TLS_AES_128_GCM_SHA256 = 0x1301,
    QUIC_CIPHER_SUITE_TLS_AES_256_GCM_SHA384 = 0x1302,
    QUIC_CIPHER_SUITE_TLS_CHACHA20_POLY1305_SHA256 = 0x1303,
};

typedef uint32_t QUIC_AEAD_ALGORITHM_TYPE;
enum {
    QUIC_AEAD_ALGORITHM_AES_128_GCM = 0,
    QUIC_AEAD_ALGORITHM_AES_256_GCM = 1,
};

typedef struct QUIC_HANDSHAKE_INFO {
    QUIC_TLS_PROTOCOL_VERSION TlsProtocolVersion;
    QUIC_CIPHER_ALGORITHM CipherAlgorithm;
    int32_t CipherStrength;
    QUIC_HASH_ALGORITHM Hash;
    int32_t HashStrength;
    QUIC_KEY_EXCHANGE_ALGORITHM KeyExchangeAlgorithm;
    int32_t KeyExchangeStrength;
    QUIC_CIPHER_SUITE CipherSuite;
    QUIC_TLS_GROUP TlsGroup;
} QUIC_HANDSHAKE_INFO;

typedef struct QUIC_TLS_SECRETS {
    uint8_t SecretLength;
    struct {
        uint8_t ClientRandom : 1;
        uint8_t ClientEarlyTrafficSecret : 1;
        uint8_t ClientHandshakeTrafficSecret : 1;
        uint8_t ServerHandshakeTrafficSecret : 1;
        uint8_t ClientTrafficSecret0 : 1;
        uint8_t ServerTrafficSecret0 : 1;
    } IsSet;
    uint8_t ClientRandom[32];
    uint8_t ClientEarlyTrafficSecret[QUIC_TLS_SECRETS_MAX_SECRET_LEN];
    uint8_t ClientHandshakeTrafficSecret[QUIC_TLS_SECRETS_MAX_SECRET_LEN];
    uint8_t ServerHandshakeTrafficSecret[QUIC_TLS_SECRETS_MAX_SECRET_LEN];
    uint8_t ClientTrafficSecret0[QUIC_TLS_SECRETS_MAX_SECRET_LEN];
    uint8_t ServerTrafficSecret0[QUIC_TLS_SECRETS_MAX_SECRET_LEN];
} QUIC_TLS_SECRETS;

typedef struct QUIC_TICKET_KEY_CONFIG {
    uint8_t Id[16];
    uint8_t Material[64];
    uint8_t MaterialLength;
} QUIC_TICKET_KEY_CONFIG;

typedef struct QUIC_STATELESS_RETRY_CONFIG {
    QUIC_AEAD_ALGORITHM_TYPE Algorithm;
    uint32_t RotationMs;
    uint32_t SecretLength;
    const uint8_t *Secret;
} QUIC_STATELESS_RETRY_CONFIG;

typedef struct QUIC_KEYING_MATERIAL_CONFIG {
    const char *Label;
    uint32_t ContextLength;
    const uint8_t *Context;
    uint32_t OutputLength;
} QUIC_KEYING_MATERIAL_CONFIG;

/* Credentials. */

typedef uint32_t QUIC_CREDENTIAL_TYPE;
enum {
    QUIC_CREDENTIAL_TYPE_NONE = 0,
    QUIC_CREDENTIAL_TYPE_CERTIFICATE_HASH = 1,
    QUIC_CREDENTIAL_TYPE_CERTIFICATE_HASH_STORE = 2,
    QUIC_CREDENTIAL_TYPE_CERTIFICATE_CONTEXT = 3,
    QUIC_CREDENTIAL_TYPE_CERTIFICATE_FILE = 4,
    QUIC_CREDENTIAL_TYPE_CERTIFICATE_FILE_PROTECTED = 5,
    QUIC_CREDENTIAL_TYPE_CERTIFICATE_PKCS12 = 6,
};

typedef uint32_t QUIC_CREDENTIAL_FLAGS;
enum {
    QUIC_CREDENTIAL_FLAG_NONE = 0,
    QUIC_CREDENTIAL_FLAG_CLIENT = 0x1,
    QUIC_CREDENTIAL_FLAG_LOAD_ASYNCHRONOUS = 0x2,
    QUIC_CREDENTIAL_FLAG_NO_CERTIFICATE_VALIDATION = 0x4,
    QUIC_CREDENTIAL_FLAG_ENABLE_OCSP = 0x8,
    QUIC_CREDENTIAL_FLAG_INDICATE_CERTIFICATE_RECEIVED = 0x10,
    QUIC_CREDENTIAL_FLAG_DEFER_CERTIFICATE_VALIDATION = 0x20,
    QUIC_CREDENTIAL_FLAG_REQUIRE_CLIENT_AUTHENTICATION = 0x40,
    QUIC_CREDENTIAL_FLAG_USE_TLS_BUILTIN_CERTIFICATE_VALIDATION = 0x80,
    QUIC_CREDENTIAL_FLAG_REVOCATION_CHECK_END_CERT = 0x100,
    QUIC_CREDENTIAL_FLAG_REVOCATION_CHECK_CHAIN = 0x200,
    QUIC_CREDENTIAL_FLAG_REVOCATION_CHECK_CHAIN_EXCLUDE_ROOT = 0x400,
    QUIC_CREDENTIAL_FLAG_IGNORE_NO_REVOCATION_CHECK = 0x800,
    QUIC_CREDENTIAL_FLAG_IGNORE_REVOCATION_OFFLINE = 0x1000,
    QUIC_CREDENTIAL_FLAG_SET_ALLOWED_CIPHER_SUITES = 0x2000,
    QUIC_CREDENTIAL_FLAG_USE_PORTABLE_CERTIFICATES = 0x4000,
    QUIC_CREDENTIAL_FLAG_USE_SUPPLIED_CREDENTIALS = 0x8000,
    QUIC_CREDENTIAL_FLAG_USE_SYSTEM_MAPPER = 0x10000,
    QUIC_CREDENTIAL_FLAG_CACHE_ONLY_URL_RETRIEVAL = 0x20000,
    QUIC_CREDENTIAL_FLAG_REVOCATION_CHECK_CACHE_ONLY = 0x40000,
    QUIC_CREDENTIAL_FLAG_INPROC_PEER_CERTIFICATE = 0x80000,
    QUIC_CREDENTIAL_FLAG_SET_CA_CERTIFICATE_FILE = 0x100000,
    QUIC_CREDENTIAL_FLAG_DISABLE_AIA = 0x200000,
};

typedef uint32_t QUIC_CERTIFICATE_HASH_STORE_FLAGS;
enum {
    QUIC_CERTIFICATE_HASH_STORE_FLAG_NONE = 0,
    QUIC_CERTIFICATE_HASH_STORE_FLAG_MACHINE_STORE = 0x1,
};

typedef void QUIC_CERTIFICATE;
typedef void QUIC_CERTIFICATE_CHAIN;

typedef struct QUIC_CERTIFICATE_HASH {
    uint8_t ShaHash[20];
} QUIC_CERTIFICATE_HASH;

typedef struct QUIC_CERTIFICATE_HASH_STORE {
    QUIC_CERTIFICATE_HASH_STORE_FLAGS Flags;
    uint8_t ShaHash[20];
    char StoreName[128];
} QUIC_CERTIFICATE_HASH_STORE;

typedef struct QUIC_CERTIFICATE_FILE {
    const char *PrivateKeyFile;
    const char *CertificateFile;
} QUIC_CERTIFICATE_FILE;

typedef struct QUIC_CERTIFICATE_FILE_PROTECTED {
    const char *PrivateKeyFile;
    const char *CertificateFile;
    const char *PrivateKeyPassword;
} QUIC_CERTIFICATE_FILE_PROTECTED;

typedef struct QUIC_CERTIFICATE_PKCS12 {
    const uint8_t *Asn1Blob;
    uint32_t Asn1BlobLength;
    const char *PrivateKeyPassword;
} QUIC_CERTIFICATE_PKCS12;

typedef void(QUIC_CREDENTIAL_LOAD_COMPLETE)(HQUIC Configuration, void *Context, QUIC_STATUS Status);
typedef QUIC_CREDENTIAL_LOAD_COMPLETE *QUIC_CREDENTIAL_LOAD_COMPLETE_HANDLER;

typedef struct QUIC_CREDENTIAL_CONFIG {
    QUIC_CREDENTIAL_TYPE Type;
    QUIC_CREDENTIAL_FLAGS Flags;
    union {
        QUIC_CERTIFICATE_HASH *CertificateHash;
        QUIC_CERTIFICATE_HASH_STORE *CertificateHashStore;
        QUIC_CERTIFICATE *CertificateContext;
        QUIC_CERTIFICATE_FILE *CertificateFile;
        QUIC_CERTIFICATE_FILE_PROTECTED *CertificateFileProtected;
        QUIC_CERTIFICATE_PKCS12 *CertificatePkcs12;
    };
    const char *Principal;
    void *Reserved;
    QUIC_CREDENTIAL_LOAD_COMPLETE_HANDLER AsyncHandler;
    QUIC_ALLOWED_CIPHER_SUITE_FLAGS AllowedCipherSuites;
    const char *CaCertificateFile;
} QUIC_CREDENTIAL_CONFIG;

/* Settings. */

typedef struct QUIC_SETTINGS {
    union {
        uint64_t IsSetFlags;
        struct {
            uint64_t MaxBytesPerKey : 1;
            uint64_t HandshakeIdleTimeoutMs : 1;
            uint64_t IdleTimeoutMs : 1;
            uint64_t MtuDiscoverySearchCompleteTimeoutUs : 1;
            uint64_t TlsClientMaxSendBuffer : 1;
            uint64_t TlsServerMaxSendBuffer : 1;
            uint64_t StreamRecvWindowDefault : 1;
            uint64_t StreamRecvBufferDefault : 1;
            uint64_t ConnFlowControlWindow : 1;
            uint64_t MaxWorkerQueueDelayUs : 1;
            uint64_t MaxStatelessOperations : 1;
            uint64_t InitialWindowPackets : 1;
            uint64_t SendIdleTimeoutMs : 1;
            uint64_t InitialRttMs : 1;
            uint64_t MaxAckDelayMs : 1;
            uint64_t DisconnectTimeoutMs : 1;
            uint64_t KeepAliveIntervalMs : 1;
            uint64_t CongestionControlAlgorithm : 1;
            uint64_t PeerBidiStreamCount : 1;
            uint64_t PeerUnidiStreamCount : 1;
            uint64_t MaxBindingStatelessOperations : 1;
            uint64_t StatelessOperationExpirationMs : 1;
            uint64_t MinimumMtu : 1;
            uint64_t MaximumMtu : 1;
            uint64_t SendBufferingEnabled : 1;
            uint64_t PacingEnabled : 1;
            uint64_t MigrationEnabled : 1;
            uint64_t DatagramReceiveEnabled : 1;
            uint64_t ServerResumptionLevel : 1;
            uint64_t MaxOperationsPerDrain : 1;
            uint64_t MtuDiscoveryMissingProbeCount : 1;
            uint64_t DestCidUpdateIdleTimeoutMs : 1;
            uint64_t GreaseQuicBitEnabled : 1;
            uint64_t EcnEnabled : 1;
            uint64_t HyStartEnabled : 1;
            uint64_t StreamRecvWindowBidiLocalDefault : 1;
            uint64_t StreamRecvWindowBidiRemoteDefault : 1;
            uint64_t StreamRecvWindowUnidiDefault : 1;
            uint64_t EncryptionOffloadAllowed : 1;
            uint64_t ReliableResetEnabled : 1;
            uint64_t OneWayDelayEnabled : 1;
            uint64_t NetStatsEventEnabled : 1;
            uint64_t StreamMultiReceiveEnabled : 1;
            uint64_t XdpEnabled : 1;
            uint64_t QTIPEnabled : 1;
            uint64_t ReservedRioEnabled : 1;
            uint64_t RESERVED : 18;
        } IsSet;
    };
    uint64_t MaxBytesPerKey;
    uint64_t HandshakeIdleTimeoutMs;
    uint64_t IdleTimeoutMs;
    uint64_t MtuDiscoverySearchCompleteTimeoutUs;
    uint32_t TlsClientMaxSendBuffer;
    uint32_t TlsServerMaxSendBuffer;
    uint32_t StreamRecvWindowDefault;
    uint32_t StreamRecvBufferDefault;
    uint32_t ConnFlowControlWindow;
    uint32_t MaxWorkerQueueDelayUs;
    uint32_t MaxStatelessOperations;
    uint32_t InitialWindowPackets;
    uint32_t SendIdleTimeoutMs;
    uint32_t InitialRttMs;
    uint32_t MaxAckDelayMs;
    uint32_t DisconnectTimeoutMs;
    uint32_t KeepAliveIntervalMs;
    uint16_t CongestionControlAlgorithm;
    uint16_t PeerBidiStreamCount;
    uint16_t PeerUnidiStreamCount;
    uint16_t MaxBindingStatelessOperations;
    uint16_t StatelessOperationExpirationMs;
    uint16_t MinimumMtu;
    uint16_t MaximumMtu;
    uint8_t SendBufferingEnabled : 1;
    uint8_t PacingEnabled : 1;
    uint8_t MigrationEnabled : 1;
    uint8_t DatagramReceiveEnabled : 1;
    uint8_t ServerResumptionLevel : 2;
    uint8_t GreaseQuicBitEnabled : 1;
    uint8_t EcnEnabled : 1;
    uint8_t MaxOperationsPerDrain;
    uint8_t MtuDiscoveryMissingProbeCount;
    uint32_t DestCidUpdateIdleTimeoutMs;
    union {
        uint64_t Flags;
        struct {
            uint64_t HyStartEnabled : 1;
            uint64_t EncryptionOffloadAllowed : 1;
            uint64_t ReliableResetEnabled : 1;
            uint64_t OneWayDelayEnabled : 1;
            uint64_t NetStatsEventEnabled : 1;
            uint64_t StreamMultiReceiveEnabled : 1;
            uint64_t XdpEnabled : 1;
            uint64_t QTIPEnabled : 1;
            uint64_t ReservedRioEnabled : 1;
            uint64_t ReservedFlags : 55;
        };
    };
    uint32_t StreamRecvWindowBidiLocalDefault;
    uint32_t StreamRecvWindowBidiRemoteDefault;
    uint32_t StreamRecvWindowUnidiDefault;
} QUIC_SETTINGS;

typedef struct QUIC_GLOBAL_SETTINGS {
    union {
        uint64_t IsSetFlags;
        struct {
            uint64_t RetryMemoryLimit : 1;
            uint64_t LoadBalancingMode : 1;
            uint64_t FixedServerID : 1;
            uint64_t RESERVED : 61;
        } IsSet;
    };
    uint16_t RetryMemoryLimit;
    uint16_t LoadBalancingMode;
    uint32_t FixedServerID;
} QUIC_GLOBAL_SETTINGS;

typedef struct QUIC_VERSION_SETTINGS {
    const uint32_t *AcceptableVersions;
    const uint32_t *OfferedVersions;
    const uint32_t *FullyDeployedVersions;
    uint32_t AcceptableVersionsLength;
    uint32_t OfferedVersionsLength;
    uint32_t FullyDeployedVersionsLength;
} QUIC_VERSION_SETTINGS;

/* Statistics. */

typedef struct QUIC_STATISTICS {
    uint64_t CorrelationId;
    uint32_t VersionNegotiation : 1;
    uint32_t StatelessRetry : 1;
    uint32_t ResumptionAttempted : 1;
    uint32_t ResumptionSucceeded : 1;
    uint32_t Rtt;
    uint32_t MinRtt;
    uint32_t MaxRtt;
    struct {
        uint64_t Start;
        uint64_t InitialFlightEnd;
        uint64_t HandshakeFlightEnd;
    } Timing;
    struct {
        uint32_t ClientFlight1Bytes;
        uint32_t ServerFlight1Bytes;
        uint32_t ClientFlight2Bytes;
    } Handshake;
    struct {
        uint16_t PathMtu;
        uint64_t TotalPackets;
        uint64_t RetransmittablePackets;
        uint64_t SuspectedLostPackets;
        uint64_t SpuriousLostPackets;
        uint64_t TotalBytes;
        uint64_t TotalStreamBytes;
        uint32_t CongestionCount;
        uint32_t PersistentCongestionCount;
    } Send;
    struct {
        uint64_t TotalPackets;
        uint64_t ReorderedPackets;
        uint64_t DroppedPackets;
        uint64_t DuplicatePackets;
        uint64_t TotalBytes;
        uint64_t TotalStreamBytes;
        uint64_t DecryptionFailures;
        uint64_t ValidAckFrames;
    } Recv;
    struct {
        uint32_t KeyUpdateCount;
    } Misc;
} QUIC_STATISTICS;

typedef struct QUIC_STATISTICS_V2 {
    uint64_t CorrelationId;
    uint32_t VersionNegotiation : 1;
    uint32_t StatelessRetry : 1;
    uint32_t ResumptionAttempted : 1;
    uint32_t ResumptionSucceeded : 1;
    uint32_t GreaseBitNegotiated : 1;
    uint32_t EcnCapable : 1;
    uint32_t EncryptionOffloaded : 1;
    uint32_t RESERVED : 25;
    uint32_t Rtt;
    uint32_t MinRtt;
    uint32_t MaxRtt;
    uint64_t TimingStart;
    uint64_t TimingInitialFlightEnd;
    uint64_t TimingHandshakeFlightEnd;
    uint32_t HandshakeClientFlight1Bytes;
    uint32_t HandshakeServerFlight1Bytes;
    uint32_t HandshakeClientFlight2Bytes;
    uint16_t SendPathMtu;
    uint64_t SendTotalPackets;
    uint64_t SendRetransmittablePackets;
    uint64_t SendSuspectedLostPackets;
    uint64_t SendSpuriousLostPackets;
    uint64_t SendTotalBytes;
    uint64_t SendTotalStreamBytes;
    uint32_t SendCongestionCount;
    uint32_t SendPersistentCongestionCount;
    uint64_t RecvTotalPackets;
    uint64_t RecvReorderedPackets;
    uint64_t RecvDroppedPackets;
    uint64_t RecvDuplicatePackets;
    uint64_t RecvTotalBytes;
    uint64_t RecvTotalStreamBytes;
    uint64_t RecvDecryptionFailures;
    uint64_t RecvValidAckFrames;
    uint32_t KeyUpdateCount;
    uint32_t SendCongestionWindow;
    uint32_t DestCidUpdateCount;
    uint32_t SendEcnCongestionCount;
    uint8_t HandshakeHopLimitTTL;
    uint32_t RttVariance;
    uint32_t ConnectionQueueDelayAvgUs;
    uint32_t ConnectionQueueDelayMaxUs;
    uint32_t SendQueueDelayAvgUs;
    uint32_t SendQueueDelayMaxUs;
    uint32_t ReceiveQueueDelayAvgUs;
    uint32_t ReceiveQueueDelayMaxUs;
} QUIC_STATISTICS_V2;

#define QUIC_STRUCT_SIZE_THRU_FIELD(Struct, Field) (offsetof(Struct, Field) + sizeof(((Struct *)0)->Field))

#define QUIC_STATISTICS_V2_SIZE_1 QUIC_STRUCT_SIZE_THRU_FIELD(QUIC_STATISTICS_V2, KeyUpdateCount)
#define QUIC_STATISTICS_V2_SIZE_2 QUIC_STRUCT_SIZE_THRU_FIELD(QUIC_STATISTICS_V2, DestCidUpdateCount)
#define QUIC_STATISTICS_V2_SIZE_3 QUIC_STRUCT_SIZE_THRU_FIELD(QUIC_STATISTICS_V2, SendEcnCongestionCount)
#define QUIC_STATISTICS_V2_SIZE_4 QUIC_STRUCT_SIZE_THRU_FIELD(QUIC_STATISTICS_V2, RttVariance)
#define QUIC_STATISTICS_V2_SIZE_5 QUIC_STRUCT_SIZE_THRU_FIELD(QUIC_STATISTICS_V2, ReceiveQueueDelayMaxUs)

typedef struct QUIC_NETWORK_STATISTICS {
    uint32_t BytesInFlight;
    uint64_t PostedBytes;
    uint64_t IdealBytes;
    uint64_t SmoothedRTT;
    uint32_t CongestionWindow;
    uint64_t Bandwidth;
} QUIC_NETWORK_STATISTICS;

typedef struct QUIC_LISTENER_STATISTICS {
    uint64_t TotalAcceptedConnections;
    uint64_t TotalRejectedConnections;
    uint64_t BindingRecvDroppedPackets;
} QUIC_LISTENER_STATISTICS;

typedef struct QUIC_STREAM_STATISTICS {
    uint64_t ConnBlockedBySchedulingUs;
    uint64_t ConnBlockedByPacingUs;
    uint64_t ConnBlockedByAmplificationProtUs;
    uint64_t ConnBlockedByCongestionControlUs;
    uint64_t ConnBlockedByFlowControlUs;
    uint64_t StreamBlockedByIdFlowControlUs;
    uint64_t StreamBlockedByFlowControlUs;
    uint64_t StreamBlockedByAppUs;
} QUIC_STREAM_STATISTICS;

typedef uint32_t QUIC_PERFORMANCE_COUNTERS;
enum {
    QUIC_PERF_COUNTER_CONN_CREATED = 0,
    QUIC_PERF_COUNTER_CONN_HANDSHAKE_FAIL = 1,
    QUIC_PERF_COUNTER_CONN_APP_REJECT = 2,
    QUIC_PERF_COUNTER_CONN_RESUMED = 3,
    QUIC_PERF_COUNTER_CONN_ACTIVE = 4,
    QUIC_PERF_COUNTER_CONN_CONNECTED = 5,
    QUIC_PERF_COUNTER_CONN_PROTOCOL_ERRORS = 6,
    QUIC_PERF_COUNTER_CONN_NO_ALPN = 7,
    QUIC_PERF_COUNTER_STRM_ACTIVE = 8,
    QUIC_PERF_COUNTER_PKTS_SUSPECTED_LOST = 9,
    QUIC_PERF_COUNTER_PKTS_DROPPED = 10,
    QUIC_PERF_COUNTER_PKTS_DECRYPTION_FAIL = 11,
    QUIC_PERF_COUNTER_UDP_RECV = 12,
    QUIC_PERF_COUNTER_UDP_SEND = 13,
    QUIC_PERF_COUNTER_UDP_RECV_BYTES = 14,
    QUIC_PERF_COUNTER_UDP_SEND_BYTES = 15,
    QUIC_PERF_COUNTER_UDP_RECV_EVENTS = 16,
    QUIC_PERF_COUNTER_UDP_SEND_CALLS = 17,
    QUIC_PERF_COUNTER_APP_SEND_BYTES = 18,
    QUIC_PERF_COUNTER_APP_RECV_BYTES = 19,
    QUIC_PERF_COUNTER_CONN_QUEUE_DEPTH = 20,
    QUIC_PERF_COUNTER_CONN_OPER_QUEUE_DEPTH = 21,
    QUIC_PERF_COUNTER_CONN_OPER_QUEUED = 22,
    QUIC_PERF_COUNTER_CONN_OPER_COMPLETED = 23,
    QUIC_PERF_COUNTER_WORK_OPER_QUEUE_DEPTH = 24,
    QUIC_PERF_COUNTER_WORK_OPER_QUEUED = 25,
    QUIC_PERF_COUNTER_WORK_OPER_COMPLETED = 26,
    QUIC_PERF_COUNTER_PATH_VALIDATED = 27,
    QUIC_PERF_COUNTER_PATH_FAILURE = 28,
    QUIC_PERF_COUNTER_SEND_STATELESS_RESET = 29,
    QUIC_PERF_COUNTER_SEND_STATELESS_RETRY = 30,
    QUIC_PERF_COUNTER_CONN_LOAD_REJECT = 31,
    QUIC_PERF_COUNTER_LISTEN_QUEUE_DEPTH = 32,
    QUIC_PERF_COUNTER_ENCRYPT_DURATION_US = 33,
    QUIC_PERF_COUNTER_DECRYPT_DURATION_US = 34,
    QUIC_PERF_COUNTER_MAX = 35,
};

/* Parameters. */

#define QUIC_PARAM_PREFIX_GLOBAL        0x01000000
#define QUIC_PARAM_PREFIX_REGISTRATION  0x02000000
#define QUIC_PARAM_PREFIX_CONFIGURATION 0x03000000
#define QUIC_PARAM_PREFIX_LISTENER      0x04000000
#define QUIC_PARAM_PREFIX_CONNECTION    0x05000000
#define QUIC_PARAM_PREFIX_TLS           0x06000000
#define QUIC_PARAM_PREFIX_TLS_SCHANNEL  0x07000000
#define QUIC_PARAM_PREFIX_STREAM        0x08000000
#define QUIC_PARAM_HIGH_PRIORITY        0x40000000

#define QUIC_PARAM_IS_GLOBAL(Param) (((Param) & 0x3f000000) == QUIC_PARAM_PREFIX_GLOBAL)

#define QUIC_PARAM_GLOBAL_RETRY_MEMORY_PERCENT   0x01000000
#define QUIC_PARAM_GLOBAL_SUPPORTED_VERSIONS     0x01000001
#define QUIC_PARAM_GLOBAL_LOAD_BALACING_MODE     0x01000002
#define QUIC_PARAM_GLOBAL_PERF_COUNTERS          0x01000003
#define QUIC_PARAM_GLOBAL_LIBRARY_VERSION        0x01000004
#define QUIC_PARAM_GLOBAL_SETTINGS               0x01000005
#define QUIC_PARAM_GLOBAL_GLOBAL_SETTINGS        0x01000006
#define QUIC_PARAM_GLOBAL_VERSION_SETTINGS       0x01000007
#define QUIC_PARAM_GLOBAL_LIBRARY_GIT_HASH       0x01000008
#define QUIC_PARAM_GLOBAL_EXECUTION_CONFIG       0x01000009
#define QUIC_PARAM_GLOBAL_TLS_PROVIDER           0x0100000a
#define QUIC_PARAM_GLOBAL_STATELESS_RESET_KEY    0x0100000b
#define QUIC_PARAM_GLOBAL_STATISTICS_V2_SIZES    0x0100000c
#define QUIC_PARAM_GLOBAL_STATELESS_RETRY_CONFIG 0x0100000d
#define QUIC_PARAM_GLOBAL_XDP_MAP_CONFIG         0x0100000e

#define QUIC_PARAM_CONFIGURATION_SETTINGS                        0x03000000
#define QUIC_PARAM_CONFIGURATION_TICKET_KEYS                     0x03000001
#define QUIC_PARAM_CONFIGURATION_VERSION_SETTINGS                0x03000002
#define QUIC_PARAM_CONFIGURATION_SCHANNEL_CREDENTIAL_ATTRIBUTE_W 0x03000003

#define QUIC_PARAM_LISTENER_LOCAL_ADDRESS   0x04000000
#define QUIC_PARAM_LISTENER_STATS           0x04000001
#define QUIC_PARAM_LISTENER_CIBIR_ID        0x04000002
#define QUIC_PARAM_DOS_MODE_EVENTS          0x04000004
#define QUIC_PARAM_LISTENER_PARTITION_INDEX 0x04000005

#define QUIC_PARAM_CONN_QUIC_VERSION             0x05000000
#define QUIC_PARAM_CONN_LOCAL_ADDRESS            0x05000001
#define QUIC_PARAM_CONN_REMOTE_ADDRESS           0x05000002
#define QUIC_PARAM_CONN_IDEAL_PROCESSOR          0x05000003
#define QUIC_PARAM_CONN_SETTINGS                 0x05000004
#define QUIC_PARAM_CONN_STATISTICS               0x05000005
#define QUIC_PARAM_CONN_STATISTICS_PLAT          0x05000006
#define QUIC_PARAM_CONN_SHARE_UDP_BINDING        0x05000007
#define QUIC_PARAM_CONN_LOCAL_BIDI_STREAM_COUNT  0x05000008
#define QUIC_PARAM_CONN_LOCAL_UNIDI_STREAM_COUNT 0x05000009
#define QUIC_PARAM_CONN_MAX_STREAM_IDS           0x0500000a
#define QUIC_PARAM_CONN_CLOSE_REASON_PHRASE      0x0500000b
#define QUIC_PARAM_CONN_STREAM_SCHEDULING_SCHEME 0x0500000c
#define QUIC_PARAM_CONN_DATAGRAM_RECEIVE_ENABLED 0x0500000d
#define QUIC_PARAM_CONN_DATAGRAM_SEND_ENABLED    0x0500000e
#define QUIC_PARAM_CONN_DISABLE_1RTT_ENCRYPTION  0x0500000f
#define QUIC_PARAM_CONN_RESUMPTION_TICKET        0x05000010
#define QUIC_PARAM_CONN_PEER_CERTIFICATE_VALID   0x05000011
#define QUIC_PARAM_CONN_LOCAL_INTERFACE          0x05000012
#define QUIC_PARAM_CONN_TLS_SECRETS              0x05000013
#define QUIC_PARAM_CONN_VERSION_SETTINGS         0x05000014
#define QUIC_PARAM_CONN_CIBIR_ID                 0x05000015
#define QUIC_PARAM_CONN_STATISTICS_V2            0x05000016
#define QUIC_PARAM_CONN_STATISTICS_V2_PLAT       0x05000017
#define QUIC_PARAM_CONN_ORIG_DEST_CID            0x05000018
#define QUIC_PARAM_CONN_SEND_DSCP                0x05000019
#define QUIC_PARAM_CONN_CLOSE_ASYNC              0x0500001a
#define QUIC_PARAM_CONN_NETWORK_STATISTICS       0x05000020

#define QUIC_PARAM_TLS_HANDSHAKE_INFO  0x06000000
#define QUIC_PARAM_TLS_NEGOTIATED_ALPN 0x06000001

#define QUIC_PARAM_STREAM_ID                     0x08000000
#define QUIC_PARAM_STREAM_0RTT_LENGTH            0x08000001
#define QUIC_PARAM_STREAM_IDEAL_SEND_BUFFER_SIZE 0x08000002
#define QUIC_PARAM_STREAM_PRIORITY               0x08000003
#define QUIC_PARAM_STREAM_STATISTICS             0x08000004
#define QUIC_PARAM_STREAM_RELIABLE_OFFSET        0x08000005

/* Listeners. */

typedef struct QUIC_NEW_CONNECTION_INFO {
    uint32_t QuicVersion;
    const QUIC_ADDR *LocalAddress;
    const QUIC_ADDR *RemoteAddress;
    uint32_t CryptoBufferLength;
    uint16_t ClientAlpnListLength;
    uint16_t ServerNameLength;
    uint8_t NegotiatedAlpnLength;
    const uint8_t *CryptoBuffer;
    const uint8_t *ClientAlpnList;
    const uint8_t *NegotiatedAlpn;
    const char *ServerName;
} QUIC_NEW_CONNECTION_INFO;

typedef uint32_t QUIC_LISTENER_EVENT_TYPE;
enum {
    QUIC_LISTENER_EVENT_NEW_CONNECTION = 0,
    QUIC_LISTENER_EVENT_STOP_COMPLETE = 1,
    QUIC_LISTENER_EVENT_DOS_MODE_CHANGED = 2,
};

typedef struct QUIC_LISTENER_EVENT {
    QUIC_LISTENER_EVENT_TYPE Type;
    union {
        struct {
            const QUIC_NEW_CONNECTION_INFO *Info;
            HQUIC Connection;
        } NEW_CONNECTION;
        struct {
            BOOLEAN AppCloseInProgress : 1;
            BOOLEAN RESERVED : 7;
        } STOP_COMPLETE;
        struct {
            BOOLEAN DosModeEnabled : 1;
            BOOLEAN RESERVED : 7;
        } DOS_MODE_CHANGED;
    };
} QUIC_LISTENER_EVENT;

typedef QUIC_STATUS(QUIC_LISTENER_CALLBACK)(HQUIC Listener, void *Context, QUIC_LISTENER_EVENT *Event);
typedef QUIC_LISTENER_CALLBACK *QUIC_LISTENER_CALLBACK_HANDLER;

/* Connections. */

typedef uint32_t QUIC_CONNECTION_EVENT_TYPE;
enum {
    QUIC_CONNECTION_EVENT_CONNECTED = 0,
    QUIC_CONNECTION_EVENT_SHUTDOWN_INITIATED_BY_TRANSPORT = 1,
    QUIC_CONNECTION_EVENT_SHUTDOWN_INITIATED_BY_PEER = 2,
    QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE = 3,
    QUIC_CONNECTION_EVENT_LOCAL_ADDRESS_CHANGED = 4,
    QUIC_CONNECTION_EVENT_PEER_ADDRESS_CHANGED = 5,
    QUIC_CONNECTION_EVENT_PEER_STREAM_STARTED = 6,
    QUIC_CONNECTION_EVENT_STREAMS_AVAILABLE = 7,
    QUIC_CONNECTION_EVENT_PEER_NEEDS_STREAMS = 8,
    QUIC_CONNECTION_EVENT_IDEAL_PROCESSOR_CHANGED = 9,
    QUIC_CONNECTION_EVENT_DATAGRAM_STATE_CHANGED = 10,
    QUIC_CONNECTION_EVENT_DATAGRAM_RECEIVED = 11,
    QUIC_CONNECTION_EVENT_DATAGRAM_SEND_STATE_CHANGED = 12,
    QUIC_CONNECTION_EVENT_RESUMED = 13,
    QUIC_CONNECTION_EVENT_RESUMPTION_TICKET_RECEIVED = 14,
    QUIC_CONNECTION_EVENT_PEER_CERTIFICATE_RECEIVED = 15,
    QUIC_CONNECTION_EVENT_RELIABLE_RESET_NEGOTIATED = 16,
    QUIC_CONNECTION_EVENT_ONE_WAY_DELAY_NEGOTIATED = 17,
    QUIC_CONNECTION_EVENT_NETWORK_STATISTICS = 18,
};

typedef struct QUIC_CONNECTION_EVENT {
    QUIC_CONNECTION_EVENT_TYPE Type;
    union {
        struct {
            BOOLEAN SessionResumed;
            uint8_t NegotiatedAlpnLength;
            const uint8_t *NegotiatedAlpn;
        } CONNECTED;
        struct {
            QUIC_STATUS Status;
            QUIC_UINT62 ErrorCode;
        } SHUTDOWN_INITIATED_BY_TRANSPORT;
        struct {
            QUIC_UINT62 ErrorCode;
        } SHUTDOWN_INITIATED_BY_PEER;
        struct {
            BOOLEAN HandshakeCompleted : 1;
            BOOLEAN PeerAcknowledgedShutdown : 1;
            BOOLEAN AppCloseInProgress : 1;
        } SHUTDOWN_COMPLETE;
        struct {
            const QUIC_ADDR *Address;
        } LOCAL_ADDRESS_CHANGED;
        struct {
            const QUIC_ADDR *Address;
        } PEER_ADDRESS_CHANGED;
        struct {
            HQUIC Stream;
            QUIC_STREAM_OPEN_FLAGS Flags;
        } PEER_STREAM_STARTED;
        struct {
            uint16_t BidirectionalCount;
            uint16_t UnidirectionalCount;
        } STREAMS_AVAILABLE;
        struct {
            BOOLEAN Bidirectional;
        } PEER_NEEDS_STREAMS;
        struct {
            uint16_t IdealProcessor;
            uint16_t PartitionIndex;
        } IDEAL_PROCESSOR_CHANGED;
        struct {
            BOOLEAN SendEnabled;
            uint16_t MaxSendLength;
        } DATAGRAM_STATE_CHANGED;
        struct {
            const QUIC_BUFFER *Buffer;
            QUIC_RECEIVE_FLAGS Flags;
        } DATAGRAM_RECEIVED;
        struct {
            void *ClientContext;
            QUIC_DATAGRAM_SEND_STATE State;
        } DATAGRAM_SEND_STATE_CHANGED;
        struct {
            uint16_t ResumptionStateLength;
            const uint8_t *ResumptionState;
        } RESUMED;
        struct {
            uint32_t ResumptionTicketLength;
            const uint8_t *ResumptionTicket;
        } RESUMPTION_TICKET_RECEIVED;
        struct {
            QUIC_CERTIFICATE *Certificate;
            uint32_t DeferredErrorFlags;
            QUIC_STATUS DeferredStatus;
            QUIC_CERTIFICATE_CHAIN *Chain;
        } PEER_CERTIFICATE_RECEIVED;
        struct {
            BOOLEAN IsNegotiated;
        } RELIABLE_RESET_NEGOTIATED;
        struct {
            BOOLEAN SendNegotiated;
            BOOLEAN ReceiveNegotiated;
        } ONE_WAY_DELAY_NEGOTIATED;
        QUIC_NETWORK_STATISTICS NETWORK_STATISTICS;
    };
} QUIC_CONNECTION_EVENT;

typedef QUIC_STATUS(QUIC_CONNECTION_CALLBACK)(HQUIC Connection, void *Context, QUIC_CONNECTION_EVENT *Event);
typedef QUIC_CONNECTION_CALLBACK *QUIC_CONNECTION_CALLBACK_HANDLER;

typedef struct QUIC_CONNECTION_POOL_CONFIG {
    HQUIC Registration;
    HQUIC Configuration;
    QUIC_CONNECTION_CALLBACK_HANDLER Handler;
    void **Context;
    const char *ServerName;
    const QUIC_ADDR *ServerAddress;
    QUIC_ADDRESS_FAMILY Family;
    uint16_t ServerPort;
    uint16_t NumberOfConnections;
    uint8_t **CibirIds;
    uint8_t CibirIdLength;
    QUIC_CONNECTION_POOL_FLAGS Flags;
} QUIC_CONNECTION_POOL_CONFIG;

/* Streams. */

typedef uint32_t QUIC_STREAM_EVENT_TYPE;
enum {
    QUIC_STREAM_EVENT_START_COMPLETE = 0,
    QUIC_STREAM_EVENT_RECEIVE = 1,
    QUIC_STREAM_EVENT_SEND_COMPLETE = 2,
    QUIC_STREAM_EVENT_PEER_SEND_SHUTDOWN = 3,
    QUIC_STREAM_EVENT_PEER_SEND_ABORTED = 4,
    QUIC_STREAM_EVENT_PEER_RECEIVE_ABORTED = 5,
    QUIC_STREAM_EVENT_SEND_SHUTDOWN_COMPLETE = 6,
    QUIC_STREAM_EVENT_SHUTDOWN_COMPLETE = 7,
    QUIC_STREAM_EVENT_IDEAL_SEND_BUFFER_SIZE = 8,
    QUIC_STREAM_EVENT_PEER_ACCEPTED = 9,
    QUIC_STREAM_EVENT_CANCEL_ON_LOSS = 10,
    QUIC_STREAM_EVENT_RECEIVE_BUFFER_NEEDED = 11,
};

typedef struct QUIC_STREAM_EVENT {
    QUIC_STREAM_EVENT_TYPE Type;
    union {
        struct {
            QUIC_STATUS Status;
            QUIC_UINT62 ID;
            BOOLEAN PeerAccepted : 1;
            BOOLEAN RESERVED : 7;
        } START_COMPLETE;
        struct {
            uint64_t AbsoluteOffset;
            uint64_t TotalBufferLength;
            const QUIC_BUFFER *Buffers;
            uint32_t BufferCount;
            QUIC_RECEIVE_FLAGS Flags;
        } RECEIVE;
        struct {
            BOOLEAN Canceled;
            void *ClientContext;
        } SEND_COMPLETE;
        struct {
            QUIC_UINT62 ErrorCode;
        } PEER_SEND_ABORTED;
        struct {
            QUIC_UINT62 ErrorCode;
        } PEER_RECEIVE_ABORTED;
        struct {
            BOOLEAN Graceful;
        } SEND_SHUTDOWN_COMPLETE;
        struct {
            BOOLEAN ConnectionShutdown;
            BOOLEAN AppCloseInProgress : 1;
            BOOLEAN ConnectionShutdownByApp : 1;
            BOOLEAN ConnectionClosedRemotely : 1;
            BOOLEAN RESERVED : 5;
            QUIC_UINT62 ConnectionErrorCode;
            QUIC_STATUS ConnectionCloseStatus;
        } SHUTDOWN_COMPLETE;
        struct {
            uint64_t ByteCount;
        } IDEAL_SEND_BUFFER_SIZE;
        struct {
            QUIC_UINT62 ErrorCode;
        } CANCEL_ON_LOSS;
        struct {
            uint64_t BufferLengthNeeded;
        } RECEIVE_BUFFER_NEEDED;
    };
} QUIC_STREAM_EVENT;

typedef QUIC_STATUS(QUIC_STREAM_CALLBACK)(HQUIC Stream, void *Context, QUIC_STREAM_EVENT *Event);
typedef QUIC_STREAM_CALLBACK *QUIC_STREAM_CALLBACK_HANDLER;

/* The function table. */

typedef void (*QUIC_SET_CONTEXT_FN)(HQUIC Handle, void *Context);
typedef void *(*QUIC_GET_CONTEXT_FN)(HQUIC Handle);
typedef void (*QUIC_SET_CALLBACK_HANDLER_FN)(HQUIC Handle, void *Handler, void *Context);
typedef QUIC_STATUS (*QUIC_SET_PARAM_FN)(HQUIC Handle, uint32_t Param, uint32_t BufferLength, const void *Buffer);
typedef QUIC_STATUS (*QUIC_GET_PARAM_FN)(HQUIC Handle, uint32_t Param, uint32_t *BufferLength, void *Buffer);

typedef QUIC_STATUS (*QUIC_REGISTRATION_OPEN_FN)(const QUIC_REGISTRATION_CONFIG *Config, HQUIC *Registration);
typedef void (*QUIC_REGISTRATION_CLOSE_FN)(HQUIC Registration);
typedef void (*QUIC_REGISTRATION_SHUTDOWN_FN)(
    HQUIC Registration, QUIC_CONNECTION_SHUTDOWN_FLAGS Flags, QUIC_UINT62 ErrorCode);
typedef void(QUIC_REGISTRATION_CLOSE_CALLBACK)(void *Context);
typedef QUIC_REGISTRATION_CLOSE_CALLBACK *QUIC_REGISTRATION_CLOSE_CALLBACK_HANDLER;
typedef void (*QUIC_REGISTRATION_CLOSE2_FN)(
    HQUIC Registration, QUIC_REGISTRATION_CLOSE_CALLBACK_HANDLER Handler, void *Context);

typedef QUIC_STATUS (*QUIC_CONFIGURATION_OPEN_FN)(
    HQUIC Registration, const QUIC_BUFFER *const AlpnBuffers, uint32_t AlpnBufferCount, const QUIC_SETTINGS *Settings,
    uint32_t SettingsSize, void *Context, HQUIC *Configuration);
typedef void (*QUIC_CONFIGURATION_CLOSE_FN)(HQUIC Configuration);
typedef QUIC_STATUS (*QUIC_CONFIGURATION_LOAD_CREDENTIAL_FN)(
    HQUIC Configuration, const QUIC_CREDENTIAL_CONFIG *CredConfig);

typedef QUIC_STATUS (*QUIC_LISTENER_OPEN_FN)(
    HQUIC Registration, QUIC_LISTENER_CALLBACK_HANDLER Handler, void *Context, HQUIC *Listener);
typedef void (*QUIC_LISTENER_CLOSE_FN)(HQUIC Listener);
typedef QUIC_STATUS (*QUIC_LISTENER_START_FN)(
    HQUIC Listener, const QUIC_BUFFER *const AlpnBuffers, uint32_t AlpnBufferCount, const QUIC_ADDR *LocalAddress);
typedef void (*QUIC_LISTENER_STOP_FN)(HQUIC Listener);

typedef QUIC_STATUS (*QUIC_CONNECTION_OPEN_FN)(
    HQUIC Registration, QUIC_CONNECTION_CALLBACK_HANDLER Handler, void *Context, HQUIC *Connection);
typedef QUIC_STATUS (*QUIC_CONNECTION_OPEN_IN_PARTITION_FN)(
    HQUIC Registration, uint16_t PartitionIndex, QUIC_CONNECTION_CALLBACK_HANDLER Handler, void *Context,
    HQUIC *Connection);
typedef void (*QUIC_CONNECTION_CLOSE_FN)(HQUIC Connection);
typedef void (*QUIC_CONNECTION_SHUTDOWN_FN)(
    HQUIC Connection, QUIC_CONNECTION_SHUTDOWN_FLAGS Flags, QUIC_UINT62 ErrorCode);
typedef QUIC_STATUS (*QUIC_CONNECTION_START_FN)(
    HQUIC Connection, HQUIC Configuration, QUIC_ADDRESS_FAMILY Family, const char *ServerName, uint16_t ServerPort);
typedef QUIC_STATUS (*QUIC_CONNECTION_SET_CONFIGURATION_FN)(HQUIC Connection, HQUIC Configuration);
typedef QUIC_STATUS (*QUIC_CONNECTION_SEND_RESUMPTION_FN)(
    HQUIC Connection, QUIC_SEND_RESUMPTION_FLAGS Flags, uint16_t DataLength, const uint8_t *ResumptionData);
typedef QUIC_STATUS (*QUIC_CONNECTION_COMP_RESUMPTION_FN)(HQUIC Connection, BOOLEAN Result);
typedef QUIC_STATUS (*QUIC_CONNECTION_COMP_CERT_FN)(HQUIC Connection, BOOLEAN Result, QUIC_TLS_ALERT_CODES TlsAlert);
typedef QUIC_STATUS (*QUIC_CONNECTION_EXPORT_KEYING_MATERIAL_FN)(
    HQUIC Connection, const QUIC_KEYING_MATERIAL_CONFIG *Config, uint8_t *Output);
typedef QUIC_STATUS (*QUIC_CONN_POOL_CREATE_FN)(QUIC_CONNECTION_POOL_CONFIG *Config, HQUIC *ConnectionPool);

typedef QUIC_STATUS (*QUIC_STREAM_OPEN_FN)(
    HQUIC Connection, QUIC_STREAM_OPEN_FLAGS Flags, QUIC_STREAM_CALLBACK_HANDLER Handler, void *Context, HQUIC *Stream);
typedef void (*QUIC_STREAM_CLOSE_FN)(HQUIC Stream);
typedef QUIC_STATUS (*QUIC_STREAM_START_FN)(HQUIC Stream, QUIC_STREAM_START_FLAGS Flags);
typedef QUIC_STATUS (*QUIC_STREAM_SHUTDOWN_FN)(HQUIC Stream, QUIC_STREAM_SHUTDOWN_FLAGS Flags, QUIC_UINT62 ErrorCode);
typedef QUIC_STATUS (*QUIC_STREAM_SEND_FN)(
    HQUIC Stream, const QUIC_BUFFER *const Buffers, uint32_t BufferCount, QUIC_SEND_FLAGS Flags,
    void *ClientSendContext);
typedef void (*QUIC_STREAM_RECEIVE_COMPLETE_FN)(HQUIC Stream, uint64_t BufferLength);
typedef QUIC_STATUS (*QUIC_STREAM_RECEIVE_SET_ENABLED_FN)(HQUIC Stream, BOOLEAN IsEnabled);
typedef QUIC_STATUS (*QUIC_STREAM_PROVIDE_RECEIVE_BUFFERS_FN)(
    HQUIC Stream, uint32_t BufferCount, const QUIC_BUFFER *Buffers);

typedef QUIC_STATUS (*QUIC_DATAGRAM_SEND_FN)(
    HQUIC Connection, const QUIC_BUFFER *const Buffers, uint32_t BufferCount, QUIC_SEND_FLAGS Flags,
    void *ClientSendContext);

typedef QUIC_STATUS (*QUIC_EXECUTION_CREATE_FN)(
    QUIC_GLOBAL_EXECUTION_CONFIG_FLAGS Flags, uint32_t PollingIdleTimeoutUs, uint32_t Count,
    QUIC_EXECUTION_CONFIG *Configs, QUIC_EXECUTION **Executions);
typedef void (*QUIC_EXECUTION_DELETE_FN)(uint32_t Count, QUIC_EXECUTION **Executions);
typedef uint32_t (*QUIC_EXECUTION_POLL_FN)(QUIC_EXECUTION *Execution);

typedef struct QUIC_API_TABLE {
    QUIC_SET_CONTEXT_FN SetContext;
    QUIC_GET_CONTEXT_FN GetContext;
    QUIC_SET_CALLBACK_HANDLER_FN SetCallbackHandler;
    QUIC_SET_PARAM_FN SetParam;
    QUIC_GET_PARAM_FN GetParam;
    QUIC_REGISTRATION_OPEN_FN RegistrationOpen;
    QUIC_REGISTRATION_CLOSE_FN RegistrationClose;
    QUIC_REGISTRATION_SHUTDOWN_FN RegistrationShutdown;
    QUIC_CONFIGURATION_OPEN_FN ConfigurationOpen;
    QUIC_CONFIGURATION_CLOSE_FN ConfigurationClose;
    QUIC_CONFIGURATION_LOAD_CREDENTIAL_FN ConfigurationLoadCredential;
    QUIC_LISTENER_OPEN_FN ListenerOpen;
    QUIC_LISTENER_CLOSE_FN ListenerClose;
    QUIC_LISTENER_START_FN ListenerStart;
    QUIC_LISTENER_STOP_FN ListenerStop;
    QUIC_CONNECTION_OPEN_FN ConnectionOpen;
    QUIC_CONNECTION_CLOSE_FN ConnectionClose;
    QUIC_CONNECTION_SHUTDOWN_FN ConnectionShutdown;
    QUIC_CONNECTION_START_FN ConnectionStart;
    QUIC_CONNECTION_SET_CONFIGURATION_FN ConnectionSetConfiguration;
    QUIC_CONNECTION_SEND_RESUMPTION_FN ConnectionSendResumptionTicket;
    QUIC_STREAM_OPEN_FN StreamOpen;
    QUIC_STREAM_CLOSE_FN StreamClose;
    QUIC_STREAM_START_FN StreamStart;
    QUIC_STREAM_SHUTDOWN_FN StreamShutdown;
    QUIC_STREAM_SEND_FN StreamSend;
    QUIC_STREAM_RECEIVE_COMPLETE_FN StreamReceiveComplete;
    QUIC_STREAM_RECEIVE_SET_ENABLED_FN StreamReceiveSetEnabled;
    QUIC_DATAGRAM_SEND_FN DatagramSend;
    QUIC_CONNECTION_COMP_RESUMPTION_FN ConnectionResumptionTicketValidationComplete;
    QUIC_CONNECTION_COMP_CERT_FN ConnectionCertificateValidationComplete;
    QUIC_CONNECTION_OPEN_IN_PARTITION_FN ConnectionOpenInPartition;
    QUIC_STREAM_PROVIDE_RECEIVE_BUFFERS_FN StreamProvideReceiveBuffers;
    QUIC_CONN_POOL_CREATE_FN ConnectionPoolCreate;
    QUIC_EXECUTION_CREATE_FN ExecutionCreate;
    QUIC_EXECUTION_DELETE_FN ExecutionDelete;
    QUIC_EXECUTION_POLL_FN ExecutionPoll;
    QUIC_REGISTRATION_CLOSE2_FN RegistrationClose2;
    QUIC_CONNECTION_EXPORT_KEYING_MATERIAL_FN ConnectionExportKeyingMaterial;
} QUIC_API_TABLE;

QUIC_STATUS MsQuicOpenVersion(uint32_t Version, const void **QuicApi);
void MsQuicClose(const void *QuicApi);

typedef QUIC_STATUS (*MsQuicOpenVersionFn)(uint32_t Version, const void **QuicApi);
typedef void (*MsQuicCloseFn)(const void *QuicApi);

#define MsQuicOpen2(QuicApi) MsQuicOpenVersion(QUIC_API_VERSION_2, (const void **)(QuicApi))

#ifdef __cplusplus
}
#endif

#endif
