#include "suite.h"
#include "world.h"

const char *const world_kind_names[WORLD_KINDS] = {
    "nobody", "registration", "configuration", "listener", "client", "server", "stream"};

world *open_world(enum world_state state) {
    world *it = keep(sizeof(*it));
    pair_options options = usual_options();
    SET(options.client, DatagramReceiveEnabled, 1);
    SET(options.server, DatagramReceiveEnabled, 1);
    SET(options.server, ServerResumptionLevel, QUIC_SERVER_RESUME_AND_ZERORTT);
    it->ends = open_pair(&options);
    it->stream = open_stream(&it->ends->client, QUIC_STREAM_OPEN_FLAG_NONE);
    if (state == CONNECTED) {
        connect_pair(it->ends);
        send_pattern(it->stream, 0, 100, 1, QUIC_SEND_FLAG_START);
        WAIT_EVENT(it->stream, QUIC_STREAM_EVENT_START_COMPLETE);
        it->handles[OF_SERVER] = it->ends->server->handle;
    }
    it->handles[OF_REGISTRATION] = it->ends->registration;
    it->handles[OF_CONFIGURATION] = it->ends->client_configuration;
    it->handles[OF_LISTENER] = it->ends->listener.handle;
    it->handles[OF_CLIENT] = it->ends->client.handle;
    it->handles[OF_STREAM] = it->stream->handle;
    return it;
}

void close_world(world *it) {
    close_stream(it->stream);
    close_pair(it->ends);
}
