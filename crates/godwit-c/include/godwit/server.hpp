/**
 * @file
 * @brief godwit::server: HTTP/1.1, HTTP/2 and HTTP/3 on one port.
 */
#ifndef GODWIT_SERVER_HPP
#define GODWIT_SERVER_HPP

#include "exchange.hpp"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace godwit {

/** How a server is to be. What is zero or empty has its default, as godwit_server_options says. */
struct server_options {
    godwit_runtime runtime = 0;
    /** Where to listen, for TCP and UDP alike. */
    std::vector<std::string> addresses = {"[::]:443"};
    std::string certificate_file{};
    std::string key_file{};
    std::uint64_t max_connections = 0;
    std::uint64_t max_body = 0;
    std::uint64_t receive_limit = 0;
    std::uint64_t send_limit = 0;
};

namespace detail {

/** Takes the events of a server. */
class server_receiver final : public receiver {
public:
    explicit server_receiver(core &of) : requests(of), stopped(of.ready) {}

    void take(event &&item) override {
        if (item->kind == GODWIT_EVENT_REQUEST) {
            requests.put(std::move(item));
        } else if (item->kind == GODWIT_EVENT_SERVER_STOPPED) {
            requests.end(std::nullopt);
            stopped.put(std::move(item));
        }
    }
    void end(const error &reason) override {
        requests.end(reason);
        stopped.end(reason);
    }

    arrivals<exchange_receiver> requests;
    channel stopped;
};

} // namespace detail

/** A request that has come, to be answered once. Destroyed without an answer, it is answered with status 500; within one, it is
 * broken off. */
class incoming_request : public exchange {
public:
    std::string_view method() const { return head().method; }
    /** The path, with the query. */
    std::string_view path() const { return head().path; }
    /** The host, with a port if there was one; empty if the client named none. */
    std::string_view authority() const { return head().authority; }
    std::string_view client_address() const { return head().client_address; }
    /** GODWIT_HTTP_... */
    std::uint32_t protocol() const { return head().protocol; }
    /** Whether it came ahead of the handshake (0-RTT): somebody on the way may have sent it again. */
    bool is_early() const noexcept { return (head_->flags & GODWIT_EVENT_FLAG_EARLY) != 0; }
    const godwit::headers &headers() const noexcept { return headers_; }

    /** Answers with a body that is known as a whole. */
    void respond(std::uint32_t status, const godwit::headers &headers = {}, std::string_view body = {}) {
        begin(status, headers, body.empty() ? GODWIT_BODY_NONE : GODWIT_BODY_WHOLE, body);
    }

    /** Begins an answer whose body follows with send() and finish(). */
    void begin(std::uint32_t status, const godwit::headers &headers = {}) {
        begin(status, headers, GODWIT_BODY_STREAM, {});
    }

    /** Sends an informational response (102 to 199) ahead of the answer. */
    void inform(std::uint32_t status, const godwit::headers &headers = {}) {
        const std::vector<godwit_header> raw = headers.raw();
        detail::call(godwit_exchange_inform, self_.get(), status, raw.data(), std::uint64_t{raw.size()});
    }

    /** Waits until the transport has the whole answer. */
    task<void> finished() { co_await self_->finished.next(); }

private:
    friend class server;
    incoming_request(detail::object<detail::exchange_receiver> self, detail::event head)
        : exchange(std::move(self)), head_(std::move(head)), headers_(godwit::headers::of(*head_)) {}

    const godwit_request_head &head() const {
        self_.shared();
        return *head_->request;
    }

    void begin(std::uint32_t status, const godwit::headers &headers, std::uint32_t body_mode,
               std::string_view body) {
        const std::vector<godwit_header> raw = headers.raw();
        godwit_response_options options = detail::sized<godwit_response_options>();
        options.status = status;
        options.body_mode = body_mode;
        options.headers = raw.data();
        options.header_count = raw.size();
        options.body = body.data();
        options.body_length = body.size();
        detail::call(godwit_exchange_respond, self_.get(), &std::as_const(options));
    }

    detail::event head_;
    godwit::headers headers_;
};

/** Takes requests. */
class server {
public:
    server(loop &on, const server_options &options) : self_(make(on.core(), options)) {}

    /** The next request; nothing once the server has stopped. */
    task<std::optional<incoming_request>> accept() {
        const std::shared_ptr<detail::server_receiver> receiver = self_.shared();
        std::optional<detail::event> head = co_await receiver->requests.next();
        if (!head) {
            co_return std::nullopt;
        }
        detail::object<detail::exchange_receiver> self = receiver->requests.take(*head);
        co_return incoming_request(std::move(self), std::move(*head));
    }

    /** Where it listens. */
    std::vector<std::string> addresses() const {
        std::vector<godwit_address> raw(64);
        raw[0].size = sizeof(godwit_address);
        std::uint64_t count = 0;
        detail::call(godwit_server_addresses, self_.get(), raw.data(), std::uint64_t{raw.size()}, &count);
        std::vector<std::string> made;
        for (std::size_t index = 0; index < count && index < raw.size(); ++index) {
            made.emplace_back(raw[index].text);
        }
        return made;
    }

    /** Takes no more connections, and lets requests under way end for so long at most. How many were cut off. */
    task<std::uint64_t> shutdown(std::chrono::milliseconds grace) {
        detail::call(godwit_server_shutdown, self_.get(), detail::milliseconds(grace));
        const std::optional<detail::event> stopped = co_await self_->stopped.next();
        co_return stopped ? (*stopped)->code : 0;
    }

    /** The handle for functions of godwit.h. It stays this object's. */
    godwit_server native() const noexcept { return self_.get(); }

private:
    using object = detail::object<detail::server_receiver>;

    static object make(const std::shared_ptr<detail::core> &core, const server_options &options) {
        std::vector<const char *> addresses;
        for (const std::string &address : options.addresses) {
            addresses.push_back(address.c_str());
        }
        godwit_server_options raw = detail::sized<godwit_server_options>();
        raw.runtime = options.runtime;
        raw.addresses = addresses.data();
        raw.address_count = addresses.size();
        raw.certificate_file = detail::text_or_null(options.certificate_file);
        raw.key_file = detail::text_or_null(options.key_file);
        raw.max_connections = options.max_connections;
        raw.max_body = options.max_body;
        raw.receive_limit = options.receive_limit;
        raw.send_limit = options.send_limit;
        godwit_server made = 0;
        detail::call(godwit_server_create, core->queue(), &std::as_const(raw), std::uint64_t{0}, &made);
        return object(core, made, std::make_shared<detail::server_receiver>(*core), 0);
    }

    object self_;
};

} // namespace godwit

#endif
