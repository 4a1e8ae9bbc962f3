/* SPDX-License-Identifier: MIT */
/* file_fuzz.c - INI files: all or nothing, and every error has its line. */
#include "config/config.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hf_config *config = hf_config_new();
    hf_error err = {0};
    int rc = hf__config_parse(config, (const char *)data, size, "f", "p", NULL,
                              &err);

    CHECK(rc == 0 || rc == HF_ECONFIG || rc == HF_ENOTFOUND);
    if (rc != 0) {
        CHECK(strncmp(err.text, "f:", 2) == 0);
        CHECK(strcmp(hf_config_get(config, "ttl"), "30s") == 0);
        CHECK(!hf__config_override(config, "a"));
    } else {
        const struct hf__override *o = hf__config_override(config, "a");

        CHECK(!o || (o->ttl_ms >= 0 && o->max_hold_ms >= 0));
    }
    hf_config_free(config);
    return 0;
}
