/* SPDX-License-Identifier: MIT */
/* owner.c - whose a hold is, where threads do not say it. */
#include <pthread.h>

#include "contract.h"

static int try_as_id(hf_client *client, const char *name, uint64_t owner_id)
{
    return client_try_with(client, name,
                           CONTRACT_OPTS(OPTS(0, .owner_id = owner_id)), NULL);
}

static hf_hold *acquire_as_id(hf_client *client, const char *name,
                              uint64_t owner_id)
{
    return client_acquire_with(client, name,
                               OPTS(EVENT_PATIENCE_MS, .owner_id = owner_id));
}

TEST(owner, a_new_one_is_excluded_by_its_own_thread)
{
    hf_client *client = contract_open(NULL);
    const char *name = contract_name("jobs");
    hf_hold *hold = contract_acquire(client, name);
    hf_opts opts = HF_OPTS_INIT;
    hf_request *request;
    hf_hold *other;
    hf_error err;

    opts.flags = HF_NEW_OWNER;
    ASSERT_EQ(client_try_with(client, name, CONTRACT_OPTS(&opts), NULL),
              HF_EBUSY);
    ASSERT_OK(hf_acquire_start(client, name, &opts, NULL, NULL, &request, &err),
              &err);
    ASSERT_EQ(hf_request_pending(request), 1);
    client_release(hold);
    ASSERT_OK(hf_request_wait(request, EVENT_PATIENCE_MS, &other, &err), &err);
    ASSERT_NE(hf_hold_owner(other), 0);
    hf_request_free(request);
    ASSERT_EQ(client_try_with(client, name, CONTRACT_OPTS(&opts), NULL),
              HF_EBUSY);
    client_release(other);
}

TEST(owner, ids_are_never_given_twice)
{
    uint64_t last = 0;

    for (int i = 0; i < 1000; i++) {
        uint64_t id = hf_owner_new();

        ASSERT_GT(id, last);
        last = id;
    }
}

struct entry {
    hf_client *client;
    const char *name;
    uint64_t owner_id;
    int rc;
};

static void *enter(void *arg)
{
    struct entry *entry = arg;

    entry->rc = try_as_id(entry->client, entry->name, entry->owner_id);
    return NULL;
}

TEST(owner, of_an_id_enters_again_in_every_thread)
{
    struct entry entry = {contract_open(NULL), contract_name("jobs"),
                          hf_owner_new(), -1};
    hf_hold *hold = acquire_as_id(entry.client, entry.name, entry.owner_id);
    pthread_t thread;

    ASSERT_EQ(pthread_create(&thread, NULL, enter, &entry), 0);
    ASSERT_EQ(pthread_join(thread, NULL), 0);
    ASSERT_EQ(entry.rc, 0);
    ASSERT_EQ(try_as_id(entry.client, entry.name, hf_owner_new()), HF_EBUSY);
    ASSERT_EQ(try_as_id(entry.client, entry.name, 0), HF_EBUSY);
    client_release(hold);
}

static int find_label(const hf_lock_info *info, void *ctx)
{
    (void)ctx;
    return strcmp(info->owner, "the label") == 0;
}

TEST(owner, of_an_id_has_a_text_for_records_alone)
{
    hf_client *client = contract_open(NULL);
    const char *name = contract_name("jobs");
    hf_opts by_id = HF_OPTS_INIT;
    hf_opts by_text = HF_OPTS_INIT;
    hf_hold *hold;
    hf_error err;

    by_id.owner_id = hf_owner_new();
    by_id.owner = "the label";
    by_text.owner = "the label";
    ASSERT_OK(hf_acquire(client, name, &by_id, &hold, &err), &err);
    ASSERT_EQ(client_try_with(client, name, CONTRACT_OPTS(&by_text), NULL),
              HF_EBUSY);
    by_id.owner = "another label";
    ASSERT_EQ(client_try_with(client, name, CONTRACT_OPTS(&by_id), NULL), 0);
    if (contract_can(HF_CAP_LIST))
        ASSERT_EQ(hf_show(client, name, find_label, NULL, &err), 1);
    client_release(hold);
}

