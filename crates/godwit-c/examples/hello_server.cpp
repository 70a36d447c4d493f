// Answers every request with what came: over HTTP/1.1, HTTP/2 and HTTP/3 on one port.
//
//     hello_server ADDRESS:PORT CERTIFICATE.pem KEY.pem
#include <godwit.hpp>

#include <atomic>
#include <csignal>
#include <iostream>
#include <thread>

namespace {

godwit::task<> answer(godwit::incoming_request request) {
    try {
        const std::string hello = "hello, " + std::string(request.method()) + ' ' + std::string(request.path()) + '\n';
        godwit::headers headers;
        headers.add("content-type", "text/plain");
        request.begin(200, headers);
        co_await request.send(hello);
        // What comes goes back as it comes.
        while (std::optional<godwit::bytes> piece = co_await request.read()) {
            co_await request.send(piece->span());
        }
        co_await request.finish();
        co_await request.finished();
    } catch (const godwit::error &error) {
        std::cerr << "a request has failed: " << error.what() << '\n';
    }
}

godwit::task<> serve(godwit::loop &loop, godwit::server &server) {
    while (std::optional<godwit::incoming_request> request = co_await server.accept()) {
        loop.spawn(answer(std::move(*request)));
    }
}

} // namespace

int main(int count, char **arguments) {
    if (count < 4) {
        std::cerr << "usage: hello_server ADDRESS:PORT CERTIFICATE.pem KEY.pem\n";
        return 2;
    }
    // Blocked here, and with that in all threads that are started from now on, it waits for the one that asks for it.
    sigset_t asked;
    sigemptyset(&asked);
    sigaddset(&asked, SIGTERM);
    sigaddset(&asked, SIGINT);
    pthread_sigmask(SIG_BLOCK, &asked, nullptr);
    try {
        godwit::loop loop;
        godwit::server_options options;
        options.addresses.assign(1, arguments[1]);
        options.certificate_file = arguments[2];
        options.key_file = arguments[3];
        godwit::server server(loop, options);
        std::cout << "listening " << server.addresses().front() << std::endl;

        std::atomic<bool> is_over = false;
        std::thread([&] {
            int signal = 0;
            sigwait(&asked, &signal);
            is_over = true;
            loop.wake();
        }).detach();
        loop.spawn(serve(loop, server));
        while (!is_over) {
            loop.poll_for(std::chrono::hours(1));
        }
        loop.run(server.shutdown(std::chrono::seconds(5)));
        std::cout << "served\n";
    } catch (const godwit::error &error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
