/* SPDX-License-Identifier: MIT */
/*
 * acquire.c - holdfast acquire: a lock for the rest of a shell script.
 *
 *     eval "$(holdfast acquire NAME)" || exit
 *     …
 *     holdfast release
 *
 * A second process, the keeper, opens the engine, waits for the lock and holds
 * it: until holdfast release asks for it, or the shell ends in whatever way. We
 * print what the shell shall evaluate, the variables that a command of holdfast
 * run would get, and leave. The keeper holds the lock only once we have told it
 * that the shell has the text.
 *
 * The keeper has a session of its own, so that Ctrl-C in the shell does not
 * reach it, and ignores what asks processes to end: a service manager stops all
 * of a service at once, and the script may still clean up under its lock. It
 * keeps nothing of the shell open but stderr, for the news that the lock is
 * lost, and not even that if it leads into the same $(…).
 *
 * Failure: eval of nothing succeeds, so every failure prints a line whose exit
 * code is ours.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ancestor.h"
#include "cli.h"
#include "keeper.h"
#include "lock.h"
#include "shell.h"
#include "signals.h"
#include "stores.h"
#include "talk.h"
#include "task.h"
#include "text.h"
#include "textfile.h"

static const char help[] =
    "Usage: eval \"$(holdfast acquire NAME [options])\" || exit\n"
    "       ...\n"
    "       holdfast release [NAME]\n"
    "Hold NAME until holdfast release, or until the shell ends in any way. "
    "The\n"
    "shell gets HOLDFAST_NAME, HOLDFAST_TOKEN, HOLDFAST_HELD and so on.\n\n"
    "  -n, --nonblock       do not wait       -w, --wait DUR    wait so long\n"
    "  -s, --shared         a reader's lock   --slots N         one of N\n"
    "  -E, --conflict-exit-code N             instead of 75\n"
    "      --signal SIGNAL  send it to the shell when the lock is lost\n"
    "      --pid PID        hold it for this process, not for the shell that "
    "reads\n"
    "      --shell sh|fish  the language of the output; fish:\n"
    "                       holdfast acquire NAME --shell fish | source\n"
    "      --ttl DUR        the lease; renewed while we hold it (30s)\n"
    "      --max-hold DUR   no longer than this; then it is lost\n"
    "      --note TEXT      shown to those who ask who holds it\n"
    "      --require CAP,.. refuse an engine without\n"
    "  -u URL, -c FILE, --profile NAME, -o KEY=VALUE, -q, -v\n\n"
    "Exit, of eval too: 0 held; 75 busy; 69 engine unreachable; 77 refused;\n"
    "  64 usage; 78 configuration; 130/143 interrupted while waiting\n"
    "Lost: stderr says so; holdfast check exits with 1, release with 79.\n";

static struct {
    int64_t pid;
    int signo;
    enum shell_kind kind;
} options;

static int set_signal(const char *value)
{
    static const struct {
        const char *name;
        int signo;
    } signals[] = {{"HUP", SIGHUP},   {"INT", SIGINT},   {"QUIT", SIGQUIT},
                   {"KILL", SIGKILL}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2},
                   {"ALRM", SIGALRM}, {"TERM", SIGTERM}};
    const char *name = strncmp(value, "SIG", 3) == 0 ? value + 3 : value;

    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        if (strcmp(name, signals[i].name) == 0) {
            options.signo = signals[i].signo;
            return 0;
        }
    return cli_usage("--signal takes TERM, HUP, INT, QUIT, KILL, USR1, USR2 "
                     "or ALRM, not \"%s\"",
                     value);
}

static int set_shell(const char *value)
{
    if (strcmp(value, "fish") == 0)
        options.kind = SHELL_FISH;
    else if (strcmp(value, "sh") == 0)
        options.kind = SHELL_SH;
    else
        return cli_usage("--shell takes sh, also for bash, dash and zsh, or "
                         "fish, not \"%s\"",
                         value);
    return 0;
}

static const struct option acquire_options[] = {
    {0, "pid", OPTION_NUMBER, &options.pid, NULL, "PID"},
    {0, "signal", OPTION_CALL, NULL, set_signal, "SIGNAL"},
    {0, "shell", OPTION_CALL, NULL, set_shell, "sh|fish"},
    {0, NULL, OPTION_FLAG, NULL, NULL, NULL},
};
static const struct option *const tables[] = {acquire_options, lock_options,
                                              NULL};

/* ---- the keeper ----------------------------------------------------------- */

