/* SPDX-License-Identifier: MIT */
/* errors.c - what the server says went wrong, in our words. */
#include "engines/redis/errors.h"
#include "engines/redis/redis.h"

bool hf__redis_errors_begins(const struct hf__resp_value *value,
                             const char *word)
{
    size_t len = strlen(word);

    return value->type == HF__RESP_ERROR && value->len >= len &&
           memcmp(value->text, word, len) == 0;
}

/* How the server's word for an error reads in ours, and what to do. @certain:
 * it is said before anything is done. */
static const struct {
    const char *word;
    int code;
    bool certain;
    const char *hint;
} words[] = {
    {"OOM", HF_ENOSPACE, true, "raise maxmemory, or free some"},
    {"WRONGPASS", HF_EAUTH, true, "user and password are wrong"},
    {"NOAUTH", HF_EAUTH, true, "the server wants a user or password"},
    {"NOPERM", HF_EAUTH, false,
     "the ACL user needs ~hf:* &hf:* and the commands in holdfast(7)"},
    {"ERR The user executing the script", HF_EAUTH, false,
     "the ACL user needs ~hf:* &hf:* and the commands in holdfast(7)"},
    /* The same, as Valkey and Redis after 7.0 say it. */
    {"ERR ACL failure in script", HF_EAUTH, false,
     "the ACL user needs ~hf:* &hf:* and the commands in holdfast(7)"},
    /* Loading it was refused before. */
    {"NOSCRIPT", HF_EAUTH, true, "the ACL user needs +script|load"},
    {"DENIED", HF_EAUTH, true, "the server takes no remote clients"},
    {"READONLY", HF_EUNAVAILABLE, true, "this is a replica"},
    {"LOADING", HF_EUNAVAILABLE, true, "it has just started"},
    {"MASTERDOWN", HF_EUNAVAILABLE, true, "this is a replica"},
    {"MISCONF", HF_EUNAVAILABLE, true, "it cannot write to its disk"},
    {"NOREPLICAS", HF_EUNAVAILABLE, true, "too few replicas are connected"},
    {"BUSY", HF_EUNAVAILABLE, true, "a script of somebody runs too long"},
    {"MOVED", HF_EUNAVAILABLE, true, "another node has this slot now"},
    {"ASK", HF_EUNAVAILABLE, true, "the slot is on its way to another node"},
    {"TRYAGAIN", HF_EUNAVAILABLE, true,
     "the slot is on its way to another node"},
    /* The scripts for clusters look at all keys before they change any. */
    {"ERR Script attempted to access a non local key", HF_EUNAVAILABLE, true,
     "the slot is on its way to another node"},
    {"CLUSTERDOWN", HF_EUNAVAILABLE, true, "the cluster is down"},
    {"CROSSSLOT", HF_EUNSUPPORTED, true,
     "this is a node of a cluster: write redis-cluster://"},
    {"WRONGTYPE", HF_ECONFIG, false, "another program uses this key: prefix="},
    {"ERR max number of clients", HF_EUNAVAILABLE, true, "raise maxclients"},
};

bool hf__redis_errors_explain(struct hf__redis *redis,
                              const struct hf__resp_value *value, hf_error *err)
{
    int most = value->len < 120 ? (int)value->len : 120;

    for (size_t i = 0; i < HF_COUNT_OF(words); i++) {
        if (hf__redis_errors_begins(value, words[i].word)) {
            (void)hf__fail(err, words[i].code, "%s: %s (%.*s)", redis->peer,
                           words[i].hint, most, value->text);
            return words[i].certain;
        }
    }
    (void)hf__fail(err, HF_EINTERNAL, "%s: %.*s", redis->peer,
                   value->type == HF__RESP_ERROR ? most : 0,
                   value->type == HF__RESP_ERROR ? value->text : "");
    return false;
}

void hf__redis_errors_explain_lost(struct hf__redis *redis, hf_error *err)
{
    (void)hf__fail(err, HF_EUNAVAILABLE, "%s: the connection was lost",
                   redis->peer);
}
