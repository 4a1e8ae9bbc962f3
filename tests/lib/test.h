/* SPDX-License-Identifier: MIT */
/*
 * test.h - a small test harness.
 *
 *     TEST(keeper, owner_is_told_before_the_lease_ends)
 *     {
 *         ASSERT_EQ(hf_check(hold), HF_LOST);
 *     }
 *
 * A test is a claim; its name says which. A program of tests runs all of them,
 * or those whose "suite.name" contains one of its arguments; -l lists them.
 * A failed assertion ends its test only, prints where and both values, and the
 * program goes on. What test_defer() was told is undone after every test,
 * passed or failed, last first.
 *
 * A test that takes longer than TEST_TIMEOUT seconds (60) ends the program.
 */
#ifndef HF_TESTS_TEST_H
#define HF_TESTS_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "holdfast.h"

typedef void test_fn(void);
typedef void test_defer_fn(void *arg);

struct test_case {
    const char *suite;
    const char *name;
    const char *file;
    int line;
    bool forked;
    test_fn *run;
    struct test_case *next;
};

void test_register(struct test_case *test);

#define TEST_DEFINE(suite_, name_, forked_)                                    \
    static void test_##suite_##_##name_(void);                                 \
    static struct test_case test_case_##suite_##_##name_ = {                   \
        #suite_, #name_, __FILE__, __LINE__, forked_, test_##suite_##_##name_, \
        NULL};                                                                 \
    __attribute__((constructor)) static void test_add_##suite_##_##name_(void) \
    {                                                                          \
        test_register(&test_case_##suite_##_##name_);                          \
    }                                                                          \
    static void test_##suite_##_##name_(void)

#define TEST(suite, name) TEST_DEFINE(suite, name, false)
/* One that is one call, as others with other arguments are. */
#define TEST_CALL(suite, name, call)                                           \
    TEST(suite, name)                                                          \
    {                                                                          \
        call;                                                                  \
    }
/* The same in a forked child, for what would leave traces in the process. */
#define TEST_FORKED(suite, name) TEST_DEFINE(suite, name, true)

/* Run the tests that @argv selects; the program's exit status. */
int test_main(int argc, char **argv);
/* Call @undo(@arg) when the running test is over. */
void test_defer(test_defer_fn *undo, void *arg);
/* … when all tests of this process are over: what they share. */
void test_defer_late(test_defer_fn *undo, void *arg);
/* A text that is freed when the running test is over. */
char *test_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A remark in the output, as "# text". */
void test_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* What is not tested here, and why: counted, and shown in the last line. */
void test_not_tested(const char *format, ...)
    __attribute__((format(printf, 1, 2)));
/* "suite.name" of the running test. */
const char *test_name(void);
/* Is this the thread sanitizer, which cannot follow every fork? */
bool test_under_tsan(void);
/* Forget what was deferred: in a child process, which shares none of it. */
void test_forked(void);

/* In a child process, and on threads other than the test's, a failed
 * assertion ends the process with this status. */
enum { TEST_FAILED_STATUS = 99 };

__attribute__((noreturn, format(printf, 3, 4))) void test_fail(
    const char *file, int line, const char *format, ...);
void test_compare(const char *file, int line, const char *text, bool good,
                  const char *op, intmax_t a, intmax_t b);
void test_compare_texts(const char *file, int line, const char *text,
                        bool equal, const char *a, const char *b);
void test_compare_bytes(const char *file, int line, const char *text,
                        const void *a, const void *b, size_t len);
void test_contains(const char *file, int line, const char *text,
                   const char *whole, const char *part);
void test_rc(const char *file, int line, const char *text, int rc, int wanted,
             const hf_error *err);

#define FAIL(...) test_fail(__FILE__, __LINE__, __VA_ARGS__)

#define TEST_COMPARE(a, op, b)                                                 \
    do {                                                                       \
        __typeof__((a) + 0) test_a = (a);                                      \
        __typeof__((b) + 0) test_b = (b);                                      \
        test_compare(__FILE__, __LINE__, #a " " #op " " #b,                    \
                     (intmax_t)test_a op(intmax_t) test_b, #op,                \
                     (intmax_t)test_a, (intmax_t)test_b);                      \
    } while (0)
/* Integers, as signed 64-bit numbers. */
#define ASSERT_EQ(a, b) TEST_COMPARE(a, ==, b)
#define ASSERT_NE(a, b) TEST_COMPARE(a, !=, b)
#define ASSERT_LT(a, b) TEST_COMPARE(a, <, b)
#define ASSERT_LE(a, b) TEST_COMPARE(a, <=, b)
#define ASSERT_GT(a, b) TEST_COMPARE(a, >, b)
#define ASSERT_GE(a, b) TEST_COMPARE(a, >=, b)

#define ASSERT_TRUE(condition)                                                 \
    do {                                                                       \
        if (!(condition))                                                      \
            test_fail(__FILE__, __LINE__, "%s is false", #condition);          \
    } while (0)
#define ASSERT_FALSE(condition)                                                \
    do {                                                                       \
        if (condition)                                                         \
            test_fail(__FILE__, __LINE__, "%s is true", #condition);           \
    } while (0)
#define ASSERT_NULL(pointer)                                                   \
    do {                                                                       \
        const void *test_p = (pointer);                                        \
        if (test_p)                                                            \
            test_fail(__FILE__, __LINE__, "%s is %p, not NULL", #pointer,      \
                      test_p);                                                 \
    } while (0)
#define ASSERT_NOT_NULL(pointer)                                               \
    do {                                                                       \
        if (!(pointer))                                                        \
            test_fail(__FILE__, __LINE__, "%s is NULL", #pointer);             \
    } while (0)
#define ASSERT_PTR_EQ(a, b)                                                    \
    do {                                                                       \
        const void *test_a = (a);                                              \
        const void *test_b = (b);                                              \
        if (test_a != test_b)                                                  \
            test_fail(__FILE__, __LINE__, "%s == %s: %p against %p", #a, #b,   \
                      test_a, test_b);                                         \
    } while (0)
#define ASSERT_STREQ(a, b)                                                     \
    test_compare_texts(__FILE__, __LINE__, #a " equals " #b, true, a, b)
#define ASSERT_STRNE(a, b)                                                     \
    test_compare_texts(__FILE__, __LINE__, #a " differs from " #b, false, a, b)
#define ASSERT_MEM_EQ(a, b, len)                                               \
    test_compare_bytes(__FILE__, __LINE__, #a " equals " #b, a, b, len)
/* @whole contains @part. */
#define ASSERT_HAS(whole, part)                                                \
    test_contains(__FILE__, __LINE__, #whole " has " #part, whole, part)
/* @call of the first text of each pair equals, or contains, the second:
 * ASSERT_EACH_HAS(shown, {"a", "b"}, {"c", "d"}). */
typedef const char *test_text_fn(const char *text);
void test_each(const char *file, int line, const char *call, test_text_fn *run,
               bool whole, const char *const (*pairs)[2], size_t n);
#define TEST_EACH(call, whole, ...)                                            \
    do {                                                                       \
        static const char *const test_pairs[][2] = {__VA_ARGS__};              \
        test_each(__FILE__, __LINE__, #call, call, whole, test_pairs,          \
                  sizeof(test_pairs) / sizeof(test_pairs[0]));                 \
    } while (0)
#define ASSERT_EACH_STREQ(call, ...) TEST_EACH(call, true, __VA_ARGS__)
#define ASSERT_EACH_HAS(call, ...) TEST_EACH(call, false, __VA_ARGS__)
/* The call answers 0, or @code; otherwise the error's text is shown. @err may
 * be NULL. */
#define ASSERT_OK(call, err) test_rc(__FILE__, __LINE__, #call, (call), 0, err)
#define ASSERT_RC(call, code, err)                                             \
    test_rc(__FILE__, __LINE__, #call, (call), code, err)

#endif
