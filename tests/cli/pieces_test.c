/* SPDX-License-Identifier: MIT */
/*
 * pieces_test.c - the small parts of the command, by themselves: durations,
 * escapes, columns, JSON, secrets, histograms, slow peers.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/histogram.h"
#include "cli/json.h"
#include "cli/lock.h"
#include "cli/options.h"
#include "cli/peer.h"
#include "cli/secret.h"
#include "cli/signals.h"
#include "cli/text.h"
#include "test.h"

/* What the pieces want from main.c and lock.c. */
struct cli cli;

int cli_usage(const char *format, ...)
{
    (void)format;
    return CLI_USAGE;
}

int cli_set(const char *key, const char *value)
{
    (void)key;
    (void)value;
    return 0;
}

int64_t lock_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

static int64_t duration(const char *text)
{
    int64_t ms = -99;

    return options_duration(text, &ms) ? ms : -99;
}

TEST(options, durations_have_units_or_are_seconds)
{
    ASSERT_EQ(duration("250ms"), 250);
    ASSERT_EQ(duration("30s"), 30000);
    ASSERT_EQ(duration("5m"), 300000);
    ASSERT_EQ(duration("2h"), 7200000);
    ASSERT_EQ(duration("1d"), 86400000);
    ASSERT_EQ(duration("1.5"), 1500);
    ASSERT_EQ(duration(".25"), 250);
    ASSERT_EQ(duration("0"), 0);
    ASSERT_EQ(duration("0.0001"), 1);
    ASSERT_EQ(duration("forever"), HF_FOREVER);
}

TEST(options, nonsense_is_no_duration)
{
    static const char *const texts[] = {
        "",    "s", "-1",  "+1",  "5 s",  "5sec", "1e99",
        "nan", ".", "inf", "0x5", "5m5s", " 5",   "1000000000d"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (duration(texts[i]) != -99)
            FAIL("\"%s\" is taken as %lld", texts[i],
                 (long long)duration(texts[i]));
}

TEST(options, numbers_are_plain_and_in_range)
{
    uint64_t number = 0;

    ASSERT_TRUE(options_number("0", 10, &number));
    ASSERT_TRUE(options_number("10", 10, &number));
    ASSERT_EQ(number, 10);
    ASSERT_FALSE(options_number("11", 10, &number));
    ASSERT_FALSE(options_number("-1", 10, &number));
    ASSERT_FALSE(options_number("", 10, &number));
    ASSERT_FALSE(options_number("1x", 10, &number));
    ASSERT_FALSE(options_number("99999999999999999999", UINT64_MAX, &number));
}

TEST(options, nearest_name_is_near)
{
    static const char *const names[] = {"nonblock", "wait", "slots"};

    ASSERT_STREQ(options_nearest("non-block", names, 3), "nonblock");
    ASSERT_STREQ(options_nearest("wiat", names, 3), "wait");
    ASSERT_NULL(options_nearest("zzz", names, 3));
}

TEST(text, what_moves_a_cursor_is_escaped)
{
    ASSERT_EACH_STREQ(text_safe, {"plain", "plain"},
                      {"caf\xc3\xa9", "caf\xc3\xa9"},
                      {"a\033[31mb", "a\\x1b[31mb"},
                      {"a\nb\x7f", "a\\x0ab\\x7f"}, {"\xc2\x9b", "\\u{9b}"},
                      {"\xe2\x80\xae", "\\u{202e}"}, {"a\\b", "a\\\\b"});
}

TEST(text, broken_utf8_is_escaped_byte_by_byte)
{
    ASSERT_EACH_STREQ(text_safe, {"\xff", "\\xff"}, {"\xc3", "\\xc3"},
                      {"\xc0\x80", "\\xc0\\x80"},
                      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},
                      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"});
}

TEST(text, escape_is_cut_at_its_size)
{
    char to[6];

    ASSERT_STREQ(text_escape("abcdefgh", to, sizeof(to)), "abcde");
    ASSERT_STREQ(text_escape("ab\x01\x02", to, sizeof(to)), "ab");
}

static const char *cut(const char *text, size_t columns)
{
    static char to[64];

    snprintf(to, sizeof(to), "%s", text);
    text_cut(to, columns);
    return to;
}

TEST(text, is_cut_to_columns_and_says_so)
{
    ASSERT_STREQ(cut("abcd", 4), "abcd");
    ASSERT_STREQ(cut("abcde", 4), "abc~");
    ASSERT_STREQ(cut("ab", 1), "~");
    ASSERT_STREQ(cut("ab", 0), "");
    ASSERT_STREQ(cut("", 0), "");
    /* A wide letter that does not fit leaves its first column empty. */
    ASSERT_STREQ(cut("a\xe9\x94\x81\xe9\x94\x81", 3), "a~");
    ASSERT_STREQ(cut("a\xe9\x94\x81\xe9\x94\x81", 4), "a\xe9\x94\x81~");
    ASSERT_STREQ(cut("e\xcc\x81"
                     "e\xcc\x81",
                     2),
                 "e\xcc\x81"
                 "e\xcc\x81");
}

TEST(text, width_counts_columns)
{
    ASSERT_EQ(text_width("abc"), 3);
    ASSERT_EQ(text_width("\xc3\xa9"), 1);
    ASSERT_EQ(text_width("\xe9\x94\x81"), 2);
    ASSERT_EQ(text_width("e\xcc\x81"), 1);
}

TEST(text, ages_are_short)
{
    char to[TEXT_AGE];

    ASSERT_STREQ(text_age(-1, to), "-");
    ASSERT_STREQ(text_age(0, to), "0ms");
    ASSERT_STREQ(text_age(999, to), "999ms");
    ASSERT_STREQ(text_age(4250, to), "4.2s");
    ASSERT_STREQ(text_age(59999, to), "59s");
    ASSERT_STREQ(text_age(192000, to), "3m12s");
    ASSERT_STREQ(text_age(3 * 3600000 + 180000, to), "3h03m");
    ASSERT_STREQ(text_age(2 * 86400000 + 4 * 3600000, to), "2d04h");
}

TEST(text, shell_words_can_be_typed_back)
{
    ASSERT_EACH_STREQ(text_shell, {"deploy/web", "deploy/web"},
                      {"two words", "'two words'"}, {"it's", "'it'\\''s'"},
                      {"", "''"}, {"$(rm)", "'$(rm)'"});
}

/* What @print writes. */
static const char *written(void (*print)(FILE *to))
{
    static char text[4096];
    FILE *to = fmemopen(text, sizeof(text), "w");

    ASSERT_NOT_NULL(to);
    print(to);
    fclose(to);
    return text;
}

static void print_table(FILE *to)
{
    struct table table = {.columns = 3, .right = {false, true}};
    static const char *const cells[] = {
        "NAME", "N", "NOTE", "a", "1", "x y", "\xe9\x94\x81long", "1000", ""};

    for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++)
        table_add(&table, cells[i]);
    table_print(&table, to);
    table_release(&table);
}

