/* SPDX-License-Identifier: MIT */
/* config_test.c - keys, layers, hints, files, the environment. */
#include "config/value.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/heap.h"
#include "lib/tempdir.h"
#include "lib/test.h"

static void free_config(void *config)
{
    hf_config_free(config);
}

static hf_config *config_new(void)
{
    hf_config *config = hf_config_new();

    ASSERT_NOT_NULL(config);
    test_defer(free_config, config);
    return config;
}

static void set(hf_config *config, const char *key, const char *value)
{
    hf_error err;

    ASSERT_OK(hf_config_set(config, key, value, &err), &err);
}

/* What is said when @key is set to @value. */
/* Why "key=value" is. */
static const char *refused(const char *pair)
{
    static hf_error err;
    size_t len = strcspn(pair, "=");

    ASSERT_RC(hf_config_set(config_new(), test_text("%.*s", (int)len, pair),
                            pair + len + 1, &err),
              HF_ECONFIG, &err);
    return err.text;
}

static void release_settings(void *settings)
{
    hf__settings_release(settings);
}

static struct hf__settings *resolve(const hf_config *config)
{
    static struct hf__settings settings;
    hf_error err;

    hf__settings_release(&settings); /* of an earlier call */
    ASSERT_OK(hf__config_resolve(config, &settings, &err), &err);
    test_defer(release_settings, &settings);
    return &settings;
}

static const char *unresolved(const hf_config *config)
{
    static hf_error err;
    struct hf__settings settings;

    ASSERT_RC(hf__config_resolve(config, &settings, &err), HF_ECONFIG, &err);
    return err.text;
}

/*
 * Defaults and kinds
 */

TEST(config, defaults_are_those_of_the_table)
{
    struct hf__settings *s = resolve(config_new());

    ASSERT_EQ(s->ttl_ms, 30000);
    ASSERT_EQ(s->wait_ms, HF_FOREVER);
    ASSERT_EQ(s->max_hold_ms, 0);
    ASSERT_EQ(s->connect_timeout_ms, 5000);
    ASSERT_EQ(s->io_timeout_ms, 5000);
    ASSERT_EQ(s->retry_policy, HF__RETRY_EXPONENTIAL);
    ASSERT_EQ(s->retry_base_ms, 50);
    ASSERT_EQ(s->local_handover, -1);
    ASSERT_EQ(s->release, HF__RELEASE_CONFIRM);
    ASSERT_EQ(s->renew, HF__RENEW_AUTO);
    ASSERT_EQ(s->lease, HF__LEASE_TTL);
    ASSERT_EQ(s->tls_verify, 1);
    ASSERT_EQ(s->pool_check, 0);
    ASSERT_EQ(s->require, 0);
    ASSERT_TRUE(s->drift > 0.0199 && s->drift < 0.0201);
    ASSERT_STREQ(s->prefix, "");
    ASSERT_STREQ(s->password, "");
}

TEST(config, each_kind_of_value_reaches_its_field)
{
    hf_config *config = config_new();
    struct hf__settings *s;

    set(config, "ttl", "1.5s");
    set(config, "wait", "0");
    set(config, "retry.policy", "elapsed");
    set(config, "retry.jitter", "0.5");
    set(config, "local_handover", "7");
    set(config, "tls.verify", "no");
    set(config, "require", "fenced, FIFO,death-notice");
    set(config, "note", "nightly");
    set(config, "drive", "app");
    s = resolve(config);
    ASSERT_EQ(s->ttl_ms, 1500);
    ASSERT_EQ(s->wait_ms, 0);
    ASSERT_EQ(s->retry_policy, HF__RETRY_ELAPSED);
    ASSERT_TRUE(s->retry_jitter == 0.5);
    ASSERT_EQ(s->local_handover, 7);
    ASSERT_EQ(s->tls_verify, 0);
    ASSERT_TRUE(s->require ==
                (HF_CAP_FENCED | HF_CAP_FIFO | HF_CAP_DEATH_NOTICE));
    ASSERT_STREQ(s->note, "nightly");
    ASSERT_EQ(s->drive, HF__DRIVE_APP);
}

