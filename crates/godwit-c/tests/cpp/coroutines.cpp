// What programs do with godwit.hpp, and what they should not: large bodies in both directions, trailers, many at once, what is
// broken off, dropped or closed too early, a loop of the program's own. It ends with 0 if all of it went as it should.
//
//     coroutines CERTIFICATE.pem KEY.pem
#include <godwit.hpp>

#include <poll.h>

#include <iostream>
#include <thread>

namespace {

int checks = 0;

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        ++checks;                                                                                                      \
        if (!(condition)) {                                                                                            \
            throw std::runtime_error(std::to_string(__LINE__) + ": " #condition);                                      \
        }                                                                                                              \
    } while (false)

constexpr std::size_t large = 20'000'000;

struct ends {
    godwit::loop loop;
    godwit::server server;
    godwit::client client;
    std::string base;

    ends(const std::string &certificate, const std::string &key, std::uint32_t versions)
        : server(loop, server_of(certificate, key)), client(loop, client_of(certificate, versions)),
          base("https://localhost" + port(server.addresses().front())) {
        loop.spawn(serve());
    }

    static std::string port(const std::string &address) { return address.substr(address.rfind(':')); }

    static godwit::server_options server_of(const std::string &certificate, const std::string &key) {
        godwit::server_options options;
        options.addresses.assign(1, "127.0.0.1:0");
        options.certificate_file = certificate;
        options.key_file = key;
        return options;
    }

    static godwit::client_options client_of(const std::string &roots, std::uint32_t versions) {
        godwit::client_options options;
        options.roots_file = roots;
        options.flags = GODWIT_CLIENT_ONLY_ROOTS_FILE;
        options.versions = versions;
        return options;
    }

    godwit::task<> serve() {
        while (std::optional<godwit::incoming_request> request = co_await server.accept()) {
            loop.spawn(answer(std::move(*request)));
        }
    }

