/* SPDX-License-Identifier: MIT */
/*
 * shell.c - the shell that evaluates what holdfast acquire prints.
 *
 * Our parent need not be that shell: $(…) may run us in a subshell that ends
 * with it. The shell is the ancestor that has the other end of our standard
 * output, a pipe, open for reading. The kernel shows the descriptors of a
 * process of the same user in /proc: what they are by stat(), and whether they
 * read or write by the permissions of the link.
 *
 * In $(holdfast acquire x | …) a subshell has that end open, too, until it has
 * started the next process of the pipeline. It does not sleep before; the shell
 * that evaluates sleeps until we print. The last process of the pipeline may be
 * an ancestor as well (in zsh), and reads the pipe as its standard input; a
 * shell that evaluates has the pipe elsewhere.
 *
 * A process number says nothing once its process has ended, so it is watched by
 * a descriptor (pidfd). While we print, the shell waits for us: it lives.
 */
#include "shell.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { GENERATIONS_MAX = 64, PAUSES_MAX = 5000 };

static bool reads_pipe(pid_t pid, const struct stat *pipe)
{
    char path[64];
    bool found = false;
    struct stat link;
    struct stat file;

    snprintf(path, sizeof(path), "/proc/%ld/fd", (long)pid);
    DIR *dir = opendir(path);
    if (!dir)
        return false;
    for (struct dirent *entry = readdir(dir); entry && !found;
         entry = readdir(dir))
        found = strcmp(entry->d_name, "0") != 0 &&
                fstatat(dirfd(dir), entry->d_name, &link,
                        AT_SYMLINK_NOFOLLOW) == 0 &&
                S_ISLNK(link.st_mode) && link.st_mode & S_IRUSR &&
                fstatat(dirfd(dir), entry->d_name, &file, 0) == 0 &&
                file.st_dev == pipe->st_dev && file.st_ino == pipe->st_ino;
    closedir(dir);
    return found;
}

/* The state of @pid, as in ps(1), and its parent; 0: it is gone. */
static char state_of(pid_t pid, pid_t *ret_parent)
{
    char path[64];
    char text[1024];
    char state = 0;
    long parent = 0;

    *ret_parent = 0;
    snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;

    size_t len = fread(text, 1, sizeof(text) - 1, file);
    text[len] = '\0';
    fclose(file);

    /* "pid (command) state parent": a command may contain anything. */
    const char *end = strrchr(text, ')');
    if (!end || sscanf(end, ") %c %ld", &state, &parent) != 2)
        return 0;
    *ret_parent = (pid_t)parent;
    return state;
}

/* The nearest ancestor that has the pipe open for reading; *@ret_asleep: it
 * slept before we looked. */
static pid_t find_reader(const struct stat *pipe, bool *ret_asleep)
{
    pid_t pid = getppid();
    pid_t parent;

    for (int i = 0; i < GENERATIONS_MAX && pid > 0; i++) {
        *ret_asleep = state_of(pid, &parent) == 'S';
        if (reads_pipe(pid, pipe))
            return pid;
        pid = parent;
    }
    return 0;
}

pid_t shell_that_reads(void)
{
    static const struct timespec pause = {.tv_nsec = 1000000};
    struct stat pipe;
    pid_t pid = 0;

    if (fstat(STDOUT_FILENO, &pipe) != 0 || !S_ISFIFO(pipe.st_mode))
        return 0;
    for (int i = 0; i < PAUSES_MAX; i++) {
        bool asleep;

        pid = find_reader(&pipe, &asleep);
        if (pid == 0 || asleep)
            break;
        nanosleep(&pause, NULL);
    }
    return pid;
}

int shell_watch(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

int shell_signal(int fd, int signo)
{
    return (int)syscall(SYS_pidfd_send_signal, fd, signo, NULL, 0);
}

/* In single quotes nothing has a meaning but a quote, and in fish a backslash. */
static void quote(FILE *to, enum shell_kind kind, const char *text)
{
    fputc('\'', to);
    for (; *text; text++) {
        if (kind == SHELL_FISH && (*text == '\'' || *text == '\\'))
            fprintf(to, "\\%c", *text);
        else if (*text == '\'')
            fputs("'\\''", to);
        else
            fputc(*text, to);
    }
    fputc('\'', to);
}

void shell_export(FILE *to, enum shell_kind kind, const char *name,
                  const char *value)
{
    if (!value) {
        fprintf(to, "%s %s; ", kind == SHELL_FISH ? "set -e" : "unset", name);
        return;
    }
    fprintf(to, kind == SHELL_FISH ? "set -gx %s " : "export %s=", name);
    quote(to, kind, value);
    fputs("; ", to);
}

void shell_fail(FILE *to, enum shell_kind kind, int code)
{
    fprintf(to, kind == SHELL_FISH ? "sh -c 'exit %d'\n" : "(exit %d)\n", code);
}
