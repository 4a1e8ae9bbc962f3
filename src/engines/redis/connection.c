/* SPDX-License-Identifier: MIT */
/*
 * connection.c - one connection to the server, and the calls under way on it.
 *
 * A client has one connection, whatever the number of its locks. Commands are
 * gathered in the stream's buffer and sent when the monitor is left. Answers
 * come in the order of the calls, so the first answer belongs to the oldest
 * call (common/calls.h). Version 3 of the protocol lets grants be pushed
 * on the same connection, between the answers: there is one order of events,
 * the server's, and no second connection that could be lost by itself.
 *
 * GREETING. HELLO with the credentials, SELECT, INFO, in one write. If there
 * was a connection before, to the same run of the server, it is ended there
 * by CLIENT KILL before anything is asked on the new one: a command of ours
 * that is still on its way would otherwise be carried out after its withdrawal.
 *
 * Failure: a message that is not the protocol, an answer that is overdue, an
 * end of the stream: the connection is dropped, each call under way is told so
 * in order, and then the core.
 */
#include "engines/redis/connection.h"
#include "engines/redis/errors.h"
#include "engines/redis/redis.h"
#include "engines/redis/tickets.h"
#include "engines/redis/verbs.h"

#include <stdio.h>

#include "engines/redis/sentinel.h"

/* Before a channel: one that nobody has. */
#define NOBODYS '!'

/* ---- calls ------------------------------------------------------------- */

static bool take_call(struct hf__redis *redis, struct hf__redis_call *call)
{
    bool taken = hf__calls_take(&redis->calls, call);

    hf__redis_connection_count(redis);
    return taken;
}

size_t hf__redis_connection_begin(struct hf__redis *redis, uint32_t arguments)
{
    size_t mark = redis->stream.out.len;

    hf__resp_head(&redis->stream.out, arguments);
    return mark;
}

int hf__redis_connection_end(struct hf__redis *redis, size_t mark,
                             const struct hf__redis_call *call, hf_error *err)
{
    struct hf__buf *out = &redis->stream.out;
    struct hf__redis_call *place = NULL;

    if (!hf__buf_failed(out))
        place = hf__calls_add(&redis->calls, call);
    if (!place) {
        out->failed = false;
        out->len = mark;
        return hf__fail(err, HF_ENOMEM, "out of memory");
    }
    hf__redis_connection_count(redis);
    if (place->sent_ns == 0)
        place->sent_ns = hf__now();
    if (redis->calls.n == 1 && !hf__timer_running(&redis->link.timer))
        hf__link_wake(
            &redis->link,
            place->sent_ns +
                hf__ms_to_ns(redis->base.host->settings->io_timeout_ms));
    return 0;
}

int hf__redis_connection_say(struct hf__redis *redis, const char *words,
                             const struct hf__redis_call *call, hf_error *err)
{
    uint32_t n = 1;
    size_t mark;

    for (const char *at = words; (at = strchr(at, ' ')) != NULL; at++)
        n++;
    mark = hf__redis_connection_begin(redis, n);
    for (; n > 0; n--) {
        size_t len = strcspn(words, " ");

        hf__resp_arg(&redis->stream.out, words, len);
        words += len + 1; /* behind the last one nothing is read */
    }
    return hf__redis_connection_end(redis, mark, call, err);
}

size_t hf__redis_connection_script_begin(struct hf__redis *redis, int script,
                                         uint32_t keys, uint32_t arguments)
{
    size_t mark = hf__redis_connection_begin(redis, 3 + keys + arguments);

    hf__resp_literal(&redis->stream.out, "$7\r\nEVALSHA\r\n");
    hf__resp_arg(&redis->stream.out, redis->scripts[script].digest, 40);
    hf__resp_arg_number(&redis->stream.out, keys);
    return mark;
}

size_t hf__redis_connection_eval_begin(struct hf__redis *redis, int script,
                                       uint32_t keys, uint32_t arguments)
{
    size_t mark = hf__redis_connection_begin(redis, 3 + keys + arguments);

    hf__resp_arg(&redis->stream.out, "EVAL", 4);
    hf__resp_arg(&redis->stream.out, redis->scripts[script].text,
                 redis->scripts[script].len);
    hf__resp_arg_number(&redis->stream.out, keys);
    return mark;
}

