/* The objects behind handles: listeners, connections, streams and sends, and two ends that are connected over loopback. */
#ifndef ENDPOINTS_H
#define ENDPOINTS_H

typedef struct connection connection;
typedef struct stream stream;
typedef struct listener listener;

/* What a hook answers when the object shall do what it does without one. */
#define HOOK_DEFAULT ((QUIC_STATUS)-100)

typedef QUIC_STATUS (*connection_hook)(connection *of, QUIC_CONNECTION_EVENT *what);
typedef QUIC_STATUS (*stream_hook)(stream *of, QUIC_STREAM_EVENT *what);
typedef QUIC_STATUS (*listener_hook)(listener *of, QUIC_LISTENER_EVENT *what);

/* How a stream takes what it receives. */
typedef enum receive_mode {
    RECEIVE_ALL,         /* SUCCESS with the whole length. */
    RECEIVE_PENDING,     /* PENDING, completed by another thread (finish_receive). */
    RECEIVE_CONTINUE,    /* CONTINUE with a part, until all is there. */
    RECEIVE_PARTIAL,     /* SUCCESS with a part, enabled again by another thread. */
    RECEIVE_INLINE,      /* StreamReceiveComplete within the callback, which then answers PENDING. */
} receive_mode;

struct stream {
    HQUIC handle;
    connection *of;
    journal events;
    stream_hook hook;
    void *user;
    receive_mode mode;
    uint64_t id;
    uint64_t received;    /* Bytes that were taken. */
    uint64_t pending;     /* Bytes indicated that finish_receive has to complete. */
    bool wants_enable;    /* A partial receive has stopped what comes. */
    bool finished;        /* The peer's end has come. */
    bool echo;            /* Sends back what it has received, and ends when the peer has ended. */
    bool respond;         /* Sends `response` bytes when the peer has ended. */
    bool ends_by_itself;  /* Ends its own direction when the peer has ended. */
    bool closes_itself;   /* Closes its handle in SHUTDOWN_COMPLETE. */
    uint64_t response;
    unsigned sends;       /* Sends that were accepted and are not completed. */
};

typedef struct send_record {
    stream *of;
    bool completed;
    bool canceled;
    uint32_t count;
    QUIC_BUFFER buffers[];
} send_record;

struct connection {
    HQUIC handle;
    bool server;
    journal events;
    connection_hook hook;
    void *user;
    /* Prepares a stream that the peer has opened, before anything of it is received. */
    void (*prepare_stream)(stream *accepted);
    stream *accepted[256];
    unsigned accepted_count;
    uint8_t ticket[4096];
    uint32_t ticket_length;
    uint8_t resumption_data[1024];
    uint32_t resumption_length;
    uint8_t datagram[2048]; /* The last one that came. */
    uint32_t datagram_length;
};

struct listener {
    HQUIC handle;
    journal events;
    listener_hook hook;
    void *user;
    HQUIC configuration;
    /* Prepares the object of a connection that has come, before it has a configuration. */
    void (*prepare_connection)(connection *accepted);
    connection *accepted[64];
    unsigned accepted_count;
    char server_name[256];
    uint8_t negotiated[256];
};

QUIC_STATUS on_listener_event(HQUIC handle, void *context, QUIC_LISTENER_EVENT *what);
QUIC_STATUS on_connection_event(HQUIC handle, void *context, QUIC_CONNECTION_EVENT *what);
QUIC_STATUS on_stream_event(HQUIC handle, void *context, QUIC_STREAM_EVENT *what);

/* ---- Streams ---- */

stream *open_stream(connection *on, QUIC_STREAM_OPEN_FLAGS flags);
stream *start_stream(connection *on, QUIC_STREAM_OPEN_FLAGS open, QUIC_STREAM_START_FLAGS start);
void close_stream(stream *it);
/* The byte of the pattern that all transfers have at an offset. */
uint8_t pattern(uint64_t offset);
/* A send of the pattern from an offset on, cut into `count` buffers. The result of the call is put into `status`. */
send_record *try_send(
    stream *on, uint64_t offset, uint64_t length, uint32_t count, QUIC_SEND_FLAGS flags, QUIC_STATUS *status);
