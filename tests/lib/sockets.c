/* SPDX-License-Identifier: MIT */
/*
 * sockets.c - whose is a TCP socket of this machine?
 *
 * The kernel's tables tell the inode of every socket by its ports; the
 * descriptors of a process are links that name the inodes of its own.
 */
#include "sockets.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* 0: there is none in @table. */
static unsigned long find_inode(const char *table, int port, int peer_port)
{
    FILE *file = fopen(table, "re");
    unsigned long found = 0;
    char line[512];

    while (file && !found && fgets(line, sizeof(line), file)) {
        unsigned ports[2];
        unsigned long inode;

        if (sscanf(line,
                   " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%x %*x %*s %*s %*s "
                   "%*d %*d %lu",
                   &ports[0], &ports[1], &inode) == 3 &&
            (int)ports[0] == port && (int)ports[1] == peer_port)
            found = inode;
    }
    if (file)
        (void)fclose(file);
    return found;
}

static bool has_inode(pid_t pid, unsigned long inode)
{
    struct dirent *entry;
    char wanted[64];
    char path[64];
    bool found = false;
    DIR *dir;

    (void)snprintf(wanted, sizeof(wanted), "socket:[%lu]", inode);
    (void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    dir = opendir(path);
    while (dir && !found && (entry = readdir(dir)) != NULL) {
        char target[64] = "";

        (void)!readlinkat(dirfd(dir), entry->d_name, target,
                          sizeof(target) - 1);
        found = strcmp(target, wanted) == 0;
    }
    if (dir)
        (void)closedir(dir);
    return found;
}

bool process_has_socket(pid_t pid, int port, int peer_port)
{
    unsigned long inode = find_inode("/proc/net/tcp", port, peer_port);

    if (inode == 0) /* Java's sockets are of both families */
        inode = find_inode("/proc/net/tcp6", port, peer_port);
    return inode != 0 && has_inode(pid, inode);
}