void hf__redis_connection_ignore(struct hf__redis *redis,
                                 const struct hf__redis_call *call,
                                 struct hf__resp *reply)
{
    (void)redis;
    (void)call;
    (void)reply; /* what depends on it will say if it went wrong */
}

/* Apart, so that what is asked often stays short. */
static __attribute__((cold, noinline)) void send_asking(struct hf__redis *redis)
{
    struct hf__redis_call call = {.done = hf__redis_connection_ignore};

    (void)hf__redis_connection_say(redis, "ASKING", &call, /* err= */ NULL);
}

void hf__redis_connection_put_asking(struct hf__redis *redis,
                                     const struct hf__redis_ticket *mine)
{
    if (mine->importing)
        send_asking(redis);
}

/* The answer names the script by its digest. An error does not: it may have
 * been any of them. */
static void on_loaded(struct hf__redis *redis,
                      const struct hf__redis_call *call, struct hf__resp *reply)
{
    struct hf__resp_value value = hf__resp_first(reply);

    (void)call;
    if (hf__redis_errors_begins(&value, "NOPERM"))
        redis->load_refused = true;
    for (int i = 0; i < HF__SCRIPTS; i++) {
        if (value.type != HF__RESP_TEXT ||
            hf__resp_is(&value, redis->scripts[i].digest))
            redis->loading[i] = false;
    }
}

/* Once for all that were refused together: what is asked again comes behind
 * it. */
int hf__redis_connection_script_load(struct hf__redis *redis, int script)
{
    struct hf__redis_call call = {.done = on_loaded};
    size_t mark;
    int rc;

    if (redis->loading[script])
        return 0;
    mark = hf__redis_connection_begin(redis, 3);
    hf__resp_arg_text(&redis->stream.out, "SCRIPT");
    hf__resp_arg_text(&redis->stream.out, "LOAD");
    hf__resp_arg(&redis->stream.out, redis->scripts[script].text,
                 redis->scripts[script].len);
    rc = hf__redis_connection_end(redis, mark, &call, /* err= */ NULL);
    redis->loading[script] = rc == 0;
    return rc;
}

bool hf__redis_connection_script_lost(struct hf__redis *redis,
                                      const struct hf__resp_value *value,
                                      int script)
{
    /* A user that may not load would be refused again, without end. */
    return !redis->load_refused && hf__redis_errors_begins(value, "NOSCRIPT") &&
           hf__redis_connection_script_load(redis, script) == 0;
}

size_t hf__redis_connection_ticket_begin(struct hf__redis *redis,
                                         struct hf__ticket *ticket, int script,
                                         uint32_t arguments)
{
    const struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    size_t mark;

    hf__redis_connection_put_asking(redis, mine);
    mark = hf__redis_connection_script_begin(redis, script, 1, arguments);
    hf__resp_arg(&redis->stream.out, hf__redis_ticket_key(mine), mine->key_len);
    return mark;
}

/* ---- the end of a connection ------------------------------------------- */

void hf__redis_connection_close(struct hf__redis *redis, bool forked)
{
    hf__stream_stop(&redis->stream, forked);
    redis->state = HF__PEER_DOWN;
    redis->release_loaded = false;
    redis->load_refused = false;
    memset(&redis->scan, 0, sizeof(redis->scan));
}

static void tell_calls(struct hf__redis *redis)
{
    struct hf__redis_call call;

    while (take_call(redis, &call))
        call.done(redis, &call, /* reply= */ NULL);
}

static void down(struct hf__redis *redis, const hf_error *err)
{
    hf_error told;

    if (redis->connection_id != 0) {
        redis->old_id = redis->connection_id;
        memcpy(redis->old_run_id, redis->run_id, sizeof(redis->run_id));
        redis->connection_id = 0;
    }
    hf__redis_connection_close(redis, /* forked= */ false);
    hf__redis_tickets_names_forget(redis);
    tell_calls(redis);
    told = *err;
    if (strncmp(told.text, redis->peer, strlen(redis->peer)) != 0)
        (void)hf__fail_in(&told, told.code, "%s", redis->peer);
    hf__up_down(&redis->base, &told);
}

void hf__redis_connection_fail(struct hf__redis *redis, const hf_error *err)
{
    hf__stream_fail(&redis->stream, err);
}

