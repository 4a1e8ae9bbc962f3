/* SPDX-License-Identifier: MIT */
/*
 * board.h - the boards of the stores: posting, and looking for cycles.
 *
 * Everything here blocks like a caller, and is called without any monitor.
 */
#ifndef HF_CORE_BOARD_H
#define HF_CORE_BOARD_H

#include "core/deadlock.h"
#include "core/fork.h"
#include "core/notice.h"

enum { HF__BOARD_SHOWS = 64 }; /* questions about one lock, in one look */

/* A store, and the client of ours that asks it. */
struct hf__board_place {
    struct hf__fork_client of;
    uint64_t store;
};

/* What is known of a member beside its notice. */
struct hf__board_member {
    struct hf__notice_wait wait;
    uint64_t signature; /* of the rows that keep it waiting */
    bool asked;         /* those are known */
};

struct hf__board_look {
    const struct hf__board_place *places;
    uint32_t places_n;
    uint32_t shows;
    bool too_much; /* more members than are looked at: nothing is certain */
    struct hf__deadlock deadlock;
    struct hf__board_member members[HF__DEADLOCK_MEMBERS];
};

/* A member of a deadlock, as it was seen once. */
struct hf__board_sight {
    uint64_t process;
    uint64_t owner;
    uint64_t serial;
    uint64_t signature;
};

/* A cycle, and everybody it rests on: the first cycle_n are the cycle. */
struct hf__board_cycle {
    uint32_t cycle_n;
    uint32_t n;
    struct hf__board_sight at[HF__DEADLOCK_MEMBERS];
};

/* The number of the store behind @of; 0: nobody has posted anything there
 * yet, or *ret_rc is an error. */
uint64_t hf__board_number(const struct hf__fork_client *of, int *ret_rc,
                          hf_error *err);
/* Post the notice @text of the client @identity, or take it down (NULL). The
 * store gets a number if it has none; 0: *ret_rc is an error. HF_EUNSUPPORTED
 * is for ever: it has no board. */
uint64_t hf__board_post(const struct hf__fork_client *of, const char *identity,
                        const char *text, int *ret_rc);

/* An empty look at the boards of @places; NULL without memory. */
struct hf__board_look *hf__board_look_new(const struct hf__board_place *places,
                                          uint32_t n);
void hf__board_look_free(struct hf__board_look *look);
/* A member; the second of one owner is left out. Before _read(). */
void hf__board_look_add(struct hf__board_look *look,
                        const struct hf__notice_wait *wait);
/* Read the boards, and ask who keeps the first @n members waiting, and those
 * in turn. 0, or why nothing is certain. */
int hf__board_look_read(struct hf__board_look *look, uint32_t n, hf_error *err);
/* The shortest cycle through member @number; false: there is none. */
bool hf__board_look_cycle(const struct hf__board_look *look, uint32_t number,
                          struct hf__board_cycle *cycle);
/* Is everything of @cycle, which an earlier look has seen, in this look, too? */
bool hf__board_look_confirms(const struct hf__board_look *look,
                             const struct hf__board_cycle *cycle);
/* Which member of the confirmed @cycle has to give way: the youngest of those
 * that can; HF__DEADLOCK_NOBODY. */
int hf__board_look_victim(const struct hf__board_look *look,
                          const struct hf__board_cycle *cycle);
/* "a: db1:12 waits for b held by db2:7, who waits for a". */
void hf__board_look_tell(const struct hf__board_look *look,
                         const struct hf__board_cycle *cycle,
                         struct hf__buf *to);

#endif
