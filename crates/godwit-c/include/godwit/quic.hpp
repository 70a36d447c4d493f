/**
 * @file
 * @brief QUIC: godwit::endpoint, godwit::connection, godwit::stream.
 */
#ifndef GODWIT_QUIC_HPP
#define GODWIT_QUIC_HPP

#include "exchange.hpp"

#include <chrono>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace godwit {

/** Limits of a connection. What is zero has its default, as godwit_transport_options says. */
using transport_options = godwit_transport_options;

/** Limits to be changed. */
inline transport_options default_transport() { return detail::sized<transport_options>(); }

/** How an endpoint is to be, as godwit_endpoint_options says. */
struct endpoint_options {
    /** GODWIT_ENDPOINT_... */
    std::uint32_t flags = 0;
    godwit_runtime runtime = 0;
    /** The address to bind; empty for any. */
    std::string address{};
    /** With a certificate it takes connections. */
    std::string certificate_file{};
    std::string key_file{};
    /** The protocols that a server speaks, the best first. */
    std::vector<std::string> alpn{};
    transport_options transport = default_transport();
    std::uint64_t max_connections = 0;
};

/** Where to connect to, and how, as godwit_connect_options says. */
struct connect_options {
    /** GODWIT_CONNECT_... */
    std::uint32_t flags = 0;
    /** `example.com:4433`, `[::1]:4433`. */
    std::string address{};
    /** The name that the certificate is to be for; empty for that in `address`. */
    std::string server_name{};
    /** The protocols that are offered, the best first. */
    std::vector<std::string> alpn{};
    std::string roots_file{};
    transport_options transport = default_transport();
};

namespace detail {

/** Texts as the C interface takes lists of them; they point to what they are made of. */
inline std::vector<const char *> pointers(const std::vector<std::string> &texts) {
    std::vector<const char *> made;
    made.reserve(texts.size());
    for (const std::string &text : texts) {
        made.push_back(text.c_str());
    }
    return made;
}

/** Takes the events of a stream. */
class stream_receiver final : public receiver {
public:
    explicit stream_receiver(core &of) : received(of.ready), room(of.ready), finished(of.ready), opened(of.ready) {}

    void take(event &&item) override {
        switch (item->kind) {
        case GODWIT_EVENT_RECEIVED: {
            const bool is_end = (item->flags & GODWIT_EVENT_FLAG_END) != 0;
            if (item->length != 0) {
                received.put(std::move(item));
            }
            if (is_end) {
                received.end(std::nullopt);
            }
            break;
        }
        case GODWIT_EVENT_STREAM_RESET:
            received.end(item.problem());
            break;
        case GODWIT_EVENT_STREAM_STOPPED: {
            const error reason = item.problem();
            room.end(reason);
            finished.end(reason);
            opened.end(reason);
            break;
        }
        case GODWIT_EVENT_STREAM_FINISHED:
            finished.put(std::move(item));
            break;
        case GODWIT_EVENT_STREAM_OPENED:
            id = item->code;
            opened.put(std::move(item));
            break;
        case GODWIT_EVENT_WRITABLE:
            room.put(std::move(item));
            break;
        default:
            break;
        }
    }

    void end(const error &reason) override {
        received.end(reason);
        room.end(reason);
        finished.end(reason);
        opened.end(reason);
    }

    channel received;
    channel room;
    channel finished;
    channel opened;
    std::optional<std::uint64_t> id;
    bool is_unidirectional = false;
};

/** Takes the events of a connection. */
class connection_receiver final : public receiver {
public:
    explicit connection_receiver(core &of)
        : streams(of), connected(of.ready), datagrams(of.ready), paths(of.ready), closed(of.ready) {}