static int count_key(const hf_key_info *key, void *ctx)
{
    hf_error err;

    ASSERT_EQ(key->size, sizeof(*key));
    ASSERT_NOT_NULL(key->type);
    ASSERT_GT(strlen(key->help), 10);
    ASSERT_EQ(key->help[strlen(key->help) - 1], '.');
    if (strcmp(key->name, "url") != 0)
        ASSERT_OK(hf__config_check(key->name, key->standard, &err), &err);
    ++*(int *)ctx;
    return 0;
}

static int stop_at_ttl(const hf_key_info *key, void *ctx)
{
    (void)ctx;
    return strcmp(key->name, "ttl") == 0 ? 42 : 0;
}

TEST(config, every_key_has_a_sentence_and_a_good_default)
{
    int n = 0;

    ASSERT_EQ(hf_config_keys(count_key, &n), 0);
    ASSERT_GE(n, 40);
    ASSERT_EQ(hf_config_keys(stop_at_ttl, NULL), 42);
    ASSERT_EQ(hf_config_keys(NULL, NULL), HF_EINVAL);
}

/*
 * Durations
 */

static int64_t duration(const char *text, int64_t bare_unit_ms)
{
    int64_t ms = -7;
    hf_error err;

    ASSERT_OK(hf__value_duration(text, bare_unit_ms, true, &ms, &err), &err);
    return ms;
}

static const char *bad_duration(const char *text)
{
    static hf_error err;
    int64_t ms = -7;

    ASSERT_RC(hf__value_duration(text, 0, false, &ms, &err), HF_ECONFIG, &err);
    ASSERT_EQ(ms, -7);
    return err.text;
}

TEST(duration, units_and_fractions_are_read)
{
    ASSERT_EQ(duration("250ms", 0), 250);
    ASSERT_EQ(duration("30s", 0), 30000);
    ASSERT_EQ(duration("5m", 0), 300000);
    ASSERT_EQ(duration("2h", 0), 7200000);
    ASSERT_EQ(duration("1d", 0), 86400000);
    ASSERT_EQ(duration("0.25s", 0), 250);
    ASSERT_EQ(duration(".5s", 0), 500);
    ASSERT_EQ(duration("1.s", 0), 1000);
    ASSERT_EQ(duration("0", 0), 0);
    ASSERT_EQ(duration("0.0", 0), 0);
    ASSERT_EQ(duration("forever", 0), HF_FOREVER);
    ASSERT_EQ(duration("3155760000000ms", 0), HF_DURATION_MAX);
}

TEST(duration, a_bare_number_counts_in_the_callers_unit)
{
    ASSERT_EQ(duration("2", 1000), 2000);
    ASSERT_EQ(duration("0.5", 1000), 500);
    ASSERT_EQ(duration("7", 1), 7);
}

TEST(duration, a_missing_unit_is_explained)
{
    ASSERT_EACH_HAS(bad_duration, {"3000", "no unit"},
                    {"3000", "3000ms would be 3 seconds"},
                    {"1500000000", "17 days"},
                    {"9000000000000000", "milliseconds"});
}

TEST(duration, a_calculation_is_answered_with_its_result)
{
    ASSERT_EACH_HAS(bad_duration, {"60 * 100", "calculation"},
                    {"60 * 100", "6s"}, {"3*1000*60", "3m"},
                    {"60 * x", "not a duration"});
}

TEST(duration, nonsense_is_refused)
{
    ASSERT_EACH_HAS(bad_duration, {"", "250ms"}, {"-5s", "negative"},
                    {"5 s", "not a duration"}, {"5sec", "not a duration"},
                    {"s", "not a duration"}, {".", "not a duration"},
                    {"1.2.3s", "not a duration"}, {"forever", "not a duration"},
                    {"30s # half a minute", "comment"},
                    {"99999999999999999999", "hundred years"},
                    {"9223372036.99s", "hundred years"},
                    {"99999999999999999999s", "hundred years"},
                    {"9223372036854775807d", "hundred years"},
                    {"36526d", "hundred years"});
    ASSERT_HAS(refused("drift=9223372036.99"), "not a number from 0");
}

