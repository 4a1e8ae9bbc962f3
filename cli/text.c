/* SPDX-License-Identifier: MIT */
/*
 * text.c - text for people.
 *
 * Names, owners and notes are other people's bytes. On a terminal they could
 * move the cursor, change colours or read from right to left, so everything
 * that is not plainly visible is shown escaped. A terminal is the only place
 * that ever gets an escape sequence from us, and NO_COLOR, TERM=dumb and
 * --no-color switch those off too; that is judged for each stream by itself.
 *
 * Failure: without memory a table prints what it has.
 */
#include "text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli.h"

enum { SAFE_SIZE = 1100, SAFE_BUFFERS = 8 };

/* A range of code points. */
struct range {
    uint32_t first;
    uint32_t last;
};

static bool in_ranges(uint32_t code, const struct range *ranges, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (code >= ranges[i].first && code <= ranges[i].last)
            return true;
    return false;
}

#define IN_RANGES(code, ranges)                                                \
    in_ranges(code, ranges, sizeof(ranges) / sizeof((ranges)[0]))

/* What a terminal shows not at all, or lets change what it shows. */
static const struct range unseen[] = {
    {0x00, 0x1f},     {0x7f, 0x9f},      {0xad, 0xad},     {0x61c, 0x61c},
    {0x200b, 0x200f}, {0x2028, 0x202e},  {0x2060, 0x206f}, {0xfeff, 0xfeff},
    {0xfff9, 0xfffb}, {0xe0000, 0xe0fff}};
static const struct range wide[] = {
    {0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0xa4cf},  {0xac00, 0xd7a3},
    {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},  {0xffe0, 0xffe6},
    {0x1f300, 0x1f64f}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};
static const struct range combining[] = {{0x300, 0x36f},   {0x1ab0, 0x1aff},
                                         {0x1dc0, 0x1dff}, {0x20d0, 0x20ff},
                                         {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}};

bool text_is_unseen(uint32_t code)
{
    return IN_RANGES(code, unseen);
}

static size_t sequence_length(unsigned char first)
{
    if (first < 0x80)
        return 1;
    if (first >= 0xc2 && first <= 0xdf)
        return 2;
    if (first >= 0xe0 && first <= 0xef)
        return 3;
    if (first >= 0xf0 && first <= 0xf4)
        return 4;
    return 0;
}

