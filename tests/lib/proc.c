/* SPDX-License-Identifier: MIT */
/*
 * proc.c - child processes that run a function and tell what happens.
 *
 * Two pipes carry lines, one each way. The end of the pipe is the end of the
 * child, also of a killed one, so nobody waits for a line that cannot come.
 */
#define _GNU_SOURCE
#include "proc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

struct proc {
    pid_t pid;
    int in;  /* lines of the other side */
    int out; /* lines to the other side */
    bool gone;
    int status;
    size_t filled;
    size_t line_end; /* of the line handed out last; 0: none */
    char buffer[4096];
};

static int64_t now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void send_line(int fd, const char *line, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, line, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return; /* the other side is gone; its waiter will see */
        line += n;
        len -= (size_t)n;
    }
}

/* Drop the line handed out last, and look for the next one. */
static const char *take_line(struct proc *proc)
{
    char *end;

    if (proc->line_end > 0) {
        proc->filled -= proc->line_end;
        memmove(proc->buffer, proc->buffer + proc->line_end, proc->filled);
        proc->line_end = 0;
    }
    end = memchr(proc->buffer, '\n', proc->filled);
    if (!end)
        return NULL;
    *end = '\0';
    proc->line_end = (size_t)(end - proc->buffer) + 1;
    return proc->buffer;
}

/* A line, or NULL at the end of the pipe or after @wait_ms (-1: for ever). */
static const char *read_line(struct proc *proc, int64_t wait_ms)
{
    int64_t until = wait_ms < 0 ? INT64_MAX : now_ms() + wait_ms;

    for (;;) {
        const char *line = take_line(proc);
        struct pollfd poller = {.fd = proc->in, .events = POLLIN};
        int64_t left = until == INT64_MAX ? -1 : until - now_ms();
        ssize_t n;

        if (line)
            return line;
        if (left < 0 && until != INT64_MAX)
            left = 0;
        if (poll(&poller, 1, (int)left) == 0)
            return NULL;
        n = read(proc->in, proc->buffer + proc->filled,
                 sizeof(proc->buffer) - proc->filled);
        if (n == 0 || (n < 0 && errno != EINTR))
            return NULL;
        proc->filled += n > 0 ? (size_t)n : 0;
    }
}

static void end_child(void *arg)
{
    struct proc *proc = arg;

    proc_kill(proc);
    (void)close(proc->in);
    (void)close(proc->out);
    free(proc);
}

__attribute__((noreturn)) static void run_child(struct proc *self, pid_t parent,
                                                proc_fn *run, void *arg)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(TEST_FAILED_STATUS);
    (void)signal(SIGPIPE, SIG_IGN);
    test_forked();
    self->pid = getpid();
    run(self, arg);
    (void)fflush(stdout);
    _exit(0);
}

struct proc *proc_start(proc_fn *run, void *arg)
{
    struct proc *proc = calloc(1, sizeof(*proc));
    pid_t parent = getpid();
    int up[2];
    int down[2];

    if (!proc || pipe2(up, O_CLOEXEC) != 0 || pipe2(down, O_CLOEXEC) != 0)
        FAIL("no pipes: %s", strerror(errno));
    (void)signal(SIGPIPE, SIG_IGN);
    (void)fflush(stdout);
    proc->pid = fork();
    if (proc->pid < 0)
        FAIL("fork: %s", strerror(errno));
    proc->in = proc->pid == 0 ? down[0] : up[0];
    proc->out = proc->pid == 0 ? up[1] : down[1];
    (void)close(proc->pid == 0 ? up[0] : up[1]);
    (void)close(proc->pid == 0 ? down[1] : down[0]);
    if (proc->pid == 0)
        run_child(proc, parent, run, arg);
    test_defer(end_child, proc);
    return proc;
}

pid_t proc_pid(const struct proc *proc)
{
    return proc->pid;
}

void proc_tell(struct proc *self, const char *format, ...)
{
    char line[1024];
    va_list args;
    int len;

    va_start(args, format);
    len = vsnprintf(line, sizeof(line) - 1, format, args);
    va_end(args);
    if (len < 0 || (size_t)len >= sizeof(line) - 1)
        FAIL("a line is too long");
    line[len] = '\n';
    send_line(self->out, line, (size_t)len + 1);
}

const char *proc_hear(struct proc *self)
{
    return read_line(self, -1);
}

void proc_become(struct proc *self, const char *const *argv)
{
    if (dup2(self->in, STDIN_FILENO) < 0 || dup2(self->out, STDOUT_FILENO) < 0)
        FAIL("dup2: %s", strerror(errno));
    (void)execvp(argv[0], (char *const *)(uintptr_t)argv);
    FAIL("%s: %s", argv[0], strerror(errno));
}

void proc_say(struct proc *proc, const char *line)
{
    send_line(proc->out, line, strlen(line));
    send_line(proc->out, "\n", 1);
}

const char *proc_next(struct proc *proc, int64_t wait_ms)
{
    return read_line(proc, wait_ms);
}

const char *proc_expect(struct proc *proc, const char *text)
{
    const char *line = read_line(proc, PROC_PATIENCE_MS);

    if (!line)
        FAIL("process %d said nothing instead of \"%s\"", (int)proc->pid, text);
    if (strncmp(line, text, strlen(text)) != 0)
        FAIL("process %d said \"%s\" instead of \"%s\"", (int)proc->pid, line,
             text);
    return line;
}

bool proc_is_silent(struct proc *proc, int64_t wait_ms)
{
    const char *line = read_line(proc, wait_ms);

    if (line)
        test_note("process %d said \"%s\"", (int)proc->pid, line);
    return !line;
}

static void await(struct proc *proc, int flags)
{
    while (waitpid(proc->pid, &proc->status, flags) < 0)
        if (errno != EINTR)
            FAIL("waitpid %d: %s", (int)proc->pid, strerror(errno));
    proc->gone = !WIFSTOPPED(proc->status);
}

void proc_stop(struct proc *proc)
{
    (void)kill(proc->pid, SIGSTOP);
    await(proc, WUNTRACED);
    if (proc->gone)
        FAIL("process %d ended before it was stopped", (int)proc->pid);
}

void proc_continue(struct proc *proc)
{
    (void)kill(proc->pid, SIGCONT);
}

void proc_kill(struct proc *proc)
{
    if (proc->gone)
        return;
    (void)kill(proc->pid, SIGKILL);
    await(proc, 0);
}

void proc_join(struct proc *proc)
{
    if (!proc->gone)
        await(proc, 0);
    if (!WIFEXITED(proc->status) || WEXITSTATUS(proc->status) != 0)
        FAIL("process %d ended badly: status %#x", (int)proc->pid,
             (unsigned)proc->status);
}
