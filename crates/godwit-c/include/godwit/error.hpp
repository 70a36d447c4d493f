/**
 * @file
 * @brief godwit::error, and what turns statuses of C functions into it.
 */
#ifndef GODWIT_ERROR_HPP
#define GODWIT_ERROR_HPP

#include <godwit.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace godwit {

/** The version of the library: `"0.1.0"`. */
inline const char *version() { return godwit_version(); }

/** Why something failed. what() says what was expected, what came, and what to do. */
class error : public std::runtime_error {
public:
    error(godwit_status status, const std::string &message) : std::runtime_error(message), status_(status) {}

    explicit error(const godwit_error &from)
        : std::runtime_error(from.message_length != 0 ? std::string(from.message, from.message_length)
                                                      : std::string(godwit_status_name(from.status))),
          status_(from.status) {
        if ((from.flags & (GODWIT_ERROR_FLAG_APPLICATION_CODE | GODWIT_ERROR_FLAG_TRANSPORT_CODE)) != 0) {
            peer_code_ = from.peer_code;
        }
        if ((from.flags & GODWIT_ERROR_FLAG_SYSTEM_CODE) != 0) {
            system_code_ = from.system_code;
        }
    }

    /** GODWIT_ERROR_... */
    godwit_status status() const noexcept { return status_; }
    /** `"GODWIT_ERROR_TIMEOUT"`. */
    const char *name() const noexcept { return godwit_status_name(status_); }
    /** The code that came from the other side, if one did. */
    std::optional<std::uint64_t> peer_code() const noexcept { return peer_code_; }
    /** `errno`, if the operating system refused. */
    std::optional<int> system_code() const noexcept { return system_code_; }

private:
    godwit_status status_;
    std::optional<std::uint64_t> peer_code_;
    std::optional<int> system_code_;
};

namespace detail {

inline godwit_error empty_error() {
    godwit_error problem{};
    problem.size = sizeof problem;
    return problem;
}

/** Calls a function whose last parameter is the error, and throws what it says. */
template <class Function, class... Arguments>
void call(Function function, Arguments... arguments) {
    godwit_error problem = empty_error();
    if (const godwit_status status = function(arguments..., &problem); status != GODWIT_OK) {
        problem.status = status;
        throw error(problem);
    }
}

/** A struct of the C interface with its size set and everything else zero. */
template <class Struct>
Struct sized() {
    Struct made{};
    made.size = sizeof made;
    return made;
}

/** A time as the C interface takes it; nothing for one that is negative. */
inline std::uint64_t milliseconds(std::chrono::milliseconds time) {
    return time.count() < 0 ? 0 : static_cast<std::uint64_t>(time.count());
}

/** A text for C: no text for an empty one. */
inline const char *text_or_null(const std::string &text) { return text.empty() ? nullptr : text.c_str(); }

/** A handle that is closed at its end. */
class handle {
public:
    handle() = default;
    explicit handle(std::uint64_t value) : value_(value) {}
    handle(handle &&other) noexcept : value_(std::exchange(other.value_, 0)) {}
    handle &operator=(handle &&other) noexcept {
        std::swap(value_, other.value_);
        return *this;
    }
    ~handle() { close(); }

    std::uint64_t get() const noexcept { return value_; }
    explicit operator bool() const noexcept { return value_ != 0; }
    void close() noexcept {
        if (value_ != 0) {
            godwit_close(std::exchange(value_, 0), nullptr);
        }
    }

private:
    std::uint64_t value_ = 0;
};

} // namespace detail
} // namespace godwit

#endif