    static godwit::task<> answer(godwit::incoming_request request) {
        try {
            if (request.path() == "/silence") {
                co_await request.finished();
            } else if (request.path() == "/refused") {
                // It is dropped without an answer.
            } else if (request.path() == "/echo") {
                godwit::headers headers;
                headers.add("x-method", std::string(request.method()));
                request.begin(201, headers);
                while (std::optional<godwit::bytes> piece = co_await request.read()) {
                    co_await request.send(piece->span());
                }
                godwit::headers trailers;
                trailers.add("x-sum", std::to_string(request.trailers().size()));
                request.finish(trailers);
                co_await request.finished();
            } else {
                const std::string path(request.path());
                request.respond(200, {}, path);
                co_await request.finished();
            }
        } catch (const godwit::error &) {
            // The client has broken off.
        }
    }
};

godwit::task<> large_bodies(ends &it) {
    godwit::request request;
    request.method = "POST";
    request.url = it.base + "/echo";
    request.streams_body = true;
    godwit::upload begun = it.client.begin(request);
    // Both at once: neither side keeps all of it.
    const std::string first(1000, 'x');
    co_await begun.send(first);
    godwit::response response = co_await std::move(begun).response();
    CHECK(response.status() == 201);
    CHECK(response.headers().find("X-Method") == "POST");
    std::size_t received = 0;
    std::size_t sent = first.size();
    const std::string piece(100'000, 'x');
    while (sent < large) {
        co_await response.send(piece);
        sent += piece.size();
        while (received + 2 * piece.size() < sent) {
            std::optional<godwit::bytes> some = co_await response.read();
            CHECK(some && some->text().find_first_not_of('x') == std::string_view::npos);
            received += some->size();
        }
    }
    co_await response.finish();
    while (std::optional<godwit::bytes> some = co_await response.read()) {
        received += some->size();
    }
    CHECK(received == sent);
    // HTTP/1.1 has none for who has not asked for them (RFC 9110 section 6.5.1).
    CHECK(response.protocol() == GODWIT_HTTP_1_1 || response.trailers().find("x-sum") == "0");
}

godwit::task<std::string> get(godwit::client &client, std::string url) {
    godwit::response response = co_await client.get(url);
    co_return co_await response.text();
}

godwit::task<> many_at_once(ends &it) {
    std::vector<godwit::task<std::string>> tasks;
    for (int number = 0; number < 200; ++number) {
        tasks.push_back(get(it.client, it.base + "/" + std::to_string(number)));
    }
    const std::vector<std::string> bodies = co_await godwit::when_all(std::move(tasks));
    for (std::size_t number = 0; number < bodies.size(); ++number) {
        CHECK(bodies[number] == "/" + std::to_string(number));
    }
}

godwit::task<> failures(ends &it) {
    godwit_status status = GODWIT_OK;
    try {
        (void)co_await it.client.get("not a url");
    } catch (const godwit::error &error) {
        status = error.status();
        CHECK(std::string(error.what()).size() > 10);
    }
    CHECK(status == GODWIT_ERROR_REQUEST || status == GODWIT_ERROR_ARGUMENT);

    godwit::response refused = co_await it.client.get(it.base + "/refused");
    CHECK(refused.status() == 500);

    status = GODWIT_OK;
    try {
        godwit::request request;
        request.url = it.base + "/silence";
        request.timeout = std::chrono::milliseconds(50);
        (void)co_await it.client.send(request);
    } catch (const godwit::error &error) {
        status = error.status();
    }
    CHECK(status == GODWIT_ERROR_TIMEOUT);

    status = GODWIT_OK;
    godwit::response response = co_await it.client.get(it.base + "/longer-than-three");
    try {
        (void)co_await response.text(3);
    } catch (const godwit::error &error) {
        status = error.status();
    }
    CHECK(status == GODWIT_ERROR_LIMIT);
}

/** Tasks that wait are destroyed, and objects with tasks that have waited go on. */
godwit::task<> dropped(ends &it) {
    {
        godwit::task<std::string> begun = get(it.client, it.base + "/silence");
        begun.start();
    }
    {
        godwit::request request;
        request.url = it.base + "/silence";
        godwit::upload begun = it.client.begin(request);
        begun.cancel();
        godwit_status status = GODWIT_OK;
        try {
            (void)co_await std::move(begun).response();
        } catch (const godwit::error &error) {
            status = error.status();
        }
        CHECK(status == GODWIT_ERROR_CANCELLED);
    }
    CHECK(co_await get(it.client, it.base + "/still-there") == "/still-there");
}

godwit::task<> whole(ends &it, std::uint32_t protocol) {
    godwit::response response = co_await it.client.get(it.base + "/protocol");
    CHECK(response.protocol() == protocol);
    CHECK(response.content_length() == 9U);
    CHECK(response.url() == it.base + "/protocol");
    if (protocol == GODWIT_HTTP_3) {
        CHECK(response.statistics().packets_received > 0);
    }
    CHECK(co_await response.text() == "/protocol");
    co_await large_bodies(it);
    co_await many_at_once(it);
    co_await failures(it);
    co_await dropped(it);
    co_await it.client.shutdown();
    (void)co_await it.server.shutdown(std::chrono::seconds(5));
}

godwit::task<> echo(godwit::stream stream) {
    try {
        while (std::optional<godwit::bytes> piece = co_await stream.read()) {
            co_await stream.send(piece->span());
        }
        co_await stream.finish();
        co_await stream.finished();
    } catch (const godwit::error &) {
        stream.reset(7);
    }
}

godwit::task<> serve_streams(godwit::loop &loop, godwit::connection connection) {
    try {
        for (;;) {
            godwit::stream stream = co_await connection.accept_stream();
            if (!stream.is_unidirectional()) {
                loop.spawn(echo(std::move(stream)));
            }
        }
    } catch (const godwit::error &) {
        // The client has closed the connection.
    }
}

godwit::task<> serve_connections(godwit::loop &loop, godwit::endpoint &endpoint) {
    while (std::optional<godwit::connection> connection = co_await endpoint.accept()) {
        loop.spawn(serve_streams(loop, std::move(*connection)));
    }
}

godwit::task<std::string> through(godwit::connection &connection, std::size_t length) {
    godwit::stream stream = connection.open();
    const std::string all(length, 'y');
    co_await stream.send(all);
    co_await stream.finish();
    std::string back = co_await stream.read_to_end(length);
    co_await stream.finished();
    CHECK(stream.id().has_value());
    co_return back;
}

godwit::task<> broken_off(godwit::loop &loop, godwit::connection &connection);

godwit::task<> quic(godwit::loop &loop, godwit::endpoint &server, godwit::endpoint &client, std::string roots) {
    godwit::connect_options options;
    options.address = server.address();
    options.server_name = "localhost";
    options.alpn.emplace_back("test");
    options.roots_file = roots;
    options.flags = GODWIT_CONNECT_ONLY_ROOTS_FILE;
    options.transport.idle_timeout_ms = 600'000;
    godwit::connection connection = co_await client.connect(options);
    CHECK(std::string(connection.information().alpn) == "test");

    std::vector<godwit::task<std::string>> tasks;
    for (std::size_t number = 0; number < 50; ++number) {
        tasks.push_back(through(connection, number * 5'000));
    }
    const std::vector<std::string> all = co_await godwit::when_all(std::move(tasks));
    for (std::size_t number = 0; number < all.size(); ++number) {
        CHECK(all[number].size() == number * 5'000);
    }

    co_await broken_off(loop, connection);

    godwit::stream stopped = connection.open();
    co_await stopped.send("and then no more");
    stopped.reset(3);
    godwit_status status = GODWIT_OK;
    try {
        (void)co_await stopped.read_to_end();
    } catch (const godwit::error &error) {
        status = error.status();
        CHECK(error.peer_code() == 7U);
    }
    CHECK(status == GODWIT_ERROR_RESET);

    options.alpn.assign(1, "something else");
    status = GODWIT_OK;
    try {
        (void)co_await client.connect(options);
    } catch (const godwit::error &error) {
        status = error.status();
    }
    CHECK(status != GODWIT_OK);

    // A stream outlives its connection, and says so.
    godwit::stream left = connection.open();
    co_await connection.shutdown(0, "done");
    CHECK((co_await connection.closed()).status() != GODWIT_OK);
    {
        godwit::connection gone = std::move(connection);
    }
    status = GODWIT_OK;
    try {
        co_await left.send("too late");
    } catch (const godwit::error &error) {
        status = error.status();
    }
    CHECK(status != GODWIT_OK);
    co_await server.shutdown(0);
}

template <class Action>
godwit_status status_of(Action action) {
    try {
        action();
    } catch (const godwit::error &error) {
        return error.status();
    }
    return GODWIT_OK;
}

godwit::task<int> at_once(int value) { co_return value; }

/** Tasks that never wait, far more than there is stack for. */
godwit::task<long> sum(int count) {
    long all = 0;
    for (int number = 0; number < count; ++number) {
        all += co_await at_once(1);
    }
    co_return all;
}

godwit::task<> read_all(godwit::response &from, godwit_status &status) {
    try {
        (void)co_await from.text();
    } catch (const godwit::error &error) {
        status = error.status();
    }
}

godwit::task<std::string> get_and_say(godwit::client &client, std::string url) {
    try {
        co_return co_await get(client, url);
    } catch (const godwit::error &error) {
        co_return error.name();
    }
}

godwit::task<std::string> throw_away(std::optional<godwit::client> &client) {
    client.reset();
    co_return "thrown away";
}

/** What is used when it is gone, moved away, taken before, or another thread's. */
void misuse(ends &it, const std::string &roots) {
    CHECK(it.loop.run(sum(200'000)) == 200'000);

    godwit::task<int> moved = at_once(1);
    godwit::task<int> task = std::move(moved);
    CHECK(status_of([&] { (void)it.loop.run(std::move(moved)); }) == GODWIT_ERROR_STATE);
    task.start();
    CHECK(status_of([&] { task.start(); }) == GODWIT_ERROR_STATE);
    CHECK(task.take() == 1);
    CHECK(status_of([&] { (void)task.take(); }) == GODWIT_ERROR_STATE);

    godwit::response first = it.loop.run(it.client.get(it.base + "/moved"));
    const godwit::response second = std::move(first);
    CHECK(status_of([&] { (void)first.status(); }) == GODWIT_ERROR_HANDLE);
    CHECK(status_of([&] { (void)it.loop.run(first.read()); }) == GODWIT_ERROR_HANDLE);
    CHECK(second.status() == 200);

    godwit_status elsewhere = GODWIT_OK;
    std::thread([&] { elsewhere = status_of([&] { (void)it.client.begin({}); }); }).join();
    CHECK(elsewhere == GODWIT_ERROR_STATE || elsewhere == GODWIT_ERROR_REQUEST || elsewhere == GODWIT_ERROR_ARGUMENT);
    std::thread([&] { elsewhere = status_of([&] { it.loop.poll(); }); }).join();
    CHECK(elsewhere == GODWIT_ERROR_STATE);

    // A client goes, and then the response that somebody reads.
    godwit_status read = GODWIT_OK;
    {
        std::optional<godwit::client> client(std::in_place, it.loop, ends::client_of(roots, GODWIT_VERSIONS_HTTP_2));
        godwit::request request;
        request.method = "POST";
        request.url = it.base + "/echo";
        request.streams_body = true;
        std::optional<godwit::response> response(it.loop.run(client->begin(request).response()));
        it.loop.spawn(read_all(*response, read));
        client.reset();
        response.reset();
    }
    it.loop.poll();
    CHECK(read == GODWIT_ERROR_CLOSED);

    // The last that a loop has to do is for somebody who waits for nothing more.
    std::optional<godwit::client> client(std::in_place, it.loop, ends::client_of(roots, GODWIT_VERSIONS_HTTP_2));
    std::vector<godwit::task<std::string>> tasks;
    tasks.push_back(get_and_say(*client, it.base + "/silence"));
    tasks.push_back(throw_away(client));
    const std::vector<std::string> said = it.loop.run(godwit::when_all(std::move(tasks)));
    CHECK(said[0] == "GODWIT_ERROR_CLOSED" && said[1] == "thrown away");
}

godwit::task<> send_for_ever(godwit::stream &stream, godwit_status &status) {
    const std::string piece(100'000, 'z');
    try {
        for (;;) {
            co_await stream.send(piece);
        }
    } catch (const godwit::error &error) {
        status = error.status();
    }
}

godwit::task<> read_once(godwit::stream &stream, godwit_status &status) {
    try {
        (void)co_await stream.read();
    } catch (const godwit::error &error) {
        status = error.status();
    }
}

/** Who waits to send, or to receive, hears that this side has broken off. */
godwit::task<> broken_off(godwit::loop &loop, godwit::connection &connection) {
    godwit_status sent = GODWIT_OK;
    godwit_status received = GODWIT_OK;
    godwit::stream one = connection.open(true);
    loop.spawn(send_for_ever(one, sent));
    godwit::stream other = connection.open();
    loop.spawn(read_once(other, received));
    one.reset(5);
    other.stop(5);
    // Both are resumed by then.
    (void)co_await through(connection, 1);
    CHECK(sent == GODWIT_ERROR_CANCELLED || sent == GODWIT_ERROR_STATE);
    CHECK(received == GODWIT_ERROR_CANCELLED);
}

/** The loop of a program that has other things to watch. */
void own_loop(ends &it) {
    bool is_over = false;
    it.loop.spawn([](ends &with, bool &over) -> godwit::task<> {
        CHECK(co_await get(with.client, with.base + "/own") == "/own");
        over = true;
    }(it, is_over));
    while (!is_over) {
        pollfd watched{it.loop.descriptor(), POLLIN, 0};
        CHECK(poll(&watched, 1, 60'000) == 1);
        it.loop.poll();
    }
    // What a task throws beside comes out of the loop.
    it.loop.spawn([]() -> godwit::task<> {
        throw std::runtime_error("thrown");
        co_return;
    }());
    std::string thrown;
    try {
        it.loop.poll();
    } catch (const std::runtime_error &error) {
        thrown = error.what();
    }
    CHECK(thrown == "thrown");
}

} // namespace

int main(int, char **arguments) {
    const std::string certificate = arguments[1];
    const std::string key = arguments[2];
    try {
        for (const auto &[versions, protocol] : {std::pair(GODWIT_VERSIONS_HTTP_1, GODWIT_HTTP_1_1),
                                                 std::pair(GODWIT_VERSIONS_HTTP_2, GODWIT_HTTP_2),
                                                 std::pair(GODWIT_VERSIONS_HTTP_3, GODWIT_HTTP_3)}) {
            ends it(certificate, key, static_cast<std::uint32_t>(versions));
            own_loop(it);
            misuse(it, certificate);
            it.loop.run(whole(it, static_cast<std::uint32_t>(protocol)));
        }
        godwit::loop loop;
        godwit::endpoint_options options;
        options.address = "127.0.0.1:0";
        options.certificate_file = certificate;
        options.key_file = key;
        options.alpn.emplace_back("test");
        godwit::endpoint server(loop, options);
        godwit::endpoint client(loop);
        loop.spawn(serve_connections(loop, server));
        loop.run(quic(loop, server, client, certificate));
        // What is left is thrown away with the loop.
        ends unused(certificate, key, GODWIT_VERSIONS_TCP);
        unused.loop.spawn([](ends &with) -> godwit::task<> { (void)co_await get(with.client, with.base + "/silence"); }(unused));
    } catch (const std::exception &error) {
        std::cerr << "failed: " << error.what() << '\n';
        return 1;
    }
    std::cout << checks << " checks\n";
}
