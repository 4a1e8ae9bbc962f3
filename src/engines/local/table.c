/* SPDX-License-Identifier: MIT */
/*
 * table.c - open, check, map and grow the store.
 *
 * A client maps the file once, at the largest size it may get, so that growth
 * never moves anything. It allocates memory with fallocate() before it uses
 * it: a full disk is an error then, and never SIGBUS. Growth takes no lock:
 * allocating twice is allocating once, and a client that finds a segment
 * claimed but not counted counts it.
 *
 * A table belongs to one boot of one kernel: life words and instants mean
 * nothing to another. Clients hold a shared flock() on the file; a client
 * replaces a table of another boot only if no client has that lock, because
 * then those clients have died with their kernel.
 *
 * Failure: a file that is not a table of ours is an error that names the
 * reason, and stays as it is. A client may be killed anywhere between create
 * and rename: the next one starts over.
 */
#include "engines/local/table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "engines/local/directory.h"

static const char magic[8] = {'h', 'o', 'l', 'd', 'f', 'a', 's', 't'};
static const char file_name[] = "table";
static const char new_name[] = "table.new";

#ifdef HF__LOCAL_POINTS
void (*hf__local_point)(const char *name);
#endif

#if defined(__SANITIZE_THREAD__)
void hf__table_fence(void)
{
    static _Atomic uint32_t word;

    (void)atomic_fetch_add(&word, 1);
}
#endif

int hf__table_damaged(hf_error *err, const char *what)
{
    /* Not HF_EUNAVAILABLE: a retry does not help. */
    return hf__fail(err, HF_ECONFIG,
                    "the store is damaged (%s): stop its users, then delete "
                    "the file \"table\" in its directory",
                    what);
}

/* ---- memory ------------------------------------------------------------ */

/* Beyond RLIMIT_FSIZE the kernel would send SIGXFSZ. */
static int check_limit(uint64_t end, hf_error *err)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
        limit.rlim_cur != RLIM_INFINITY && end > limit.rlim_cur)
        return hf__fail(err, HF_ENOSPACE,
                        "the local store may not grow: raise the limit of "
                        "file sizes (ulimit -f)");
    return 0;
}

/* Have memory for a range of the file. */
static int reserve(int fd, uint64_t offset, uint64_t len, hf_error *err)
{
    int rc = check_limit(offset + len, err);

    if (rc != 0)
        return rc;
    do
        rc = fallocate(fd, 0, (off_t)offset, (off_t)len);
    while (rc != 0 && errno == EINTR);
    if (rc == 0)
        return 0;
    if (errno == EOPNOTSUPP || errno == ENOSYS)
        return hf__fail_engine(err, HF_ECONFIG, errno,
                               "the file system of the local store cannot "
                               "reserve space: use a tmpfs, or another one");
    return hf__fail_engine(err, HF_ENOSPACE, errno,
                           "the local store is full: %s; make room in its "
                           "file system",
                           strerror(errno));
}

bool hf__table_reach(struct hf__table *table, uint64_t units)
{
    uint64_t segments =
        atomic_load_explicit(&table->header->segments, memory_order_acquire);
    uint64_t end = HF__TABLE_HEAP_AT + segments * HF__TABLE_SEGMENT;
    struct stat st;

    if (segments > HF__TABLE_SEGMENTS || end > table->size)
        return false;
    if (fstat(table->fd, &st) != 0 || (uint64_t)st.st_size < end)
        return false;
    table->units = (uint32_t)segments * HF__TABLE_UNITS;
    return units <= table->units;
}

static int grow_room(struct hf__table *table, uint32_t first, uint32_t count,
                     hf_error *err)
{
    uint64_t at = HF__TABLE_HEAP_AT + (uint64_t)first * HF__TABLE_SEGMENT;
    uint64_t len = (uint64_t)count * HF__TABLE_SEGMENT;

    if ((uint64_t)first + count > HF__TABLE_SEGMENTS || at + len > table->size)
        return hf__fail(err, HF_ENOSPACE,
                        "the local store has reached its largest size%s",
                        table->size < HF__TABLE_SIZE
                            ? ": raise the limit of address space (ulimit -v)"
                            : "");
    return reserve(table->fd, at, len, err);
}

