/* SPDX-License-Identifier: MIT */
/*
 * talk.c - say who holds a lock.
 *
 * The question that a busy lock always raises is: who has it, since when, why,
 * and how long will it take? We ask the engine and answer in one line. On a
 * terminal the line is redrawn in place and wiped when the wait is over; off a
 * terminal a long wait is a line now and then.
 *
 * Failure: where the engine cannot list, or does not answer, we say less. The
 * talk never changes the outcome.
 */
#include "talk.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "look.h"
#include "text.h"

/* What hf_show() told about one name. */
struct picture {
    const char *owner; /* whose place we look for */
    char holder[160];
    char note[HF_NOTE_MAX + 1];
    uint64_t token;
    int64_t since_ms;
    int64_t lease_ms;
    int holders;
    int waiters;
    uint32_t place;
    uint32_t alive;
};

enum { PICTURE_MS = 1000 };

static bool line_drawn;

bool talk_wanted(void)
{
    static int wanted = -1;

    if (wanted < 0)
        wanted = !cli.quiet && isatty(STDERR_FILENO);
    return wanted;
}

static int look(const hf_lock_info *info, void *ctx)
{
    struct picture *picture = ctx;

    if (info->role == HF_WAITER) {
        picture->waiters++;
        if (picture->owner && strcmp(info->owner, picture->owner) == 0)
            picture->place = info->place;
        return 0;
    }
    if (info->role == HF_PARKED)
        return 0;
    if (picture->holders++ > 0)
        return 0;
    look_holder(info, picture->holder, sizeof(picture->holder));
    snprintf(picture->note, sizeof(picture->note), "%s", info->note);
    picture->token = info->token;
    picture->since_ms = info->since_ms;
    picture->lease_ms = info->lease_ms;
    picture->alive = info->alive;
    return 0;
}

/* 0; HF_ETIMEOUT: the engine does not answer; or why it cannot tell. A wait
 * that is over must not become longer because we ask who holds the lock. */
static int take_picture(hf_client *client, const char *name, const char *owner,
                        struct picture *ret_picture)
{
    struct picture picture = {.owner = owner};
    hf_request *request = NULL;
    int rc = hf_list_start(client, name, HF_EXACT, look, /* done= */ NULL,
                           &picture, &request, /* err= */ NULL);

    if (rc == 0)
        rc = hf_request_wait(request, PICTURE_MS, /* ret_hold= */ NULL,
                             /* err= */ NULL);
    hf_request_free(request);
    if (rc == 0)
        *ret_picture = picture;
    return rc;
}

static const char *ordinal(uint32_t n)
{
    if (n % 100 / 10 == 1)
        return "th";
    switch (n % 10) {
    case 1:
        return "st";
    case 2:
        return "nd";
    case 3:
        return "rd";
    default:
        return "th";
    }
}