TEST(text, columns_line_up)
{
    ASSERT_STREQ(written(print_table), "NAME       N  NOTE\n"
                                       "a          1  x y\n"
                                       "\xe9\x94\x81long  1000  \n");
}

static void print_json(FILE *to)
{
    struct json json = {.to = to};

    json_open(&json, NULL, '{');
    json_text(&json, "a", "q\" b\\ n\n e\x1b x\xff \xe9\x94\x81");
    json_open(&json, "list", '[');
    json_number(&json, NULL, -5);
    json_token(&json, NULL, UINT64_C(9223372036854775807));
    json_close(&json, ']');
    json_words(&json, "words", " one two ");
    json_fraction(&json, "f", 1.5);
    json_fraction(&json, "nothing", 1.0 / 0.0);
    json_bool(&json, "yes", true);
    json_end(&json);
}

TEST(json, lines_are_always_well_formed)
{
    ASSERT_STREQ(written(print_json),
                 "{\"a\":\"q\\\" b\\\\ n\\n e\\u001b x\xef\xbf\xbd "
                 "\xe9\x94\x81\",\"list\":[-5,\"9223372036854775807\"],"
                 "\"words\":[\"one\",\"two\"],\"f\":1.500,\"nothing\":null,"
                 "\"yes\":true}\n");
}

static const char *wiped(const char *text)
{
    static char copy[256];

    snprintf(copy, sizeof(copy), "%s", text);
    secret_wipe(copy);
    return copy;
}

TEST(secret, is_wiped_from_urls_and_pairs)
{
    ASSERT_EACH_STREQ(
        wiped, {"redis://me:password@h/0", "redis://me:***@h/0"},
        {"redis://me:pw@h/0", "redis://me:***@h/"},
        {"redis://me:p@w@h/0", "redis://me:***@h/0"},
        {"redis://h/0?password=a;b&ttl=5s", "redis://h/0?password=***&ttl=5s"},
        {"redis://h/0?p%61ssword=secret", "redis://h/0?p%61ssword=***"},
        {"zk://h/l?acl=digest:ops:hash:cdrwa", "zk://h/l?acl=***"},
        {"acl=digest:ops:hash:cdrwa", "acl=***"},
        {"password=pw", "password=**"},
        {"url=redis://me:password@h", "url=redis://me:***@h"},
        {"redis://me:pass/word@h", "redis://***"},
        {"password_file=/etc/pw", "password_file=/etc/pw"},
        {"local:///a:b@c", "local:///a:b@c"},
        {"redis://host:6379/0", "redis://host:6379/0"});
    ASSERT_TRUE(secret_has("redis://me:pw@h"));
    ASSERT_FALSE(secret_has("REDIS://me@h?ttl=5s"));
}

