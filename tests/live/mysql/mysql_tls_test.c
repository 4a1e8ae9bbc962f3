/* SPDX-License-Identifier: MIT */
/*
 * mysql_tls_test.c - mysqls://: whom we believe.
 *
 * One authority, one server; the certificates that it shows are changed under
 * it.
 */
#include <stdlib.h>
#include <sys/stat.h>

#include "base/base.h"
#include "certificates.h"
#include "mysql.h"
#include "quiet.h"

static const char *dir;

/* The server shows @name from now on. */
static void show(int port, const char *name)
{
    char command[512];

    (void)snprintf(command, sizeof(command),
                   "cd %s && cp %s.crt shown.crt && cp %s.key shown.key && "
                   "chmod 644 shown.crt shown.key",
                   dir, name, name);
    ASSERT_EQ(system(command), 0);
    if (port != 0)
        ASSERT_STREQ(mysql_do(port, mysql_is_mariadb(port)
                                        ? "FLUSH SSL"
                                        : "ALTER INSTANCE RELOAD TLS"),
                     "");
}

static struct server *start(void)
{
    static char words[3][256];
    const char *options[] = {words[0], words[1], words[2], NULL};

    dir = certificates_new();
    (void)chmod(dir, 0755);
    certificates_authority(dir, "stranger");
    certificates_make(dir, "server", "good", "IP:127.0.0.1,DNS:localhost", 2);
    certificates_make(dir, "elsewhere", "good", "DNS:db.example.org", 2);
    certificates_make(dir, "expired", "good", "IP:127.0.0.1", -1);
    certificates_make(dir, "strange", "stranger", "IP:127.0.0.1", 2);
    show(0, "server");
    (void)snprintf(words[0], sizeof(words[0]), "--ssl-ca=%s/good.crt", dir);
    (void)snprintf(words[1], sizeof(words[1]), "--ssl-cert=%s/shown.crt", dir);
    (void)snprintf(words[2], sizeof(words[2]), "--ssl-key=%s/shown.key", dir);
    return mysql_start(options);
}

/* A client over TLS, with tls.verify and our authority or none. */
static int open_tls(int port, const char *mode, bool verify, bool authority,
                    hf_client **ret_client, hf_error *err)
{
    hf_config *config = hf_config_new();
    char text[256];
    int rc;

    if (!verify)
        ASSERT_OK(hf_config_set(config, "tls.verify", "off", err), err);
    if (authority) {
        (void)snprintf(text, sizeof(text), "%s/good.crt", dir);
        ASSERT_OK(hf_config_set(config, "tls.ca", text, err), err);
    }
    (void)snprintf(text, sizeof(text),
                   "mysqls://locker:s3cret@127.0.0.1:%d/locks"
                   "?connect_timeout=60s&mode=%s",
                   port, mode);
    rc = hf_open(text, config, ret_client, err);
    hf_config_free(config);
    return rc;
}

/* What a lock says then. */
static int try_tls(int port, bool verify, bool authority, hf_error *err)
{
    hf_client *client;
    int rc = open_tls(port, "table", verify, authority, &client, err);

    if (rc != 0)
        return rc;
    rc = client_try(client, "jobs", err);
    hf_close(client);
    return rc;
}

TEST(tls, is_believed_by_chain_and_name_and_date)
{
    static const char *const bad[] = {"elsewhere", "expired", "strange"};
    int port = server_port(start());
    hf_error err;

    ASSERT_OK(try_tls(port, true, true, &err), &err);
    ASSERT_OK(try_tls(port, false, false, &err), &err);
    ASSERT_RC(try_tls(port, true, false, &err), HF_EAUTH, &err);
    for (size_t i = 0; i < HF_COUNT_OF(bad); i++) {
        show(port, bad[i]);
        ASSERT_RC(try_tls(port, true, true, &err), HF_EAUTH, &err);
    }
    show(port, "server");
    ASSERT_OK(try_tls(port, true, true, &err), &err);
}