int hf__table_grow(struct hf__table *table, unsigned size_class, hf_error *err)
{
    struct hf__table_header *header = table->header;

    for (;;) {
        uint32_t first = atomic_load(&header->segments);
        uint8_t seen = first < HF__TABLE_SEGMENTS
                           ? atomic_load(&table->map[first])
                           : (uint8_t)0;
        unsigned want = seen != 0 ? seen : size_class;
        uint32_t count = want == HF__TABLE_CLASSES ? 16 : 1;
        uint32_t counted = first;
        int rc;

        if (want > HF__TABLE_CLASSES)
            return hf__table_damaged(err, "segment map");
        rc = grow_room(table, first, count, err);
        if (rc != 0)
            return rc;
        if (seen == 0 && !atomic_compare_exchange_strong(
                             &table->map[first], &seen, (uint8_t)size_class))
            continue; /* another client's: count it */
        HF__POINT("grow");
        if (!atomic_compare_exchange_strong(&header->segments, &counted,
                                            first + count))
            continue;
        (void)atomic_fetch_add(&header->classes[want], 1);
        (void)atomic_fetch_add(
            &header->free[want],
            (int32_t)(count * HF__TABLE_UNITS / hf__class_units(want)));
        if (want != size_class)
            continue;
        if (!hf__table_reach(table,
                             ((uint64_t)first + count) * HF__TABLE_UNITS))
            return hf__table_damaged(err, "size");
        return 0;
    }
}

int hf__table_reserve_slots(struct hf__table *table, uint32_t count,
                            hf_error *err)
{
    uint64_t len = (uint64_t)count * sizeof(struct hf__table_slot);

    if (count > HF__TABLE_SLOTS)
        return hf__fail(err, HF_ENOSPACE,
                        "the local store has room for %d clients only",
                        (int)HF__TABLE_SLOTS);
    len = (len + 4095) & ~UINT64_C(4095);
    return reserve(table->fd, HF__TABLE_SLOTS_AT, len, err);
}

/* ---- which kernel, which clock ----------------------------------------- */

