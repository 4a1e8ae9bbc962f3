/* SPDX-License-Identifier: MIT */
/*
 * journal.h - what a worker writes for the checker; history.py has the words.
 *
 * The instant of an event that begins something is read before it is done, of
 * one that ends something after it. A line is one write(2), so that what a
 * killed process did is in its file.
 */
#ifndef HF_TESTS_JOURNAL_H
#define HF_TESTS_JOURNAL_H

#include <stdint.h>

enum { JOURNAL_THREADS = 15 };

/* What the nemesis wants to know of a process, in a file that both map. */
struct journal_state {
    int32_t holding;
    int32_t waiting;
    int64_t since[JOURNAL_THREADS]; /* each thread waits since then; 0: no */
};

int journal_open(const char *path, const char *state_path, int index);
/* CLOCK_BOOTTIME, in nanoseconds: the kernel's, whatever is preloaded. */
int64_t journal_now(void);
/* The calling thread is number @i. */
void journal_thread(int i);
/* The calling thread waits for an answer, or has it. */
void journal_asks(int on);
void journal_write(int64_t at, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* @n numbers that no other request of this process has; the first. */
uint64_t journal_ids(unsigned n);
void journal_holding(int by);
void journal_waiting(int by);
int journal_is_holding(void);

#endif
