// SPDX-License-Identifier: MIT
// hpp_test URL - holdfast.hpp does what it says, on a real engine.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <type_traits>

#include "holdfast.hpp"

using namespace std::chrono_literals;

#define CHECK(condition)                                                       \
    do {                                                                       \
        if (!(condition)) {                                                    \
            std::fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__,   \
                         #condition);                                          \
            std::exit(1);                                                      \
        }                                                                      \
    } while (0)

template <class Call> static int code_of(Call call)
{
    try {
        call();
    } catch (const holdfast::error &caught) {
        CHECK(caught.what()[0] != '\0');
        CHECK(caught.details().code == caught.code());
        return caught.code();
    }
    return 0;
}

// A client is not copied and not thrown away; a hold moves.
static_assert(!std::is_copy_constructible_v<holdfast::client>);
static_assert(std::is_nothrow_move_constructible_v<holdfast::client>);
static_assert(!std::is_copy_constructible_v<holdfast::hold>);
static_assert(std::is_nothrow_move_assignable_v<holdfast::hold>);
static_assert(noexcept(std::declval<holdfast::mutex &>().unlock()));

static void holds_release_themselves(holdfast::client &client)
{
    std::uint64_t token;
    holdfast::options fresh;

    fresh.flags = HF_NEW_OWNER;
    {
        holdfast::hold hold = client.acquire("a", fresh);
        holdfast::hold moved = std::move(hold);

        CHECK(hold.check() == HF_RELEASED && !hold);
        CHECK(moved && moved.name() == "a");
        token = moved.token();
        CHECK(!client.try_acquire("a", fresh));
        moved.verify();
    }
    holdfast::hold again = client.acquire("a", fresh);

    CHECK(again.token() > token);
    again.release();
    CHECK(code_of([&] { again.release(); }) == HF_EINVAL);
}

static void a_lost_hold_throws(holdfast::client &client)
{
    holdfast::hold hold = client.acquire("lost");
    std::uint64_t token = hold.token();

    CHECK(hf_break(client.get(), "lost", token, nullptr, nullptr) == 0);
    CHECK(code_of([&] { hold.verify(); }) == HF_ELOST);
    CHECK(hold.check() == HF_LOST && !hold);
    hold.reacquire();
    CHECK(hold && hold.token() > token);
    CHECK(hf_break(client.get(), "lost", hold.token(), nullptr, nullptr) == 0);
    CHECK(code_of([&] { hold.release(); }) == HF_ELOST);
}

static void mutexes_exclude(holdfast::client &client)
{
    holdfast::mutex first(client, "mutex");
    holdfast::mutex second(client, "mutex");
    holdfast::mutex other(client, "other");
    int counter = 0;

    {
        std::lock_guard<holdfast::mutex> guard(first);

        CHECK(first.check() == HF_HELD && first.token() > 0);
        CHECK(!second.try_lock()); // of the same thread, too
        CHECK(!second.try_lock_for(20ms));
        CHECK(code_of([&] { first.lock(); }) == HF_EDEADLK);
    }
    CHECK(first.check() == HF_RELEASED);
    {
        std::scoped_lock both(first, other);
    }
    {
        std::unique_lock<holdfast::mutex> unique(first, std::defer_lock);

        CHECK(unique.try_lock_until(std::chrono::steady_clock::now() + 5s));
        unique.unlock();
    }

    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([&] {
            for (int n = 0; n < 100; n++) {
                std::lock_guard<holdfast::mutex> guard(first);
                counter++;
            }
        });
    for (auto &thread : threads)
        thread.join();
    CHECK(counter == 400);
}

static void unlock_tells_of_a_loss(holdfast::client &client)
{
    holdfast::mutex mutex(client, "told");
    int told = 0;

    mutex.on_unlock_failure([&](const holdfast::error &e) { told = e.code(); });
    mutex.lock();
    CHECK(hf_break(client.get(), "told", mutex.token(), nullptr, nullptr) == 0);
    mutex.unlock();
    CHECK(told == HF_ELOST);
}

static void readers_share(holdfast::client &client)
{
    holdfast::shared_mutex mutex(client, "readers");
    holdfast::shared_mutex writer(client, "readers");

    {
        std::shared_lock<holdfast::shared_mutex> mine(mutex);

        std::thread([&] {
            std::shared_lock<holdfast::shared_mutex> theirs(mutex,
                                                            std::try_to_lock);
            CHECK(theirs.owns_lock());
        }).join();
        CHECK(!writer.try_lock());
    }
    std::unique_lock<holdfast::shared_mutex> exclusive(writer);
    CHECK(!mutex.try_lock_shared());
}