/* The same, for a send that has to be accepted. */
send_record *send_pattern(stream *on, uint64_t offset, uint64_t length, uint32_t count, QUIC_SEND_FLAGS flags);
/* Completes or enables what a receive mode has left to do, until the peer's end has come. */
void finish_receive(stream *it);
/* Waits for the n-th stream that the peer has opened. */
stream *accepted_stream(connection *on, unsigned which);

/* ---- Two ends ---- */

typedef struct pair_options {
    QUIC_SETTINGS server;
    QUIC_SETTINGS client;
    const char *server_alpn;
    const char *client_alpn;
    QUIC_CREDENTIAL_FLAGS server_flags;
    QUIC_CREDENTIAL_FLAGS client_flags; /* In place of NO_CERTIFICATE_VALIDATION. */
    const char *server_certificate;     /* The name of NAME.pem and NAME.key. */
    const char *client_certificate;
    const char *authority;              /* CaCertificateFile of the client, in the folder of certificates. */
    const char *server_authority;
    QUIC_ALLOWED_CIPHER_SUITE_FLAGS ciphers;
    const char *server_name;
    listener_hook on_listener;
    connection_hook on_server;
    connection_hook on_client;
    void (*prepare_listener)(HQUIC it); /* Before it is started. */
    void (*prepare_server)(connection *it);
    void (*prepare_server_stream)(stream *it);
    void (*prepare_client_stream)(stream *it);
    void *user;
    QUIC_EXECUTION_PROFILE profile;
} pair_options;

typedef struct pair {
    const pair_options *options;
    HQUIC registration;
    HQUIC server_configuration;
    HQUIC client_configuration;
    listener listener;
    connection client;
    connection *server;
    uint16_t port;
} pair;

/* Options with ten streams of either kind for the peer, and both idle for a long time. */
pair_options usual_options(void);
/* A registration, two configurations and a listener that is started; the client is opened. */
pair *open_pair(const pair_options *options);
QUIC_STATUS start_client(pair *it);
/* Starts the client and waits until both ends are connected. */
void connect_pair(pair *it);
pair *connected_pair(const pair_options *options);
pair *usual_pair(void);
connection *wait_server(pair *it);
connection *wait_server_number(pair *it, unsigned which);
/* Opens another client at the same listener. */
connection *another_client(pair *it);
/* Closes everything that is open and checks that nothing is left in the library. */
void close_pair(pair *it);
void close_connection(connection *it);

/* ---- Pieces, for cases that need one alone ---- */

HQUIC open_registration(void);
HQUIC open_configuration(HQUIC registration, const char *alpn, const QUIC_SETTINGS *settings);
HQUIC server_configuration(HQUIC registration, const char *alpn, const QUIC_SETTINGS *settings);
HQUIC client_configuration(HQUIC registration, const char *alpn, const QUIC_SETTINGS *settings);
QUIC_STATUS load_server_credential(HQUIC configuration, const char *name, QUIC_CREDENTIAL_FLAGS flags);
char *certificate_path(const char *name, const char *ending);
QUIC_BUFFER alpn_buffer(const char *name);
QUIC_ADDR loopback(uint16_t port);
QUIC_ADDR loopback6(uint16_t port);
uint16_t port_of(const QUIC_ADDR *address);
uint16_t listener_port(HQUIC listener);
/* A port of UDP on loopback where nobody listens. */
uint16_t dead_port(void);
int64_t performance_counter(QUIC_PERFORMANCE_COUNTERS which);
/* Sets a setting of one bit. */
#define SET(settings, name, value) ((settings).name = (value), (settings).IsSet.name = 1)

#endif
