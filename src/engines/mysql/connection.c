/* SPDX-License-Identifier: MIT */
/*
 * connection.c - one connection: resolve the name, connect, log in, close.
 *
 * net/resolve looks names up, because the library would block on the name
 * server. calls.c sends the statements.
 *
 * Every session holds a lock of its own by GET_LOCK, named after the client's
 * random identity and the number of the connection: orphans.c recognises a lost
 * session by it.
 *
 * Failure: an overdue answer, an error of the library, or a session that the
 * server has ended closes the connection, and every call on it gets no answer:
 * its outcome is unknown. The timer reports what fails while we send, never the
 * function that sends.
 */
#include <arpa/inet.h>
#include <errmsg.h>
#include <errno.h>
#include <mysqld_error.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engines/mysql/mysql.h"

static void resolved(struct hf__mysql_connection *connection);

void hf__mysql_connection_break(struct hf__mysql_connection *connection)
{
    connection->later = HF__LATER_BROKEN;
    hf__link_wake(&connection->mysql->link, hf__now());
}

/* ---- watching ----------------------------------------------------------- */

void hf__mysql_connection_unwatch(struct hf__mysql_connection *connection)
{
    hf__io_stop(connection->mysql->base.host->loop, &connection->io);
    connection->events = 0;
}

static void watch(struct hf__mysql_connection *connection, uint32_t events)
{
    struct hf__loop *loop = connection->mysql->base.host->loop;
    int rc = 0;

    if (connection->events == events)
        return;
    if (connection->events == 0) {
        connection->io.fd = hf__mariadb.mysql_get_socket(connection->handle);
        rc = hf__io_start(loop, &connection->io, events);
    } else {
        rc = hf__io_change(loop, &connection->io, events);
    }
    connection->events = events;
    if (rc != 0)
        hf__mysql_connection_break(connection);
}

/* What is asked and what is not is watched alike, so that nothing has to be
 * changed between two calls. */
void hf__mysql_connection_watch_idle(struct hf__mysql_connection *connection)
{
    watch(connection, EPOLLIN | EPOLLRDHUP);
}

void hf__mysql_connection_watch(struct hf__mysql_connection *connection,
                                int waits_for)
{
    watch(connection, (waits_for & MYSQL_WAIT_READ ? EPOLLIN | EPOLLRDHUP : 0) |
                          (waits_for & MYSQL_WAIT_WRITE ? EPOLLOUT : 0U) |
                          (waits_for & MYSQL_WAIT_EXCEPT ? EPOLLPRI : 0U));
}

static int ready_of(uint32_t events)
{
    int ready = (events & EPOLLIN ? MYSQL_WAIT_READ : 0) |
                (events & EPOLLOUT ? MYSQL_WAIT_WRITE : 0) |
                (events & EPOLLPRI ? MYSQL_WAIT_EXCEPT : 0);

    if (events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP))
        ready |= MYSQL_WAIT_READ | MYSQL_WAIT_WRITE;
    return ready;
}

/* ---- closing ----------------------------------------------------------- */

/* Send nothing that could wait: the session ends with the connection. What
 * is under way is cut off on both sides, or the library would read the rest of
 * a result, however long. */
static void close_handle(struct hf__mysql_connection *connection)
{
    struct sockaddr nobody = {.sa_family = AF_UNSPEC};
    int fd;

    if (!connection->handle)
        return;
    fd = hf__mariadb.mysql_get_socket(connection->handle);
    if (fd >= 0 && connection->step != HF__MYSQL_STEP_IDLE)
        (void)connect(fd, &nobody, sizeof(nobody));
    if (connection->result)
        hf__mariadb.mysql_free_result(connection->result);
    connection->result = NULL;
    hf__mariadb.mysql_close(connection->handle);
    hf__mysql_calls_free_prepared(
        connection); /* after it, so that nothing is sent */
    connection->handle = NULL;
}

