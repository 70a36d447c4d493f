/**
 * @file
 * @brief godwit::loop, which resumes coroutines when something happens.
 */
#ifndef GODWIT_LOOP_HPP
#define GODWIT_LOOP_HPP

#include "event.hpp"
#include "task.hpp"

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace godwit {
namespace detail {

/** The queue of a loop, and who takes which events. Objects keep it alive. */
class core : public std::enable_shared_from_this<core> {
public:
    core() {
        godwit_queue made = 0;
        call(godwit_queue_create, static_cast<const godwit_queue_options *>(nullptr), &made);
        queue_ = handle(made);
    }

    /** Whether this is the thread that the loop belongs to. */
    bool is_here() const noexcept { return std::this_thread::get_id() == thread_; }
    void move_here() noexcept { thread_ = std::this_thread::get_id(); }

    /** Throws on another thread. */
    void check() const {
        if (!is_here()) {
            throw error(GODWIT_ERROR_STATE, "this belongs to a loop of another thread, on which alone it may be used; "
                                            "only loop::wake() may be called elsewhere");
        }
    }

    godwit_queue queue() const noexcept { return queue_.get(); }

    int descriptor() const {
        std::int32_t descriptor = -1;
        call(godwit_queue_descriptor, queue(), &descriptor);
        return descriptor;
    }

    void wake() const { call(godwit_queue_wake, queue()); }

    void add(std::uint64_t of, std::shared_ptr<receiver> takes, std::uint64_t parent) {
        check();
        takes->parent = parent;
        receivers_[of] = std::move(takes);
        if (parent != 0) {
            below_[parent].insert(of);
        }
    }

    /** A handle is closed: whoever belongs to it hears of it. */
    void remove(std::uint64_t of) {
        if (const auto found = receivers_.find(of); found != receivers_.end()) {
            if (const auto beside = below_.find(found->second->parent); beside != below_.end()) {
                beside->second.erase(of);
                if (beside->second.empty()) {
                    below_.erase(beside);
                }
            }
            receivers_.erase(found);
        }
        const auto below = below_.extract(of);
        if (!below.empty()) {
            for (const std::uint64_t handle : below.mapped()) {
                if (const auto found = receivers_.find(handle); found != receivers_.end()) {
                    const std::shared_ptr<receiver> ended = found->second;
                    ended->end(error(GODWIT_ERROR_CLOSED, "what this belongs to was closed"));
                    remove(handle);
                }
            }
        }
        note_ready();
    }

    /** Somebody may have become ready outside of a turn: the next one is to see to it. */
    void note_ready() const noexcept {
        if (!is_turning_ && !ready.empty()) {
            godwit_queue_wake(queue(), nullptr);
        }
    }

    /** Takes events, and resumes who has waited for them. Whether there was anything to do. */
    bool turn(std::int64_t timeout_ms) {
        check();
        const turning mark(is_turning_);
        // Who is resumed may have nothing more to wait for.
        const bool some = resume_ready();
        std::array<godwit_event, 64> events{};
        events[0].size = sizeof(godwit_event);
        std::uint64_t count = 0;
        call(godwit_queue_wait, queue(), events.data(), std::uint64_t{events.size()}, some ? 0 : timeout_ms, &count);
        std::vector<event> taken;
        taken.reserve(static_cast<std::size_t>(count));
        for (std::size_t index = 0; index < count; ++index) {
            taken.emplace_back(events[index]);
        }
        for (event &item : taken) {
            const std::uint64_t of = is_new(*item) ? item->parent : item->handle;
            if (const auto found = receivers_.find(of); found != receivers_.end()) {
                // It may close what it belongs to.
                const std::shared_ptr<receiver> kept = found->second;
                kept->take(std::move(item));
            } else if (is_new(*item)) {
                godwit_close(item->handle, nullptr);
            }
        }
        return resume_ready() || some || count != 0;
    }

    waiter::list ready;

private:
    /** Whether an event brings a handle that nobody has had before. */
    static bool is_new(const godwit_event &item) {
        return item.kind == GODWIT_EVENT_REQUEST || item.kind == GODWIT_EVENT_INCOMING ||
               item.kind == GODWIT_EVENT_STREAM;
    }

    /** Whether there was anybody. */
    bool resume_ready() {
        bool some = false;
        while (!ready.empty()) {
            waiter *first = ready.front();
            first->leave();
            first->coroutine.resume();
            some = true;
        }
        return some;
    }

    /** A turn is under way as long as this exists. */
    class turning {
    public:
        explicit turning(bool &mark) : mark_(mark), before_(std::exchange(mark, true)) {}
        turning(const turning &) = delete;
        turning &operator=(const turning &) = delete;
        ~turning() { mark_ = before_; }

    private:
        bool &mark_;
        bool before_;
    };

    handle queue_;
    std::thread::id thread_ = std::this_thread::get_id();
    bool is_turning_ = false;
    std::unordered_map<std::uint64_t, std::shared_ptr<receiver>> receivers_;
    /** The handles that belong to a handle. */
    std::unordered_map<std::uint64_t, std::unordered_set<std::uint64_t>> below_;
};

/** A handle with what takes its events; both end together. */
template <class Receiver>
class object {
public:
    object(std::shared_ptr<core> core, std::uint64_t handle, std::shared_ptr<Receiver> receiver, std::uint64_t parent)
        : core_(std::move(core)), handle_(handle), receiver_(std::move(receiver)) {
        core_->add(handle, receiver_, parent);
    }
    object(object &&) noexcept = default;
    object &operator=(object &&other) noexcept {
        if (this != &other) {
            close();
            core_ = std::move(other.core_);
            handle_ = std::move(other.handle_);
            receiver_ = std::move(other.receiver_);
        }
        return *this;
    }
    ~object() { close(); }

    /** Nothing for an object that was moved away. */
    std::uint64_t get() const noexcept { return handle_.get(); }
    Receiver *operator->() const { return shared().get(); }
    /** For coroutines, which go on after a wait for which the object may be gone. */
    const std::shared_ptr<Receiver> &shared() const {
        if (!receiver_) {
            throw error(GODWIT_ERROR_HANDLE, "this object was moved away");
        }
        core_->check();
        return receiver_;
    }
    const std::shared_ptr<core> &loop() const {
        shared();
        return core_;
    }

    void close() noexcept {
        if (handle_) {
            if (!core_->is_here()) {
                std::fputs("godwit: an object was destroyed on another thread than its loop's\n", stderr);
                std::abort();
            }
            const std::uint64_t closed = handle_.get();
            handle_.close();
            core_->remove(closed);
        }
    }

private:
    std::shared_ptr<core> core_;
    handle handle_;
    std::shared_ptr<Receiver> receiver_;
};

/** Takes the one event of what is shut down in good order. */
class stopped_receiver : public receiver {
public:
    explicit stopped_receiver(core &of) : stopped(of.ready) {}
    void take(event &&item) override { stopped.put(std::move(item)); }
    void end(const error &reason) override { stopped.end(reason); }

    channel stopped;
};

/** Takes the events of something that others come to: requests, connections, streams. What has come is an object at once,
 * because events of its own follow, and waits in a channel beside. */
template <class Receiver>
class arrivals {
public:
    explicit arrivals(core &of) : core_(&of), arrived_(of.ready) {}

    /** Something has come, by an event that brings its handle. */
    Receiver &put(event &&item) {
        const std::shared_ptr<Receiver> takes = std::make_shared<Receiver>(*core_);
        const std::uint64_t handle = item->handle;
        objects_.emplace(handle, object<Receiver>(core_->shared_from_this(), handle, takes, item->parent));
        arrived_.put(std::move(item));
        return *takes;
    }

    void end(std::optional<error> reason) { arrived_.end(std::move(reason)); }

    auto next() { return arrived_.next(); }

    /** The object that an event has brought. */
    object<Receiver> take(const event &item) {
        auto found = objects_.extract(item->handle);
        if (found.empty()) {
            throw error(GODWIT_ERROR_CLOSED, "what this belongs to was closed");
        }
        return std::move(found.mapped());
    }

private:
    core *core_;
    channel arrived_;
    std::unordered_map<std::uint64_t, object<Receiver>> objects_;
};

/** Awaits a task, and takes note of what it throws. */
inline task<void> guarded(task<void> inner, std::exception_ptr &thrown) {
    try {
        co_await std::move(inner);
    } catch (...) {
        if (!thrown) {
            thrown = std::current_exception();
        }
    }
}

} // namespace detail

/** Takes events and resumes the coroutines that wait for them, on the thread that calls it. */
class loop {
public:
    loop() : core_(std::make_shared<detail::core>()) {}
    loop(const loop &) = delete;
    loop &operator=(const loop &) = delete;

    /** Runs a task to its end, and others meanwhile; returns or throws what it comes to. */
    template <class T>
    T run(task<T> main) {
        main.start();
        while (!main.done()) {
            core_->turn(-1);
            end_spawned();
        }
        return main.take();
    }

    /** Runs a task beside others, for as long as run() or poll() are called. What it throws comes out of those. */
    void spawn(task<void> beside) {
        core_->check();
        spawned_.push_back(detail::guarded(std::move(beside), thrown_));
        spawned_.back().start();
        end_spawned_quietly();
    }

    /** Takes what there is and resumes who has waited for it, without waiting; for loops of the application's own. */
    void poll() { poll_for(std::chrono::milliseconds(0)); }

    /** Waits so long for something to happen, at most. Whether something did. */
    bool poll_for(std::chrono::milliseconds most) {
        const bool some = core_->turn(most.count());
        end_spawned();
        return some;
    }

    /** Readable while there is something to do for poll(). The application neither reads nor closes it. */
    int descriptor() const { return core_->descriptor(); }

    /** From now on it is this thread's, with all of its objects. Nobody may use them meanwhile. */
    void move_to_this_thread() noexcept { core_->move_here(); }

    /** Ends a poll_for() of another thread, or the next. Of all functions only this may be called there. */
    void wake() const { core_->wake(); }

    const std::shared_ptr<detail::core> &core() const noexcept { return core_; }

private:
    void end_spawned_quietly() {
        std::erase_if(spawned_, [](const task<void> &each) { return each.done(); });
    }

    void end_spawned() {
        end_spawned_quietly();
        if (thrown_) {
            std::rethrow_exception(std::exchange(thrown_, nullptr));
        }
    }

    std::shared_ptr<detail::core> core_;
    std::exception_ptr thrown_;
    std::list<task<void>> spawned_;
};

/** Does several tasks at the same time, and returns what they came to, in their order. If some fail, throws what the first of
 * them did when all are over. */
template <class T>
task<std::vector<T>> when_all(std::vector<task<T>> tasks) {
    for (task<T> &each : tasks) {
        each.start();
    }
    for (task<T> &each : tasks) {
        co_await each.ended();
    }
    std::vector<T> values;
    values.reserve(tasks.size());
    for (task<T> &each : tasks) {
        values.push_back(each.take());
    }
    co_return values;
}

/** The same for tasks without a result. */
inline task<void> when_all(std::vector<task<void>> tasks) {
    for (task<void> &each : tasks) {
        each.start();
    }
    for (task<void> &each : tasks) {
        co_await each.ended();
    }
    for (task<void> &each : tasks) {
        each.take();
    }
}

} // namespace godwit

#endif
