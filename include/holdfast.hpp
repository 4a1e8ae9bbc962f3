/* SPDX-License-Identifier: MIT */
/*
 * holdfast.hpp - holdfast.h for C++17: what is acquired is released.
 *
 *     holdfast::client client("redis://db1");
 *     holdfast::mutex nightly(client, "nightly-report");
 *
 *     {
 *         std::lock_guard lock(nightly);
 *         write_report(nightly.token());
 *     }
 *
 *     holdfast::hold hold = client.acquire("nightly-report");
 *     write_report(hold.token());
 *     hold.release();          throws if the lock was lost meanwhile
 *
 * Nothing is compiled: every function is an inline call of the C library, and
 * failures are exceptions that carry its hf_error.
 *
 * A destructor and unlock() cannot report that a lock was lost. Where it
 * matters, call release() of a hold, look at check() before the result counts,
 * or give a mutex an on_unlock_failure(). Better still, let the resource compare
 * tokens.
 *
 * mutex, shared_mutex and semaphore fit the templates of the standard library
 * (std::lock_guard, std::unique_lock, std::scoped_lock, std::shared_lock). Each
 * lock() has an owner of its own: two objects of one name exclude each other on
 * one thread, too. condition is std::condition_variable for a mutex or a hold.
 */
#ifndef HOLDFAST_HPP
#define HOLDFAST_HPP

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "holdfast.h"

#if defined(__has_include)
#if __has_include(<version>)
#include <version>
#endif
#endif
#if defined(__cpp_lib_jthread)
#include <stop_token>
#endif

namespace holdfast
{

using milliseconds = std::chrono::milliseconds;

/** A wait without end. */
inline constexpr milliseconds forever{HF_FOREVER};

/** What a call of the library failed with; what() is its sentence. */
class error : public std::runtime_error
{
  public:
    explicit error(const hf_error &details)
        : std::runtime_error(details.text), details_(details)
    {
    }

    /** HF_E*. */
    int code() const noexcept
    {
        return details_.code;
    }
    /** The engine's own: an errno, a server's number, or 0. */
    int engine_code() const noexcept
    {
        return details_.engine_code;
    }
    const hf_error &details() const noexcept
    {
        return details_;
    }
    /** May the same call succeed later? */
    bool retriable() const noexcept
    {
        return hf_is_retriable(details_.code) == 1;
    }

  private:
    hf_error details_;
};

namespace detail
{

inline void check(int rc, const hf_error &err)
{
    if (rc < 0)
        throw error(err);
}

[[noreturn]] inline void fail(int code, const char *text)
{
    hf_error err = {code, 0, {}};
    std::string(text).copy(err.text, sizeof(err.text) - 1);
    throw error(err);
}

/* A name, whole: text after a NUL inside would be cut off. */
inline const char *text(const std::string &name)
{
    hf_error err = {};

    check(hf_name_check(name.data(), name.size(), &err), err);
    return name.c_str();
}

/* Somebody else has it, and the time we had for it is over. */
inline bool is_busy(int rc) noexcept
{
    return rc == HF_EBUSY || rc == HF_ETIMEOUT;
}

} // namespace detail

/** How to acquire: hf_opts with durations and texts of C++. */
struct options {
    int mode = HF_EXCLUSIVE;
    int slots = 0;
    std::optional<milliseconds> wait; /* none: as configured */
    milliseconds ttl{0};              /* 0: as configured */
    milliseconds max_hold{0};         /* 0: as configured; forever: no cap */
    std::uint32_t flags = 0;          /* HF_NO_RENEW, … */
    std::uint64_t owner_id = 0;
    std::string owner; /* empty: none */
    std::string note;  /* empty: as configured */

    /** Valid as long as this is neither changed nor gone. */
    hf_opts get() const noexcept
    {
        hf_opts opts = HF_OPTS_INIT;

        opts.flags = flags;
        opts.mode = mode;
        opts.slots = slots;
        if (wait)
            opts.wait_ms = wait->count();
        opts.ttl_ms = ttl.count();
        opts.max_hold_ms = max_hold.count();
        opts.owner = owner.empty() ? nullptr : owner.c_str();
        opts.note = note.empty() ? nullptr : note.c_str();
        opts.owner_id = owner_id;
        return opts;
    }
};

/** A lock that is held, until release() or the destructor. */
class hold
{
  public:
    hold() noexcept = default;
    /** Takes over what hf_acquire() gave. */
    explicit hold(hf_hold *taken) noexcept : hold_(taken)
    {
    }
    hold(hold &&other) noexcept : hold_(std::exchange(other.hold_, nullptr))
    {
    }
    hold &operator=(hold &&other) noexcept
    {
        if (this != &other) {
            drop();
            hold_ = std::exchange(other.hold_, nullptr);
        }
        return *this;
    }
    hold(const hold &) = delete;
    hold &operator=(const hold &) = delete;
    ~hold()
    {
        drop();
    }