    void take(event &&item) override {
        switch (item->kind) {
        case GODWIT_EVENT_CONNECTED:
            connected.put(std::move(item));
            break;
        case GODWIT_EVENT_STREAM: {
            const bool is_unidirectional = (item->flags & GODWIT_EVENT_FLAG_UNIDIRECTIONAL) != 0;
            const std::uint64_t id = item->code;
            stream_receiver &stream = streams.put(std::move(item));
            stream.is_unidirectional = is_unidirectional;
            stream.id = id;
            break;
        }
        case GODWIT_EVENT_DATAGRAM:
            datagrams.put(std::move(item));
            break;
        case GODWIT_EVENT_PATH:
            paths.put(std::move(item));
            break;
        case GODWIT_EVENT_CONNECTION_CLOSED: {
            end(item.problem());
            break;
        }
        default:
            break;
        }
    }

    void end(const error &reason) override {
        streams.end(reason);
        connected.end(reason);
        datagrams.end(reason);
        paths.end(reason);
        why.emplace(reason);
        closed.end(std::nullopt);
    }

    arrivals<stream_receiver> streams;
    channel connected;
    channel datagrams;
    channel paths;
    channel closed;
    /** Why it is over, if it is. */
    std::optional<error> why;
};

/** Takes the events of an endpoint. */
class endpoint_receiver final : public receiver {
public:
    explicit endpoint_receiver(core &of) : connections(of), stopped(of.ready) {}

    void take(event &&item) override {
        if (item->kind == GODWIT_EVENT_INCOMING) {
            connections.put(std::move(item));
        } else if (item->kind == GODWIT_EVENT_ENDPOINT_STOPPED) {
            connections.end(std::nullopt);
            stopped.put(std::move(item));
        }
    }
    void end(const error &reason) override {
        connections.end(reason);
        stopped.end(reason);
    }

    arrivals<connection_receiver> connections;
    channel stopped;
};

} // namespace detail

/** A stream. */
class stream {
public:
    /** Its id, once it has one. */
    std::optional<std::uint64_t> id() const { return self_->id; }
    /** Whether only the side that opened it sends. */
    bool is_unidirectional() const { return self_->is_unidirectional; }

    /** Sends bytes. Waits while as much as may wait is waiting. */
    task<void> send(std::span<const std::byte> data) { return send_with(data, false); }
    task<void> send(std::string_view data) { return send_with(bytes_of(data), false); }

    /** Ends what this side sends. */
    task<void> finish() { return send_with({}, true); }

    /** Waits until the peer has everything that was sent. Throws if it wants no more. */
    task<void> finished() { co_await self_->finished.next(); }

    /** The next bytes from the peer; nothing at their end. Throws if the peer breaks off. */
    task<std::optional<bytes>> read() {
        std::optional<detail::event> item = co_await self_->received.next();
        if (!item) {
            co_return std::nullopt;
        }
        co_return bytes(std::move(*item));
    }

    /** Everything that comes until the end. Throws with #GODWIT_ERROR_LIMIT if that is longer than `limit`. */
    task<std::string> read_to_end(std::size_t limit = std::size_t{16} << 20) {
        std::string whole;
        while (std::optional<bytes> piece = co_await read()) {
            if (piece->size() > limit - whole.size()) {
                throw error(GODWIT_ERROR_LIMIT, "the peer sends more than " + std::to_string(limit) +
                                                    " bytes; give a higher limit, or read piece by piece");
            }
            whole += piece->text();
        }
        co_return whole;
    }

    /** Breaks off what this side sends, with a code for the peer. */
    void reset(std::uint64_t code) {
        detail::call(godwit_stream_reset, self_.get(), code);
        const error reason(GODWIT_ERROR_CANCELLED, "this side has broken off what it sends");
        self_->room.end(reason);
        self_->finished.end(reason);
        self_.loop()->note_ready();
    }
    /** Asks the peer to send no more, with a code. */
    void stop(std::uint64_t code) {
        detail::call(godwit_stream_stop, self_.get(), code);
        self_->received.end(error(GODWIT_ERROR_CANCELLED, "this side wants no more of the stream"));
        self_.loop()->note_ready();
    }
    /** How urgent what is sent on it is: 0 (first) to 7 (last), 3 where nothing is said (RFC 9218). */
    void set_priority(std::uint32_t urgency, bool is_incremental) {
        detail::call(godwit_stream_set_priority, self_.get(), urgency, std::uint32_t{is_incremental});
    }