static ssize_t read_text(const char *path, char *to, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        return -1;
    n = read(fd, to, size - 1);
    (void)close(fd); /* only read */
    to[n < 0 ? 0 : n] = '\0';
    return n;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A file of /proc cannot be read: @why, unless there is no descriptor for it. */
static int cannot_read(int code, const char *why, hf_error *err)
{
    if (errno == EMFILE || errno == ENFILE)
        return hf__fail_engine(err, HF_ENOMEM, errno,
                               "no descriptors left: raise the limit "
                               "(ulimit -n)");
    return hf__fail(err, code, "%s", why);
}

static int read_boot_id(uint8_t to[16], hf_error *err)
{
    char text[64];
    size_t n = 0;

    errno = 0;
    if (read_text("/proc/sys/kernel/random/boot_id", text, sizeof(text)) < 36)
        return cannot_read(HF_EUNAVAILABLE,
                           "cannot read /proc/sys/kernel/random/boot_id: mount "
                           "/proc",
                           err);
    memset(to, 0, 16);
    for (const char *c = text; *c != '\0' && n < 32; c++) {
        int digit = hex_digit(*c);

        if (digit < 0)
            continue;
        to[n / 2] = (uint8_t)(to[n / 2] << 4 | digit);
        n++;
    }
    return 0;
}

/* A time namespace shifts CLOCK_BOOTTIME by a constant; the table knows only
 * the unshifted one. timens_offsets tells of the children's namespace: that is
 * ours if both links lead to the same. */
static int read_offset(int64_t *ret_ns, hf_error *err)
{
    char own[64] = "";
    char children[64] = "";
    char text[160];
    const char *line;
    long long seconds = 0;
    long long ns = 0;

    *ret_ns = 0;
    if (readlink("/proc/self/ns/time", own, sizeof(own) - 1) < 0)
        return 0; /* a kernel without time namespaces */
    errno = 0;
    if (readlink("/proc/self/ns/time_for_children", children,
                 sizeof(children) - 1) < 0 ||
        strcmp(own, children) != 0 ||
        read_text("/proc/self/timens_offsets", text, sizeof(text)) < 0)
        return cannot_read(HF_ECONFIG,
                           "cannot tell the clock of this time namespace, so "
                           "leases would be wrong: start a new process in it",
                           err);
    line = strstr(text, "boottime");
    if (line && sscanf(line, "boottime %lld %lld", &seconds, &ns) == 2)
        *ret_ns = seconds * HF_SECOND + ns;
    return 0;
}

/* ---- make -------------------------------------------------------------- */

static int write_header(int fd, uint64_t floor, hf_error *err)
{
    struct hf__table_header header;
    int rc;

    memset(&header, 0, sizeof(header));
    memcpy(header.magic, magic, sizeof(magic));
    header.layout = HF__TABLE_LAYOUT;
    header.buckets = HF__TABLE_BUCKETS;
    header.slots = HF__TABLE_SLOTS;
    header.segments_max = HF__TABLE_SEGMENTS;
    header.floor = floor;
    atomic_init(&header.segments, 1); /* so that no block has the number 0 */
    rc = read_boot_id(header.boot_id, err);
    if (rc != 0)
        return rc;
    if (hf__world->random(header.seed, sizeof(header.seed)) != 0)
        return hf__fail(err, HF_EINTERNAL, "no random numbers");
    if (pwrite(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header))
        return hf__fail_engine(err, HF_ENOSPACE, errno,
                               "cannot write the local store: %s",
                               strerror(errno));
    return 0;
}

/* Write a whole table under another name, then rename it: no client sees an
 * incomplete one. */
static int make(int directory_fd, bool group, uint64_t floor, hf_error *err)
{
    const uint64_t first_size = HF__TABLE_HEAP_AT + HF__TABLE_SEGMENT;
    int fd;
    int rc;

    (void)unlinkat(directory_fd, new_name, 0); /* cut short last time */
    fd = openat(directory_fd, new_name,
                O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return hf__fail_engine(err, HF_ENOSPACE, errno,
                               "cannot make the local store: %s",
                               strerror(errno));
    rc = check_limit(first_size, err);
    if (rc == 0)
        rc = reserve(fd, 0, HF__TABLE_SLOTS_AT, err);
    if (rc == 0 && ftruncate(fd, (off_t)first_size) != 0)
        rc =
            hf__fail_engine(err, HF_ENOSPACE, errno,
                            "cannot make the local store: %s", strerror(errno));
    if (rc == 0)
        rc = write_header(fd, floor, err);
    if (rc == 0 && group && fchmod(fd, 0660) != 0)
        rc = hf__fail_engine(err, HF_ECONFIG, errno,
                             "cannot let the group use the local store: %s",
                             strerror(errno));
    HF__POINT("make");
    if (rc == 0 && renameat(directory_fd, new_name, directory_fd, file_name))
        rc =
            hf__fail_engine(err, HF_EUNAVAILABLE, errno,
                            "cannot name the local store: %s", strerror(errno));
    if (rc != 0)
        (void)unlinkat(directory_fd, new_name, 0);
    (void)close(fd);
    return rc;
}

/* ---- open -------------------------------------------------------------- */

/* The directory's owner may have made it; directory.c trusts that user. */
static bool is_ours(const struct stat *st, const struct hf__place *place)
{
    struct stat directory;

    return st->st_uid == geteuid() || (fstat(place->fd, &directory) == 0 &&
                                       st->st_uid == directory.st_uid);
}

static int check_file(const struct hf__table *table, const struct stat *st,
                      const struct hf__place *place, hf_error *err)
{
    bool group = place->group;
    mode_t forbidden = group ? 0007 : 0077;

    if (!S_ISREG(st->st_mode) || st->st_nlink != 1)
        return hf__fail(err, HF_ECONFIG,
                        "\"table\" in the directory of the local store is "
                        "not a file of ours: remove it");
    if (!group && !is_ours(st, place))
        return hf__fail(err, HF_ECONFIG,
                        "the local store belongs to user %u: use a directory "
                        "of your own",
                        (unsigned)st->st_uid);
    if (st->st_mode & forbidden)
        return hf__fail(err, HF_ECONFIG,
                        "the local store has mode %03o: others could break "
                        "its locks; chmod %s the file \"table\"",
                        (unsigned)st->st_mode & 0777, group ? "0660" : "0600");
    if (group && hf__place_listed(place, table->fd, "system.posix_acl_access"))
        return hf__fail(err, HF_ECONFIG,
                        "the local store has an access list that lets others "
                        "than its group write: setfacl -b the file \"table\"");
    if ((uint64_t)st->st_size < HF__TABLE_SLOTS_AT)
        return hf__table_damaged(err, "size");
    return 0;
}

static int check_header(const struct hf__table_header *header, hf_error *err)
{
    if (memcmp(header->magic, magic, sizeof(magic)) != 0)
        return hf__table_damaged(err, "not a table");
    if (header->layout != HF__TABLE_LAYOUT)
        return hf__fail(err, HF_ECONFIG,
                        "the local store has layout %u, this library knows "
                        "%d: use one version of holdfast for one directory",
                        header->layout, (int)HF__TABLE_LAYOUT);
    if (header->buckets != HF__TABLE_BUCKETS ||
        header->slots != HF__TABLE_SLOTS ||
        header->segments_max != HF__TABLE_SEGMENTS)
        return hf__table_damaged(err, "geometry");
    return 0;
}

/* 0; 1: of another boot, and not in use; or an error. */
static int check_boot(int fd, const struct hf__table_header *header,
                      hf_error *err)
{
    uint8_t boot_id[16];
    int rc = read_boot_id(boot_id, err);

    if (rc != 0)
        return rc;
    if (memcmp(boot_id, header->boot_id, sizeof(boot_id)) == 0)
        return 0;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        return hf__fail(err, HF_ECONFIG,
                        "the local store is in use under another kernel: a "
                        "directory cannot be shared between machines");
    return 1;
}

/* Address space may be limited: then the table can grow less. */
static int map_file(struct hf__table *table, hf_error *err)
{
    uint64_t size = HF__TABLE_SIZE;
    void *base;

    if (sizeof(void *) < 8)
        size = HF__TABLE_HEAP_AT + (UINT64_C(256) << 20);
    for (;;) {
        base = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_NORESERVE, table->fd, 0);
        if (base != MAP_FAILED)
            break;
        if (size < HF__TABLE_HEAP_AT + (UINT64_C(8) << 20))
            return hf__fail_engine(err, HF_ENOMEM, errno,
                                   "cannot map the local store: %s",
                                   strerror(errno));
        size = HF__TABLE_HEAP_AT + (size - HF__TABLE_HEAP_AT) / 4;
    }
    table->base = base;
    table->size = size;
    /* A forked child must not write to it, a core dump need not carry it. */
    (void)madvise(base, (size_t)size, MADV_DONTFORK);
    (void)madvise(base, (size_t)size, MADV_DONTDUMP);
    table->header = base;
    table->map = (_Atomic uint8_t *)(void *)(table->base + HF__TABLE_MAP_AT);
    table->buckets = (void *)(table->base + HF__TABLE_BUCKETS_AT);
    table->slots = (void *)(table->base + HF__TABLE_SLOTS_AT);
    table->heap = table->base + HF__TABLE_HEAP_AT;
    return 0;
}

/* 0; 1: there is none that may be used; or an error. */
static int open_file(struct hf__table *table, const struct hf__place *place,
                     uint64_t *floor, hf_error *err)
{
    struct hf__table_header header;
    struct stat st;
    int rc;

    table->fd = openat(table->directory_fd, file_name,
                       O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (table->fd < 0 && errno == ENOENT)
        return 1;
    if (table->fd < 0)
        return hf__fail_engine(err, errno == EACCES ? HF_EAUTH : HF_ECONFIG,
                               errno, "cannot open the local store: %s",
                               strerror(errno));
    if (fstat(table->fd, &st) != 0)
        return hf__fail_engine(err, HF_EUNAVAILABLE, errno,
                               "cannot look at the local store: %s",
                               strerror(errno));
    rc = check_file(table, &st, place, err);
    if (rc != 0)
        return rc;
    table->dev = st.st_dev;
    table->ino = st.st_ino;
    if (pread(table->fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header))
        return hf__table_damaged(err, "size");
    rc = check_header(&header, err);
    if (rc != 0)
        return rc;
    rc = check_boot(table->fd, &header, err);
    if (rc == 1 && header.mark > *floor && header.mark < UINT64_C(1) << 53)
        *floor = header.mark;
    return rc;
}

static void close_file(struct hf__table *table)
{
    if (table->fd >= 0)
        (void)close(table->fd);
    table->fd = -1;
}

int hf__table_open(struct hf__table *table, const struct hf__place *place,
                   uint64_t floor, hf_error *err)
{
    int rc;

    memset(table, 0, sizeof(*table));
    table->fd = -1;
    table->directory_fd = place->fd;
    rc = read_offset(&table->offset_ns, err);
    if (rc != 0)
        return rc;

    rc = open_file(table, place, &floor, err);
    if (rc == 1) {
        rc = make(place->fd, place->group, floor, err);
        close_file(table);
        if (rc == 0)
            rc = open_file(table, place, &floor, err);
        if (rc == 1)
            rc = hf__fail(err, HF_EUNAVAILABLE,
                          "the local store vanished while it was opened");
    }
    if (rc == 0 && flock(table->fd, LOCK_SH | LOCK_NB) != 0)
        rc = hf__fail_engine(err, HF_EUNAVAILABLE, errno,
                             "the local store is being replaced");
    if (rc == 0)
        rc = map_file(table, err);
    if (rc == 0 && !hf__table_reach(table, 0))
        rc = hf__table_damaged(err, "size");
    if (rc != 0)
        hf__table_release(table, /* forked= */ false);
    return rc;
}

void hf__table_release(struct hf__table *table, bool forked)
{
    if (table->base && !forked)
        (void)munmap(table->base, (size_t)table->size);
    table->base = NULL;
    close_file(table);
}

bool hf__table_is_current(const struct hf__table *table)
{
    struct stat st;

    return fstatat(table->directory_fd, file_name, &st, AT_SYMLINK_NOFOLLOW) ==
               0 &&
           st.st_dev == table->dev && st.st_ino == table->ino;
}
