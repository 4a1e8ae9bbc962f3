/* SPDX-License-Identifier: MIT */
/*
 * top.c - holdfast top: the locks of a store on a terminal, live.
 *
 * One loop: look, draw, wait for a key or for the next look. Signals that ask
 * us to end do so at once while the engine is asked, which may take as long as
 * it does not answer; nothing is left behind there by who only looks. Names,
 * notes and commands are other people's bytes and go through text_escape().
 *
 * Breaking a lock asks twice, for the token the second time, and breaks the
 * grant that was on the screen when "b" was pressed, or none.
 *
 * Failure: an engine that does not answer is told in the second line, above the
 * locks as they were; errors that do not pass end the program as in ls.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "follow.h"
#include "lock.h"
#include "look.h"
#include "ls.h"
#include "options.h"
#include "screen.h"
#include "signals.h"
#include "text.h"
#include "top_table.h"

static const char help[] =
    "Usage: holdfast top [PREFIX] [--interval DUR]\n"
    "The locks whose names begin with PREFIX, live: holders, leases, queues.\n"
    "Needs a terminal; elsewhere use: holdfast ls --watch, holdfast metrics\n\n"
    "      --interval DUR  look at this pace, at least 100ms, and not when "
    "something\n"
    "                      changes (and every second)\n"
    "  -u URL, -c FILE, --profile NAME, -o KEY=VALUE, --no-color\n\n"
    "Keys: arrows, s sort, r reverse, / filter, Enter the queue of a lock,\n"
    "b break, h help, q quit.\n";

static const char keys_help[] =
    "\n"
    "  Up, Down, PgUp, PgDn, Home, End   choose a lock (also j and k)\n"
    "  Enter    its queue; there, choose a holder; Esc goes back\n"
    "  s        sort by the next column, which has a star; r turns it round\n"
    "  /        show only what has this text in name, holder or note\n"
    "  b        break: take the lock away from its holder; asks twice\n"
    "  space    look now\n"
    "  h  q     this page; quit\n"
    "\n"
    "  HELD     since when the oldest holder has it\n"
    "  LEASE    what is left until the engine would free it\n"
    "  LOW      the smallest lease left that top has seen; n/a where the "
    "store\n"
    "           does not count it down\n"
    "  WAIT     waiters; OLDEST is how long the first of them has waited\n"
    "  HAND/S   hand-overs a second, as far as the looks show them: a \"+\"\n"
    "           says that every look had another holder, so there are more\n"
    "  LATE     how often a lease fell below its half: a renewal failed, or\n"
    "           came late\n";

enum {
    GAP_MS = 250, /* between looks, however much changes */
    FRAME_LEAST = 6
};

static struct follow_pace pace = {.ms = -1, .least_ms = 100};
static const struct option top_options[] = {
    {0, "interval", OPTION_DURATION, &pace.ms, NULL, "DUR"},
    {0, NULL, OPTION_FLAG, NULL, NULL, NULL},
};
static const struct option *const tables[] = {top_options, NULL};

enum page { PAGE_LOCKS, PAGE_QUEUE, PAGE_HELP };
enum prompt { PROMPT_NONE, PROMPT_FILTER, PROMPT_SURE, PROMPT_TOKEN };

/* The grant that "b" was pressed on. */
struct target {
    char name[HF_NAME_MAX + 1];
    char owner[HF_OWNER_MAX + 1];
    char text[512]; /* who it is */
    uint64_t token;
};

struct top {
    hf_client *client;
    const char *prefix;
    struct follow follow; /* says when to look */
    struct top_table table;
    enum page page;
    enum prompt prompt;
    char chosen[HF_NAME_MAX + 1]; /* the lock that is marked */
    size_t at;                    /* its row, on the page of locks */
    size_t scroll;
    size_t queue_at; /* the row that is marked on the page of one lock */
    char input[HF_NAME_MAX + 1];
    char message[512];
    struct target target;
    hf_error err;       /* why the last look failed; code 0: it did not */
    char deadlock[512]; /* the first one; "": there is none */
    int64_t silent_since_ms;
    bool ends;
    bool gone; /* the terminal is */
};

