/* SPDX-License-Identifier: MIT */
/*
 * deadlock_engine.c - the engine of the simulation with a board and a list.
 *
 * A question travels to the service, is answered there, and travels back, as
 * slowly as all messages do: so what a look sees is of different moments, and
 * some of it is over when it is seen.
 */
#include "deadlock_engine.h"

#include <stdlib.h>

#include "core/notice.h"
#include "engines/engine.h"
#include "script_engine.h"
#include "server.h"
#include "world.h"

enum { NOTICES = SIM_CLIENTS, ROWS = 200, STORE = 77 };

struct notice {
    char client[33];
    char text[HF__NOTICE_MAX + 1];
    int64_t until_ns;
};

enum kind { LIST, POST, READ };

struct question {
    struct hf__timer timer; /* the answer arrives */
    struct hf__engine *engine;
    struct hf__query *query;
    enum kind kind;
    char *owner;
    char *text;
    int name;
    struct sim_row rows[ROWS];
    int n_rows;
    struct hf__buf texts[NOTICES];
    int n_texts;
};

static struct notice notices[NOTICES];
static struct hf__engine_ops ops;

static void post(const struct question *question)
{
    struct notice *free_one = NULL;

    for (int i = 0; i < NOTICES; i++) {
        if (strcmp(notices[i].client, question->owner) == 0) {
            free_one = &notices[i];
            break;
        }
        if (!free_one && notices[i].until_ns <= sim_now())
            free_one = &notices[i];
    }
    if (!free_one)
        abort();
    hf__text_copy(free_one->client, sizeof(free_one->client), question->owner);
    hf__text_copy(free_one->text, sizeof(free_one->text),
                  question->text ? question->text : "");
    free_one->until_ns = question->text ? sim_now() + HF__BOARD_MS * HF_MS : 0;
}

static void read_board(struct question *question)
{
    for (int i = 0; i < NOTICES; i++) {
        if (notices[i].until_ns > sim_now())
            hf__buf_add(&question->texts[question->n_texts++], notices[i].text);
    }
}

/* At the service, outside all threads. */
static void serve(void *arg)
{
    struct question *question = arg;

    if (question->kind == LIST)
        question->n_rows =
            sim_server_rows(question->name, question->rows, ROWS);
    else if (question->kind == POST)
        post(question);
    else
        read_board(question);
}

static void add_row(struct hf__query *query, const struct sim_row *row)
{
    hf_lock_info info = {.role = row->holds ? HF_HOLDER : HF_WAITER,
                         .mode = row->mode,
                         .name = query->name,
                         .owner = "",
                         .host = "",
                         .note = "",
                         .pid = SIM_FIRST_PID + row->client,
                         .token = row->token};

    (void)hf__query_add_lock(query, &info);
}

static void answer(struct hf__timer *timer)
{
    struct question *question = HF_CONTAINER_OF(timer, struct question, timer);
    struct hf__query *query = question->query;

    for (int i = 0; i < question->n_rows; i++)
        add_row(query, &question->rows[i]);
    for (int i = 0; i < question->n_texts; i++) {
        (void)hf__query_add_notice(query, question->texts[i].text,
                                   question->texts[i].len);
        hf__buf_release(&question->texts[i]);
    }
    query->version = STORE;
    hf__up_answer(question->engine, query, 0, /* err= */ NULL);
    free(question->owner);
    free(question->text);
    free(question);
}

static int ask(struct hf__engine *engine, struct hf__query *query,
               enum kind kind)
{
    struct question *question = calloc(1, sizeof(*question));
    int64_t there_ns = sim_network_travel_ns();
    int64_t back_ns = sim_network_travel_ns();

    if (!question)
        abort();
    question->engine = engine;
    question->query = query;
    question->kind = kind;
    question->timer.fire = answer;
    question->owner = query->owner ? strdup(query->owner) : NULL;
    question->text = query->text ? strdup(query->text) : NULL;
    if (query->name)
        question->name = sim_name_number(query->name);
    sim_at(sim_now() + there_ns, serve, question);
    engine->host->timer(engine->host, &question->timer,
                        hf__now() + there_ns + back_ns + 1);
    return 0;
}

static int list(struct hf__engine *engine, struct hf__query *query,
                hf_error *err)
{
    (void)err;
    return ask(engine, query, LIST);
}

static int board_post(struct hf__engine *engine, struct hf__query *query,
                      hf_error *err)
{
    (void)err;
    return ask(engine, query, POST);
}

static int board_read(struct hf__engine *engine, struct hf__query *query,
                      hf_error *err)
{
    (void)err;
    return ask(engine, query, READ);
}

void deadlock_engine_register(void)
{
    const struct hf__engine_ops *plain;

    sim_engine_register();
    if (hf__engine_find("sim", &plain, NULL) != 0)
        abort();
    if (plain != &ops)
        ops = *plain;
    ops.timers = 16;
    ops.caps |= HF_CAP_LIST;
    ops.list = list;
    ops.board_post = board_post;
    ops.board_read = board_read;
    memset(notices, 0, sizeof(notices));
    hf__engine_register(&ops);
}

void deadlock_engine_release(void)
{
    hf__engine_register(NULL);
}
