/* SPDX-License-Identifier: MIT */
/*
 * fault_script.c - the language that describes faults.
 *
 *     script = rule { ";" rule }
 *     rule   = "seed=" N
 *            | [ call ":" ] action [ "=" value ] [ "@" which ] [ "~" percent ]
 *     which  = N | N "+" | N "-" N
 *
 * A rule counts the calls it applies to, from 1; "@" picks some of them, "~"
 * applies it at random (in a configuration file "%" does the same; in a URL
 * that sign has another meaning). Without a call it applies to all calls.
 *
 *   call      connect acquire withdraw release renew downgrade park unpark
 *             signal query hold any
 *   action    fail=CODE   refused with CODE (EUNAVAILABLE), nothing was done
 *             delay=TIME  made so much later
 *             cut         the request is lost: nothing was done, unknown
 *             drop        the answer is lost: it was done, unknown
 *             lost        renew only: the lock was taken away
 *             expire=TIME hold only: the lock is taken away so long after
 *             down=TIME   the connection breaks, and cannot be made for TIME
 *
 * Of several rules for one call the first applies; delays add up.
 *
 *     acquire:fail@3; renew:drop@2+; hold:expire=5s; acquire:cut~20; seed=7
 *
 * Failure: HF_ECONFIG with the position, counted in bytes from 1.
 */
#include "engines/wrap/fault_script.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "config/value.h"

#define BIT(call) (UINT32_C(1) << (call))

static const char *const call_names[HF__FAULT_CALLS] = {
    [HF__FAULT_CONNECT] = "connect",   [HF__FAULT_ACQUIRE] = "acquire",
    [HF__FAULT_WITHDRAW] = "withdraw", [HF__FAULT_RELEASE] = "release",
    [HF__FAULT_RENEW] = "renew",       [HF__FAULT_DOWNGRADE] = "downgrade",
    [HF__FAULT_PARK] = "park",         [HF__FAULT_UNPARK] = "unpark",
    [HF__FAULT_SIGNAL] = "signal",     [HF__FAULT_QUERY] = "query",
    [HF__FAULT_HOLD] = "hold",
};

enum {
    TICKET_CALLS = BIT(HF__FAULT_ACQUIRE) | BIT(HF__FAULT_WITHDRAW) |
                   BIT(HF__FAULT_RELEASE) | BIT(HF__FAULT_RENEW) |
                   BIT(HF__FAULT_DOWNGRADE) | BIT(HF__FAULT_PARK) |
                   BIT(HF__FAULT_UNPARK),
    ALL_CALLS = TICKET_CALLS | BIT(HF__FAULT_SIGNAL) | BIT(HF__FAULT_CONNECT) |
                BIT(HF__FAULT_QUERY)
};

/* What each action may be done to, and whether it takes a value. */
static const struct action_row {
    const char *name;
    uint32_t calls;
    enum { VALUE_NONE, VALUE_CODE, VALUE_TIME, VALUE_MAYBE_TIME } value;
} action_rows[] = {
    [HF__FAULT_NONE] = {"", 0, VALUE_NONE},
    [HF__FAULT_FAIL] = {"fail", ALL_CALLS, VALUE_CODE},
    [HF__FAULT_DELAY] = {"delay", TICKET_CALLS | BIT(HF__FAULT_CONNECT),
                         VALUE_TIME},
    [HF__FAULT_CUT] = {"cut", TICKET_CALLS | BIT(HF__FAULT_SIGNAL), VALUE_NONE},
    [HF__FAULT_DROP] = {"drop", TICKET_CALLS | BIT(HF__FAULT_SIGNAL),
                        VALUE_NONE},
    [HF__FAULT_LOST] = {"lost", BIT(HF__FAULT_RENEW), VALUE_NONE},
    [HF__FAULT_EXPIRE] = {"expire", BIT(HF__FAULT_HOLD), VALUE_TIME},
    [HF__FAULT_DOWN] = {"down",
                        TICKET_CALLS | BIT(HF__FAULT_SIGNAL) |
                            BIT(HF__FAULT_QUERY),
                        VALUE_MAYBE_TIME},
};

struct reader {
    const char *text; /* the whole script */
    const char *at;
    hf_error *err;
};

