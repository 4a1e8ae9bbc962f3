/* SPDX-License-Identifier: MIT */
/*
 * connection.c - calls of etcd's v3 API, one member at a time.
 *
 * All calls go to one member. It is believed to be fit when it knows a leader;
 * connecting asks one after the other, beginning after the one that failed
 * last. A call without an answer, or with one that says that the member cannot
 * serve ("no leader", "timed out"), ends the connection: everything under way
 * is unknown, the core connects again, and the next member is asked.
 *
 * With a user, the first call gets a token. Tokens end; a call that is refused
 * for that reason was not carried out, and is sent once more with a new one.
 * What is asked for until that has come waits for it, too.
 *
 * Failure: what is certain comes as a code of gRPC, or as UNSENT; everything
 * else as LOST. So does an answer that is no message: nothing of it can be
 * believed.
 */
#include "engines/etcd/etcd.h"
#include "net/tls.h"

#define MAY(state) (1u << HF__ETCD_##state)

static const uint8_t moves[] = {
    [HF__ETCD_DOWN] = MAY(CONNECTING),
    [HF__ETCD_CONNECTING] = MAY(UP) | MAY(DOWN),
    [HF__ETCD_UP] = MAY(AUTHENTICATING) | MAY(DOWN),
    [HF__ETCD_AUTHENTICATING] = MAY(UP) | MAY(DOWN),
};

static void move(struct hf__etcd *etcd, enum hf__etcd_connection state)
{
    assert(moves[etcd->connection] & (1u << state));
    etcd->connection = state;
}

const char *hf__etcd_connection_peer(const struct hf__etcd *etcd)
{
    return etcd->endpoints[etcd->endpoint].name;
}

/* ---- what an answer says ----------------------------------------------- */

/* The one message of a good answer. */
static bool read_message(const struct hf__grpc_call *rpc,
                         struct hf__pb *ret_message)
{
    struct hf__pb reply = {hf__buf_text(&rpc->reply), rpc->reply.len};
    size_t at = 0;

    return rpc->status == 200 && hf__frame_next(reply, &at, ret_message) > 0 &&
           at == reply.len && hf__pb_whole(*ret_message);
}

static struct hf__etcd_reply read_reply(struct hf__etcd_call *call)
{
    struct hf__grpc_call *rpc = &call->rpc;
    struct hf__etcd_reply reply = {.sent_ns = rpc->sent_ns};

    if (rpc->code > 0) {
        hf__etcd_errors_read(call->etcd, &reply, rpc);
    } else if (rpc->code < 0) {
        hf__etcd_errors_lost(call->etcd, &reply, rpc->problem, rpc->text);
        reply.code = rpc->code;
    } else if (!call->stream && !read_message(rpc, &reply.root)) {
        hf__etcd_errors_lost(call->etcd, &reply, HF_EUNAVAILABLE,
                             "an odd answer");
    }
    return reply;
}

/* ---- connections ------------------------------------------------------- */

static void on_wake(struct hf__grpc *grpc, int64_t due_ns)
{
    struct hf__etcd *etcd = grpc->owner;

    hf__link_wake(&etcd->link, due_ns);
}

static void on_lost(struct hf__grpc *grpc, const hf_error *err)
{
    struct hf__etcd *etcd = grpc->owner;
    hf_error named;

    if (grpc != &etcd->grpc)
        return;
    (void)hf__fail(&named, err->code, "etcd %s: %s", grpc->name, err->text);
    hf__etcd_connection_fail(etcd, &named);
}

static void grpc_init(struct hf__etcd *etcd, struct hf__grpc *grpc)
{
    grpc->owner = etcd;
    grpc->lost = on_lost;
    grpc->wake = on_wake;
    grpc->call_size = sizeof(struct hf__etcd_call);
    grpc->token = etcd->token;
    grpc->stream.loop = etcd->base.host->loop;
    grpc->stream.peer.tls = etcd->tls;
    grpc->stream.peer.patience_ms = etcd->base.host->settings->io_timeout_ms;
    hf__grpc_init(grpc);
}

