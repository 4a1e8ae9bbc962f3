/* SPDX-License-Identifier: MIT */
/*
 * metrics.c - holdfast metrics: what the store shows, for Prometheus.
 *
 * One scrape lists the locks and writes one family after the other, a series
 * for each name. It goes to stdout, to a file that node_exporter reads (written
 * beside it and renamed, so that nobody reads half of it), or to clients
 * that ask by HTTP. The server answers one client at a time, reads no more than a
 * request line needs, and gives a client two seconds for its request and two for
 * the whole response.
 *
 * Failure: a server whose engine does not answer tells holdfast_up 0 and goes
 * on; the other forms fail with the exit code of the error. Names beyond
 * NAMES_MAX are counted, not told: each costs Prometheus memory.
 */
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli.h"
#include "lock.h"
#include "look.h"
#include "options.h"
#include "peer.h"
#include "signals.h"
#include "text.h"
#include "textfile.h"

static const char help[] =
    "Usage: holdfast metrics [PREFIX] [--textfile FILE | --listen HOST:PORT]\n"
    "What the store shows of locks whose names begin with PREFIX, as text for\n"
    "Prometheus: holders, waiters, the oldest of each, the shortest lease.\n\n"
    "      --textfile FILE     for node_exporter: FILE is replaced at once\n"
    "      --listen HOST:PORT  answer GET /metrics until TERM, such as\n"
    "                          127.0.0.1:9912; port 0 is any free one\n"
    "  -u URL, -c FILE, --profile NAME, -o KEY=VALUE\n\n"
    "Exit: 0; 69 engine unreachable; else as ls.\n";

enum {
    NAMES_MAX = 1000,
    REQUEST_MAX = 4096,
    PATIENCE_MS = 2000,
    PAUSE_MS = 100
};

static struct {
    const char *textfile;
    const char *listen;
} options;

static const struct option metrics_options[] = {
    {0, "textfile", OPTION_TEXT, &options.textfile, NULL, "FILE"},
    {0, "listen", OPTION_TEXT, &options.listen, NULL, "HOST:PORT"},
    {0, NULL, OPTION_FLAG, NULL, NULL, NULL},
};
static const struct option *const tables[] = {metrics_options, NULL};

/* What one name shows; times in ms, -1 if the store does not know. */
enum { HOLDERS, WAITERS, HELD_MS, WAITED_MS, LEASE_MS, VALUES };

static const struct {
    const char *name;
    const char *help;
    bool seconds;
} families[VALUES] = {
    [HOLDERS] = {"holdfast_lock_holders", "Holders of the lock.", false},
    [WAITERS] = {"holdfast_lock_waiters", "Waiters for the lock.", false},
    [HELD_MS] = {"holdfast_lock_held_seconds",
                 "For how long the first holder has it.", true},
    [WAITED_MS] = {"holdfast_lock_oldest_wait_seconds",
                   "For how long the oldest waiter has waited.", true},
    [LEASE_MS] = {"holdfast_lock_lease_seconds",
                  "The shortest lease that is left.", true},
};

static int64_t value_of(const struct look_lock *seen, size_t family)
{
    const int64_t values[VALUES] = {seen->holders, seen->waiters, seen->held_ms,
                                    seen->wait_ms, seen->lease_ms};

    return values[family];
}

static void write_label(FILE *to, const char *text)
{
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', to);
        fputc(*text, to);
    }
}

static void write_family(FILE *to, const struct look *look, size_t family)
{
    fprintf(to, "# HELP %s %s\n# TYPE %s gauge\n", families[family].name,
            families[family].help, families[family].name);
    for (size_t i = 0; i < look->n && i < NAMES_MAX; i++) {
        int64_t value = value_of(&look->locks[i], family);

        if (value < 0)
            continue;
        fprintf(to, "%s{name=\"", families[family].name);
        write_label(to, text_safe(look->locks[i].name));
        if (families[family].seconds)
            fprintf(to, "\"} %.3f\n", (double)value / 1e3);
        else
            fprintf(to, "\"} %" PRId64 "\n", value);
    }
}

static void write_gauge(FILE *to, const char *name, const char *about,
                        size_t value)
{
    fprintf(to, "# HELP %s %s\n# TYPE %s gauge\n%s %zu\n", name, about, name,
            name, value);
}

/* List, and write the text. 0 or HF_E*. */
static int scrape_to(FILE *to, hf_client *client, const char *prefix,
                     hf_error *err)
{
    struct look look = {0};
    int rc = look_list(&look, client, prefix, err);

    write_gauge(to, "holdfast_up", "Whether the engine answers.", rc == 0);
    if (rc == 0) {
        write_gauge(to, "holdfast_locks", "Names with a holder or a waiter.",
                    look.n);
        write_gauge(to, "holdfast_locks_left_off", "Names without series.",
                    look.n > NAMES_MAX ? look.n - NAMES_MAX : 0);
        for (size_t family = 0; family < VALUES; family++)
            write_family(to, &look, family);
    }
    look_forget(&look);
    return rc;
}

/* ---- a file --------------------------------------------------------------- */