enum { INHERITED_MAX = 256, TEXT_MAX = 256 * 1024 };

struct keeper {
    hf_client *client;
    hf_hold *hold;
    pid_t shell_pid;
    int shell;         /* readable when the shell has ended */
    int parent;        /* the socket to who prints */
    int questions;     /* where holdfast release asks */
    bool names_engine; /* the command line says which engine */
    bool one_stream;   /* stderr is where stdout is */
    bool lost;
    int inherited[INHERITED_MAX]; /* descriptors that are the shell's */
    size_t n_inherited;
    char key[SECRET_KEY + 1];
};

/* Note what the shell has open: files that it locks with flock(1), say. */
static void note_inherited(struct keeper *keeper)
{
    DIR *dir = opendir("/proc/self/fd");

    if (!dir)
        return;
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        int fd = atoi(entry->d_name);

        if (fd > STDERR_FILENO && fd != dirfd(dir) &&
            keeper->n_inherited < INHERITED_MAX)
            keeper->inherited[keeper->n_inherited++] = fd;
    }
    closedir(dir);
}

static void point_to_nothing(int fd)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null < 0 || dup2(null, fd) < 0)
        close(fd);
    if (null >= 0)
        close(null);
}

/* The lock is ours: nothing but the shell's end may end us now. */
static void settle(struct keeper *keeper)
{
    static const int ignored[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,
                                  SIGUSR1, SIGUSR2, SIGTSTP, SIGPIPE};

    prctl(PR_SET_PDEATHSIG, 0);
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
        signal(ignored[i], SIG_IGN);
    setsid();
    for (size_t i = 0; i < keeper->n_inherited; i++)
        close(keeper->inherited[i]);
    if (keeper->one_stream)
        point_to_nothing(STDERR_FILENO);
}

/* What the shell shall evaluate, to the process that prints it; -1: that one
 * has ended. */
static int give_text(const struct keeper *keeper, const char *text, size_t len)
{
    char answer;

    while (len > 0) {
        ssize_t n = send(keeper->parent, text, len, MSG_NOSIGNAL);

        if (n <= 0)
            return -1;
        text += n;
        len -= (size_t)n;
    }
    shutdown(keeper->parent, SHUT_WR);
    return recv(keeper->parent, &answer, 1, 0) == 1 ? 0 : -1;
}

static int tell_shell(struct keeper *keeper)
{
    struct task_facts facts;
    char *text = NULL;
    size_t len = 0;
    FILE *memory = open_memstream(&text, &len);
    int rc = task_facts(keeper->client, keeper->hold, keeper->key, &facts);

    if (rc == 0 && keeper->names_engine)
        rc = task_engine(&facts);
    for (size_t i = 0; rc == 0 && memory && i < facts.n; i++)
        shell_export(memory, options.kind, facts.pairs[i][0],
                     facts.pairs[i][1]);
    if (memory && options.kind == SHELL_FISH)
        fputs("true", memory);
    free(facts.held);
    if (!memory || fclose(memory) != 0 ||
        (rc == 0 && give_text(keeper, text, len) != 0))
        rc = CLI_INTERNAL;
    free(text);
    return rc;
}

static void look_at_hold(struct keeper *keeper)
{
    if (keeper->lost || hf_check(keeper->hold) != HF_LOST)
        return;
    keeper->lost = true;
    talk_say("lost the lock \"%s\"%s", text_safe(lock.name),
             options.signo ? "; telling the shell" : "; the script runs on");
    if (options.signo)
        (void)shell_signal(keeper->shell, options.signo); /* or it ended */
}