static void stop_resolving(struct hf__mysql_connection *connection)
{
    hf__resolve_free(connection->resolving);
    connection->resolving = NULL;
    if (connection->addresses)
        freeaddrinfo(connection->addresses);
    connection->addresses = NULL;
    connection->next = NULL;
}

static void abandon(struct hf__mysql_connection *connection)
{
    if (connection->resolving)
        hf__resolve_abandon(connection->resolving);
    if (connection->handle) {
        int fd = hf__mariadb.mysql_get_socket(connection->handle);

        if (fd >= 0)
            (void)close(fd);
    }
}

void hf__mysql_connection_stop(struct hf__mysql_connection *connection,
                               bool forked)
{
    if (!connection->mysql)
        return;
    if (forked) {
        abandon(connection);
        return;
    }
    hf__mysql_connection_unwatch(connection);
    stop_resolving(connection);
    close_handle(connection);
    hf__mysql_calls_end(connection, /* told= */ false);
}

void hf__mysql_connection_fail(struct hf__mysql_connection *connection,
                               const hf_error *err)
{
    hf_error why = *err;

    hf__mysql_connection_unwatch(connection);
    stop_resolving(connection);
    close_handle(connection);
    hf__mysql_calls_end(connection, /* told= */ true);
    connection->closed(connection, &why);
}

void hf__mysql_connection_lost(struct hf__mysql_connection *connection,
                               const char *words)
{
    hf_error err;

    (void)hf__fail(&err, HF_EUNAVAILABLE, "%s: %s", connection->mysql->peer,
                   words);
    hf__mysql_connection_fail(connection, &err);
}

int64_t hf__mysql_connection_check(struct hf__mysql_connection *connection,
                                   int64_t now_ns)
{
    const struct hf__settings *settings =
        connection->mysql->base.host->settings;
    const struct hf__mysql_call *call = hf__mysql_call_first(connection);
    bool connecting = connection->step == HF__MYSQL_STEP_WANTED ||
                      connection->step == HF__MYSQL_STEP_RESOLVING ||
                      connection->step == HF__MYSQL_STEP_CONNECTING;
    int64_t due_ns = HF_NEVER;

    if (connection->later == HF__LATER_BROKEN) {
        hf__mysql_connection_lost(connection, "the connection is broken");
        return HF_NEVER;
    }
    if (connecting)
        due_ns =
            connection->since_ns + hf__ms_to_ns(settings->connect_timeout_ms);
    else if (call && connection->step > HF__MYSQL_STEP_IDLE)
        due_ns = hf__instant_add(
            call->sent_ns,
            hf__ms_to_ns(settings->io_timeout_ms + call->wait_ms));
    if (now_ns < due_ns)
        return due_ns;
    hf__mysql_connection_lost(connection, connecting ? "no connection in time"
                                                     : "no answer in time");
    return HF_NEVER;
}

/* ---- connecting -------------------------------------------------------- */

static void put_session_name(struct hf__buf *to,
                             const struct hf__mysql_connection *connection)
{
    hf__buf_printf(to, "'holdfast:%s:%llx'",
                   connection->mysql->base.host->identity_hex,
                   (unsigned long long)connection->session.serial);
}

/* Its number for the server, and our end of it. */
static void know_session(struct hf__mysql_connection *connection)
{
    struct hf__mysql_session *session = &connection->session;
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_storage room;
    } address = {.in = {0}};
    socklen_t size = sizeof(address);
    int fd = (int)hf__mariadb.mysql_get_socket(connection->handle);

    session->id = hf__mariadb.mysql_thread_id(connection->handle);
    session->port = 0;
    if (getsockname(fd, &address.any, &size) == 0 &&
        address.any.sa_family != AF_UNIX) /* of IPv6 at the same place */
        session->port = ntohs(address.in.sin_port);
}

