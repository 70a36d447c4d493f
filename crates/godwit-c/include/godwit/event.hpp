/**
 * @file
 * @brief Events, the memory that they lend, and what waits for them.
 */
#ifndef GODWIT_EVENT_HPP
#define GODWIT_EVENT_HPP

#include "error.hpp"

#include <coroutine>
#include <cstddef>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace godwit {
namespace detail {

/** An event, and what it has lent until this is destroyed. */
class event {
public:
    event() = default;
    explicit event(const godwit_event &raw) : raw_(raw) {}
    event(event &&other) noexcept : raw_(std::exchange(other.raw_, godwit_event{})) {}
    event &operator=(event &&other) noexcept {
        std::swap(raw_, other.raw_);
        return *this;
    }
    ~event() {
        if (raw_.lease != 0) {
            godwit_event_release(&raw_, nullptr);
        }
    }

    const godwit_event &operator*() const noexcept { return raw_; }
    const godwit_event *operator->() const noexcept { return &raw_; }

    /** Why something failed, by an event that tells of it. */
    error problem() const {
        return raw_.error != nullptr ? error(*raw_.error) : error(raw_.status, godwit_status_name(raw_.status));
    }

private:
    godwit_event raw_{};
};

/** A coroutine that waits, in the list of those who do so for the same thing. */
class waiter {
public:
    /** Who waits. With it they wait for nothing any more, and are not resumed. */
    class list : public std::list<waiter *> {
    public:
        list() = default;
        list(const list &) = delete;
        list &operator=(const list &) = delete;
        ~list() {
            while (!empty()) {
                front()->leave();
            }
        }
    };

    waiter() = default;
    waiter(const waiter &) = delete;
    waiter &operator=(const waiter &) = delete;
    ~waiter() { leave(); }

    void enter(list &into) {
        place_ = into.insert(into.end(), this);
        list_ = &into;
    }
    void leave() {
        if (list_ != nullptr) {
            std::exchange(list_, nullptr)->erase(place_);
        }
    }

    std::coroutine_handle<> coroutine;
    /** Set once it is known what it gets: what it has waited on may be gone when it is resumed. */
    bool is_settled = false;
    /** What it was given, if anything. */
    std::optional<event> item;
    /** Why it gets nothing, if that is an error. */
    std::optional<error> reason;

private:
    list *list_ = nullptr;
    list::iterator place_;
};

/** Events of one sort for one object, and the coroutines that wait for some. */
class channel {
public:
    /** Coroutines that are to be resumed are put into `ready`. */
    explicit channel(waiter::list &ready) : ready_(&ready) {}
    channel(const channel &) = delete;
    channel &operator=(const channel &) = delete;

    /** Something has come: who has waited longest has it. */
    void put(event &&item) {
        if (waiting_.empty()) {
            items_.push_back(std::move(item));
            return;
        }
        waiter *first = waiting_.front();
        first->item.emplace(std::move(item));
        settle(first);
    }

    /** Nothing more comes; with a reason it is an error to wait for more. */
    void end(std::optional<error> reason) {
        if (over_) {
            return;
        }
        over_ = true;
        reason_ = std::move(reason);
        while (!waiting_.empty()) {
            waiter *first = waiting_.front();
            first->reason = reason_;
            settle(first);
        }
    }

    bool over() const noexcept { return over_ && items_.empty(); }

    /** Waits for the next; nothing if no more comes. */
    auto next() {
        struct awaiter : waiter {
            channel *from;
            explicit awaiter(channel *of) : from(of) {}
            bool await_ready() const noexcept { return !from->items_.empty() || from->over_; }
            void await_suspend(std::coroutine_handle<> waiting) {
                coroutine = waiting;
                enter(from->waiting_);
            }
            std::optional<event> await_resume() {
                if (is_settled) {
                    if (reason) {
                        throw *reason;
                    }
                    return std::move(item);
                }
                if (!from->items_.empty()) {
                    std::optional<event> first(std::move(from->items_.front()));
                    from->items_.pop_front();
                    return first;
                }
                if (from->reason_) {
                    throw *from->reason_;
                }
                return std::nullopt;
            }
        };
        return awaiter(this);
    }

private:
    /** It is to be resumed. */
    void settle(waiter *one) {
        one->is_settled = true;
        one->leave();
        one->enter(*ready_);
    }

    waiter::list *ready_;
    std::deque<event> items_;
    waiter::list waiting_;
    bool over_ = false;
    std::optional<error> reason_;
};

/** Takes the events of one handle. */
class receiver {
public:
    receiver() = default;
    receiver(const receiver &) = delete;
    receiver &operator=(const receiver &) = delete;
    virtual ~receiver() = default;
    /** An event of the handle. */
    virtual void take(event &&item) = 0;
    /** No more events come: what this belongs to was closed. */
    virtual void end(const error &reason) = 0;

    /** What its handle belongs to. */
    std::uint64_t parent = 0;
};

} // namespace detail

/** Bytes that were received. They stay where they are while this exists, and count against flow control until then. */
class bytes {
public:
    explicit bytes(detail::event &&from) : from_(std::move(from)) {}

    const std::byte *data() const noexcept { return reinterpret_cast<const std::byte *>(from_->data); }
    std::size_t size() const noexcept { return static_cast<std::size_t>(from_->length); }
    std::span<const std::byte> span() const noexcept { return {data(), size()}; }
    std::string_view text() const noexcept { return {reinterpret_cast<const char *>(from_->data), size()}; }

private:
    detail::event from_;
};

} // namespace godwit

#endif
