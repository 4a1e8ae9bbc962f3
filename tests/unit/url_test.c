/* SPDX-License-Identifier: MIT */
/* url_test.c - URLs taken apart, and what is said about bad ones. */
#include "config/url.h"

#include "lib/test.h"

static void free_url(void *url)
{
    hf__url_free(url);
}

static struct hf__url *parse(const char *text)
{
    struct hf__url *url = NULL;
    hf_error err;

    ASSERT_OK(hf__url_parse(text, &url, &err), &err);
    test_defer(free_url, url);
    return url;
}

static hf_error refused(const char *text)
{
    struct hf__url *url = NULL;
    hf_error err = {0};

    ASSERT_RC(hf__url_parse(text, &url, &err), HF_ECONFIG, &err);
    ASSERT_NULL(url);
    return err;
}

static const char *why_refused(const char *text)
{
    static hf_error err;

    err = refused(text);
    return err.text;
}

TEST(url, the_shortest_one_is_a_scheme)
{
    struct hf__url *url = parse("local:");

    ASSERT_STREQ(url->scheme, "local");
    ASSERT_STREQ(url->path, "");
    ASSERT_EQ(url->n_hosts, 0);
    ASSERT_EQ(url->n_wrappers, 0);
    ASSERT_NULL(url->user);
    ASSERT_NULL(url->query);
    ASSERT_STREQ(url->redacted, "local:");
}

TEST(url, a_directory_is_a_path)
{
    ASSERT_STREQ(parse("local:///some/dir")->path, "/some/dir");
    ASSERT_STREQ(parse("local:/some/dir")->path, "/some/dir");
    ASSERT_STREQ(parse("local:///a%20b")->path, "/a b");
}

TEST(url, wrappers_stand_outermost_first)
{
    struct hf__url *url = parse("Trace+fault+LOCAL:?ttl=5s");

    ASSERT_EQ(url->n_wrappers, 2);
    ASSERT_STREQ(url->wrappers[0], "trace");
    ASSERT_STREQ(url->wrappers[1], "fault");
    ASSERT_STREQ(url->scheme, "local");
    ASSERT_STREQ(url->redacted, "trace+fault+local:?ttl=5s");
}

TEST(url, everything_at_once)
{
    struct hf__url *url =
        parse("redis://me:s%40fe@h1:6379,[::1]:7000,h-2.x/0?ttl=5s&note=a%26b");

    ASSERT_STREQ(url->user, "me");
    ASSERT_STREQ(url->password, "s@fe");
    ASSERT_EQ(url->n_hosts, 3);
    ASSERT_STREQ(url->hosts[0].host, "h1");
    ASSERT_EQ(url->hosts[0].port, 6379);
    ASSERT_STREQ(url->hosts[1].host, "::1");
    ASSERT_EQ(url->hosts[1].port, 7000);
    ASSERT_STREQ(url->hosts[2].host, "h-2.x");
    ASSERT_EQ(url->hosts[2].port, 0);
    ASSERT_STREQ(url->path, "/0");
    ASSERT_STREQ(url->query->key, "ttl");
    ASSERT_STREQ(url->query->value, "5s");
    ASSERT_STREQ(url->query->next->key, "note");
    ASSERT_STREQ(url->query->next->value, "a&b");
    ASSERT_NULL(url->query->next->next);
    ASSERT_STREQ(url->redacted,
                 "redis://me:***@h1:6379,[::1]:7000,h-2.x/0?ttl=5s&note=a%26b");
}

TEST(url, a_user_or_a_password_may_be_alone)
{
    struct hf__url *url = parse("redis://:pw@h");

    ASSERT_NULL(url->user);
    ASSERT_STREQ(url->password, "pw");
    url = parse("redis://me@h");
    ASSERT_STREQ(url->user, "me");
    ASSERT_NULL(url->password);
    ASSERT_STREQ(parse("redis://a@b:c@h")->user, "a@b");
}

TEST(url, secrets_in_the_query_are_not_shown)
{
    ASSERT_STREQ(parse("zk://h?acl=digest:a:b&ttl=1s")->redacted,
                 "zk://h?acl=***&ttl=1s");
    ASSERT_STREQ(parse("zk://h?pass%77ord=x")->redacted,
                 "zk://h?pass%77ord=***");
    ASSERT_STREQ(parse("zk://h?password_file=/f")->redacted,
                 "zk://h?password_file=/f");
}

TEST(url, an_empty_query_is_none)
{
    ASSERT_NULL(parse("local:?")->query);
    ASSERT_STREQ(parse("local:?note=")->query->value, "");
}

TEST(url, what_is_not_a_url_is_explained)
{
    ASSERT_EACH_HAS(why_refused, {"", "empty"}, {"/var/lock", "local:///"},
                    {"redis", "scheme"}, {"1redis:", "scheme"},
                    {"fault+", "scheme"}, {"local:dir", "local:///some/dir"},
                    {"a+b+c+d+e+local:", "wrappers"});
}

TEST(url, bad_hosts_and_ports_are_refused)
{
    static const char *const bad[] = {
        "r://h:0",           "r://h:65536", "r://h:",   "r://h:x",
        "r://h,,h",          "r://h,",      "r://,h",   "r://[::1",
        "r://[::1]x",        "r://::1",     "r://a b",  "r://@",
        "r://h:99999999999", "r://[]",      "r://a\tb", "r://h:1:2",
    };

    for (size_t i = 0; i < HF_COUNT_OF(bad); i++)
        refused(bad[i]);
}

