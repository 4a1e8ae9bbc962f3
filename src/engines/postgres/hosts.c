/* SPDX-License-Identifier: MIT */
/*
 * hosts.c - the hosts that libpq connects to, resolved.
 *
 * libpq resolves names itself, and blocks while it does. So we resolve each
 * host, one after the other, and libpq gets its addresses beside its name, which
 * it still needs for certificates: a host with three addresses becomes three
 * entries of libpq's lists, tried in order. Hosts that cannot be resolved are
 * left out as long as there is another. The hosts are those of the URL; without
 * any, those of host= and port= in its query, or what libpq would take instead
 * (PGHOST, PGPORT, PGSERVICE).
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>

#include "engines/postgres/postgres.h"
#include "net/resolve.h"

enum { STANDARD_PORT = 5432 };

static const char *in_query(const struct hf__pg *postgres, const char *key)
{
    const char *value = NULL;

    for (const struct hf__url_pair *pair = postgres->base.host->url->query;
         pair; pair = pair->next) {
        if (strcmp(pair->key, key) == 0 && pair->value[0] != '\0')
            value = pair->value;
    }
    return value;
}

/* The value that libpq has for @key without us, in @options; NULL: none. */
static const char *by_default(const PQconninfoOption *options, const char *key)
{
    for (; options && options->keyword; options++) {
        if (strcmp(options->keyword, key) == 0)
            return options->val && options->val[0] ? options->val : NULL;
    }
    return NULL;
}

/* The next element of a list with commas. */
static char *next_element(const char **list)
{
    size_t len = strcspn(*list, ",");
    char *element = hf__strndup(*list, len);

    *list += len + ((*list)[len] == ',');
    return element;
}

/* One port for all hosts, or one for each. */
static int read_port(const char **ports, bool one, int *ret_port)
{
    const char *from = *ports;
    char *port = next_element(&from);
    char *end = port;
    long number = port && port[0] ? strtol(port, &end, 10) : STANDARD_PORT;
    bool good = port && *end == '\0' && number > 0 && number <= UINT16_MAX;

    hf__free(port);
    if (!one)
        *ports = from;
    *ret_port = (int)number;
    return good ? 0 : HF_ECONFIG;
}

static int read_hosts(struct hf__pg *postgres, const char *hosts,
                      const char *ports, hf_error *err)
{
    bool one = !strchr(ports, ',');

    for (size_t i = 0; *hosts; i++) {
        struct hf__url_host *host = &postgres->hosts[i];

        if (i == HF__URL_HOSTS)
            return hf__fail(err, HF_ECONFIG, "host=: more than %d hosts",
                            HF__URL_HOSTS);
        host->host = next_element(&hosts);
        postgres->hosts_n = i + 1;
        if (!host->host)
            return hf__fail(err, HF_ENOMEM, "out of memory");
        if (host->host[0] == '\0' || read_port(&ports, one, &host->port) != 0)
            return hf__fail(err, HF_ECONFIG,
                            "host=, port=: write names and numbers with "
                            "commas in between");
    }
    return 0;
}

int hf__pg_hosts_open(struct hf__pg *postgres, hf_error *err)
{
    const char *hosts = in_query(postgres, "host");
    const char *ports = in_query(postgres, "port");
    PQconninfoOption *options = NULL;
    int rc;

    if (postgres->base.host->url->n_hosts > 0)
        return !hosts ? 0
                      : hf__fail(err, HF_ECONFIG,
                                 "host= beside a host of the URL: name all "
                                 "hosts in one place");
    if (!hosts && in_query(postgres, "service"))
        return hf__fail(err, HF_ECONFIG,
                        "service=: libpq would block while it resolves the "
                        "host of a service; name the host in the URL");
    if ((!hosts || !ports) && getauxval(AT_SECURE) == 0)
        options = hf__pq.PQconndefaults();
    if (!hosts)
        hosts = by_default(options, "host");
    if (!ports)
        ports = by_default(options, "port");
    rc = read_hosts(postgres, hosts ? hosts : "", ports ? ports : "", err);
    hf__pq.PQconninfoFree(options);
    return rc;
}

void hf__pg_hosts_close(struct hf__pg *postgres)
{
    for (size_t i = 0; i < postgres->hosts_n; i++)
        hf__free(postgres->hosts[i].host);
}

