/* SPDX-License-Identifier: MIT */
/*
 * quiet.c - what a process writes to its terminal.
 *
 * With stderr closed a library finds the terminal by /dev/tty, as OpenSSL does
 * to ask for a password; with stderr on the terminal it finds it by itself.
 */
#include "quiet.h"

#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "holdfast.h"
#include "test.h"

enum { HIGH = 100 };

static char shown[4096];
static size_t shown_len;

static void watch(quiet_fn *work, void *arg, bool closed)
{
    int terminal;
    int status;
    pid_t child = forkpty(&terminal, NULL, NULL, NULL);

    ASSERT_TRUE(child >= 0);
    if (child == 0) {
        if (closed) {
            /* The terminal lives as long as somebody has it open. */
            (void)fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, HIGH);
            close(STDIN_FILENO);
            close(STDOUT_FILENO);
            close(STDERR_FILENO);
        }
        work(arg);
        _exit(0);
    }
    for (;;) {
        ssize_t n =
            read(terminal, shown + shown_len, sizeof(shown) - 1 - shown_len);

        if (n <= 0)
            break;
        shown_len += (size_t)n;
        (void)kill(child, SIGKILL); /* it may wait for an answer */
    }
    shown[shown_len] = '\0';
    close(terminal);
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(status == 0 || shown_len > 0);
}

const char *quiet_watch(quiet_fn *work, void *arg)
{
    shown_len = 0;
    watch(work, arg, /* closed= */ true);
    watch(work, arg, /* closed= */ false);
    return shown;
}

static void ignore_line(int level, const char *text, void *ctx)
{
    (void)level;
    (void)text;
    (void)ctx;
}

static int ignore_finding(const hf_finding *finding, void *ctx)
{
    (void)finding;
    (void)ctx;
    return 0;
}

void quiet_open(void *url)
{
    hf_client *client = NULL;

    hf_set_log(ignore_line, HF_LOG_DEBUG, NULL);
    if (hf_open(url, NULL, &client, NULL) != 0)
        return;
    (void)hf_doctor(client, ignore_finding, NULL, NULL);
    hf_close(client);
}

void quiet_query(char *to, const char *query, const char *dir)
{
    for (; *query; query++) {
        if (*query == '@')
            to = stpcpy(to, dir);
        else
            *to++ = *query;
    }
    *to = '\0';
}