    /** The handle for functions of godwit.h. It stays this object's. */
    godwit_stream native() const noexcept { return self_.get(); }

private:
    friend class connection;
    explicit stream(detail::object<detail::stream_receiver> self) : self_(std::move(self)) {}

    task<void> send_with(std::span<const std::byte> data, bool is_end) {
        const godwit_stream handle = self_.get();
        return detail::send_all(data, is_end, self_->room,
                                [handle](const std::byte *from, std::uint64_t length, std::uint32_t flags,
                                         godwit_error *problem) {
                                    return godwit_stream_send(handle, from, length, flags, 0, problem);
                                });
    }

    detail::object<detail::stream_receiver> self_;
};

/** A connection. */
class connection {
public:
    /** Opens a stream. Bytes may be sent at once; they leave when the peer permits another stream. */
    stream open(bool is_unidirectional = false) {
        godwit_stream made = 0;
        const std::uint32_t flags = is_unidirectional ? GODWIT_STREAM_UNIDIRECTIONAL : 0;
        detail::call(godwit_connection_open, self_.get(), flags, std::uint64_t{0}, &made);
        auto takes = std::make_shared<detail::stream_receiver>(*self_.loop());
        takes->is_unidirectional = is_unidirectional;
        if (is_unidirectional) {
            takes->received.end(std::nullopt);
        }
        return stream(detail::object<detail::stream_receiver>(self_.loop(), made, takes, self_.get()));
    }

    /** The next stream that the peer opens. Throws when the connection is over. */
    task<stream> accept_stream() {
        const std::shared_ptr<detail::connection_receiver> receiver = self_.shared();
        std::optional<detail::event> item = co_await receiver->streams.next();
        if (!item) {
            throw error(GODWIT_ERROR_CLOSED, "the connection is over");
        }
        co_return stream(receiver->streams.take(*item));
    }

    /** Sends a datagram: as a whole, once, and perhaps in vain (RFC 9221). */
    void send_datagram(std::span<const std::byte> data) {
        detail::call(godwit_connection_send_datagram, self_.get(), static_cast<const void *>(data.data()),
                     std::uint64_t{data.size()}, std::uint32_t{0}, std::uint64_t{0});
    }
    void send_datagram(std::string_view data) { send_datagram(bytes_of(data)); }

    /** The next datagram. Throws when the connection is over. */
    task<bytes> receive_datagram() {
        std::optional<detail::event> item = co_await self_->datagrams.next();
        if (!item) {
            throw error(GODWIT_ERROR_CLOSED, "the connection is over");
        }
        co_return bytes(std::move(*item));
    }

    /** Moves to another local address, `127.0.0.2:0`; path_change() tells what comes of it. */
    void migrate(const std::string &local_address) {
        detail::call(godwit_connection_migrate, self_.get(), local_address.c_str());
    }

    /** The next that happens to a path. Throws when the connection is over. */
    task<godwit_path> path_change() {
        const std::optional<detail::event> item = co_await self_->paths.next();
        if (!item) {
            throw error(GODWIT_ERROR_CLOSED, "the connection is over");
        }
        godwit_path made = detail::sized<godwit_path>();
        const godwit_path &from = *(*item)->path;
        std::memcpy(&made, &from, from.size < sizeof made ? from.size : sizeof made);
        made.size = sizeof made;
        co_return made;
    }

    godwit_connection_info information() const {
        godwit_connection_info made = detail::sized<godwit_connection_info>();
        detail::call(godwit_connection_information, self_.get(), &made);
        return made;
    }

    godwit_statistics statistics() const {
        godwit_statistics made = detail::sized<godwit_statistics>();
        detail::call(godwit_connection_statistics, self_.get(), &made);
        return made;
    }

    /** Closes it with a code and a reason for the peer, and waits for the end. */
    task<void> shutdown(std::uint64_t code, std::string reason = {}) {
        detail::call(godwit_connection_shutdown, self_.get(), code, detail::text_or_null(reason));
        co_await self_->closed.next();
    }