static void on_event(hf_hold *hold, int state, void *ctx)
{
    (void)ctx;
    talk_jeopardy(hold, state);
}

/* Release, and tell who asked, if @fd is not -1. */
static int let_go(struct keeper *keeper, int fd)
{
    hf_error err = {0};
    int rc = hf_release(keeper->hold, &err);

    keeper->hold = NULL;
    close(keeper->questions);
    task_forget_engine();
    if (fd >= 0)
        keeper_answer(fd, cli_exit_code(rc), rc == 0 ? "released" : err.text);
    return cli_exit_code(rc);
}

/* True if the question was to release the lock. */
static bool answer_question(struct keeper *keeper)
{
    int fd;
    int question = keeper_question(keeper->questions, &fd);

    if (question == KEEPER_RELEASE) {
        (void)let_go(keeper, fd); /* who asked is told */
        return true;
    }
    if (question == KEEPER_CHECK)
        keeper_answer(fd, keeper->lost ? CLI_LOST : CLI_DONE,
                      keeper->lost ? "lost" : "held");
    return false;
}

/* How long there is nothing to do: until the lease would end, and for ever
 * where there is none or the lock is lost. */
static int64_t rest_ms(const struct keeper *keeper)
{
    int64_t left_ms = hf_remaining_ms(keeper->hold);

    if (keeper->lost || left_ms == HF_FOREVER)
        return -1;
    return left_ms + 1; /* less than one counts as 0 */
}

/* Until the shell ends, or asks for the release. */
static void keep(struct keeper *keeper)
{
    struct pollfd polled[] = {
        {.fd = hf_event_fd(keeper->client), .events = POLLIN},
        {.fd = keeper->shell, .events = POLLIN},
        {.fd = keeper->questions, .events = POLLIN},
    };

    for (;;) {
        bool ready = signals_poll(polled, 3, rest_ms(keeper));

        if (ready && polled[0].revents)
            (void)hf_dispatch(keeper->client); /* tells through on_event() */
        look_at_hold(keeper);
        if (ready && polled[1].revents) {
            point_to_nothing(STDERR_FILENO); /* nobody is left to read it */
            (void)let_go(keeper, -1);
            return;
        }
        if (ready && polled[2].revents && answer_question(keeper))
            return;
    }
}

static int take_lock(struct keeper *keeper, hf_opts *opts)
{
    int why;

    stores_warn(keeper->client);
    if (ancestor_holds(keeper->client, lock.name))
        return cli_usage("\"%s\" is already held by this shell or around it, "
                         "and would wait for itself",
                         lock.name);
    opts->on_event = on_event;
    (void)hf_event_fd(keeper->client); /* so that events come to our loop */
    return lock_acquire(keeper->client, opts, &keeper->hold, &why);
}

static int be_keeper(struct keeper *keeper)
{
    hf_opts opts;
    int rc = lock_prepare(&opts);

    if (rc == 0)
        rc = cli_prefer("drive", "app");
    if (rc == 0)
        rc = cli_open(&keeper->client);
    if (rc == 0)
        rc = take_lock(keeper, &opts);
    if (keeper->hold) {
        settle(keeper);
        rc = tell_shell(keeper);
        close(keeper->parent);
        if (rc == 0)
            keep(keeper);
        else
            (void)let_go(keeper, -1); /* the shell knows nothing of it */
    }
    textfile_save(keeper->client);
    hf_close(keeper->client);
    return rc;
}

/* ---- who prints ----------------------------------------------------------- */

static int status_code(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFSIGNALED(status) ? CLI_SIGNAL + WTERMSIG(status)
                               : WEXITSTATUS(status);
}

static int no_shell(void)
{
    return cli_usage("no shell above this process reads the output, so nobody "
                     "knows for which the lock is; add: --pid $$");
}

static int cannot(const char *what)
{
    fprintf(stderr, "holdfast: cannot %s: %s\n", what, strerror(errno));
    return CLI_INTERNAL;
}

