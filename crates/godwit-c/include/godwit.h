/**
 * @file godwit.h
 * @brief Godwit for C: HTTP client and server over HTTP/3, HTTP/2 and HTTP/1.1, and QUIC.
 *
 * C11, and C++ as it is. Link with `-lgodwit`.
 *
 * **There are no callbacks.** The application makes a queue (godwit_queue_create()), gives it to clients, servers and
 * endpoints, and takes events from it when it likes: by waiting (godwit_queue_wait()), or from a loop of its own, with the
 * descriptor that is readable while there are events (godwit_queue_descriptor()). Threads of Godwit send and receive; they
 * never run the application's code.
 *
 * **Handles** are numbers, never pointers. They are checked at each call: one that was closed, or is of another kind, is
 * answered with #GODWIT_ERROR_HANDLE. Zero is no handle. godwit_close() gives any handle back, and ends at once what is left
 * of what it stands for; no later wait returns an event of that handle. godwit_..._shutdown() ends something in good order
 * before that.
 *
 * **Tags** are numbers of the application's choice; Godwit gives them back in events and does not look at them. The events
 * of an object carry the tag that it was made with, or that godwit_set_tag() gave it since; what reports on one operation
 * (#GODWIT_EVENT_SENT, #GODWIT_EVENT_DATAGRAM_OUTCOME) carries the tag of the operation.
 *
 * **Memory.** What the application gives to a function is copied, or used up, before the function returns. What an event
 * points to is lent until godwit_event_release() is called for it; every event that came has to be released, once. Received
 * bytes count against the limits of flow control until then, an event as 512 of them at least: who does not release,
 * receives no more. What is new (#GODWIT_EVENT_REQUEST, #GODWIT_EVENT_STREAM, #GODWIT_EVENT_INCOMING) waits outside while
 * many of its kind wait in the queue: who takes no events is given no more.
 *
 * **Structs** begin with `size`, which the application sets to `sizeof` the struct; everything else may be zero, and has
 * then its default. Shorter structs, of older versions of this header, are accepted; longer ones are, too, if what this
 * version does not know is zero. In arrays the `size` of the first element is the distance of the elements. Structs that
 * events point to have the `size` that the library knows: before using a field that was added after version 0.1, compare.
 *
 * **Text** that is given to functions is UTF-8 and ends with a zero byte, unless a length stands beside it. Text in events
 * has a length, or ends with a zero byte where none stands beside it. Addresses are text: `127.0.0.1:443`, `[::1]:443`.
 *
 * **Errors.** Every function returns a #godwit_status, and says more in the #godwit_error that its last parameter may point
 * to: what was expected, what came, what to do. That parameter may always be NULL.
 *
 * **Threads.** Every function may be called on any thread at any time, also for one handle on several threads at once.
 * After fork() the child must not use the handles of its parent; it may make its own. Godwit's threads block SIGPIPE for themselves, and leave
 * the signals of the process as they are.
 *
 * **Times** are in milliseconds where they are given to functions (`_ms`) and in nanoseconds where they were measured
 * (`_ns`). Lengths and limits are in bytes.
 */
#ifndef GODWIT_H
#define GODWIT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The version of this header. The library says its own with godwit_version(). */
#define GODWIT_VERSION_MAJOR 0
#define GODWIT_VERSION_MINOR 1
#define GODWIT_VERSION_PATCH 0

/** @name Handles @{ */

/** Threads that do the work. */
typedef uint64_t godwit_runtime;
/** Events that wait to be taken. */
typedef uint64_t godwit_queue;
/** An HTTP client: connections to servers, and what was learnt of those. */
typedef uint64_t godwit_client;
/** An HTTP server. */
typedef uint64_t godwit_server;
/** One request with its response, at a client or at a server. */
typedef uint64_t godwit_exchange;
/** A QUIC endpoint: a UDP socket and the connections on it. */
typedef uint64_t godwit_endpoint;
/** A QUIC connection. */
typedef uint64_t godwit_connection;
/** A QUIC stream, of one direction or two. */
typedef uint64_t godwit_stream;

/** @} */

/** What a function says: #GODWIT_OK, or why it did nothing. Also the reason in events. Later versions may know more. */
typedef int32_t godwit_status;

enum {
    /** It is done, or under way. */
    GODWIT_OK = 0,
    /** The handle is none, was closed, or is of another kind. */
    GODWIT_ERROR_HANDLE = 1,
    /** An argument cannot be: a null pointer, a length, a text, a number outside of its range. */
    GODWIT_ERROR_ARGUMENT = 2,
    /** The `size` of a struct is too small, or it is longer than what is known and not zero there. */
    GODWIT_ERROR_SIZE = 3,
    /** It makes no sense now: a second response, bytes after the end. */
    GODWIT_ERROR_STATE = 4,
    /** As much as may wait is waiting: #GODWIT_EVENT_WRITABLE tells when there is room. */
    GODWIT_ERROR_FULL = 5,
    /** There are as many as there can be. */
    GODWIT_ERROR_LIMIT = 6,
    /** It cannot be done here: not by this side, this protocol, or this peer. */
    GODWIT_ERROR_UNSUPPORTED = 7,
    /** The operating system refused; godwit_error::system_code has its number. */
    GODWIT_ERROR_SYSTEM = 8,
    /** A file cannot be read, or holds something else than expected. */
    GODWIT_ERROR_FILE = 9,
    /** TLS failed. */
    GODWIT_ERROR_TLS = 10,
    /** The certificate of the server was not accepted. */
    GODWIT_ERROR_CERTIFICATE = 11,
    /** A name has no address. */
    GODWIT_ERROR_RESOLVE = 12,
    /** No connection came about. */
    GODWIT_ERROR_CONNECT = 13,
    /** It took too long. */
    GODWIT_ERROR_TIMEOUT = 14,
    /** The other side closed the connection; godwit_error::peer_code has its reason. */
    GODWIT_ERROR_CLOSED_BY_PEER = 15,
    /** The other side broke the stream or the exchange off; godwit_error::peer_code has its reason if it gave one. */
    GODWIT_ERROR_RESET = 16,
    /** This side broke it off. */
    GODWIT_ERROR_CANCELLED = 17,
    /** The other side does not keep to the protocol. */
    GODWIT_ERROR_PROTOCOL = 18,
    /** The request, or its body, cannot be sent. */
    GODWIT_ERROR_REQUEST = 19,
    /** The exchange failed, or the connection that it was on. */
    GODWIT_ERROR_EXCHANGE = 20,
    /** A redirect that is not followed. */
    GODWIT_ERROR_REDIRECT = 21,
    /** The server answered with something that was not asked for. */
    GODWIT_ERROR_RESPONSE = 22,
    /** The other side takes no connection now. */
    GODWIT_ERROR_REFUSED = 23,
    /** What this belongs to was closed or shut down. */
    GODWIT_ERROR_CLOSED = 24,
    /** A defect of the library; please report it with the message. */
    GODWIT_ERROR_INTERNAL = 25
};

/** Bits of godwit_error::flags. */
enum {
    /** `peer_code` is a code of the application's protocol (QUIC), or of HTTP/3. */
    GODWIT_ERROR_FLAG_APPLICATION_CODE = 1,
    /** `peer_code` is a code of QUIC (RFC 9000 section 20.1), or 0x100 and more with a TLS alert. */
    GODWIT_ERROR_FLAG_TRANSPORT_CODE = 2,
    /** `system_code` has the number of an error of the operating system. */
    GODWIT_ERROR_FLAG_SYSTEM_CODE = 4
};

