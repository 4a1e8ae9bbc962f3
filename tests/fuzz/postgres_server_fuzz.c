/* SPDX-License-Identifier: MIT */
/*
 * postgres_server_fuzz.c - a PostgreSQL server that says anything.
 *
 * The engine is real, libpq is real, and so are the sockets between them and
 * the server, which is here. It lets everybody in, greets as it should, and
 * then says what the fuzzer wants on any of its connections: whole messages
 * that could be true, or bytes. The core is fuzz_core.c.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engines/postgres/postgres.h"
#include "fuzz_core.h"

enum { CONNECTIONS = 4, PATIENCE = 64 };

static int listener = -1;
static int port;
static int connections[CONNECTIONS];
static bool greeted[CONNECTIONS];
static int connections_n;

/* ---- messages -------------------------------------------------------------- */

static void put_number(struct hf__buf *to, uint32_t number, int bytes)
{
    while (bytes-- > 0)
        hf__buf_add_char(to, (char)(number >> (8 * bytes) & 0xff));
}

static void put_text(struct hf__buf *to, const char *text)
{
    hf__buf_append(to, text, strlen(text) + 1);
}

static void put_message(struct hf__buf *to, char type, const void *body,
                        size_t len)
{
    hf__buf_add_char(to, type);
    put_number(to, (uint32_t)len + 4, 4);
    hf__buf_append(to, body, len);
}

static void put_body(struct hf__buf *to, char type, struct hf__buf *body)
{
    put_message(to, type, hf__buf_text(body), body->len);
    hf__buf_release(body);
}

static void put_columns(struct hf__buf *to, int n)
{
    struct hf__buf body = {0};

    put_number(&body, (uint32_t)n, 2);
    for (int i = 0; i < n; i++) {
        put_text(&body, "c");
        put_number(&body, 0, 4);
        put_number(&body, 0, 2);
        put_number(&body, 25, 4); /* text */
        put_number(&body, UINT32_MAX, 2);
        put_number(&body, UINT32_MAX, 4);
        put_number(&body, 0, 2);
    }
    put_body(to, 'T', &body);
}

static void put_error(struct hf__buf *to, const char *state)
{
    bool fatal = strcmp(state, "57P01") == 0;
    struct hf__buf body = {0};

    put_text(&body, fatal ? "VFATAL" : "VERROR");
    hf__buf_add_char(&body, 'C');
    put_text(&body, state);
    put_text(&body, "Mno");
    hf__buf_add_char(&body, '\0');
    put_body(to, 'E', &body);
}

/* ---- what the fuzzer wants --------------------------------------------------- */

struct wish {
    const uint8_t *at;
    const uint8_t *end;
};

static uint8_t take(struct wish *wish)
{
    return wish->at < wish->end ? *wish->at++ : 0;
}

static size_t take_some(struct wish *wish, size_t most, const uint8_t **ret)
{
    size_t left = (size_t)(wish->end - wish->at);
    size_t n = take(wish);

    n = n > most ? most : n;
    left = (size_t)(wish->end - wish->at);
    n = n > left ? left : n;
    *ret = wish->at;
    wish->at += n;
    return n;
}

/* A byte for each value: NULL, a number, true, or some bytes. */
static void put_row(struct hf__buf *to, int n, struct wish *wish)
{
    struct hf__buf body = {0};

    put_number(&body, (uint32_t)n, 2);
    for (int i = 0; i < n; i++) {
        uint8_t kind = take(wish);
        const uint8_t *bytes;
        char digits[HF__PG_DIGITS];
        size_t len;

        if (kind < 8) {
            put_number(&body, UINT32_MAX, 4);
        } else if (kind < 128) {
            len = (size_t)snprintf(digits, sizeof(digits), "%d", kind - 9);
            put_number(&body, (uint32_t)len, 4);
            hf__buf_append(&body, digits, len);
        } else if (kind < 160) {
            put_number(&body, 1, 4);
            hf__buf_add_char(&body, kind & 1 ? 't' : 'f');
        } else {
            len = take_some(wish, 64, &bytes);
            put_number(&body, (uint32_t)len, 4);
            hf__buf_append(&body, bytes, len);
        }
    }
    put_body(to, 'D', &body);
}

