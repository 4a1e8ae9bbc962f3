/* SPDX-License-Identifier: MIT */
/*
 * child.c - one child process: its group, its terminal, its end.
 *
 * The child leads a process group of its own, so that one kill() reaches all of
 * it. If we were the foreground of the terminal, its group becomes that: at
 * once when we are not part of a pipeline, otherwise when it first asks for the
 * terminal (it is stopped with SIGTTIN or SIGTTOU, and continued). So vim works
 * under us, and so does a pager behind us. When the child stops, we take the
 * terminal back and stop too; the shell's fg continues us, and we the child.
 *
 * It is started by vfork(): the parent waits a moment instead of copying its
 * page tables. Between vfork() and exec only system calls happen. The kernel
 * kills the child when the thread that started it ends, which is why only the
 * main thread may call child_start().
 *
 * Orphans of the child come to us (subreaper), so that we can see and end them.
 * Where we cannot act ourselves, because somebody killed or stopped us, the
 * guard does: see guard.c.
 */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "family.h"
#include "guard.h"
#include "secret.h"
#include "signals.h"
#include "text.h"

/* Stop signals that a terminal sends. */
static bool is_terminal_stop(int signo)
{
    return signo == SIGTSTP || signo == SIGTTIN || signo == SIGTTOU;
}

static void give_tty(struct child *child)
{
    if (tcsetpgrp(child->tty, child->pid) == 0)
        child->has_tty = true;
}

static void take_tty(struct child *child)
{
    if (child->has_tty)
        (void)tcsetpgrp(child->tty, getpgrp()); /* gone with its session */
    child->has_tty = false;
}

static bool we_are_foreground(const struct child *child)
{
    return child->tty >= 0 && tcgetpgrp(child->tty) == getpgrp();
}

/* In a pipeline others of our group may read the terminal. */
static bool in_pipeline(void)
{
    struct stat out;

    return !isatty(STDIN_FILENO) ||
           (fstat(STDOUT_FILENO, &out) == 0 && S_ISFIFO(out.st_mode));
}

/* Between vfork() and exec: memory is the parent's, so change none of it. */
__attribute__((noreturn)) static void become(char **argv, char **envp,
                                             pid_t parent, int tty,
                                             volatile int *failure)
{
    setpgid(0, 0);
    if (tty >= 0)
        tcsetpgrp(tty, getpid());
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(CLI_SIGNAL + SIGKILL);
    signals_restore();
    execvpe(argv[0], argv, envp);
    *failure = errno;
    _exit(CLI_NOT_FOUND);
}

static const char *advice(const char *command, int failure)
{
    if (failure == ENOEXEC)
        return "it is no program; a script begins with a line like #!/bin/sh";
    if (failure != ENOENT && failure != ENOTDIR)
        return "check that it is a file, and executable: chmod +x";
    if (strchr(command, ' '))
        return "for a line of shell: holdfast run NAME -c '...'";
    return "check the spelling, and $PATH";
}

int child_explain(const char *command, int failure)
{
    bool missing = failure == ENOENT || failure == ENOTDIR;

    fprintf(stderr, "holdfast: cannot run %s: %s\n", text_safe(command),
            missing ? "command not found" : strerror(failure));
    if (!cli.quiet)
        fprintf(stderr, "  %s\n", advice(command, failure));
    return missing ? CLI_NOT_FOUND : CLI_NOT_EXECUTABLE;
}

int child_start(struct child *child, char **argv, char **envp)
{
    pid_t self = getpid();
    volatile int failure = 0;
    int tty;

    *child = (struct child){.tty = open("/dev/tty", O_RDWR | O_CLOEXEC)};
    tty = we_are_foreground(child) && !in_pipeline() ? child->tty : -1;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    signals_begin_child();

    /* posix_spawn() knows no PR_SET_PDEATHSIG. All our signals are blocked, and
     * become() calls nothing but the kernel. */
    pid_t pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */
    if (pid == 0)
        become(argv, envp, self, tty, &failure); /* NOLINT(*-unix.Vfork) */
    child->pid = pid;
    if (pid < 0) {
        fprintf(stderr, "holdfast: cannot start a process: %s\n",
                strerror(errno));
        return CLI_INTERNAL;
    }
    child->has_tty = tty >= 0;
    if (failure == 0)
        return 0;

    waitpid(child->pid, &child->status, 0);
    child->ended = true;
    child_finish(child);
    return child_explain(argv[0], failure);
}

