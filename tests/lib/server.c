/* SPDX-License-Identifier: MIT */
/*
 * server.c - a real server for a test, on a free port.
 *
 * That a port answers does not prove that our server does: another may have
 * taken the port first. So the listening socket has to be among the descriptors
 * of the process that we started.
 */
#include "server.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "event.h"
#include "sockets.h"
#include "tempdir.h"
#include "test.h"

enum { ARGS_MAX = 64, START_MS = 30000, STOP_MS = 5000, PORT_TRIES = 5 };

struct server {
    pid_t pid; /* 0: not running */
    int port;
    const char *dir;
    const char *const *argv;
};

/* ---- ports -------------------------------------------------------------- */

int server_free_port(void)
{
    int port;

    (void)close(socket_listen(&port));
    return port;
}

static bool listens(const struct server *server)
{
    return process_has_socket(server->pid, server->port, /* peer_port= */ 0);
}

bool server_is_installed(const char *name)
{
    char dirs[4096];
    char *rest = dirs;
    const char *path = getenv("PATH");

    (void)snprintf(dirs, sizeof(dirs), "%s", path ? path : "/usr/bin:/bin");
    for (char *dir = strsep(&rest, ":"); dir; dir = strsep(&rest, ":")) {
        char file[4200];

        (void)snprintf(file, sizeof(file), "%s/%s", dir, name);
        if (access(file, X_OK) == 0)
            return true;
    }
    return false;
}

/* ---- starting ----------------------------------------------------------- */

/* @text with "{port}" and "{dir}" replaced; a leak in a process that execs. */
static char *fill_in(const struct server *server, const char *text)
{
    char *filled = NULL;
    size_t len;
    FILE *out = open_memstream(&filled, &len);

    if (!out)
        return NULL;
    while (*text) {
        if (strncmp(text, "{port}", 6) == 0) {
            (void)fprintf(out, "%d", server->port);
            text += 6;
        } else if (strncmp(text, "{dir}", 5) == 0) {
            (void)fputs(server->dir, out);
            text += 5;
        } else {
            (void)fputc(*text++, out);
        }
    }
    (void)fclose(out);
    return filled;
}

__attribute__((noreturn)) static void become(const struct server *server,
                                             pid_t parent)
{
    char log[512];
    char *argv[ARGS_MAX + 1];
    int n = 0;
    int fd;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(126);
    (void)snprintf(log, sizeof(log), "%s/server.log", server->dir);
    fd = open(log, O_CREAT | O_WRONLY | O_APPEND, 0600);
    (void)dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
    (void)dup2(fd, STDOUT_FILENO);
    (void)dup2(fd, STDERR_FILENO);
    for (; server->argv[n] && n < ARGS_MAX; n++)
        argv[n] = fill_in(server, server->argv[n]);
    argv[n] = NULL;
    (void)execvp(argv[0], argv);
    dprintf(STDERR_FILENO, "%s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

static void show_log(const struct server *server)
{
    char path[512];
    char line[512];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/server.log", server->dir);
    file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file))
        test_note("%.*s", (int)strcspn(line, "\n"), line);
    if (file)
        (void)fclose(file);
}

static bool is_alive(struct server *server)
{
    if (server->pid != 0 && waitpid(server->pid, NULL, WNOHANG) == server->pid)
        server->pid = 0;
    return server->pid != 0;
}

/* True if it listens; false if it ended or takes too long. */
static bool launch(struct server *server)
{
    int64_t until = clock_ms() + START_MS;
    pid_t parent = getpid();

    (void)fflush(stdout);
    server->pid = fork();
    if (server->pid < 0)
        FAIL("fork: %s", strerror(errno));
    if (server->pid == 0)
        become(server, parent);
    while (is_alive(server) && clock_ms() < until) {
        if (listens(server))
            return true;
        event_breathe();
    }
    server_kill(server);
    return false;
}

static void end_server(void *arg)
{
    struct server *server = arg;

    server_kill(server);
    free(server);
}

static void launch_somewhere(struct server *server)
{
    for (int i = 0; i < PORT_TRIES; i++) {
        server->port = server_free_port();
        if (launch(server))
            return;
    }
    show_log(server);
    FAIL("%s does not start", server->argv[0]);
}

static struct server *new_server(const char *const *argv, const char *dir)
{
    struct server *server = calloc(1, sizeof(*server));

    if (!server)
        FAIL("out of memory");
    (void)chmod(dir, 0755); /* some servers change their user */
    server->dir = dir;
    server->argv = argv;
    return server;
}

struct server *server_start(const char *const *argv)
{
    struct server *server = new_server(argv, tempdir_new());

    test_defer(end_server, server);
    launch_somewhere(server);
    return server;
}

struct server *server_share(const char *const *argv, const char *dir)
{
    struct server *server = new_server(argv, dir);

    test_defer_late(end_server, server);
    launch_somewhere(server);
    return server;
}

int server_port(const struct server *server)
{
    return server->port;
}

const char *server_dir(const struct server *server)
{
    return server->dir;
}

pid_t server_pid(const struct server *server)
{
    return server->pid;
}

/* ---- ending ------------------------------------------------------------- */

void server_kill(struct server *server)
{
    if (server->pid == 0)
        return;
    (void)kill(server->pid, SIGKILL);
    while (waitpid(server->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    server->pid = 0;
}

void server_stop(struct server *server)
{
    int64_t until = clock_ms() + STOP_MS;

    if (server->pid != 0)
        (void)kill(server->pid, SIGTERM);
    while (is_alive(server) && clock_ms() < until)
        event_breathe();
    server_kill(server);
}

void server_restart(struct server *server)
{
    if (server->pid != 0)
        FAIL("the server runs already");
    if (!launch(server)) {
        show_log(server);
        FAIL("%s does not start again", server->argv[0]);
    }
}

void server_pause(struct server *server)
{
    (void)kill(server->pid, SIGSTOP);
    while (waitpid(server->pid, NULL, WUNTRACED) < 0 && errno == EINTR)
        ;
}

void server_resume(struct server *server)
{
    (void)kill(server->pid, SIGCONT);
}