static void aim(struct hf__grpc *grpc, const struct hf__etcd_member *member)
{
    grpc->stream.peer.host = member->host;
    grpc->stream.peer.port = member->port;
    hf__text_copy(grpc->name, sizeof(grpc->name), member->name);
}

void hf__etcd_connection_init(struct hf__etcd *etcd)
{
    hf__list_init(&etcd->delayed);
    hf__list_init(&etcd->others);
    grpc_init(etcd, &etcd->grpc);
}

static void other_free(struct hf__etcd_other *other)
{
    hf__grpc_release(&other->grpc, /* forked= */ false);
    hf__list_remove(&other->link);
    hf__free(other);
}

static void end_all(struct hf__list *calls)
{
    HF_LIST_EACH(calls, link) {
        hf__etcd_connection_end(
            HF_CONTAINER_OF(link, struct hf__etcd_call, rpc.link));
    }
}

static void abandon(struct hf__etcd *etcd)
{
    HF_LIST_EACH(&etcd->others, link) {
        hf__grpc_release(
            &HF_CONTAINER_OF(link, struct hf__etcd_other, link)->grpc,
            /* forked= */ true);
    }
    hf__grpc_release(&etcd->grpc, /* forked= */ true);
}

void hf__etcd_connection_release(struct hf__etcd *etcd, bool forked)
{
    if (forked) {
        abandon(etcd);
        return;
    }
    HF_LIST_EACH(&etcd->others, link) {
        other_free(HF_CONTAINER_OF(link, struct hf__etcd_other, link));
    }
    end_all(&etcd->delayed);
    end_all(&etcd->grpc.active);
    end_all(&etcd->grpc.ended);
    hf__grpc_release(&etcd->grpc, /* forked= */ false);
    hf__tls_context_free(HF_STEAL(etcd->tls));
    explicit_bzero(etcd->token, sizeof(etcd->token));
}

void hf__etcd_connection_flush(struct hf__etcd *etcd)
{
    etcd->boarding = NULL;
    hf__grpc_flush(&etcd->grpc);
    HF_LIST_EACH(&etcd->others, link) {
        struct hf__etcd_other *other =
            HF_CONTAINER_OF(link, struct hf__etcd_other, link);

        if (other->spent)
            other_free(other);
        else
            hf__grpc_flush(&other->grpc);
    }
}

int64_t hf__etcd_connection_due(struct hf__etcd *etcd, int64_t now_ns)
{
    int64_t next_ns = hf__grpc_due(&etcd->grpc, now_ns);

    HF_LIST_EACH(&etcd->others, link) {
        struct hf__etcd_other *other =
            HF_CONTAINER_OF(link, struct hf__etcd_other, link);
        int64_t due_ns = hf__grpc_due(&other->grpc, now_ns);

        if (due_ns < next_ns)
            next_ns = due_ns;
    }
    return next_ns;
}

/* ---- calls ------------------------------------------------------------- */

static void on_done(struct hf__grpc_call *rpc);

static struct hf__etcd_call *without_memory(struct hf__etcd *etcd)
{
    etcd->unsent =
        (struct hf__etcd_call){.etcd = etcd, .rpc.body.failed = true};
    return &etcd->unsent;
}

static struct hf__etcd_call *call_at(struct hf__etcd *etcd,
                                     struct hf__grpc *grpc, const char *path,
                                     hf__etcd_reply_fn *done)
{
    struct hf__grpc_call *rpc = hf__grpc_call_new(grpc);
    struct hf__etcd_call *call =
        rpc ? HF_CONTAINER_OF(rpc, struct hf__etcd_call, rpc)
            : without_memory(etcd);

    call->etcd = etcd;
    call->path = path;
    call->done = done;
    call->rpc.done = on_done;
    return call;
}

struct hf__etcd_call *hf__etcd_connection_call(struct hf__etcd *etcd,
                                               const char *path,
                                               hf__etcd_reply_fn *done)
{
    return call_at(etcd, &etcd->grpc, path, done);
}