/*
 * Hints
 */

TEST(config, settings_of_the_java_world_are_explained)
{
    ASSERT_EACH_HAS(refused,
                    {"connection-timeout=1500000000", "connect_timeout"},
                    {"connect_timeout=1500000000", "17 days"},
                    {"connect_timeout=1500000000ms", "most is 1h"},
                    {"session_timeout=60 * 100", "6s"},
                    {"session-timeout=600000", "session_timeout"},
                    {"maxTotal=200", "pool.max"}, {"leaseTime=3", "ttl"},
                    {"retry-interval-ms=3000", "retry.interval"});
}

TEST(config, a_key_that_is_almost_right_gets_a_hint)
{
    ASSERT_EACH_HAS(refused, {"tttl=3s", "did you mean ttl?"},
                    {"retry_base=3s", "did you mean retry.base?"},
                    {"connectTimeout=3s", "connect_timeout"},
                    {"zzz=3s", "libholdfast(3)"}, {"=3s", "no key"});
}

TEST(config, values_out_of_range_name_the_range)
{
    ASSERT_EACH_HAS(
        refused, {"ttl=9ms", "least is 10ms"}, {"ttl=366d", "most is 365d"},
        {"pool.max=0", "from 1 to 10000"}, {"pool.max=8x", "from 1 to 10000"},
        {"local_handover=some", "or auto"}, {"drift=0.51", "from 0 to 0.5"},
        {"drift=2%", "from 0 to 0.5"}, {"renew=never", "auto|off|beat"},
        {"renew=", "auto|off|beat"}, {"tls.verify=maybe", "on nor off"},
        {"require=fenced,fencd", "did you mean fenced?"},
        {"require=quorum", "holdfast engines"}, {"note=a\nb", "control"});
}

TEST(config, the_value_of_an_unknown_key_is_not_repeated)
{
    ASSERT_NULL(strstr(refused("passwrd=hunter2"), "hunter2"));
}

TEST(config, null_is_refused)
{
    ASSERT_EQ(hf_config_set(NULL, "ttl", "3s", NULL), HF_EINVAL);
    ASSERT_EQ(hf_config_set(config_new(), NULL, "3s", NULL), HF_EINVAL);
    ASSERT_EQ(hf_config_set(config_new(), "ttl", NULL, NULL), HF_EINVAL);
    hf_config_free(NULL);
}

TEST(config, what_only_the_whole_can_tell_is_checked)
{
    hf_config *config = config_new();

    set(config, "retry.policy", "ntimes");
    ASSERT_HAS(unresolved(config), "retry.max_attempts");
    set(config, "retry.max_attempts", "3");
    set(config, "retry.base", "5s");
    ASSERT_HAS(unresolved(config), "retry.max_interval");
    set(config, "retry.base", "5ms");
    set(config, "tls.cert", "/c");
    ASSERT_HAS(unresolved(config), "tls.key");
}

/*
 * Layers
 */

TEST(config, what_the_program_prefers_is_weaker_than_all_else)
{
    hf_config *config = config_new();
    hf_error err;

    ASSERT_OK(hf_config_prefer(config, "ttl", "8s", &err), &err);
    ASSERT_STREQ(hf_config_get(config, "ttl"), "8s");
    hf__config_set_layer(config, HF__LAYER_FILE, "ttl", "9s", NULL);
    ASSERT_STREQ(hf_config_get(config, "ttl"), "9s");
    ASSERT_RC(hf_config_prefer(config, "ttl", "soon", &err), HF_ECONFIG, &err);
    ASSERT_RC(hf_config_prefer(NULL, "ttl", "8s", &err), HF_EINVAL, &err);
}

