/* SPDX-License-Identifier: MIT */
/* settings.h - the settings of a foreign file, as a flat list. */
#ifndef CLI_SETTINGS_H
#define CLI_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

enum {
    SETTINGS_BYTES = 1024 * 1024, /* of a file */
    SETTINGS_MAX = 4096,          /* in a file */
    SETTINGS_DEPTH = 32,
    SETTINGS_KEY = 512
};

struct setting {
    char *key;   /* as written: "spring.redis.host", "nodes[0]" */
    char *value; /* "": nothing, null or an empty list */
    int line;
    int document; /* the first is 0 */
    bool used;
};

struct settings {
    struct setting *list;
    size_t n;
    size_t room;
    int documents;
    int line; /* where the error is */
    char error[200];
};

/* Read @text, which a NUL ends, into @settings; false: its error and line say why not. */
bool settings_read_yaml(struct settings *settings, const char *text,
                        size_t len);
bool settings_read_properties(struct settings *settings, const char *text,
                              size_t len);
/* Values may be secret: they are overwritten. */
void settings_release(struct settings *settings);

/* For the readers: add one; false with an error. */
bool settings_add(struct settings *settings, const char *key, size_t key_len,
                  const char *value, size_t value_len, int line);
bool settings_fail(struct settings *settings, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same for every reader: no NUL, no other control character. */
bool settings_is_text(struct settings *settings, const char *text, size_t len);

#endif