static void stream_closed(struct hf__stream *stream, const hf_error *err)
{
    down(HF_CONTAINER_OF(stream, struct hf__redis, stream), err);
}

/* ---- reading ----------------------------------------------------------- */

static bool is_either(const struct hf__resp_value *value, const char *word,
                      const char *sharded)
{
    return hf__resp_is(value, word) || hf__resp_is(value, sharded);
}

/* Does this push end the call it may be the answer to? A node unsubscribes us
 * by itself when a slot leaves it; the answer to our own SUNSUBSCRIBE ends with
 * the channel that nobody has. */
static bool ends_call(struct hf__redis *redis,
                      const struct hf__resp_value *kind,
                      const struct hf__resp_value *channel)
{
    if (is_either(kind, "subscribe", "ssubscribe") ||
        hf__resp_is(kind, "unsubscribe"))
        return true;
    if (!hf__resp_is(kind, "sunsubscribe") || channel->type != HF__RESP_TEXT ||
        channel->len == 0)
        return false;
    if (channel->text[0] == NOBODYS)
        return true;
    hf__redis_wait_ended(redis, channel->text, channel->len);
    return false;
}

/* A push: ["message", channel, text], or about a subscription. */
static void on_push(void *ctx, struct hf__resp *message)
{
    struct hf__redis *redis = ctx;
    struct hf__resp_value head = hf__resp_next(message);
    struct hf__resp_value kind = hf__resp_next(message);
    struct hf__resp_value channel = hf__resp_next(message);
    struct hf__resp_value text;
    struct hf__redis_call *oldest = NULL;
    struct hf__redis_call call;

    if (redis->calls.n > 0)
        oldest = hf__calls_at(&redis->calls, 0);
    if (is_either(&kind, "message", "smessage") && head.count == 3) {
        hf__resp_skip(message, &channel);
        text = hf__resp_next(message);
        if (text.type == HF__RESP_TEXT && channel.type == HF__RESP_TEXT &&
            redis->dialect->heard)
            redis->dialect->heard(redis, &channel, &text);
    } else if (ends_call(redis, &kind, &channel) && oldest && oldest->pushed) {
        (void)take_call(redis, &call);
    }
}

static void protocol_error(struct hf__redis *redis, const char *what)
{
    hf_error err;

    (void)hf__fail(&err, HF_EUNAVAILABLE,
                   "%s: what it says is not the Redis protocol (%s)",
                   redis->peer, what);
    hf__redis_connection_fail(redis, &err);
}

/* The master has become a replica under our feet: another one is master, and
 * this one will tell us nothing true any more. */
static bool demoted(const struct hf__resp *message)
{
    static const char word[] = "-READONLY";

    return message->end - message->at >= (ptrdiff_t)sizeof(word) - 1 &&
           memcmp(message->at, word, sizeof(word) - 1) == 0;
}

static void tell_demoted(struct hf__redis *redis)
{
    hf_error err;

    (void)hf__fail(&err, HF_EUNAVAILABLE, "%s: it is a replica now",
                   redis->peer);
    hf__redis_connection_fail(redis, &err);
}

/* What a node of a cluster does not serve, or not this time. */
static bool redirects(const struct hf__redis *redis, struct hf__resp message,
                      struct hf__slot_redirect *to)
{
    struct hf__resp_value value;

    if (!redis->in_cluster || message.at[0] != '-')
        return false;
    value = hf__resp_next(&message);
    return hf__slot_read_redirect(&value, to);
}

/* MOVED: what this connection knew of tokens may be another's by now. */
static void follow(struct hf__redis *redis, const struct hf__slot_redirect *to)
{
    hf__redis_tickets_names_forget(redis);
    redis->redirected = true;
    redis->moved(redis, to);
}

static void on_answer(void *ctx, struct hf__resp *message)
{
    struct hf__redis *redis = ctx;
    struct hf__redis_call call;
    struct hf__slot_redirect to;
    bool elsewhere = redirects(redis, *message, &to);
    bool replica = demoted(message);

    if (elsewhere && !to.ask)
        follow(redis, &to);
    if (!take_call(redis, &call))
        protocol_error(redis, "an answer to no question");
    else if (!elsewhere || !to.ask || !redis->asked(redis, &call, &to))
        call.done(redis, &call, message);
    redis->redirected = false;
    if (replica)
        tell_demoted(redis);
}