struct hf__etcd_call *hf__etcd_connection_call_at(
    struct hf__etcd *etcd, const struct hf__etcd_member *member,
    const char *path, hf__etcd_reply_fn *done)
{
    struct hf__etcd_other *other = hf__calloc(1, sizeof(*other));
    struct hf__etcd_call *call;

    if (!other)
        return without_memory(etcd);
    grpc_init(etcd, &other->grpc);
    aim(&other->grpc, member);
    hf__list_append(&etcd->others, &other->link);
    call = call_at(etcd, &other->grpc, path, done);
    call->other = other;
    return call;
}

/* The connection of one question goes with it. */
void hf__etcd_connection_drop(struct hf__etcd_call *call)
{
    struct hf__etcd_other *other = call->other;

    if (call->etcd->boarding == call)
        call->etcd->boarding = NULL;
    hf__free(HF_STEAL(call->data));
    if (call != &call->etcd->unsent)
        hf__grpc_stop(&call->rpc);
    if (!other)
        return;
    hf__grpc_close(&other->grpc);
    other->spent = true;
}

void hf__etcd_connection_end(struct hf__etcd_call *call)
{
    if (!call)
        return;
    call->etcd->base.under_way -= call->stream ? 0 : 1;
    hf__etcd_connection_drop(call);
}

static int send_now(struct hf__etcd_call *call, hf_error *err)
{
    struct hf__etcd *etcd = call->etcd;
    const struct hf__settings *settings = etcd->base.host->settings;

    return hf__grpc_start(&call->rpc, call->path,
                          call->stream  ? 0
                          : call->other ? settings->io_timeout_ms / 2
                          : hf__etcd_connection_is_up(etcd)
                              ? settings->io_timeout_ms
                              : settings->connect_timeout_ms,
                          err);
}

int hf__etcd_connection_send(struct hf__etcd_call *call, hf_error *err)
{
    struct hf__etcd *etcd = call->etcd;
    int rc = 0;

    if (hf__buf_failed(&call->rpc.body)) {
        rc = hf__fail(err, HF_ENOMEM, "out of memory");
    } else if (etcd->connection == HF__ETCD_AUTHENTICATING) {
        call->rpc.sent_ns = hf__now(); /* the earliest that is true */
        hf__list_append(&etcd->delayed, &call->rpc.link);
    } else {
        rc = send_now(call, err);
    }
    if (rc != 0)
        hf__etcd_connection_drop(call);
    else if (!call->stream)
        etcd->base.under_way++;
    return rc;
}

int hf__etcd_connection_ask(struct hf__etcd *etcd, struct hf__query *query,
                            const char *path, hf__etcd_add_fn *add,
                            hf__etcd_reply_fn *done, hf_error *err)
{
    struct hf__etcd_call *call;

    if (!hf__etcd_connection_is_up(etcd))
        return hf__etcd_errors_not_up(etcd, err);
    call = hf__etcd_connection_call(etcd, path, done);
    call->query = query;
    add(etcd, &call->rpc.body, query);
    return hf__etcd_connection_send(call, err);
}

/* The last thing that is heard of a call. */
static void finish(struct hf__etcd_call *call,
                   const struct hf__etcd_reply *reply)
{
    struct hf__etcd *etcd = call->etcd;

    etcd->base.under_way -= call->stream ? 0 : 1;
    call->done(etcd, call, reply);
    hf__etcd_connection_drop(call);
}

/* ---- users ------------------------------------------------------------- */

static const char *user_of(const struct hf__etcd *etcd)
{
    const struct hf__engine_host *host = etcd->base.host;

    return host->url->user ? host->url->user : host->settings->user;
}

static void connect_next(struct hf__etcd *etcd, const hf_error *err);
static void probe(struct hf__etcd *etcd);

/* Calls that waited for the token. */
static void send_delayed(struct hf__etcd *etcd)
{
    struct hf__list *link;

    while ((link = hf__list_first(&etcd->delayed)) != NULL) {
        struct hf__etcd_call *call =
            HF_CONTAINER_OF(link, struct hf__etcd_call, rpc.link);
        struct hf__etcd_reply reply = {.code = HF__ETCD_UNSENT};

        hf__list_remove(link);
        if (send_now(call, &reply.err) != 0)
            finish(call, &reply);
    }
}

