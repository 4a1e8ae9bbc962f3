/* SPDX-License-Identifier: MIT */
/* names.c - every name is one lock, and nothing else. */
#include <stdlib.h>

#include "contract.h"

static bool is_allowed(const char *name)
{
    return hf_name_check(name, strlen(name), NULL) == 0;
}

/* The keys of tooz have none. */
static bool has_spaces(void)
{
    return strstr(contract_url(NULL), "dialect=tooz") == NULL;
}

TEST(names, every_byte_is_a_lock_of_its_own_or_refused)
{
    hf_client *client = contract_open(NULL);
    int first = has_spaces() ? ' ' : ' ' + 1;
    int allowed = 0;

    for (int byte = 1; byte < 256; byte++) {
        char name[] = {'x', (char)byte, 'y', '\0'};
        hf_hold *hold = NULL;
        int rc = hf_acquire(client, name, NULL, &hold, NULL);

        ASSERT_EQ(rc, is_allowed(name) && byte >= first ? 0 : HF_EINVAL);
        ASSERT_EQ(rc == 0, byte >= first && byte < 0x7f);
        if (rc == 0) {
            ASSERT_STREQ(hf_hold_name(hold), name);
            client_release(hold);
            allowed++;
        }
    }
    ASSERT_EQ(allowed, 0x7f - first);
}

/* A lock, or NULL where the engine says that it has no key for the name. */
static hf_hold *take_or_hear_why(hf_client *client, const char *name)
{
    hf_hold *hold;
    hf_error err;
    int rc = hf_acquire(client, name, WITHIN(0), &hold, &err);

    if (rc == HF_EINVAL) {
        test_not_tested("%s: refused: %s", test_name(), err.text);
        return NULL;
    }
    ASSERT_OK(rc, &err);
    return hold;
}

TEST(names, lengths_are_bounded)
{
    hf_client *client = contract_open(NULL);
    hf_client *rival = contract_open(NULL);
    char name[HF_NAME_MAX + 2];
    size_t len = HF_NAME_MAX;
    hf_hold *hold;

    memset(name, 'n', sizeof(name));
    name[HF_NAME_MAX + 1] = '\0';
    ASSERT_EQ(contract_try(client, name, HF_EXCLUSIVE, 0), HF_EINVAL);
    ASSERT_EQ(contract_try(client, "", HF_EXCLUSIVE, 0), HF_EINVAL);
    name[len] = '\0';
    hold = take_or_hear_why(client, name);
    if (!hold) { /* other people's tables have room for so much */
        ASSERT_HAS(contract_url(NULL), "dialect=");
        len = 64;
        name[len] = '\0';
        hold = contract_acquire(client, name);
    }
    ASSERT_EQ(contract_try(rival, name, HF_EXCLUSIVE, 0), HF_EBUSY);
    name[len - 1] = '\0';
    ASSERT_EQ(contract_try(rival, name, HF_EXCLUSIVE, 0), 0);
    client_release(hold);
}

