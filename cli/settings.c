/* SPDX-License-Identifier: MIT */
/*
 * settings.c - the settings of a foreign file, as a flat list; and the reader of
 * Java's .properties.
 *
 * A line is "key = value", "key: value" or "key value"; # and ! begin a comment,
 * a backslash at its end joins it with the next line, \n, \t, \uXXXX and a
 * backslash before any other character are escapes. "#---" begins another
 * document, as Spring Boot has it.
 */
#include "settings.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool settings_fail(struct settings *settings, int line, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(settings->error, sizeof(settings->error), format, args);
    va_end(args);
    settings->line = line;
    return false;
}

static bool is_known(const struct settings *settings, const char *key,
                     size_t len)
{
    for (size_t i = 0; i < settings->n; i++)
        if (settings->list[i].document == settings->documents &&
            strlen(settings->list[i].key) == len &&
            memcmp(settings->list[i].key, key, len) == 0)
            return true;
    return false;
}

static bool make_room(struct settings *settings)
{
    if (settings->n < settings->room)
        return true;

    size_t room = settings->room ? 2 * settings->room : 64;
    struct setting *list = realloc(settings->list, room * sizeof(*list));
    if (!list)
        return false;
    settings->list = list;
    settings->room = room;
    return true;
}

/* strndup() of text that need not end with a NUL. */
static char *copy_of(const char *text, size_t len)
{
    char *copy = malloc(len + 1);

    if (copy) {
        memcpy(copy, text, len);
        copy[len] = 0;
    }
    return copy;
}

bool settings_add(struct settings *settings, const char *key, size_t key_len,
                  const char *value, size_t value_len, int line)
{
    if (settings->n == SETTINGS_MAX)
        return settings_fail(settings, line, "more than %d settings",
                             SETTINGS_MAX);
    if (key_len == 0 || key_len > SETTINGS_KEY)
        return settings_fail(settings, line, "a key has 1 to %d bytes",
                             SETTINGS_KEY);
    if (is_known(settings, key, key_len))
        return settings_fail(settings, line, "this key is here twice");
    if (!make_room(settings))
        return settings_fail(settings, line, "out of memory");

    struct setting *setting = &settings->list[settings->n];
    *setting = (struct setting){.key = copy_of(key, key_len),
                                .value = copy_of(value, value_len),
                                .line = line,
                                .document = settings->documents};
    settings->n++;
    if (!setting->key || !setting->value)
        return settings_fail(settings, line, "out of memory");
    return true;
}

void settings_release(struct settings *settings)
{
    for (size_t i = 0; i < settings->n; i++) {
        char *value = settings->list[i].value;

        if (value)
            explicit_bzero(value, strlen(value));
        free(value);
        free(settings->list[i].key);
    }
    free(settings->list);
    *settings = (struct settings){0};
}

bool settings_is_text(struct settings *settings, const char *text, size_t len)
{
    int line = 1;

    if (len > SETTINGS_BYTES)
        return settings_fail(settings, 0, "larger than %d bytes",
                             SETTINGS_BYTES);
    for (size_t i = 0; i < len; i++) {
        unsigned char byte = (unsigned char)text[i];

        line += byte == '\n';
        if ((byte < ' ' && !strchr("\t\r\n", byte)) || byte == 0 ||
            byte == 0x7f)
            return settings_fail(settings, line, "a control character (0x%02x)",
                                 byte);
    }
    return true;
}

/* ---- .properties ---------------------------------------------------------- */

/* Where we are. */
struct reader {
    struct settings *settings;
    const char *at;
    const char *end;
    int line;
    char *text; /* one logical line, its escapes undone */
    size_t len;
    size_t split; /* where its key ends; len: nowhere yet */
    size_t value; /* where its value begins */
};

static void put(struct reader *reader, unsigned code)
{
    if (code < 0x80) {
        reader->text[reader->len++] = (char)code;
    } else if (code < 0x800) {
        reader->text[reader->len++] = (char)(0xc0 | code >> 6);
        reader->text[reader->len++] = (char)(0x80 | (code & 0x3f));
    } else {
        reader->text[reader->len++] = (char)(0xe0 | code >> 12);
        reader->text[reader->len++] = (char)(0x80 | (code >> 6 & 0x3f));
        reader->text[reader->len++] = (char)(0x80 | (code & 0x3f));
    }
}

