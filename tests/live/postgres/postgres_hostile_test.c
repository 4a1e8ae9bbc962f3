/* SPDX-License-Identifier: MIT */
/*
 * postgres_hostile_test.c - a server that lets everybody in and then answers
 * what no statement of ours can answer. tests/fuzz/postgres_server_fuzz.c has
 * the rest of what it may say.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "postgres.h"
#include "proc.h"

/* ---- the server ------------------------------------------------------------- */

struct script {
    int listener;
    const char *greeting; /* what it answers, and how long that is */
    size_t len;
    bool endless; /* rows, again and again */
};

#define WORDS(text) (text), sizeof(text) - 1
#define MESSAGE(type, len, body) type "\0\0\0" len body
#define READY MESSAGE("Z", "\5", "I")
#define DONE MESSAGE("C", "\15", "SELECT 1\0")
/* Five columns of text. */
#define COLUMN "c\0\0\0\0\0\0\0\0\0\0\31\377\377\377\377\377\377\0\0"
#define COLUMNS MESSAGE("T", "\152", "\0\5" COLUMN COLUMN COLUMN COLUMN COLUMN)
#define VALUE(text) "\0\0\0\1" text
#define PID "\0\0\0\0044242"
#define GOOD_ROW                                                               \
    MESSAGE("D", "\42", "\0\5" PID VALUE("x") VALUE("f") VALUE("t") VALUE("t"))

static void hear(int fd, size_t most)
{
    char bytes[4096];

    if (recv(fd, bytes, most < sizeof(bytes) ? most : sizeof(bytes), 0) <= 0)
        _exit(0);
}

static void say(int fd, const char *words, size_t len)
{
    if (send(fd, words, len, MSG_NOSIGNAL) < 0)
        _exit(0);
}

static void serve(struct proc *self, void *arg)
{
    const struct script *script = arg;
    int fd = accept(script->listener, NULL, NULL);

    (void)self;
    hear(fd, 4096);
    say(fd, WORDS(MESSAGE("R", "\10", "\0\0\0\0")
                      MESSAGE("S", "\30", "server_version\00015.1\0")
                          MESSAGE("K", "\14", "\0\0\020\222\0\0\0\1") READY));
    hear(fd, 4096);
    if (script->endless)
        say(fd, WORDS(COLUMNS));
    do
        say(fd, script->greeting, script->len);
    while (script->endless);
    hear(fd, 4096);
}

/* What a client hears that meets this server. */
static int meet(const char *greeting, size_t len, bool endless, hf_error *err)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof(address);
    struct script script = {.greeting = greeting, .len = len};
    hf_client *client = NULL;
    char url[256];
    int rc;

    script.endless = endless;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    script.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(bind(script.listener, (struct sockaddr *)&address, size), 0);
    ASSERT_EQ(listen(script.listener, 1), 0);
    ASSERT_EQ(getsockname(script.listener, (struct sockaddr *)&address, &size),
              0);
    (void)proc_start(serve, &script);
    (void)snprintf(
        url, sizeof(url),
        "postgresql://me@127.0.0.1:%d/db?sslmode=disable&"
        "retry.policy=ntimes&retry.max_attempts=1&connect_timeout=20s",
        ntohs(address.sin_port));
    (void)close(script.listener);
    rc = hf_open(url, NULL, &client, err);
    ASSERT_TRUE(rc == HF_EUNAVAILABLE || rc == HF_EINTERNAL);
    return rc;
}

/* ---- what it says ------------------------------------------------------------ */

TEST(hostile, a_row_without_an_end_is_no_answer)
{
    hf_error err;

    (void)meet(WORDS(GOOD_ROW READY), false, &err);
    (void)meet(WORDS(COLUMNS GOOD_ROW READY), false, &err);
}

TEST(hostile, an_answer_of_another_shape_is_refused)
{
    static const char two_rows[] = COLUMNS GOOD_ROW GOOD_ROW DONE READY;
    static const char no_number[] =
        COLUMNS MESSAGE("D", "\37",
                        "\0\5" VALUE("x") VALUE("x") VALUE("f") VALUE("t")
                            VALUE("t")) DONE READY;
    static const char nothing[] = COLUMNS MESSAGE(
        "D", "\32",
        "\0\5\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377"
        "\377\377\377\377") DONE READY;
    hf_error err;

    (void)meet(WORDS(two_rows), false, &err);
    ASSERT_HAS(err.text, "cannot be");
    (void)meet(WORDS(no_number), false, &err);
    ASSERT_HAS(err.text, "cannot be");
    (void)meet(WORDS(nothing), false, &err);
    ASSERT_HAS(err.text, "cannot be");
}

static int64_t most_kb(void)
{
    struct rusage usage;

    ASSERT_EQ(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_maxrss;
}

/* Rows for ever: cut off long before the time for connecting is over, or memory
 * is. */
TEST(hostile, an_answer_that_does_not_end_is_cut_off)
{
    enum { ROWS = 1000 };
    size_t len = sizeof(GOOD_ROW) - 1;
    char *rows = malloc(ROWS * len);
    int64_t before_kb = most_kb();
    hf_error err;

    ASSERT_TRUE(rows != NULL);
    for (size_t i = 0; i < ROWS; i++)
        memcpy(rows + i * len, GOOD_ROW, len);
    (void)meet(rows, ROWS * len, true, &err);
    ASSERT_HAS(err.text, "does not end");
    ASSERT_LT(most_kb() - before_kb, 1024 * 1024);
    free(rows);
}
