// Gets a URL over the best protocol there is, and prints it piece by piece.
//
//     hello_client URL [ROOTS.pem]
#include <godwit.hpp>

#include <iostream>

godwit::task<> get(godwit::client &client, std::string url) {
    godwit::response response = co_await client.get(url);
    std::cerr << "status " << response.status() << " over HTTP/" << response.protocol() / 10 << " because "
              << response.reason() << '\n';
    while (std::optional<godwit::bytes> piece = co_await response.read()) {
        std::cout << piece->text();
    }
    co_await client.shutdown();
}

int main(int count, char **arguments) {
    if (count < 2) {
        std::cerr << "usage: hello_client URL [ROOTS.pem]\n";
        return 2;
    }
    try {
        godwit::loop loop;
        godwit::client_options options;
        options.roots_file = count > 2 ? arguments[2] : "";
        godwit::client client(loop, options);
        loop.run(get(client, arguments[1]));
    } catch (const godwit::error &error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