TEST(config, code_wins_over_url_over_environment_over_file)
{
    hf_config *config = config_new();

    for (int layer = 0; layer < HF__LAYERS; layer++) {
        char text[16];
        hf_error err;

        snprintf(text, sizeof(text), "%ds", layer + 1);
        ASSERT_OK(hf__config_set_layer(config, (enum hf__config_layer)layer,
                                       "ttl", text, &err),
                  &err);
        ASSERT_STREQ(hf_config_get(config, "ttl"), text);
    }
    hf__config_set_layer(config, HF__LAYER_FILE, "ttl", "9s", NULL);
    ASSERT_STREQ(hf_config_get(config, "ttl"), "5s");
}

TEST(config, get_gives_the_default_and_knows_its_keys)
{
    hf_config *config = config_new();

    ASSERT_STREQ(hf_config_get(config, "ttl"), "30s");
    ASSERT_NULL(hf_config_get(config, "tttl"));
    ASSERT_NULL(hf_config_get(config, NULL));
    ASSERT_NULL(hf_config_get(NULL, "ttl"));
}

TEST(config, secrets_are_not_shown)
{
    hf_config *config = config_new();

    ASSERT_STREQ(hf_config_get(config, "password"), "");
    set(config, "password", "hunter2");
    set(config, "url", "redis://me:hunter2@h/0");
    ASSERT_STREQ(hf_config_get(config, "password"), "***");
    ASSERT_STREQ(hf_config_get(config, "url"), "redis://me:***@h/0");
    ASSERT_STREQ(hf__config_url(config), "redis://me:hunter2@h/0");
    ASSERT_STREQ(resolve(config)->password, "hunter2");
}

TEST(config, a_url_stands_in_code_or_file_only)
{
    hf_config *config = config_new();

    ASSERT_NULL(hf__config_url(config));
    ASSERT_EQ(
        hf__config_set_layer(config, HF__LAYER_URL, "url", "local:", NULL),
        HF_ECONFIG);
    ASSERT_HAS(refused("url=nonsense"), "scheme");
}

TEST(config, a_copy_is_equal_and_independent)
{
    static const char file[] = "ttl = 7s\n[lock a*]\nttl = 1s\nnote = n\n";
    hf_config *config = config_new();
    hf_config *copy;

    ASSERT_EQ(
        hf__config_parse(config, file, strlen(file), "f", NULL, NULL, NULL), 0);
    set(config, "url", "local:///x");
    copy = hf__config_copy(config);
    test_defer(free_config, copy);
    set(config, "ttl", "8s");
    ASSERT_STREQ(hf_config_get(copy, "ttl"), "7s");
    ASSERT_STREQ(hf_config_get(copy, "url"), "local:///x");
    ASSERT_EQ(hf__config_override(copy, "abc")->ttl_ms, 1000);
    ASSERT_STREQ(hf__config_override(copy, "abc")->note, "n");
}

/*
 * Files
 */

static const char *bad_file(const char *text, const char *profile, int code)
{
    static hf_error err;

    ASSERT_RC(hf__config_parse(config_new(), text, strlen(text), "f.ini",
                               profile, NULL, &err),
              code, &err);
    return err.text;
}

static hf_config *good_file(const char *text, const char *profile)
{
    hf_config *config = config_new();
    hf_error err;

    ASSERT_OK(hf__config_parse(config, text, strlen(text), "f.ini", profile,
                               NULL, &err),
              &err);
    return config;
}

static const char sample[] = "\xef\xbb\xbf# holdfast\r\n"
                             "ttl = 20s\r\n"
                             "\n"
                             "[production]\n"
                             "  url = redis://h/0\n"
                             "ttl=10s\n"
                             "note = \" two words \"\n"
                             "[test]\n"
                             "ttl = 1s\n"
                             "; patterns\n"
                             "[lock report:*]\n"
                             "ttl = 1m\n"
                             "wait = forever\n"
                             "max_hold = 2h\n"
                             "note = first\n"
                             "note = nightly\n"
                             "[lock *]\n"
                             "wait = 0";