    /** Waits for the end, and returns why it came. */
    task<error> closed() {
        const std::shared_ptr<detail::connection_receiver> receiver = self_.shared();
        co_await receiver->closed.next();
        co_return *receiver->why;
    }

    /** The handle for functions of godwit.h. It stays this object's. */
    godwit_connection native() const noexcept { return self_.get(); }

private:
    friend class endpoint;
    explicit connection(detail::object<detail::connection_receiver> self) : self_(std::move(self)) {}

    detail::object<detail::connection_receiver> self_;
};

/** A UDP socket, and the connections on it. */
class endpoint {
public:
    explicit endpoint(loop &on, const endpoint_options &options = {}) : self_(make(on.core(), options)) {}

    /** The address that it is bound to. */
    std::string address() const {
        godwit_address made = detail::sized<godwit_address>();
        detail::call(godwit_endpoint_address, self_.get(), &made);
        return made.text;
    }

    /** Begins a connection, on which streams may be opened at once. */
    connection begin(const connect_options &options) {
        const std::vector<const char *> alpn = detail::pointers(options.alpn);
        godwit_connect_options raw = detail::sized<godwit_connect_options>();
        raw.flags = options.flags;
        raw.address = options.address.c_str();
        raw.server_name = detail::text_or_null(options.server_name);
        raw.alpn = alpn.data();
        raw.alpn_count = alpn.size();
        raw.roots_file = detail::text_or_null(options.roots_file);
        raw.transport = &options.transport;
        godwit_connection made = 0;
        detail::call(godwit_endpoint_connect, self_.get(), &std::as_const(raw), std::uint64_t{0}, &made);
        return connection(detail::object<detail::connection_receiver>(
            self_.loop(), made, std::make_shared<detail::connection_receiver>(*self_.loop()), self_.get()));
    }

    /** Connects, and waits for the handshake. */
    task<connection> connect(connect_options options) {
        connection begun = begin(options);
        co_await begun.self_->connected.next();
        co_return begun;
    }

    /** The next connection that comes in; nothing once the endpoint was shut down. */
    task<std::optional<connection>> accept() {
        const std::shared_ptr<detail::endpoint_receiver> receiver = self_.shared();
        std::optional<detail::event> item = co_await receiver->connections.next();
        if (!item) {
            co_return std::nullopt;
        }
        co_return connection(receiver->connections.take(*item));
    }

    /** Moves all connections to another local address. */
    void rebind(const std::string &address) {
        detail::call(godwit_endpoint_rebind, self_.get(), address.c_str());
    }

    /** Takes no more connections, closes those that there are, and waits until the peers know. */
    task<void> shutdown(std::uint64_t code, std::string reason = {}) {
        detail::call(godwit_endpoint_shutdown, self_.get(), code, detail::text_or_null(reason));
        co_await self_->stopped.next();
    }

    /** The handle for functions of godwit.h. It stays this object's. */
    godwit_endpoint native() const noexcept { return self_.get(); }

private:
    using object = detail::object<detail::endpoint_receiver>;

    static object make(const std::shared_ptr<detail::core> &core, const endpoint_options &options) {
        const std::vector<const char *> alpn = detail::pointers(options.alpn);
        godwit_endpoint_options raw = detail::sized<godwit_endpoint_options>();
        raw.flags = options.flags;
        raw.runtime = options.runtime;
        raw.address = detail::text_or_null(options.address);
        raw.certificate_file = detail::text_or_null(options.certificate_file);
        raw.key_file = detail::text_or_null(options.key_file);
        raw.alpn = alpn.data();
        raw.alpn_count = alpn.size();
        raw.transport = &options.transport;
        raw.max_connections = options.max_connections;
        godwit_endpoint made = 0;
        detail::call(godwit_endpoint_create, core->queue(), &std::as_const(raw), std::uint64_t{0}, &made);
        return object(core, made, std::make_shared<detail::endpoint_receiver>(*core), 0);
    }

    object self_;
};

} // namespace godwit

#endif