TEST(tls, is_not_given_up_for_a_server_without_it)
{
    int port = mysql_fresh();
    hf_error err;

    if (!mysql_is_mariadb(port)) /* MySQL makes certificates by itself */
        port = server_port(MYSQL_START("--tls-version="));
    dir = certificates_new();
    ASSERT_RC(try_tls(port, true, true, &err), HF_EAUTH, &err);
    ASSERT_RC(try_tls(port, false, false, &err), HF_EAUTH, &err);
}

TEST(tls, locks_in_every_mode)
{
    static const char *const modes[] = {"table", "get_lock", "for_update"};
    int port = server_port(start());
    hf_error err;

    for (size_t i = 0; i < HF_COUNT_OF(modes); i++) {
        hf_opts opts = HF_OPTS_INIT;
        hf_client *client;
        hf_client *rival;
        hf_request *request;
        hf_hold *hold;

        ASSERT_OK(open_tls(port, modes[i], true, true, &client, &err), &err);
        ASSERT_OK(open_tls(port, modes[i], true, true, &rival, &err), &err);
        hold = client_acquire(client, "jobs");
        ASSERT_RC(client_try(rival, "jobs", &err), HF_EBUSY, &err);
        ASSERT_OK(
            hf_acquire_start(rival, "jobs", &opts, NULL, NULL, &request, &err),
            &err);
        client_release(hold);
        ASSERT_OK(hf_request_wait(request, HF_FOREVER, &hold, &err), &err);
        hf_request_free(request);
        client_release(hold);
        hf_close(rival);
        hf_close(client);
    }
}

/* What becomes of a login with a key that is encrypted. */
static int open_locked(int port, const char *password_file, hf_error *err)
{
    static const char *const files[][2] = {{"tls.ca", "good.crt"},
                                           {"tls.cert", "client.crt"},
                                           {"tls.key", "locked.key"}};
    hf_config *config = hf_config_new();
    hf_client *client;
    char text[256];
    int rc;

    for (size_t i = 0; i < HF_COUNT_OF(files); i++) {
        (void)snprintf(text, sizeof(text), "%s/%s", dir, files[i][1]);
        ASSERT_OK(hf_config_set(config, files[i][0], text, err), err);
    }
    (void)snprintf(text, sizeof(text), "%s/%s", dir, password_file);
    if (password_file[0] != '\0')
        ASSERT_OK(hf_config_set(config, "tls.key_password_file", text, err),
                  err);
    (void)snprintf(text, sizeof(text),
                   "mysqls://locker:s3cret@127.0.0.1:%d/locks", port);
    rc = hf_open(text, config, &client, err);
    hf_config_free(config);
    if (rc == 0)
        hf_close(client);
    return rc;
}

TEST(tls, opens_an_encrypted_key_by_a_file_and_never_asks)
{
    int port = server_port(start());
    hf_error err;

    certificates_make(dir, "client", "good", "DNS:client", 2);
    certificates_lock(dir, "client");
    ASSERT_OK(open_locked(port, "right.pw", &err), &err);
    ASSERT_RC(open_locked(port, "wrong.pw", &err), HF_EAUTH, &err);
    ASSERT_RC(open_locked(port, "", &err), HF_EAUTH, &err);
}

TEST(tls, writes_nothing_on_a_terminal)
{
    static const char *const queries[] = {
        "tls.ca=@/good.crt", "tls.ca=@/stranger.crt",
        "tls.verify=off&tls.cert=@/me.crt&tls.key=@/locked.key",
        "tls.ca=@/good.crt&tls.cert=@/me.crt&tls.key=@/locked.key"};
    int port = server_port(start());
    char url[1024];
    int len;

    certificates_make(dir, "me", "good", "DNS:me", 2);
    certificates_lock(dir, "me");
    for (size_t i = 0; i < 2 * HF_COUNT_OF(queries); i++) {
        len =
            snprintf(url, sizeof(url), "mysqls://locker:%s@127.0.0.1:%d/locks?",
                     i % 2 ? "s3cret" : "wrong", port);
        quiet_query(url + len, queries[i / 2], dir);
        ASSERT_STREQ(quiet_watch(quiet_open, url), "");
    }
}