static void add(char *line, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void add(char *line, size_t size, const char *format, ...)
{
    size_t used = strlen(line);
    va_list args;

    va_start(args, format);
    vsnprintf(line + used, size - used, format, args);
    va_end(args);
}

static void describe(const struct picture *picture, char *line, size_t size)
{
    char age[TEXT_AGE];

    if (picture->holders == 0) {
        add(line, size, ", just released");
    } else {
        add(line, size, ", held by %s", text_safe(picture->holder));
        if (picture->holders > 1)
            add(line, size, " and %d more", picture->holders - 1);
        if (picture->since_ms >= 0)
            add(line, size, " for %s", text_age(picture->since_ms, age));
        if (*picture->note)
            add(line, size, ": \"%s\"", text_safe(picture->note));
    }
    if (picture->place > 0)
        add(line, size, "  [%u%s in line]", picture->place,
            ordinal(picture->place));
}

static bool can_redraw(void)
{
    const char *term = secure_getenv("TERM");

    return term && strcmp(term, "dumb") != 0;
}

void talk_waiting(hf_client *client, const char *name, const char *owner)
{
    static const char hint[] = "   Ctrl-C to give up";
    struct picture picture = {0};
    char line[1024] = "";
    size_t columns = text_columns(stderr);

    if (line_drawn && !can_redraw())
        return;
    add(line, sizeof(line), "holdfast: waiting for \"%s\"", text_safe(name));
    if (take_picture(client, name, owner, &picture) == 0)
        describe(&picture, line, sizeof(line));
    if (text_width(line) + strlen(hint) < columns)
        add(line, sizeof(line), "%s", hint);
    if (can_redraw()) {
        text_cut(line, columns - 1);
        fprintf(stderr, "\r%s\033[K", line);
    } else {
        fprintf(stderr, "%s\n", line);
    }
    line_drawn = true;
}

void talk_still_waiting(hf_client *client, const char *name, const char *owner)
{
    struct picture picture = {0};
    char line[1024] = "";

    if (take_picture(client, name, owner, &picture) == 0)
        describe(&picture, line, sizeof(line));
    talk_say("waiting for \"%s\"%s", text_safe(name), line);
}

void talk_clear(void)
{
    if (line_drawn && can_redraw())
        fputs("\r\033[K", stderr);
    line_drawn = false;
}

/* What this engine can do about it. */
static void suggest(const hf_client *client, const char *name,
                    const struct picture *picture)
{
    const char *word = text_shell(name);
    uint64_t can = hf_capabilities(client);

    if (can & HF_CAP_LIST)
        fprintf(stderr, "  look:  holdfast %sshow %s\n", cli_same_engine(),
                word);
    fprintf(stderr, "  wait:  add -w 10m, or leave out -n and -w\n");
    if (picture->token > 0 && can & HF_CAP_BREAK)
        fprintf(stderr, "  break: holdfast %sbreak %s --token %" PRIu64 "\n",
                cli_same_engine(), word, picture->token);
}

void talk_busy(hf_client *client, const char *name, int rc, const hf_error *err)
{
    struct picture picture = {0};
    char age[TEXT_AGE];

    int asked = take_picture(client, name, NULL, &picture);

    if (asked != 0 || picture.holders == 0) {
        fprintf(stderr, "holdfast: %s%s\n", text_safe(err->text),
                asked == HF_ETIMEOUT ? "; the engine does not answer" : "");
        suggest(client, name, &picture);
        return;
    }
    fprintf(stderr, "holdfast: %s\"%s\" is held by %s",
            rc == HF_ETIMEOUT ? "the wait ran out: " : "", text_safe(name),
            text_safe(picture.holder));
    if (picture.holders > 1)
        fprintf(stderr, " and %d more", picture.holders - 1);
    if (picture.since_ms >= 0)
        fprintf(stderr, " for %s", text_age(picture.since_ms, age));
    if (picture.token > 0)
        fprintf(stderr, ", token %" PRIu64, picture.token);
    if (picture.lease_ms >= 0)
        fprintf(stderr, ", lease good for %s more",
                text_age(picture.lease_ms, age));
    if (picture.waiters > 0)
        fprintf(stderr, ", %d waiting", picture.waiters);
    fputc('\n', stderr);
    if (*picture.note)
        fprintf(stderr, "  note:  %s\n", text_safe(picture.note));
    suggest(client, name, &picture);
}

void talk_say(const char *format, ...)
{
    char text[1024];
    va_list args;

    if (cli.quiet)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    talk_clear();
    fprintf(stderr, "holdfast: %s\n", text);
}

void talk_step(const char *format, ...)
{
    char text[1024];
    va_list args;

    if (cli.verbose < 2)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    talk_say("%s", text);
}

void talk_jeopardy(const hf_hold *hold, int state)
{
    static bool told;
    char age[TEXT_AGE];

    if (state == HF_JEOPARDY) {
        told = true;
        talk_say("\"%s\" is in jeopardy: the engine does not answer, and the "
                 "lease is good for %s more",
                 text_safe(hf_hold_name(hold)),
                 text_age(hf_remaining_ms(hold), age));
    } else if (state == HF_HELD && told) {
        told = false;
        talk_say("\"%s\" is safe again", text_safe(hf_hold_name(hold)));
    }
}
