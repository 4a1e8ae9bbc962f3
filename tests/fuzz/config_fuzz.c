/* SPDX-License-Identifier: MIT */
/*
 * config_fuzz.c - key=value lines: what is accepted can be read back, copied
 * and resolved; what is not has a sentence.
 */
#include "config/config.h"

#include "fuzz.h"

static void set(hf_config *config, char *line)
{
    char *value = strchr(line, '=');
    hf_error err = {0};
    int rc;

    if (!value)
        return;
    *value++ = '\0';
    /* The file system is no business of this target. */
    if (strcmp(line, "password_file") == 0)
        return;
    rc = hf_config_set(config, line, value, &err);
    CHECK(rc == 0 || (rc == HF_ECONFIG && err.text[0]));
    if (rc == 0) {
        CHECK(hf_config_get(config, line));
        CHECK(hf__config_check(line, value, NULL) == 0);
    }
}

static void check_resolve(const hf_config *config)
{
    struct hf__settings settings;
    hf_error err = {0};
    int rc = hf__config_resolve(config, &settings, &err);

    if (rc != 0) {
        CHECK(rc == HF_ECONFIG && err.text[0]);
        return;
    }
    CHECK(settings.ttl_ms >= 10);
    CHECK(settings.wait_ms >= HF_FOREVER);
    CHECK(settings.retry_base_ms <= settings.retry_max_interval_ms);
    CHECK(settings.drift >= 0 && settings.drift <= 0.5);
    hf__settings_release(&settings);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    hf_config *config = hf_config_new();
    hf_config *copy;
    char *rest = NULL;

    for (char *line = strtok_r(text, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest))
        set(config, line);
    copy = hf__config_copy(config);
    check_resolve(copy);
    hf_config_free(copy);
    hf_config_free(config);
    free(text);
    return 0;
}