    /** Throws if it was lost before (HF_ELOST), or if nobody knows. */
    void release()
    {
        hf_error err;

        detail::check(hf_release(std::exchange(hold_, nullptr), &err), err);
    }
    /** HF_HELD, HF_JEOPARDY, HF_LOST; HF_RELEASED if there is nothing. */
    int check() const noexcept
    {
        return hold_ ? hf_check(hold_) : static_cast<int>(HF_RELEASED);
    }
    /** Is it ours at this moment? */
    explicit operator bool() const noexcept
    {
        int state = check();

        return state == HF_HELD || state == HF_JEOPARDY;
    }
    /** Ask the engine; throws if it is not ours, or if nobody knows. */
    void verify()
    {
        hf_error err;

        detail::check(hf_verify(hold_, &err), err);
    }
    /** Acquire it again after it was lost. */
    void reacquire(milliseconds wait = forever)
    {
        hf_error err;

        detail::check(hf_reacquire(hold_, wait.count(), &err), err);
    }
    void downgrade()
    {
        hf_error err;

        detail::check(hf_downgrade(hold_, &err), err);
    }
    /** Make another owner the owner. */
    void give(std::uint64_t owner_id)
    {
        hf_error err;

        detail::check(hf_hold_give(hold_, owner_id, &err), err);
    }
    std::uint64_t owner() const noexcept
    {
        return hf_hold_owner(hold_);
    }
    std::uint64_t token() const noexcept
    {
        return hf_token(hold_);
    }
    /** forever where there is no lease. */
    milliseconds remaining() const noexcept
    {
        return milliseconds(hf_remaining_ms(hold_));
    }
    std::string name() const
    {
        return hf_hold_name(hold_);
    }
    hf_hold *get() const noexcept
    {
        return hold_;
    }
    /** Give up the handle without releasing: it is the caller's. */
    hf_hold *detach() noexcept
    {
        return std::exchange(hold_, nullptr);
    }

  private:
    void drop() noexcept
    {
        if (hold_)
            (void)hf_release(std::exchange(hold_, nullptr), nullptr);
    }

    hf_hold *hold_ = nullptr;
};

/** Keys and values for a client. */
class config
{
  public:
    config() : config_(hf_config_new())
    {
        if (!config_)
            detail::fail(HF_ENOMEM, "out of memory");
    }
    config(config &&other) noexcept
        : config_(std::exchange(other.config_, nullptr))
    {
    }
    config(const config &) = delete;
    config &operator=(const config &) = delete;
    config &operator=(config &&) = delete;
    ~config()
    {
        hf_config_free(config_);
    }
    config &set(const std::string &key, const std::string &value)
    {
        hf_error err;

        detail::check(hf_config_set(config_, key.c_str(), value.c_str(), &err),
                      err);
        return *this;
    }
    hf_config *get() const noexcept
    {
        return config_;
    }

  private:
    hf_config *config_;
};

/** One connection to one engine. It has to outlive its locks. */
class client
{
  public:
    /** As hf_open(nullptr, …): the environment's engine, or "local:". */
    client() : client(nullptr, nullptr)
    {
    }
    explicit client(const std::string &url) : client(url.c_str(), nullptr)
    {
    }
    client(const std::string &url, const config &with)
        : client(url.c_str(), with.get())
    {
    }
    client(client &&other) noexcept
        : client_(std::exchange(other.client_, nullptr))
    {
    }
    client &operator=(client &&other) noexcept
    {
        if (this != &other) {
            hf_close(client_);
            client_ = std::exchange(other.client_, nullptr);
        }
        return *this;
    }
    client(const client &) = delete;
    client &operator=(const client &) = delete;
    ~client()
    {
        hf_close(client_);
    }