size_t text_decode(const char *text, uint32_t *ret_code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    static const unsigned char mask[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    size_t len = sequence_length((unsigned char)*text);
    uint32_t code = len ? (unsigned char)*text & mask[len] : 0;

    for (size_t i = 1; i < len; i++) {
        if (((unsigned char)text[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | ((unsigned char)text[i] & 0x3f);
    }
    if (len == 0 || code < least[len] || code > 0x10ffff ||
        (code >= 0xd800 && code <= 0xdfff))
        return 0;
    *ret_code = code;
    return len;
}

char *text_escape(const char *text, char *to, size_t size)
{
    size_t used = 0;

    while (*text) {
        char piece[16];
        uint32_t code = 0;
        size_t len = text_decode(text, &code);

        if (len == 0)
            snprintf(piece, sizeof(piece), "\\x%02x", (unsigned char)*text);
        else if (IN_RANGES(code, unseen) && code < 0x80)
            snprintf(piece, sizeof(piece), "\\x%02" PRIx32, code);
        else if (IN_RANGES(code, unseen))
            snprintf(piece, sizeof(piece), "\\u{%" PRIx32 "}", code);
        else if (code == '\\')
            snprintf(piece, sizeof(piece), "\\\\");
        else
            snprintf(piece, sizeof(piece), "%.*s", (int)len, text);

        size_t piece_len = strlen(piece);
        if (used + piece_len >= size)
            break;
        memcpy(to + used, piece, piece_len);
        used += piece_len;
        text += len ? len : 1;
    }
    to[used] = '\0';
    return to;
}

static char *next_buffer(void)
{
    static char buffers[SAFE_BUFFERS][SAFE_SIZE];
    static size_t next;

    return buffers[next++ % SAFE_BUFFERS];
}

const char *text_safe(const char *text)
{
    return text_escape(text, next_buffer(), SAFE_SIZE);
}

static bool is_plain_word(const char *text)
{
    return *text && strspn(text, "abcdefghijklmnopqrstuvwxyz"
                                 "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "0123456789_-./:@%+=,") == strlen(text);
}

static bool is_visible(const char *text)
{
    while (*text) {
        uint32_t code;
        size_t len = text_decode(text, &code);

        if (len == 0 || IN_RANGES(code, unseen))
            return false;
        text += len;
    }
    return true;
}

const char *text_shell(const char *text)
{
    if (is_plain_word(text))
        return text;

    char *quoted = next_buffer();
    size_t used = 0;

    quoted[used++] = '\'';
    for (const char *at = text; *at && used < SAFE_SIZE - 8; at++) {
        if (*at == '\'')
            used += (size_t)snprintf(quoted + used, 5, "'\\''");
        else
            quoted[used++] = *at;
    }
    quoted[used++] = '\'';
    quoted[used] = '\0';

    /* What must not be shown cannot be typed back either. */
    return is_visible(text) ? quoted : text_safe(quoted);
}

/* Of a code point; broken UTF-8 (@len 0) takes one column. */
static size_t code_width(size_t len, uint32_t code)
{
    if (len == 0 || code < 0x80)
        return 1;
    if (IN_RANGES(code, combining))
        return 0;
    return IN_RANGES(code, wide) ? 2 : 1;
}

size_t text_width(const char *text)
{
    size_t width = 0;

    while (*text) {
        uint32_t code = 0;
        size_t len = text_decode(text, &code);

        width += code_width(len, code);
        text += len ? len : 1;
    }
    return width;
}

char *text_age(int64_t ms, char to[TEXT_AGE])
{
    int64_t s = ms / 1000;

    if (ms < 0)
        snprintf(to, TEXT_AGE, "-");
    else if (ms < 1000)
        snprintf(to, TEXT_AGE, "%" PRId64 "ms", ms);
    else if (s < 10)
        snprintf(to, TEXT_AGE, "%" PRId64 ".%" PRId64 "s", s, ms % 1000 / 100);
    else if (s < 60)
        snprintf(to, TEXT_AGE, "%" PRId64 "s", s);
    else if (s < 3600)
        snprintf(to, TEXT_AGE, "%" PRId64 "m%02" PRId64 "s", s / 60, s % 60);
    else if (s < 86400)
        snprintf(to, TEXT_AGE, "%" PRId64 "h%02" PRId64 "m", s / 3600,
                 s / 60 % 60);
    else
        snprintf(to, TEXT_AGE, "%" PRId64 "d%02" PRId64 "h", s / 86400,
                 s / 3600 % 24);
    return to;
}

bool text_colours(FILE *file)
{
    const char *no_color = secure_getenv("NO_COLOR");
    const char *term = secure_getenv("TERM");

    if (cli.no_color || (no_color && *no_color) || !isatty(fileno(file)))
        return false;
    return term && strcmp(term, "dumb") != 0;
}

size_t text_columns(FILE *file)
{
    struct winsize size;

    if (ioctl(fileno(file), TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return 80;
    return size.ws_col;
}

size_t text_lines(FILE *file)
{
    struct winsize size;

    if (ioctl(fileno(file), TIOCGWINSZ, &size) != 0 || size.ws_row == 0)
        return 24;
    return size.ws_row;
}

void text_cut(char *text, size_t columns)
{
    size_t width = 0;
    char *end = text; /* of what stays if something is missing */

    for (char *at = text; *at;) {
        uint32_t code = 0;
        size_t len = text_decode(at, &code);

        width += code_width(len, code);
        if (width > columns)
            break;
        at += len ? len : 1;
        if (*at == '\0')
            return;
        if (width < columns)
            end = at;
    }
    if (*end && columns > 0)
        *end++ = '~';
    *end = '\0';
}

void table_add(struct table *table, const char *cell)
{
    if (table->n_cells == table->room) {
        size_t room = table->room ? table->room * 2 : 64;
        char **cells = realloc(table->cells, room * sizeof(*cells));

        if (!cells)
            return;
        table->cells = cells;
        table->room = room;
    }

    char *copy = strdup(text_safe(cell));
    if (copy)
        table->cells[table->n_cells++] = copy;
}

static void print_cell(const struct table *table, size_t column,
                       const char *cell, size_t width, FILE *to)
{
    size_t padding = width - text_width(cell);
    bool last = column + 1 == table->columns;

    if (table->right[column])
        fprintf(to, "%*s%s", (int)padding, "", cell);
    else if (last)
        fputs(cell, to);
    else
        fprintf(to, "%s%*s", cell, (int)padding, "");
    fputs(last ? "\n" : "  ", to);
}

void table_print(struct table *table, FILE *to)
{
    size_t widths[TEXT_COLUMNS] = {0};
    bool colours = text_colours(to);

    for (size_t i = 0; i < table->n_cells; i++) {
        size_t width = text_width(table->cells[i]);
        size_t column = i % table->columns;

        if (width > widths[column])
            widths[column] = width;
    }
    for (size_t i = 0; i < table->n_cells; i++) {
        size_t column = i % table->columns;

        if (colours && i == 0)
            fputs("\033[1m", to);
        print_cell(table, column, table->cells[i], widths[column], to);
        if (colours && i + 1 == table->columns)
            fputs("\033[0m", to);
    }
}

void table_release(struct table *table)
{
    for (size_t i = 0; i < table->n_cells; i++)
        free(table->cells[i]);
    free(table->cells);
    table->cells = NULL;
    table->n_cells = table->room = 0;
}
