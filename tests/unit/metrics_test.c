/* SPDX-License-Identifier: MIT */
/* metrics_test.c - counters, histograms, and their text. */
#include "core/metrics.h"

#include "lib/test.h"

static void release(void *buf)
{
    hf__buf_release(buf);
}

static const char *render(const struct hf__metrics *metrics)
{
    static struct hf__buf buf;

    hf__metrics_render(metrics, "local", &buf);
    test_defer(release, &buf);
    ASSERT_FALSE(hf__buf_failed(&buf));
    return hf__buf_text(&buf);
}

TEST(metrics, a_value_lands_in_the_bucket_that_ends_above_it)
{
    ASSERT_EQ(hf__histogram_place(0), 0);
    ASSERT_EQ(hf__histogram_place(1023), 0);
    ASSERT_EQ(hf__histogram_place(1024), 1);
    ASSERT_EQ(hf__histogram_place(UINT64_MAX), HF__BUCKETS - 1);
    for (unsigned place = 0; place + 1 < HF__BUCKETS; place++) {
        ASSERT_EQ(hf__histogram_place(hf__histogram_end(place) - 1), place);
        ASSERT_EQ(hf__histogram_place(hf__histogram_end(place)), place + 1);
    }
}

TEST(metrics, acquires_are_counted_by_result)
{
    struct hf__metrics metrics = {0};
    const char *text;

    hf__metrics_acquired(&metrics, 0, 5000);
    hf__metrics_acquired(&metrics, 0, -5);
    hf__metrics_acquired(&metrics, HF_EBUSY, 0);
    hf__metrics_acquired(&metrics, HF_ETIMEOUT, 0);
    hf__metrics_acquired(&metrics, HF_ECANCELED, 0);
    hf__metrics_acquired(&metrics, HF_EUNKNOWN, 0);
    hf__metrics_acquired(&metrics, HF_EUNAVAILABLE, 0);
    hf__metrics_acquired(&metrics, HF_EDEADLK, 0);
    hf__metrics_acquired(&metrics, HF_ENOSPACE, 0);
    hf__metrics_acquired(&metrics, HF_ELOST, 0);
    hf__metrics_acquired(&metrics, -1000, 0);
    hf__metrics_reentered(&metrics);
    text = render(&metrics);
    ASSERT_HAS(text, "acquires_total{engine=\"local\",result=\"held\"} 2\n");
    ASSERT_HAS(text, "result=\"busy\"} 1\n");
    ASSERT_HAS(text, "result=\"timeout\"} 1\n");
    ASSERT_HAS(text, "result=\"canceled\"} 1\n");
    ASSERT_HAS(text, "result=\"unknown\"} 1\n");
    ASSERT_HAS(text, "result=\"unavailable\"} 1\n");
    ASSERT_HAS(text, "result=\"deadlock\"} 1\n");
    ASSERT_HAS(text, "result=\"error\"} 3\n");
    ASSERT_HAS(text, "result=\"reentered\"} 1\n");
    ASSERT_HAS(text, "holdfast_wait_seconds_count{engine=\"local\"} 2\n");
}

TEST(metrics, histograms_are_cumulative_and_in_seconds)
{
    struct hf__metrics metrics = {0};
    const char *text;

    hf__metrics_released(&metrics, 500);
    hf__metrics_released(&metrics, 1500);
    hf__metrics_lost(&metrics, HF__LOST_EXPIRED, INT64_MAX / 2);
    text = render(&metrics);
    ASSERT_HAS(text, "hold_seconds_bucket{engine=\"local\",le=\"1.024e-06\"} "
                     "1\n");
    ASSERT_HAS(text, "hold_seconds_bucket{engine=\"local\",le=\"2.048e-06\"} "
                     "2\n");
    ASSERT_HAS(text, "hold_seconds_bucket{engine=\"local\",le=\"+Inf\"} 3\n");
    ASSERT_HAS(text, "hold_seconds_count{engine=\"local\"} 3\n");
    ASSERT_HAS(text, "lost_total{engine=\"local\",reason=\"expired\"} 1\n");
    ASSERT_HAS(text, "releases_total{engine=\"local\"} 2\n");
}