    /** Throws what hf_acquire() says, HF_EBUSY and HF_ETIMEOUT included. */
    hold acquire(const std::string &name, const options &with = {})
    {
        hf_opts opts = with.get();
        hf_hold *taken = nullptr;
        hf_error err;

        detail::check(
            hf_acquire(client_, detail::text(name), &opts, &taken, &err), err);
        return hold(taken);
    }
    /** Nothing if another owner has it until the wait is over (0 unless given). */
    std::optional<hold> try_acquire(const std::string &name, options with = {})
    {
        with.wait = with.wait.value_or(milliseconds(0));

        hf_opts opts = with.get();
        hf_hold *taken = nullptr;
        hf_error err;
        int rc = hf_acquire(client_, detail::text(name), &opts, &taken, &err);

        if (detail::is_busy(rc))
            return std::nullopt;
        detail::check(rc, err);
        return hold(taken);
    }
#if defined(__cpp_lib_jthread)
    /** Nothing if @stop asked to end the wait, or another kept the lock. */
    std::optional<hold> acquire(const std::string &name, std::stop_token stop,
                                const options &with = {})
    {
        hf_opts opts = with.get();
        hf_request *request = nullptr;
        hf_hold *taken = nullptr;
        hf_error err;
        int rc;

        if (stop.stop_requested())
            return std::nullopt;
        detail::check(hf_acquire_start(client_, detail::text(name), &opts,
                                       nullptr, nullptr, &request, &err),
                      err);
        {
            std::stop_callback cancel(stop, [request] { hf_cancel(request); });

            rc = hf_request_wait(request, HF_FOREVER, &taken, &err);
        }
        hf_request_free(request);
        if (rc == HF_ECANCELED || detail::is_busy(rc))
            return std::nullopt;
        detail::check(rc, err);
        return hold(taken);
    }
#endif
    std::uint64_t capabilities() const noexcept
    {
        return hf_capabilities(client_);
    }
    /** Release everything and have it confirmed; throws HF_ETIMEOUT. */
    void shutdown(milliseconds wait = forever)
    {
        hf_error err;

        detail::check(hf_shutdown(client_, wait.count(), &err), err);
    }
    hf_client *get() const noexcept
    {
        return client_;
    }

  private:
    client(const char *url, const hf_config *with)
    {
        hf_error err;

        detail::check(hf_open(url, with, &client_, &err), err);
    }

    hf_client *client_ = nullptr;
};

class condition;

namespace detail
{

/* What mutexes and semaphores share: a name, and how to acquire it. */
class acquirer
{
  public:
    acquirer(client &of, std::string name, options with)
        : client_(of), name_(std::move(name)), options_(std::move(with))
    {
        if (options_.owner_id == 0)
            options_.flags |= HF_NEW_OWNER;
    }
    acquirer(const acquirer &) = delete;
    acquirer &operator=(const acquirer &) = delete;

    const std::string &name() const noexcept
    {
        return name_;
    }

  protected:
    hold acquire_as(int mode) const
    {
        return client_.acquire(name_, asking(mode, patience()));
    }
    std::optional<hold> acquire_within(int mode, milliseconds wait) const
    {
        return client_.try_acquire(name_, asking(mode, wait));
    }
#if defined(__cpp_lib_jthread)
    std::optional<hold> acquire_until(int mode, std::stop_token stop) const
    {
        return client_.acquire(name_, std::move(stop), asking(mode, patience()));
    }
#endif

  private:
    milliseconds patience() const
    {
        return options_.wait.value_or(forever);
    }
    options asking(int mode, milliseconds wait) const
    {
        options with = options_;

        with.mode = mode;
        with.wait = wait;
        return with;
    }

    client &client_;
    std::string name_;
    options options_;
};

/* What mutex and shared_mutex share: one hold for each thread that has it. Of
 * two threads that hold at once, because the first one's lease was lost, each
 * releases its own. */
class lockable : public acquirer
{
  public:
    using acquirer::acquirer;

    /** The state of this thread's hold; HF_RELEASED if it has none. */
    int check() const noexcept
    {
        hf_hold *mine = find();

        return mine ? hf_check(mine) : static_cast<int>(HF_RELEASED);
    }
    /** The fencing token of this thread's hold; 0 if there is none. */
    std::uint64_t token() const noexcept
    {
        return hf_token(find());
    }
    milliseconds remaining() const noexcept
    {
        return milliseconds(hf_remaining_ms(find()));
    }
    /** Called by unlock() with what hf_release() failed with: HF_ELOST,
     *  HF_EUNKNOWN. Must not throw. Before the object is shared. */
    void on_unlock_failure(std::function<void(const error &)> call)
    {
        failed_ = std::move(call);
    }

  protected:
    bool lock_as(int mode, milliseconds wait)
    {
        refuse_twice();
        return keep(acquire_within(mode, wait));
    }
    void lock_for_sure(int mode)
    {
        refuse_twice();
        keep(acquire_as(mode));
    }
#if defined(__cpp_lib_jthread)
    bool lock_until_stopped(int mode, std::stop_token stop)
    {
        refuse_twice();
        return keep(acquire_until(mode, std::move(stop)));
    }
#endif
    void unlock_mine() noexcept
    {
        hf_hold *mine = take();
        hf_error err;

        if (mine && hf_release(mine, &err) != 0 && failed_)
            failed_(error(err));
    }

