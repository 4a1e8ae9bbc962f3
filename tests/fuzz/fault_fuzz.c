/* SPDX-License-Identifier: MIT */
/* fault_fuzz.c - scripts of the fault engine: what parses can be asked. */
#include "engines/wrap/fault_script.h"
#include "fuzz.h"

static void check_rules(const struct hf__fault_script *script)
{
    CHECK(script->n <= HF__FAULT_RULES);
    for (size_t i = 0; i < script->n; i++) {
        const struct hf__fault_rule *rule = &script->rules[i];

        CHECK(rule->calls != 0 && rule->action != HF__FAULT_NONE);
        CHECK(rule->first >= 1 && rule->first <= rule->last);
        CHECK(rule->percent >= 0 && rule->percent <= 100);
        CHECK(rule->ms >= 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct hf__fault_script script = {.n = 0};
    hf_error err = {0};
    int rc = hf__fault_parse(text, &script, &err);

    if (rc == 0)
        check_rules(&script);
    else
        CHECK(rc == HF_ECONFIG && err.text[0]);
    free(text);
    return 0;
}
