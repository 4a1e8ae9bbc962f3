/* SPDX-License-Identifier: MIT */
/* hold.c - what a hold is: whose, how often, until when. */
#include <pthread.h>

#include "contract.h"

TEST(hold, says_what_it_is)
{
    hf_client *client = contract_open("ttl=5s");
    const char *name = contract_name("jobs");
    hf_hold *hold = contract_acquire(client, name);
    int64_t left = hf_remaining_ms(hold);

    ASSERT_EQ(hf_check(hold), HF_HELD);
    ASSERT_STREQ(hf_hold_name(hold), name);
    if (contract_can(HF_CAP_FENCED)) {
        ASSERT_GT(hf_token(hold), 0);
        ASSERT_EQ(hf_token_at(hold, 0), hf_token(hold));
    } else {
        ASSERT_EQ(hf_token(hold), 0);
    }
    if (contract_can(HF_CAP_LEASED)) {
        ASSERT_GT(left, 3000);
        ASSERT_LT(left, 5000);
        ASSERT_EQ(hf_ttl_ms(hold), 5000);
    } else {
        ASSERT_EQ(left, HF_FOREVER);
        ASSERT_EQ(hf_ttl_ms(hold), 0);
    }
    ASSERT_EQ(hf_max_hold_ms(hold), 0);
    client_release(hold);
}

TEST(hold, tokens_grow_from_grant_to_grant)
{
    hf_client *clients[2] = {contract_open(NULL), contract_open(NULL)};
    const char *name = contract_name("jobs");
    uint64_t last = 0;

    NEEDS(HF_CAP_FENCED);
    for (int i = 0; i < 50; i++) {
        hf_hold *hold = contract_acquire(clients[i % 2], name);

        ASSERT_GT(hf_token(hold), last);
        last = hf_token(hold);
        client_release(hold);
    }
    ASSERT_LT(last, INT64_MAX);
}

TEST(hold, tokens_grow_when_a_new_client_comes)
{
    const char *name = contract_name("jobs");
    uint64_t last = 0;

    NEEDS(HF_CAP_FENCED);
    for (int i = 0; i < 5; i++) {
        hf_client *client = contract_open(NULL);
        hf_hold *hold = contract_acquire(client, name);

        ASSERT_GT(hf_token(hold), last);
        last = hf_token(hold);
        client_release(hold);
        contract_close(client);
    }
}

TEST(hold, the_same_owner_enters_again_with_the_same_token)
{
    struct rivals at = contract_rivals("jobs");
    hf_hold *outer = contract_acquire(at.client, at.name);
    hf_hold *inner = contract_acquire(at.client, at.name);

    ASSERT_TRUE(outer != inner);
    ASSERT_EQ(hf_token(outer), hf_token(inner));
    client_release(outer);
    ASSERT_EQ(hf_check(inner), HF_HELD);
    ASSERT_EQ(contract_try(at.rival, at.name, HF_EXCLUSIVE, 0), HF_EBUSY);
    client_release(inner);
    ASSERT_EQ(contract_try(at.rival, at.name, HF_EXCLUSIVE, 0), 0);
}

TEST(hold, an_owner_who_asked_not_to_re_enter_is_told)
{
    hf_client *client = contract_open(NULL);
    const char *name = contract_name("jobs");
    hf_hold *hold = contract_acquire(client, name);
    hf_hold *again = NULL;
    hf_error err;

    ASSERT_RC(hf_acquire(client, name,
                         OPTS(HF_CONFIGURED, .flags = HF_NON_REENTRANT), &again,
                         &err),
              HF_EDEADLK, &err);
    ASSERT_NULL(again);
    client_release(hold);
}

struct other {
    hf_client *client;
    const char *name;
    const char *owner;
    hf_hold *hold;
    int rc;
};

static void *try_as(void *arg)
{
    struct other *other = arg;

    other->rc = hf_acquire(other->client, other->name,
                           OPTS(0, .owner = other->owner), &other->hold, NULL);
    return NULL;
}

static void *release_it(void *arg)
{
    struct other *other = arg;

    other->rc = hf_release(other->hold, NULL);
    return NULL;
}

static void in_another_thread(void *(*run)(void *), struct other *other)
{
    pthread_t thread;

    ASSERT_EQ(pthread_create(&thread, NULL, run, other), 0);
    ASSERT_EQ(pthread_join(thread, NULL), 0);
}

TEST(hold, another_thread_is_another_owner)
{
    struct other other = {.client = contract_open(NULL),
                          .name = contract_name("jobs")};
    hf_hold *hold = contract_acquire(other.client, other.name);

    in_another_thread(try_as, &other);
    ASSERT_EQ(other.rc, HF_EBUSY);
    client_release(hold);
}

