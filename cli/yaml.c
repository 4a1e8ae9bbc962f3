/* SPDX-License-Identifier: MIT */
/*
 * yaml.c - the part of YAML that configuration files use.
 *
 * Maps and lists by indentation, scalars plain or in quotes, lists of scalars in
 * brackets, literal blocks ("|"), comments, documents ("---"). Everything else
 * is an error with its line, because a guess could be another server: anchors,
 * aliases, values that go on in the next line, maps in braces, folded blocks.
 * A value with a tag (!<org.example.Codec> {}) is kept as it is written.
 *
 * Each line belongs to the innermost frame whose indentation it has. A key
 * without a value is open: a deeper line makes it a map or a list.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "settings.h"

/* A map or a list that is open, and the path of what is in it. */
struct frame {
    size_t indent;
    size_t path_len;
    bool is_list;
    int items;
};

struct yaml {
    struct settings *settings;
    const char *at; /* the next line */
    const char *end;
    int line; /* of the text below */
    struct frame frames[SETTINGS_DEPTH];
    size_t depth;
    char path[SETTINGS_KEY + 64]; /* of the frame, then of the key */
    size_t open; /* the length of the path of an open key; 0: none */
    size_t open_indent;
    int open_line;
    char *scratch; /* a scalar, its escapes undone */
};

/* One line without its indentation. */
struct line {
    const char *text;
    size_t len;
    size_t indent;
};

static bool fail(struct yaml *yaml, const char *why)
{
    (void)settings_fail(yaml->settings, yaml->line, "%s", why);
    return false;
}

static bool add(struct yaml *yaml, size_t path_len, const char *value,
                size_t len)
{
    return settings_add(yaml->settings, yaml->path, path_len, value, len,
                        yaml->line);
}

/* ---- scalars -------------------------------------------------------------- */

/* Where a comment begins in what is plain, or the end; blanks before it do not
 * count. */
static size_t plain_length(const char *text, size_t len)
{
    size_t n = 0;

    while (n < len &&
           !(text[n] == '#' && (n == 0 || strchr(" \t", text[n - 1]))))
        n++;
    while (n > 0 && strchr(" \t\r", text[n - 1]))
        n--;
    return n;
}

static bool is_rest_empty(const char *text, size_t len)
{
    return plain_length(text, len) == 0;
}

static bool put_escape(struct yaml *yaml, char c, size_t *used)
{
    switch (c) {
    case 't':
        yaml->scratch[(*used)++] = '\t';
        return true;
    case '"':
    case '\\':
    case '/':
    case ' ':
        yaml->scratch[(*used)++] = c;
        return true;
    default:
        return fail(yaml, "this escape is not understood; known are \\\" \\\\ "
                          "\\/ and \\t");
    }
}

/* A scalar in quotes into yaml->scratch; *@ret_used is its length there,
 * *@ret_end where it ends in @text. */
static bool take_quoted(struct yaml *yaml, const char *text, size_t len,
                        size_t *ret_used, size_t *ret_end)
{
    char mark = text[0];
    size_t used = 0;
    size_t i = 1;

    for (; i < len; i++) {
        if (mark == '"' && text[i] == '\\' && i + 1 < len) {
            if (!put_escape(yaml, text[++i], &used))
                return false;
        } else if (mark == '\'' && text[i] == '\'' && i + 1 < len &&
                   text[i + 1] == '\'') {
            yaml->scratch[used++] = text[i++];
        } else if (text[i] == mark) {
            *ret_used = used;
            *ret_end = i + 1;
            return true;
        } else {
            yaml->scratch[used++] = text[i];
        }
    }
    return fail(yaml, "the quote does not end in this line");
}

static bool is_null(const char *text, size_t len)
{
    return (len == 1 && text[0] == '~') ||
           (len == 4 && strncasecmp(text, "null", 4) == 0) ||
           (len == 2 &&
            (memcmp(text, "{}", 2) == 0 || memcmp(text, "[]", 2) == 0));
}