/* ---- what is chosen ----------------------------------------------------------- */

static const struct top_row *chosen_row(const struct top *top)
{
    return top->at < top->table.n_rows ? &top->table.rows[top->at] : NULL;
}

static void choose(struct top *top, size_t at)
{
    if (top->table.n_rows == 0) {
        top->at = 0;
        return;
    }
    top->at = at < top->table.n_rows ? at : top->table.n_rows - 1;
    snprintf(top->chosen, sizeof(top->chosen), "%s",
             chosen_row(top)->lock->name);
}

/* After a look or a new order: the same lock, or the same place. */
static void choose_again(struct top *top)
{
    for (size_t i = 0; i < top->table.n_rows; i++)
        if (strcmp(top->table.rows[i].lock->name, top->chosen) == 0) {
            top->at = i;
            return;
        }
    if (top->page == PAGE_LOCKS)
        choose(top, top->at);
}

/* The lock whose queue is open; NULL if nobody has it any more. */
static const struct look_lock *open_lock(const struct top *top)
{
    for (size_t i = 0; i < top->table.look.n; i++)
        if (strcmp(top->table.look.locks[i].name, top->chosen) == 0)
            return &top->table.look.locks[i];
    return NULL;
}

/* ---- drawing ------------------------------------------------------------------ */

static void put_line(FILE *to, size_t columns, bool bright, const char *text)
{
    char line[2048];

    snprintf(line, sizeof(line), "%s", text);
    text_cut(line, columns);
    fprintf(to, "%s%s\n", bright ? "\033[7m" : "", line);
}

static bool bright(void)
{
    return text_colours(stdout);
}

static void draw_head(const struct top *top, size_t columns, FILE *to)
{
    const struct look *look = &top->table.look;
    char line[1024];
    char clock[16] = "";
    char age[TEXT_AGE];
    time_t now = time(NULL);
    struct tm parts;
    int holders = 0;
    int waiters = 0;

    for (size_t i = 0; i < look->n; i++) {
        holders += look->locks[i].holders;
        waiters += look->locks[i].waiters;
    }
    if (localtime_r(&now, &parts))
        strftime(clock, sizeof(clock), "%H:%M:%S", &parts);
    snprintf(line, sizeof(line), "holdfast top  %s  %s", clock,
             text_safe(hf_client_url(top->client)));
    put_line(to, columns, false, line);
    if (top->err.code != 0)
        snprintf(line, sizeof(line), "no answer for %s: %s",
                 text_age(lock_now_ms() - top->silent_since_ms, age),
                 text_safe(top->err.text));
    else if (top->deadlock[0] != '\0')
        snprintf(line, sizeof(line), "deadlock: %s", text_safe(top->deadlock));
    else
        snprintf(line, sizeof(line),
                 "locks %zu, holders %d, waiters %d; every %s; by %s%s%s%s",
                 look->n, holders, waiters, text_age(pace.ms, age),
                 top_sort_name(top->table.sort),
                 top->table.reverse ? ", reversed" : "",
                 *top->table.filter ? "; only " : "",
                 text_safe(top->table.filter));
    put_line(to, columns, false, line);
}

/* ", token 7"; "" where there are none. Valid until the next call. */
static const char *token_text(uint64_t token)
{
    static char text[40];

    if (token == 0)
        return "";
    snprintf(text, sizeof(text), ", token %" PRIu64, token);
    return text;
}

/* What the columns cut off: who holds the chosen lock, why, by which command. */
static void draw_details(const struct top *top, size_t columns, FILE *to)
{
    const struct top_row *row = chosen_row(top);
    char command[LOOK_COMMAND] = "";
    char holder[160];
    char line[2048] = "";
    char why[2048] = "";

    if (row && row->lock->holders > 0) {
        const hf_lock_info *head = row->lock->rows;

        snprintf(line, sizeof(line), "%s: %s%s, %s", text_safe(row->lock->name),
                 text_safe(look_holders(row->lock, holder, sizeof(holder))),
                 token_text(head->token), look_life(head));
        look_command(head, command);
        snprintf(why, sizeof(why), "%s%s%s%s", *head->note ? "note: " : "",
                 text_safe(head->note), *head->note && *command ? "; " : "",
                 *command ? "command: " : "");
        snprintf(why + strlen(why), sizeof(why) - strlen(why), "%s",
                 text_safe(command));
    } else if (row) {
        snprintf(line, sizeof(line), "%s: nobody holds it",
                 text_safe(row->lock->name));
    } else {
        snprintf(line, sizeof(line), "no locks here");
    }
    put_line(to, columns, false, line);
    put_line(to, columns, false, why);
}

