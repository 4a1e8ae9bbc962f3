/* SPDX-License-Identifier: MIT */
/*
 * redis_tls_test.c - whom we believe, and who believes us.
 *
 * The certificates are made for each test: an authority, and a server's and a
 * client's certificate of it.
 */
#include <stdarg.h>

#include "certificates.h"
#include "redis.h"

static const char *dir;

/* A server that shows @name.crt; @clients: it wants to see ours. */
static struct server *start(const char *name, bool clients)
{
    char cert[256];
    char key[256];
    char ca[256];
    const char *words[] = {redis_program(),
                           "--port",
                           "0",
                           "--tls-port",
                           "{port}",
                           "--bind",
                           "127.0.0.1",
                           "--save",
                           "",
                           "--dir",
                           "{dir}",
                           "--tls-cert-file",
                           cert,
                           "--tls-key-file",
                           key,
                           "--tls-ca-cert-file",
                           ca,
                           "--tls-auth-clients",
                           clients ? "yes" : "no",
                           NULL};

    (void)snprintf(cert, sizeof(cert), "%s/%s.crt", dir, name);
    (void)snprintf(key, sizeof(key), "%s/%s.key", dir, name);
    (void)snprintf(ca, sizeof(ca), "%s/good.crt", dir);
    return server_start(words);
}

static void set_up(void)
{
    dir = certificates_new();
}

/* What opening says, to @host, with keys and values. */
static int open_with(struct server *server, const char *host, hf_error *err,
                     const char *first, ...)
{
    hf_config *config = hf_config_new();
    hf_client *client;
    char url[128];
    char path[512];
    va_list args;
    int rc;

    va_start(args, first);
    for (const char *key = first; key; key = va_arg(args, const char *)) {
        const char *value = va_arg(args, const char *);

        (void)snprintf(path, sizeof(path), "%s/%s", dir, value);
        ASSERT_OK(
            hf_config_set(config, key, strchr(value, '.') ? path : value, err),
            err);
    }
    va_end(args);
    (void)snprintf(url, sizeof(url), "rediss://%s:%d", host,
                   server_port(server));
    rc = hf_open(url, config, &client, err);
    hf_config_free(config);
    if (rc != 0)
        return rc;
    rc = client_try(client, "jobs", err);
    hf_close(client);
    return rc;
}

TEST(tls, works_with_a_good_certificate)
{
    struct server *server;
    hf_error err;

    set_up();
    certificates_make(dir, "server", "good", "IP:127.0.0.1,DNS:localhost", 2);
    server = start("server", false);
    ASSERT_OK(open_with(server, "127.0.0.1", &err, "tls.ca", "good.crt", NULL),
              &err);
    ASSERT_OK(open_with(server, "localhost", &err, "tls.ca", "good.crt", NULL),
              &err);
}

TEST(tls, refuses_an_unknown_authority_unless_told_not_to)
{
    struct server *server;
    hf_error err;

    set_up();
    certificates_authority(dir, "bad");
    certificates_make(dir, "server", "good", "IP:127.0.0.1", 2);
    server = start("server", false);
    ASSERT_RC(open_with(server, "127.0.0.1", &err, "tls.ca", "bad.crt", NULL),
              HF_EAUTH, &err);
    ASSERT_HAS(err.text, "certificate");
    ASSERT_RC(open_with(server, "127.0.0.1", &err, NULL), HF_EAUTH, &err);
    ASSERT_OK(open_with(server, "127.0.0.1", &err, "tls.verify", "off", NULL),
              &err);
}

TEST(tls, refuses_an_expired_certificate)
{
    struct server *server;
    hf_error err;

    set_up();
    certificates_make(dir, "server", "good", "IP:127.0.0.1", -1);
    server = start("server", false);
    ASSERT_RC(open_with(server, "127.0.0.1", &err, "tls.ca", "good.crt", NULL),
              HF_EAUTH, &err);
    ASSERT_HAS(err.text, "expired");
}

TEST(tls, refuses_a_certificate_of_another_host)
{
    struct server *server;
    hf_error err;

    set_up();
    certificates_make(dir, "server", "good", "IP:127.0.0.2,DNS:other", 2);
    server = start("server", false);
    ASSERT_RC(open_with(server, "127.0.0.1", &err, "tls.ca", "good.crt", NULL),
              HF_EAUTH, &err);
    ASSERT_HAS(err.text, "mismatch");
}

TEST(tls, shows_our_certificate_and_says_when_it_is_wanted)
{
    struct server *server;
    hf_error err;

    set_up();
    certificates_make(dir, "server", "good", "IP:127.0.0.1", 2);
    certificates_make(dir, "client", "good", "DNS:client", 2);
    server = start("server", true);
    ASSERT_OK(open_with(server, "127.0.0.1", &err, "tls.ca", "good.crt",
                        "tls.cert", "client.crt", "tls.key", "client.key",
                        NULL),
              &err);
    ASSERT_RC(open_with(server, "127.0.0.1", &err, "tls.ca", "good.crt", NULL),
              HF_EAUTH, &err);
    ASSERT_HAS(err.text, "tls.cert");
}

TEST(tls, to_a_server_without_it_fails_in_time)
{
    struct server *server;
    hf_error err;

    set_up();
    server = redis_start();
    ASSERT_RC(open_with(server, "127.0.0.1", &err, "tls.ca", "good.crt",
                        "connect_timeout", "500ms", NULL),
              HF_EUNAVAILABLE, &err);
}