/** Why something failed. The application sets `size`; a shorter struct gets a shorter message. */
typedef struct godwit_error {
    /** sizeof(godwit_error); 32 at least. */
    uint32_t size;
    /** The same that the function returned. */
    godwit_status status;
    /** The code that came from the other side, if `flags` say that there is one. */
    uint64_t peer_code;
    /** GODWIT_ERROR_FLAG_... */
    uint32_t flags;
    /** `errno`, if `flags` say that there is one. */
    int32_t system_code;
    /** Bytes of the message, without the zero at its end. */
    uint32_t message_length;
    /** One sentence: what was expected, what came, what to do. It ends with a zero byte. */
    char message[484];
} godwit_error;

/** The name of a status as it is written in this header, `"GODWIT_ERROR_HANDLE"`; `"GODWIT_ERROR_UNKNOWN"` for others.
 * It stays for ever. */
const char *godwit_status_name(godwit_status status);

/** The version of the library: `"0.1.0"`. It stays for ever. */
const char *godwit_version(void);

/** Bits of godwit_header::flags. */
enum {
    /** A secret that must not be kept in tables of compression (never indexed, RFC 9204 section 4.5.4). */
    GODWIT_HEADER_SENSITIVE = 1
};

/** A header or trailer. This struct will not grow. */
typedef struct godwit_header {
    /** sizeof(godwit_header). */
    uint32_t size;
    /** GODWIT_HEADER_... */
    uint32_t flags;
    /** The name; it arrives in lower case, and may be given in any. No zero byte at its end. */
    const char *name;
    /** Bytes of the name. */
    uint64_t name_length;
    /** The value: any bytes but control characters. No zero byte at its end. */
    const char *value;
    /** Bytes of the value. */
    uint64_t value_length;
} godwit_header;

/** A header made of two texts that end with a zero byte; it points to them. */
static inline godwit_header godwit_header_of(const char *name, const char *value) {
    godwit_header header;
    header.size = (uint32_t)sizeof(godwit_header);
    header.flags = 0;
    header.name = name;
    header.name_length = strlen(name);
    header.value = value;
    header.value_length = strlen(value);
    return header;
}

/** Bytes of an address as text, with the zero at its end, at most. */
#define GODWIT_ADDRESS_LENGTH 72

/** An address with its port as text, `[::1]:443`. */
typedef struct godwit_address {
    /** sizeof(godwit_address). */
    uint32_t size;
    /** Nothing yet. */
    uint32_t flags;
    /** It ends with a zero byte. */
    char text[GODWIT_ADDRESS_LENGTH];
} godwit_address;

/** @name Any handle @{ */

/**
 * Gives a handle back, and ends at once what is left of what it stands for: an exchange is broken off, a connection closed
 * with code 0, a server stops. No later wait returns an event of this handle, nor of what it made (the exchanges of a server
 * or client, the connections of an endpoint, the streams of a connection), whose handles are to be closed nevertheless.
 * A queue that is closed takes no more events: what reports to it goes on unheard until it is closed, too.
 *
 * Errors: #GODWIT_ERROR_HANDLE.
 */
godwit_status godwit_close(uint64_t handle, godwit_error *error);

/**
 * Gives an object another tag for its events. It is in all events that are taken after this returned.
 *
 * Errors: #GODWIT_ERROR_HANDLE (queues and runtimes have no tag).
 */
godwit_status godwit_set_tag(uint64_t handle, uint64_t tag, godwit_error *error);

/** @} */

/** @name Runtime @{ */

/** How Godwit's threads are to be. */
typedef struct godwit_runtime_options {
    /** sizeof(godwit_runtime_options). */
    uint32_t size;
    /** Nothing yet. */
    uint32_t flags;
    /** Threads, 1 to 256; 0 for one for each processor, 4 at most. */
    uint32_t threads;
    /** Zero. */
    uint32_t reserved;
} godwit_runtime_options;

/**
 * Starts threads. Most applications need none of their own: where options have the runtime 0, there is one for the whole
 * process, which is started when it is first needed.
 *
 * Closing a runtime ends everything that runs on it, without a word: close it last.
 *
 * Errors: #GODWIT_ERROR_ARGUMENT, #GODWIT_ERROR_SIZE, #GODWIT_ERROR_SYSTEM (no threads are to be had).
 *
 * @param options NULL for the defaults.
 * @param runtime Gets the handle.
 */
godwit_status godwit_runtime_create(const godwit_runtime_options *options, godwit_runtime *runtime, godwit_error *error);

/** @} */

/** @name Events @{ */

/** What an event tells: godwit_event::kind. Applications pass over those that they do not know. */
enum {
    /** Nothing: a place in the array that was not filled. */
    GODWIT_EVENT_NONE = 0,

    /** Client: the head of the response came. `handle` is the exchange; `response` and `headers` are set. */
    GODWIT_EVENT_RESPONSE = 1,
    /** Server: a request came. `handle` is its exchange, new, to be closed; `parent` the server; `request` and `headers`
     * are set. */
    GODWIT_EVENT_REQUEST = 2,
    /** A piece of the body came: `data`, `length`. */
    GODWIT_EVENT_BODY = 3,
    /** What follows the body: `headers`. */
    GODWIT_EVENT_TRAILERS = 4,
    /** The body and what follows it are over. At a client the exchange has succeeded, and this is its last event, but for
     * what tells of bytes that are still to be sent; at a server the request is whole. */
    GODWIT_EVENT_END = 5,
    /** Server: the response was handed to the transport as a whole. The last event of its exchange. */
    GODWIT_EVENT_FINISHED = 6,
    /** The exchange failed: `status`, `error`, `data` (what may help, as text; it may be empty). The last event of the
     * exchange. */
    GODWIT_EVENT_FAILED = 7,

    /** All bytes of a send with #GODWIT_SEND_REPORT were handed to the transport, or, with a `status`, never will be. `tag`
     * is that of the send, `length` its bytes. */
    GODWIT_EVENT_SENT = 8,
    /** After #GODWIT_ERROR_FULL: there is room for bytes, or nothing can be sent any more. Try again: the send says why not.
     * At a client it may come after #GODWIT_EVENT_END, if the server does not want the rest of the body. */
    GODWIT_EVENT_WRITABLE = 9,

    /** Server: godwit_server_shutdown() is done. `handle` is the server, `code` the number of requests that were cut off. */
    GODWIT_EVENT_SERVER_STOPPED = 10,
    /** Client: godwit_client_shutdown() is done. `handle` is the client. */
    GODWIT_EVENT_CLIENT_STOPPED = 11,
    /** QUIC: godwit_endpoint_shutdown() is done. `handle` is the endpoint. */
    GODWIT_EVENT_ENDPOINT_STOPPED = 12,