static bool add_plain(struct yaml *yaml, size_t path_len, const char *text,
                      size_t len)
{
    if (is_null(text, len))
        len = 0;
    if (len > 0 && strchr("&*", text[0]))
        return fail(yaml, "anchors and aliases are not understood");
    if (len > 0 && text[0] == '{')
        return fail(yaml, "a map in braces is not understood");
    if (len > 0 && strchr("}[],>@`%|?", text[0]))
        return fail(yaml, "a value cannot begin so; put it in quotes");
    for (size_t i = 0; i + 1 < len && text[0] != '!'; i++)
        if (text[i] == ':' && strchr(" \t", text[i + 1]))
            return fail(yaml, "a key inside of a value; put it in quotes");
    return add(yaml, path_len, text, len);
}

static bool add_item(struct yaml *yaml, size_t path_len, int number,
                     const char *text, size_t len)
{
    int n = snprintf(yaml->path + path_len, sizeof(yaml->path) - path_len,
                     "[%d]", number);

    return path_len + (size_t)n > SETTINGS_KEY
               ? fail(yaml, "the path of this key is too long")
               : add_plain(yaml, path_len + (size_t)n, text, len);
}

/* [a, "b"] on one line. */
static bool add_brackets(struct yaml *yaml, size_t path_len, const char *text,
                         size_t len)
{
    int number = 0;
    size_t i = 1;

    while (i < len) {
        size_t end = i;
        size_t used = 0;

        i += strspn(text + i, " \t");
        if (i < len && text[i] == ']')
            return is_rest_empty(text + i + 1, len - i - 1)
                       ? true
                       : fail(yaml, "there is something behind the ]");
        if (i < len && strchr("'\"", text[i])) {
            if (!take_quoted(yaml, text + i, len - i, &used, &end))
                return false;
            int n = snprintf(yaml->path + path_len,
                             sizeof(yaml->path) - path_len, "[%d]", number++);
            if (path_len + (size_t)n > SETTINGS_KEY ||
                !add(yaml, path_len + (size_t)n, yaml->scratch, used))
                return false;
            end += i;
        } else {
            end = i + strcspn(text + i, ",]#\n");
            used = plain_length(text + i, end < len ? end - i : len - i);
            if (used == 0 || end >= len || text[end] == '#')
                break;
            if (!add_item(yaml, path_len, number++, text + i, used))
                return false;
        }
        i = end;
        while (i < len && strchr(" \t,", text[i]))
            i++;
    }
    return fail(yaml, "a list in brackets has to end in its line");
}

/* The indentation of the line at @text, and whether it is empty. */
static size_t indentation(const char *text, const char *end, bool *ret_empty)
{
    size_t n = 0;

    while (text + n < end && text[n] == ' ')
        n++;
    *ret_empty = text + n == end || strchr("\r\n", text[n]);
    return n;
}

/* The lines behind "key: |" that are deeper than it. */
static bool add_block(struct yaml *yaml, size_t path_len, size_t indent)
{
    size_t used = 0;
    size_t block = 0;
    int line = yaml->line;

    while (yaml->at < yaml->end) {
        bool empty;
        size_t deep = indentation(yaml->at, yaml->end, &empty);
        const char *next =
            memchr(yaml->at, '\n', (size_t)(yaml->end - yaml->at));
        const char *stop = next ? next : yaml->end;

        if (!empty && deep <= indent)
            break;
        if (block == 0 && !empty)
            block = deep;
        if (!empty && deep < block)
            return fail(yaml, "this block is not indented evenly");
        if (!empty) {
            memcpy(yaml->scratch + used, yaml->at + block,
                   (size_t)(stop - yaml->at) - block);
            used += (size_t)(stop - yaml->at) - block;
        }
        yaml->scratch[used++] = '\n';
        yaml->at = next ? next + 1 : yaml->end;
        yaml->line++;
    }
    return settings_add(yaml->settings, yaml->path, path_len, yaml->scratch,
                        used, line);
}