/* What has to be typed to break it. */
static void wanted_text(const struct target *target, char to[HF_NAME_MAX + 1])
{
    if (target->token)
        snprintf(to, HF_NAME_MAX + 1, "%" PRIu64, target->token);
    else
        snprintf(to, HF_NAME_MAX + 1, "%s", target->name);
}

static void draw_foot(const struct top *top, size_t columns, FILE *to)
{
    char wanted[HF_NAME_MAX + 1];
    char line[1024];

    switch (top->prompt) {
    case PROMPT_FILTER:
        snprintf(line, sizeof(line), "Show only: %s_  (Enter; Esc for all)",
                 text_safe(top->input));
        break;
    case PROMPT_SURE:
        snprintf(line, sizeof(line), "Break? y/n  %s", top->target.text);
        break;
    case PROMPT_TOKEN:
        wanted_text(&top->target, wanted);
        snprintf(line, sizeof(line), "Type %s to break it: %s_",
                 text_safe(wanted), text_safe(top->input));
        break;
    default:
        if (*top->message)
            snprintf(line, sizeof(line), "%s", top->message);
        else
            snprintf(line, sizeof(line),
                     top->page == PAGE_LOCKS
                         ? "q quit  h help  s sort  r reverse  / filter  "
                           "Enter queue  b break"
                         : "Esc back  b break  h help  q quit");
    }
    put_line(to, columns, bright() && top->prompt != PROMPT_NONE, line);
}

static void draw_locks(struct top *top, size_t columns, size_t lines, FILE *to)
{
    size_t name = 0;
    size_t holder = 0;
    struct top_layout layout;

    if (top->at < top->scroll)
        top->scroll = top->at;
    if (top->at >= top->scroll + lines - 1)
        top->scroll = top->at + 2 - lines;
    for (size_t i = top->scroll;
         i < top->table.n_rows && i < top->scroll + lines; i++) {
        char text[160];
        size_t width = text_width(text_safe(top->table.rows[i].lock->name));

        name = width > name ? width : name;
        width = text_width(text_safe(
            look_holders(top->table.rows[i].lock, text, sizeof(text))));
        holder = width > holder ? width : holder;
    }
    layout = top_layout(columns, name, holder);
    fputs(bright() ? "\033[1m" : "", to);
    top_titles(&top->table, layout, columns, to);
    fputc('\n', to);
    for (size_t i = 0; i + 1 < lines; i++) {
        size_t at = top->scroll + i;
        bool marked = at == top->at;

        if (at < top->table.n_rows) {
            fprintf(to, "%s%c", marked && bright() ? "\033[7m" : "",
                    marked ? '>' : ' ');
            top_line(&top->table, top->table.rows[at], layout, columns - 1, to);
        }
        fputc('\n', to);
    }
}

/* The card of "holdfast show"; its third line is the first row. */
static void draw_queue(struct top *top, size_t columns, size_t lines, FILE *to)
{
    enum { BEFORE = 2 };
    const struct look_lock *shown = open_lock(top);
    struct look_lock none = {.name = top->chosen};
    char *card = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&card, &size);
    size_t skip;
    const char *at;

    if (!memory)
        return;
    if (shown && top->queue_at >= shown->n)
        top->queue_at = shown->n - 1;
    ls_print_card(shown ? shown : &none, memory);
    if (fclose(memory) != 0) {
        free(card);
        return;
    }
    at = card;
    skip = top->queue_at + BEFORE + 2 > lines
               ? top->queue_at + BEFORE + 2 - lines
               : 0;
    for (size_t i = 0, line = 0; line < lines; i++) {
        size_t len = strcspn(at, "\n");
        bool marked = shown && i == top->queue_at + BEFORE;
        char text[2048];

        snprintf(text, sizeof(text), "%c%.*s", marked ? '>' : ' ', (int)len,
                 at);
        at += len + (at[len] == '\n');
        if (i >= BEFORE && i < BEFORE + skip)
            continue;
        put_line(to, columns, marked && bright(), text);
        line++;
    }
    free(card);
}

