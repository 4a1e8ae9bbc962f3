/* SPDX-License-Identifier: MIT */
/* fault_script_test.c - the language in which faults are ordered. */
#include "engines/wrap/fault_script.h"
#include "test.h"

static struct hf__fault_script parse(const char *text)
{
    struct hf__fault_script script;
    hf_error err;

    ASSERT_OK(hf__fault_parse(text, &script, &err), &err);
    return script;
}

static void assert_wrong(const char *text, const char *where)
{
    struct hf__fault_script script = {.n = 77};
    hf_error err;

    ASSERT_RC(hf__fault_parse(text, &script, &err), HF_ECONFIG, &err);
    ASSERT_HAS(err.text, where);
    ASSERT_EQ(script.n, 77);
}

TEST(fault_script, nothing_orders_nothing)
{
    struct hf__fault_script script = parse("");
    struct hf__fault_verdict verdict;

    ASSERT_EQ(script.n, 0);
    verdict = hf__fault_judge(&script, HF__FAULT_ACQUIRE);
    ASSERT_EQ(verdict.action, HF__FAULT_NONE);
    ASSERT_EQ(verdict.delay_ms, 0);
    ASSERT_EQ(parse(" ; ;").n, 0);
}

TEST(fault_script, a_rule_picks_its_calls)
{
    struct hf__fault_script script = parse("acquire:fail@3; renew:drop@2+");

    for (int i = 1; i <= 5; i++) {
        ASSERT_EQ(hf__fault_judge(&script, HF__FAULT_ACQUIRE).action,
                  i == 3 ? HF__FAULT_FAIL : HF__FAULT_NONE);
        ASSERT_EQ(hf__fault_judge(&script, HF__FAULT_RENEW).action,
                  i >= 2 ? HF__FAULT_DROP : HF__FAULT_NONE);
        ASSERT_EQ(hf__fault_judge(&script, HF__FAULT_RELEASE).action,
                  HF__FAULT_NONE);
    }
}

TEST(fault_script, a_rule_may_pick_a_range)
{
    struct hf__fault_script script = parse("release:cut@2-3");

    for (int i = 1; i <= 5; i++)
        ASSERT_EQ(hf__fault_judge(&script, HF__FAULT_RELEASE).action,
                  i == 2 || i == 3 ? HF__FAULT_CUT : HF__FAULT_NONE);
}

TEST(fault_script, failures_have_codes)
{
    struct hf__fault_script script =
        parse("acquire:fail@1;acquire:fail=ENOSPACE@2;acquire:fail=HF_EAUTH@3");

    ASSERT_EQ(hf__fault_judge(&script, HF__FAULT_ACQUIRE).code,
              HF_EUNAVAILABLE);
    ASSERT_EQ(hf__fault_judge(&script, HF__FAULT_ACQUIRE).code, HF_ENOSPACE);
    ASSERT_EQ(hf__fault_judge(&script, HF__FAULT_ACQUIRE).code, HF_EAUTH);
}

TEST(fault_script, delays_add_up_and_the_first_action_applies)
{
    struct hf__fault_script script =
        parse("acquire:delay=200ms;acquire:delay=1s;acquire:drop;acquire:fail");
    struct hf__fault_verdict verdict =
        hf__fault_judge(&script, HF__FAULT_ACQUIRE);

    ASSERT_EQ(verdict.delay_ms, 1200);
    ASSERT_EQ(verdict.action, HF__FAULT_DROP);
}

TEST(fault_script, a_rule_without_a_call_speaks_of_all)
{
    struct hf__fault_script script = parse("down=2s@3");
    struct hf__fault_verdict verdict;

    (void)hf__fault_judge(&script, HF__FAULT_ACQUIRE);
    (void)hf__fault_judge(&script, HF__FAULT_RENEW);
    verdict = hf__fault_judge(&script, HF__FAULT_RELEASE);
    ASSERT_EQ(verdict.action, HF__FAULT_DOWN);
    ASSERT_EQ(verdict.ms, 2000);
    ASSERT_TRUE(hf__fault_concerns(&script, HF__FAULT_QUERY));
    ASSERT_FALSE(hf__fault_concerns(&script, HF__FAULT_HOLD));
    ASSERT_EQ(parse("any:fail").rules[0].calls, parse("fail").rules[0].calls);
}

static int count_failures(const char *text)
{
    struct hf__fault_script script = parse(text);
    int failures = 0;

    for (int i = 0; i < 1000; i++)
        failures += hf__fault_judge(&script, HF__FAULT_ACQUIRE).action ==
                    HF__FAULT_FAIL;
    return failures;
}

TEST(fault_script, chance_follows_its_seed)
{
    int failures = count_failures("seed=7;acquire:fail~20");

    ASSERT_GT(failures, 120);
    ASSERT_LT(failures, 280);
    ASSERT_EQ(count_failures("acquire:fail%20;seed=7"), failures);
    ASSERT_NE(count_failures("seed=8;acquire:fail~20"), failures);
    ASSERT_EQ(count_failures("seed=7;acquire:fail~0"), 0);
    ASSERT_EQ(count_failures("seed=7;acquire:fail~100"), 1000);
}

TEST(fault_script, mistakes_are_shown_where_they_are)
{
    assert_wrong("acquire:explode", "character 9");
    assert_wrong("renew:drop; explode", "character 13");
    assert_wrong("explode:fail", "before the colon");
    assert_wrong("acquire:delay", "time");
    assert_wrong("acquire:delay=5", "unit");
    assert_wrong("acquire:delay=1234567890123456789012345678901234ms", "long");
    assert_wrong("acquire:drop=5s", "no value");
    assert_wrong("acquire:fail=ENOPE", "error's name");
    assert_wrong("acquire:lost", "cannot have");
    assert_wrong("hold:fail", "cannot have");
    assert_wrong("acquire:fail@", "number");
    assert_wrong("acquire:fail@0", "from 1");
    assert_wrong("acquire:fail@5-2", "from 1");
    assert_wrong("acquire:fail~101", "0 to 100");
    assert_wrong("acquire:fail~x", "number");
    assert_wrong("acquire:fail x", "\";\"");
    assert_wrong("seed=x", "number");
    assert_wrong("f;", "actions");
}

TEST(fault_script, thirty_two_rules_are_enough)
{
    char text[512] = "";

    for (int i = 0; i < HF__FAULT_RULES; i++)
        strcat(text, "renew:cut;");
    ASSERT_EQ(parse(text).n, HF__FAULT_RULES);
    strcat(text, "renew:cut");
    assert_wrong(text, "32 rules");
}