static void on_token(struct hf__etcd *etcd, struct hf__etcd_call *call,
                     const struct hf__etcd_reply *reply)
{
    hf_error err;

    if (etcd->connection == HF__ETCD_AUTHENTICATING)
        move(etcd, HF__ETCD_UP);
    /* It need not stay in our memory. */
    explicit_bzero(call->rpc.body.text, call->rpc.body.len);
    hf__pb_text(hf__pb_inside(reply->root, HF__TOKEN), etcd->token,
                sizeof(etcd->token));
    if (reply->code == HF__ETCD_OK && etcd->token[0] != '\0') {
        if (etcd->connection == HF__ETCD_CONNECTING)
            probe(etcd);
        else
            send_delayed(etcd);
        return;
    }
    if (reply->code == HF__ETCD_INVALID)
        (void)hf__fail(&err, HF_EAUTH, "%s", reply->err.text);
    else if (reply->code == HF__ETCD_PRECONDITION)
        (void)hf__fail(&err, HF_ECONFIG,
                       "etcd %s: authentication is not enabled there: leave "
                       "out user and password",
                       hf__etcd_connection_peer(etcd));
    else if (reply->code == HF__ETCD_OK)
        (void)hf__fail(&err, HF_EUNAVAILABLE, "etcd %s: no token came",
                       hf__etcd_connection_peer(etcd));
    else
        err = reply->err;
    if (etcd->connection == HF__ETCD_CONNECTING)
        connect_next(etcd, &err);
    else
        hf__etcd_connection_fail(etcd, &err);
}

static int authenticate(struct hf__etcd *etcd, hf_error *err)
{
    const struct hf__engine_host *host = etcd->base.host;
    struct hf__etcd_call *call =
        hf__etcd_connection_call(etcd, HF__CALL_AUTHENTICATE, on_token);
    const char *user = user_of(etcd);
    const char *password =
        host->url->password ? host->url->password : host->settings->password;
    int rc;

    etcd->token[0] = '\0';
    hf__pb_add_bytes(&call->rpc.body, HF__USER_NAME, user, strlen(user));
    hf__pb_add_bytes(&call->rpc.body, HF__USER_PASSWORD, password,
                     strlen(password));
    rc = hf__etcd_connection_send(call, err);
    if (rc == 0 && etcd->connection == HF__ETCD_UP)
        move(etcd, HF__ETCD_AUTHENTICATING);
    return rc;
}

/* Refused because the token has ended, or the users have changed? */
static bool needs_token(const struct hf__etcd_call *call,
                        const struct hf__etcd_reply *reply)
{
    const struct hf__etcd *etcd = call->etcd;

    if (!hf__etcd_connection_is_up(etcd) || call->again || call->stream ||
        user_of(etcd)[0] == '\0')
        return false;
    return reply->code == HF__ETCD_UNAUTHENTICATED ||
           (reply->code == HF__ETCD_INVALID &&
            strstr(reply->err.text, "auth store is old") != NULL);
}

static void park(struct hf__etcd_call *call)
{
    struct hf__etcd *etcd = call->etcd;
    hf_error err;

    call->again = true;
    hf__list_append(&etcd->delayed, &call->rpc.link);
    if (etcd->connection == HF__ETCD_UP && authenticate(etcd, &err) != 0)
        hf__etcd_connection_fail(etcd, &err);
}

static void on_done(struct hf__grpc_call *rpc)
{
    struct hf__etcd_call *call =
        HF_CONTAINER_OF(rpc, struct hf__etcd_call, rpc);
    struct hf__etcd *etcd = call->etcd;
    struct hf__etcd_reply reply = read_reply(call);
    bool fatal = reply.code < 0 && !call->stream && !call->other &&
                 hf__etcd_connection_is_up(etcd);

    if (needs_token(call, &reply)) {
        park(call);
        return;
    }
    finish(call, &reply);
    if (fatal)
        hf__etcd_connection_fail(etcd, &reply.err);
}