static void semaphores_count(holdfast::client &client)
{
    holdfast::semaphore two(client, "slots", 2);

    two.acquire();
    CHECK(two.try_acquire());
    CHECK(!two.try_acquire_for(20ms));
    CHECK(two.held() == 2);
    two.release();
    CHECK(two.try_acquire());
    two.release();
    two.release();
    CHECK(code_of([&] { two.release(); }) == HF_EINVAL);
}

/* A wait longer than there are milliseconds, an owner of a slot, and a name
 * with a NUL in it. */
static void odd_arguments_are_safe(holdfast::client &client)
{
    holdfast::mutex mutex(client, "odd");
    holdfast::options with;
    with.owner_id = hf_owner_new();
    holdfast::semaphore semaphore(client, "odd-slots", 2, with);
    int code = 0;

    CHECK(mutex.try_lock_for(std::chrono::hours::max()));
    mutex.unlock();
    CHECK(semaphore.try_acquire());
    semaphore.release();
    try {
        (void)client.acquire(std::string("odd\0x", 5));
    } catch (const holdfast::error &e) {
        code = e.code();
    }
    CHECK(code == HF_EINVAL);
}

static void failures_are_exceptions(holdfast::client &client)
{
    holdfast::config config;
    holdfast::options wrong;

    CHECK(code_of([] { holdfast::client nowhere("nonsense:"); }) ==
          HF_EUNSUPPORTED);
    CHECK(code_of([&] { config.set("no such key", "1"); }) == HF_ECONFIG);
    CHECK(code_of([&] { client.acquire(""); }) == HF_EINVAL);
    wrong.owner_id = hf_owner_new();
    wrong.flags = HF_NEW_OWNER;
    CHECK(code_of([&] { client.acquire("a", wrong); }) == HF_EINVAL);
}

static void conditions_wake(holdfast::client &client)
{
    holdfast::mutex mutex(client, "store");
    holdfast::condition filled("filled");
    int things = 0;

    std::thread consumer([&] {
        std::unique_lock<holdfast::mutex> lock(mutex);

        filled.wait(lock, [&] { return things > 0; });
        CHECK(mutex.check() == HF_HELD);
        things--;
    });
    for (int woken = 0; woken == 0;) {
        std::unique_lock<holdfast::mutex> lock(mutex);

        things = 1;
        woken = filled.notify_one(lock);
        if (woken == 0)
            things = 0; // it does not wait yet
    }
    consumer.join();
    CHECK(things == 0);

    holdfast::hold hold = client.acquire("store");
    std::uint64_t token = hold.token();

    CHECK(!filled.wait_for(hold, 1ms));
    CHECK(hold && hold.token() > token);
    CHECK(filled.notify_all(hold) == 0);
    CHECK(code_of([&] { holdfast::condition("").wait(hold); }) == HF_EINVAL);
}

#if defined(__cpp_lib_jthread)
static void a_stop_ends_the_wait(holdfast::client &client)
{
    holdfast::mutex first(client, "stopped");
    holdfast::mutex second(client, "stopped");
    std::stop_source stop;
    std::atomic<bool> began{false};

    first.lock();
    std::thread thread([&] {
        began = true;
        CHECK(!second.lock(stop.get_token()));
        CHECK(second.check() == HF_RELEASED);
    });
    while (!began)
        std::this_thread::yield();
    stop.request_stop();
    thread.join();
    CHECK(!second.lock(stop.get_token())); // stopped before it began
    first.unlock();
    CHECK(second.lock(std::stop_token()));
    second.unlock();
}
#endif

int main(int argc, char **argv)
{
    CHECK(argc == 2);

    holdfast::config config;
    config.set("ttl", "20s");
    holdfast::client client(argv[1], config);

    holds_release_themselves(client);
    a_lost_hold_throws(client);
    mutexes_exclude(client);
    unlock_tells_of_a_loss(client);
    readers_share(client);
    semaphores_count(client);
    conditions_wake(client);
    failures_are_exceptions(client);
    odd_arguments_are_safe(client);
#if defined(__cpp_lib_jthread)
    a_stop_ends_the_wait(client);
    std::puts("stop_token");
#endif
    client.shutdown();
    return 0;
}