/* What is behind the colon or the dash of a line with this indentation. */
static bool take_value(struct yaml *yaml, size_t path_len, const char *text,
                       size_t len, size_t indent)
{
    size_t used;
    size_t end;

    if (strchr("'\"", text[0])) {
        if (!take_quoted(yaml, text, len, &used, &end))
            return false;
        if (!is_rest_empty(text + end, len - end))
            return fail(yaml, "there is something behind the quote");
        return add(yaml, path_len, yaml->scratch, used);
    }
    used = plain_length(text, len);
    if (text[0] == '|' && used <= 2)
        return add_block(yaml, path_len, indent);
    if (text[0] == '[' && !is_null(text, used))
        return add_brackets(yaml, path_len, text, len);
    return add_plain(yaml, path_len, text, used);
}

/* ---- maps and lists ------------------------------------------------------- */

/* A key without a value, and nothing deeper behind it. */
static bool close_open(struct yaml *yaml)
{
    size_t len = yaml->open;

    yaml->open = 0;
    return len == 0 || settings_add(yaml->settings, yaml->path, len, "", 0,
                                    yaml->open_line);
}

static bool push(struct yaml *yaml, size_t indent, size_t path_len,
                 bool is_list)
{
    if (yaml->depth == SETTINGS_DEPTH)
        return settings_fail(yaml->settings, yaml->line,
                             "deeper than %d levels", SETTINGS_DEPTH);
    yaml->frames[yaml->depth++] = (struct frame){
        .indent = indent, .path_len = path_len, .is_list = is_list};
    return true;
}

/* The frame that a line of this indentation belongs to. */
static bool enter(struct yaml *yaml, size_t indent, bool is_list)
{
    struct frame *top;

    /* The open key becomes a map or a list; a list may stand below its key. */
    if (yaml->open > 0 && (indent > yaml->open_indent ||
                           (is_list && indent == yaml->open_indent))) {
        size_t path_len = yaml->open;

        yaml->open = 0;
        return push(yaml, indent, path_len, is_list);
    }
    if (!close_open(yaml))
        return false;
    while (yaml->depth > 0) {
        top = &yaml->frames[yaml->depth - 1];
        if (top->indent < indent ||
            (top->indent == indent && top->is_list == is_list))
            break;
        yaml->depth--;
    }
    if (yaml->depth == 0 && yaml->settings->n == 0)
        return push(yaml, indent, 0, is_list);
    if (yaml->depth == 0 && indent == 0)
        return push(yaml, indent, 0, is_list);
    if (yaml->depth == 0 || yaml->frames[yaml->depth - 1].indent != indent)
        return fail(yaml, "the indentation fits nothing above, or a value goes "
                          "on in the next line");
    return true;
}

/* The length of the key at @line, and where its value begins. */
static bool split_key(struct yaml *yaml, const struct line *line,
                      const char **ret_key, size_t *ret_len, size_t *ret_value)
{
    size_t end = 0;
    size_t used;

    if (strchr("'\"", line->text[0])) {
        if (!take_quoted(yaml, line->text, line->len, &used, &end))
            return false;
        *ret_key = yaml->scratch;
        *ret_len = used;
        if (end >= line->len || line->text[end] != ':')
            return fail(yaml, "a colon has to follow the key");
        *ret_value = end + 1;
        return true;
    }
    if (strchr("?&*!{[|>%@`", line->text[0]))
        return fail(yaml, "a line is: key: value, or: - value");
    while (end < line->len &&
           !(line->text[end] == ':' &&
             (end + 1 == line->len || strchr(" \t\r", line->text[end + 1]))))
        end++;
    if (end == line->len)
        return fail(yaml, "a line is: key: value, or: - value");
    *ret_key = line->text;
    *ret_len = plain_length(line->text, end);
    *ret_value = end + 1;
    return *ret_len > 0 ? true : fail(yaml, "there is no key before the colon");
}

static bool take_pair(struct yaml *yaml, const struct line *line)
{
    const char *key = NULL;
    size_t key_len = 0;
    size_t at = 0;
    size_t path_len;

    if (!enter(yaml, line->indent, /* is_list= */ false) ||
        !split_key(yaml, line, &key, &key_len, &at))
        return false;
    path_len = yaml->frames[yaml->depth - 1].path_len;
    if (path_len + key_len + 1 > SETTINGS_KEY)
        return fail(yaml, "the path of this key is too long");
    if (path_len > 0)
        yaml->path[path_len++] = '.';
    memcpy(yaml->path + path_len, key, key_len);
    path_len += key_len;

    while (at < line->len && strchr(" \t", line->text[at]))
        at++;
    if (!is_rest_empty(line->text + at, line->len - at))
        return take_value(yaml, path_len, line->text + at, line->len - at,
                          line->indent);
    yaml->open = path_len;
    yaml->open_indent = line->indent;
    yaml->open_line = yaml->line;
    return true;
}

