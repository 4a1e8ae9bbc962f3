/* SPDX-License-Identifier: MIT */
/*
 * command.c - the command under test: started, talked to, looked at.
 *
 * A command is a child process whose output we collect while we wait for
 * something in it, so that it never blocks on a full pipe. On a terminal there
 * is one stream for both directions, the pseudo-terminal's.
 *
 * Failure: whatever does not come within COMMAND_PATIENCE_MS fails the test,
 * with everything that was written until then.
 */
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "tempdir.h"
#include "test.h"

enum { VARIABLES = 32, STREAMS = 2 };

/* What came out of one stream. */
struct stream {
    int fd; /* -1: ended */
    char *text;
    size_t len;
    size_t from; /* what command_forget() left behind */
};

struct command {
    pid_t pid;
    int input; /* -1: closed */
    bool terminal;
    bool ended;
    int status;
    struct stream out;
    struct stream err;
};

static char *variables[VARIABLES];
static const char *directory;
static char url[256];

long now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void forget_test(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < VARIABLES; i++) {
        free(variables[i]);
        variables[i] = NULL;
    }
    directory = NULL;
}

const char *command_dir(void)
{
    if (directory)
        return directory;
    test_defer(forget_test, NULL);
    directory = tempdir_new();
    snprintf(url, sizeof(url), "local://%s/store", directory);
    ASSERT_EQ(mkdir(url + strlen("local://"), 0700), 0);
    command_variable("HOLDFAST_URL", url);
    command_variable("HOME", directory);
    /* A shell that ends late would write into a directory that goes. */
    command_variable("HISTFILE", "");
    command_variable("PATH", getenv("PATH"));
    command_variable("SHELL", "/bin/sh");
    command_variable("TERM", "xterm");
    command_variable("LOGNAME", "tester");
    command_variable("PS1", "$ ");
    return directory;
}

const char *command_url(void)
{
    command_dir();
    return url;
}

const char *command_faulty_url(const char *script)
{
    return test_text("fault+%s?fault=%s", command_url(), script);
}

void command_bereave(const char *name)
{
    struct command *run =
        FINISH(0, "run", name, "--", "sh", "-c", "echo HELD=$HOLDFAST_HELD");
    const char *held = strstr(command_out(run), "HELD=") + 5;

    command_variable("HOLDFAST_HELD",
                     test_text("%.*s", (int)strcspn(held, "\n"), held));
}

const char *command_path(const char *name)
{
    static char paths[4][512];
    static size_t next;
    char *path = paths[next++ % 4];

    snprintf(path, sizeof(paths[0]), "%s/%s", command_dir(), name);
    return path;
}

static size_t find_variable(const char *name)
{
    size_t len = strlen(name);
    size_t i = 0;

    for (; i < VARIABLES - 1 && variables[i]; i++)
        if (strncmp(variables[i], name, len) == 0 && variables[i][len] == '=')
            break;
    return i;
}

void command_variable(const char *name, const char *value)
{
    command_dir();

    size_t i = find_variable(name);
    free(variables[i]);
    variables[i] = NULL;
    if (value) {
        ASSERT_TRUE(asprintf(&variables[i], "%s=%s", name, value) > 0);
        return;
    }
    /* The last one takes its place. */
    for (size_t j = VARIABLES - 1; j > i; j--) {
        if (variables[j]) {
            variables[i] = variables[j];
            variables[j] = NULL;
            return;
        }
    }
}

static void end(void *arg)
{
    struct command *command = arg;

    if (!command->ended) {
        kill(command->pid, SIGKILL);
        waitpid(command->pid, NULL, 0);
    }
    if (command->input >= 0)
        close(command->input);
    if (command->out.fd >= 0 && !command->terminal)
        close(command->out.fd);
    if (command->err.fd >= 0)
        close(command->err.fd);
    free(command->out.text);
    free(command->err.text);
    free(command);
}

static struct command *command_new(void)
{
    struct command *command = calloc(1, sizeof(*command));

    ASSERT_NOT_NULL(command);
    command->out.fd = command->err.fd = command->input = -1;
    command->out.text = calloc(1, 1);
    command->err.text = calloc(1, 1);
    command->ended = true;
    test_defer(end, command);
    return command;
}

__attribute__((noreturn)) static void become(const char *const *arguments)
{
    signal(SIGPIPE, SIG_DFL);
    signal(SIGHUP, SIG_DFL); /* ignored if nohup runs the tests */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execvpe(arguments[0], (char **)(uintptr_t)arguments, variables);
    _exit(99);
}

