/* SPDX-License-Identifier: MIT */
/*
 * board.c - mode=table: the board, a row of holdfast_wait for each client that
 * has a notice, and one, '#', with the number of this store.
 *
 * The server's clock ends a notice. Clients of one board may have different
 * prefixes of names: each prefix makes another number of it.
 *
 * Failure: without the table, or the right to use it, the question ends with
 * that error.
 */
#include <stdio.h>
#include <stdlib.h>

#include "config/name.h"
#include "engines/postgres/postgres.h"

/* The columns of BOARD_READ. */
enum { CLIENT, NOTICE };

/* The number in @text, for our prefix; 0: there is none. */
static uint64_t read_number(const struct hf__pg *postgres, const char *text)
{
    const char *prefix = postgres->base.host->settings->prefix;
    uint64_t key[2];
    char *end;

    key[0] = key[1] = strtoull(text, &end, 16);
    if (*end != '\0' || key[0] == 0)
        return 0;
    return prefix[0] == '\0' ? key[0]
                             : hf__name_hash(prefix, strlen(prefix), key) | 1;
}

static int add_rows(struct hf__pg *postgres, struct hf__query *query,
                    const struct hf__pg_result *rows)
{
    int rc = 0;

    for (int row = 0; row < rows->rows && rc == 0; row++) {
        const char *notice = hf__pg_answer_text(rows, row, NOTICE);

        if (strcmp(hf__pg_answer_text(rows, row, CLIENT), "#") == 0)
            query->version = read_number(postgres, notice);
        else
            rc = hf__query_add_notice(query, notice, strlen(notice));
    }
    return rc;
}

static void on_read(struct hf__pg_conn *conn, const struct hf__pg_call *call,
                    const struct hf__pg_answer *answer)
{
    hf__pg_inspect_rows(conn, call->query, answer, add_rows);
}

static int check_mode(const struct hf__pg *postgres, hf_error *err)
{
    if (strcmp(postgres->mode->name, "table") == 0 && !postgres->dialect)
        return 0;
    return hf__fail(err, HF_EUNSUPPORTED,
                    "%s: only mode=table can tell which waiters wait for one "
                    "another",
                    postgres->peer);
}

static int ask_board(struct hf__pg *postgres, struct hf__query *query,
                     hf_error *err)
{
    struct hf__pg_call call = {.done = on_read, .query = query};

    hf__pg_calls_add(&postgres->main, HF__STMT_BOARD_READ, NULL, 0);
    return hf__pg_calls_send(&postgres->main, &call, err);
}

int hf__pg_board_post(struct hf__engine *engine, struct hf__query *query,
                      hf_error *err)
{
    struct hf__pg *postgres = hf__pg_of(engine);
    char number[17];
    char ms[12];
    const char *values[] = {query->owner, query->text, ms};
    const char *numbers[] = {number};
    uint64_t chance;
    int rc = check_mode(postgres, err);

    if (rc != 0)
        return rc;
    if (hf__world->random(&chance, sizeof(chance)) != 0)
        return hf__fail(err, HF_EINTERNAL, "no random numbers");
    (void)snprintf(number, sizeof(number), "%llx",
                   (unsigned long long)(chance | 1));
    (void)snprintf(ms, sizeof(ms), "%d", HF__BOARD_MS);
    hf__pg_calls_add(&postgres->main, HF__STMT_BOARD_NUMBER, numbers, 1);
    if (query->text)
        hf__pg_calls_add(&postgres->main, HF__STMT_BOARD_POST, values, 3);
    else
        hf__pg_calls_add(&postgres->main, HF__STMT_BOARD_DROP, values, 1);
    return ask_board(postgres, query, err);
}

int hf__pg_board_read(struct hf__engine *engine, struct hf__query *query,
                      hf_error *err)
{
    struct hf__pg *postgres = hf__pg_of(engine);
    int rc = check_mode(postgres, err);

    return rc != 0 ? rc : ask_board(postgres, query, err);
}