/* The hosts of the URL, or else those of its query. */
static const struct hf__url_host *host_at(const struct hf__pg *postgres,
                                          size_t i)
{
    const struct hf__url *url = postgres->base.host->url;

    if (i < url->n_hosts)
        return &url->hosts[i];
    return url->n_hosts == 0 && i < postgres->hosts_n ? &postgres->hosts[i]
                                                      : NULL;
}

void hf__pg_hosts_forget(struct hf__pg_conn *conn)
{
    hf__buf_release(&conn->hosts);
    hf__buf_release(&conn->addresses);
    hf__buf_release(&conn->ports);
}

/* ---- hosts --------------------------------------------------------------- */

static void add_entry(struct hf__pg_conn *conn, const char *host,
                      const char *address, const char *port)
{
    const char *comma = conn->hosts.len > 0 ? "," : "";

    hf__buf_printf(&conn->hosts, "%s%s", comma, host);
    hf__buf_printf(&conn->addresses, "%s%s", comma, address);
    hf__buf_printf(&conn->ports, "%s%s", comma, port);
}

static void add_addresses(struct hf__pg_conn *conn, const char *host,
                          const struct addrinfo *list)
{
    for (; list; list = list->ai_next) {
        char address[64];
        char port[8];

        if (getnameinfo(list->ai_addr, list->ai_addrlen, address,
                        sizeof(address), port, sizeof(port),
                        NI_NUMERICHOST | NI_NUMERICSERV) == 0)
            add_entry(conn, host, address, port);
    }
}

static int port_of(const struct hf__url_host *host)
{
    return host->port != 0 ? host->port : STANDARD_PORT;
}

static int go_on(struct hf__pg_conn *conn, hf_error *err);

static void resolved(struct hf__io *io, uint32_t events)
{
    struct hf__pg_conn *conn = HF_CONTAINER_OF(io, struct hf__pg_conn, io);
    struct addrinfo *list = NULL;
    hf_error err;

    (void)events;
    (void)hf__resolve_take(conn->resolving, &list); /* or it is left out */
    hf__pg_hosts_stop(conn, /* forked= */ false);
    add_addresses(conn, host_at(conn->engine, conn->host)->host, list);
    if (list)
        freeaddrinfo(list);
    conn->host++;
    if (go_on(conn, &err) != 0)
        hf__pg_connection_fail(conn, &err);
}

static int look_up(struct hf__pg_conn *conn, const struct hf__url_host *host,
                   hf_error *err)
{
    if (hf__resolve_start(host->host, port_of(host), &conn->resolving) != 0)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    conn->io.fd = hf__resolve_fd(conn->resolving);
    conn->io.ready = resolved;
    if (hf__io_start(conn->engine->base.host->loop, &conn->io, EPOLLIN) != 0)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    return 0;
}

/* A socket of this machine, which has a path instead of an address. */
static void add_socket(struct hf__pg_conn *conn,
                       const struct hf__url_host *host)
{
    char port[16];

    (void)snprintf(port, sizeof(port), "%d", port_of(host));
    add_entry(conn, host->host, "", port);
}

static int go_on(struct hf__pg_conn *conn, hf_error *err)
{
    const struct hf__url_host *host;

    for (; (host = host_at(conn->engine, conn->host)); conn->host++) {
        struct addrinfo *list;

        if (host->host[0] == '/' || host->host[0] == '@') {
            add_socket(conn, host);
            continue;
        }
        list = hf__resolve_numeric(host->host, port_of(host));
        if (!list)
            return look_up(conn, host, err);
        add_addresses(conn, host->host, list);
        freeaddrinfo(list);
    }
    if (conn->host > 0 && conn->hosts.len == 0)
        return hf__fail(err, HF_EUNAVAILABLE, "%s: the name is not known",
                        conn->engine->peer);
    return hf__pg_settings_connect(conn, err);
}

int hf__pg_hosts_resolve(struct hf__pg_conn *conn, hf_error *err)
{
    int rc;

    conn->host = 0;
    hf__pg_hosts_forget(conn);
    rc = go_on(conn, err);
    if (rc != 0)
        hf__pg_connection_stop(conn, /* forked= */ false);
    return rc;
}

void hf__pg_hosts_stop(struct hf__pg_conn *conn, bool forked)
{
    if (forked) {
        hf__resolve_abandon(conn->resolving);
        return;
    }
    if (conn->resolving) {
        hf__io_stop(conn->engine->base.host->loop, &conn->io);
        hf__resolve_free(conn->resolving);
        conn->resolving = NULL;
    }
}