    /** QUIC client: the handshake is complete. `handle` is the connection; `connection` is set. */
    GODWIT_EVENT_CONNECTED = 13,
    /** QUIC server: a client has connected. `handle` is the connection, new, to be closed; `parent` the endpoint;
     * `connection` is set. */
    GODWIT_EVENT_INCOMING = 14,
    /** The connection is over, or came to nothing: `status`, `error`, `code` (the application's code, if the peer gave
     * one), `data` (the peer's reason). The last event of the connection. */
    GODWIT_EVENT_CONNECTION_CLOSED = 15,
    /** The peer opened a stream. `handle` is the stream, new, to be closed; `parent` the connection; `code` its id;
     * #GODWIT_EVENT_FLAG_UNIDIRECTIONAL where nothing can be sent on it. */
    GODWIT_EVENT_STREAM = 16,
    /** A stream that this side opens has got its place: `code` is its id. */
    GODWIT_EVENT_STREAM_OPENED = 17,
    /** Bytes came on a stream: `data`, `length`; with #GODWIT_EVENT_FLAG_END they are the last. */
    GODWIT_EVENT_RECEIVED = 18,
    /** The peer broke off what it sends on the stream, or the connection is lost: `status`, `error`, `code`. */
    GODWIT_EVENT_STREAM_RESET = 19,
    /** The peer wants no more bytes on the stream, or the connection is lost: `status`, `error`, `code`. */
    GODWIT_EVENT_STREAM_STOPPED = 20,
    /** The peer has everything that was sent on the stream. */
    GODWIT_EVENT_STREAM_FINISHED = 21,
    /** A datagram came: `data`, `length`. `handle` is the connection. */
    GODWIT_EVENT_DATAGRAM = 22,
    /** What became of a datagram that was sent with #GODWIT_SEND_REPORT: `code` is GODWIT_DATAGRAM_..., `tag` that of the
     * send. */
    GODWIT_EVENT_DATAGRAM_OUTCOME = 23,
    /** Something happened to a path of the connection: `path` is set. */
    GODWIT_EVENT_PATH = 24
};

/** Bits of godwit_event::flags. */
enum {
    /** The last bytes of a stream. */
    GODWIT_EVENT_FLAG_END = 1,
    /** A stream on which only the peer sends. */
    GODWIT_EVENT_FLAG_UNIDIRECTIONAL = 2,
    /** The bytes, or the request, came before the handshake was complete (0-RTT): somebody on the way may have sent them
     * again. */
    GODWIT_EVENT_FLAG_EARLY = 4
};

/** godwit_event::code of #GODWIT_EVENT_DATAGRAM_OUTCOME. */
enum {
    /** It was sent. */
    GODWIT_DATAGRAM_SENT = 1,
    /** The peer's system has it. Nothing more comes of it. */
    GODWIT_DATAGRAM_ACKNOWLEDGED = 2,
    /** It is probably lost; it is not sent again. */
    GODWIT_DATAGRAM_LOST = 3,
    /** It had been thought lost, and was not. Nothing more comes of it. */
    GODWIT_DATAGRAM_ACKNOWLEDGED_LATE = 4,
    /** It was never sent. Nothing more comes of it. */
    GODWIT_DATAGRAM_DROPPED = 5
};

/** Versions of HTTP, as godwit_response::protocol and godwit_request_head::protocol. */
enum {
    GODWIT_HTTP_1_0 = 10,
    GODWIT_HTTP_1_1 = 11,
    GODWIT_HTTP_2 = 20,
    GODWIT_HTTP_3 = 30
};

/** A length that is not known. */
#define GODWIT_UNKNOWN_LENGTH UINT64_MAX

/** Bits of godwit_response::flags. */
enum {
    /** The connection was made for this request. */
    GODWIT_RESPONSE_NEW_CONNECTION = 1,
    /** The request was sent more than once, because the first time it was certainly not processed. */
    GODWIT_RESPONSE_SENT_AGAIN = 2
};

/** The head of a response, without its headers, and how it came. */
typedef struct godwit_response {
    /** Its bytes, as the library knows it. */
    uint32_t size;
    /** GODWIT_RESPONSE_... */
    uint32_t flags;
    /** The status, 200 to 999. */
    uint32_t status;
    /** GODWIT_HTTP_... */
    uint32_t protocol;
    /** Bytes of the body, if the server has said it; else #GODWIT_UNKNOWN_LENGTH. */
    uint64_t content_length;
    /** Time for finding the server's addresses; 0 where the connection was there already. */
    uint64_t resolve_ns;
    /** Time for the handshakes; 0 where the connection was there already. */
    uint64_t handshake_ns;
    /** A round trip on the connection. */
    uint64_t rtt_ns;
    /** The URL that this is the response of: another one than that of the request after redirects. It ends with a zero. */
    const char *url;
    /** Why it was this protocol, in words. It ends with a zero. */
    const char *reason;
    /** The address of the server, or of the proxy before it. It ends with a zero. */
    char remote_address[GODWIT_ADDRESS_LENGTH];
} godwit_response;

/** Bits of godwit_request_head::flags. */
enum {
    /** The connection is not encrypted. */
    GODWIT_REQUEST_HEAD_PLAIN = 1
};

/** The head of a request that a server got, without its headers. */
typedef struct godwit_request_head {
    /** Its bytes, as the library knows it. */
    uint32_t size;
    /** GODWIT_REQUEST_HEAD_... */
    uint32_t flags;
    /** GODWIT_HTTP_... */
    uint32_t protocol;
    /** Zero. */
    uint32_t reserved;
    /** Bytes of the body, if the client has said it; else #GODWIT_UNKNOWN_LENGTH. */
    uint64_t content_length;
    /** The method, `GET`. It ends with a zero. */
    const char *method;
    /** The path, with the query. It ends with a zero. */
    const char *path;
    /** The host, with a port if there was one; empty if the client named none. It ends with a zero. */
    const char *authority;
    /** The address of the client. It ends with a zero. */
    char client_address[GODWIT_ADDRESS_LENGTH];
} godwit_request_head;

/** Bits of godwit_connection_info::flags. */
enum {
    /** This side is the server. */
    GODWIT_CONNECTION_SERVER = 1,
    /** The handshake went on from an earlier connection. */
    GODWIT_CONNECTION_RESUMED = 2,
    /** What was sent ahead of the handshake (0-RTT) was accepted. */
    GODWIT_CONNECTION_EARLY_DATA_ACCEPTED = 4,
    /** What was sent ahead of the handshake (0-RTT) was refused. */
    GODWIT_CONNECTION_EARLY_DATA_REFUSED = 8,
    /** The handshake is complete. */
    GODWIT_CONNECTION_ESTABLISHED = 16
};

/** What is known of a connection. */
typedef struct godwit_connection_info {
    /** sizeof(godwit_connection_info); in events its bytes as the library knows it. */
    uint32_t size;
    /** GODWIT_CONNECTION_... */
    uint32_t flags;
    /** The version of QUIC: 1, or 0x6b3343cf for version 2. */
    uint32_t quic_version;
    /** Bytes of `alpn`. */
    uint32_t alpn_length;
    /** The most bytes of a datagram at present; 0 if datagrams cannot be sent. */
    uint64_t max_datagram_length;
    /** A number for the logs, which no other connection of this process has. */
    uint64_t id;
    /** The protocol that was agreed on. A zero byte follows it. */
    char alpn[256];
    /** The name that the client asked for; empty if it named none. It ends with a zero. */
    char server_name[256];
    /** The address of the peer. It ends with a zero. */
    char remote_address[GODWIT_ADDRESS_LENGTH];
    /** The address of this side, without a port; empty if it is not known. It ends with a zero. */
    char local_address[GODWIT_ADDRESS_LENGTH];
} godwit_connection_info;

