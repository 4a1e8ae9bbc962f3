/* SPDX-License-Identifier: MIT */
/*
 * sockets.c - TCP sockets of the loopback interface, and whose they are.
 *
 * The kernel's tables tell the inode of every socket by its ports; the
 * descriptors of a process are links that name the inodes of its own.
 */
#include "sockets.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test.h"

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

static struct sockaddr_in loopback(int port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

int socket_listen(int *ret_port)
{
    struct sockaddr_in here = loopback(/* port= */ 0);
    socklen_t len = sizeof(here);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&here, len) != 0 ||
        listen(fd, 64) != 0 ||
        getsockname(fd, (struct sockaddr *)&here, &len) != 0)
        FAIL("cannot listen: %s", strerror(errno));
    *ret_port = ntohs(here.sin_port);
    return fd;
}

int socket_dial(int port)
{
    struct sockaddr_in to = loopback(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

int socket_dial_now(int port)
{
    int fd = socket_dial(port);

    if (fd < 0)
        FAIL("cannot connect to port %d: %s", port, strerror(errno));
    return fd;
}

void socket_unlisten(int fd, pthread_t thread)
{
    (void)shutdown(fd, SHUT_RDWR);
    (void)pthread_join(thread, NULL);
    (void)close(fd);
}