TEST(file, the_profile_wins_over_what_stands_before_it)
{
    hf_config *config = good_file(sample, "production");

    ASSERT_STREQ(hf_config_get(config, "ttl"), "10s");
    ASSERT_STREQ(hf_config_get(config, "note"), " two words ");
    ASSERT_STREQ(hf__config_url(config), "redis://h/0");
    config = good_file(sample, NULL);
    ASSERT_STREQ(hf_config_get(config, "ttl"), "20s");
    ASSERT_NULL(hf__config_url(config));
}

TEST(file, the_first_pattern_that_matches_counts)
{
    hf_config *config = good_file(sample, NULL);
    const struct hf__override *o = hf__config_override(config, "report:a/b");

    ASSERT_EQ(o->ttl_ms, 60000);
    ASSERT_EQ(o->wait_ms, HF_FOREVER);
    ASSERT_EQ(o->max_hold_ms, 7200000);
    ASSERT_STREQ(o->note, "nightly");
    o = hf__config_override(config, "other");
    ASSERT_EQ(o->ttl_ms, 0);
    ASSERT_EQ(o->wait_ms, 0);
    ASSERT_NULL(o->note);
    ASSERT_NULL(hf__config_override(config_new(), "other"));
}

TEST(file, mistakes_are_told_with_their_line)
{
    ASSERT_HAS(bad_file("ttl = 1s\nttl\n", NULL, HF_ECONFIG), "f.ini:2:");
    ASSERT_HAS(bad_file("= 1s", NULL, HF_ECONFIG), "no key before");
    ASSERT_HAS(bad_file("\n\n[x\n", NULL, HF_ECONFIG), "f.ini:3:");
    ASSERT_HAS(bad_file("[]\n", NULL, HF_ECONFIG), "needs a name");
    ASSERT_HAS(bad_file("[lock]\n", NULL, HF_ECONFIG), "pattern");
    ASSERT_HAS(bad_file("[lock a]\nprefix=x", NULL, HF_ECONFIG), "max_hold");
    ASSERT_HAS(bad_file("[lock a]\nttl=3", NULL, HF_ECONFIG), "no unit");
    ASSERT_HAS(bad_file("ttl = 3s # x", NULL, HF_ECONFIG), "comment");
    ASSERT_HAS(bad_file(sample, "staging", HF_ENOTFOUND), "[staging]");
}

TEST(file, other_profiles_are_checked_too)
{
    ASSERT_HAS(bad_file("[a]\nttl=1s\n[b]\nttl=5\n", "a", HF_ECONFIG),
               "f.ini:4: ttl");
    ASSERT_HAS(bad_file("[b]\ntttl=5s\n", NULL, HF_ECONFIG), "f.ini:2:");
}

TEST(file, a_bad_file_changes_nothing)
{
    static const char text[] = "ttl=9s\nnote=x\nbad\n";
    hf_config *config = config_new();

    set(config, "note", "mine");
    ASSERT_EQ(
        hf__config_parse(config, text, strlen(text), "f", NULL, NULL, NULL),
        HF_ECONFIG);
    ASSERT_STREQ(hf_config_get(config, "ttl"), "30s");
    ASSERT_STREQ(hf_config_get(config, "note"), "mine");
}

TEST(file, a_zero_byte_is_refused)
{
    ASSERT_EQ(
        hf__config_parse(config_new(), "ttl=1s\0", 7, "f", NULL, NULL, NULL),
        HF_ECONFIG);
}

static const char *file_new(const char *text, mode_t mode)
{
    static char path[512];
    int fd;

    snprintf(path, sizeof(path), "%s/file", tempdir_new());
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    ASSERT_EQ(fchmod(fd, mode), 0);
    close(fd);
    return path;
}

static int load(hf_config *config, const char *path, hf_error *err)
{
    return hf_config_load(config, path, NULL, err);
}