TEST(hold, an_owner_by_name_is_the_same_in_every_thread)
{
    struct other other = {.client = contract_open(NULL),
                          .name = contract_name("jobs"),
                          .owner = "alice"};
    hf_hold *hold;

    ASSERT_OK(hf_acquire(other.client, other.name,
                         OPTS(HF_CONFIGURED, .owner = "alice"), &hold, NULL),
              NULL);
    in_another_thread(try_as, &other);
    ASSERT_EQ(other.rc, 0);
    client_release(other.hold);
    other.owner = "bob";
    in_another_thread(try_as, &other);
    ASSERT_EQ(other.rc, HF_EBUSY);
    client_release(hold);
}

TEST(hold, any_thread_may_release)
{
    struct other other = {.client = contract_open(NULL),
                          .name = contract_name("jobs")};

    other.hold = contract_acquire(other.client, other.name);
    in_another_thread(release_it, &other);
    ASSERT_EQ(other.rc, 0);
    ASSERT_EQ(contract_try(other.client, other.name, HF_EXCLUSIVE, 0), 0);
}

TEST(hold, a_second_reference_sees_the_release)
{
    hf_client *client = contract_open(NULL);
    hf_hold *hold = contract_acquire(client, contract_name("jobs"));
    hf_hold *second = hf_hold_ref(hold);
    uint64_t token = hf_token(hold);

    client_release(hold);
    ASSERT_EQ(hf_check(second), HF_RELEASED);
    ASSERT_EQ(hf_remaining_ms(second), 0);
    ASSERT_EQ(hf_token(second), token);
    hf_hold_unref(second);
}

TEST(hold, the_last_reference_releases)
{
    hf_client *client = contract_open(NULL);
    const char *name = contract_name("jobs");
    hf_hold *hold = contract_acquire(client, name);

    ASSERT_PTR_EQ(hf_hold_ref(hold), hold);
    hf_hold_unref(hold);
    ASSERT_EQ(contract_try(client, name, HF_EXCLUSIVE, 0), HF_EBUSY);
    hf_hold_unref(hold);
    hf_hold_unref(NULL);
    EVENTUALLY(contract_try(client, name, HF_EXCLUSIVE, 0) == 0);
}

TEST(hold, the_engine_confirms_it)
{
    hf_client *client = contract_open(NULL);
    hf_hold *hold = contract_acquire(client, contract_name("jobs"));
    hf_error err;

    ASSERT_OK(hf_verify(hold, &err), &err);
    client_release(hold);
}

TEST(hold, posted_releases_arrive)
{
    hf_client *client = contract_open("release=post");
    hf_client *rival = contract_open(NULL);
    const char *name = contract_name("jobs");

    for (int i = 0; i < 20; i++) {
        client_release(contract_acquire(client, name));
        client_release(contract_acquire(rival, name));
    }
}

TEST(hold, a_block_holds_it_and_every_way_out_releases)
{
    struct rivals at = contract_rivals("jobs");
    int entered = 0;
    int rc = -1;

    HF_WITH_LOCK(at.client, at.name, NULL, &rc) {
        entered++;
        ASSERT_EQ(rc, 0);
        ASSERT_EQ(contract_try(at.rival, at.name, HF_EXCLUSIVE, 0), HF_EBUSY);
    }
    ASSERT_EQ(rc, 0);
    HF_WITH_LOCK(at.client, at.name, NULL, &rc) {
        entered++;
        break;
    }
    ASSERT_EQ(rc, 0);
    ASSERT_EQ(entered, 2);
    ASSERT_EQ(contract_try(at.rival, at.name, HF_EXCLUSIVE, 0), 0);
}

TEST(hold, a_block_without_the_lock_is_not_entered)
{
    struct rivals at = contract_rivals("jobs");
    hf_hold *hold = contract_acquire(at.rival, at.name);
    int rc = 0;

    HF_WITH_LOCK(at.client, at.name, WITHIN(0), &rc)
        FAIL("the block was entered");
    ASSERT_EQ(rc, HF_EBUSY);
    client_release(hold);
}

static int leave_early(hf_client *client, const char *name)
{
    hf_autorelease hf_hold *hold = contract_acquire(client, name);

    return hf_check(hold);
}

TEST(hold, an_autoreleased_hold_ends_with_its_scope)
{
    hf_client *client = contract_open(NULL);
    const char *name = contract_name("jobs");

    ASSERT_EQ(leave_early(client, name), HF_HELD);
    ASSERT_EQ(contract_try(client, name, HF_EXCLUSIVE, 0), 0);
}