static void draw_help(size_t columns, size_t lines, FILE *to)
{
    const char *at = keys_help;

    for (size_t i = 0; i < lines; i++) {
        size_t len = strcspn(at, "\n");
        char text[128];

        snprintf(text, sizeof(text), "%.*s", (int)len, at);
        put_line(to, columns, false, text);
        at += len + (at[len] == '\n');
    }
}

static void draw(struct top *top)
{
    size_t columns = text_columns(stdout);
    size_t lines = text_lines(stdout);
    char *frame = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&frame, &size);

    if (!to)
        return;
    if (lines < FRAME_LEAST || columns < 2) {
        put_line(to, columns, false, "too small");
    } else if (top->page == PAGE_HELP) {
        draw_help(columns, lines - 1, to);
        put_line(to, columns, false, "any key goes back");
    } else {
        draw_head(top, columns, to);
        if (top->page == PAGE_QUEUE) {
            draw_queue(top, columns, lines - 3, to);
        } else {
            draw_locks(top, columns, lines - 5, to);
            draw_details(top, columns, to);
        }
        draw_foot(top, columns, to);
    }
    if (fclose(to) == 0)
        screen_show(frame);
    free(frame);
}

/* ---- breaking ------------------------------------------------------------------ */

static void say(struct top *top, const char *text)
{
    snprintf(top->message, sizeof(top->message), "%s", text);
}

/* The holder that is meant on this page; NULL: said why there is none. */
static const hf_lock_info *marked_holder(struct top *top)
{
    const struct look_lock *shown = open_lock(top);
    size_t at = top->page == PAGE_QUEUE ? top->queue_at : 0;

    if (!shown || shown->holders == 0 ||
        (top->page == PAGE_LOCKS && top->table.n_rows == 0))
        say(top, "nobody holds it");
    else if (at >= (size_t)shown->holders)
        say(top, "this one waits; choose a holder");
    else if (top->page == PAGE_LOCKS && shown->holders > 1)
        say(top, "it has several holders: press Enter and choose one");
    else
        return &shown->rows[at];
    return NULL;
}

static void ask_to_break(struct top *top)
{
    const hf_lock_info *info;
    struct target *target = &top->target;
    char holder[160];

    if (!(hf_capabilities(top->client) & HF_CAP_BREAK)) {
        say(top, "this engine cannot break locks");
        return;
    }
    info = marked_holder(top);
    if (!info)
        return;
    snprintf(target->name, sizeof(target->name), "%s", info->name);
    snprintf(target->owner, sizeof(target->owner), "%s", info->owner);
    target->token = info->token;
    snprintf(target->text, sizeof(target->text), "\"%s\" of %s%s, %s",
             text_safe(info->name),
             text_safe(look_holder(info, holder, sizeof(holder))),
             token_text(info->token), look_life(info));
    top->prompt = PROMPT_SURE;
}

static void break_it(struct top *top)
{
    const struct target *target = &top->target;
    hf_error err = {0};
    char wanted[HF_NAME_MAX + 1];
    int rc;

    wanted_text(target, wanted);
    if (strcmp(top->input, wanted) != 0) {
        say(top, "that is not it; nothing was changed");
        return;
    }
    rc = hf_break(top->client, target->name, target->token,
                  target->token ? NULL : target->owner, &err);
    if (rc == HF_ECONFLICT || rc == HF_ENOTFOUND)
        say(top, "it is held by another grant by now; nothing was changed");
    else if (rc != 0)
        say(top, text_safe(err.text));
    else
        snprintf(top->message, sizeof(top->message), "broke \"%s\"",
                 text_safe(target->name));
}

/* ---- keys ---------------------------------------------------------------------- */