  private:
    void refuse_twice() const
    {
        if (find())
            fail(HF_EDEADLK, "this thread has locked this object already");
    }
    bool keep(std::optional<hold> taken)
    {
        std::lock_guard<std::mutex> guard(guard_);

        if (taken)
            holds_[std::this_thread::get_id()] = std::move(*taken);
        return taken.has_value();
    }
    friend class holdfast::condition;

    hf_hold *find() const noexcept
    {
        std::lock_guard<std::mutex> guard(guard_);
        auto mine = holds_.find(std::this_thread::get_id());

        return mine == holds_.end() ? nullptr : mine->second.get();
    }
    hf_hold *take() noexcept
    {
        std::lock_guard<std::mutex> guard(guard_);
        auto mine = holds_.find(std::this_thread::get_id());

        if (mine == holds_.end())
            return nullptr;
        hf_hold *taken = mine->second.detach();
        holds_.erase(mine);
        return taken;
    }

    std::function<void(const error &)> failed_;
    mutable std::mutex guard_;
    std::map<std::thread::id, hold> holds_;
};

template <class Rep, class Period>
milliseconds at_least_zero(const std::chrono::duration<Rep, Period> &wait)
{
    /* As a number that cannot overflow. */
    using inexact = std::chrono::duration<long double, std::milli>;

    if (inexact(wait) >= inexact(HF_DURATION_MAX))
        return milliseconds(HF_DURATION_MAX);

    auto rounded = std::chrono::ceil<milliseconds>(wait);

    return rounded.count() > 0 ? rounded : milliseconds(0);
}

template <class Clock, class Duration>
milliseconds until(const std::chrono::time_point<Clock, Duration> &time)
{
    return at_least_zero(time - Clock::now());
}

} // namespace detail

/** An exclusive lock, as std::timed_mutex: one name, many threads and machines.
 *  lock() throws what it cannot get over: HF_EUNAVAILABLE, HF_ECLOSED, and, if
 *  options.wait is given, HF_ETIMEOUT. */
class mutex : public detail::lockable
{
  public:
    mutex(client &of, std::string name, options with = {})
        : lockable(of, std::move(name), std::move(with))
    {
    }
    void lock()
    {
        lock_for_sure(HF_EXCLUSIVE);
    }
    bool try_lock()
    {
        return lock_as(HF_EXCLUSIVE, milliseconds(0));
    }
    template <class Rep, class Period>
    bool try_lock_for(const std::chrono::duration<Rep, Period> &wait)
    {
        return lock_as(HF_EXCLUSIVE, detail::at_least_zero(wait));
    }
    template <class Clock, class Duration>
    bool try_lock_until(const std::chrono::time_point<Clock, Duration> &time)
    {
        return lock_as(HF_EXCLUSIVE, detail::until(time));
    }
#if defined(__cpp_lib_jthread)
    /** False if @stop asked to end the wait. */
    bool lock(std::stop_token stop)
    {
        return lock_until_stopped(HF_EXCLUSIVE, std::move(stop));
    }
#endif
    void unlock() noexcept
    {
        unlock_mine();
    }
};

/** Many readers or one writer, as std::shared_timed_mutex. */
class shared_mutex : public mutex
{
  public:
    using mutex::mutex;

    void lock_shared()
    {
        lock_for_sure(HF_SHARED);
    }
    bool try_lock_shared()
    {
        return lock_as(HF_SHARED, milliseconds(0));
    }
    template <class Rep, class Period>
    bool try_lock_shared_for(const std::chrono::duration<Rep, Period> &wait)
    {
        return lock_as(HF_SHARED, detail::at_least_zero(wait));
    }
    template <class Clock, class Duration>
    bool try_lock_shared_until(
        const std::chrono::time_point<Clock, Duration> &time)
    {
        return lock_as(HF_SHARED, detail::until(time));
    }
#if defined(__cpp_lib_jthread)
    bool lock_shared(std::stop_token stop)
    {
        return lock_until_stopped(HF_SHARED, std::move(stop));
    }
#endif
    void unlock_shared() noexcept
    {
        unlock_mine();
    }
};

/** A condition of a lock, as std::condition_variable, over processes and
 *  machines: it is known by the lock's name and its own. Every call needs the
 *  lock, held once and exclusively, and throws what it cannot get over: HF_ELOST,
 *  HF_EUNSUPPORTED. Whoever returns from a wait holds the lock again. */
class condition
{
  public:
    explicit condition(std::string name) : name_(std::move(name))
    {
    }

