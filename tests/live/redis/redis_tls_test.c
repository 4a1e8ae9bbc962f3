/* SPDX-License-Identifier: MIT */
/*
 * redis_tls_test.c - which servers we believe, and which believe us.
 *
 * The certificates are made for each test: an authority, and a server's and a
 * client's certificate of it.
 */
#include <netinet/in.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "certificates.h"
#include "proc.h"
#include "quiet.h"
#include "redis.h"

static const char *dir;

/* A server that shows @name.crt; @clients: it wants to see ours. */
static struct server *start(const char *name, bool clients)
{
    const char *const more[] = {"--tls-auth-clients", clients ? "yes" : "no",
                                NULL};

    return redis_start_tls(/* port= */ 0, dir, name, more);
}

static void set_up(void)
{
    dir = certificates_new();
}

/* One with a certificate for @san, valid for so many days. */
static struct server *start_as(const char *san, int days)
{
    set_up();
    certificates_make(dir, "server", "good", san, days);
    return start("server", /* clients= */ false);
}

/* What opening says, to @host, with keys and values. */
static int open_with(struct server *server, const char *host, hf_error *err,
                     const char *first, ...)
{
    hf_config *config = hf_config_new();
    char path[512];
    va_list args;

    va_start(args, first);
    for (const char *key = first; key; key = va_arg(args, const char *)) {
        const char *value = va_arg(args, const char *);

        (void)snprintf(path, sizeof(path), "%s/%s", dir, value);
        ASSERT_OK(
            hf_config_set(config, key, strchr(value, '.') ? path : value, err),
            err);
    }
    va_end(args);
    return client_try_url(
        test_text("rediss://%s:%d", host, server_port(server)), config, err);
}

static void assert_refused(struct server *server, const char *host,
                           const char *why)
{
    hf_error err;

    ASSERT_RC(open_with(server, host, &err, "tls.ca", "good.crt", NULL),
              HF_EAUTH, &err);
    ASSERT_HAS(err.text, why);
}

TEST(tls, works_with_a_good_certificate)
{
    struct server *server = start_as("IP:127.0.0.1,DNS:localhost", 2);
    hf_error err;

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
    struct server *server = start_as("IP:127.0.0.1", -1);

    assert_refused(server, "127.0.0.1", "expired");
}

TEST(tls, refuses_a_certificate_of_another_host)
{
    struct server *server = start_as("IP:127.0.0.2,DNS:other", 2);

    assert_refused(server, "127.0.0.1", "mismatch");
}

/* Certificates for the server and for us. */
static void set_up_both(void)
{
    set_up();
    certificates_make(dir, "server", "good", "IP:127.0.0.1", 2);
    certificates_make(dir, "client", "good", "DNS:client", 2);
}

TEST(tls, shows_our_certificate_and_says_when_it_is_wanted)
{
    struct server *server;
    hf_error err;

    set_up_both();
    server = start("server", true);
    ASSERT_OK(open_with(server, "127.0.0.1", &err, "tls.ca", "good.crt",
                        "tls.cert", "client.crt", "tls.key", "client.key",
                        NULL),
              &err);
    assert_refused(server, "127.0.0.1", "tls.cert");
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

TEST(tls, refuses_a_certificate_with_a_common_name_only)
{
    struct server *server;

    set_up();
    /* The authority signs CN=localhost, and no DNS name. */
    certificates_make(dir, "localhost", "good", "email:me@localhost", 2);
    server = start("localhost", false);
    assert_refused(server, "localhost", "mismatch");
}

/* Accept, read the first bytes, and hang up, again and again. */
static void cut_handshakes(struct proc *self, void *arg)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(*(uint16_t *)arg)};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;
    char bytes[16];

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    (void)setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(listener, 8) != 0)
        return;
    proc_tell(self, "listening");
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

        (void)!read(fd, bytes, sizeof(bytes));
        close(fd);
        proc_tell(self, "cut");
    }
}

TEST(tls, tries_again_after_a_handshake_that_was_cut)
{
    uint16_t port = (uint16_t)server_free_port();
    struct proc *cutter = proc_start(cut_handshakes, &port);
    hf_client *client;
    hf_error err;
    char url[128];

    proc_expect(cutter, "listening");
    (void)snprintf(url, sizeof(url), "rediss://127.0.0.1:%d?connect=lazy",
                   port);
    ASSERT_OK(hf_open(url, NULL, &client, &err), &err);
    for (int i = 0; i < 3; i++)
        proc_expect(cutter, "cut");
    hf_close(client);
    (void)snprintf(url, sizeof(url),
                   "rediss://127.0.0.1:%d?connect_timeout=500ms", port);
    ASSERT_RC(hf_open(url, NULL, &client, &err), HF_EUNAVAILABLE, &err);
}

static void shell(const char *words, const char *argument)
{
    char command[1024];

    (void)snprintf(command, sizeof(command), "cd %s && %s %s >>log 2>&1", dir,
                   words, argument);
    ASSERT_EQ(system(command), 0);
}