static void on_greeted(struct hf__mysql *mysql, struct hf__mysql_call *call,
                       struct hf__mysql_reply *reply)
{
    struct hf__mysql_connection *connection = call->connection;
    struct hf__mysql_field row[3];
    hf_error err;

    if (!reply)
        return; /* closed() follows */
    if (reply->code != 0) {
        (void)hf__mysql_errors_read(mysql, reply, &err);
        hf__mysql_connection_fail(connection, &err);
        return;
    }
    if (!hf__mysql_answer_row(reply, 3, row) || !row[1].text) {
        hf__mysql_connection_lost(connection, hf__mysql_answer_strange);
        return;
    }
    hf__text_copy(mysql->schema, sizeof(mysql->schema), row[1].text);
    if (row[2].text)
        hf__text_copy(mysql->server_comment, sizeof(mysql->server_comment),
                      row[2].text);
    connection->lease_s = 0;
    connection->opened(connection);
}

/* What a session of ours is like, whatever the server's defaults are. Row-based
 * logging is needed for READ COMMITTED. */
static void greet(struct hf__mysql_connection *connection)
{
    struct hf__mysql *mysql = connection->mysql;
    const struct hf__settings *settings = mysql->base.host->settings;
    struct hf__mysql_call *call = hf__mysql_call_new(on_greeted, NULL);
    bool for_row =
        mysql->mode == &hf__mysql_for_update_mode && connection != &mysql->main;
    hf_error err;

    if (call) {
        hf__buf_printf(
            &call->sql,
            "SET time_zone=%s,autocommit=1,"
            "sql_mode='STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION',"
            "innodb_lock_wait_timeout=%lld,wait_timeout=86400,"
            "%s=IF(@@log_bin=1 AND @@binlog_format='STATEMENT',"
            "'REPEATABLE-READ','READ-COMMITTED');"
            "SELECT GET_LOCK(",
            mysql->dialect ? "DEFAULT" : "'+00:00'",
            for_row ? 3600LL
                    : (long long)(settings->io_timeout_ms + 1999) / 2000,
            mysql->is_mariadb ? "tx_isolation" : "transaction_isolation");
        put_session_name(&call->sql, connection);
        hf__buf_add(&call->sql, ",0),DATABASE(),@@version_comment");
        if (for_row)
            hf__buf_add(&call->sql, ";START TRANSACTION");
    }
    connection->step = HF__MYSQL_STEP_IDLE;
    if (call && hf__mysql_call_send(connection, call, &err) == 0)
        return;
    (void)hf__fail(&err, HF_ENOMEM, "out of memory");
    hf__mysql_connection_fail(connection, &err);
}

/* A holder whose machine vanished must be noticed on both sides. */
static void set_keepalive(const struct hf__mysql_connection *connection)
{
    int fd = hf__mariadb.mysql_get_socket(connection->handle);
    int64_t ttl_s = connection->mysql->base.host->settings->ttl_ms / 1000;
    int on = 1;
    int idle = ttl_s / 3 < 1 ? 1 : ttl_s / 3 > 60 ? 60 : (int)(ttl_s / 3);
    int tries = 3;

    /* A Unix socket has none of them, and needs none. */
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &idle, sizeof(idle));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &tries, sizeof(tries));
}

/* MariaDB says so in its version. */
static void know_server(const struct hf__mysql_connection *connection)
{
    struct hf__mysql *mysql = connection->mysql;
    const char *version = hf__mariadb.mysql_get_server_info(connection->handle);

    hf__text_copy(mysql->server, sizeof(mysql->server), version ? version : "");
    mysql->is_mariadb = strstr(mysql->server, "MariaDB") != NULL;
}

static void without_tls(struct hf__mysql_connection *connection)
{
    hf_error err;

    (void)hf__fail(&err, HF_EAUTH, "%s: the server does not speak TLS",
                   connection->mysql->peer);
    hf__mysql_connection_fail(connection, &err);
}