TEST(metrics, renewals_have_a_margin)
{
    struct hf__metrics metrics = {.engine_up = true, .held = 3};
    const char *text;

    hf__metrics_renewed(&metrics, 19 * INT64_C(1000000000));
    hf__metrics_renewal_failed(&metrics, HF__RENEWAL_OVERDUE);
    text = render(&metrics);
    ASSERT_HAS(text, "renewals_total{engine=\"local\",result=\"ok\"} 1\n");
    ASSERT_HAS(text, "result=\"overdue\"} 1\n");
    ASSERT_HAS(text, "lease_margin_seconds_sum{engine=\"local\"} "
                     "19.000000000\n");
    ASSERT_HAS(text, "holdfast_engine_up{engine=\"local\"} 1\n");
    ASSERT_HAS(text, "holdfast_held{engine=\"local\"} 3\n");
}

TEST(metrics, every_line_is_help_type_or_a_series)
{
    struct hf__metrics metrics = {0};
    const char *text = render(&metrics);

    while (*text) {
        ASSERT_TRUE(strncmp(text, "# HELP holdfast_", 16) == 0 ||
                    strncmp(text, "# TYPE holdfast_", 16) == 0 ||
                    strncmp(text, "holdfast_", 9) == 0);
        text = strchr(text, '\n');
        ASSERT_NOT_NULL(text);
        text++;
    }
}

TEST(metrics, every_reason_has_a_word)
{
    for (int reason = 0; reason < HF__LOST_REASONS; reason++)
        ASSERT_STRNE(hf__metrics_lost_word(reason), "unknown");
    ASSERT_STREQ(hf__metrics_lost_word(-1), "unknown");
    ASSERT_STREQ(hf__metrics_lost_word(HF__LOST_REASONS), "unknown");
}

TEST(buf, grows_and_is_always_terminated)
{
    struct hf__buf buf = {0};
    char *text;

    ASSERT_STREQ(hf__buf_text(&buf), "");
    for (int i = 0; i < 1000; i++)
        hf__buf_printf(&buf, "%d,", i % 10);
    hf__buf_add_char(&buf, '!');
    ASSERT_EQ(buf.len, 2001);
    ASSERT_EQ(strlen(hf__buf_text(&buf)), 2001);
    text = hf__buf_steal(&buf);
    ASSERT_EQ(text[2000], '!');
    hf__free(text);
    ASSERT_EQ(buf.size, 0);
}

TEST(buf, writes_numbers_whole)
{
    struct hf__buf buf = {0};

    hf__buf_add_number(&buf, 0);
    hf__buf_add_char(&buf, ' ');
    hf__buf_add_number(&buf, 1090);
    hf__buf_add_char(&buf, ' ');
    hf__buf_add_number(&buf, UINT64_MAX);
    ASSERT_STREQ(hf__buf_text(&buf), "0 1090 18446744073709551615");
    hf__buf_release(&buf);
}

TEST(buf, an_empty_one_is_stolen_as_an_empty_text)
{
    struct hf__buf buf = {0};
    char *text = hf__buf_steal(&buf);

    ASSERT_STREQ(text, "");
    hf__free(text);
}

static void *no_memory(size_t size, void *ctx)
{
    (void)size;
    (void)ctx;
    return NULL;
}

static void *no_more_memory(void *memory, size_t size, void *ctx)
{
    (void)memory;
    (void)size;
    (void)ctx;
    return NULL;
}

static void nothing(void *memory, void *ctx)
{
    (void)memory;
    (void)ctx;
}

static void restore_allocator(void *unused)
{
    (void)unused;
    hf_set_allocator(NULL);
}

TEST(buf, a_failed_allocation_is_remembered_and_told_once)
{
    static const hf_allocator empty = {no_memory, no_more_memory, nothing,
                                       NULL};
    struct hf__buf buf = {0};

    hf_set_allocator(&empty);
    test_defer(restore_allocator, NULL);
    hf__buf_add(&buf, "lost");
    ASSERT_TRUE(hf__buf_failed(&buf));
    hf_set_allocator(NULL);
    hf__buf_add(&buf, "also dropped");
    ASSERT_STREQ(hf__buf_text(&buf), "");
    ASSERT_NULL(hf__buf_steal(&buf));
    ASSERT_FALSE(hf__buf_failed(&buf));
}