static void edit(struct top *top, int key)
{
    size_t len = strlen(top->input);

    if (key == SCREEN_BACKSPACE) {
        while (len > 0 && ((unsigned char)top->input[len - 1] & 0xc0) == 0x80)
            len--;
        if (len > 0)
            len--;
    } else if (key >= ' ' && key < 256 && len + 1 < sizeof(top->input)) {
        top->input[len++] = (char)key;
    }
    top->input[len] = '\0';
}

/* The text of a filter acts while it is typed. */
static void set_filter(struct top *top, const char *text)
{
    snprintf(top->table.filter, sizeof(top->table.filter), "%s", text);
    (void)top_table_arrange(&top->table); /* or at the next look */
    choose_again(top);
}

static void prompt_key(struct top *top, int key)
{
    enum prompt prompt = top->prompt;

    if (prompt == PROMPT_SURE) {
        top->prompt = key == 'y' ? PROMPT_TOKEN : PROMPT_NONE;
        top->input[0] = '\0';
        if (key != 'y')
            say(top, "nothing was changed");
        return;
    }
    edit(top, key);
    if (key == SCREEN_ESCAPE)
        top->input[0] = '\0';
    if (prompt == PROMPT_FILTER)
        set_filter(top, top->input);
    if (key != SCREEN_ENTER && key != SCREEN_ESCAPE)
        return;
    top->prompt = PROMPT_NONE;
    if (prompt == PROMPT_TOKEN && key == SCREEN_ENTER)
        break_it(top);
    else if (prompt == PROMPT_TOKEN)
        say(top, "nothing was changed");
}

/* How far a key moves the mark; 0: it is no such key. */
static long step_of(int key)
{
    long page = (long)text_lines(stdout) - FRAME_LEAST;

    switch (key) {
    case SCREEN_UP:
    case 'k':
        return -1;
    case SCREEN_DOWN:
    case 'j':
        return 1;
    case SCREEN_PAGE_UP:
        return page > 1 ? -page : -1;
    case SCREEN_PAGE_DOWN:
        return page > 1 ? page : 1;
    case SCREEN_HOME:
        return -INT32_MAX;
    case SCREEN_END:
        return INT32_MAX;
    default:
        return 0;
    }
}

static size_t moved(size_t from, long step, size_t n)
{
    long to = (long)from + step;

    if (to < 0 || n == 0)
        return 0;
    return (size_t)to < n ? (size_t)to : n - 1;
}

static void move_mark(struct top *top, long step)
{
    const struct look_lock *shown = open_lock(top);

    if (top->page == PAGE_QUEUE)
        top->queue_at = moved(top->queue_at, step, shown ? shown->n : 0);
    else
        choose(top, moved(top->at, step, top->table.n_rows));
}

static void page_key(struct top *top, int key)
{
    switch (key) {
    case 's':
        top->table.sort = (top->table.sort + 1) % TOP_SORTS;
        (void)top_table_arrange(&top->table); /* or at the next look */
        choose_again(top);
        break;
    case 'r':
        top->table.reverse = !top->table.reverse;
        (void)top_table_arrange(&top->table);
        choose_again(top);
        break;
    case '/':
        top->prompt = PROMPT_FILTER;
        snprintf(top->input, sizeof(top->input), "%s", top->table.filter);
        break;
    case SCREEN_ENTER:
    case SCREEN_RIGHT:
        if (chosen_row(top))
            top->page = PAGE_QUEUE;
        top->queue_at = 0;
        break;
    default:
        break;
    }
}

static void take_key(struct top *top, int key)
{
    if (top->prompt != PROMPT_NONE) {
        prompt_key(top, key);
        return;
    }
    top->message[0] = '\0';
    if (top->page == PAGE_HELP ||
        (top->page == PAGE_QUEUE &&
         (key == SCREEN_ESCAPE || key == SCREEN_LEFT)))
        top->page = PAGE_LOCKS;
    else if (key == 'q')
        top->ends = true;
    else if (key == 'h' || key == '?')
        top->page = PAGE_HELP;
    else if (key == 'b')
        ask_to_break(top);
    else if (step_of(key) != 0)
        move_mark(top, step_of(key));
    else if (top->page == PAGE_LOCKS)
        page_key(top, key);
}

/* ---- the loop ------------------------------------------------------------------ */