void child_signal(struct child *child, int signo, bool everybody)
{
    if (signo == SIGTSTP)
        child->asked_to_stop = true;
    kill(-child->pid, signo);
    /* What is stopped cannot end. */
    if (signo == SIGTERM || signo == SIGHUP || signo == SIGINT)
        kill(-child->pid, SIGCONT);
    if (everybody)
        family_kill(signo, child->guard_pid);
}

/* The child's group has stopped; do as the terminal would have done to us. */
static void stop_with(struct child *child, int signo)
{
    if (signo != SIGTSTP && we_are_foreground(child)) {
        /* It asked for the terminal, and we have it to give. */
        give_tty(child);
        kill(-child->pid, SIGCONT);
        return;
    }
    if (!child->has_tty && !child->asked_to_stop && signo == SIGTSTP)
        return;

    bool whole_group = child->has_tty;

    take_tty(child);
    child->asked_to_stop = false;
    if (child->on_stop)
        child->on_stop(child->ctx);
    signals_stop(whole_group);
    if (we_are_foreground(child) && (whole_group || signo != SIGTSTP))
        give_tty(child);
    /* The one who watches the hold says whether the child may go on. */
    child->stopped = true;
}

void child_continue(struct child *child)
{
    if (child->stopped)
        kill(-child->pid, SIGCONT);
    child->stopped = false;
}

static void note(struct child *child, pid_t pid, int status)
{
    if (pid == child->guard_pid) {
        child->guard_pid = 0;
        return;
    }
    if (pid != child->pid)
        return;
    if (WIFSTOPPED(status)) {
        if (is_terminal_stop(WSTOPSIG(status)))
            stop_with(child, WSTOPSIG(status));
        return;
    }
    child->ended = true;
    child->status = status;
}

void child_reap(struct child *child)
{
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG | WUNTRACED);

        if (pid <= 0)
            return;
        note(child, pid, status);
    }
}

bool child_group_lives(const struct child *child)
{
    return kill(-child->pid, 0) == 0;
}

bool child_family_lives(const struct child *child)
{
    return family_lives(child->guard_pid);
}

void child_guard(struct child *child)
{
    if (child->guard_pid == 0 && !child->guard)
        child->guard_pid = guard_start(child->pid, &child->guard);
}

void child_guard_until(struct child *child, int64_t deadline_ms)
{
    if (child->guard)
        guard_until(child->guard, deadline_ms);
}

bool child_guard_fired(const struct child *child)
{
    return child->guard && guard_fired(child->guard);
}

void child_finish(struct child *child)
{
    child->had_tty = child->has_tty;
    take_tty(child);
    if (child->tty >= 0)
        close(child->tty);
    child->tty = -1;
    guard_stop(child->guard, child->guard_pid);
    child->guard = NULL;
    child->guard_pid = 0;
}

static bool is_given(const char *variable, const char *const pairs[][2],
                     size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(pairs[i][0]);

        if (strncmp(variable, pairs[i][0], len) == 0 && variable[len] == '=')
            return true;
    }
    return false;
}

char **child_environment(const char *const pairs[][2], size_t n)
{
    size_t count = 0;
    size_t used = 0;

    while (environ[count])
        count++;

    char **envp = calloc(count + n + 1, sizeof(*envp));
    if (!envp)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        if (!pairs[i][1])
            continue;
        if (asprintf(&envp[used], "%s=%s", pairs[i][0], pairs[i][1]) < 0) {
            envp[used] = NULL;
            child_environment_free(envp);
            return NULL;
        }
        used++;
    }
    for (size_t i = 0; i < count; i++) {
        if (!is_given(environ[i], pairs, n) && !secret_variable(environ[i]))
            envp[used++] = environ[i]; /* borrowed */
    }
    return envp;
}

void child_environment_free(char **envp)
{
    if (!envp)
        return;
    for (size_t i = 0; envp[i]; i++) {
        bool borrowed = false;

        for (size_t j = 0; environ[j] && !borrowed; j++)
            borrowed = environ[j] == envp[i];
        if (!borrowed)
            free(envp[i]);
    }
    free(envp);
}