static void established(struct hf__mysql_connection *connection)
{
    /* Without tls.verify the library goes on in clear. */
    if (connection->mysql->tls &&
        !hf__mariadb.mysql_get_ssl_cipher(connection->handle)) {
        without_tls(connection);
        return;
    }
    set_keepalive(connection);
    know_session(connection);
    know_server(connection);
    greet(connection);
}

static void refused(struct hf__mysql_connection *connection, unsigned code,
                    const char *words)
{
    struct hf__mysql_reply reply = {.code = code};
    hf_error err;

    hf__text_copy(reply.text, sizeof(reply.text), words);
    (void)hf__mysql_errors_read(connection->mysql, &reply, &err);
    if (err.code != HF_EUNAVAILABLE || !connection->next) {
        hf__mysql_connection_fail(connection, &err);
        return;
    }
    hf__mysql_connection_unwatch(connection);
    close_handle(connection);
    resolved(connection);
}

/* We peek at the first packet before the library reads it. The packet says
 * whether the server speaks TLS, and the library would send the password before
 * it checks that. It also crashes if the first packet is an error that only
 * reports progress.
 *
 *   length (3 bytes), 0, 10, version, NUL, session (4), salt (8), 0, can (2) …
 *   length (3 bytes), 0, ff, error (2) …
 */
enum { GREETING = 4, GREETING_CAN = 1 + 4 + 8 + 1, CAN_TLS = 0x0800 };
enum word { MORE, NONSENSE, REFUSAL, CLEAR, SPEAKS_TLS };

static unsigned short_at(const uint8_t *at)
{
    return at[0] | (unsigned)at[1] << 8;
}

static enum word first_word(const uint8_t *packet, size_t len)
{
    const uint8_t *end;

    if (len < GREETING + 3)
        return MORE;
    if (packet[GREETING] == 0xff)
        return short_at(packet + GREETING + 1) == 0xffff ? NONSENSE : REFUSAL;
    if (packet[GREETING] != 10)
        return NONSENSE;
    end = memchr(packet + GREETING, 0, len - GREETING);
    if (!end || end + GREETING_CAN + 1 >= packet + len)
        return MORE;
    return short_at(end + GREETING_CAN) & CAN_TLS ? SPEAKS_TLS : CLEAR;
}

/* May the library read the greeting? If not, the rest of it is still to come,
 * or the failure is reported. */
