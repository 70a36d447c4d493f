/**
 * @file
 * @brief godwit::client: requests over whichever of HTTP/3, HTTP/2 and HTTP/1.1 works best.
 */
#ifndef GODWIT_CLIENT_HPP
#define GODWIT_CLIENT_HPP

#include "exchange.hpp"

#include <chrono>
#include <string>
#include <utility>

namespace godwit {

/** How a client is to be. What is zero or empty has its default, as godwit_client_options says. */
struct client_options {
    /** GODWIT_CLIENT_... */
    std::uint32_t flags = 0;
    godwit_runtime runtime = 0;
    std::string roots_file{};
    std::string proxy{};
    std::string memory_file{};
    std::string session_file{};
    /** GODWIT_VERSIONS_... */
    std::uint32_t versions = GODWIT_VERSIONS_DEFAULT;
    /** GODWIT_FAMILY_... */
    std::uint32_t family = GODWIT_FAMILY_ANY;
    std::chrono::milliseconds connect_timeout{0};
    std::chrono::milliseconds timeout{0};
    std::chrono::milliseconds idle_timeout{0};
    std::uint32_t max_redirects = 0;
    std::uint64_t receive_limit = 0;
    std::uint64_t send_limit = 0;
};

/** A request. */
struct request {
    std::string method = "GET";
    std::string url{};
    godwit::headers headers{};
    /** The body, if it is known as a whole. */
    std::string body{};
    /** The body is not this, but comes with upload::send(). */
    bool streams_body = false;
    /** GODWIT_VERSIONS_... */
    std::uint32_t versions = GODWIT_VERSIONS_DEFAULT;
    /** The most time for the whole exchange; 0 for that of the client. */
    std::chrono::milliseconds timeout{0};
};

/** The head of a response has come; its body is to be read. */
class response : public exchange {
public:
    /** The status, 200 to 999. */
    std::uint32_t status() const { return head().status; }
    /** GODWIT_HTTP_... */
    std::uint32_t protocol() const { return head().protocol; }
    /** Where it comes from: another URL than that of the request after redirects. */
    std::string_view url() const { return head().url; }
    /** Why it was this protocol, in words. */
    std::string_view reason() const { return head().reason; }
    /** The address of the server, or of the proxy before it. */
    std::string_view remote_address() const { return head().remote_address; }
    /** The length of the body, if the server has said it. */
    std::optional<std::uint64_t> content_length() const {
        const std::uint64_t length = head().content_length;
        return length == GODWIT_UNKNOWN_LENGTH ? std::nullopt : std::optional(length);
    }
    const godwit::headers &headers() const noexcept { return headers_; }

    /** What is known of the QUIC connection that it came on; throws if that is none. */
    godwit_statistics statistics() const {
        godwit_statistics made = detail::sized<godwit_statistics>();
        detail::call(godwit_exchange_statistics, native(), &made);
        return made;
    }

private:
    friend class upload;
    response(detail::object<detail::exchange_receiver> self, detail::event head)
        : exchange(std::move(self)), head_(std::move(head)), headers_(godwit::headers::of(*head_)) {}

    const godwit_response &head() const {
        self_.shared();
        return *head_->response;
    }

    detail::event head_;
    godwit::headers headers_;
};

/** A request that was begun: its body may be sent, and its response awaited. */
class upload : public exchange {
public:
    /** Waits for the response. What is left of the request's body can be sent on that. */
    task<godwit::response> response() && {
        const std::shared_ptr<detail::exchange_receiver> receiver = self_.shared();
        std::optional<detail::event> head = co_await receiver->head.next();
        if (!head) {
            throw error(GODWIT_ERROR_STATE, "there is no response");
        }
        co_return godwit::response(std::move(self_), std::move(*head));
    }

private:
    friend class client;
    using exchange::exchange;
};

/** Sends requests. */
class client {
public:
    explicit client(loop &on, const client_options &options = {}) : self_(make(on.core(), options)) {}

    /** Begins a request. */
    upload begin(const request &what) {
        const std::vector<godwit_header> headers = what.headers.raw();
        godwit_request raw = detail::sized<godwit_request>();
        raw.method = what.method.c_str();
        raw.url = what.url.c_str();
        raw.headers = headers.data();
        raw.header_count = headers.size();
        raw.body_mode = what.streams_body ? GODWIT_BODY_STREAM
                        : what.body.empty() ? GODWIT_BODY_NONE
                                            : GODWIT_BODY_WHOLE;
        raw.versions = what.versions;
        raw.body = what.body.data();
        raw.body_length = what.streams_body ? 0 : what.body.size();
        raw.timeout_ms = detail::milliseconds(what.timeout);
        godwit_exchange made = 0;
        detail::call(godwit_client_request, self_.get(), &std::as_const(raw), std::uint64_t{0}, &made);
        auto takes = std::make_shared<detail::exchange_receiver>(*self_.loop());
        takes->is_of_client = true;
        return upload(detail::object<detail::exchange_receiver>(self_.loop(), made, takes, self_.get()));
    }

    /** Sends a request and waits for the head of its response. */
    task<godwit::response> send(request what) {
        upload begun = begin(what);
        co_return co_await std::move(begun).response();
    }

    /** Gets what is at a URL. */
    task<godwit::response> get(std::string url) {
        request what;
        what.url = std::move(url);
        return send(std::move(what));
    }

    /** Sends a body to a URL. */
    task<godwit::response> post(std::string url, std::string body, godwit::headers headers = {}) {
        request what;
        what.method = "POST";
        what.url = std::move(url);
        what.headers = std::move(headers);
        what.body = std::move(body);
        return send(std::move(what));
    }

    /** Lets requests under way end, closes the connections, and writes the files. */
    task<void> shutdown() {
        detail::call(godwit_client_shutdown, self_.get());
        co_await self_->stopped.next();
    }

    /** The handle for functions of godwit.h. It stays this object's. */
    godwit_client native() const noexcept { return self_.get(); }

private:
    using object = detail::object<detail::stopped_receiver>;

    static object make(const std::shared_ptr<detail::core> &core, const client_options &options) {
        godwit_client_options raw = detail::sized<godwit_client_options>();
        raw.flags = options.flags;
        raw.runtime = options.runtime;
        raw.roots_file = detail::text_or_null(options.roots_file);
        raw.proxy = detail::text_or_null(options.proxy);
        raw.memory_file = detail::text_or_null(options.memory_file);
        raw.session_file = detail::text_or_null(options.session_file);
        raw.versions = options.versions;
        raw.family = options.family;
        raw.connect_timeout_ms = detail::milliseconds(options.connect_timeout);
        raw.timeout_ms = detail::milliseconds(options.timeout);
        raw.idle_timeout_ms = detail::milliseconds(options.idle_timeout);
        raw.max_redirects = options.max_redirects;
        raw.receive_limit = options.receive_limit;
        raw.send_limit = options.send_limit;
        godwit_client made = 0;
        detail::call(godwit_client_create, core->queue(), &std::as_const(raw), std::uint64_t{0}, &made);
        return object(core, made, std::make_shared<detail::stopped_receiver>(*core), 0);
    }

    object self_;
};

} // namespace godwit

#endif