static void put_notification(struct hf__buf *to, struct wish *wish)
{
    struct hf__buf body = {0};
    uint8_t ticket = take(wish);
    uint8_t token = take(wish);

    put_number(&body, 1, 4);
    put_text(&body, "hf_0123456789abcdef");
    hf__buf_printf(&body, "%c %s%d %d", ticket & 128 ? 'b' : 'g',
                   ticket & 64 ? "" : "0123456789abcdef", ticket % 8, token);
    hf__buf_add_char(&body, '\0');
    put_body(to, 'A', &body);
}

static void put_wish(struct hf__buf *to, uint8_t what, struct wish *wish)
{
    static const char *const tags[] = {"SELECT 1", "INSERT 0 1", "INSERT 0 0",
                                       "DELETE 1", "DELETE 0",   "COMMIT",
                                       "ROLLBACK", "BEGIN"};
    static const char *const states[] = {"57014", "55P03", "40P01", "42501",
                                         "57P01", "26000", "53100", "XX"};
    int n = what >> 3 & 7;
    const uint8_t *bytes;
    size_t len;
    char type;

    switch (what & 7) {
    case 0: /* any message */
        type = (char)take(wish);
        len = take_some(wish, 255, &bytes);
        put_message(to, type, bytes, len);
        return;
    case 1: /* prepared, bound */
        put_message(to, n & 1 ? '1' : '2', "", 0);
        return;
    case 2:
        put_columns(to, n);
        return;
    case 3:
        put_row(to, n, wish);
        return;
    case 4:
        put_message(to, 'C', tags[n], strlen(tags[n]) + 1);
        return;
    case 5:
        put_message(to, 'Z', &"ITE?"[n % 4], 1);
        return;
    case 6:
        put_error(to, states[n]);
        return;
    default:
        if (n == 7) { /* any bytes */
            len = take_some(wish, 255, &bytes);
            hf__buf_append(to, bytes, len);
        } else {
            put_notification(to, wish);
        }
    }
}

/* ---- the server ------------------------------------------------------------- */

static void listen_once(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof(address);

    if (listener >= 0)
        return;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    CHECK(listener >= 0);
    CHECK(bind(listener, (struct sockaddr *)&address, len) == 0);
    CHECK(listen(listener, CONNECTIONS) == 0);
    CHECK(getsockname(listener, (struct sockaddr *)&address, &len) == 0);
    port = ntohs(address.sin_port);
}

static void say(int i, struct hf__buf *what)
{
    CHECK(!hf__buf_failed(what));
    (void)send(connections[i], hf__buf_text(what), what->len,
               MSG_DONTWAIT | MSG_NOSIGNAL);
    hf__buf_release(what);
}

/* Everybody is let in, as number 4242. */
static void welcome(int i)
{
    static const char settings[] = "server_version\0"
                                   "15.1";
    struct hf__buf words = {0};

    put_message(&words, 'R', "\0\0\0\0", 4);
    put_message(&words, 'S', settings, sizeof(settings));
    put_message(&words, 'K', "\0\0\x10\x92\0\0\0\1", 8);
    put_message(&words, 'Z', "I", 1);
    say(i, &words);
}

/* … and its greeting answered, also after LISTEN. */
static void greet(int i)
{
    static const char row[] = "\0\5\0\0\0\0044242\0\0\0\1x\0\0\0\1f\0\0\0\1t"
                              "\0\0\0\4true";
    struct hf__buf words = {0};

    put_columns(&words, 5);
    put_message(&words, 'D', row, sizeof(row) - 1);
    put_message(&words, 'C', "SELECT 1", 9);
    put_message(&words, 'Z', "I", 1);
    say(i, &words);
}

/* New connections are welcomed, and what was said on others is read; a query as
 * text is a greeting. */
