/* SPDX-License-Identifier: MIT */
/* fault_question_test.c - questions to a store behind a script of faults. */
#include "tempdir.h"
#include "test.h"
#include "test_client.h"

static int no_cycle(const char *text, void *ctx)
{
    (void)text;
    (void)ctx;
    return 0;
}

/* What each kind of question is told, in this order. */
enum { QUESTIONS = 7 };

static void ask_all(hf_client *client, hf_hold *hold, int told[QUESTIONS])
{
    uint64_t version = 0;

    told[0] = hf_show(client, "jobs", client_ignore_lock, NULL, NULL);
    told[1] = hf_check_token(client, "jobs", hf_token(hold), NULL);
    told[2] = hf_version_read(client, "page", &version, NULL);
    told[3] = hf_version_commit(client, "page", version, &version, NULL);
    told[4] = hf_doctor(client, client_ignore_finding, NULL, NULL);
    told[5] = hf_deadlocks(client, no_cycle, NULL, NULL);
    told[6] = hf_break(client, "jobs", hf_token(hold), NULL, NULL);
}

static hf_client *open_store(const char *directory, const char *query)
{
    return client_open(test_text("fault+local://%s?%s", directory, query));
}

TEST(fault, every_question_passes_or_fails_as_the_script_says)
{
    const char *directory = tempdir_new();
    hf_client *client = open_store(directory, "fault=query:fail");
    hf_hold *hold = client_acquire(client, "jobs");
    int told[QUESTIONS];

    ask_all(client, hold, told);
    for (int i = 0; i < QUESTIONS; i++)
        ASSERT_NE(told[i], 0);
    ASSERT_EQ(hf_check(hold), HF_HELD);
    ask_all(open_store(directory, "fault=signal:fail"), hold, told);
    for (int i = 0; i < QUESTIONS; i++)
        ASSERT_EQ(told[i], 0);
    ASSERT_EQ(hf_release(hold, NULL), HF_ELOST); /* it was broken */
}
