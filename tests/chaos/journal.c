/* SPDX-License-Identifier: MIT */
/* journal.c - see journal.h. */
#include "journal.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 320 };

static int journal_fd = -1;
static struct journal_state *state;
static atomic_uint_fast64_t last_id;
static _Thread_local int own_number;

int journal_open(const char *path, const char *state_path, int index)
{
    int fd = open(state_path, O_RDWR | O_CLOEXEC);
    struct journal_state *all;

    journal_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (journal_fd < 0 || fd < 0)
        return -1;
    all = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    if (all == MAP_FAILED)
        return -1;
    state = &all[index];
    memset(state, 0, sizeof(*state));
    return 0;
}

int64_t journal_now(void)
{
    struct timespec now;

    (void)syscall(SYS_clock_gettime, CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void journal_write(int64_t at, const char *format, ...)
{
    char line[LINE_MAX_BYTES];
    va_list args;
    int n = snprintf(line, sizeof(line), "%lld ", (long long)at);

    va_start(args, format);
    n += vsnprintf(line + n, sizeof(line) - (size_t)n - 1, format, args);
    va_end(args);
    if (n > (int)sizeof(line) - 2)
        n = (int)sizeof(line) - 2;
    line[n++] = '\n';
    if (write(journal_fd, line, (size_t)n) != n)
        _exit(3); /* an incomplete history proves nothing */
}

uint64_t journal_ids(unsigned n)
{
    return atomic_fetch_add(&last_id, n) + 1;
}

void journal_holding(int by)
{
    __atomic_fetch_add(&state->holding, by, __ATOMIC_RELAXED);
}

void journal_thread(int i)
{
    own_number = i;
}

void journal_asks(int on)
{
    __atomic_store_n(&state->since[own_number], on ? journal_now() : 0,
                     __ATOMIC_RELAXED);
}

void journal_waiting(int by)
{
    journal_asks(by > 0);
    __atomic_fetch_add(&state->waiting, by, __ATOMIC_RELAXED);
}

int journal_is_holding(void)
{
    return __atomic_load_n(&state->holding, __ATOMIC_RELAXED) > 0;
}
