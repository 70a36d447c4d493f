#include <godwit.hpp>
#include <iostream>

int main() {
    std::cout << godwit::version() << '\n';
}
