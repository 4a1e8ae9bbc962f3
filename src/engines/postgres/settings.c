/* SPDX-License-Identifier: MIT */
/*
 * settings.c - what libpq is told: the URL, with its hosts resolved.
 *
 * libpq resolves names itself, and waits while it does. So each host of the
 * URL is looked up here, one after the other, and libpq gets its addresses
 * beside its name, which it still needs for certificates: a host with three
 * addresses becomes three entries of libpq's lists, tried in order. Hosts that
 * cannot be resolved are left out as long as there is another.
 *
 * Keys of the URL's query that are libpq's (ops->keys) are passed on as they
 * are.
 */
#include <stdio.h>

#include "engines/postgres/postgres.h"
#include "net/resolve.h"

enum { WORDS = 64, STANDARD_PORT = 5432 };

struct words {
    const char *keys[WORDS];
    const char *values[WORDS];
    int n;
};

static void put(struct words *words, const char *key, const char *value)
{
    if (!value || value[0] == '\0' || words->n == WORDS - 1)
        return;
    words->keys[words->n] = key;
    words->values[words->n++] = value;
}

static void put_query(struct words *words, const struct hf__postgres *postgres)
{
    const struct hf__url_pair *pair = postgres->base.host->url->query;

    for (; pair; pair = pair->next) {
        if (hf__engine_takes(postgres->base.host->url->scheme, pair->key))
            put(words, pair->key, pair->value);
    }
}

static void put_tls(struct words *words, const struct hf__settings *settings)
{
    if (settings->tls_ca[0] != '\0')
        put(words, "sslmode", settings->tls_verify ? "verify-full" : "require");
    put(words, "sslrootcert", settings->tls_ca);
    put(words, "sslcert", settings->tls_cert);
    put(words, "sslkey", settings->tls_key);
}

void hf__session_forget_hosts(struct hf__session *session)
{
    hf__buf_release(&session->hosts);
    hf__buf_release(&session->addresses);
    hf__buf_release(&session->ports);
}

static int connect_to(struct hf__session *session, hf_error *err)
{
    const struct hf__engine_host *host = session->engine->base.host;
    const struct hf__url *url = host->url;
    struct words words = {.n = 0};

    if (hf__buf_failed(&session->hosts) ||
        hf__buf_failed(&session->addresses) || hf__buf_failed(&session->ports))
        return hf__fail(err, HF_ENOMEM, "out of memory");
    put(&words, "fallback_application_name", "holdfast");
    put_tls(&words, host->settings);
    put(&words, "gssencmode", "disable"); /* see connection.c */
    put_query(&words, session->engine);
    put(&words, "host", hf__buf_text(&session->hosts));
    put(&words, "hostaddr", hf__buf_text(&session->addresses));
    put(&words, "port", hf__buf_text(&session->ports));
    put(&words, "user", url->user ? url->user : host->settings->user);
    put(&words, "password",
        url->password ? url->password : host->settings->password);
    put(&words, "dbname", url->path[0] == '/' ? url->path + 1 : "");
    put(&words, "client_encoding", "UTF8");
    session->conn = hf__pq.PQconnectStartParams(words.keys, words.values,
                                                /* expand_dbname= */ 0);
    if (!session->conn)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    hf__session_forget_hosts(session);
    if (hf__pq.PQstatus(session->conn) == CONNECTION_BAD) {
        const char *text = hf__pq.PQerrorMessage(session->conn);

        return hf__fail(err, HF_ECONFIG, "%s: %.*s", session->engine->peer,
                        (int)strcspn(text, "\n"), text);
    }
    hf__session_connecting(session);
    return 0;
}

/* ---- hosts --------------------------------------------------------------- */

static void add_entry(struct hf__session *session, const char *host,
                      const char *address, const char *port)
{
    const char *comma = session->hosts.len > 0 ? "," : "";

    hf__buf_printf(&session->hosts, "%s%s", comma, host);
    hf__buf_printf(&session->addresses, "%s%s", comma, address);
    hf__buf_printf(&session->ports, "%s%s", comma, port);
}

static void add_addresses(struct hf__session *session, const char *host,
                          const struct addrinfo *list)
{
    for (; list; list = list->ai_next) {
        char address[64];
        char port[8];

        if (getnameinfo(list->ai_addr, list->ai_addrlen, address,
                        sizeof(address), port, sizeof(port),
                        NI_NUMERICHOST | NI_NUMERICSERV) == 0)
            add_entry(session, host, address, port);
    }
}

static int port_of(const struct hf__url_host *host)
{
    return host->port != 0 ? host->port : STANDARD_PORT;
}

static int go_on(struct hf__session *session, hf_error *err);

static void resolved(struct hf__io *io, uint32_t events)
{
    struct hf__session *session = HF_CONTAINER_OF(io, struct hf__session, io);
    const struct hf__engine_host *host = session->engine->base.host;
    struct addrinfo *list = NULL;
    hf_error err;

    (void)events;
    if (hf__resolve_take(session->resolving, &list) == EAI_AGAIN && !list)
        list = NULL; /* this one is left out */
    hf__session_resolve_stop(session, /* forked= */ false);
    add_addresses(session, host->url->hosts[session->host].host, list);
    if (list)
        freeaddrinfo(list);
    session->host++;
    if (go_on(session, &err) != 0)
        hf__session_fail(session, &err);
}

static int look_up(struct hf__session *session, const struct hf__url_host *host,
                   hf_error *err)
{
    if (hf__resolve_start(host->host, port_of(host), &session->resolving) != 0)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    session->io.fd = hf__resolve_fd(session->resolving);
    session->io.ready = resolved;
    if (hf__io_start(session->engine->base.host->loop, &session->io, EPOLLIN) !=
        0)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    return 0;
}

static int go_on(struct hf__session *session, hf_error *err)
{
    const struct hf__url *url = session->engine->base.host->url;

    for (; session->host < url->n_hosts; session->host++) {
        const struct hf__url_host *host = &url->hosts[session->host];
        struct addrinfo *list = hf__resolve_numeric(host->host, port_of(host));

        if (!list)
            return look_up(session, host, err);
        add_addresses(session, host->host, list);
        freeaddrinfo(list);
    }
    if (url->n_hosts > 0 && session->hosts.len == 0)
        return hf__fail(err, HF_EUNAVAILABLE, "%s: the name is not known",
                        session->engine->peer);
    return connect_to(session, err);
}

int hf__session_resolve(struct hf__session *session, hf_error *err)
{
    int rc;

    session->host = 0;
    hf__session_forget_hosts(session);
    rc = go_on(session, err);
    if (rc != 0) {
        hf__session_stop(session, /* forked= */ false);
        return rc;
    }
    return 0;
}

void hf__session_resolve_stop(struct hf__session *session, bool forked)
{
    if (forked) {
        hf__resolve_abandon(session->resolving);
        return;
    }
    if (session->resolving) {
        hf__io_stop(session->engine->base.host->loop, &session->io);
        hf__resolve_free(session->resolving);
        session->resolving = NULL;
    }
}
