/* SPDX-License-Identifier: MIT */
/*
 * api.c - calls of etcd's v3 API, one member at a time.
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
 * Failure: what is certain comes as a code of gRPC, everything else as LOST.
 * An answer that is not JSON is LOST too: nothing of it can be believed.
 */
#include <stdio.h>

#include "engines/etcd/etcd.h"

const char *hf__etcd_peer(const struct hf__etcd *etcd)
{
    return strstr(etcd->endpoints[etcd->endpoint], "//") + 2;
}

int hf__etcd_not_up(struct hf__etcd *etcd, hf_error *err)
{
    return hf__fail(err, HF_EUNAVAILABLE, "etcd %s: not connected",
                    hf__etcd_peer(etcd));
}

void hf__etcd_answer_failed(struct hf__etcd *etcd, struct hf__query *query,
                            const struct hf__etcd_reply *reply)
{
    hf__up_answer(&etcd->base, query, reply->err.code, &reply->err);
}

/* ---- what an answer says ----------------------------------------------- */

static const struct {
    int code;
    int ours;
    const char *hint;
} codes[] = {
    {HF__ETCD_INVALID, HF_EINTERNAL, ""},
    {HF__ETCD_NOT_FOUND, HF_ENOTFOUND, ""},
    {HF__ETCD_DENIED, HF_EAUTH,
     ": the user's role needs readwrite on the prefix, see holdfast(7)"},
    {HF__ETCD_EXHAUSTED, HF_ENOSPACE,
     ": compact, defragment, and disarm the alarm"},
    {HF__ETCD_PRECONDITION, HF_EUNSUPPORTED, ""},
    {HF__ETCD_UNIMPLEMENTED, HF_EUNSUPPORTED, ""},
    {HF__ETCD_UNAUTHENTICATED, HF_EAUTH, ""},
};

static void set_lost(struct hf__etcd *etcd, struct hf__etcd_reply *reply,
                     int code, const char *why)
{
    reply->code = HF__ETCD_LOST;
    (void)hf__fail(&reply->err, code, "etcd %s: %s", hf__etcd_peer(etcd), why);
}

/* An error of the server: {"error":…, "message":…, "code":…}. */
static void read_error(struct hf__etcd *etcd, struct hf__etcd_reply *reply,
                       struct hf__json error)
{
    int64_t code = hf__json_number(hf__json_member(error, "code"));
    struct hf__json message = hf__json_member(error, "message");
    char text[160];

    if (message.type != HF__JSON_STRING)
        message = hf__json_member(error, "error");
    hf__json_text(message, text, sizeof(text));
    set_lost(etcd, reply, HF_EUNAVAILABLE, text[0] ? text : "an odd answer");
    for (size_t i = 0; i < HF_COUNT_OF(codes); i++) {
        if (codes[i].code != code)
            continue;
        reply->code = (int)code;
        (void)hf__fail_engine(&reply->err, codes[i].ours, (int)code,
                              "etcd %s: %s%s", hf__etcd_peer(etcd), text,
                              codes[i].hint);
    }
}

/* A body that is not etcd's JSON: of a proxy, of another server, or of the
 * gateway before it has looked at the request. */
static void read_status(struct hf__etcd *etcd, struct hf__etcd_reply *reply,
                        const struct hf__http_call *http)
{
    char text[160];
    int n = snprintf(text, sizeof(text), "HTTP status %ld: %.*s", http->status,
                     http->reply.len < 120 ? (int)http->reply.len : 120,
                     hf__buf_text(&http->reply));

    for (int i = 0; i < n && text[i]; i++) {
        if (text[i] < 0x20 || text[i] > 0x7e)
            text[i] = ' ';
    }
    set_lost(etcd, reply, HF_EUNAVAILABLE, text);
}

static struct hf__etcd_reply read_reply(struct hf__etcd_call *call)
{
    struct hf__http_call *http = &call->http;
    struct hf__etcd_reply reply = {.sent_ns = http->sent_ns};
    struct hf__json error;

    if (http->status == 0) {
        set_lost(call->etcd, &reply, http->problem, http->text);
        return reply;
    }
    reply.root = hf__json_read(http->reply.text, http->reply.len);
    error = hf__json_member(reply.root, "error");
    if (error.type == HF__JSON_OBJECT || error.type == HF__JSON_STRING)
        read_error(call->etcd, &reply,
                   error.type == HF__JSON_OBJECT ? error : reply.root);
    else if (http->status != 200 || reply.root.type != HF__JSON_OBJECT)
        read_status(call->etcd, &reply, http);
    return reply;
}

/* ---- calls ------------------------------------------------------------- */

static void on_done(struct hf__http_call *http);