static void keep_deadlock(const char *text, void *ctx)
{
    struct top *top = ctx;

    if (top->deadlock[0] == '\0')
        snprintf(top->deadlock, sizeof(top->deadlock), "%s", text);
}

/* Only who waits for long can be in one. */
static void look_for_deadlocks(struct top *top, const struct look *seen)
{
    bool any = false;

    top->deadlock[0] = '\0';
    for (size_t i = 0; i < seen->n; i++)
        any |= look_has_long_wait(&seen->locks[i]);
    if (any)
        look_deadlocks(top->client, /* name= */ NULL, keep_deadlock, top);
}

/* 0; HF_E* if there is no use in going on. */
static int look(struct top *top)
{
    struct look seen = {0};
    hf_error err = {0};
    int64_t now_ms;
    int rc;

    signals_at_once(screen_leave);
    rc = look_list(&seen, top->client, top->prefix, &err);
    if (rc == 0)
        look_for_deadlocks(top, &seen);
    signals_at_once(NULL);
    now_ms = lock_now_ms();
    if (rc == 0)
        rc = top_table_take(&top->table, &seen, now_ms);
    look_forget(&seen);
    if (rc == 0 || top->err.code == 0)
        top->silent_since_ms = now_ms;
    top->err = rc == 0 ? (hf_error){0} : err;
    choose_again(top);
    return rc == 0 || hf_is_retriable(rc) ? 0 : rc;
}

/* Until the next look is due, or was asked for. */
static void follow_keys(struct top *top)
{
    int64_t began_ms = lock_now_ms();
    int64_t due_ms = began_ms + pace.ms;

    for (;;) {
        int64_t left_ms;
        int key;

        if (follow_take(&top->follow) && due_ms > began_ms + GAP_MS)
            due_ms = began_ms + GAP_MS;
        left_ms = due_ms - lock_now_ms();

        if (screen_follow_signals()) /* some came while we looked */
            draw(top);
        if (left_ms <= 0 || top->ends || signals_first() != 0)
            return;
        key = screen_key(top->follow.watch ? top->follow.fd : -1, left_ms);
        top->gone = key == SCREEN_GONE;
        top->ends |= top->gone;
        if (key == ' ' && top->prompt == PROMPT_NONE)
            return;
        if (key != SCREEN_NO_KEY) {
            take_key(top, key);
            draw(top);
        }
        if (key == SCREEN_ENTER && top->message[0])
            return; /* something may have been broken */
    }
}

static int run(struct top *top)
{
    int rc = look(top);

    if (rc != 0 || top->err.code != 0)
        return cli_fail(&top->err);
    if (!screen_enter())
        return cli_usage("top is not in the foreground of its terminal");
    if (!pace.given)
        follow_start(&top->follow, top->client, top->prefix, /* flags= */ 0);
    while (rc == 0 && !top->ends && signals_first() == 0) {
        draw(top);
        follow_keys(top);
        if (!top->ends && signals_first() == 0)
            rc = look(top);
    }
    screen_leave();
    follow_stop(&top->follow);
    if (rc != 0)
        return cli_fail(&top->err);
    if (top->gone)
        return CLI_SIGNAL + SIGHUP; /* which may still be on its way */
    return signals_first() ? CLI_SIGNAL + signals_first() : CLI_DONE;
}

static int check_options(const struct words *words)
{
    int rc = follow_pace_check(&pace);

    (void)words;
    if (rc != 0)
        return rc;
    if (cli.json || !screen_possible())
        return cli_usage("top draws on a terminal; for a pipe or a program: "
                         "holdfast ls --watch, holdfast metrics");
    signals_begin();
    signals_begin_screen();
    return 0;
}

static int top_main(const struct verb *verb, int argc, char **argv)
{
    struct words words = {.wanted = 1};
    struct top top = {0};
    int rc = cli_begin(verb, argc, argv, &words, check_options, &top.client);

    if (rc != 0)
        return rc;
    top.prefix = words.word[0];
    rc = run(&top);
    top_table_release(&top.table);
    hf_close(top.client);
    return rc;
}

VERB(top, "[PREFIX]", "the locks on a terminal, live");