static bool is_item(const struct line *line)
{
    return line->text[0] == '-' &&
           (line->len == 1 || strchr(" \t\r", line->text[1]));
}

/* Does "key:" stand at the beginning of @line? */
static bool is_pair(const struct line *line)
{
    size_t len = plain_length(line->text, line->len);

    if (len > 0 && strchr("'\"[{", line->text[0]))
        return false;
    for (size_t i = 0; i < len; i++)
        if (line->text[i] == ':' &&
            (i + 1 == len || strchr(" \t", line->text[i + 1])))
            return true;
    return false;
}

static bool take_item(struct yaml *yaml, struct line line)
{
    size_t indent = line.indent;

    if (!enter(yaml, indent, /* is_list= */ true))
        return false;
    struct frame *list = &yaml->frames[yaml->depth - 1];
    size_t path_len = list->path_len;
    int n = snprintf(yaml->path + path_len, sizeof(yaml->path) - path_len,
                     "[%d]", list->items++);

    path_len += (size_t)n;
    if (path_len > SETTINGS_KEY)
        return fail(yaml, "the path of this key is too long");
    do {
        line.text++;
        line.len--;
        line.indent++;
    } while (line.len > 0 && strchr(" \t", line.text[0]));
    if (is_rest_empty(line.text, line.len)) {
        yaml->open = path_len;
        yaml->open_indent = indent;
        yaml->open_line = yaml->line;
        return true;
    }
    if (is_item(&line))
        return fail(yaml, "a list inside of a list is not understood");
    if (!is_pair(&line))
        return take_value(yaml, path_len, line.text, line.len, indent);
    return push(yaml, line.indent, path_len, /* is_list= */ false) &&
           take_pair(yaml, &line);
}

/* "---" and "..." begin and end a document. */
static bool take_mark(struct yaml *yaml, const struct line *line)
{
    if (!close_open(yaml))
        return false;
    yaml->depth = 0;
    if (!is_rest_empty(line->text + 3, line->len - 3))
        return fail(yaml, "there is something behind the mark of a document");
    if (line->text[0] == '-' && yaml->settings->n > 0)
        yaml->settings->documents++;
    return true;
}

static bool take_line(struct yaml *yaml, struct line line)
{
    if (is_rest_empty(line.text, line.len))
        return true;
    if (line.text[0] == '\t')
        return fail(yaml, "a tab in the indentation; use spaces");
    if (line.indent == 0 && line.len >= 3 &&
        (memcmp(line.text, "---", 3) == 0 || memcmp(line.text, "...", 3) == 0))
        return take_mark(yaml, &line);
    return is_item(&line) ? take_item(yaml, line) : take_pair(yaml, &line);
}

bool settings_read_yaml(struct settings *settings, const char *text, size_t len)
{
    struct yaml yaml = {.settings = settings, .at = text, .end = text + len};
    bool good = settings_is_text(settings, text, len);

    if (good && len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        yaml.at += 3;
    yaml.scratch = good ? malloc(len + 2) : NULL;
    if (good && !yaml.scratch)
        good = settings_fail(settings, 0, "out of memory");
    while (good && yaml.at < yaml.end) {
        struct line line = {.text = yaml.at};
        bool empty;
        const char *next = memchr(yaml.at, '\n', (size_t)(yaml.end - yaml.at));

        line.indent = indentation(yaml.at, yaml.end, &empty);
        line.len = (size_t)((next ? next : yaml.end) - yaml.at) - line.indent;
        line.text += line.indent;
        yaml.at = next ? next + 1 : yaml.end;
        yaml.line++;
        good = take_line(&yaml, line);
    }
    good = good && close_open(&yaml);
    if (yaml.scratch)
        explicit_bzero(yaml.scratch, len);
    free(yaml.scratch);
    return good;
}