struct hf__etcd_call *hf__etcd_call_new(struct hf__etcd *etcd, const char *path,
                                        hf__etcd_reply_fn *done)
{
    struct hf__http_call *http = hf__http_call_new(&etcd->http);
    struct hf__etcd_call *call;

    if (!http)
        return NULL;
    call = HF_CONTAINER_OF(http, struct hf__etcd_call, http);
    call->etcd = etcd;
    call->path = path;
    call->done = done;
    http->done = on_done;
    return call;
}

static void call_free(struct hf__etcd_call *call)
{
    hf__free(call->data);
    hf__http_stop(&call->http);
}

void hf__etcd_call_stop(struct hf__etcd_call *call)
{
    if (!call)
        return;
    call->etcd->base.under_way -= call->stream ? 0 : 1;
    call_free(call);
}

static int send_now(struct hf__etcd_call *call, hf_error *err)
{
    struct hf__etcd *etcd = call->etcd;
    const struct hf__settings *settings = etcd->base.host->settings;

    etcd->url.len = 0;
    hf__buf_add(&etcd->url,
                call->member ? call->member : etcd->endpoints[etcd->endpoint]);
    hf__buf_add(&etcd->url, call->path);
    if (hf__buf_failed(&etcd->url))
        return hf__fail(err, HF_ENOMEM, "out of memory");
    return hf__http_start(&call->http, hf__buf_text(&etcd->url),
                          call->stream   ? 0
                          : call->member ? settings->io_timeout_ms / 2
                          : etcd->up     ? settings->io_timeout_ms
                                         : settings->connect_timeout_ms,
                          err);
}

int hf__etcd_call_send(struct hf__etcd_call *call, hf_error *err)
{
    struct hf__etcd *etcd = call->etcd;
    int rc = 0;

    if (etcd->up && etcd->authenticating) {
        call->http.sent_ns = hf__now(); /* the earliest that is true */
        hf__list_append(&etcd->parked, &call->http.link);
    } else {
        rc = send_now(call, err);
    }
    if (rc != 0)
        call_free(call);
    else if (!call->stream)
        etcd->base.under_way++;
    return rc;
}

/* The last thing that is heard of a call. */
static void finish(struct hf__etcd_call *call,
                   const struct hf__etcd_reply *reply)
{
    struct hf__etcd *etcd = call->etcd;

    etcd->base.under_way -= call->stream ? 0 : 1;
    call->done(etcd, call, reply);
    call_free(call);
}

/* ---- users ------------------------------------------------------------- */

static const char *user_of(const struct hf__etcd *etcd)
{
    const struct hf__engine_host *host = etcd->base.host;

    return host->url->user ? host->url->user : host->settings->user;
}

/* A JSON string of any text. */
static void add_text(struct hf__buf *to, const char *text)
{
    hf__buf_add_char(to, '"');
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20)
            hf__buf_printf(to, "\\u%04x", (unsigned)(unsigned char)*text);
        else {
            if (*text == '"' || *text == '\\')
                hf__buf_add_char(to, '\\');
            hf__buf_add_char(to, *text);
        }
    }
    hf__buf_add_char(to, '"');
}

static void connect_next(struct hf__etcd *etcd, const hf_error *err);
static void probe(struct hf__etcd *etcd);

/* Calls that waited for the token. */
static void send_parked(struct hf__etcd *etcd)
{
    struct hf__list *link;

    while ((link = hf__list_first(&etcd->parked)) != NULL) {
        struct hf__etcd_call *call =
            HF_CONTAINER_OF(link, struct hf__etcd_call, http.link);
        struct hf__etcd_reply reply = {.code = HF__ETCD_LOST};

        hf__list_remove(link);
        call->http.reply.len = 0;
        if (send_now(call, &reply.err) != 0)
            finish(call, &reply);
    }
}

static void on_token(struct hf__etcd *etcd, struct hf__etcd_call *call,
                     const struct hf__etcd_reply *reply)
{
    struct hf__json token = hf__json_member(reply->root, "token");
    char text[HF__HTTP_TOKEN];
    hf_error err;

    etcd->authenticating = false;
    /* It need not stay in our memory. */
    explicit_bzero(call->http.body.text, call->http.body.len);
    hf__json_text(token, text, sizeof(text));
    if (reply->code == HF__ETCD_OK && text[0] != '\0') {
        hf__http_authorize(&etcd->http, text);
        if (etcd->connecting)
            probe(etcd);
        else
            send_parked(etcd);
        return;
    }
    if (reply->code == HF__ETCD_INVALID)
        (void)hf__fail(&err, HF_EAUTH, "%s", reply->err.text);
    else if (reply->code == HF__ETCD_PRECONDITION)
        (void)hf__fail(&err, HF_ECONFIG,
                       "etcd %s: authentication is not enabled there: leave "
                       "out user and password",
                       hf__etcd_peer(etcd));
    else if (reply->code == HF__ETCD_OK)
        (void)hf__fail(&err, HF_EUNAVAILABLE, "etcd %s: no token came",
                       hf__etcd_peer(etcd));
    else
        err = reply->err;
    if (etcd->connecting)
        connect_next(etcd, &err);
    else
        hf__etcd_fail(etcd, &err);
}