TEST(tls, opens_an_encrypted_key_by_a_file_and_never_asks)
{
    struct server *server;
    hf_error err;

    set_up_both();
    certificates_lock(dir, "client");
    server = start("server", true);
    ASSERT_RC(open_with(server, "127.0.0.1", &err, "tls.ca", "good.crt",
                        "tls.cert", "client.crt", "tls.key", "locked.key",
                        NULL),
              HF_ECONFIG, &err);
    ASSERT_HAS(err.text, "tls.key_password_file");
    ASSERT_RC(open_with(server, "127.0.0.1", &err, "tls.ca", "good.crt",
                        "tls.cert", "client.crt", "tls.key", "locked.key",
                        "tls.key_password_file", "wrong.pw", NULL),
              HF_ECONFIG, &err);
    ASSERT_HAS(err.text, "does not open it");
    ASSERT_OK(open_with(server, "127.0.0.1", &err, "tls.ca", "good.crt",
                        "tls.cert", "client.crt", "tls.key", "locked.key",
                        "tls.key_password_file", "right.pw", NULL),
              &err);
    shell("chmod 644", "right.pw");
    ASSERT_RC(open_with(server, "127.0.0.1", &err, "tls.ca", "good.crt",
                        "tls.cert", "client.crt", "tls.key", "locked.key",
                        "tls.key_password_file", "right.pw", NULL),
              HF_ECONFIG, &err);
    ASSERT_HAS(err.text, "others may read");
}

/* openssl(1) as a server that prints every message. */
static void print_messages(struct proc *self, void *arg)
{
    const char *const words[] = {
        "openssl",    "s_server", "-accept",    arg,    "-cert",
        "server.crt", "-key",     "server.key", "-msg", NULL};

    if (chdir(dir) == 0)
        proc_become(self, words);
}

/* Read what the server prints until @text is in a line. */
static void expect_in(struct proc *proc, const char *text)
{
    const char *line = proc_next(proc, PROC_PATIENCE_MS);

    while (line && !strstr(line, text))
        line = proc_next(proc, PROC_PATIENCE_MS);
    if (!line)
        FAIL("no \"%s\" came", text);
}

TEST(tls, says_close_notify_at_the_end)
{
    char port[16];
    struct proc *server;
    hf_client *client;
    hf_error err;
    char url[128];

    set_up();
    certificates_make(dir, "server", "good", "IP:127.0.0.1", 2);
    (void)snprintf(port, sizeof(port), "%d", server_free_port());
    server = proc_start(print_messages, port);
    expect_in(server, "ACCEPT");
    (void)snprintf(url, sizeof(url),
                   "rediss://127.0.0.1:%s?connect=lazy&tls.ca=%s/good.crt",
                   port, dir);
    ASSERT_OK(hf_open(url, NULL, &client, &err), &err);
    expect_in(server, "HELLO");
    hf_close(client);
    expect_in(server, "close_notify");
}

static void find_warning(int level, const char *text, void *ctx)
{
    if (level == HF_LOG_WARNING && strstr(text, "tls.verify=off"))
        ++*(int *)ctx;
}

static int find_finding(const hf_finding *finding, void *ctx)
{
    if (finding->status == HF_FINDING_WARN &&
        strcmp(finding->check, "tls.verify") == 0)
        ++*(int *)ctx;
    return 0;
}

TEST(tls, warns_when_nothing_is_verified)
{
    struct server *server;
    hf_client *client;
    hf_error err;
    char url[128];
    int warnings = 0;
    int findings = 0;

    set_up();
    certificates_make(dir, "server", "good", "IP:127.0.0.1", 2);
    server = start("server", false);
    hf_set_log(find_warning, HF_LOG_WARNING, &warnings);
    (void)snprintf(url, sizeof(url), "rediss://127.0.0.1:%d?tls.verify=off",
                   server_port(server));
    ASSERT_OK(hf_open(url, NULL, &client, &err), &err);
    ASSERT_OK(hf_doctor(client, find_finding, &findings, &err), &err);
    hf_close(client);
    hf_set_log(NULL, 0, NULL);
    ASSERT_EQ(warnings, 1);
    ASSERT_EQ(findings, 1);
}

TEST(tls, writes_nothing_on_a_terminal)
{
    static const char *const queries[] = {
        "tls.ca=@/good.crt",
        "tls.ca=@/bad.crt",
        "tls.verify=off&password=wrong",
        "tls.verify=off&user=nobody&password=wrong",
        "tls.ca=@/good.crt&tls.cert=@/client.crt&tls.key=@/locked.key",
        "tls.ca=@/none.crt"};
    struct server *server;
    char url[1024];

    set_up();
    certificates_authority(dir, "bad");
    certificates_make(dir, "server", "good", "IP:127.0.0.1", 2);
    certificates_make(dir, "client", "good", "DNS:client", 2);
    shell("openssl pkey -in client.key -aes256 -passout pass:sesame -out",
          "locked.key");
    server = start("server", false);
    for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
        int len = snprintf(url, sizeof(url), "rediss://127.0.0.1:%d?",
                           server_port(server));

        quiet_query(url + len, queries[i], dir);
        ASSERT_STREQ(quiet_watch(quiet_open, url), "");
    }
}