/* Print what the keeper says, and pass signals on to it meanwhile. */
static int attend(const struct keeper *keeper, int fd, pid_t pid)
{
    char text[TEXT_MAX];
    size_t used = 0;

    for (;;) {
        bool ready = signals_wait(fd, /* timeout_ms= */ -1);

        for (int signo = signals_take(); signo; signo = signals_take())
            kill(pid, signo);
        if (!ready)
            continue;

        ssize_t len = recv(fd, text + used, sizeof(text) - used, MSG_DONTWAIT);
        if (len < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (len <= 0)
            break;
        used += (size_t)len;
    }
    if (used == 0)
        return status_code(pid);
    if (used == sizeof(text)) {
        errno = EMSGSIZE;
        return cannot("print what a shell needs");
    }
    /* A pipeline around us is set up by now. If nobody tells the keeper that
     * the shell has the text, it releases the lock. */
    if (options.pid == 0 && shell_that_reads() != keeper->shell_pid)
        return no_shell();
    fwrite(text, 1, used, stdout);
    fputc('\n', stdout);
    if (cli_finish(CLI_DONE) != CLI_DONE)
        return CLI_INTERNAL; /* the keeper hears nothing, and releases */
    return send(fd, "", 1, MSG_NOSIGNAL) == 1 ? CLI_DONE : CLI_INTERNAL;
}

static int find_shell(struct keeper *keeper)
{
    pid_t pid = (pid_t)options.pid;

    if (options.pid < 0 || options.pid > INT_MAX)
        return cli_usage("--pid %lld: no process has that number",
                         (long long)options.pid);
    if (isatty(STDOUT_FILENO))
        return cli_usage("a shell has to evaluate this; write: eval "
                         "\"$(holdfast acquire %s)\"",
                         text_shell(lock.name));
    if (pid == 0)
        pid = shell_that_reads();
    if (pid == 0)
        return no_shell();
    keeper->shell_pid = pid;
    keeper->shell = shell_watch(pid);
    if (keeper->shell < 0)
        return cannot("watch the shell");
    return 0;
}

static int start(struct keeper *keeper)
{
    struct stat out = {0};
    struct stat err = {0};
    int pair[2];
    pid_t self = getpid();

    keeper->questions = keeper_listen(keeper->key);
    if (keeper->questions < 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return cannot("make a socket");
    keeper->one_stream = fstat(STDOUT_FILENO, &out) == 0 &&
                         fstat(STDERR_FILENO, &err) == 0 &&
                         out.st_dev == err.st_dev && out.st_ino == err.st_ino;
    signals_begin();

    pid_t pid = fork();
    if (pid < 0)
        return cannot("start a process");
    if (pid > 0) {
        close(pair[1]);
        return attend(keeper, pair[0], pid);
    }
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != self)
        _exit(CLI_SIGNAL + SIGTERM);
    close(pair[0]);
    keeper->parent = pair[1];
    point_to_nothing(STDIN_FILENO);
    point_to_nothing(STDOUT_FILENO);
    exit(be_keeper(keeper));
}

static int acquire_main(const struct verb *verb, int argc, char **argv)
{
    struct words words = {.wanted = 1, .needed = 1};
    static struct keeper keeper;
    int rc = options_parse(verb, argc, argv, &words);

    if (rc == OPTIONS_HELP)
        return rc;
    if (rc == 0) {
        const char *key;
        const char *value;

        lock.name = words.word[0];
        keeper.names_engine = cli.url || cli.config_path || cli.profile ||
                              cli_option(0, &key, &value);
        note_inherited(&keeper);
        rc = find_shell(&keeper);
    }
    if (rc == 0)
        rc = start(&keeper);
    if (rc != 0 && !isatty(STDOUT_FILENO))
        shell_fail(stdout, options.kind, rc);
    return rc;
}

VERB(acquire, "NAME [options]",
     "hold a lock for a shell: eval \"$(holdfast acquire NAME)\"");