static int authenticate(struct hf__etcd *etcd, hf_error *err)
{
    const struct hf__engine_host *host = etcd->base.host;
    struct hf__etcd_call *call =
        hf__etcd_call_new(etcd, "/v3/auth/authenticate", on_token);
    int rc;

    if (!call)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    hf__http_authorize(&etcd->http, "");
    hf__buf_add(&call->http.body, "{\"name\":");
    add_text(&call->http.body, user_of(etcd));
    hf__buf_add(&call->http.body, ",\"password\":");
    add_text(&call->http.body, host->url->password ? host->url->password
                                                   : host->settings->password);
    hf__buf_add(&call->http.body, "}");
    rc = hf__etcd_call_send(call, err);
    etcd->authenticating = rc == 0;
    return rc;
}

/* Refused because the token has ended, or the users have changed? */
static bool needs_token(const struct hf__etcd_call *call,
                        const struct hf__etcd_reply *reply)
{
    const struct hf__etcd *etcd = call->etcd;

    if (!etcd->up || call->again || call->stream || user_of(etcd)[0] == '\0')
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
    hf__list_append(&etcd->parked, &call->http.link);
    if (!etcd->authenticating && authenticate(etcd, &err) != 0)
        hf__etcd_fail(etcd, &err);
}

static void on_done(struct hf__http_call *http)
{
    struct hf__etcd_call *call =
        HF_CONTAINER_OF(http, struct hf__etcd_call, http);
    struct hf__etcd *etcd = call->etcd;
    struct hf__etcd_reply reply = read_reply(call);
    bool fatal = reply.code == HF__ETCD_LOST && !call->stream &&
                 !call->member && etcd->up;

    if (needs_token(call, &reply)) {
        park(call);
        return;
    }
    finish(call, &reply);
    if (fatal)
        hf__etcd_fail(etcd, &reply.err);
}

/* ---- connecting -------------------------------------------------------- */

static void set_down(struct hf__etcd *etcd, const hf_error *err)
{
    struct hf__etcd_reply reply = {.code = HF__ETCD_LOST, .err = *err};
    struct hf__list *lists[] = {&etcd->parked, &etcd->http.ended,
                                &etcd->http.active};
    struct hf__list *link;

    etcd->up = false;
    etcd->connecting = false;
    etcd->authenticating = false;
    for (size_t i = 0; i < HF_COUNT_OF(lists); i++) {
        while ((link = hf__list_first(lists[i])) != NULL) {
            struct hf__etcd_call *call =
                HF_CONTAINER_OF(link, struct hf__etcd_call, http.link);

            hf__list_remove(link);
            reply.sent_ns = call->http.sent_ns;
            finish(call, &reply);
        }
    }
    etcd->endpoint = (etcd->endpoint + 1) % etcd->n_endpoints;
    hf__up_down(&etcd->base, err);
}

void hf__etcd_fail(struct hf__etcd *etcd, const hf_error *err)
{
    if (etcd->up)
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
    if (hf__json_unsigned(hf__json_member(reply->root, "leader")) == 0) {
        (void)hf__fail(&err, HF_EUNAVAILABLE,
                       "etcd %s: has no leader: most members are down, or "
                       "it is cut off from them",
                       hf__etcd_peer(etcd));
        connect_next(etcd, &err);
        return;
    }
    hf__json_text(hf__json_member(reply->root, "version"), etcd->version,
                  sizeof(etcd->version));
    etcd->connecting = false;
    etcd->up = true;
    hf__up_connected(&etcd->base);
}

static void probe(struct hf__etcd *etcd)
{
    struct hf__etcd_call *call =
        hf__etcd_call_new(etcd, "/v3/maintenance/status", on_status);
    hf_error err;

    (void)hf__fail(&err, HF_ENOMEM, "out of memory");
    if (call)
        hf__buf_add(&call->http.body, "{}");
    if (!call || hf__etcd_call_send(call, &err) != 0)
        connect_next(etcd, &err);
}

static int ask_member(struct hf__etcd *etcd, hf_error *err)
{
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

    if (!etcd->connecting)
        return;
    if (is_final(err->code) || ++etcd->tried == etcd->n_endpoints) {
        set_down(etcd, err);
        return;
    }
    etcd->endpoint = (etcd->endpoint + 1) % etcd->n_endpoints;
    if (ask_member(etcd, &why) != 0)
        set_down(etcd, &why);
}

int hf__etcd_connect(struct hf__etcd *etcd, hf_error *err)
{
    int rc;

    etcd->connecting = true;
    etcd->tried = 0;
    rc = ask_member(etcd, err);
    if (rc != 0)
        etcd->connecting = false;
    return rc;
}
