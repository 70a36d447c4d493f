/* What cases do with streams: open, start, send a pattern, finish what a receive mode has left to do, close. */
#include "suite.h"

stream *open_stream(connection *on, QUIC_STREAM_OPEN_FLAGS flags) {
    stream *it = keep(sizeof(*it));
    it->of = on;
    CHECK_OK(api->StreamOpen(on->handle, flags, on_stream_event, it, &it->handle));
    return it;
}

stream *start_stream(connection *on, QUIC_STREAM_OPEN_FLAGS open, QUIC_STREAM_START_FLAGS start) {
    stream *it = open_stream(on, open);
    CHECK_PENDING(api->StreamStart(it->handle, start));
    return it;
}

void close_stream(stream *it) {
    lock_suite();
    bool closed = it->events.closed;
    unlock_suite();
    if (closed) return;
    api->StreamClose(it->handle);
    lock_suite();
    it->events.closed = true;
    if (it->sends) fail_at(__FILE__, __LINE__, "%u sends were not completed when the stream was closed", it->sends);
    unlock_suite();
}

uint8_t pattern(uint64_t offset) { return (uint8_t)(offset * 7 + (offset >> 8) * 13 + (offset >> 16)); }

static send_record *make_send(stream *on, uint64_t offset, uint64_t length, uint32_t count) {
    send_record *record = keep(sizeof(*record) + count * sizeof(QUIC_BUFFER));
    record->of = on;
    record->count = count;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t part = length / count + (i < length % count);
        record->buffers[i].Length = (uint32_t)part;
        record->buffers[i].Buffer = part ? keep(part) : NULL;
        for (uint64_t j = 0; j < part; j++) record->buffers[i].Buffer[j] = pattern(offset++);
    }
    return record;
}

send_record *try_send(
    stream *on, uint64_t offset, uint64_t length, uint32_t count, QUIC_SEND_FLAGS flags, QUIC_STATUS *status) {
    send_record *record = make_send(on, offset, length, count);
    lock_suite();
    on->sends++;
    unlock_suite();
    *status = api->StreamSend(on->handle, count ? record->buffers : NULL, count, flags, record);
    if (QUIC_FAILED(*status)) {
        lock_suite();
        CHECK(!record->completed);
        on->sends--;
        unlock_suite();
    }
    return record;
}

send_record *send_pattern(stream *on, uint64_t offset, uint64_t length, uint32_t count, QUIC_SEND_FLAGS flags) {
    QUIC_STATUS status;
    send_record *record = try_send(on, offset, length, count, flags, &status);
    CHECK_STATUS(QUIC_STATUS_PENDING, status);
    return record;
}

void finish_receive(stream *it) {
    for (;;) {
        lock_suite();
        while (!it->pending && !it->wants_enable && !it->finished) {
            wait_for_change(__FILE__, __LINE__, "something to complete, or the peer's end");
        }
        uint64_t pending = it->pending;
        bool enable = it->wants_enable, finished = it->finished;
        it->received += pending;
        it->pending = 0;
        it->wants_enable = false;
        unlock_suite();
        if (pending) api->StreamReceiveComplete(it->handle, pending);
        if (enable) CHECK_PENDING(api->StreamReceiveSetEnabled(it->handle, TRUE));
        if (finished) return;
    }
}

stream *accepted_stream(connection *on, unsigned which) {
    WAIT_UNTIL(on->accepted_count >= which);
    return on->accepted[which - 1];
}
