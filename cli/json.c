/* SPDX-License-Identifier: MIT */
/*
 * json.c - write JSON, one object per line.
 *
 * Texts come from other processes and servers. Whatever is not well-formed
 * UTF-8 is written as U+FFFD, so that a reader never chokes on a line of ours;
 * control characters are escaped, so that a line stays a line, and so is
 * whatever could change the look of a terminal.
 *
 * Failure: errors of the stream stay in the stream; cli_finish() asks for them.
 */
#include "json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "text.h"

static void put_key(struct json *json, const char *key)
{
    if (json->comma)
        fputc(',', json->to);
    if (key)
        fprintf(json->to, "\"%s\":", key);
    json->comma = true;
}

static void put_code(FILE *to, const char *at, size_t len, uint32_t code)
{
    if (code == '"' || code == '\\')
        fprintf(to, "\\%c", (int)code);
    else if (code == '\n')
        fputs("\\n", to);
    else if (code == '\t')
        fputs("\\t", to);
    else if (text_is_unseen(code) && code > 0xffff)
        fprintf(to, "\\u%04" PRIx32 "\\u%04" PRIx32,
                0xd800 + ((code - 0x10000) >> 10), 0xdc00 + (code & 0x3ff));
    else if (text_is_unseen(code))
        fprintf(to, "\\u%04" PRIx32, code);
    else
        fwrite(at, 1, len, to);
}

static void put_text(FILE *to, const char *text)
{
    fputc('"', to);
    while (*text) {
        uint32_t code;
        size_t len = text_decode(text, &code);

        if (len == 0)
            fputs("\xef\xbf\xbd", to);
        else
            put_code(to, text, len, code);
        text += len ? len : 1;
    }
    fputc('"', to);
}

void json_open(struct json *json, const char *key, char bracket)
{
    put_key(json, key);
    fputc(bracket, json->to);
    json->comma = false;
}

void json_close(struct json *json, char bracket)
{
    fputc(bracket, json->to);
    json->comma = true;
}

void json_end(struct json *json)
{
    json_close(json, '}');
    fputc('\n', json->to);
    fflush(json->to);
    json->comma = false;
}

void json_text(struct json *json, const char *key, const char *text)
{
    put_key(json, key);
    put_text(json->to, text);
}

void json_number(struct json *json, const char *key, int64_t number)
{
    put_key(json, key);
    fprintf(json->to, "%" PRId64, number);
}

void json_fraction(struct json *json, const char *key, double number)
{
    put_key(json, key);
    if (isfinite(number))
        fprintf(json->to, "%.3f", number);
    else
        fputs("null", json->to);
}

void json_token(struct json *json, const char *key, uint64_t token)
{
    put_key(json, key);
    fprintf(json->to, "\"%" PRIu64 "\"", token);
}

void json_bool(struct json *json, const char *key, bool value)
{
    put_key(json, key);
    fputs(value ? "true" : "false", json->to);
}

void json_words(struct json *json, const char *key, const char *words)
{
    char word[128];

    json_open(json, key, '[');
    for (;;) {
        words += strspn(words, " ");

        size_t len = strcspn(words, " ");
        if (len == 0)
            break;
        snprintf(word, sizeof(word), "%.*s", (int)len, words);
        json_text(json, /* key= */ NULL, word);
        words += len;
    }
    json_close(json, ']');
}
