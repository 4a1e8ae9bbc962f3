/* SPDX-License-Identifier: MIT */
/* etcd.c - an etcd cluster for a test, and a word with it. */
#include "etcd.h"

#include <stdarg.h>
#include <stdlib.h>

#include "event.h"

static char *keep(char *text)
{
    if (!text)
        FAIL("out of memory");
    test_defer(free, text);
    return text;
}

static char *format_url(int port)
{
    char *url = NULL;

    if (asprintf(&url, "http://127.0.0.1:%d", port) < 0)
        FAIL("out of memory");
    return keep(url);
}

/* The program that @variable names, or that of the PATH. */
static const char *program(const char *variable, const char *standard)
{
    const char *given = getenv(variable);

    return given ? given : standard;
}

static struct server *start_member(const char *name, const char *listen,
                                   const char *peer, const char *cluster)
{
    const char *const words[] = {program("HOLDFAST_TEST_ETCD", "etcd"),
                                 "--name",
                                 name,
                                 "--data-dir",
                                 "{dir}/data",
                                 "--listen-client-urls",
                                 "http://127.0.0.1:{port}",
                                 "--advertise-client-urls",
                                 "http://127.0.0.1:{port}",
                                 "--listen-peer-urls",
                                 listen,
                                 "--initial-advertise-peer-urls",
                                 peer,
                                 "--initial-cluster",
                                 cluster,
                                 "--heartbeat-interval",
                                 "60",
                                 "--election-timeout",
                                 "660",
                                 "--logger",
                                 "zap",
                                 "--log-level",
                                 "warn",
                                 NULL};
    const char **copy = malloc(sizeof(words));

    if (!copy)
        FAIL("out of memory");
    memcpy(copy, words, sizeof(words));
    test_defer(free, copy);
    return server_start(copy);
}

static struct etcd *start_members(int n, bool linked)
{
    static const char *const names[ETCD_MEMBERS] = {"m0", "m1", "m2"};
    struct etcd *etcd = calloc(1, sizeof(*etcd));
    char *listens[ETCD_MEMBERS];
    char *peers[ETCD_MEMBERS];
    char *cluster = NULL;
    size_t len;
    FILE *out = open_memstream(&cluster, &len);

    if (!etcd || !out)
        FAIL("out of memory");
    test_defer(free, etcd);
    etcd->n = n;
    for (int i = 0; i < n; i++) {
        int port = server_free_port();

        listens[i] = format_url(port);
        if (linked)
            etcd->links[i] = proxy_start(port);
        peers[i] = linked ? format_url(proxy_port(etcd->links[i])) : listens[i];
        (void)fprintf(out, "%s%s=%s", i > 0 ? "," : "", names[i], peers[i]);
    }
    (void)fclose(out);
    (void)keep(cluster);
    for (int i = 0; i < n; i++)
        etcd->members[i] =
            start_member(names[i], listens[i], peers[i], cluster);
    EVENTUALLY(strstr(etcd_ctl(etcd, "endpoint health"), "unhealthy") == NULL);
    EVENTUALLY(etcd_leader(etcd) >= 0);
    return etcd;
}

struct etcd *etcd_start(int n)
{
    return start_members(n, /* linked= */ false);
}

struct etcd *etcd_start_linked(void)
{
    return start_members(ETCD_MEMBERS, /* linked= */ true);
}

void etcd_cut(struct etcd *etcd, int member)
{
    for (int i = 0; i < etcd->n; i++) {
        if (i != member)
            proxy_refuse_process(etcd->links[i],
                                 server_pid(etcd->members[member]));
    }
    proxy_refuse(etcd->links[member], true);
    proxy_reset(etcd->links[member]);
}

const char *etcd_ctl(struct etcd *etcd, const char *format, ...)
{
    static char answer[1 << 20];
    char command[2048];
    size_t used = 0;
    size_t got;
    va_list args;
    FILE *pipe;
    int n = snprintf(command, sizeof(command),
                     "ETCDCTL_API=3 '%s' --command-timeout=5s --endpoints=",
                     program("HOLDFAST_TEST_ETCDCTL", "etcdctl"));

    for (int i = 0; i < etcd->n; i++)
        n +=
            snprintf(command + n, sizeof(command) - (size_t)n, "%s127.0.0.1:%d",
                     i > 0 ? "," : "", server_port(etcd->members[i]));
    command[n++] = ' ';
    va_start(args, format);
    n += vsnprintf(command + n, sizeof(command) - (size_t)n, format, args);
    va_end(args);
    (void)snprintf(command + n, sizeof(command) - (size_t)n, " 2>&1");
    pipe = popen(command, "re");
    if (!pipe)
        FAIL("popen: etcdctl");
    while ((got = fread(answer + used, 1, sizeof(answer) - 1 - used, pipe)) > 0)
        used += got;
    answer[used] = '\0';
    (void)pclose(pipe);
    return answer;
}

static unsigned long long number_after(const char *text, const char *word)
{
    const char *at = strstr(text, word);

    return at ? strtoull(at + strlen(word), NULL, 10) : 0;
}

int etcd_leader(struct etcd *etcd)
{
    for (int i = 0; i < etcd->n; i++) {
        struct etcd one = {.members = {etcd->members[i]}, .n = 1};
        const char *status = etcd_ctl(&one, "endpoint status -w json");
        unsigned long long leader = number_after(status, "\"leader\":");

        if (leader != 0 && leader == number_after(status, "\"member_id\":"))
            return i;
    }
    return -1;
}

int etcd_keys(struct etcd *etcd, const char *name)
{
    const char *line = etcd_ctl(etcd, "get --prefix --keys-only '%s%s'", name,
                                *name ? "/" : "");
    int count = 0;

    while (*line) {
        size_t len = strcspn(line, "\n");

        /* Signs beside the queues go with their lease. */
        count += len > 0 && (*name || line[0] != '~');
        line += len + (line[len] == '\n');
    }
    return count;
}

const char *etcd_url(const int *ports, int n, const char *query)
{
    char *url = NULL;
    size_t len;
    FILE *out = open_memstream(&url, &len);

    if (!out)
        FAIL("out of memory");
    (void)fprintf(out, "etcd://");
    for (int i = 0; i < n; i++)
        (void)fprintf(out, "%s127.0.0.1:%d", i > 0 ? "," : "", ports[i]);
    (void)fprintf(out, "?%s", query);
    (void)fclose(out);
    return keep(url);
}

hf_client *etcd_open(struct etcd *etcd, const char *query)
{
    int ports[ETCD_MEMBERS];

    for (int i = 0; i < etcd->n; i++)
        ports[i] = server_port(etcd->members[i]);
    return client_open(etcd_url(ports, etcd->n, query));
}

hf_client *etcd_open_port(int port, const char *query)
{
    return client_open(etcd_url(&port, 1, query));
}

struct etcd_detour etcd_detour(const char *query)
{
    struct etcd_detour at = {.etcd = etcd_start(1)};

    at.proxy = proxy_start(server_port(at.etcd->members[0]));
    at.client = etcd_open_port(proxy_port(at.proxy), query);
    return at;
}
