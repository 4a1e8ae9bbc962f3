/* SPDX-License-Identifier: MIT */
/*
 * family.c - all processes that descend from this one.
 *
 * A grandchild can leave the process group (setsid), but not the family: as a
 * subreaper we inherit every orphan. The kernel lists the children of each
 * thread in /proc; we walk that tree.
 *
 * Failure: a process that forks while we walk may be missed, so a caller that
 * has to be sure walks again until nothing is left. Without the lists (no
 * CONFIG_PROC_CHILDREN) the process group has to do.
 */
#include "family.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEPTH_MAX = 64 };

typedef void visit_fn(pid_t pid, void *ctx);

static void walk(pid_t pid, pid_t except, int depth, visit_fn *visit,
                 void *ctx);

static void walk_list(const char *path, pid_t except, int depth,
                      visit_fn *visit, void *ctx)
{
    FILE *list = fopen(path, "re");
    long pid;

    if (!list)
        return;
    while (fscanf(list, "%ld", &pid) == 1) {
        if (pid == except)
            continue;
        walk((pid_t)pid, except, depth + 1, visit, ctx);
        visit((pid_t)pid, ctx);
    }
    fclose(list);
}

static void walk(pid_t pid, pid_t except, int depth, visit_fn *visit, void *ctx)
{
    char path[320];

    if (depth > DEPTH_MAX)
        return;
    snprintf(path, sizeof(path), "/proc/%ld/task", (long)pid);

    DIR *tasks = opendir(path);
    if (!tasks)
        return;
    for (struct dirent *task = readdir(tasks); task; task = readdir(tasks)) {
        if (task->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "/proc/%ld/task/%s/children", (long)pid,
                 task->d_name);
        walk_list(path, except, depth, visit, ctx);
    }
    closedir(tasks);
}

static void send_signal(pid_t pid, void *ctx)
{
    kill(pid, *(int *)ctx);
}

void family_kill(int signo, pid_t except)
{
    walk(getpid(), except, 0, send_signal, &signo);
}

static bool is_zombie(pid_t pid)
{
    char path[64];
    char stat[512] = "";

    snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);

    FILE *file = fopen(path, "re");
    if (!file)
        return true;
    size_t len = fread(stat, 1, sizeof(stat) - 1, file);
    fclose(file);
    stat[len] = '\0';

    /* The command's name may hold anything, so look behind its last ")". */
    const char *state = strrchr(stat, ')');
    return !state || strlen(state) < 3 || state[2] == 'Z' || state[2] == 'X';
}

static void count_living(pid_t pid, void *ctx)
{
    if (!is_zombie(pid))
        ++*(int *)ctx;
}

bool family_lives(pid_t except)
{
    int living = 0;

    walk(getpid(), except, 0, count_living, &living);
    return living > 0;
}
