/* SPDX-License-Identifier: MIT */
/*
 * nodes.c - the names of nodes, and what their data says.
 *
 * The node of a ticket is ROOT/NAME/ID MARKER NUMBER. ROOT is the path of the
 * URL, NAME the percent-encoded name, ID unique to the ticket in its session
 * (the client's identity with the session's number, and the ticket's number, in
 * the form that the dialect's library uses), NUMBER the server's. By its ID we
 * find the node again when the answer to its creation was lost.
 *
 * Why the session: a leader says that a session has expired before the others
 * have agreed. If it dies then, the session lives on with its nodes, and none of
 * them is ours any more: who holds the lock by such a node loses it untold.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/name.h"
#include "engines/common/holder.h"
#include "engines/zookeeper/zookeeper.h"

/* Room behind the ID for a line of a semaphore, the longest marker, a sign, ten
 * digits. */
enum { TAIL = 48 };

/* The first is the default. */
const struct hf__zk_dialect hf__zk_nodes_dialects[] = {
    {.name = "curator",
     .before = "_c_",
     .dashes = true,
     .marker = {"lock-", "__READ__", "__SLOT__"},
     .conditions = true},
    {.name = "curator-rw",
     .before = "_c_",
     .dashes = true,
     .marker = {"__WRIT__", "__READ__", "__SLOT__"}},
    {.name = "curator-latch",
     .before = "_c_",
     .dashes = true,
     .marker = {"latch-", NULL, NULL}},
    {.name = "curator-semaphore",
     .before = "_c_",
     .dashes = true,
     .marker = {NULL, NULL, "lease-"},
     .semaphore = true},
    {.name = "kazoo",
     .before = "",
     .marker = {"__lock__", "__rlock__", "__SLOT__"},
     .conditions = true},
    {.name = "medallion",
     .before = "",
     .marker = {"lock-", NULL, NULL},
     .bare = true},
    {.name = "medallion-rw",
     .before = "",
     .marker = {"write-", "read-", NULL},
     .bare = true},
    {.name = NULL},
};

enum hf__zk_kind hf__zk_nodes_kind(int32_t mode)
{
    return mode == HF_SHARED ? HF__ZK_READ
           : mode == HF_SLOT ? HF__ZK_SLOT
                             : HF__ZK_LOCK;
}

int hf__zk_nodes_init(struct hf__zk *zk)
{
    const struct hf__engine_host *host = zk->base.host;

    (void)snprintf(zk->whoami, sizeof(zk->whoami), "%.80s\n%" PRId64,
                   host->host, host->pid);
    return hf__world->random(zk->hash_key, sizeof(zk->hash_key));
}

uint64_t hf__zk_nodes_hash(const struct hf__zk *zk,
                           struct hf__zk_wire_text path)
{
    return hf__name_hash(path.text, path.len, zk->hash_key) |
           1; /* 0 is "none" */
}

/* ---- paths --------------------------------------------------------------- */

struct hf__zk_wire_text hf__zk_nodes_root(const struct hf__zk *zk)
{
    return (struct hf__zk_wire_text){zk->root, zk->root_len};
}

/* What did not find memory the last time may find it now. */
static struct hf__buf *begin(struct hf__zk *zk, struct hf__zk_wire_text with)
{
    zk->scratch.len = 0;
    zk->scratch.failed = false;
    hf__buf_append(&zk->scratch, with.text, with.len);
    return &zk->scratch;
}

struct hf__buf *hf__zk_nodes_begin(struct hf__zk *zk)
{
    return begin(zk, hf__zk_nodes_root(zk));
}

struct hf__zk_wire_text hf__zk_nodes_spelled(const struct hf__zk *zk)
{
    return hf__zk_wire_text_in(&zk->scratch);
}

struct hf__zk_wire_text hf__zk_nodes_below(struct hf__zk *zk,
                                           struct hf__zk_wire_text dir,
                                           struct hf__zk_wire_text name)
{
    hf__buf_add_char(begin(zk, dir), '/');
    hf__buf_append(&zk->scratch, name.text, name.len);
    return hf__zk_nodes_spelled(zk);
}