/** godwit_path::state. */
enum {
    /** It is being tried. */
    GODWIT_PATH_PROBING = 1,
    /** It works. */
    GODWIT_PATH_VALIDATED = 2,
    /** The connection uses it. */
    GODWIT_PATH_ACTIVE = 3,
    /** It was given up. */
    GODWIT_PATH_ABANDONED = 4
};

/** A path of a connection: a pair of addresses. */
typedef struct godwit_path {
    /** sizeof(godwit_path); in events its bytes as the library knows it. */
    uint32_t size;
    /** Nothing yet. */
    uint32_t flags;
    /** Its number in this connection. */
    uint32_t path;
    /** GODWIT_PATH_... */
    uint32_t state;
    /** Smoothed round-trip time. What follows up to the addresses is zero in events. */
    uint64_t rtt_ns;
    /** The lowest round-trip time of late. */
    uint64_t min_rtt_ns;
    /** Congestion window in bytes. */
    uint64_t window;
    /** Bytes in flight. */
    uint64_t bytes_in_flight;
    /** Packets sent. */
    uint64_t packets_sent;
    /** Packets declared lost. */
    uint64_t packets_lost;
    /** Bytes of UDP payload that pass it. */
    uint64_t mtu;
    /** The address of this side. It ends with a zero. */
    char local_address[GODWIT_ADDRESS_LENGTH];
    /** The address of the peer. It ends with a zero. */
    char remote_address[GODWIT_ADDRESS_LENGTH];
} godwit_path;

/** Something that happened. What its kind does not name is zero. */
typedef struct godwit_event {
    /** sizeof(godwit_event), in the first element of the array before godwit_queue_wait(). */
    uint32_t size;
    /** GODWIT_EVENT_... */
    uint32_t kind;
    /** The tag of the object, or of the operation that this reports on. */
    uint64_t tag;
    /** What it happened to. */
    uint64_t handle;
    /** What that belongs to: the client or server of an exchange, the endpoint of a connection, the connection of a
     * stream. */
    uint64_t parent;
    /** #GODWIT_OK, or why something failed. */
    godwit_status status;
    /** GODWIT_EVENT_FLAG_... */
    uint32_t flags;
    /** As the kind says. */
    uint64_t code;
    /** Bytes, as the kind says; lent. */
    const uint8_t *data;
    /** How many of them; of #GODWIT_EVENT_SENT those that were sent. */
    uint64_t length;
    /** Headers or trailers; lent. */
    const godwit_header *headers;
    /** How many of them. */
    uint64_t header_count;
    /** Of #GODWIT_EVENT_RESPONSE; lent. */
    const godwit_response *response;
    /** Of #GODWIT_EVENT_REQUEST; lent. */
    const godwit_request_head *request;
    /** Of #GODWIT_EVENT_CONNECTED and #GODWIT_EVENT_INCOMING; lent. */
    const godwit_connection_info *connection;
    /** Of #GODWIT_EVENT_PATH; lent. */
    const godwit_path *path;
    /** Why it failed, where `status` is not #GODWIT_OK; lent. */
    const godwit_error *error;
    /** The library's own: what godwit_event_release() gives back. */
    uint64_t lease;
} godwit_event;

/** @} */

/** @name Queue @{ */

/** How a queue is to be. */
typedef struct godwit_queue_options {
    /** sizeof(godwit_queue_options). */
    uint32_t size;
    /** Nothing yet. */
    uint32_t flags;
} godwit_queue_options;

/**
 * Makes a queue.
 *
 * Errors: #GODWIT_ERROR_ARGUMENT, #GODWIT_ERROR_SIZE, #GODWIT_ERROR_SYSTEM (no descriptor is to be had).
 *
 * @param options NULL for the defaults.
 * @param queue Gets the handle.
 */
godwit_status godwit_queue_create(const godwit_queue_options *options, godwit_queue *queue, godwit_error *error);

/**
 * The descriptor that is readable while there are events, or after godwit_queue_wake(): for poll(), epoll and what builds
 * on them. It belongs to the queue, until that is closed; the application neither reads nor closes it.
 *
 * Errors: #GODWIT_ERROR_HANDLE, #GODWIT_ERROR_ARGUMENT.
 */
godwit_status godwit_queue_descriptor(godwit_queue queue, int32_t *descriptor, godwit_error *error);

/**
 * Takes events, the oldest first. Waits until there is one, somebody wakes the queue, it is closed
 * (#GODWIT_ERROR_HANDLE), or the time is over; then there may be none.
 *
 * @param events  An array; `events[0].size` is set to sizeof(godwit_event).
 * @param capacity Its elements, 1 at least.
 * @param timeout_ms The most time to wait: 0 does not wait, negative has no limit.
 * @param count   Gets the number of events.
 *
 * Errors: #GODWIT_ERROR_HANDLE, #GODWIT_ERROR_ARGUMENT, #GODWIT_ERROR_SIZE.
 */
godwit_status godwit_queue_wait(godwit_queue queue, godwit_event *events, uint64_t capacity, int64_t timeout_ms,
                                uint64_t *count, godwit_error *error);

/**
 * Ends one wait, that which is under way or else the next; the descriptor is readable until then. Where several are under
 * way, each call ends one of them; several calls before the next wait are one.
 *
 * Errors: #GODWIT_ERROR_HANDLE.
 */
godwit_status godwit_queue_wake(godwit_queue queue, godwit_error *error);

/**
 * Gives back what an event has lent, and sets its pointers to NULL. It may also be called for an event that has lent
 * nothing, and again for one that was released. A copy of an event that was released must not be used.
 *
 * Errors: #GODWIT_ERROR_ARGUMENT, #GODWIT_ERROR_SIZE, #GODWIT_ERROR_HANDLE (another copy of it was released before).
 */
godwit_status godwit_event_release(godwit_event *event, godwit_error *error);

/** @} */

/** @name HTTP client @{ */

/** godwit_client_options::versions, godwit_request::versions. */
enum {
    /** HTTP/3 where the server has offered it and UDP works, HTTP/2 or HTTP/1.1 otherwise; of a request: as the client. */
    GODWIT_VERSIONS_DEFAULT = 0,
    /** HTTP/3 where the server has offered it and UDP works, HTTP/2 or HTTP/1.1 otherwise. */
    GODWIT_VERSIONS_AUTO = 1,
    /** HTTP/1.1 alone. */
    GODWIT_VERSIONS_HTTP_1 = 2,
    /** HTTP/2 alone. */
    GODWIT_VERSIONS_HTTP_2 = 3,
    /** HTTP/3 alone. */
    GODWIT_VERSIONS_HTTP_3 = 4,
    /** HTTP/2 or HTTP/1.1: nothing goes over UDP. */
    GODWIT_VERSIONS_TCP = 5
};

/** godwit_client_options::family. */
enum {
    /** IPv6 and IPv4. */
    GODWIT_FAMILY_ANY = 0,
    /** IPv4 alone. */
    GODWIT_FAMILY_IPV4 = 4,
    /** IPv6 alone. */
    GODWIT_FAMILY_IPV6 = 6
};