struct command *program_start(const char *const *arguments)
{
    int pipes[3][2];
    struct command *command = command_new();

    command_dir();
    for (int i = 0; i < 3; i++)
        ASSERT_EQ(pipe2(pipes[i], O_CLOEXEC), 0);
    command->pid = fork();
    ASSERT_TRUE(command->pid >= 0);
    if (command->pid == 0) {
        dup2(pipes[0][0], 0);
        dup2(pipes[1][1], 1);
        dup2(pipes[2][1], 2);
        become(arguments);
    }
    close(pipes[0][0]);
    close(pipes[1][1]);
    close(pipes[2][1]);
    command->ended = false;
    command->input = pipes[0][1];
    command->out.fd = pipes[1][0];
    command->err.fd = pipes[2][0];
    return command;
}

/* The command's own path, then @arguments. */
static const char **with_command(const char *const *arguments)
{
    static const char *all[64];
    size_t n = 0;

    all[n++] = HOLDFAST_COMMAND;
    for (; *arguments && n < 63; arguments++)
        all[n++] = *arguments;
    all[n] = NULL;
    return all;
}

struct command *command_start(const char *const *arguments)
{
    return program_start(with_command(arguments));
}

struct command *terminal_start(const char *const *arguments)
{
    struct winsize size = {.ws_row = 24, .ws_col = 160};
    struct command *command = command_new();
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

    command_dir();
    ASSERT_TRUE(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    command->pid = fork();
    ASSERT_TRUE(command->pid >= 0);
    if (command->pid == 0) {
        setsid();

        int slave = open(ptsname(master), O_RDWR);
        ioctl(slave, TIOCSCTTY, 0);
        ioctl(slave, TIOCSWINSZ, &size);
        dup2(slave, 0);
        dup2(slave, 1);
        dup2(slave, 2);
        if (slave > 2)
            close(slave);
        become(arguments);
    }
    command->ended = false;
    command->terminal = true;
    command->input = command->out.fd = master;
    return command;
}

pid_t command_pid(const struct command *command)
{
    return command->pid;
}

const char *command_out(const struct command *command)
{
    return command->out.text + command->out.from;
}

const char *command_err(const struct command *command)
{
    return command->err.text + command->err.from;
}

static void read_stream(struct stream *stream)
{
    char bytes[4096];
    ssize_t n = read(stream->fd, bytes, sizeof(bytes));

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        /* A terminal answers EIO when its last user is gone. */
        stream->fd = -1;
        return;
    }
    stream->text = realloc(stream->text, stream->len + (size_t)n + 1);
    ASSERT_NOT_NULL(stream->text);
    /* A terminal shows no NUL either. */
    for (ssize_t i = 0; i < n; i++)
        if (bytes[i])
            stream->text[stream->len++] = bytes[i];
    stream->text[stream->len] = '\0';
}

/* Read what comes within @ms. False when there is nothing left to read. */
static bool read_some(struct command *command, long ms)
{
    struct stream *streams[STREAMS] = {&command->out, &command->err};
    struct pollfd polled[STREAMS];

    for (int i = 0; i < STREAMS; i++)
        polled[i] = (struct pollfd){.fd = streams[i]->fd, .events = POLLIN};
    if (streams[0]->fd < 0 && streams[1]->fd < 0)
        return false;
    if (poll(polled, STREAMS, (int)(ms > 0 ? ms : 0)) <= 0)
        return true;
    for (int i = 0; i < STREAMS; i++) {
        int fd = streams[i]->fd;

        if (!polled[i].revents)
            continue;
        read_stream(streams[i]);
        if (streams[i]->fd < 0 && !command->terminal)
            close(fd);
    }
    return true;
}

void command_read(struct command *command, int ms)
{
    (void)read_some(command, ms); /* the caller looks at what there is */
}

static void expect(struct command *command, struct stream *stream,
                   const char *text)
{
    long until = now_ms() + COMMAND_PATIENCE_MS;

    while (!strstr(stream->text + stream->from, text)) {
        if (now_ms() > until || !read_some(command, until - now_ms()))
            FAIL("no \"%s\" came; stdout: %s\nstderr: %s", text,
                 command->out.text, command->err.text);
    }
}

void command_expect(struct command *command, const char *text)
{
    expect(command, &command->out, text);
}

void command_expect_err(struct command *command, const char *text)
{
    expect(command, &command->err, text);
}

void command_forget(struct command *command)
{
    command->out.from = command->out.len;
    command->err.from = command->err.len;
}