TEST(file, is_loaded_from_disk)
{
    hf_config *config = config_new();
    hf_error err;

    ASSERT_OK(load(config, file_new("ttl = 3s\n", 0644), &err), &err);
    ASSERT_STREQ(hf_config_get(config, "ttl"), "3s");
}

TEST(file, that_is_missing_or_no_file_is_an_error)
{
    hf_config *config = config_new();
    hf_error err;

    ASSERT_RC(load(config, "/nonexistent/x", &err), HF_ENOTFOUND, &err);
    ASSERT_HAS(err.text, "/nonexistent/x");
    ASSERT_RC(load(config, tempdir_new(), &err), HF_ECONFIG, &err);
    ASSERT_RC(load(NULL, "x", &err), HF_EINVAL, &err);
    ASSERT_RC(load(config, NULL, &err), HF_EINVAL, &err);
    ASSERT_RC(load(config, "/dev/zero", &err), HF_ECONFIG, &err);
}

TEST(file, with_a_password_must_be_private)
{
    hf_config *config = config_new();
    hf_error err;

    ASSERT_RC(load(config, file_new("password = x\n", 0644), &err), HF_ECONFIG,
              &err);
    ASSERT_HAS(err.text, "chmod 600");
    ASSERT_STREQ(hf_config_get(config, "password"), "");
    ASSERT_RC(load(config, file_new("url = redis://a:b@h\n", 0640), &err),
              HF_ECONFIG, &err);
    ASSERT_OK(load(config, file_new("password = x\n", 0600), &err), &err);
    ASSERT_STREQ(hf_config_get(config, "password"), "***");
}

TEST(file, the_password_is_the_first_line_of_its_file)
{
    hf_config *config = config_new();

    set(config, "password_file", file_new("hunter2\r\nmore\n", 0600));
    ASSERT_STREQ(resolve(config)->password, "hunter2");
}

TEST(file, a_bad_password_file_is_explained)
{
    hf_config *config = config_new();

    set(config, "password_file", file_new("x\n", 0644));
    ASSERT_HAS(unresolved(config), "chmod 600");
    set(config, "password_file", file_new("\n", 0600));
    ASSERT_HAS(unresolved(config), "empty");
    set(config, "password_file", "/nonexistent/x");
    ASSERT_HAS(unresolved(config), "cannot open");
    set(config, "password_file", "/dev/null");
    ASSERT_HAS(unresolved(config), "not a file");
}

TEST(file, the_higher_of_password_and_password_file_counts)
{
    hf_config *config = config_new();

    set(config, "password_file", file_new("from-file\n", 0600));
    hf__config_set_layer(config, HF__LAYER_URL, "password", "from-url", NULL);
    ASSERT_STREQ(resolve(config)->password, "from-file");
    set(config, "password", "from-code");
    ASSERT_HAS(unresolved(config), "both");
    set(config, "password_file", "");
    ASSERT_STREQ(resolve(config)->password, "from-code");
}

/*
 * The environment, in a child of its own
 */

static const char *environment(const char *variable, const char *value,
                               const char *key)
{
    hf_config *config = config_new();
    static hf_error err;

    setenv(variable, value, 1);
    if (hf__config_load_environment(config, &err) != 0)
        return err.text;
    return hf_config_get(config, key);
}

TEST_FORKED(environment, a_variable_is_a_key)
{
    clearenv();
    ASSERT_STREQ(
        environment("HOLDFAST_RETRY_MAX_INTERVAL", "9s", "retry.max_interval"),
        "9s");
    ASSERT_STREQ(environment("HOLDFAST_NOTE", "a=b", "note"), "a=b");
}

TEST_FORKED(environment, what_the_tools_use_is_not_a_key)
{
    clearenv();
    setenv("HOLDFAST_URL", "local:", 1);
    setenv("HOLDFAST_TOKEN", "1", 1);
    setenv("HOLDFAST_HELD", "a", 1);
    setenv("HOLDFAST_TEST_SEED", "1", 1);
    setenv("OTHER", "1", 1);
    ASSERT_STREQ(environment("HOLDFAST_TTL", "", "ttl"), "30s");
}

