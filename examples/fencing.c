/* SPDX-License-Identifier: MIT */
/*
 * fencing.c - let the resource refuse a holder that is too late.
 *
 * No lock with a lease can stop a thread that sleeps between its last check
 * and its write. The token can: it grows with every grant. The resource, here
 * a small ledger, remembers the largest token it has seen and refuses every
 * smaller one.
 */
#include <holdfast.h>
#include <inttypes.h>
#include <stdio.h>

struct ledger {
    uint64_t seen;
    int balance;
};

static int ledger_add(struct ledger *ledger, uint64_t token, int amount)
{
    if (token < ledger->seen)
        return -1;
    ledger->seen = token;
    ledger->balance += amount;
    return 0;
}

static uint64_t take_and_release(hf_client *client, hf_error *err)
{
    hf_hold *hold;
    uint64_t token;

    if (hf_acquire(client, "ledger", NULL, &hold, err) != 0)
        return 0;
    token = hf_token(hold);
    if (hf_release(hold, err) != 0)
        return 0;
    return token;
}

int main(void)
{
    struct ledger ledger = {0, 0};
    hf_config *config = hf_config_new();
    hf_client *client;
    hf_error err;
    uint64_t early;
    uint64_t late;

    /* Refuse to run on an engine without honest tokens. */
    if (!config || hf_config_set(config, "require", "fenced", &err) != 0 ||
        hf_open(NULL, config, &client, &err) != 0) {
        fprintf(stderr, "fencing: %s\n", config ? err.text : "no memory");
        hf_config_free(config);
        return 1;
    }
    hf_config_free(config);

    early = take_and_release(client, &err);
    late = take_and_release(client, &err);
    hf_close(client);
    if (early == 0 || late == 0) {
        fprintf(stderr, "fencing: %s\n", err.text);
        return 1;
    }

    printf("tokens %" PRIu64 " < %" PRIu64 "\n", early, late);
    printf("the later holder writes: %s\n",
           ledger_add(&ledger, late, 10) == 0 ? "accepted" : "refused");
    printf("the earlier one wakes up: %s\n",
           ledger_add(&ledger, early, 99) == 0 ? "accepted" : "refused");
    return ledger.balance == 10 ? 0 : 1;
}
