/* SPDX-License-Identifier: MIT */
/*
 * dynlib.h - client libraries, loaded when they are first needed.
 *
 * Linked, they would cost every program that locks a file milliseconds before
 * main(), and make each of them a dependency of the package. So an engine is
 * compiled with the library's header and finds its functions here:
 *
 *     #define FROM_PQ(X) X(PQconnectStartParams) X(PQfinish)
 *
 *     static struct {
 *         FROM_PQ(HF__DYNLIB_FIELD)
 *     } pq;
 *     static const char *const pq_names[] = {FROM_PQ(HF__DYNLIB_NAME)};
 *
 *     if (!hf__dynlib_load("libpq.so.5", pq_names, HF_COUNT_OF(pq_names), &pq))
 *         …
 *     pq.PQfinish(connection);
 *
 * What loads a library says so to those who make packages, by a note of the
 * kind that systemd's ELF_DLOPEN_METADATA defines:
 *
 *     HF__DYNLIB_NOTE(pq, "postgresql", "suggested", "\"libpq.so.5\"");
 */
#ifndef HF_BASE_DYNLIB_H
#define HF_BASE_DYNLIB_H

#include "base/base.h"

#define HF__DYNLIB_FIELD(name) __typeof__(name) *name;
#define HF__DYNLIB_NAME(name) #name,

/* Load @file, for good, and write the addresses of the @n symbols @names into
 * @table, a struct of as many pointers. False if the file or one of the
 * symbols is not there. Call it once per table (pthread_once). */
bool hf__dynlib_load(const char *file, const char *const *names, size_t n,
                     void *table);

#define HF__DYNLIB_VENDOR "FDO"
#define HF__DYNLIB_TYPE 0x407c0c0a
#define HF__DYNLIB_JSON(feature, priority, sonames)                            \
    "[{\"feature\":\"" feature "\",\"priority\":\"" priority                   \
    "\",\"soname\":[" sonames "]}]"

/* @sonames: those of which one is enough, quoted, with commas between them. */
#define HF__DYNLIB_NOTE(id, feature, priority, sonames)                        \
    __attribute__((used, aligned(4),                                           \
                   section(".note.dlopen"))) static const struct {             \
        uint32_t name_size;                                                    \
        uint32_t text_size;                                                    \
        uint32_t type;                                                         \
        char name[sizeof(HF__DYNLIB_VENDOR)];                                  \
        __attribute__((aligned(4))) char                                       \
            text[sizeof(HF__DYNLIB_JSON(feature, priority, sonames))];         \
    } dynlib_note_##id = {sizeof(HF__DYNLIB_VENDOR),                           \
                          sizeof(HF__DYNLIB_JSON(feature, priority, sonames)), \
                          HF__DYNLIB_TYPE, HF__DYNLIB_VENDOR,                  \
                          HF__DYNLIB_JSON(feature, priority, sonames)}

#endif