static void serve(void)
{
    char bytes[4096];
    int fd;

    while (connections_n < CONNECTIONS &&
           (fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >=
               0) {
        greeted[connections_n] = false;
        connections[connections_n++] = fd;
    }
    for (int i = 0; i < connections_n; i++) {
        ssize_t n = recv(connections[i], bytes, sizeof(bytes), MSG_DONTWAIT);

        if (n <= 0)
            continue;
        if (!greeted[i])
            welcome(i);
        else if (bytes[0] == 'Q')
            greet(i);
        greeted[i] = true;
    }
}

/* Until nobody has anything to say. */
static void pump(struct fuzz_core *core)
{
    struct hf__loop_batch batch;

    for (int i = 0; i < PATIENCE; i++) {
        serve();
        batch.n = 0;
        (void)hf__loop_poll(&core->loop, &batch, hf__now());
        if (batch.n == 0)
            return;
        hf__loop_handle(&core->loop, &batch);
    }
}

static void close_connections(void)
{
    int fd;

    while (connections_n > 0)
        (void)close(connections[--connections_n]);
    while ((fd = accept(listener, NULL, NULL)) >= 0)
        (void)close(fd);
}

/* ---- results ------------------------------------------------------------------ */

/* libpq itself loses a result that a Sync cuts off. What it gave us is counted
 * here instead. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libpq.so";
}

static PGresult *(*get_result)(PGconn *conn);
static void (*clear_result)(PGresult *result);
static int results;

static PGresult *count_result(PGconn *conn)
{
    PGresult *result = get_result(conn);

    results += result != NULL;
    return result;
}

static void discount_result(PGresult *result)
{
    results -= result != NULL;
    clear_result(result);
}

static void count_results(void)
{
    if (get_result)
        return;
    CHECK(hf__pq_load(NULL) == 0);
    get_result = hf__pq.PQgetResult;
    clear_result = hf__pq.PQclear;
    hf__pq.PQgetResult = count_result;
    hf__pq.PQclear = discount_result;
}

/* ---- one input --------------------------------------------------------------- */

static bool keeps(struct hf__engine *engine, struct hf__ticket *ticket)
{
    return hf__pg_ticket(hf__pg_of(engine), ticket)->entry.ticket != NULL;
}

/* Each wish is said on one connection; time passes now and then. */
static void play(struct fuzz_core *core, struct wish *wish)
{
    while (wish->at < wish->end && connections_n > 0) {
        struct hf__buf words = {0};
        int i = 0;

        while (wish->at < wish->end) {
            uint8_t what = take(wish);

            i = (what >> 6) % connections_n;
            put_wish(&words, what, wish);
            if ((what & 7) == 5 || words.len > 512)
                break;
        }
        say(i, &words);
        pump(core);
        if (i == 3)
            fuzz_core_fire();
    }
}

static void run(struct fuzz_core *core, struct wish *wish)
{
    struct hf__engine *engine = core->engine;

    (void)engine->ops->connect(engine, NULL);
    pump(core);
    if (fuzz_core_connected()) {
        fuzz_core_ask(engine);
        pump(core);
        fuzz_core_beat(engine);
        play(core, wish);
    }
    close_connections();
    for (int i = 0; i < 4; i++) {
        pump(core);
        fuzz_core_fire();
    }
    close_connections();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const modes[] = {"table", "advisory", "for_update",
                                        "table"};
    struct wish wish = {data + 1, data + size};
    struct fuzz_core core;
    char url[128];

    if (size == 0)
        return 0;
    listen_once();
    count_results();
    fuzz_core_keeps(keeps);
    fuzz_core_hold(data[0] & 8);
    (void)snprintf(url, sizeof(url),
                   "postgresql://fuzz:fuzz@127.0.0.1:%d/fuzz?sslmode=disable",
                   port);
    fuzz_core_open(&core, &hf__engine_postgres, url,
                   (data[0] & 4) == 0 ? ""
                   : data[0] & 1      ? "shedlock"
                                      : "spring",
                   data[0] & 4 ? "" : modes[data[0] & 3]);
    CHECK(hf__loop_init(&core.loop) == 0);
    run(&core, &wish);
    fuzz_core_close(&core);
    CHECK(results == 0);
    return 0;
}
