/* SPDX-License-Identifier: MIT */
/*
 * secret_test.c - after hf_close() and hf_config_free() no password is left in
 * the memory that was given back.
 *
 * The password is kept as its complement, so that the test itself has no copy
 * that the search could find.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "holdfast.h"
#include "lib/test.h"

enum { LENGTH = 24, CHUNK = 1 << 16 };

static unsigned char complement[LENGTH];

static void choose_password(void)
{
    for (size_t i = 0; i < LENGTH; i++)
        complement[i] = (unsigned char)~("aBcDeFgHiJkLmNoP"[i * 7 % 16]);
}

static bool is_password(const unsigned char *at)
{
    for (size_t i = 0; i < LENGTH; i++) {
        if ((at[i] ^ complement[i]) != 0xff)
            return false;
    }
    return true;
}

static int count_range(int memory, unsigned long from, unsigned long to)
{
    static unsigned char chunk[CHUNK + LENGTH];
    int found = 0;

    for (; from < to; from += CHUNK) {
        size_t want = to - from < sizeof(chunk) ? to - from : sizeof(chunk);
        ssize_t n = pread(memory, chunk, want, (off_t)from);

        for (ssize_t i = 0; i < CHUNK && i + LENGTH <= n; i++)
            found += is_password(chunk + i);
    }
    explicit_bzero(chunk, sizeof(chunk));
    return found;
}

/* Copies of the password in the heap, and in its mapped pieces. */
static int copies(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    char line[512];
    int found = 0;

    ASSERT_NOT_NULL(maps);
    while (fgets(line, sizeof(line), maps)) {
        unsigned long from;
        unsigned long to;

        if (strstr(line, "[heap]") && sscanf(line, "%lx-%lx", &from, &to) == 2)
            found += count_range(memory, from, to);
    }
    fclose(maps);
    close(memory);
    return found;
}

static void write_password(char *to)
{
    for (size_t i = 0; i < LENGTH; i++)
        to[i] = (char)~complement[i];
    to[LENGTH] = '\0';
}

/* "before" password "after", in memory of its own. */
static char *with_password(const char *before, const char *after)
{
    char password[LENGTH + 1];
    static char text[512];

    write_password(password);
    snprintf(text, sizeof(text), "%s%s%s", before, password, after);
    explicit_bzero(password, sizeof(password));
    return text;
}

static void open_and_close(const char *before, const char *after)
{
    hf_client *client = NULL;
    hf_error err = {0};
    char *url = with_password(before, after);
    int rc = hf_open(url, NULL, &client, &err);

    explicit_bzero(url, 512);
    test_note("%s: %d %s", before, rc, rc ? err.text : "");
    if (rc == 0)
        hf_close(client);
    ASSERT_EQ(copies(), 0);
}

TEST(secret, the_search_finds_a_copy)
{
    char *copy;

    choose_password();
    copy = malloc(LENGTH + 1);
    write_password(copy);
    ASSERT_GT(copies(), 0);
    explicit_bzero(copy, LENGTH);
    free(copy);
    ASSERT_EQ(copies(), 0);
}

TEST(secret, is_wiped_when_a_client_is_closed)
{
    choose_password();
    open_and_close("redis://user:", "@127.0.0.1:1/0?connect=lazy");
    open_and_close("redis://127.0.0.1:1/0?connect=lazy&password=", "");
    open_and_close("redis-cluster://user:", "@127.0.0.1:1/0?connect=lazy");
    open_and_close("redlock://user:",
                   "@127.0.0.1:1,127.0.0.1:2,127.0.0.1:3?connect=lazy");
    open_and_close("zk://user:", "@127.0.0.1:1/x?connect=lazy");
    open_and_close("zk://127.0.0.1:1/x?connect=lazy&acl=digest:u:", ":cdrwa");
    open_and_close("etcd://user:", "@127.0.0.1:1/x?connect=lazy");
    open_and_close("mysql://user:", "@127.0.0.1:1/x?connect=lazy");
    open_and_close("postgresql://user:", "@127.0.0.1:1/x?connect=lazy");
}

TEST(secret, is_wiped_when_a_url_is_refused)
{
    choose_password();
    open_and_close("nosuch://user:", "@127.0.0.1:1/0");
    open_and_close("redis://user:", "%zz@127.0.0.1:1/0");
    open_and_close("redis://user:", "@127.0.0.1:1/0?ttl=nonsense");
    open_and_close("local://no-host/none?password=", "");
}

TEST(secret, is_wiped_when_a_configuration_is_freed)
{
    hf_config *config;
    char *text;

    choose_password();
    config = hf_config_new();
    text = with_password("redis://user:", "@127.0.0.1:1/0");
    ASSERT_EQ(hf_config_set(config, "url", text, NULL), 0);
    text = with_password("", "");
    ASSERT_EQ(hf_config_set(config, "password", text, NULL), 0);
    ASSERT_EQ(hf_config_set(config, "acl", text, NULL), 0);
    explicit_bzero(text, 512);
    ASSERT_GT(copies(), 0);
    hf_config_free(config);
    ASSERT_EQ(copies(), 0);
}