/** Bits of godwit_client_options::flags. */
enum {
    /** Accepts any certificate: anybody on the way can then read and change everything. For tests. */
    GODWIT_CLIENT_ACCEPT_ANY_CERTIFICATE = 1,
    /** Trusts what is in `roots_file` alone, not the system's authorities. */
    GODWIT_CLIENT_ONLY_ROOTS_FILE = 2,
    /** Redirects are not followed, but come back as responses. */
    GODWIT_CLIENT_NO_REDIRECTS = 4,
    /** Goes through the proxies that the environment names (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY). */
    GODWIT_CLIENT_PROXY_FROM_ENVIRONMENT = 8,
    /** Safe requests may go out before the handshake (0-RTT), where `session_file` permits it. */
    GODWIT_CLIENT_EARLY_DATA = 16
};

/** How a client is to be. */
typedef struct godwit_client_options {
    /** sizeof(godwit_client_options). */
    uint32_t size;
    /** GODWIT_CLIENT_... */
    uint32_t flags;
    /** Whose threads do the work; 0 for those of the process. */
    godwit_runtime runtime;
    /** A file of certificates (PEM) that are trusted besides the system's, or NULL. */
    const char *roots_file;
    /** An HTTP proxy, `http://user:password@host:port`, or NULL. HTTP/3 does not go through. */
    const char *proxy;
    /** A file that keeps which servers offer HTTP/3 and where UDP works, or NULL. */
    const char *memory_file;
    /** A file that keeps what later connections begin faster with, or NULL. It holds secrets. */
    const char *session_file;
    /** GODWIT_VERSIONS_... */
    uint32_t versions;
    /** GODWIT_FAMILY_... */
    uint32_t family;
    /** The most time for finding a server's addresses, and the same again for connecting; 0 for 10 s. */
    uint64_t connect_timeout_ms;
    /** The most time for a whole exchange; 0 for no limit. */
    uint64_t timeout_ms;
    /** For how long connections without requests are kept; 0 for 90 s. */
    uint64_t idle_timeout_ms;
    /** How many redirects are followed, 255 at most; 0 for 10. */
    uint32_t max_redirects;
    /** Zero. */
    uint32_t reserved;
    /** Bytes of a response's body that may be lent to the application at a time; 0 for 1 MiB. */
    uint64_t receive_limit;
    /** Bytes of a request's body that may wait in the library; 0 for 1 MiB. */
    uint64_t send_limit;
} godwit_client_options;

/**
 * Makes a client. All that it does is told to `queue`.
 *
 * Closing it breaks its exchanges off.
 *
 * Errors: #GODWIT_ERROR_HANDLE (queue, runtime), #GODWIT_ERROR_ARGUMENT, #GODWIT_ERROR_SIZE, #GODWIT_ERROR_FILE (a file cannot
 * be used), #GODWIT_ERROR_TLS.
 *
 * @param options NULL for the defaults.
 * @param tag For #GODWIT_EVENT_CLIENT_STOPPED.
 * @param client Gets the handle.
 */
godwit_status godwit_client_create(godwit_queue queue, const godwit_client_options *options, uint64_t tag,
                                   godwit_client *client, godwit_error *error);

/** Where a body comes from: godwit_request::body_mode, godwit_response_options::body_mode. */
enum {
    /** There is none. */
    GODWIT_BODY_NONE = 0,
    /** It is in `body`. */
    GODWIT_BODY_WHOLE = 1,
    /** It comes with godwit_exchange_send(). */
    GODWIT_BODY_STREAM = 2
};

/** A request. */
typedef struct godwit_request {
    /** sizeof(godwit_request). */
    uint32_t size;
    /** Nothing yet. */
    uint32_t flags;
    /** The method; NULL for `GET`. */
    const char *method;
    /** The URL, `https://...` or `http://...`. */
    const char *url;
    /** Headers, or NULL. */
    const godwit_header *headers;
    /** How many of them. */
    uint64_t header_count;
    /** GODWIT_BODY_... */
    uint32_t body_mode;
    /** GODWIT_VERSIONS_...; 0 for those of the client. */
    uint32_t versions;
    /** The body, with #GODWIT_BODY_WHOLE. */
    const void *body;
    /** Its bytes. */
    uint64_t body_length;
    /** The most time for the whole exchange; 0 for that of the client. */
    uint64_t timeout_ms;
} godwit_request;

/**
 * Sends a request. #GODWIT_EVENT_RESPONSE, #GODWIT_EVENT_BODY, #GODWIT_EVENT_TRAILERS and #GODWIT_EVENT_END come of it, or at
 * any point #GODWIT_EVENT_FAILED.
 *
 * Errors: #GODWIT_ERROR_HANDLE, #GODWIT_ERROR_ARGUMENT, #GODWIT_ERROR_SIZE, #GODWIT_ERROR_CLOSED (the client was shut down),
 * #GODWIT_ERROR_LIMIT.
 *
 * @param tag Of its events.
 * @param exchange Gets the handle; to be closed after the last event, or before to break it off.
 */
godwit_status godwit_client_request(godwit_client client, const godwit_request *request, uint64_t tag,
                                    godwit_exchange *exchange, godwit_error *error);

/**
 * Takes no more requests, waits for those under way, closes the connections, and writes the files; then comes
 * #GODWIT_EVENT_CLIENT_STOPPED.
 *
 * Errors: #GODWIT_ERROR_HANDLE, #GODWIT_ERROR_STATE (it was shut down before).
 */
godwit_status godwit_client_shutdown(godwit_client client, godwit_error *error);

/** @} */

/** @name Exchange @{ */

/** Bits of `flags` of what sends. */
enum {
    /** These bytes are the last. */
    GODWIT_SEND_END = 1,
    /** #GODWIT_EVENT_SENT (of datagrams #GODWIT_EVENT_DATAGRAM_OUTCOME) is to tell what became of them. */
    GODWIT_SEND_REPORT = 2
};

/**
 * Sends a piece of the body: of the request at a client, of the response at a server, where those have
 * #GODWIT_BODY_STREAM. The bytes are copied. They are all taken, or none.
 *
 * Errors: #GODWIT_ERROR_HANDLE, #GODWIT_ERROR_ARGUMENT, #GODWIT_ERROR_FULL (the send limit is reached;
 * #GODWIT_EVENT_WRITABLE comes), #GODWIT_ERROR_STATE (there is no such body, or it is over), #GODWIT_ERROR_RESET (nobody
 * takes it any more).
 *
 * @param data May be NULL if `length` is 0.
 * @param flags GODWIT_SEND_...
 * @param tag Of #GODWIT_EVENT_SENT.
 */
godwit_status godwit_exchange_send(godwit_exchange exchange, const void *data, uint64_t length, uint32_t flags,
                                   uint64_t tag, godwit_error *error);

/**
 * Ends the body with trailers.
 *
 * Errors: as godwit_exchange_send(), but for #GODWIT_ERROR_FULL.
 */
godwit_status godwit_exchange_send_trailers(godwit_exchange exchange, const godwit_header *headers,
                                            uint64_t header_count, godwit_error *error);

/**
 * Breaks the exchange off. #GODWIT_EVENT_FAILED comes with #GODWIT_ERROR_CANCELLED, unless the last event has come already.
 * The client of a server that had not answered yet gets status 500.
 *
 * Errors: #GODWIT_ERROR_HANDLE.
 */
godwit_status godwit_exchange_cancel(godwit_exchange exchange, godwit_error *error);

