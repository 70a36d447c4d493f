/* The areas of the interface, each a file of cases. A new file has a line here. */
#ifndef AREAS_H
#define AREAS_H

#define ALL_AREAS(AREA) \
    AREA(handle_kinds) \
    AREA(settings) \
    AREA(parameters_get) \
    AREA(parameters_set) \
    AREA(arguments) \
    AREA(transfers) \
    AREA(stream_ends) \
    AREA(stream_starts) \
    AREA(connection_ends) \
    AREA(registrations) \
    AREA(datagrams) \
    AREA(listeners) \
    AREA(certificates) \
    AREA(resumption) \
    AREA(inspection) \
    AREA(library_settings) \
    AREA(receiving) \
    AREA(reliable_resets) \
    AREA(flow_control) \
    AREA(executions) \
    AREA(losses) \
    AREA(callbacks) \
    AREA(closing) \
    AREA(rare) \
    AREA(beginnings) \
    AREA(orders) \
    AREA(priorities)

#define DECLARE_AREA(name) void declare_##name(void);
ALL_AREAS(DECLARE_AREA)
#undef DECLARE_AREA

static inline void declare_all_areas(void) {
#define DECLARE_AREA(name) declare_##name();
    ALL_AREAS(DECLARE_AREA)
#undef DECLARE_AREA
}

#endif