TEST(owner, can_be_compared)
{
    hf_client *client = contract_open(NULL);
    hf_hold *first = contract_acquire(client, contract_name("first"));
    hf_hold *second = contract_acquire(client, contract_name("second"));
    uint64_t id = hf_owner_new();
    hf_hold *by_id = acquire_as_id(client, contract_name("third"), id);
    hf_hold *by_text;

    ASSERT_NE(hf_hold_owner(first), 0);
    ASSERT_EQ(hf_hold_owner(first), hf_hold_owner(second));
    ASSERT_EQ(hf_hold_owner(by_id), id);
    ASSERT_OK(hf_acquire(client, contract_name("fourth"),
                         OPTS(HF_CONFIGURED, .owner = "alice"), &by_text, NULL),
              NULL);
    ASSERT_EQ(hf_hold_owner(by_text), 0);
    ASSERT_EQ(hf_hold_owner(NULL), 0);
    client_release(by_text);
    client_release(by_id);
    client_release(second);
    client_release(first);
}

TEST(owner, may_give_its_hold_to_another)
{
    hf_client *client = contract_open(NULL);
    const char *name = contract_name("jobs");
    hf_hold *hold = contract_acquire(client, name);
    uint64_t token = hf_token(hold);
    uint64_t id = hf_owner_new();
    hf_error err;
    hf_hold *again = contract_acquire(client, name);

    ASSERT_RC(hf_hold_give(hold, id, &err), HF_ECONFLICT, &err);
    client_release(again);
    ASSERT_RC(hf_hold_give(hold, 0, &err), HF_EINVAL, &err);
    ASSERT_RC(hf_hold_give(NULL, id, &err), HF_EINVAL, &err);
    ASSERT_OK(hf_hold_give(hold, id, &err), &err);
    ASSERT_EQ(hf_hold_owner(hold), id);
    ASSERT_EQ(hf_token(hold), token);
    ASSERT_EQ(try_as_id(client, name, 0), HF_EBUSY);
    ASSERT_EQ(try_as_id(client, name, id), 0);
    again = hf_hold_ref(hold);
    client_release(hold);
    ASSERT_RC(hf_hold_give(again, id, &err), HF_ELOST, &err);
    ASSERT_EQ(hf_hold_owner(again), 0);
    hf_hold_unref(again);
}

TEST(owner, of_a_multi_lock_is_one)
{
    hf_client *client = contract_open(NULL);
    const char *names[2] = {contract_name("b"), contract_name("a")};
    hf_opts opts = HF_OPTS_INIT;
    uint64_t id = hf_owner_new();
    hf_hold *hold;
    hf_hold *other;
    hf_error err;

    opts.flags = HF_NEW_OWNER;
    opts.wait_ms = 0;
    ASSERT_OK(hf_acquire_many(client, names, 2, &opts, &hold, &err), &err);
    ASSERT_RC(hf_acquire_many(client, names, 2, &opts, &other, &err), HF_EBUSY,
              &err);
    for (int i = 0; i < 2; i++) {
        ASSERT_EQ(try_as_id(client, names[i], 0), HF_EBUSY);
        ASSERT_EQ(try_as_id(client, names[i], hf_hold_owner(hold)), 0);
    }
    ASSERT_OK(hf_hold_give(hold, id, &err), &err);
    ASSERT_EQ(try_as_id(client, names[0], id), 0);
    ASSERT_EQ(try_as_id(client, names[1], id), 0);
    client_release(hold);
}

TEST(owner, wrong_options_are_refused)
{
    hf_client *client = contract_open(NULL);
    const char *name = contract_name("jobs");
    hf_opts opts = HF_OPTS_INIT;

    opts.flags = HF_NEW_OWNER;
    opts.owner_id = hf_owner_new();
    ASSERT_EQ(client_try_with(client, name, CONTRACT_OPTS(&opts), NULL),
              HF_EINVAL);
    opts.flags = 0;
    opts.priority = 1;
    ASSERT_EQ(client_try_with(client, name, CONTRACT_OPTS(&opts), NULL),
              HF_EUNSUPPORTED);
    opts.priority = 0;
    opts.reserved = 1;
    ASSERT_EQ(client_try_with(client, name, CONTRACT_OPTS(&opts), NULL),
              HF_EINVAL);
    opts.reserved = 0;
    ASSERT_EQ(client_try_with(client, name, CONTRACT_OPTS(&opts), NULL), 0);
}
