/* SPDX-License-Identifier: MIT */
/* settings_fuzz.c - foreign settings: what is read is whole, or an error. */
#include "../../cli/settings.h"

#include "fuzz.h"

typedef bool read_fn(struct settings *settings, const char *text, size_t len);

static void check(const char *text, read_fn *read)
{
    struct settings settings = {0};

    if (!read(&settings, text, strlen(text)))
        CHECK(settings.error[0]);
    CHECK(settings.n <= SETTINGS_MAX);
    for (size_t i = 0; i < settings.n; i++) {
        const struct setting *setting = &settings.list[i];

        CHECK(setting->key[0] && strlen(setting->key) <= SETTINGS_KEY);
        CHECK(setting->line > 0 && setting->document <= settings.documents);
        CHECK(strlen(setting->value) <= strlen(text));
    }
    settings_release(&settings);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);

    check(text, settings_read_yaml);
    check(text, settings_read_properties);
    free(text);
    return 0;
}
