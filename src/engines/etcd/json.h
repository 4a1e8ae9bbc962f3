/* SPDX-License-Identifier: MIT */
/*
 * json.h - reading what the gateway of etcd answers. Pure: bytes in, values
 * out, nothing is allocated.
 *
 * A value is a stretch of a text that hf__json_read() has found well-formed;
 * everything below may then rely on it. What is not there is a value of type
 * NONE, and every question about NONE has a harmless answer, because etcd
 * leaves out whatever has its default.
 */
#ifndef HF_ETCD_JSON_H
#define HF_ETCD_JSON_H

#include "base/buf.h"

enum hf__json_type {
    HF__JSON_NONE,
    HF__JSON_NULL,
    HF__JSON_BOOLEAN,
    HF__JSON_NUMBER,
    HF__JSON_STRING,
    HF__JSON_ARRAY,
    HF__JSON_OBJECT
};

/* How deep values may be nested. */
enum { HF__JSON_DEPTH = 16 };

struct hf__json {
    uint8_t type;
    const char *text; /* with its quotes or brackets */
    size_t len;
};

/* The one value in @text, NONE if it is not exactly one. */
struct hf__json hf__json_read(const char *text, size_t len);
/* The member @name of an object. Names with escapes are never found. */
struct hf__json hf__json_member(struct hf__json object, const char *name);
/* "a.b.c" of nested objects. */
struct hf__json hf__json_path(struct hf__json object, const char *path);
/* The next element: begin with *at = 0; NONE after the last. */
struct hf__json hf__json_next(struct hf__json array, size_t *at);
/* Its first element. */
struct hf__json hf__json_first(struct hf__json array);
/* A whole number, bare or in a string; 0 for everything else, also for those
 * below zero or too great. */
uint64_t hf__json_unsigned(struct hf__json value);
/* The same of the numbers that fit. Members are known by greater ones. */
int64_t hf__json_number(struct hf__json value);
bool hf__json_true(struct hf__json value);
/* A string for people: escapes undone, what is not ASCII as '?', cut. */
void hf__json_text(struct hf__json value, char *to, size_t size);

/* Add @len bytes in base64. */
void hf__base64_add(struct hf__buf *buf, const void *bytes, size_t len);
/* The bytes of a base64 string, into @to, which has room for @size of them.
 * Returns how many, or -1 if it is none or has more. */
long hf__base64_read(struct hf__json value, char *to, size_t size);

#endif
