/* SPDX-License-Identifier: MIT */
/* mysql_doctor_test.c - what the doctor finds; names that attack. */
#include <stdlib.h>

#include "base/base.h"
#include "mysql.h"

#define QUICK "retry.base=1ms&retry.max_interval=20ms"

/* ---- the doctor ----------------------------------------------------------- */

struct notes {
    char bad[64];
    char warned[256];
    char fine[512];
};

static int note(const hf_finding *finding, void *ctx)
{
    struct notes *notes = ctx;
    char *text = finding->status == HF_FINDING_FAIL   ? notes->bad
                 : finding->status == HF_FINDING_WARN ? notes->warned
                                                      : notes->fine;
    size_t size = finding->status == HF_FINDING_FAIL   ? sizeof(notes->bad)
                  : finding->status == HF_FINDING_WARN ? sizeof(notes->warned)
                                                       : sizeof(notes->fine);
    size_t len = strlen(text);

    (void)snprintf(text + len, size - len, "%s ", finding->check);
    return 0;
}

static struct notes examine(int port, const char *query)
{
    struct notes notes = {"", "", ""};
    hf_error err;

    ASSERT_OK(hf_doctor(mysql_open(port, query), note, &notes, &err), &err);
    return notes;
}

TEST(doctor, finds_a_server_that_cannot_keep_locks)
{
    int port = mysql_fresh();

    ASSERT_STREQ(examine(port, QUICK).bad, "");
    (void)mysql_do(port, "ALTER TABLE holdfast_row ENGINE=MyISAM");
    ASSERT_STREQ(examine(port, QUICK).bad, "tables ");
    (void)mysql_do(port, "REVOKE DELETE ON locks.* FROM locker@127.0.0.1");
    ASSERT_STREQ(examine(port, QUICK).bad, "tables rights ");
}

TEST(doctor, says_what_each_mode_needs)
{
    int port = mysql_fresh();
    struct notes notes = examine(port, QUICK);

    ASSERT_HAS(notes.fine, "server mode replication ");
    ASSERT_HAS(notes.fine, "rights");
    notes = examine(port, QUICK "&mode=get_lock");
    ASSERT_HAS(notes.fine, "wait_timeout");
    notes = examine(port, QUICK "&mode=get_lock&ttl=1500ms&pool.max=9999");
    ASSERT_HAS(notes.warned, "wait_timeout connections");
    if (!mysql_is_mariadb(port))
        return; /* it does not end idle transactions */
    (void)mysql_do(port, "SET GLOBAL idle_transaction_timeout=5");
    notes = examine(port, QUICK "&mode=for_update");
    (void)mysql_do(port, "SET GLOBAL idle_transaction_timeout=0");
    ASSERT_HAS(notes.warned, "idle_transaction_timeout");
}

/* ---- names --------------------------------------------------------------- */

TEST(names, that_attack_hit_nothing)
{
    static const char *const modes[] = {
        QUICK "&mode=table", QUICK "&mode=get_lock", QUICK "&mode=for_update"};
    static const char *const names[] = {
        "'; DROP TABLE canary; -- ",
        "x'; DELETE FROM canary WHERE '1'='1",
        "\\'; DROP TABLE canary; #",
        "\xc2\xbf'; DROP TABLE canary; -- ",
        "/*!50000 DROP TABLE canary */",
        "$N $T $R $L",
        "%s%n%s%n",
        "CONCAT('holdfast',1)",
    };
    int port = mysql_fresh();

    (void)mysql_do(port, "CREATE TABLE canary(n INT);"
                         "INSERT INTO canary VALUES(7);"
                         "GRANT ALL ON locks.* TO locker@127.0.0.1");
    for (size_t m = 0; m < HF_COUNT_OF(modes); m++) {
        hf_client *client = mysql_open(port, modes[m]);
        hf_client *rival = mysql_open(port, modes[m]);

        for (size_t i = 0; i < HF_COUNT_OF(names); i++) {
            hf_opts opts = HF_OPTS_INIT;
            uint64_t version;
            hf_hold *hold;
            hf_error err;

            opts.owner = names[i];
            opts.note = names[i];
            if (hf_name_check(names[i], strlen(names[i]), NULL) != 0)
                continue;
            ASSERT_OK(hf_acquire(client, names[i], &opts, &hold, &err), &err);
            ASSERT_EQ(client_try(rival, names[i], &err), HF_EBUSY);
            ASSERT_OK(hf_version_read(client, names[i], &version, &err), &err);
            ASSERT_OK(
                hf_version_commit(client, names[i], version, &version, &err),
                &err);
            client_release(hold);
        }
        ASSERT_EQ(atoi(mysql_do(port, "SELECT n FROM canary")), 7);
    }
}
