/* One handle of each kind, the connections connected or not yet: what tables of parameters are asked of. */
#ifndef WORLD_H
#define WORLD_H

enum world_kind {
    OF_NOBODY,
    OF_REGISTRATION,
    OF_CONFIGURATION,
    OF_LISTENER,
    OF_CLIENT,
    OF_SERVER,
    OF_STREAM,
    WORLD_KINDS
};

enum world_state { FRESH, CONNECTED };

typedef struct world {
    pair *ends;
    stream *stream;
    HQUIC handles[WORLD_KINDS]; /* There is no server before it is connected. */
} world;

extern const char *const world_kind_names[WORLD_KINDS];

/* The client has a stream; once connected, it has started and has sent a little. */
world *open_world(enum world_state state);
void close_world(world *it);

#endif
