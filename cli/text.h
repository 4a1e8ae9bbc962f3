/* SPDX-License-Identifier: MIT */
/* text.h - text for people: escapes, widths, columns, ages, colours. */
#ifndef CLI_TEXT_H
#define CLI_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { TEXT_AGE = 32, TEXT_COLUMNS = 10 };

/* The code point at @text and how many bytes it has; 0 bytes where the UTF-8
 * is broken. @text is terminated and not empty. */
size_t text_decode(const char *text, uint32_t *ret_code);
/* A copy in which nothing can move a cursor or hide: control characters, text
 * direction marks and broken UTF-8 become \xNN or \u{N}. Cut at @size. */
char *text_escape(const char *text, char *to, size_t size);
/* text_escape() into a buffer of the next of a few static ones. */
const char *text_safe(const char *text);
/* Does a terminal hide it, or let it change what it shows? */
bool text_is_unseen(uint32_t code);
/* The columns that @text takes on a terminal. */
size_t text_width(const char *text);
/* "12ms", "4.2s", "3m12s", "5h03m", "2d04h"; "-" below zero. */
char *text_age(int64_t ms, char to[TEXT_AGE]);
/* True if @file is a terminal on which colours are welcome. */
bool text_colours(FILE *file);
/* The width of the terminal behind @file, 80 if unknown. */
size_t text_columns(FILE *file);
/* The height, 24 if unknown. */
size_t text_lines(FILE *file);
/* Cut @text to @columns, with "~" at its end if something is missing. */
void text_cut(char *text, size_t columns);
/* Quoted for a shell where it has to be; as text_safe(). */
const char *text_shell(const char *text);

/* Rows whose columns line up; the last one is never padded. */
struct table {
    char **cells;
    size_t n_cells;
    size_t room;
    size_t columns;
    bool right[TEXT_COLUMNS]; /* numbers stand to the right */
};
void table_add(struct table *table, const char *cell);
void table_print(struct table *table, FILE *to);
void table_release(struct table *table);

#endif
