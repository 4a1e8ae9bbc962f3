/* SPDX-License-Identifier: MIT */
/* json.h - write JSON, one object per line. */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* { .to = stdout } begins; every value knows whether a comma is due. */
struct json {
    FILE *to;
    bool comma;
};

/* '{' or '['; @key NULL inside a list and at the top. */
void json_open(struct json *json, const char *key, char bracket);
/* '}' or ']'. */
void json_close(struct json *json, char bracket);
/* The end of the outermost object: a newline, and out with it. */
void json_end(struct json *json);
void json_text(struct json *json, const char *key, const char *text);
void json_number(struct json *json, const char *key, int64_t number);
void json_fraction(struct json *json, const char *key, double number);
/* Tokens are texts: a double cannot hold them. */
void json_token(struct json *json, const char *key, uint64_t token);
void json_bool(struct json *json, const char *key, bool value);
/* Every word of @words, which spaces separate, as a list. */
void json_words(struct json *json, const char *key, const char *words);

#endif