/** A response to send. */
typedef struct godwit_response_options {
    /** sizeof(godwit_response_options). */
    uint32_t size;
    /** Nothing yet. */
    uint32_t flags;
    /** The status, 200 to 999. */
    uint32_t status;
    /** GODWIT_BODY_... */
    uint32_t body_mode;
    /** Headers, or NULL. */
    const godwit_header *headers;
    /** How many of them. */
    uint64_t header_count;
    /** The body, with #GODWIT_BODY_WHOLE. */
    const void *body;
    /** Its bytes. */
    uint64_t body_length;
} godwit_response_options;

/**
 * Server: answers. #GODWIT_EVENT_FINISHED comes when the transport has everything. In answer to HEAD, and with the statuses
 * 204 and 304, no body is sent, whatever is given, and godwit_exchange_send() says #GODWIT_ERROR_STATE. There is no need of
 * a header content-length with #GODWIT_BODY_WHOLE; if there is one, it has to be right.
 *
 * Errors: #GODWIT_ERROR_HANDLE, #GODWIT_ERROR_ARGUMENT, #GODWIT_ERROR_SIZE, #GODWIT_ERROR_STATE (it was answered before),
 * #GODWIT_ERROR_UNSUPPORTED (it is an exchange of a client), #GODWIT_ERROR_RESET (the client is gone).
 */
godwit_status godwit_exchange_respond(godwit_exchange exchange, const godwit_response_options *response,
                                      godwit_error *error);

/**
 * Server: sends an informational response before the final one, such as 103 (Early Hints). Clients may be without it:
 * over HTTP/1.1 and HTTP/2 it may be left out.
 *
 * Errors: as godwit_exchange_respond(); #GODWIT_ERROR_UNSUPPORTED also where the connection cannot carry it.
 *
 * @param status 102 to 199.
 */
godwit_status godwit_exchange_inform(godwit_exchange exchange, uint32_t status, const godwit_header *headers,
                                     uint64_t header_count, godwit_error *error);

/** @} */

/** @name HTTP server @{ */

/** How a server is to be. */
typedef struct godwit_server_options {
    /** sizeof(godwit_server_options). */
    uint32_t size;
    /** Nothing yet. */
    uint32_t flags;
    /** Whose threads do the work; 0 for those of the process. */
    godwit_runtime runtime;
    /** Addresses to listen at, for TCP and UDP alike; with port 0 at one that is free. */
    const char *const *addresses;
    /** How many of them, 1 to 64. */
    uint64_t address_count;
    /** The file of the certificate with its chain (PEM), or NULL for one by an authority of this user's own. */
    const char *certificate_file;
    /** The file of its key (PEM); NULL if there is no `certificate_file`. */
    const char *key_file;
    /** The most connections at a time; 0 for the default. */
    uint64_t max_connections;
    /** The most bytes of a request's body; 0 for no limit. */
    uint64_t max_body;
    /** Bytes of a request's body that may be lent to the application at a time; 0 for 1 MiB. */
    uint64_t receive_limit;
    /** Bytes of a response's body that may wait in the library; 0 for 1 MiB. */
    uint64_t send_limit;
} godwit_server_options;

/**
 * Starts a server. HTTP/1.1, HTTP/2 and HTTP/3 are on one port, and requests are told as #GODWIT_EVENT_REQUEST, whichever
 * brought them.
 *
 * Errors: #GODWIT_ERROR_HANDLE (queue, runtime), #GODWIT_ERROR_ARGUMENT, #GODWIT_ERROR_SIZE, #GODWIT_ERROR_CONNECT (it cannot
 * be served like this: a file, a port; the message says it), #GODWIT_ERROR_CLOSED (it was closed while it started).
 *
 * @param tag Of its events, and of those of its exchanges until godwit_set_tag().
 * @param server Gets the handle.
 */
godwit_status godwit_server_create(godwit_queue queue, const godwit_server_options *options, uint64_t tag,
                                   godwit_server *server, godwit_error *error);

/**
 * The addresses that a server listens at.
 *
 * @param addresses An array; `addresses[0].size` is set. May be NULL if `capacity` is 0.
 * @param capacity Its elements.
 * @param count Gets the number of addresses that there are, which may be more than were written.
 *
 * Errors: #GODWIT_ERROR_HANDLE, #GODWIT_ERROR_ARGUMENT, #GODWIT_ERROR_SIZE.
 */
godwit_status godwit_server_addresses(godwit_server server, godwit_address *addresses, uint64_t capacity,
                                      uint64_t *count, godwit_error *error);

/**
 * Takes no more connections, lets requests under way end for `grace_ms` at most, and stops; then comes
 * #GODWIT_EVENT_SERVER_STOPPED.
 *
 * Errors: #GODWIT_ERROR_HANDLE, #GODWIT_ERROR_STATE (it was shut down before).
 */
godwit_status godwit_server_shutdown(godwit_server server, uint64_t grace_ms, godwit_error *error);

/** @} */

/** @name QUIC endpoint @{ */

/** Bits of godwit_transport_options::flags. */
enum {
    /** Datagrams (RFC 9221) may be received. */
    GODWIT_TRANSPORT_DATAGRAMS = 1,
    /** Clients may not move to other addresses. */
    GODWIT_TRANSPORT_NO_MIGRATION = 2
};

/** No stream at all: godwit_transport_options::max_bidirectional_streams and max_unidirectional_streams. */
#define GODWIT_NO_STREAMS UINT64_MAX

/** Limits of a connection. */
typedef struct godwit_transport_options {
    /** sizeof(godwit_transport_options). */
    uint32_t size;
    /** GODWIT_TRANSPORT_... */
    uint32_t flags;
    /** A connection is over after so long without a packet; 0 for the default. */
    uint64_t idle_timeout_ms;
    /** The most time for a handshake; 0 for the default. */
    uint64_t handshake_timeout_ms;
    /** Packets that keep the connection alive, one in this time; 0 for none. */
    uint64_t keep_alive_ms;
    /** Streams of two directions that the peer may have open; 0 for the default, #GODWIT_NO_STREAMS for none. */
    uint64_t max_bidirectional_streams;
    /** Streams of one direction that the peer may have open; 0 for the default, #GODWIT_NO_STREAMS for none. */
    uint64_t max_unidirectional_streams;
    /** Bytes that the peer may send on a stream without being read; 0 for the default. */
    uint64_t max_stream_window;
    /** The same for all streams of a connection. */
    uint64_t max_connection_window;
    /** Bytes that wait to be sent, or to be acknowledged, in the transport, of all streams of a connection; 0 for the
     * default. */
    uint64_t send_buffer;
    /** Bytes of a stream that may be lent to the application at a time; 0 for 256 KiB. */
    uint64_t receive_limit;
    /** Bytes of a stream that may wait in the library; 0 for 256 KiB. */
    uint64_t send_limit;
} godwit_transport_options;

/** Bits of godwit_endpoint_options::flags. */
enum {
    /** Addresses of clients are checked before they cost anything (Retry, RFC 9000 section 8.1.2). */
    GODWIT_ENDPOINT_RETRY = 1,
    /** Clients that have been here before may send ahead of the handshake (0-RTT). */
    GODWIT_ENDPOINT_EARLY_DATA = 2
};