static int wrong(const struct reader *reader, const char *at, const char *what)
{
    return hf__fail(reader->err, HF_ECONFIG,
                    "fault: at character %d (\"%.20s\"): %s",
                    (int)(at - reader->text) + 1, at, what);
}

static void skip_spaces(struct reader *reader)
{
    while (*reader->at == ' ')
        reader->at++;
}

/* A word of letters and '_'; its length. */
static size_t word_len(const char *at)
{
    return strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_");
}

static bool is_word(const char *at, size_t len, const char *word)
{
    return strlen(word) == len && strncmp(at, word, len) == 0;
}

static int read_number(struct reader *reader, uint64_t *ret_number)
{
    const char *from = reader->at;
    uint64_t number = 0;

    while (*reader->at >= '0' && *reader->at <= '9' &&
           number < UINT64_MAX / 100)
        number = number * 10 + (uint64_t)(*reader->at++ - '0');
    if (reader->at == from)
        return wrong(reader, from, "a number is expected");
    *ret_number = number;
    return 0;
}

static int read_call(struct reader *reader, struct hf__fault_rule *rule)
{
    size_t len = word_len(reader->at);

    if (reader->at[len] != ':') {
        rule->calls = ALL_CALLS;
        return 0;
    }
    if (is_word(reader->at, len, "any"))
        rule->calls = ALL_CALLS;
    for (size_t i = 0; i < HF__FAULT_CALLS; i++)
        if (is_word(reader->at, len, call_names[i]))
            rule->calls = BIT(i);
    if (rule->calls == 0)
        return wrong(reader, reader->at,
                     "before the colon stands connect, acquire, withdraw, "
                     "release, renew, downgrade, park, unpark, signal, query, "
                     "hold or any");
    reader->at += len + 1;
    skip_spaces(reader);
    return 0;
}

static int read_action(struct reader *reader, struct hf__fault_rule *rule)
{
    size_t len = word_len(reader->at);
    const char *at = reader->at;

    for (size_t i = 1; i < HF_COUNT_OF(action_rows); i++)
        if (is_word(at, len, action_rows[i].name))
            rule->action = (uint8_t)i;
    if (rule->action == HF__FAULT_NONE)
        return wrong(reader, at,
                     "the actions are fail, delay, cut, drop, lost, expire "
                     "and down");
    if (rule->calls == ALL_CALLS)
        rule->calls &= action_rows[rule->action].calls;
    if (rule->calls == 0 ||
        (rule->calls & action_rows[rule->action].calls) != rule->calls)
        return wrong(reader, at, "this call cannot have this action");
    reader->at += len;
    return 0;
}