TEST_FORKED(environment, a_bad_value_names_its_variable)
{
    clearenv();
    ASSERT_HAS(environment("HOLDFAST_TTL", "5", "ttl"), "HOLDFAST_TTL");
}

TEST_FORKED(environment, an_unknown_variable_gets_a_hint)
{
    clearenv();
    ASSERT_HAS(environment("HOLDFAST_RETRY_BSE", "5s", "ttl"), "retry.base");
    clearenv();
    ASSERT_HAS(environment("HOLDFAST_QQQQQQ", "5s", "ttl"), "unset it");
}

/*
 * Options, capabilities, memory
 */

TEST(opts, init_is_the_macro)
{
    const hf_opts wanted = HF_OPTS_INIT;
    hf_opts opts;

    memset(&opts, 0xff, sizeof(opts));
    hf_opts_init(&opts, sizeof(opts));
    ASSERT_EQ(opts.size, wanted.size);
    ASSERT_EQ(opts.wait_ms, HF_CONFIGURED);
    ASSERT_NULL(opts.owner);
    hf_opts_init(NULL, sizeof(opts));
}

TEST(opts, init_keeps_to_the_callers_size)
{
    unsigned char bytes[sizeof(hf_opts) + 8];

    memset(bytes, 0xff, sizeof(bytes));
    hf_opts_init((hf_opts *)(void *)bytes, 16);
    ASSERT_EQ(bytes[16], 0xff);
    hf_opts_init((hf_opts *)(void *)bytes, sizeof(bytes));
    ASSERT_EQ(bytes[sizeof(bytes) - 1], 0);
}

TEST(capability, every_bit_has_one_name)
{
    ASSERT_STREQ(hf_capability_name(HF_CAP_FENCED), "fenced");
    ASSERT_STREQ(hf_capability_name(HF_CAP_DEATH_NOTICE), "death_notice");
    for (int bit = 0; bit < 16; bit++)
        ASSERT_NOT_NULL(hf_capability_name(UINT64_C(1) << bit));
    ASSERT_NULL(hf_capability_name(0));
    ASSERT_NULL(hf_capability_name(3));
    ASSERT_NULL(hf_capability_name(UINT64_C(1) << 63));
}

/* Everything that allocates, once. */
static int exercise(const char *path)
{
    struct hf__settings settings;
    hf_config *config = hf_config_new();
    hf_config *copy = NULL;
    int rc = config ? 0 : HF_ENOMEM;

    if (rc == 0)
        rc = hf_config_set(config, "note", "x", NULL);
    if (rc == 0)
        rc = hf_config_set(config, "url", "redis://a:b@h,i/0?ttl=3s", NULL);
    if (rc == 0)
        rc = hf_config_load(config, path, "p", NULL);
    if (rc == 0) {
        copy = hf__config_copy(config);
        rc = copy ? 0 : HF_ENOMEM;
    }
    if (rc == 0)
        rc = hf__config_resolve(copy, &settings, NULL);
    if (rc == 0)
        hf__settings_release(&settings);
    hf_config_free(copy);
    hf_config_free(config);
    return rc;
}

TEST_FORKED(config, every_failed_allocation_is_an_error_and_leaks_nothing)
{
    char path[512];
    long nth = 0;
    int rc;

    snprintf(path, sizeof(path), "%s",
             file_new("ttl=3s\n[p]\npassword=x\n[lock a]\nnote=n\n", 0600));
    heap_install();
    do {
        long before = heap_in_use();

        heap_fail_at(++nth);
        rc = exercise(path);
        ASSERT_EQ(heap_in_use(), before);
        ASSERT_EQ(rc, heap_has_failed() ? HF_ENOMEM : 0);
    } while (rc != 0);
    ASSERT_GT(nth, 40);
}