/** How an endpoint is to be. */
typedef struct godwit_endpoint_options {
    /** sizeof(godwit_endpoint_options). */
    uint32_t size;
    /** GODWIT_ENDPOINT_... */
    uint32_t flags;
    /** Whose threads do the work; 0 for those of the process. */
    godwit_runtime runtime;
    /** The address to bind, with port 0 any port that is free; NULL for `[::]:0`, or `0.0.0.0:0` where there is no IPv6. */
    const char *address;
    /** The file of the certificate with its chain (PEM). NULL: the endpoint takes no connections, but makes them. */
    const char *certificate_file;
    /** The file of its key (PEM). */
    const char *key_file;
    /** The protocols that a server speaks, the best first. */
    const char *const *alpn;
    /** How many of them. */
    uint64_t alpn_count;
    /** Limits of the connections that come in; NULL for the defaults. */
    const godwit_transport_options *transport;
    /** The most connections at a time; 0 for the default. */
    uint64_t max_connections;
} godwit_endpoint_options;

/**
 * Makes an endpoint. One with a certificate takes connections, which are told as #GODWIT_EVENT_INCOMING when their
 * handshake is complete; any makes them with godwit_endpoint_connect().
 *
 * Errors: #GODWIT_ERROR_HANDLE (queue, runtime), #GODWIT_ERROR_ARGUMENT, #GODWIT_ERROR_SIZE, #GODWIT_ERROR_FILE,
 * #GODWIT_ERROR_TLS, #GODWIT_ERROR_SYSTEM (the address cannot be bound).
 *
 * @param options NULL for a client's with the defaults.
 * @param tag Of its events, and of those of connections that come in until godwit_set_tag().
 * @param endpoint Gets the handle.
 */
godwit_status godwit_endpoint_create(godwit_queue queue, const godwit_endpoint_options *options, uint64_t tag,
                                     godwit_endpoint *endpoint, godwit_error *error);

/**
 * The address that an endpoint is bound to.
 *
 * Errors: #GODWIT_ERROR_HANDLE, #GODWIT_ERROR_ARGUMENT, #GODWIT_ERROR_SIZE, #GODWIT_ERROR_SYSTEM.
 */
godwit_status godwit_endpoint_address(godwit_endpoint endpoint, godwit_address *address, godwit_error *error);

/** Bits of godwit_connect_options::flags. */
enum {
    /** Accepts any certificate. For tests. */
    GODWIT_CONNECT_ACCEPT_ANY_CERTIFICATE = 1,
    /** Sends ahead of the handshake (0-RTT), if an earlier connection of this endpoint to the same server permits it. Streams
     * may be opened at once anyway; with this their bytes may be replayed by somebody on the way. */
    GODWIT_CONNECT_EARLY_DATA = 2,
    /** Trusts what is in `roots_file` alone, not the system's authorities. */
    GODWIT_CONNECT_ONLY_ROOTS_FILE = 4
};

/** Where to connect to, and how. */
typedef struct godwit_connect_options {
    /** sizeof(godwit_connect_options). */
    uint32_t size;
    /** GODWIT_CONNECT_... */
    uint32_t flags;
    /** The server's address, `[::1]:4433`, or its name with a port, `example.com:4433`. */
    const char *address;
    /** The name that its certificate is to be for; NULL for that in `address`. */
    const char *server_name;
    /** The protocols that are offered, the best first. */
    const char *const *alpn;
    /** How many of them, 1 at least. */
    uint64_t alpn_count;
    /** A file of certificates (PEM) that are trusted besides the system's, or NULL. */
    const char *roots_file;
    /** Limits; NULL for the defaults. */
    const godwit_transport_options *transport;
} godwit_connect_options;

/**
 * Connects. #GODWIT_EVENT_CONNECTED comes, or #GODWIT_EVENT_CONNECTION_CLOSED with the reason.
 *
 * Errors: #GODWIT_ERROR_HANDLE, #GODWIT_ERROR_ARGUMENT, #GODWIT_ERROR_SIZE, #GODWIT_ERROR_FILE, #GODWIT_ERROR_TLS,
 * #GODWIT_ERROR_CLOSED, #GODWIT_ERROR_LIMIT.
 *
 * @param tag Of its events.
 * @param connection Gets the handle.
 */
godwit_status godwit_endpoint_connect(godwit_endpoint endpoint, const godwit_connect_options *options, uint64_t tag,
                                      godwit_connection *connection, godwit_error *error);

/**
 * Moves all connections of an endpoint to another local address: binds that, and lets the old one go.
 *
 * Errors: #GODWIT_ERROR_HANDLE, #GODWIT_ERROR_ARGUMENT, #GODWIT_ERROR_SYSTEM.
 */
godwit_status godwit_endpoint_rebind(godwit_endpoint endpoint, const char *address, godwit_error *error);

/**
 * Takes no more connections, closes those that there are with this code and reason, and waits until the peers know; then
 * comes #GODWIT_EVENT_ENDPOINT_STOPPED.
 *
 * Errors: #GODWIT_ERROR_HANDLE, #GODWIT_ERROR_ARGUMENT, #GODWIT_ERROR_STATE (it was shut down before).
 *
 * @param code 0 to 2^62-1.
 * @param reason Text for people, or NULL.
 */
godwit_status godwit_endpoint_shutdown(godwit_endpoint endpoint, uint64_t code, const char *reason,
                                       godwit_error *error);

/** @} */

/** @name QUIC connection @{ */

/**
 * Closes a connection with a code and a reason for the peer. #GODWIT_EVENT_CONNECTION_CLOSED comes with
 * #GODWIT_ERROR_CANCELLED, unless it has come already.
 *
 * Errors: #GODWIT_ERROR_HANDLE, #GODWIT_ERROR_ARGUMENT.
 *
 * @param code 0 to 2^62-1.
 * @param reason Text for people, or NULL.
 */
godwit_status godwit_connection_shutdown(godwit_connection connection, uint64_t code, const char *reason,
                                         godwit_error *error);

/**
 * What is known of a connection.
 *
 * Errors: #GODWIT_ERROR_HANDLE, #GODWIT_ERROR_ARGUMENT, #GODWIT_ERROR_SIZE, #GODWIT_ERROR_STATE (its address is still being
 * looked up).
 */
godwit_status godwit_connection_information(godwit_connection connection, godwit_connection_info *info,
                                            godwit_error *error);

/** Bits of `flags` of godwit_connection_open(). */
enum {
    /** Only this side is to send on it. */
    GODWIT_STREAM_UNIDIRECTIONAL = 1
};

/**
 * Opens a stream. Bytes may be sent at once; they leave when the connection is there and the peer permits another stream,
 * which #GODWIT_EVENT_STREAM_OPENED tells.
 *
 * Errors: #GODWIT_ERROR_HANDLE, #GODWIT_ERROR_ARGUMENT, #GODWIT_ERROR_CLOSED (the connection is over), #GODWIT_ERROR_LIMIT.
 *
 * @param flags GODWIT_STREAM_...
 * @param tag Of its events.
 * @param stream Gets the handle.
 */
godwit_status godwit_connection_open(godwit_connection connection, uint32_t flags, uint64_t tag, godwit_stream *stream,
                                     godwit_error *error);