static int cannot_write(const char *path)
{
    fprintf(stderr, "holdfast: cannot write %s: %s\n", text_safe(path),
            strerror(errno));
    return CLI_USAGE;
}

/* What scrape_to() needs. */
struct request {
    hf_client *client;
    const char *prefix;
    hf_error err;
};

static int fill(FILE *to, void *ctx)
{
    struct request *request = ctx;

    return scrape_to(to, request->client, request->prefix, &request->err);
}

static int write_textfile(hf_client *client, const char *prefix)
{
    struct request request = {.client = client, .prefix = prefix};
    int rc = textfile_write(options.textfile, fill, &request);

    if (rc == 0)
        return CLI_DONE;
    return request.err.code ? cli_fail(&request.err)
                            : cannot_write(options.textfile);
}

/* ---- HTTP ----------------------------------------------------------------- */

static void respond(int fd, const char *status, const char *body, size_t len)
{
    int64_t until = lock_now_ms() + PATIENCE_MS;
    char head[256];
    int n = snprintf(head, sizeof(head),
                     "HTTP/1.1 %s\r\n"
                     "Content-Type: text/plain; version=0.0.4; charset=utf-8"
                     "\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
                     status, len);

    if (peer_send(fd, head, (size_t)n, until))
        (void)peer_send(fd, body, len, until);
}

static void answer(int fd, hf_client *client, const char *prefix)
{
    char request[REQUEST_MAX];
    char *body = NULL;
    size_t len = 0;
    hf_error err = {0};

    if (!peer_read(fd, request, sizeof(request), lock_now_ms() + PATIENCE_MS))
        return;
    if (strncmp(request, "GET /metrics ", 13) != 0) {
        static const char hint[] = "GET /metrics\n";

        respond(fd, "404 Not Found", hint, sizeof(hint) - 1);
        return;
    }

    FILE *memory = open_memstream(&body, &len);
    if (!memory)
        return;
    (void)scrape_to(memory, client, prefix, &err); /* holdfast_up tells */
    if (fclose(memory) == 0)
        respond(fd, "200 OK", body, len);
    free(body);
}

/* Bind to HOST:PORT, both numbers; "[::1]:9912" for IPv6. */
static int bind_to(const char *where)
{
    struct addrinfo hints = {.ai_flags =
                                 AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
                             .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char host[64] = "";
    const char *colon = strrchr(where, ':');
    size_t len = colon ? (size_t)(colon - where) : 0;
    bool brackets = len > 1 && where[0] == '[' && where[len - 1] == ']';
    int on = 1;
    int fd = -1;

    if (len == 0 || len >= sizeof(host))
        return -1;
    snprintf(host, sizeof(host), "%.*s", (int)(brackets ? len - 2 : len),
             where + brackets);
    if (getaddrinfo(host, colon + 1, &hints, &found) != 0) {
        errno = EINVAL;
        return -1;
    }
    fd =
        socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 &&
        (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
         bind(fd, found->ai_addr, found->ai_addrlen) != 0 ||
         listen(fd, 16) != 0)) {
        close(fd);
        fd = -1;
    }
    freeaddrinfo(found);
    return fd;
}

static void say_address(int fd)
{
    struct sockaddr_storage address;
    socklen_t len = sizeof(address);
    char host[64];
    char port[16];

    if (!cli.quiet && getsockname(fd, (struct sockaddr *)&address, &len) == 0 &&
        getnameinfo((struct sockaddr *)&address, len, host, sizeof(host), port,
                    sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) == 0)
        fprintf(stderr, "holdfast: listening on %s:%s\n", host, port);
}

static int serve(hf_client *client, const char *prefix)
{
    int fd = bind_to(options.listen);

    if (fd < 0)
        return cli_usage("cannot listen on %s, which is HOST:PORT in numbers: "
                         "%s",
                         options.listen, strerror(errno));
    say_address(fd);
    while (!peer_must_end()) {
        int peer;

        if (!signals_wait(fd, /* timeout_ms= */ -1))
            continue;
        peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
        if (peer < 0) { /* without descriptors the client stays in the queue */
            (void)signals_wait(/* fd= */ -1, PAUSE_MS);
            continue;
        }
        answer(peer, client, prefix);
        close(peer);
    }
    close(fd);
    return CLI_DONE;
}

static int check_options(const struct words *words)
{
    (void)words;
    if (options.listen && options.textfile)
        return cli_usage("choose one of --listen and --textfile");
    signals_begin();
    return 0;
}

static int export(hf_client *client, const struct words *words)
{
    hf_error err = {0};
    int rc = CLI_DONE;

    if (options.listen)
        rc = serve(client, words->word[0]);
    else if (options.textfile)
        rc = write_textfile(client, words->word[0]);
    else if (scrape_to(stdout, client, words->word[0], &err) != 0)
        rc = cli_fail(&err);
    signals_leave();
    return rc;
}

VERB_RUN(metrics, 0, check_options, export)

VERB(metrics, "[PREFIX]", "holders, waiters and leases, for Prometheus");
