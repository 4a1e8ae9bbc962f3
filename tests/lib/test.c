/* SPDX-License-Identifier: MIT */
/*
 * test.c - running tests, one after the other.
 *
 * A failed assertion on the test's own thread jumps back here. On another
 * thread, or in a child process, there is nothing to jump to: it prints, and
 * ends the process.
 */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tempdir.h"

enum { DEFERRED_MAX = 8192, LATE_MAX = 8, TIMEOUT_SECONDS = 200 };

struct deferred {
    test_defer_fn *undo;
    void *arg;
};

static struct test_case *first;
static struct test_case **last = &first;
static const struct test_case *running;
static struct deferred deferred[DEFERRED_MAX];
static size_t n_deferred;
static struct deferred late[LATE_MAX];
static size_t n_late;
static unsigned n_not_tested;
static jmp_buf back;
static pthread_t thread;
static pid_t process;

void test_register(struct test_case *test)
{
    *last = test;
    last = &test->next;
}

const char *test_name(void)
{
    static char text[256];

    (void)snprintf(text, sizeof(text), "%s.%s", running ? running->suite : "",
                   running ? running->name : "");
    return text;
}

bool test_under_tsan(void)
{
#if defined(__SANITIZE_THREAD__)
    return true;
#elif defined(__has_feature)
    return __has_feature(thread_sanitizer);
#else
    return false;
#endif
}

static void add(struct deferred *list, size_t *n, size_t max,
                struct deferred one)
{
    if (*n == max)
        FAIL("more than %zu deferred calls", max);
    list[(*n)++] = one;
}

void test_defer(test_defer_fn *undo, void *arg)
{
    add(deferred, &n_deferred, DEFERRED_MAX, (struct deferred){undo, arg});
}

void test_defer_late(test_defer_fn *undo, void *arg)
{
    add(late, &n_late, LATE_MAX, (struct deferred){undo, arg});
}

char *test_text(const char *format, ...)
{
    char *text = NULL;
    va_list args;
    int len;

    va_start(args, format);
    len = vasprintf(&text, format, args);
    va_end(args);
    if (len < 0)
        FAIL("out of memory");
    test_defer(free, text);
    return text;
}

/* But for the first @keep of them. */
static void undo_late(size_t keep)
{
    while (n_late > keep) {
        n_late--;
        late[n_late].undo(late[n_late].arg);
    }
}

void test_forked(void)
{
    n_deferred = 0;
    (void)alarm(0);
}

static void undo_deferred(void)
{
    while (n_deferred > 0) {
        n_deferred--;
        deferred[n_deferred].undo(deferred[n_deferred].arg);
    }
}

__attribute__((format(printf, 2, 0))) static void remark(const char *what,
                                                         const char *format,
                                                         va_list args)
{
    char text[512];

    (void)vsnprintf(text, sizeof(text), format, args);
    (void)printf("# %s%s\n", what, text);
    (void)fflush(stdout);
}

void test_note(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    remark("", format, args);
    va_end(args);
}

void test_not_tested(const char *format, ...)
{
    va_list args;

    n_not_tested++;
    va_start(args, format);
    remark("not tested: ", format, args);
    va_end(args);
}

void test_fail(const char *file, int line, const char *format, ...)
{
    va_list args;
    char text[1024];

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    (void)printf("# %s: %s:%d: %s\n", test_name(), file, line, text);
    (void)fflush(stdout);
    if (getpid() == process && pthread_equal(pthread_self(), thread))
        longjmp(back, 1);
    _exit(TEST_FAILED_STATUS);
}

void test_compare(const char *file, int line, const char *text, bool good,
                  const char *op, intmax_t a, intmax_t b)
{
    if (!good)
        test_fail(file, line, "%s: not %jd %s %jd", text, a, op, b);
}

void test_compare_texts(const char *file, int line, const char *text,
                        bool equal, const char *a, const char *b)
{
    if (!a || !b || (strcmp(a, b) == 0) != equal)
        test_fail(file, line, "%s: \"%s\" and \"%s\"", text, a ? a : "(NULL)",
                  b ? b : "(NULL)");
}

void test_compare_bytes(const char *file, int line, const char *text,
                        const void *a, const void *b, size_t len)
{
    const unsigned char *bytes_a = a;
    const unsigned char *bytes_b = b;

    for (size_t i = 0; i < len; i++)
        if (bytes_a[i] != bytes_b[i])
            test_fail(file, line, "%s: byte %zu is %02x against %02x", text, i,
                      bytes_a[i], bytes_b[i]);
}