/**
 * Sends a datagram (RFC 9221): as a whole, once, and perhaps in vain.
 *
 * Errors: #GODWIT_ERROR_HANDLE, #GODWIT_ERROR_ARGUMENT (it is too long; the message says how long it may be),
 * #GODWIT_ERROR_FULL (too many wait; outcomes tell when some have left), #GODWIT_ERROR_UNSUPPORTED (the peer takes none),
 * #GODWIT_ERROR_STATE (not connected yet), #GODWIT_ERROR_CLOSED.
 *
 * @param flags #GODWIT_SEND_REPORT, or 0.
 * @param tag Of #GODWIT_EVENT_DATAGRAM_OUTCOME.
 */
godwit_status godwit_connection_send_datagram(godwit_connection connection, const void *data, uint64_t length,
                                              uint32_t flags, uint64_t tag, godwit_error *error);

/**
 * Client: moves a connection to another local address, `127.0.0.2:0`, while it goes on. The way is tried first;
 * #GODWIT_EVENT_PATH tells what comes of it. The endpoint has to be bound to all addresses of the family (`0.0.0.0:0`,
 * `[::]:0`); the port is its own, or 0.
 *
 * Errors: #GODWIT_ERROR_HANDLE, #GODWIT_ERROR_ARGUMENT, #GODWIT_ERROR_UNSUPPORTED (a server does not move, or the peer does not
 * permit it), #GODWIT_ERROR_SYSTEM (no socket there), #GODWIT_ERROR_STATE (not connected yet), #GODWIT_ERROR_CLOSED.
 */
godwit_status godwit_connection_migrate(godwit_connection connection, const char *local_address, godwit_error *error);

/**
 * The paths of a connection.
 *
 * @param paths An array; `paths[0].size` is set. May be NULL if `capacity` is 0.
 * @param capacity Its elements.
 * @param count Gets the number of paths that there are, which may be more than were written.
 *
 * Errors: #GODWIT_ERROR_HANDLE, #GODWIT_ERROR_ARGUMENT, #GODWIT_ERROR_SIZE.
 */
godwit_status godwit_connection_paths(godwit_connection connection, godwit_path *paths, uint64_t capacity,
                                      uint64_t *count, godwit_error *error);

/** What a connection counts. Counters only rise; estimates, and what is said to be of the path, are those of the present
 * path. */
typedef struct godwit_statistics {
    /** sizeof(godwit_statistics). */
    uint32_t size;
    /** Nothing yet. */
    uint32_t flags;
    /** UDP datagrams sent. */
    uint64_t udp_datagrams_sent;
    /** Bytes of UDP payload sent. */
    uint64_t udp_bytes_sent;
    /** UDP datagrams received. */
    uint64_t udp_datagrams_received;
    /** Bytes of UDP payload received. */
    uint64_t udp_bytes_received;
    /** QUIC packets sent. */
    uint64_t packets_sent;
    /** QUIC packets received. */
    uint64_t packets_received;
    /** QUIC packets that were dropped. */
    uint64_t packets_dropped;
    /** Packets declared lost on the path. */
    uint64_t packets_lost;
    /** Bytes declared lost on the path. */
    uint64_t bytes_lost;
    /** Packets declared lost on the path that came after all. */
    uint64_t spurious_losses;
    /** Reductions of the window on the path. */
    uint64_t congestion_events;
    /** Probe timeouts. */
    uint64_t probe_timeouts;
    /** Smoothed round-trip time. */
    uint64_t rtt_ns;
    /** The lowest round-trip time of late. */
    uint64_t min_rtt_ns;
    /** The newest round-trip time. */
    uint64_t latest_rtt_ns;
    /** The mean deviation of round-trip times. */
    uint64_t rtt_variance_ns;
    /** Congestion window in bytes. */
    uint64_t window;
    /** Bytes in flight. */
    uint64_t bytes_in_flight;
    /** Bytes of UDP payload that pass the path. */
    uint64_t mtu;
    /** Streams opened by this side. */
    uint64_t streams_opened;
    /** Streams opened by the peer. */
    uint64_t streams_opened_by_peer;
    /** Streams that are not over. */
    uint64_t streams_open;
    /** Bytes sent on streams, each once. */
    uint64_t stream_bytes_sent;
    /** Bytes sent on streams once more. */
    uint64_t stream_bytes_retransmitted;
    /** Bytes received on streams. */
    uint64_t stream_bytes_received;
    /** Updates of keys, by either side. */
    uint64_t key_updates;
} godwit_statistics;

/**
 * What a connection has counted so far.
 *
 * Errors: #GODWIT_ERROR_HANDLE, #GODWIT_ERROR_ARGUMENT, #GODWIT_ERROR_SIZE, #GODWIT_ERROR_STATE (its address is still being
 * looked up).
 */
godwit_status godwit_connection_statistics(godwit_connection connection, godwit_statistics *statistics,
                                           godwit_error *error);

/**
 * Client: the same of the connection that an exchange is on, once its response has come.
 *
 * Errors: as godwit_connection_statistics(); #GODWIT_ERROR_STATE (there is no response yet), #GODWIT_ERROR_UNSUPPORTED (it is
 * not over HTTP/3).
 */
godwit_status godwit_exchange_statistics(godwit_exchange exchange, godwit_statistics *statistics, godwit_error *error);

/** @} */

/** @name QUIC stream @{ */

/**
 * Sends bytes on a stream. They are copied; they are all taken, or none.
 *
 * Errors: #GODWIT_ERROR_HANDLE, #GODWIT_ERROR_ARGUMENT, #GODWIT_ERROR_FULL (the send limit is reached;
 * #GODWIT_EVENT_WRITABLE comes), #GODWIT_ERROR_STATE (it was ended or reset, or the peer alone sends on it),
 * #GODWIT_ERROR_RESET (the peer wants no more), #GODWIT_ERROR_CLOSED (the connection is over).
 *
 * @param data May be NULL if `length` is 0.
 * @param flags GODWIT_SEND_...
 * @param tag Of #GODWIT_EVENT_SENT.
 */
godwit_status godwit_stream_send(godwit_stream stream, const void *data, uint64_t length, uint32_t flags, uint64_t tag,
                                 godwit_error *error);

/**
 * Breaks off what this side sends on a stream.
 *
 * Errors: #GODWIT_ERROR_HANDLE, #GODWIT_ERROR_ARGUMENT, #GODWIT_ERROR_STATE (the peer alone sends on it).
 *
 * @param code For the peer, 0 to 2^62-1.
 */
godwit_status godwit_stream_reset(godwit_stream stream, uint64_t code, godwit_error *error);

/**
 * Asks the peer to send no more on a stream; no more of it is told.
 *
 * Errors: #GODWIT_ERROR_HANDLE, #GODWIT_ERROR_ARGUMENT, #GODWIT_ERROR_STATE (this side alone sends on it).
 *
 * @param code For the peer, 0 to 2^62-1.
 */
godwit_status godwit_stream_stop(godwit_stream stream, uint64_t code, godwit_error *error);

/**
 * How urgent what is sent on a stream is (RFC 9218).
 *
 * Errors: #GODWIT_ERROR_HANDLE, #GODWIT_ERROR_ARGUMENT, #GODWIT_ERROR_STATE (the peer alone sends on it).
 *
 * @param urgency 0 (first) to 7 (last); 3 where nothing is said.
 * @param incremental Not 0: it shares its turn with others of the same urgency.
 */
godwit_status godwit_stream_set_priority(godwit_stream stream, uint32_t urgency, uint32_t incremental,
                                         godwit_error *error);

/** @} */

#ifdef __cplusplus
}
#endif

#endif /* GODWIT_H */