long command_number(struct command *command, const char *label)
{
    long until = now_ms() + COMMAND_PATIENCE_MS;

    for (;;) {
        const char *at = strstr(command_out(command), label);

        if (at && strchr(at, '\n'))
            return strtol(at + strlen(label), NULL, 10);
        if (now_ms() > until || !read_some(command, until - now_ms()))
            FAIL("no \"%s\" came; stdout: %s\nstderr: %s", label,
                 command->out.text, command->err.text);
    }
}

struct command *command_holder(const char *name, const char *note)
{
    struct command *run = COMMAND("run", name, "--note", note, "--", "sh", "-c",
                                  "echo token=$HOLDFAST_TOKEN; cat >/dev/null");

    (void)command_number(run, "token="); /* it has come */
    return run;
}

const char *command_token(struct command *holder)
{
    static char token[32];

    snprintf(token, sizeof(token), "%ld", command_number(holder, "token="));
    return token;
}

void command_break(struct command *holder, const char *name)
{
    char confirm[80];

    snprintf(confirm, sizeof(confirm), "--confirm=%s", name);
    FINISH(0, "break", name, "--token", command_token(holder), confirm);
}

void command_type(struct command *command, const char *text)
{
    ASSERT_EQ(write(command->input, text, strlen(text)), strlen(text));
}

void command_close_input(struct command *command)
{
    if (command->input >= 0)
        close(command->input);
    command->input = -1;
}

void command_signal(struct command *command, int signo)
{
    ASSERT_EQ(kill(command->pid, signo), 0);
}

/* Wait for the end of the process itself; its output may stay open longer,
 * in the hands of its children. */
static bool wait_for_end(struct command *command, long ms)
{
    int fd = (int)syscall(SYS_pidfd_open, command->pid, 0);
    struct pollfd polled[1 + STREAMS];
    long until = now_ms() + ms;
    bool ended = false;

    ASSERT_TRUE(fd >= 0);
    while (!ended && now_ms() < until) {
        polled[0] = (struct pollfd){.fd = fd, .events = POLLIN};
        polled[1] = (struct pollfd){.fd = command->out.fd, .events = POLLIN};
        polled[2] = (struct pollfd){.fd = command->err.fd, .events = POLLIN};
        poll(polled, 3, (int)(until - now_ms()));
        ended = polled[0].revents != 0;
        read_some(command, 0);
    }
    close(fd);
    return ended;
}

int command_wait(struct command *command)
{
    struct stream *out = &command->out;
    size_t before;

    if (!wait_for_end(command, COMMAND_PATIENCE_MS))
        FAIL("it does not end; stdout: %s\nstderr: %s", command->out.text,
             command->err.text);
    ASSERT_EQ(waitpid(command->pid, &command->status, 0), command->pid);
    command->ended = true;
    do {
        before = out->len + command->err.len;
    } while (read_some(command, 0) && before < out->len + command->err.len);
    return WIFSIGNALED(command->status) ? 1000 + WTERMSIG(command->status)
                                        : WEXITSTATUS(command->status);
}

struct command *command_finish(const char *const *arguments, int wanted)
{
    struct command *command = command_start(arguments);
    int code;

    command_close_input(command);
    code = command_wait(command);
    if (code != wanted)
        FAIL("exit %d instead of %d; stdout: %s\nstderr: %s", code, wanted,
             command->out.text, command->err.text);
    return command;
}

/* What @path contains, up to @size; false: it cannot be read. */
static bool read_file(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "re");

    if (!file)
        return false;
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
    return true;
}

bool process_lives(pid_t pid)
{
    char path[64];
    char text[256];
    const char *state;

    snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
    if (!read_file(path, text, sizeof(text)))
        return false;
    state = strrchr(text, ')');
    return state && strlen(state) > 2 && !strchr("ZX", state[2]);
}

bool process_exists(pid_t pid)
{
    return kill(pid, 0) == 0;
}

bool process_ends(pid_t pid, int ms)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd polled = {.fd = fd, .events = POLLIN};

    if (fd < 0)
        return errno == ESRCH;
    int ready = poll(&polled, 1, ms);
    close(fd);
    return ready > 0;
}

int lines_in(const char *text)
{
    int n = 0;

    for (; *text; text++)
        n += *text == '\n';
    return n;
}

const char *file_text(const char *path)
{
    static char text[65536];

    if (!read_file(path, text, sizeof(text)))
        FAIL("cannot read %s: %s", path, strerror(errno));
    return text;
}

void file_write(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");

    if (!file || fputs(text, file) < 0 || fclose(file) != 0)
        FAIL("cannot write %s: %s", path, strerror(errno));
}