bool hf__redis_connection_read(struct hf__stream *stream,
                               struct hf__resp_scan *scan,
                               hf__redis_message_fn *push,
                               hf__redis_message_fn *answer, void *ctx)
{
    int rc = HF__RESP_WHOLE;

    while (rc == HF__RESP_WHOLE && !stream->failed &&
           stream->state == HF__STREAM_OPEN && stream->in_at < stream->in.len) {
        const char *from = stream->in.text + stream->in_at;
        struct hf__resp message;

        rc = hf__resp_scan(scan, from, stream->in.len - stream->in_at);
        if (rc != HF__RESP_WHOLE)
            continue;
        message.at = from + scan->begin;
        message.end = from + scan->at;
        stream->in_at += scan->at;
        memset(scan, 0, sizeof(*scan));
        if (message.at[0] == '>')
            push(ctx, &message);
        else
            answer(ctx, &message);
    }
    return rc != HF__RESP_BAD;
}

static void stream_received(struct hf__stream *stream)
{
    struct hf__redis *redis = HF_CONTAINER_OF(stream, struct hf__redis, stream);

    if (!hf__redis_connection_read(stream, &redis->scan, on_push, on_answer,
                                   redis))
        protocol_error(redis, "a malformed message");
}

/* ---- subscribing ------------------------------------------------------- */

/* A slot that is elsewhere now is no fault of the connection: waiters look there,
 * and listen there. */
static void subscribe_failed(struct hf__redis *redis,
                             const struct hf__redis_call *call,
                             struct hf__resp *reply)
{
    struct hf__resp_value value;
    hf_error err;

    (void)call;
    if (!reply)
        return;
    value = hf__resp_next(reply);
    (void)hf__redis_errors_explain(redis, &value, &err);
    if (redis->in_cluster && err.code == HF_EUNAVAILABLE) {
        hf__redis_wait_unheard(redis);
        return;
    }
    (void)hf__fail_in(&err, err.code, "no grant can be told to us");
    hf__redis_connection_fail(redis, &err);
}

/* In a cluster channels are sharded: they belong to a slot, as keys do. */
int hf__redis_connection_send_subscribe(struct hf__redis *redis, bool on,
                                        const char *channel, size_t len,
                                        hf_error *err)
{
    struct hf__redis_call call = {.done = subscribe_failed, .pushed = true};
    struct hf__buf *out = &redis->stream.out;
    bool sharded = redis->in_cluster;
    const char *word = on ? "SSUBSCRIBE" : "SUNSUBSCRIBE";
    size_t mark = hf__redis_connection_begin(redis, sharded && !on ? 3 : 2);

    hf__resp_arg_text(out, sharded ? word : on ? word + 1 : "UNSUBSCRIBE");
    hf__resp_arg(out, channel, len);
    if (sharded && !on) {
        hf__resp_arg_begin(out, len + 1);
        hf__buf_append(out, (const char[]){NOBODYS}, 1);
        hf__buf_append(out, channel, len);
        hf__resp_arg_end(out);
    }
    return hf__redis_connection_end(redis, mark, &call, err);
}

int hf__redis_connection_subscribe(struct hf__redis *redis, hf_error *err)
{
    char channel[48];
    int rc;

    if (redis->state == HF__PEER_LISTENING)
        return 0;
    (void)snprintf(channel, sizeof(channel), "hf:i:%s", redis->identity);
    rc = hf__redis_connection_send_subscribe(redis, /* on= */ true, channel,
                                             strlen(channel), err);
    if (rc == 0)
        redis->state = HF__PEER_LISTENING;
    return rc;
}

/* ---- greeting ---------------------------------------------------------- */

static void connected(struct hf__redis *redis)
{
    redis->state = HF__PEER_UP;
    redis->old_id = 0;
    hf__up_connected(&redis->base);
}

static void on_killed(struct hf__redis *redis,
                      const struct hf__redis_call *call, struct hf__resp *reply)
{
    (void)call;
    if (reply)
        connected(redis); /* "no such client" is as good */
}

static int send_kill(struct hf__redis *redis)
{
    struct hf__redis_call call = {.done = on_killed};
    char words[48];

    (void)snprintf(words, sizeof(words), "CLIENT KILL ID %lld",
                   (long long)redis->old_id);
    return hf__redis_connection_say(redis, words, &call, /* err= */ NULL);
}

