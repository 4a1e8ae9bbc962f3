/* SPDX-License-Identifier: MIT */
/*
 * stores.c - other stores of this user and machine.
 *
 * "local:" means one directory, which depends on the user alone. It changes
 * when an administrator makes or removes /run/holdfast, and older versions
 * chose by the environment. Then the locks of those who began before are in
 * another store, and exclude nobody here. So we look for such stores.
 *
 * Failure: a store that we may not open is somebody else's, and not told.
 */
#include "stores.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inherit.h"
#include "talk.h"
#include "text.h"

static int count_holder(const hf_lock_info *info, void *ctx)
{
    *(int *)ctx += info->role == HF_HOLDER;
    return 0;
}

static int holders_in(const char *url)
{
    hf_client *client = NULL;
    int holders = 0;

    if (hf_open(url, /* config= */ NULL, &client, /* err= */ NULL) != 0)
        return 0;
    (void)hf_list(client, "", count_holder, &holders, NULL);
    hf_close(client);
    return holders;
}

static bool is_store(const char *directory)
{
    char path[PATH_MAX + 8];

    snprintf(path, sizeof(path), "%s/table", directory);
    return access(path, R_OK | W_OK) == 0;
}

static void look_in(const char *directory, const char *ours, stores_cb *tell,
                    void *ctx)
{
    char url[PATH_MAX + 16];
    int holders;

    snprintf(url, sizeof(url), "local://%s", directory);
    /* What a URL would read otherwise is in no usual path. */
    if (directory[0] != '/' || strpbrk(directory, "?#%") ||
        strcmp(url, ours) == 0 || !is_store(directory))
        return;
    holders = holders_in(url);
    if (holders > 0)
        tell(url, holders, ctx);
}

void stores_others(const hf_client *client, stores_cb *tell, void *ctx)
{
    const char *ours = hf_client_url(client);
    const char *home = secure_getenv("HOME");
    const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
    char path[PATH_MAX];

    if (!inherit_is_default())
        return;
    look_in("/run/holdfast", ours, tell, ctx);
    snprintf(path, sizeof(path), "/run/lock/holdfast-%u", (unsigned)geteuid());
    look_in(path, ours, tell, ctx);
    snprintf(path, sizeof(path), "%s/.local/state/holdfast", home ? home : "");
    look_in(path, ours, tell, ctx);
    snprintf(path, sizeof(path), "%s/holdfast", runtime ? runtime : "");
    look_in(path, ours, tell, ctx);
}

static void warn(const char *url, int holders, void *ctx)
{
    const hf_client *client = ctx;

    talk_say("%s has %d holder%s that %s does not see", text_safe(url), holders,
             holders == 1 ? "" : "s", text_safe(hf_client_url(client)));
}

void stores_warn(const hf_client *client)
{
    if (!cli.quiet)
        stores_others(client, warn, (void *)(uintptr_t)client);
}
