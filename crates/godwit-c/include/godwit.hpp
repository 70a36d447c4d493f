/**
 * @file godwit.hpp
 * @brief Godwit for C++20: HTTP over HTTP/3, HTTP/2 and HTTP/1.1, and QUIC, with coroutines.
 *
 * Everything is in the namespace `godwit` and in headers alone; link with the library of godwit.h.
 *
 *     godwit::loop loop;
 *     godwit::client client(loop);
 *     loop.run([&]() -> godwit::task<> {
 *         godwit::response response = co_await client.get("https://example.com/");
 *         std::cout << response.status() << ' ' << co_await response.text() << '\n';
 *     }());
 *
 * **Loop.** A godwit::loop takes events and resumes the coroutines that wait for them, on the thread that calls
 * godwit::loop::run() or godwit::loop::poll(). All objects of a loop belong to that thread. A loop of the application's own
 * watches godwit::loop::descriptor() and calls poll() when that is readable.
 *
 * **Ownership.** Objects close what they stand for when they are destroyed, and can be moved. A coroutine that waits on an
 * object has to end, or be destroyed, before that object is: keep both in one coroutine, or the object outside of it.
 *
 * **Tasks** begin when they are awaited (or given to run(), spawn(), when_all()), and are broken off when they are
 * destroyed. What is given to a function by reference has to live until its task is done.
 *
 * **Errors** are exceptions of type godwit::error, with what to do in their text.
 */
#ifndef GODWIT_HPP
#define GODWIT_HPP

#include "godwit/client.hpp"
#include "godwit/error.hpp"
#include "godwit/loop.hpp"
#include "godwit/quic.hpp"
#include "godwit/server.hpp"
#include "godwit/task.hpp"

#endif