void hf__redis_connection_read_info(const struct hf__resp_value *info,
                                    const char *key, char *to, size_t size)
{
    const char *at = info->type == HF__RESP_TEXT ? info->text : "";
    const char *end = info->type == HF__RESP_TEXT ? at + info->len : at;
    size_t len = strlen(key);

    to[0] = '\0';
    while (at < end) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((line ? line : end) - at);

        if (n > len && memcmp(at, key, len) == 0 && at[len] == ':') {
            size_t used = n - len - 1;

            if (used > 0 && at[n - 1] == '\r')
                used--;
            if (used >= size)
                used = size - 1;
            memcpy(to, at + len + 1, used);
            to[used] = '\0';
            return;
        }
        at += n + 1;
    }
}

static void on_info(struct hf__redis *redis, const struct hf__redis_call *call,
                    struct hf__resp *reply)
{
    struct hf__resp_value value;
    char mode[16];
    hf_error err;
    bool same;

    (void)call;
    if (!reply)
        return;
    value = hf__resp_next(reply);
    hf__redis_connection_read_info(&value, "run_id", redis->run_id,
                                   sizeof(redis->run_id));
    hf__redis_connection_read_info(&value, "redis_mode", mode, sizeof(mode));
    if (mode[0] == '\0') /* Valkey */
        hf__redis_connection_read_info(&value, "server_mode", mode,
                                       sizeof(mode));
    if (mode[0] != '\0' &&
        strcmp(mode, redis->in_cluster ? "cluster" : "standalone") != 0) {
        (void)hf__fail(&err, HF_EUNSUPPORTED, "%s: this is a %s: write %s%s://",
                       redis->peer,
                       redis->in_cluster ? "server outside a cluster" : mode,
                       redis->in_cluster ? "redis" : "redis-",
                       redis->in_cluster ? "" : mode);
        hf__redis_connection_fail(redis, &err);
        return;
    }
    same = redis->run_id[0] != '\0' &&
           strcmp(redis->run_id, redis->old_run_id) == 0;
    if (!same)
        hf__redis_tickets_other_data(redis);
    if (redis->old_id == 0 || !same || send_kill(redis) != 0)
        connected(redis);
}

void hf__redis_connection_forget_password(struct hf__buf *out)
{
    if (out->text && out->len == 0)
        explicit_bzero(out->text, out->size);
}

static void refuse(struct hf__redis *redis, const struct hf__resp_value *value)
{
    hf_error err;

    if (hf__redis_errors_begins(value, "ERR unknown command") ||
        hf__redis_errors_begins(value, "NOPROTO"))
        (void)hf__fail(&err, HF_EUNSUPPORTED,
                       "%s is too old: Redis 7 or later is needed",
                       redis->peer);
    else
        (void)hf__redis_errors_explain(redis, value, &err);
    if (hf__redis_errors_begins(value, "ERR AUTH"))
        err.code = HF_EAUTH;
    hf__redis_connection_fail(redis, &err);
}

static void on_hello(struct hf__redis *redis, const struct hf__redis_call *call,
                     struct hf__resp *reply)
{
    struct hf__resp_value head;
    bool master = false;
    hf_error err;

    (void)call;
    if (!reply)
        return;
    hf__redis_connection_forget_password(&redis->stream.out);
    head = hf__resp_next(reply);
    if (head.type != HF__RESP_LIST) {
        refuse(redis, &head);
        return;
    }
    for (uint32_t i = 0; i + 1 < head.count; i += 2) {
        struct hf__resp_value key = hf__resp_next(reply);
        struct hf__resp_value value = hf__resp_next(reply);

        if (hf__resp_is(&key, "id"))
            redis->connection_id = hf__resp_number(&value, 0);
        else if (hf__resp_is(&key, "version") && value.type == HF__RESP_TEXT)
            (void)snprintf(redis->version, sizeof(redis->version), "%.*s",
                           (int)(value.len < 20 ? value.len : 20), value.text);
        else if (hf__resp_is(&key, "role"))
            master = hf__resp_is(&value, "master");
        hf__resp_skip(reply, &value);
    }
    if (redis->sentinels && !master) {
        (void)hf__fail(&err, HF_EUNAVAILABLE,
                       "%s is not the master (any more, or yet)", redis->peer);
        hf__redis_connection_fail(redis, &err);
        return;
    }
    if (redis->version[1] != '.' || redis->version[0] >= '7')
        return;
    (void)hf__fail(&err, HF_EUNSUPPORTED,
                   "%s has Redis %s: Redis 7 or later is needed", redis->peer,
                   redis->version);
    hf__redis_connection_fail(redis, &err);
}