struct hf__zk_wire_text hf__zk_nodes_path(struct hf__zk *zk, const char *beside,
                                          const char *name, size_t len)
{
    const char *prefix = zk->base.host->settings->prefix;
    size_t prefix_len = strlen(prefix);
    char whole[128 + HF_NAME_MAX + 1];
    char encoded[3 * sizeof(whole) + 1];
    struct hf__buf *path = hf__zk_nodes_begin(zk);

    if (prefix_len + len >= sizeof(whole)) {
        path->failed = true;
        return hf__zk_nodes_spelled(zk);
    }
    memcpy(whole, prefix, prefix_len);
    memcpy(whole + prefix_len, name, len);
    whole[prefix_len + len] = '\0';
    hf__buf_add(path, beside);
    hf__buf_add_char(path, '/');
    hf__buf_append(
        path, encoded,
        hf__name_encode(whole, prefix_len + len, encoded, sizeof(encoded)));
    return hf__zk_nodes_spelled(zk);
}

size_t hf__zk_nodes_next(struct hf__zk_wire_text path, size_t len, bool missing)
{
    if (missing) {
        while (len > 0 && path.text[--len] != '/')
            continue;
        return len;
    }
    if (len++ >= path.len)
        return 0;
    while (len < path.len && path.text[len] != '/')
        len++;
    return len;
}

bool hf__zk_nodes_name(const struct hf__zk *zk, struct hf__zk_wire_text child,
                       char to[HF_NAME_MAX + 1])
{
    const char *prefix = zk->base.host->settings->prefix;
    size_t prefix_len = strlen(prefix);
    char whole[128 + HF_NAME_MAX + 1];
    size_t n = hf__name_decode(child.text, child.len, whole, sizeof(whole));

    if (n <= prefix_len || n - prefix_len > HF_NAME_MAX ||
        memcmp(whole, prefix, prefix_len) != 0)
        return false;
    memcpy(to, whole + prefix_len, n - prefix_len);
    to[n - prefix_len] = '\0';
    return true;
}

/* Byte @i of the ID of @ticket: two of the client, eight of the client and the
 * session, six of the ticket. */
static unsigned id_byte(const struct hf__zk *zk,
                        const struct hf__ticket *ticket, unsigned i)
{
    const uint8_t *identity = zk->base.host->identity;
    uint64_t session = (uint64_t)zk->session;

    if (i >= 10)
        return (unsigned)(ticket->id >> 8 * (15 - i) & 0xff);
    return identity[i] ^
           (i < 2 ? 0 : (unsigned)(session >> 8 * (9 - i) & 0xff));
}

/* Add the ID of @ticket, in the dialect's form. */
static void add_id(const struct hf__zk *zk, const struct hf__ticket *ticket,
                   struct hf__buf *to)
{
    hf__buf_add(to, zk->dialect->before);
    for (unsigned i = 0; i < 16; i++) {
        hf__buf_printf(to, "%02x", id_byte(zk, ticket, i));
        if (zk->dialect->dashes && i >= 3 && i <= 9 && i % 2 == 1)
            hf__buf_add_char(to, '-');
    }
    if (zk->dialect->dashes)
        hf__buf_add_char(to, '-');
}

/* The path of @ticket's node up to the number. */
static struct hf__zk_wire_text spell(struct hf__zk *zk,
                                     const struct hf__ticket *ticket,
                                     struct hf__zk_ticket *mine)
{
    struct hf__buf *path = &zk->scratch;

    (void)hf__zk_nodes_path(zk, "", ticket->name, ticket->name_len);
    mine->dir_len = (uint32_t)path->len;
    hf__buf_add_char(path, '/');
    if (!zk->dialect->bare)
        add_id(zk, ticket, path);
    mine->id_len = (uint32_t)path->len;
    hf__buf_add(path, zk->dialect->marker[hf__zk_nodes_kind(ticket->mode)]);
    return hf__zk_nodes_spelled(zk);
}

int hf__zk_nodes_make_path(struct hf__zk *zk, const struct hf__ticket *ticket,
                           struct hf__zk_ticket *mine)
{
    struct hf__zk_wire_text path = spell(zk, ticket, mine);

    mine->base_len = (uint32_t)path.len;
    mine->path_size = mine->id_len + TAIL;
    mine->path = path.text ? hf__malloc(mine->path_size) : NULL;
    if (!mine->path)
        return HF_ENOMEM;
    memcpy(mine->path, path.text, path.len);
    mine->name_len = mine->dir_len;
    if (zk->dialect->semaphore)
        hf__zk_curator_semaphore_line(mine, HF__ZK_LINE_MUTEX);
    return 0;
}

