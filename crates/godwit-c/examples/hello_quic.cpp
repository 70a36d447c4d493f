// QUIC in both roles in one process: many streams, datagrams, a change of address.
//
//     hello_quic CERTIFICATE.pem KEY.pem ROOTS.pem
#include <godwit.hpp>

#include <iostream>

namespace {

/** Sends back what comes on a stream. */
godwit::task<> echo(godwit::stream stream) {
    try {
        while (std::optional<godwit::bytes> piece = co_await stream.read()) {
            co_await stream.send(piece->span());
        }
        co_await stream.finish();
        co_await stream.finished();
    } catch (const godwit::error &) {
        // The client has closed the connection as soon as it had everything.
    }
}

godwit::task<> serve(godwit::loop &loop, godwit::endpoint &endpoint) {
    std::optional<godwit::connection> connection = co_await endpoint.accept();
    try {
        for (;;) {
            loop.spawn(echo(co_await connection->accept_stream()));
        }
    } catch (const godwit::error &) {
        // The client has gone.
    }
}

godwit::task<std::string> ask(godwit::connection &connection, std::string question) {
    godwit::stream stream = connection.open();
    co_await stream.send(question);
    co_await stream.finish();
    co_return co_await stream.read_to_end();
}

godwit::task<> talk(godwit::endpoint &client, std::string address, std::string roots) {
    godwit::connect_options options;
    options.address = address;
    options.server_name = "localhost";
    options.alpn.emplace_back("hello");
    options.roots_file = roots;
    options.flags = GODWIT_CONNECT_ONLY_ROOTS_FILE;
    godwit::connection connection = co_await client.connect(options);

    std::vector<godwit::task<std::string>> questions;
    for (int number = 0; number < 100; ++number) {
        questions.push_back(ask(connection, "question " + std::to_string(number)));
    }
    const std::vector<std::string> answers = co_await godwit::when_all(std::move(questions));

    connection.migrate("127.0.0.2:0");
    std::uint32_t state = GODWIT_PATH_PROBING;
    while (state != GODWIT_PATH_ACTIVE) {
        state = (co_await connection.path_change()).state;
    }
    const std::string last = co_await ask(connection, "from another address");

    std::cout << answers.size() << " answers, the last one to \"" << last << "\", "
              << connection.statistics().packets_sent << " packets\n";
    co_await connection.shutdown(0, "done");
}

} // namespace

int main(int count, char **arguments) {
    if (count < 4) {
        std::cerr << "usage: hello_quic CERTIFICATE.pem KEY.pem ROOTS.pem\n";
        return 2;
    }
    try {
        godwit::loop loop;
        godwit::endpoint_options options;
        options.address = "127.0.0.1:0";
        options.certificate_file = arguments[1];
        options.key_file = arguments[2];
        options.alpn.emplace_back("hello");
        godwit::endpoint server(loop, options);
        // At every address of this machine, so that connections can move.
        godwit::endpoint client(loop);
        loop.spawn(serve(loop, server));
        loop.run(talk(client, server.address(), arguments[3]));
    } catch (const godwit::error &error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