static void on_select(struct hf__redis *redis,
                      const struct hf__redis_call *call, struct hf__resp *reply)
{
    struct hf__resp_value value = hf__resp_first(reply);
    hf_error err;

    (void)call;
    if (value.type != HF__RESP_ERROR)
        return;
    (void)hf__redis_errors_explain(redis, &value, &err);
    if (err.code == HF_EINTERNAL)
        err.code = HF_ECONFIG;
    hf__redis_connection_fail(redis, &err);
}

static const char *password(const struct hf__redis *redis)
{
    const struct hf__engine_host *host = redis->base.host;

    return host->url->password ? host->url->password : host->settings->password;
}

bool hf__redis_connection_has_password(const struct hf__redis *redis)
{
    return password(redis)[0] != '\0';
}

void hf__redis_connection_put_hello(const struct hf__redis *redis,
                                    struct hf__buf *out, bool auth)
{
    const struct hf__engine_host *host = redis->base.host;
    const char *user = host->url->user ? host->url->user : host->settings->user;

    hf__resp_head(out, auth ? 5 : 2);
    hf__resp_arg_text(out, "HELLO");
    hf__resp_arg_text(out, "3");
    if (auth) {
        hf__resp_arg_text(out, "AUTH");
        hf__resp_arg_text(out, user[0] ? user : "default");
        hf__resp_arg_text(out, password(redis));
    }
}

static int send_hello(struct hf__redis *redis)
{
    struct hf__redis_call call = {.done = on_hello};
    size_t mark = redis->stream.out.len;

    hf__redis_connection_put_hello(redis, &redis->stream.out,
                                   hf__redis_connection_has_password(redis));
    return hf__redis_connection_end(redis, mark, &call, /* err= */ NULL);
}

static void stream_opened(struct hf__stream *stream)
{
    struct hf__redis *redis = HF_CONTAINER_OF(stream, struct hf__redis, stream);
    struct hf__redis_call selected = {.done = on_select};
    struct hf__redis_call informed = {.done = on_info};
    char words[32];
    hf_error err;

    (void)snprintf(words, sizeof(words), "SELECT %lld", (long long)redis->db);
    if (send_hello(redis) != 0 ||
        (redis->db != 0 &&
         hf__redis_connection_say(redis, words, &selected, NULL) != 0) ||
        hf__redis_connection_say(redis, "INFO server", &informed, NULL) != 0) {
        (void)hf__fail(&err, HF_ENOMEM, "out of memory");
        down(redis, &err);
    }
}

static int start_stream(struct hf__redis *redis, hf_error *err)
{
    int rc = hf__stream_start(&redis->stream, err);

    return rc == 0 ? 0 : hf__fail_in(err, rc, "%s", redis->peer);
}

void hf__redis_connection_found(struct hf__redis *redis, const char *host,
                                int port)
{
    hf_error err;

    redis->stream.peer.host = host;
    redis->stream.peer.port = port;
    (void)snprintf(redis->peer, sizeof(redis->peer), "redis %s:%d", host, port);
    if (start_stream(redis, &err) != 0)
        down(redis, &err);
}

int hf__redis_connection_open(struct hf__redis *redis, hf_error *err)
{
    int rc;

    redis->stream.opened = stream_opened;
    redis->stream.received = stream_received;
    redis->stream.closed = stream_closed;
    redis->connect_ns = hf__now();
    rc = redis->sentinels ? hf__sentinels_search(redis->sentinels, err)
                          : start_stream(redis, err);
    if (rc != 0)
        return rc;
    hf__link_wake(
        &redis->link,
        redis->connect_ns +
            hf__ms_to_ns(redis->base.host->settings->connect_timeout_ms) /
                (redis->sentinels ? 2 : 1));
    return 0;
}
