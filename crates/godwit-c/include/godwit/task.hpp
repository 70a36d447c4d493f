/**
 * @file
 * @brief godwit::task, what coroutines return.
 */
#ifndef GODWIT_TASK_HPP
#define GODWIT_TASK_HPP

#include "error.hpp"

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

namespace godwit {

template <class T = void>
class task;

namespace detail {

/** What tasks of all results have in common: who is resumed at the end. */
class promise_base {
public:
    std::suspend_always initial_suspend() const noexcept { return {}; }

    struct final_awaiter {
        bool await_ready() const noexcept { return false; }
        template <class Promise>
        std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> ended) const noexcept {
            const promise_base &promise = ended.promise();
            // Whoever awaits it and has not been suspended yet sees for himself.
            const bool resumes = promise.continuation && !promise.is_beginning;
            return resumes ? promise.continuation : std::noop_coroutine();
        }
        void await_resume() const noexcept {}
    };
    final_awaiter final_suspend() const noexcept { return {}; }

    void unhandled_exception() noexcept { thrown = std::current_exception(); }

    std::coroutine_handle<> continuation;
    /** Who awaits it is running it for the first time: what is over without having waited takes no room on the stack. */
    bool is_beginning = false;
    bool is_started = false;
    std::exception_ptr thrown;
};

/** What cannot be done to a task. */
[[noreturn]] inline void refuse(const char *why) { throw error(GODWIT_ERROR_STATE, why); }

template <class T>
class promise final : public promise_base {
public:
    task<T> get_return_object() noexcept;
    template <class Value>
    void return_value(Value &&value) {
        result_.emplace(std::forward<Value>(value));
    }
    T take() {
        if (thrown) {
            std::rethrow_exception(thrown);
        }
        if (!result_) {
            refuse("this task has no result: it is not over, or somebody has it already");
        }
        T result = std::move(*result_);
        result_.reset();
        return result;
    }

private:
    std::optional<T> result_;
};

template <>
class promise<void> final : public promise_base {
public:
    task<void> get_return_object() noexcept;
    void return_void() const noexcept {}
    void take() const {
        if (thrown) {
            std::rethrow_exception(thrown);
        }
    }
};

} // namespace detail

/** Work that is done when it is awaited, once. Destroyed before its end, it is broken off. */
template <class T>
class [[nodiscard]] task {
public:
    using promise_type = detail::promise<T>;

    task(task &&other) noexcept : coroutine_(std::exchange(other.coroutine_, {})) {}
    task &operator=(task &&other) noexcept {
        std::swap(coroutine_, other.coroutine_);
        return *this;
    }
    ~task() {
        if (coroutine_) {
            coroutine_.destroy();
        }
    }

    /** Whether it is over. */
    bool done() const noexcept { return !coroutine_ || coroutine_.done(); }

    /** Begins; for those who wait for the end by other means. */
    void start() {
        if (done() || std::exchange(coroutine_.promise().is_started, true)) {
            detail::refuse("this task was begun before, or was moved away");
        }
        coroutine_.resume();
    }

    /** What a task that is over has come to. */
    T take() {
        if (!coroutine_) {
            detail::refuse("this task was moved away");
        }
        return coroutine_.promise().take();
    }

    /** Waits for the end of a task that was started. */
    auto ended() & noexcept {
        struct awaiter {
            std::coroutine_handle<promise_type> coroutine;
            bool await_ready() const noexcept { return !coroutine || coroutine.done(); }
            void await_suspend(std::coroutine_handle<> waiting) const noexcept {
                coroutine.promise().continuation = waiting;
            }
            void await_resume() const noexcept {}
        };
        return awaiter{coroutine_};
    }

    auto operator co_await() && noexcept {
        struct awaiter {
            std::coroutine_handle<promise_type> coroutine;
            bool await_ready() const noexcept { return !coroutine || coroutine.done(); }
            bool await_suspend(std::coroutine_handle<> waiting) const {
                promise_type &promise = coroutine.promise();
                promise.continuation = waiting;
                if (std::exchange(promise.is_started, true)) {
                    return true;
                }
                promise.is_beginning = true;
                coroutine.resume();
                promise.is_beginning = false;
                return !coroutine.done();
            }
            T await_resume() const {
                if (!coroutine) {
                    detail::refuse("this task was moved away");
                }
                return coroutine.promise().take();
            }
        };
        return awaiter{coroutine_};
    }

private:
    friend promise_type;
    explicit task(std::coroutine_handle<promise_type> coroutine) noexcept : coroutine_(coroutine) {}

    std::coroutine_handle<promise_type> coroutine_;
};

template <class T>
task<T> detail::promise<T>::get_return_object() noexcept {
    return task<T>(std::coroutine_handle<promise<T>>::from_promise(*this));
}

inline task<void> detail::promise<void>::get_return_object() noexcept {
    return task<void>(std::coroutine_handle<promise<void>>::from_promise(*this));
}

} // namespace godwit

#endif
