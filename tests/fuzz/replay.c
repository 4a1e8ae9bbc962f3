/* SPDX-License-Identifier: MIT */
/* replay.c - feed a fuzz target with files, where there is no libFuzzer. */
#include <dirent.h>

#include "fuzz.h"

static void replay_file(const char *path)
{
    static uint8_t bytes[1 << 16];
    static uint8_t before[1 << 16]; /* the file before this one */
    static size_t n_before;
    FILE *file = fopen(path, "rb");
    size_t len = 0;
    size_t n;

    CHECK(file);
    n = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    /* Every prefix too: cheap, and parsers end in odd places. Those that the
     * file before has in common with this one have been tried. */
    while (len < n && len < n_before && bytes[len] == before[len])
        len++;
    for (; len <= n; len++)
        LLVMFuzzerTestOneInput(bytes, len);
    memcpy(before, bytes, n);
    n_before = n;
}

int main(int argc, char **argv)
{
    int files = 0;

    for (int i = 1; i < argc; i++) {
        DIR *dir = opendir(argv[i]);
        struct dirent *entry;
        char path[4096];

        CHECK(dir);
        while ((entry = readdir(dir)) != NULL) {
            if (entry->d_name[0] == '.')
                continue;
            snprintf(path, sizeof(path), "%s/%s", argv[i], entry->d_name);
            replay_file(path);
            files++;
        }
        closedir(dir);
    }
    CHECK(files > 0);
    printf("%d files replayed\n", files);
    return 0;
}