TEST(names, utf8_is_checked)
{
    static const char *const wrong[] = {
        "\xc3",             /* cut */
        "\xc0\xaf",         /* overlong */
        "\xed\xa0\x80",     /* a surrogate */
        "\xf4\x90\x80\x80", /* beyond Unicode */
        "\xff",
        "a\x80z",
        "\xc2\x85", /* a control character: NEL */
        "\x7f",
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ASSERT_FALSE(is_allowed(wrong[i]));
    ASSERT_TRUE(is_allowed("größe-名前-🔒"));
    ASSERT_EQ(hf_name_check("a\0b", 3, NULL), HF_EINVAL);
}

/* Names that somebody's encoding, case or path might take for one. */
static const char *const alike[] = {
    "a",
    "A",
    " a",
    "a ",
    "a.",
    ".a",
    "..",
    "a/",
    "a//",
    "/a",
    "./a",
    "../a",
    "a%",
    "a%2f",
    "a%2F",
    "a%252f",
    "a/b",
    "a:b",
    "a,b",
    "a b",
    "a+b",
    "{a}",
    "a{b}",
    "*",
    "a*",
    "a?",
    "[a]",
    "a\\",
    "a'",
    "a\"",
    "a;",
    "a--",
    "a`",
    "$a",
    "a#b",
    "\xc3\xa4",
    "a\xcc\x88",
    "a\xe2\x80\x8b",
    "\xd0\xb0",
    "aa",
    "ab",
    "a-b",
    "a_b",
    "CON",
    "nul",
    "0",
    "00",
    "-1",
    "--help",
    "%s%n",
    "\xf0\x9f\x94\x92",
};
enum { ALIKE = sizeof(alike) / sizeof(alike[0]) };

struct seen {
    int counts[ALIKE];
    int others;
};

static int see(const hf_lock_info *info, void *ctx)
{
    struct seen *seen = ctx;
    bool known = false;

    for (int i = 0; i < ALIKE; i++) {
        if (strcmp(info->name, alike[i]) != 0)
            continue;
        seen->counts[i]++;
        known = true;
    }
    seen->others += !known;
    return 0;
}

TEST(names, that_look_alike_are_different_locks)
{
    hf_client *client = contract_open(NULL);
    hf_client *rival = contract_open(NULL);
    struct seen seen = {.others = 0};
    hf_hold *holds[ALIKE];
    int refused = 0;
    hf_error err;

    for (int i = 0; i < ALIKE; i++) {
        holds[i] = take_or_hear_why(client, alike[i]);
        refused += !holds[i];
    }
    /* One of two that would become one, no more, and those with spaces. */
    ASSERT_LE(refused, has_spaces() ? 1 : 3);
    for (int i = 0; i < ALIKE; i++)
        ASSERT_EQ(contract_try(rival, alike[i], HF_EXCLUSIVE, 0),
                  holds[i] ? HF_EBUSY : HF_EINVAL);
    if (contract_can(HF_CAP_LIST)) {
        ASSERT_OK(hf_list(rival, NULL, see, &seen, &err), &err);
        for (int i = 0; i < ALIKE; i++)
            ASSERT_EQ(seen.counts[i], holds[i] ? 1 : 0);
    }
    for (int i = 0; i < ALIKE; i++) {
        if (holds[i])
            client_release(holds[i]);
    }
}

/* ---- URLs and options --------------------------------------------------- */

static int open_rc(const char *url, hf_error *err)
{
    hf_client *client = NULL;
    int rc = hf_open(url, NULL, &client, err);

    if (rc == 0)
        hf_close(client);
    else
        ASSERT_NULL(client);
    return rc;
}

TEST(names, wrong_urls_are_refused_with_a_reason)
{
    hf_error err;

    ASSERT_RC(open_rc("nosuchengine://x", &err), HF_EUNSUPPORTED, &err);
    ASSERT_HAS(err.text, "nosuchengine");
    ASSERT_RC(open_rc("nowrapper+local:", &err), HF_EUNSUPPORTED, &err);
    ASSERT_RC(open_rc("no scheme at all", &err), HF_ECONFIG, &err);
    ASSERT_RC(open_rc("", &err), HF_ECONFIG, &err);
    ASSERT_EQ(hf_open("local:", NULL, NULL, &err), HF_EINVAL);
}

TEST(names, wrong_options_are_refused_with_a_hint)
{
    hf_error err;

    ASSERT_RC(open_rc(contract_url("tll=5s"), &err), HF_ECONFIG, &err);
    ASSERT_HAS(err.text, "ttl");
    ASSERT_RC(open_rc(contract_url("ttl=5"), &err), HF_ECONFIG, &err);
    ASSERT_RC(open_rc(contract_url("ttl=-5s"), &err), HF_ECONFIG, &err);
    ASSERT_RC(open_rc(contract_url("release=maybe"), &err), HF_ECONFIG, &err);
    ASSERT_RC(open_rc(contract_url("require=telepathy"), &err), HF_ECONFIG,
              &err);
    ASSERT_RC(
        open_rc(contract_wrapped_url("fault", "fault=acquire:explode"), &err),
        HF_ECONFIG, &err);
    ASSERT_HAS(err.text, "character 9");
}

TEST(names, a_required_capability_is_there_or_the_open_fails)
{
    hf_error err;

    for (int bit = 0; bit < 64; bit++) {
        const char *name = hf_capability_name(UINT64_C(1) << bit);
        bool can = contract_can(UINT64_C(1) << bit);
        char query[64];

        if (!name)
            continue;
        (void)snprintf(query, sizeof(query), "require=%s", name);
        ASSERT_RC(open_rc(contract_url(query), &err), can ? 0 : HF_EUNSUPPORTED,
                  &err);
        if (!can)
            ASSERT_HAS(err.text, name);
    }
}
