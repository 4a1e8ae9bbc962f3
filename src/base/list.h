/* SPDX-License-Identifier: MIT */
/*
 * list.h - a doubly linked list whose links live inside its members.
 *
 * A member that is in no list points to itself, so hf__list_remove() may be
 * called twice.
 */
#ifndef HF_BASE_LIST_H
#define HF_BASE_LIST_H

#include "base/base.h"

struct hf__list {
    struct hf__list *next;
    struct hf__list *prev;
};

static inline void hf__list_init(struct hf__list *list)
{
    list->next = list;
    list->prev = list;
}

static inline bool hf__list_empty(const struct hf__list *list)
{
    return list->next == list;
}

static inline void hf__list_append(struct hf__list *list, struct hf__list *link)
{
    link->prev = list->prev;
    link->next = list;
    list->prev->next = link;
    list->prev = link;
}

static inline void hf__list_remove(struct hf__list *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    hf__list_init(link);
}

/* All members of @from become those of @to, which is not initialised. */
static inline void hf__list_take(struct hf__list *to, struct hf__list *from)
{
    hf__list_init(to);
    if (hf__list_empty(from))
        return;
    *to = *from;
    to->next->prev = to;
    to->prev->next = to;
    hf__list_init(from);
}

/* The first link, or NULL. */
static inline struct hf__list *hf__list_first(const struct hf__list *list)
{
    return hf__list_empty(list) ? NULL : list->next;
}

/* @link may be removed inside the loop, no other one. */
#define HF_LIST_EACH(list, link)                                               \
    for (struct hf__list *link = (list)->next, *hf_next_##link = link->next;   \
         link != (list); link = hf_next_##link, hf_next_##link = link->next)

#endif