/* The four digits of \uXXXX at reader->at. */
static bool put_unicode(struct reader *reader)
{
    unsigned code = 0;

    for (int i = 0; i < 4; i++) {
        char digit[2] = {reader->at < reader->end ? *reader->at : '\0', '\0'};

        if (!isxdigit((unsigned char)digit[0]))
            return settings_fail(reader->settings, reader->line,
                                 "\\u takes four digits");
        code = code * 16 + (unsigned)strtoul(digit, NULL, 16);
        reader->at++;
    }
    if (code < ' ' || code == 0x7f || (code >= 0xd800 && code < 0xe000))
        return settings_fail(reader->settings, reader->line,
                             "\\u%04x cannot be in a setting", code);
    put(reader, code);
    return true;
}

static void skip_blanks(struct reader *reader)
{
    while (reader->at < reader->end && strchr(" \t", *reader->at))
        reader->at++;
}

/* Behind a backslash. */
static bool take_escape(struct reader *reader)
{
    char c = reader->at < reader->end ? *reader->at++ : '\n';

    if (c == '\r' && reader->at < reader->end && *reader->at == '\n')
        c = *reader->at++;
    if (c == '\n') {
        reader->line++;
        skip_blanks(reader);
        return true;
    }
    if (c == 'u')
        return put_unicode(reader);
    if (c == 'n' || c == 'r' || c == 'f')
        return settings_fail(reader->settings, reader->line,
                             "a line break cannot be in a setting");
    reader->text[reader->len++] = c == 't' ? '\t' : c;
    return true;
}

/* The key ends at reader->at: skip what separates it from the value. */
static void take_separator(struct reader *reader)
{
    reader->split = reader->len;
    skip_blanks(reader);
    if (reader->at < reader->end && strchr("=:", *reader->at)) {
        reader->at++;
        skip_blanks(reader);
    }
    reader->value = reader->len;
}

/* One logical line into reader->text. */
static bool take_line(struct reader *reader)
{
    bool in_key = true;

    reader->len = 0;
    reader->split = reader->value = 0;
    while (reader->at < reader->end && *reader->at != '\n') {
        char c = *reader->at;

        if (c == '\\') {
            reader->at++;
            if (!take_escape(reader))
                return false;
        } else if (in_key && strchr("=: \t", c)) {
            in_key = false;
            take_separator(reader);
        } else {
            reader->at++;
            if (c != '\r')
                reader->text[reader->len++] = c;
        }
    }
    if (in_key)
        reader->split = reader->value = reader->len;
    reader->at += reader->at < reader->end;
    return true;
}

/* A comment, or nothing: true, and it is behind us. */
static bool take_comment(struct reader *reader)
{
    const char *line_end =
        memchr(reader->at, '\n', (size_t)(reader->end - reader->at));

    if (!line_end)
        line_end = reader->end;
    if (reader->at < line_end && !strchr("#!\r", *reader->at))
        return false;
    if ((size_t)(line_end - reader->at) >= 4 &&
        memcmp(reader->at, "#---", 4) == 0)
        reader->settings->documents++;
    reader->at = line_end + (line_end < reader->end);
    return true;
}

bool settings_read_properties(struct settings *settings, const char *text,
                              size_t len)
{
    struct reader reader = {
        .settings = settings, .at = text, .end = text + len, .line = 1};
    bool good = true;

    if (!settings_is_text(settings, text, len))
        return false;
    reader.text = malloc(len + 4);
    if (!reader.text)
        return settings_fail(settings, 0, "out of memory");
    while (good && reader.at < reader.end) {
        int line = reader.line;

        skip_blanks(&reader);
        if (!take_comment(&reader)) {
            good = take_line(&reader) &&
                   settings_add(settings, reader.text, reader.split,
                                reader.text + reader.value,
                                reader.len - reader.value, line);
        }
        reader.line++;
    }
    explicit_bzero(reader.text, len);
    free(reader.text);
    return good;
}
