/* SPDX-License-Identifier: MIT */
/* notice.c - what a client posts on a board: written, and read with care. */
#include "core/notice.h"

#include <inttypes.h>

#include "config/name.h"

uint64_t hf__notice_hash(const char *name, size_t len)
{
    /* Not by chance: every process has to come to the same. */
    static const uint64_t key[2] = {UINT64_C(0x686f6c6466617374),
                                    UINT64_C(0x6465616c6f636b73)};

    return hf__name_hash(name, len, key);
}

/* ---- writing --------------------------------------------------------------- */

static void write_wait(const struct hf__notice_wait *wait, struct hf__buf *to)
{
    hf__buf_printf(to,
                   "w %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64
                   " %x %x %s\n",
                   wait->process, wait->owner, wait->serial, wait->since,
                   wait->store, (unsigned)wait->mode, wait->breaks ? 1u : 0u,
                   wait->name);
    for (uint32_t i = 0; i < wait->holds_n; i++)
        hf__buf_printf(to, "h %" PRIx64 " %" PRIx64 " %" PRIx64 " %x\n",
                       wait->holds[i].store, wait->holds[i].hash,
                       wait->holds[i].token, (unsigned)wait->holds[i].mode);
}

void hf__notice_write(const struct hf__notice_wait *waits, size_t n,
                      struct hf__buf *to)
{
    if (n == 0)
        return;
    hf__buf_printf(to, "1 %" PRIx64 " %s\n", (uint64_t)waits[0].pid,
                   waits[0].host);
    for (size_t i = 0; i < n; i++)
        write_wait(&waits[i], to);
}

/* ---- reading --------------------------------------------------------------- */

/* One line, and where we are in it. */
struct line {
    const char *at;
    const char *end;
};

/* The next line of @text, without its end; false: there is none. */
static bool next_line(struct line *text, struct line *line)
{
    const char *end =
        text->at < text->end
            ? memchr(text->at, '\n', (size_t)(text->end - text->at))
            : NULL;

    if (!end)
        return false;
    line->at = text->at;
    line->end = end;
    text->at = end + 1;
    return true;
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A number of at most @max, and the blank or the end behind it. */
static bool take_number(struct line *line, uint64_t max, uint64_t *ret_number)
{
    const char *begin = line->at;
    uint64_t number = 0;

    while (line->at < line->end && line->at - begin < 16 &&
           digit_of(*line->at) >= 0)
        number = number << 4 | (uint64_t)digit_of(*line->at++);
    if (line->at == begin || number > max ||
        (*begin == '0' && line->at - begin > 1))
        return false;
    if (line->at < line->end && (*line->at++ != ' ' || line->at == line->end))
        return false;
    *ret_number = number;
    return true;
}

static bool take_mode(struct line *line, int32_t *ret_mode)
{
    uint64_t mode;

    if (!take_number(line, HF_SLOT, &mode))
        return false;
    *ret_mode = (int32_t)mode;
    return true;
}

/* The rest of the line, which is a name or a host. */
static bool take_text(const struct line *line, char *to, size_t max)
{
    size_t len = (size_t)(line->end - line->at);

    if (hf__name_check_text("text", line->at, len, 1, max, /* err= */ NULL) !=
        0)
        return false;
    memcpy(to, line->at, len);
    to[len] = '\0';
    return true;
}

/* Does the line begin with @kind and a blank? */
static bool take_kind(struct line *line, char kind)
{
    if (line->end - line->at < 2 || line->at[0] != kind || line->at[1] != ' ')
        return false;
    line->at += 2;
    return true;
}

static bool read_head(struct line *line, struct hf__notice_wait *head)
{
    uint64_t pid;

    if (!take_kind(line, '1') || !take_number(line, INT64_MAX, &pid))
        return false;
    head->pid = (int64_t)pid;
    return take_text(line, head->host, HF__NOTICE_HOST);
}

static bool read_wait(struct line *line, struct hf__notice_wait *wait)
{
    uint64_t breaks;

    if (!take_number(line, UINT64_MAX, &wait->process) ||
        !take_number(line, UINT64_MAX, &wait->owner) ||
        !take_number(line, UINT64_MAX, &wait->serial) ||
        !take_number(line, UINT64_MAX, &wait->since) ||
        !take_number(line, UINT64_MAX, &wait->store) ||
        !take_mode(line, &wait->mode) || !take_number(line, 1, &breaks))
        return false;
    wait->breaks = breaks == 1;
    wait->holds_n = 0;
    return take_text(line, wait->name, HF_NAME_MAX);
}

static bool read_hold(struct line *line, struct hf__notice_wait *wait)
{
    struct hf__notice_hold *hold;

    if (wait->holds_n == HF__NOTICE_HOLDS)
        return false;
    hold = &wait->holds[wait->holds_n++];
    return take_number(line, UINT64_MAX, &hold->store) &&
           take_number(line, UINT64_MAX, &hold->hash) &&
           take_number(line, UINT64_MAX, &hold->token) &&
           take_mode(line, &hold->mode) && line->at == line->end;
}

int hf__notice_read(const char *text, size_t len, struct hf__notice_wait *waits,
                    size_t max)
{
    struct line rest = {.at = text, .end = text + len};
    struct hf__notice_wait head;
    struct line line;
    size_t n = 0;

    if (len > HF__NOTICE_MAX || !next_line(&rest, &line) ||
        !read_head(&line, &head))
        return -1;
    while (next_line(&rest, &line)) {
        if (n > 0 && take_kind(&line, 'h')) {
            if (!read_hold(&line, &waits[n - 1]))
                return -1;
            continue;
        }
        if (n == max || n == HF__NOTICE_WAITS || !take_kind(&line, 'w') ||
            !read_wait(&line, &waits[n]))
            return -1;
        waits[n].pid = head.pid;
        memcpy(waits[n++].host, head.host, sizeof(head.host));
    }
    return rest.at == rest.end ? (int)n : -1;
}