TEST(url, bad_escapes_and_control_characters_are_refused)
{
    ASSERT_EACH_HAS(why_refused, {"local:///a%2", "%25"},
                    {"local:///a%zz", "hex"}, {"local:///a%00b", "control"},
                    {"local:///a%0Ab", "control"}, {"local:?a=%01", "control"},
                    {"r://u%:p@h", "user"}, {"r://u:%@h", "password"});
}

TEST(url, bad_queries_and_fragments_are_refused)
{
    refused("local:?ttl");
    refused("local:?=5s");
    refused("local:?ttl=5s&");
    refused("local:?%=5s");
    refused("local:?a=%");
    ASSERT_HAS(why_refused("local:#x"), "%23");
    ASSERT_HAS(why_refused("local:?a=b#x"), "%23");
}

TEST(url, too_many_hosts_are_refused)
{
    char text[256] = "r://h";

    for (int i = 0; i < HF__URL_HOSTS - 1; i++)
        strcat(text, ",h");
    ASSERT_EQ(parse(text)->n_hosts, HF__URL_HOSTS);
    strcat(text, ",h");
    ASSERT_HAS(why_refused(text), "hosts");
}

TEST(url, no_error_repeats_a_password)
{
    static const char *const bad[] = {
        "redis://me:hunter2/x@h", "redis://me:hunter2?x@h",
        "redis://me:hunter2#x@h", "redis://me:hunter2%@h",
        "redis://me:hunter2",     "me:hunter2@h",
        "redis:me:hunter2@h",     "redis://h?hunter2",
    };

    for (size_t i = 0; i < HF_COUNT_OF(bad); i++) {
        hf_error err = refused(bad[i]);

        ASSERT_NULL(strstr(err.text, "hunter2"));
    }
}

static const char *redacted(const char *text)
{
    static char shown[128];

    ASSERT_EQ(hf_redact(text, "***", shown, sizeof(shown)), strlen(shown));
    return shown;
}

TEST(redact, hides_every_secret_of_a_url_and_of_a_pair)
{
    ASSERT_EACH_STREQ(
        redacted,
        {"redis://u:p@h/0?password=a;b?c&x=1",
         "redis://u:***@h/0?password=***&x=1"},
        {"zk://h?%61cl=digest:a:b&ttl=1s", "zk://h?%61cl=***&ttl=1s"},
        {"password=p:/@w", "password=***"}, {"p%61ssword=w", "p%61ssword=***"},
        {"url=redis://u:p@h", "url=redis://u:***@h"},
        {"tls.key_password_file=/f", "tls.key_password_file=/f"},
        {"ttl=30s", "ttl=30s"}, {"nightly", "nightly"}, {"", ""});
    ASSERT_EQ(hf_redact(NULL, NULL, NULL, 0), 0);
}

TEST(redact, hides_all_of_a_url_that_is_malformed)
{
    ASSERT_EACH_STREQ(redacted, {"redis://u:pa/ss@h/0", "redis://***"},
                      {"redis://u:pa ss@h#x", "redis://***"},
                      {"redis://u:p%zz@h", "redis://***"},
                      {"redis//u:p@h", "***"}, {"u:p@h", "***"});
}

TEST(redact, hides_a_url_without_a_scheme_behind_its_key)
{
    ASSERT_EACH_STREQ(
        redacted, {"url=u:p@h", "url=***"}, {"%75rl=u:p@h", "%75rl=***"},
        {"-ourl=u:p@h", "-ourl=***"}, {"--url=u:p@h", "--url=***"},
        {"HOLDFAST_URL=u:p@h", "HOLDFAST_URL=***"},
        {"url=local:?password=x", "url=local:?password=***"},
        {"url=local:?ttl=5s", "url=local:?ttl=5s"},
        {"owner=me@host", "owner=me@host"});
}

TEST(redact, hides_a_secret_of_what_is_no_url)
{
    static const struct {
        const char *text;
        const char *shown;
    } cases[] = {
        {"foo?password=x", "foo?password=***"},
        {"foo?ttl=1s&password=x", "foo?ttl=1s&password=***"},
        {"foo?ttl=1s&password=x&y=1", "foo?ttl=1s&password=***"},
        {"foo:bar?passwd=x", "foo:bar?passwd=***"},
        {"foo:bar?p%61ss=x", "foo:bar?p%61ss=***"},
        {"foo:bar?%=x", "foo:bar?%=***"},
        {"foo:bar?%00pass=x", "foo:bar?%00pass=***"},
        {"redis://h?ttl=1s;password=x", "redis://h?ttl=1s;password=***"},
        {"redis:h?token=x", "redis:h?token=***"},
        {"/tmp?Secret=x", "/tmp?Secret=***"},
        {"h:6379?sslpassword=x", "h:6379?sslpassword=***"},
        {"h:6379 password=x", "h:6379 password=***"},
        {"host=a password=x", "host=a password=***"},
        {"host=a;pwd=x", "host=a;pwd=***"},
        {"url=foo?ttl=1s&password=x", "url=foo?ttl=1s&password=***"},
        {"foo:bar?password_file=/f", "foo:bar?password_file=/f"},
        {"foo:bar?ttl=1s", "foo:bar?ttl=1s"},
        {"note=a b", "note=a b"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        ASSERT_STREQ(redacted(cases[i].text), cases[i].shown);
}

TEST(redact, hides_a_secret_of_any_length)
{
    char text[6000] = "redis://u:";
    char shown[32];

    memset(text + strlen(text), 'S', 5000);
    strcat(text, "@h");
    ASSERT_EQ(hf_redact(text, "***", shown, sizeof(shown)),
              strlen("redis://u:***@h"));
    ASSERT_STREQ(shown, "redis://u:***@h");
}