    void wait(const hold &held)
    {
        (void)wait_ms(held.get(), HF_FOREVER);
    }
    void wait(std::unique_lock<mutex> &lock)
    {
        (void)wait_ms(mine(lock), HF_FOREVER);
    }
    template <class Lock, class Predicate>
    void wait(Lock &lock, Predicate predicate)
    {
        while (!predicate())
            wait(lock);
    }
    /** False: nobody signalled in time. The lock is held in both cases, and
     *  getting it again is not bounded by @wait. */
    template <class Rep, class Period>
    bool wait_for(const hold &held,
                  const std::chrono::duration<Rep, Period> &wait)
    {
        return wait_ms(held.get(), detail::at_least_zero(wait).count());
    }
    template <class Rep, class Period>
    bool wait_for(std::unique_lock<mutex> &lock,
                  const std::chrono::duration<Rep, Period> &wait)
    {
        return wait_ms(mine(lock), detail::at_least_zero(wait).count());
    }
    /** How many were woken: 0 or 1. */
    int notify_one(const hold &held)
    {
        return notify(held.get(), hf_cond_signal);
    }
    int notify_one(const std::unique_lock<mutex> &lock)
    {
        return notify(mine(lock), hf_cond_signal);
    }
    int notify_all(const hold &held)
    {
        return notify(held.get(), hf_cond_broadcast);
    }
    int notify_all(const std::unique_lock<mutex> &lock)
    {
        return notify(mine(lock), hf_cond_broadcast);
    }
    const std::string &name() const noexcept
    {
        return name_;
    }

  private:
    static hf_hold *mine(const std::unique_lock<mutex> &lock)
    {
        return lock.mutex() ? lock.mutex()->find() : nullptr;
    }
    bool wait_ms(hf_hold *held, std::int64_t ms)
    {
        hf_error err;
        int rc = hf_cond_wait(held, name_.c_str(), ms, &err);

        if (rc != HF_ETIMEOUT)
            detail::check(rc, err);
        return rc == 0;
    }
    int notify(hf_hold *held, int (*call)(hf_hold *, const char *, hf_error *))
    {
        hf_error err;
        int woken = call(held, name_.c_str(), &err);

        if (woken < 0)
            detail::check(woken, err);
        return woken;
    }

    std::string name_;
};

/** At most so many holders, as std::counting_semaphore; but only what this
 *  object acquired can be released. The oldest is released first. */
class semaphore : private detail::acquirer
{
  public:
    semaphore(client &of, std::string name, int slots, options with = {})
        : acquirer(of, std::move(name), with_slots(std::move(with), slots))
    {
    }

    void acquire()
    {
        keep(acquire_as(HF_SLOT));
    }
    bool try_acquire()
    {
        return keep(acquire_within(HF_SLOT, milliseconds(0)));
    }
    template <class Rep, class Period>
    bool try_acquire_for(const std::chrono::duration<Rep, Period> &wait)
    {
        return keep(acquire_within(HF_SLOT, detail::at_least_zero(wait)));
    }
    template <class Clock, class Duration>
    bool try_acquire_until(const std::chrono::time_point<Clock, Duration> &time)
    {
        return keep(acquire_within(HF_SLOT, detail::until(time)));
    }
#if defined(__cpp_lib_jthread)
    bool acquire(std::stop_token stop)
    {
        return keep(acquire_until(HF_SLOT, std::move(stop)));
    }
#endif
    /** Throws HF_ELOST if that slot was lost, HF_EINVAL if there is none. */
    void release()
    {
        hold oldest;

        {
            std::lock_guard<std::mutex> guard(guard_);

            if (holds_.empty())
                detail::fail(HF_EINVAL, "this object has no slot to release");
            oldest = std::move(holds_.front());
            holds_.erase(holds_.begin());
        }
        oldest.release();
    }
    /** How many slots this object has. */
    std::size_t held() const
    {
        std::lock_guard<std::mutex> guard(guard_);

        return holds_.size();
    }

  private:
    static options with_slots(options with, int slots)
    {
        with.slots = slots;
        return with;
    }
    bool keep(std::optional<hold> taken)
    {
        std::lock_guard<std::mutex> guard(guard_);

        if (taken)
            holds_.push_back(std::move(*taken));
        return taken.has_value();
    }

    mutable std::mutex guard_;
    std::vector<hold> holds_;
};

} // namespace holdfast

#endif
