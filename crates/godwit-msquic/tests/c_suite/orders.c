/* The order of events in the usual ways to live and to end. */
#include "suite.h"

static void client_closes_after_shutdown(const void *row) {
    (void)row;
    pair *it = usual_pair();
    api->ConnectionShutdown(it->client.handle, QUIC_CONNECTION_SHUTDOWN_FLAG_NONE, 7);
    event client = WAIT_EVENT(&it->client, QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE);
    event server = WAIT_EVENT(it->server, QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE);
    CHECK_EQUAL(7, WAIT_EVENT(it->server, QUIC_CONNECTION_EVENT_SHUTDOWN_INITIATED_BY_PEER).code);
    CHECK(client.first && client.second && !client.third);
    CHECK(server.first && !server.second && !server.third);
    CHECK_NO_EVENT(&it->client, QUIC_CONNECTION_EVENT_SHUTDOWN_INITIATED_BY_PEER);
    CHECK_NO_EVENT(&it->client, QUIC_CONNECTION_EVENT_SHUTDOWN_INITIATED_BY_TRANSPORT);
    CHECK_ORDER(it->server, QUIC_CONNECTION_EVENT_CONNECTED, QUIC_CONNECTION_EVENT_SHUTDOWN_INITIATED_BY_PEER);
    CHECK_ORDER(it->server, QUIC_CONNECTION_EVENT_SHUTDOWN_INITIATED_BY_PEER,
                QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE);
    close_pair(it);
}

static void server_closes_after_shutdown(const void *row) {
    (void)row;
    pair *it = usual_pair();
    api->ConnectionShutdown(it->server->handle, QUIC_CONNECTION_SHUTDOWN_FLAG_NONE, 8);
    WAIT_EVENT(&it->client, QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE);
    WAIT_EVENT(it->server, QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE);
    CHECK_EQUAL(8, WAIT_EVENT(&it->client, QUIC_CONNECTION_EVENT_SHUTDOWN_INITIATED_BY_PEER).code);
    CHECK_NO_EVENT(it->server, QUIC_CONNECTION_EVENT_SHUTDOWN_INITIATED_BY_PEER);
    CHECK_ORDER(&it->client, QUIC_CONNECTION_EVENT_SHUTDOWN_INITIATED_BY_PEER,
                QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE);
    close_pair(it);
}

/* The own last event comes within the call. The peer is told nothing, and ends by its own limits. */
static void client_closes_without_shutdown(const void *row) {
    (void)row;
    pair_options options = usual_options();
    SET(options.server, IdleTimeoutMs, 1000);
    SET(options.server, DisconnectTimeoutMs, 500);
    pair *it = connected_pair(&options);
    close_connection(&it->client);
    event last = WAIT_EVENT(&it->client, QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE);
    CHECK(last.first && last.second && last.third);
    WAIT_EVENT(it->server, QUIC_CONNECTION_EVENT_SHUTDOWN_COMPLETE);
    QUIC_STATUS why = WAIT_EVENT(it->server, QUIC_CONNECTION_EVENT_SHUTDOWN_INITIATED_BY_TRANSPORT).status;
    CHECK(why == QUIC_STATUS_CONNECTION_IDLE || why == QUIC_STATUS_CONNECTION_TIMEOUT);
    CHECK_NO_EVENT(it->server, QUIC_CONNECTION_EVENT_SHUTDOWN_INITIATED_BY_PEER);
    close_pair(it);
}

#define ORDER(body) add_case(CASE_ORDINARY, body, NULL, "orders/%s", #body)

void declare_orders(void) {
    ORDER(client_closes_after_shutdown);
    ORDER(server_closes_after_shutdown);
    ORDER(client_closes_without_shutdown);
}