TEST(secret, is_removed_from_urls)
{
    static const char *const pairs[][2] = {
        {"redis://me:pw@h:1/0", "redis://me@h:1/0"},
        {"redis://:pw@h", "redis://@h"},
        {"redis://h?password=pw&ttl=5s", "redis://h?password=&ttl=5s"},
        {"a://u:p@h?password=1&password=2", "a://u@h?password=&password="},
        {"HOLDFAST_URL=redis://:pw@h", "HOLDFAST_URL=redis://@h"},
        {"local:", "local:"}};

    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        char *hidden = secret_hidden(pairs[i][0], /* mask= */ NULL);

        ASSERT_STREQ(hidden, pairs[i][1]);
        free(hidden);
    }
}

TEST(secret, variables_with_secrets_are_not_passed_on)
{
    static const char *const secret[] = {
        "HOLDFAST_URL=redis://me:pw@h", "HOLDFAST_URL=zk://h?acl=digest:a:b:r",
        "HOLDFAST_PASSWORD=pw", "HOLDFAST_ACL=digest:a:b:r"};
    static const char *const harmless[] = {
        "HOLDFAST_URL=local:", "HOLDFAST_TOKEN=17", "HOLDFAST_PASSWORD_FILE=/x",
        "URL=redis://me:pw@h"};

    for (size_t i = 0; i < sizeof(secret) / sizeof(secret[0]); i++)
        ASSERT_TRUE(secret_variable(secret[i]));
    for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
        ASSERT_FALSE(secret_variable(harmless[i]));
}

TEST(histogram, tells_quantiles_within_a_few_percent)
{
    struct histogram *histogram = calloc(1, sizeof(*histogram));

    ASSERT_NOT_NULL(histogram);
    for (uint64_t ns = 1; ns <= 1000000; ns++)
        histogram_add(histogram, ns);
    ASSERT_GE(histogram_us(histogram, 0.5), 485);
    ASSERT_LE(histogram_us(histogram, 0.5), 515);
    ASSERT_GE(histogram_us(histogram, 0.99), 960);
    ASSERT_LE(histogram_us(histogram, 0.99), 1020);
    histogram_merge(histogram, histogram);
    ASSERT_EQ(histogram->total, 2000000);
    histogram_add(histogram, 0);
    histogram_add(histogram, UINT64_MAX);
    free(histogram);
}

/* ---- peers --------------------------------------------------------------- */

enum { RESPONSE = 64 * 1024 * 1024 };

/* A byte at a time, until the other end is closed: seconds for a megabyte. */
static void *read_slowly(void *ctx)
{
    char byte;

    while (read(*(int *)ctx, &byte, 1) > 0)
        continue;
    return NULL;
}

TEST(peer, that_reads_slowly_has_one_deadline_for_all)
{
    char *text = calloc(1, RESPONSE);
    pthread_t reader;
    int ends[2];

    signals_begin();
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    ASSERT_EQ(pthread_create(&reader, NULL, read_slowly, &ends[1]), 0);
    ASSERT_FALSE(peer_send(ends[0], text, RESPONSE, lock_now_ms() + 300));
    shutdown(ends[1], SHUT_RDWR);
    ASSERT_EQ(pthread_join(reader, NULL), 0);
    close(ends[0]);
    close(ends[1]);
    free(text);
}

TEST(peer, that_does_not_read_does_not_keep_a_signal_out)
{
    char *text = calloc(1, RESPONSE);
    int ends[2];

    signals_begin();
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    ASSERT_TRUE(peer_send(ends[0], "GET\r\n\r\n", 7, lock_now_ms() + 60000));
    ASSERT_TRUE(peer_read(ends[1], text, 64, lock_now_ms() + 60000));
    ASSERT_EQ(raise(SIGTERM), 0);
    ASSERT_EQ(signals_first(), 0);
    ASSERT_FALSE(peer_send(ends[0], text, RESPONSE, lock_now_ms() + 60000));
    ASSERT_EQ(signals_first(), SIGTERM);
    ASSERT_FALSE(peer_read(ends[1], text, 64, lock_now_ms() + 60000));
    close(ends[0]);
    close(ends[1]);
    free(text);
}
