/* SPDX-License-Identifier: MIT */
/* options.h - the command line, by tables. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct verb;

enum option_kind {
    OPTION_FLAG,     /* bool: set to true */
    OPTION_COUNT,    /* int: one more each time */
    OPTION_TEXT,     /* const char * */
    OPTION_NUMBER,   /* int64_t, from 0 */
    OPTION_DURATION, /* int64_t, milliseconds */
    OPTION_CALL,     /* option_fn */
    OPTION_HELP
};

/* Takes the value of an option; 0 or an exit code, said. */
typedef int option_fn(const char *value);

/* A table ends with a row without a name. */
struct option {
    char letter; /* 0: none */
    const char *name;
    enum option_kind kind;
    void *to; /* by kind; an OPTION_CALL has @call */
    option_fn *call;
    const char *value; /* what the help calls the value; NULL: takes none */
};

/* What is no option. */
struct words {
    int wanted;   /* so many words at most */
    int needed;   /* and at least so many */
    bool command; /* then a command follows */
    char *word[3];
    int n;
    char **argv; /* the command, NULL if there is none */
};

extern const struct option options_global[];

/* Below zero: there is nothing left to do. */
enum { OPTIONS_HELP = -1, OPTIONS_VERSION = -2 };

/* Parse everything behind the verb. 0; OPTIONS_HELP, which is printed; or an
 * exit code, said. */
int options_parse(const struct verb *verb, int argc, char **argv,
                  struct words *words);
/* Parse what stands before the verb; *ret_used is how many arguments. */
int options_parse_globals(int argc, char **argv, int *ret_used);
/* "250ms", "30s", "5m", "2h", "1d", "1.5" (seconds), "forever". */
bool options_duration(const char *text, int64_t *ret_ms);
/* A decimal number of 0 … @max. */
bool options_number(const char *text, uint64_t max, uint64_t *ret_number);
/* The nearest of @names to @word, or NULL if none is near. */
const char *options_nearest(const char *word, const char *const *names,
                            size_t n);

#endif