static int read_code(struct reader *reader, const char *value, size_t len,
                     struct hf__fault_rule *rule)
{
#define CODE(name, number, sentence)                                           \
    if (is_word(value, len, #name) || is_word(value, len, "HF_" #name))        \
        rule->code = (number);
    HF_ERROR_MAP(CODE)
#undef CODE
    if (rule->code == 0)
        return wrong(reader, value,
                     "an error's name is expected, such as EUNAVAILABLE");
    return 0;
}

static int read_time(struct reader *reader, const char *value, size_t len,
                     struct hf__fault_rule *rule)
{
    char text[32];

    if (len >= sizeof(text))
        return wrong(reader, value, "this is too long for a time");
    memcpy(text, value, len);
    text[len] = '\0';
    if (hf__value_duration(text, /* bare_unit_ms= */ 0, /* forever= */ false,
                           &rule->ms, /* err= */ NULL) != 0)
        return wrong(reader, value,
                     "a time with its unit is expected, such as 200ms or 5s");
    return 0;
}

static int read_value(struct reader *reader, struct hf__fault_rule *rule)
{
    const struct action_row *row = &action_rows[rule->action];
    const char *value = reader->at + 1;
    size_t len;

    if (row->value == VALUE_CODE)
        rule->code = *reader->at == '=' ? 0 : HF_EUNAVAILABLE;
    if (*reader->at != '=')
        return row->value == VALUE_TIME
                   ? wrong(reader, reader->at, "\"=\" and a time are expected")
                   : 0;
    if (row->value == VALUE_NONE)
        return wrong(reader, reader->at, "this action takes no value");
    len = strcspn(value, " @~%;");
    reader->at = value + len;
    if (row->value == VALUE_CODE)
        return read_code(reader, value, len, rule);
    return read_time(reader, value, len, rule);
}

static int read_which(struct reader *reader, struct hf__fault_rule *rule)
{
    int rc;

    rule->first = 1;
    rule->last = UINT64_MAX;
    if (*reader->at != '@')
        return 0;
    reader->at++;
    rc = read_number(reader, &rule->first);
    if (rc != 0)
        return rc;
    rule->last = rule->first;
    if (*reader->at == '+') {
        rule->last = UINT64_MAX;
        reader->at++;
    } else if (*reader->at == '-') {
        reader->at++;
        rc = read_number(reader, &rule->last);
    }
    if (rc == 0 && (rule->first == 0 || rule->last < rule->first))
        return wrong(reader, reader->at, "calls count from 1 upwards");
    return rc;
}

static int read_percent(struct reader *reader, struct hf__fault_rule *rule)
{
    uint64_t percent;
    int rc;

    rule->percent = 100;
    if (*reader->at != '~' && *reader->at != '%')
        return 0;
    reader->at++;
    rc = read_number(reader, &percent);
    if (rc != 0)
        return rc;
    if (percent > 100)
        return wrong(reader, reader->at, "a chance is 0 to 100");
    rule->percent = (double)percent;
    return 0;
}

static int read_rule(struct reader *reader, struct hf__fault_script *script)
{
    struct hf__fault_rule rule = {0};
    int rc;

    if (script->n == HF__FAULT_RULES)
        return wrong(reader, reader->at, "more than 32 rules");
    rc = read_call(reader, &rule);
    if (rc == 0)
        rc = read_action(reader, &rule);
    if (rc == 0)
        rc = read_value(reader, &rule);
    if (rc == 0)
        rc = read_which(reader, &rule);
    if (rc == 0)
        rc = read_percent(reader, &rule);
    if (rc == 0)
        script->rules[script->n++] = rule;
    return rc;
}

static int read_seed(struct reader *reader, struct hf__fault_script *script)
{
    reader->at += strlen("seed=");
    script->seeded = true;
    return read_number(reader, &script->random);
}

int hf__fault_parse(const char *text, struct hf__fault_script *ret_script,
                    hf_error *err)
{
    struct hf__fault_script script = {0};
    struct reader reader = {text, text, err};
    int rc = 0;

    for (;;) {
        skip_spaces(&reader);
        if (strncmp(reader.at, "seed=", 5) == 0)
            rc = read_seed(&reader, &script);
        else if (*reader.at && *reader.at != ';')
            rc = read_rule(&reader, &script);
        if (rc != 0)
            return rc;
        skip_spaces(&reader);
        if (!*reader.at)
            break;
        if (*reader.at != ';')
            return wrong(&reader, reader.at, "\";\" is expected");
        reader.at++;
    }
    *ret_script = script;
    return 0;
}

/* splitmix64: small, and the same everywhere. */
static uint64_t roll(struct hf__fault_script *script)
{
    uint64_t z = script->random += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static bool applies(struct hf__fault_script *script,
                    struct hf__fault_rule *rule)
{
    rule->count++;
    if (rule->count < rule->first || rule->count > rule->last)
        return false;
    if (rule->percent >= 100)
        return true;
    return (double)(roll(script) >> 11) * 0x1p-53 * 100 < rule->percent;
}

struct hf__fault_verdict hf__fault_judge(struct hf__fault_script *script,
                                         enum hf__fault_call call)
{
    struct hf__fault_verdict verdict = {0};

    for (size_t i = 0; i < script->n; i++) {
        struct hf__fault_rule *rule = &script->rules[i];

        if (!(rule->calls & BIT(call)) || !applies(script, rule))
            continue;
        if (rule->action == HF__FAULT_DELAY) {
            verdict.delay_ms += rule->ms;
        } else if (verdict.action == HF__FAULT_NONE) {
            verdict.action = rule->action;
            verdict.code = rule->code;
            verdict.ms = rule->ms;
        }
    }
    return verdict;
}

bool hf__fault_concerns(const struct hf__fault_script *script,
                        enum hf__fault_call call)
{
    for (size_t i = 0; i < script->n; i++)
        if (script->rules[i].calls & BIT(call))
            return true;
    return false;
}