static bool look_at_greeting(struct hf__mysql_connection *connection, int ready)
{
    uint8_t packet[256];
    enum word word;
    ssize_t n;
    int low;

    if (!(ready & MYSQL_WAIT_READ)) { /* connected: the server speaks first */
        hf__mysql_connection_watch(connection, MYSQL_WAIT_READ);
        return false;
    }
    n = recv(connection->io.fd, packet, sizeof(packet),
             MSG_PEEK | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    word = n > 0 ? first_word(packet, (size_t)n) : NONSENSE;
    if (word == MORE && n == (ssize_t)sizeof(packet))
        word = NONSENSE;
    low = word == MORE ? (int)n + 1 : 1;
    (void)setsockopt(connection->io.fd, SOL_SOCKET, SO_RCVLOWAT, &low,
                     sizeof(low));
    connection->greeted = word == REFUSAL || word == SPEAKS_TLS ||
                          (word == CLEAR && !connection->mysql->tls);
    if (connection->greeted)
        return true;
    if (word == NONSENSE) /* which may free the connection */
        refused(connection, CR_CONNECTION_ERROR,
                n < 0    ? strerror(errno)
                : n == 0 ? "the server says nothing"
                         : "the server speaks another protocol");
    else if (word == CLEAR)
        without_tls(connection);
    return false;
}

static void connect_proceed(struct hf__mysql_connection *connection, int ready)
{
    MYSQL *connected = NULL;
    int waits_for;

    if (!connection->greeted) {
        if (!look_at_greeting(connection, ready))
            return;
        ready |= MYSQL_WAIT_WRITE; /* it may wait for that to be connected */
    }
    hf__mysql_connection_unwatch(
        connection); /* the library may close the descriptor */
    waits_for = hf__mariadb.mysql_real_connect_cont(&connected,
                                                    connection->handle, ready);
    if (waits_for != 0) {
        hf__mysql_connection_watch(connection, waits_for);
    } else if (!connected) {
        refused(connection, hf__mariadb.mysql_errno(connection->handle),
                hf__mariadb.mysql_error(connection->handle));
    } else {
        established(connection);
    }
}

static bool set_options(struct hf__mysql_connection *connection)
{
    static const char auth[] =
        "mysql_native_password,client_ed25519,caching_sha2_password,"
        "sha256_password";
    const struct hf__settings *settings =
        connection->mysql->base.host->settings;
    MYSQL *handle = connection->handle;
    unsigned int off = 0;
    unsigned long most = 64UL << 20;
    char on = 1;
    char verify = settings->tls_verify != 0;
#define SET(option, value) hf__mariadb.mysql_options(handle, option, value) == 0
    bool set = SET(MYSQL_OPT_NONBLOCK, NULL) &&
               SET(MYSQL_OPT_LOCAL_INFILE, &off) &&
               SET(MYSQL_OPT_MAX_ALLOWED_PACKET, &most) &&
               SET(MYSQL_SET_CHARSET_NAME, "utf8mb4") &&
               SET(MARIADB_OPT_RESTRICTED_AUTH, auth);

    if (set && connection->mysql->tls) {
        set = SET(MYSQL_OPT_SSL_ENFORCE, &on) &&
              SET(MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verify);
        if (set && settings->tls_ca[0] != '\0')
            set = SET(MYSQL_OPT_SSL_CA, settings->tls_ca);
        if (set && settings->tls_cert[0] != '\0')
            /* Without a passphrase OpenSSL would ask on the terminal. */
            set = SET(MYSQL_OPT_SSL_CERT, settings->tls_cert) &&
                  SET(MYSQL_OPT_SSL_KEY, settings->tls_key) &&
                  SET(MARIADB_OPT_TLS_PASSPHRASE, settings->tls_key_password);
    }
#undef SET
    return set;
}

/* The address being tried or, where the certificate has to match it, the
 * name. */
static const char *host_of(const struct hf__mysql_connection *connection)
{
    const struct hf__url *url = connection->mysql->base.host->url;

    if (url->n_hosts > 0 && connection->mysql->tls &&
        connection->mysql->base.host->settings->tls_verify)
        return url->hosts[0].host;
    return connection->address;
}

static void dial(struct hf__mysql_connection *connection)
{
    const struct hf__mysql *mysql = connection->mysql;
    const struct hf__settings *settings = mysql->base.host->settings;
    const struct hf__url *url = mysql->base.host->url;
    MYSQL *connected = NULL;
    int waits_for;

    connection->step = HF__MYSQL_STEP_CONNECTING;
    connection->greeted = false;
    connection->handle = hf__mariadb.mysql_init(NULL);
    if (!connection->handle || !set_options(connection)) {
        hf_error err;

        (void)hf__fail(&err, HF_ENOMEM, "out of memory");
        hf__mysql_connection_fail(connection, &err);
        return;
    }
    waits_for = hf__mariadb.mysql_real_connect_start(
        &connected, connection->handle, host_of(connection),
        url->user ? url->user : settings->user,
        url->password ? url->password : settings->password, mysql->database,
        (unsigned)mysql->port, NULL,
        CLIENT_MULTI_STATEMENTS | CLIENT_FOUND_ROWS);
    if (waits_for != 0)
        hf__mysql_connection_watch(connection, waits_for);
    else if (!connected)
        refused(connection, hf__mariadb.mysql_errno(connection->handle),
                hf__mariadb.mysql_error(connection->handle));
    else
        established(connection);
}

/* There are addresses: try the next one. */
static void resolved(struct hf__mysql_connection *connection)
{
    struct addrinfo *address = connection->next;

    connection->next = address->ai_next;
    if (getnameinfo(address->ai_addr, address->ai_addrlen, connection->address,
                    sizeof(connection->address), NULL, 0, NI_NUMERICHOST) != 0)
        connection->address[0] = '\0';
    dial(connection);
}

static void resolve_ready(struct hf__mysql_connection *connection)
{
    int rc;

    hf__mysql_connection_unwatch(connection);
    rc = hf__resolve_take(connection->resolving, &connection->addresses);
    hf__resolve_free(connection->resolving);
    connection->resolving = NULL;
    if (rc != 0) {
        hf__mysql_connection_lost(connection, gai_strerror(rc));
        return;
    }
    connection->next = connection->addresses;
    resolved(connection);
}

/* No call is under way, and the descriptor is readable: the server has ended
 * the session, unless an older event is late and its bytes have been read. */
static void idle_ready(struct hf__mysql_connection *connection)
{
    char byte;
    ssize_t n = recv(connection->io.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    if (n >= 0 || (errno != EAGAIN && errno != EINTR))
        hf__mysql_connection_lost(connection, "the server ended the session");
}

static void on_ready(struct hf__io *io, uint32_t events)
{
    struct hf__mysql_connection *connection =
        HF_CONTAINER_OF(io, struct hf__mysql_connection, io);

    if (connection->later == HF__LATER_BROKEN)
        return;
    if (connection->later == HF__LATER_ANSWERED)
        hf__mysql_calls_early(connection);
    else if (connection->step == HF__MYSQL_STEP_RESOLVING)
        resolve_ready(connection);
    else if (connection->step == HF__MYSQL_STEP_CONNECTING)
        connect_proceed(connection, ready_of(events));
    else if (connection->step == HF__MYSQL_STEP_IDLE)
        idle_ready(connection);
    else
        hf__mysql_calls_ready(connection, ready_of(events));
}

void hf__mysql_connection_init(struct hf__mysql_connection *connection,
                               struct hf__mysql *mysql)
{
    connection->mysql = mysql;
    connection->io.fd = -1;
    connection->io.ready = on_ready;
    hf__calls_init(&connection->calls, sizeof(struct hf__mysql_call *));
}

void hf__mysql_connection_begin(struct hf__mysql_connection *connection)
{
    if (connection->step == HF__MYSQL_STEP_WANTED)
        resolved(connection);
}

int hf__mysql_connection_start(struct hf__mysql_connection *connection,
                               hf_error *err)
{
    struct hf__mysql *mysql = connection->mysql;
    const struct hf__url *url = mysql->base.host->url;
    const char *host = url->n_hosts > 0 ? url->hosts[0].host : "127.0.0.1";

    connection->session.serial = ++mysql->serials;
    connection->since_ns = hf__now();
    connection->addresses = hf__resolve_numeric(host, mysql->port);
    connection->next = connection->addresses;
    if (connection->addresses) {
        connection->step = HF__MYSQL_STEP_WANTED;
        hf__link_wake(&mysql->link, connection->since_ns);
        return 0;
    }
    if (hf__resolve_start(host, mysql->port, &connection->resolving) != 0)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    connection->step = HF__MYSQL_STEP_RESOLVING;
    connection->io.fd = hf__resolve_fd(connection->resolving);
    connection->events = EPOLLIN;
    hf__link_wake(
        &mysql->link,
        hf__instant_add(
            connection->since_ns,
            hf__ms_to_ns(mysql->base.host->settings->connect_timeout_ms)));
    if (hf__io_start(mysql->base.host->loop, &connection->io, EPOLLIN) == 0)
        return 0;
    stop_resolving(connection);
    connection->step = HF__MYSQL_STEP_CLOSED;
    connection->events = 0;
    return hf__fail(err, HF_ENOMEM, "out of memory");
}