/* ---- connecting -------------------------------------------------------- */

static void set_down(struct hf__etcd *etcd, const hf_error *err)
{
    struct hf__etcd_reply reply = {.code = HF__ETCD_LOST, .err = *err};
    struct hf__list *lists[] = {&etcd->delayed, &etcd->grpc.ended,
                                &etcd->grpc.active};
    struct hf__list *link;

    move(etcd, HF__ETCD_DOWN);
    hf__grpc_close(&etcd->grpc);
    for (size_t i = 0; i < HF_COUNT_OF(lists); i++) {
        while ((link = hf__list_first(lists[i])) != NULL) {
            struct hf__etcd_call *call =
                HF_CONTAINER_OF(link, struct hf__etcd_call, rpc.link);

            hf__list_remove(link);
            reply.sent_ns = call->rpc.sent_ns;
            finish(call, &reply);
        }
    }
    etcd->endpoint = (etcd->endpoint + 1) % etcd->n_endpoints;
    hf__up_down(&etcd->base, err);
}

void hf__etcd_connection_fail(struct hf__etcd *etcd, const hf_error *err)
{
    if (hf__etcd_connection_is_up(etcd))
        set_down(etcd, err);
}

static bool is_final(int code)
{
    return code == HF_EAUTH || code == HF_ECONFIG || code == HF_ENOMEM ||
           code == HF_EUNSUPPORTED;
}

static void on_status(struct hf__etcd *etcd, struct hf__etcd_call *call,
                      const struct hf__etcd_reply *reply)
{
    hf_error err;

    (void)call;
    if (reply->code != HF__ETCD_OK) {
        connect_next(etcd, &reply->err);
        return;
    }
    if (hf__pb_number(reply->root, HF__STATUS_LEADER) == 0) {
        (void)hf__fail(&err, HF_EUNAVAILABLE,
                       "etcd %s: has no leader: most members are down, or "
                       "it is cut off from them",
                       hf__etcd_connection_peer(etcd));
        connect_next(etcd, &err);
        return;
    }
    hf__pb_text(hf__pb_inside(reply->root, HF__STATUS_VERSION), etcd->version,
                sizeof(etcd->version));
    move(etcd, HF__ETCD_UP);
    hf__up_connected(&etcd->base);
}

static void probe(struct hf__etcd *etcd)
{
    struct hf__etcd_call *call =
        hf__etcd_connection_call(etcd, HF__CALL_STATUS, on_status);
    hf_error err;

    if (hf__etcd_connection_send(call, &err) != 0)
        connect_next(etcd, &err);
}

static int ask_member(struct hf__etcd *etcd, hf_error *err)
{
    hf__grpc_close(&etcd->grpc);
    aim(&etcd->grpc, &etcd->endpoints[etcd->endpoint]);
    if (user_of(etcd)[0] != '\0')
        return authenticate(etcd, err);
    probe(etcd);
    return 0;
}

/* This member is not fit, for @err. NOLINTNEXTLINE(misc-no-recursion): once
 * for each member. */
static void connect_next(struct hf__etcd *etcd, const hf_error *err)
{
    hf_error why = *err;

    if (etcd->connection != HF__ETCD_CONNECTING)
        return;
    if (is_final(err->code) || ++etcd->tried == etcd->n_endpoints) {
        set_down(etcd, err);
        return;
    }
    etcd->endpoint = (etcd->endpoint + 1) % etcd->n_endpoints;
    if (ask_member(etcd, &why) != 0)
        set_down(etcd, &why);
}

int hf__etcd_connection_start(struct hf__engine *engine, hf_error *err)
{
    struct hf__etcd *etcd = (struct hf__etcd *)engine;
    int rc;

    move(etcd, HF__ETCD_CONNECTING);
    etcd->tried = 0;
    rc = ask_member(etcd, err);
    if (rc != 0)
        move(etcd, HF__ETCD_DOWN);
    return rc;
}
