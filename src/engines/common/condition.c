/* SPDX-License-Identifier: MIT */
/*
 * condition.c - who of a condition's waiters is called.
 *
 * In order of time: a record joins the line, a stamp calls the head of the
 * line, the stamp of a broadcast calls all of it. So those who are called are
 * always the first of the records that are left.
 *
 * Two facts hold whatever dies, leaves or is cleaned away, and the unit test
 * plays random histories against them: a record that is called stays called
 * until it is gone, and a bearer that leaves in order calls nobody. The second
 * needs the two rules of hf__condition_use_up(). Who is older than a broadcast
 * uses up nothing, because that stamp is also for others. Everybody else uses up
 * the oldest stamp that is newer than its record, not the one that called it:
 * after a death another stamp may serve it, and the older one would be left to
 * somebody who was not signalled.
 */
#include "engines/common/condition.h"

#include "base/error.h"

/* ---- the list on the store ----------------------------------------------- */

/* A decimal number at *at, not beyond @end; false: there is none, or it is too
 * large. */
static bool read_number(const char **at, const char *end, uint64_t *ret_number)
{
    uint64_t number = 0;
    const char *from = *at;

    for (; *at < end && **at >= '0' && **at <= '9'; (*at)++) {
        unsigned digit = (unsigned)(**at - '0');

        if (number > (UINT64_MAX - digit) / 10)
            return false;
        number = number * 10 + digit;
    }
    *ret_number = number;
    return *at > from;
}

/* "s12" or "b12" at *at. */
static bool read_stamp(const char **at, const char *end,
                       struct hf__condition_stamp *stamp)
{
    char kind = **at;

    if (kind != 's' && kind != 'b')
        return false;
    stamp->all = kind == 'b';
    (*at)++;
    return read_number(at, end, &stamp->at);
}

static size_t count_words(const char *text, size_t len)
{
    size_t n = len > 0;

    for (size_t i = 0; i < len; i++)
        n += text[i] == ' ';
    return n;
}

int hf__condition_read(struct hf__condition *condition, const char *text,
                       size_t len)
{
    size_t words = count_words(text, len);
    const char *end;

    memset(condition, 0, sizeof(*condition));
    if (words == 0)
        return 0; /* nor need there be a text */
    end = text + len;
    if (words > HF__CONDITION_STAMPS)
        return HF_EINTERNAL;
    condition->stamps = hf__malloc(words * sizeof(condition->stamps[0]));
    if (!condition->stamps)
        return HF_ENOMEM;
    for (;;) {
        struct hf__condition_stamp *stamp = &condition->stamps[condition->n];

        if (text == end || !read_stamp(&text, end, stamp))
            return HF_EINTERNAL;
        condition->n++;
        if (text == end)
            return 0;
        if (*text++ != ' ')
            return HF_EINTERNAL;
    }
}

void hf__condition_write(const struct hf__condition *condition,
                         struct hf__buf *to)
{
    for (size_t i = 0; i < condition->n; i++) {
        if (i > 0)
            hf__buf_add_char(to, ' ');
        hf__buf_add_char(to, condition->stamps[i].all ? 'b' : 's');
        hf__buf_add_number(to, condition->stamps[i].at);
    }
}

void hf__condition_release(struct hf__condition *condition)
{
    hf__free(condition->stamps);
    memset(condition, 0, sizeof(*condition));
}

/* ---- who is called ------------------------------------------------------- */

size_t hf__condition_called(const struct hf__condition *condition,
                            const uint64_t *made, size_t n)
{
    size_t joined = 0;
    size_t called = 0;

    for (size_t i = 0; i < condition->n; i++) {
        const struct hf__condition_stamp *stamp = &condition->stamps[i];

        while (joined < n && made[joined] < stamp->at)
            joined++;
        if (stamp->all)
            called = joined;
        else if (called < joined)
            called++;
    }
    return called;
}

/* ---- changes ------------------------------------------------------------- */

static void remove_stamps(struct hf__condition *condition, size_t at, size_t n)
{
    condition->n -= n;
    if (condition->n > at)
        memmove(condition->stamps + at, condition->stamps + at + n,
                (condition->n - at) * sizeof(condition->stamps[0]));
}

void hf__condition_use_up(struct hf__condition *condition, uint64_t made)
{
    size_t oldest = condition->n;

    for (size_t i = condition->n; i-- > 0 && condition->stamps[i].at > made;) {
        if (condition->stamps[i].all)
            return;
        oldest = i;
    }
    if (oldest < condition->n)
        remove_stamps(condition, oldest, 1);
}

int hf__condition_signal(struct hf__condition *condition, uint64_t at, bool all)
{
    size_t kept = all ? 0 : condition->n;
    struct hf__condition_stamp *grown;

    if (kept >= HF__CONDITION_STAMPS)
        return HF_ENOSPACE;
    /* Stamps ascend; a record that came later has a greater number than any. */
    if (condition->n > 0 && condition->stamps[condition->n - 1].at > at)
        at = condition->stamps[condition->n - 1].at;
    grown = hf__realloc(condition->stamps, (kept + 1) * sizeof(grown[0]));
    if (!grown)
        return HF_ENOMEM;
    condition->stamps = grown;
    condition->stamps[kept] = (struct hf__condition_stamp){at, all};
    condition->n = kept + 1;
    return 0;
}

void hf__condition_clean(struct hf__condition *condition, uint64_t oldest)
{
    size_t stale = 0;

    while (stale < condition->n && condition->stamps[stale].at <= oldest)
        stale++;
    if (stale > 0)
        remove_stamps(condition, 0, stale);
}