int hf__zk_nodes_renew_id(struct hf__zk *zk, const struct hf__ticket *ticket,
                          struct hf__zk_ticket *mine)
{
    struct hf__buf *id = begin(zk, hf__zk_wire_text_of(""));

    if (zk->dialect->bare)
        return 0; /* it is in the data */
    add_id(zk, ticket, id);
    if (hf__buf_failed(id))
        return HF_ENOMEM;
    assert(id->len == mine->id_len - mine->dir_len - 1);
    memcpy(mine->path + mine->dir_len + 1, id->text, id->len);
    return 0;
}

bool hf__zk_nodes_adopt(struct hf__zk_ticket *mine, const char *name,
                        size_t len)
{
    size_t id_len = mine->id_len - mine->dir_len - 1;
    char *to = mine->path + mine->dir_len + 1;

    if (len <= id_len || mine->dir_len + 1 + len > mine->path_size ||
        memcmp(name, to, id_len) != 0)
        return false;
    memcpy(to, name, len);
    mine->path_len = (uint32_t)(mine->dir_len + 1 + len);
    mine->node = HF__ZK_NODE_KNOWN;
    return true;
}

void hf__zk_nodes_lose(struct hf__zk_ticket *mine, enum hf__zk_node node)
{
    mine->node = (uint8_t)node;
    mine->path_len = 0;
}

struct hf__zk_wire_text hf__zk_nodes_own(const struct hf__zk_ticket *mine)
{
    return (struct hf__zk_wire_text){mine->path, mine->path_len};
}

struct hf__zk_wire_text hf__zk_nodes_dir(const struct hf__zk_ticket *mine)
{
    return (struct hf__zk_wire_text){mine->path, mine->dir_len};
}

struct hf__zk_wire_text hf__zk_nodes_id(const struct hf__zk_ticket *mine)
{
    return (struct hf__zk_wire_text){mine->path + mine->dir_len + 1,
                                     mine->id_len - mine->dir_len - 1};
}

/* ---- records ------------------------------------------------------------- */

void hf__zk_nodes_write(const struct hf__zk *zk,
                        const struct hf__ticket *ticket, uint64_t token,
                        bool held, struct hf__buf *to)
{
    hf__buf_printf(to, "holdfast\n%s\n%s\n%s\n%d\n%d\n%" PRIu64 "\n%s",
                   zk->whoami, ticket->owner, ticket->note, (int)ticket->slots,
                   (int)zk->session_ms, token, held ? "held" : "");
    if (zk->dialect->bare) {
        hf__buf_add_char(to, '\n');
        add_id(zk, ticket, to);
    }
}

bool hf__zk_nodes_is_of(struct hf__zk *zk, const struct hf__ticket *ticket,
                        struct hf__zk_wire_text data)
{
    struct hf__buf *id = begin(zk, hf__zk_wire_text_of("\n"));

    add_id(zk, ticket, id);
    return !hf__buf_failed(id) && data.len >= id->len &&
           memcmp(data.text + data.len - id->len, id->text, id->len) == 0;
}

bool hf__zk_nodes_read(struct hf__zk_wire_text data, char copy[HF__ZK_TEXTS],
                       hf_lock_info *row)
{
    size_t len = data.len < HF__ZK_TEXTS ? data.len : HF__ZK_TEXTS - 1;
    uint64_t token;
    char *at = copy;

    memcpy(copy, data.text, len);
    copy[len] = '\0';
    row->owner = row->host = row->note = "";
    row->alive = 2;
    if (strncmp(copy, "holdfast\n", 9) != 0) {
        /* Curator writes its address there, kazoo who it is. */
        if (hf__name_check_text("data", copy, len, 1, 255, NULL) == 0)
            row->host = copy;
        return false;
    }
    (void)hf__holder_line(&at);
    hf__holder_read(&at, row);
    row->slots = (int32_t)strtol(hf__holder_line(&at), NULL, 10);
    row->lease_ms = strtoll(hf__holder_line(&at), NULL, 10);
    token = strtoull(hf__holder_line(&at), NULL, 10);
    if (token != 0)
        row->token = token;
    return strcmp(hf__holder_line(&at), "held") == 0;
}
