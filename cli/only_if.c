/* SPDX-License-Identifier: MIT */
/*
 * only_if.c - a health check before a lock is taken.
 *
 * The check is a line for /bin/sh. It does not get our standard input, and what
 * it prints goes to stderr: the output belongs to the command that runs under
 * the lock. It leads a process group, which is killed when the check takes
 * longer than LIMIT_MS, because a node that cannot say that it is well is not.
 *
 * Failure: a check that cannot be started has failed, and that is said.
 */
#include "only_if.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "cli.h"
#include "lock.h"
#include "shell.h"
#include "signals.h"
#include "talk.h"

enum { LIMIT_MS = 10000 };

/* Signals as they were before we caught them, and a group of its own. */
static void prepare(posix_spawn_file_actions_t *files, posix_spawnattr_t *how)
{
    sigset_t none;
    sigset_t standard;

    sigemptyset(&none);
    sigemptyset(&standard);
    sigaddset(&standard, SIGTERM);
    sigaddset(&standard, SIGHUP);
    sigaddset(&standard, SIGQUIT);
    posix_spawn_file_actions_init(files);
    posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", O_RDONLY,
                                     0);
    posix_spawn_file_actions_adddup2(files, STDERR_FILENO, STDOUT_FILENO);
    posix_spawnattr_init(how);
    posix_spawnattr_setsigmask(how, &none);
    posix_spawnattr_setsigdefault(how, &standard);
    posix_spawnattr_setpgroup(how, 0);
    posix_spawnattr_setflags(how, POSIX_SPAWN_SETPGROUP |
                                      POSIX_SPAWN_SETSIGMASK |
                                      POSIX_SPAWN_SETSIGDEF);
}

/* 0 or errno. */
static int start(const char *line, pid_t *ret_pid)
{
    const char *const pairs[][2] = {{"HOLDFAST_NAME", lock.name}};
    char *argv[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c",
                    (char *)(uintptr_t)line, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    char **envp = child_environment(pairs, 1);
    int rc = ENOMEM;

    prepare(&files, &how);
    if (envp)
        rc = posix_spawn(ret_pid, "/bin/sh", &files, &how, argv, envp);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&how);
    child_environment_free(envp);
    return rc;
}

/* True if @pid ends in time; @fd is readable then. */
static bool ends(int fd, hf_client *client)
{
    int64_t until = lock_now_ms() + LIMIT_MS;
    int event_fd = client ? hf_event_fd(client) : -1;

    for (;;) {
        int64_t left = until - lock_now_ms();
        int ready = left > 0 ? signals_wait_two(event_fd, fd, left) : 0;

        if (ready & 1)
            (void)hf_dispatch(client); /* the caller looks at the hold */
        if (ready & 2)
            return true;
        if (left <= 0)
            talk_say("--only-if takes longer than %d s", LIMIT_MS / 1000);
        if (left <= 0 || signals_first() != 0)
            return false;
    }
}

bool only_if(const char *line, hf_client *client)
{
    pid_t pid = 0;
    int status = -1;
    int error = start(line, &pid);
    int fd = error == 0 ? shell_watch(pid) : -1;

    if (error != 0) {
        talk_say("cannot start --only-if: %s", strerror(error));
        return false;
    }
    if (fd < 0 || !ends(fd, client))
        kill(-pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (fd >= 0)
        close(fd);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