void test_contains(const char *file, int line, const char *text,
                   const char *whole, const char *part)
{
    if (!whole || !strstr(whole, part))
        test_fail(file, line, "%s: \"%s\" is not in \"%.600s\"", text, part,
                  whole ? whole : "(NULL)");
}

void test_each(const char *file, int line, const char *call, test_text_fn *run,
               bool whole, const char *const (*pairs)[2], size_t n)
{
    char what[128];

    for (size_t i = 0; i < n; i++) {
        (void)snprintf(what, sizeof(what), "%s(\"%s\")", call, pairs[i][0]);
        if (whole)
            test_compare_texts(file, line, what, true, run(pairs[i][0]),
                               pairs[i][1]);
        else
            test_contains(file, line, what, run(pairs[i][0]), pairs[i][1]);
    }
}

void test_rc(const char *file, int line, const char *text, int rc, int wanted,
             const hf_error *err)
{
    if (rc == wanted)
        return;
    test_fail(file, line, "%s: %s (%d), not %s: %s", text,
              rc > 0 ? "positive" : hf_errname(rc), rc, hf_errname(wanted),
              err && rc < 0 ? err->text : "");
}

static void on_alarm(int number)
{
    static const char text[] = "# timeout: the test ran too long\nBail out!\n";

    (void)number;
    (void)!write(STDOUT_FILENO, text, sizeof(text) - 1);
    _exit(TEST_FAILED_STATUS);
}

static unsigned timeout_seconds(void)
{
    const char *text = getenv("TEST_TIMEOUT");

    return text && atoi(text) > 0 ? (unsigned)atoi(text) : TIMEOUT_SECONDS;
}

/* True if it passed. */
static bool run_here(const struct test_case *test)
{
    volatile bool passed = false;

    process = getpid();
    thread = pthread_self();
    (void)alarm(timeout_seconds());
    if (setjmp(back) == 0) {
        test->run();
        passed = true;
    }
    if (setjmp(back) == 0)
        undo_deferred();
    else
        passed = false;
    (void)alarm(0);
    return passed;
}

/* A child that dies, or goes on as another user, cannot remove what it made:
 * it has a directory for all of that. */
static bool make_directory(char *path, size_t size)
{
    const char *base = getenv("TMPDIR");

    (void)snprintf(path, size, "%s/hf-XXXXXX", base ? base : "/tmp");
    return mkdtemp(path) && chmod(path, 0755) == 0;
}

/* True if it ended well. */
static bool await(pid_t pid)
{
    int status;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    if (WIFSIGNALED(status))
        test_note("%s died of signal %d", test_name(), WTERMSIG(status));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool run_forked(const struct test_case *test)
{
    char directory[512];
    bool passed;
    pid_t pid;

    if (!make_directory(directory, sizeof(directory)))
        return false;
    pid = fork();
    if (pid == 0) {
        size_t of_parent = n_late;

        (void)setenv("TMPDIR", directory, 1);
        passed = run_here(test);

        undo_late(of_parent);
        (void)fflush(stdout);
        _exit(passed ? 0 : TEST_FAILED_STATUS);
    }
    passed = pid > 0 && await(pid);
    tempdir_remove(directory);
    return passed;
}

static bool selected(const struct test_case *test, int argc, char **argv)
{
    char text[256];

    (void)snprintf(text, sizeof(text), "%s.%s", test->suite, test->name);
    for (int i = 1; i < argc; i++)
        if (strstr(text, argv[i]))
            return true;
    return argc <= 1;
}

static int list(void)
{
    for (const struct test_case *test = first; test; test = test->next)
        (void)printf("%s.%s\n", test->suite, test->name);
    return 0;
}

static bool run_one(const struct test_case *test)
{
    bool passed;

    running = test;
    (void)fflush(stdout);
    passed = test->forked ? run_forked(test) : run_here(test);
    (void)printf("%s - %s.%s\n", passed ? "ok" : "not ok", test->suite,
                 test->name);
    (void)fflush(stdout);
    running = NULL;
    return passed;
}

int test_main(int argc, char **argv)
{
    unsigned passed = 0;
    unsigned failed = 0;

    if (argc > 1 && strcmp(argv[1], "-l") == 0)
        return list();
    (void)signal(SIGALRM, on_alarm);
    for (const struct test_case *test = first; test; test = test->next) {
        if (!selected(test, argc, argv))
            continue;
        if (run_one(test))
            passed++;
        else
            failed++;
    }
    undo_late(/* keep= */ 0);
    if (n_not_tested > 0)
        (void)printf("# %u expectations not tested, see above\n", n_not_tested);
    (void)printf("%u passed, %u failed\n", passed, failed);
    return failed > 0 || passed == 0 ? 1 : 0;
}
