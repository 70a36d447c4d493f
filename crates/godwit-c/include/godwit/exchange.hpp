/**
 * @file
 * @brief What the exchanges of clients and servers have in common: bodies in both directions.
 */
#ifndef GODWIT_EXCHANGE_HPP
#define GODWIT_EXCHANGE_HPP

#include "headers.hpp"
#include "loop.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace godwit {

/** Bytes of a text. */
inline std::span<const std::byte> bytes_of(std::string_view text) {
    return {reinterpret_cast<const std::byte *>(text.data()), text.size()};
}

namespace detail {

/** So much is given to the library at a time. */
inline constexpr std::size_t piece_length = 65536;

/** Takes the events of an exchange. */
class exchange_receiver final : public receiver {
public:
    explicit exchange_receiver(core &of) : head(of.ready), body(of.ready), room(of.ready), finished(of.ready) {}

    void take(event &&item) override {
        switch (item->kind) {
        case GODWIT_EVENT_RESPONSE:
            head.put(std::move(item));
            break;
        case GODWIT_EVENT_BODY:
            body.put(std::move(item));
            break;
        case GODWIT_EVENT_TRAILERS:
            trailers = headers::of(*item);
            break;
        case GODWIT_EVENT_END:
            body.end(std::nullopt);
            if (is_of_client) {
                // The exchange is over: nobody takes what is left of the request.
                room.end(error(GODWIT_ERROR_RESET, "the response is complete, and nobody takes more of the request"));
            }
            break;
        case GODWIT_EVENT_FINISHED:
            finished.put(std::move(item));
            break;
        case GODWIT_EVENT_WRITABLE:
            room.put(std::move(item));
            break;
        case GODWIT_EVENT_FAILED:
            end(item.problem());
            break;
        default:
            break;
        }
    }

    void end(const error &reason) override {
        head.end(reason);
        body.end(reason);
        room.end(reason);
        finished.end(reason);
    }

    channel head;
    channel body;
    channel room;
    channel finished;
    headers trailers;
    bool is_of_client = false;
};

/** Gives bytes to `send(data, length, flags, error)`, and waits for room where there is none. */
template <class Send>
task<void> send_all(std::span<const std::byte> data, bool is_end, channel &room, Send send) {
    bool again = true;
    while (again) {
        if (room.over()) {
            // It says why.
            co_await room.next();
        }
        const std::size_t length = data.size() < piece_length ? data.size() : piece_length;
        const bool is_last = length == data.size();
        const std::uint32_t flags = is_last && is_end ? GODWIT_SEND_END : 0;
        godwit_error problem = empty_error();
        const godwit_status status = send(data.data(), std::uint64_t{length}, flags, &problem);
        if (status == GODWIT_ERROR_FULL) {
            if (!co_await room.next()) {
                problem.status = status;
                throw error(problem);
            }
            continue;
        }
        if (status != GODWIT_OK) {
            problem.status = status;
            throw error(problem);
        }
        data = data.subspan(length);
        again = !is_last;
    }
}

} // namespace detail

/** A request with its response: what clients and servers can do with both bodies. */
class exchange {
public:
    /** The next piece of the body that is received; nothing at its end. */
    task<std::optional<bytes>> read() {
        std::optional<detail::event> item = co_await self_->body.next();
        if (!item) {
            co_return std::nullopt;
        }
        co_return bytes(std::move(*item));
    }

    /** The whole body that is received, or what is left of it. Throws with #GODWIT_ERROR_LIMIT if it is longer than `limit`. */
    task<std::string> text(std::size_t limit = std::size_t{16} << 20) {
        std::string whole;
        while (std::optional<bytes> piece = co_await read()) {
            if (piece->size() > limit - whole.size()) {
                throw error(GODWIT_ERROR_LIMIT, "the body is longer than " + std::to_string(limit) +
                                                    " bytes; give a higher limit, or read it piece by piece");
            }
            whole += piece->text();
        }
        co_return whole;
    }

    /** What followed the body, once read() has returned nothing. */
    const headers &trailers() const { return self_->trailers; }

    /** Sends a piece of a body that is streamed. Waits while as much as may wait is waiting. */
    task<void> send(std::span<const std::byte> data) { return send_with(data, false); }
    task<void> send(std::string_view data) { return send_with(bytes_of(data), false); }

    /** Ends a body that is streamed. */
    task<void> finish() { return send_with({}, true); }

    /** Ends a body that is streamed, with trailers. */
    void finish(const headers &trailers) {
        const std::vector<godwit_header> raw = trailers.raw();
        detail::call(godwit_exchange_send_trailers, self_.get(), raw.data(), std::uint64_t{raw.size()});
    }

    /** Breaks it off. */
    void cancel() { detail::call(godwit_exchange_cancel, self_.get()); }

    /** The handle for functions of godwit.h. It stays this object's. */
    godwit_exchange native() const noexcept { return self_.get(); }

protected:
    explicit exchange(detail::object<detail::exchange_receiver> self) : self_(std::move(self)) {}

    detail::object<detail::exchange_receiver> self_;

private:
    task<void> send_with(std::span<const std::byte> data, bool is_end) {
        const godwit_exchange handle = self_.get();
        return detail::send_all(data, is_end, self_->room,
                                [handle](const std::byte *from, std::uint64_t length, std::uint32_t flags,
                                         godwit_error *problem) {
                                    return godwit_exchange_send(handle, from, length, flags, 0, problem);
                                });
    }
};

} // namespace godwit

#endif
