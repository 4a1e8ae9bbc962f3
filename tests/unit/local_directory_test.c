/* SPDX-License-Identifier: MIT */
/*
 * local_directory_test.c - whose directory the store of the embedded engine may
 * be in, and who waits for whom to open it.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "lib/proc.h"
#include "lib/tempdir.h"
#include "lib/test.h"
#include "local_fixture.h"

enum { NOBODY = 65534, MALLORY = 65533 };

static int try_open(const char *url, hf_error *err)
{
    return side_connect(side_prepare(url), err);
}

static bool is_root(void)
{
    if (geteuid() != 0)
        test_not_tested("another user needs root");
    return geteuid() == 0;
}

static void own(const char *path, mode_t mode, uid_t user)
{
    ASSERT_EQ(chown(path, user, user), 0);
    ASSERT_EQ(chmod(path, mode), 0);
}

/* Let @user read and write @path, by the access list called @list, whose other
 * entries are those of mode 0770. False if the file system has none. */
static bool list_user(const char *path, const char *list, uint32_t user)
{
    const uint16_t all = 7;
    const struct {
        uint32_t version;
        struct {
            uint16_t tag;
            uint16_t permissions;
            uint32_t id;
        } entries[5];
    } acl = {2,
             {{0x01, all, UINT32_MAX},
              {0x02, all, user},
              {0x04, all, UINT32_MAX},
              {0x10, all, UINT32_MAX},
              {0x20, 0, UINT32_MAX}}};

    if (setxattr(path, list, &acl, sizeof(acl), 0) == 0)
        return true;
    ASSERT_EQ(errno, ENOTSUP);
    test_not_tested("this file system has no access lists");
    return false;
}

TEST(directory, is_made_for_its_user_alone)
{
    const char *dir = side_path(tempdir_new(), "new");
    struct stat st;

    (void)side_new(dir);
    ASSERT_EQ(stat(dir, &st), 0);
    ASSERT_EQ(st.st_mode & 07777, 0700);
    ASSERT_EQ(stat(side_path(dir, "table"), &st), 0);
    ASSERT_EQ(st.st_mode & 07777, 0600);
}

TEST(directory, must_have_a_parent_and_an_absolute_path)
{
    hf_error err;

    ASSERT_RC(try_open("local:///nowhere/at/all", &err), HF_ECONFIG, &err);
    ASSERT_HAS(err.text, "parent");
    ASSERT_RC(try_open("local://some/dir", &err), HF_ECONFIG, &err);
    ASSERT_HAS(err.text, "local:///dir");
    ASSERT_RC(try_open("local:///", &err), HF_ECONFIG, &err);
}

TEST(directory, behind_a_symbolic_link_is_refused)
{
    const char *dir = tempdir_new();
    hf_error err;

    ASSERT_EQ(mkdir(side_path(dir, "real"), 0700), 0);
    ASSERT_EQ(symlink(side_path(dir, "real"), side_path(dir, "link")), 0);
    ASSERT_RC(try_open(side_url(side_path(dir, "link")), &err), HF_ECONFIG,
              &err);
    ASSERT_HAS(err.text, "symbolic link");
}

TEST(directory, that_others_may_write_is_refused)
{
    const char *dir = tempdir_new();
    hf_error err;

    ASSERT_EQ(chmod(dir, 0777), 0);
    ASSERT_RC(try_open(side_url(dir), &err), HF_ECONFIG, &err);
    ASSERT_HAS(err.text, "chmod 0700");
    ASSERT_EQ(chmod(dir, 0770), 0);
    ASSERT_RC(try_open(side_url(dir), &err), HF_ECONFIG, &err);
}

TEST(directory, of_another_user_is_refused_whatever_its_mode)
{
    const char *dir = tempdir_new();
    hf_error err;

    if (!is_root())
        return;
    own(dir, 0700, MALLORY);
    ASSERT_RC(try_open(side_url(dir), &err), HF_ECONFIG, &err);
    ASSERT_HAS(err.text, "belongs to user 65533");
    own(dir, 02770, MALLORY);
    ASSERT_RC(try_open(side_url(dir), &err), HF_ECONFIG, &err);
    ASSERT_HAS(err.text, "belongs to user 65533");
    ASSERT_HAS(err.text, "trust_owner=65533");
    own(dir, 0700, NOBODY);
    ASSERT_RC(try_open(side_url(dir), &err), HF_ECONFIG, &err);
    ASSERT_HAS(err.text, "belongs to user 65534 (nobody)");
}

static int open_trusting(const char *dir, char *user, hf_error *err)
{
    struct side *side = side_prepare(side_url(dir));

    side->settings.trust_owner = user;
    return side_connect(side, err);
}

TEST(directory, of_a_user_whom_we_trust_is_taken)
{
    static char name[] = "nobody";
    static char number[] = "65533";
    static char missing[] = "no-such-user";
    static char large[] = "4294967295";
    const char *dir = tempdir_new();
    hf_error err;

    ASSERT_RC(open_trusting(dir, missing, &err), HF_ECONFIG, &err);
    ASSERT_HAS(err.text, "no-such-user");
    ASSERT_RC(open_trusting(dir, large, &err), HF_ECONFIG, &err);
    if (!is_root())
        return;
    own(dir, 02770, MALLORY);
    ASSERT_RC(open_trusting(dir, name, &err), HF_ECONFIG, &err);
    ASSERT_OK(open_trusting(dir, number, &err), &err);
    own(dir, 02770, NOBODY);
    ASSERT_OK(open_trusting(dir, name, &err), &err);
}

TEST(directory, with_an_access_list_for_others_is_refused)
{
    static const char *const lists[] = {"system.posix_acl_access",
                                        "system.posix_acl_default"};
    hf_error err;

    for (size_t i = 0; i < 2; i++) {
        const char *dir = tempdir_new();

        ASSERT_EQ(chmod(dir, 02770), 0);
        if (!list_user(dir, lists[i], geteuid()))
            return;
        ASSERT_OK(try_open(side_url(dir), &err), &err); /* it names us */
        if (!list_user(dir, lists[i], MALLORY))
            return;
        ASSERT_RC(try_open(side_url(dir), &err), HF_ECONFIG, &err);
        ASSERT_HAS(err.text, "access list");
        ASSERT_EQ(chmod(dir, 0770), 0); /* refused by the mode alone */
        ASSERT_RC(try_open(side_url(dir), &err), HF_ECONFIG, &err);
    }
}

TEST(directory, with_a_table_whose_access_list_is_for_others_is_refused)
{
    const char *dir = tempdir_new();
    hf_error err;

    ASSERT_EQ(chmod(dir, 02770), 0);
    (void)side_new(dir);
    if (!list_user(side_path(dir, "table"), "system.posix_acl_access", MALLORY))
        return;
    ASSERT_RC(try_open(side_url(dir), &err), HF_ECONFIG, &err);
    ASSERT_HAS(err.text, "access list");
}

TEST(directory, of_a_group_is_shared_with_it)
{
    const char *dir = tempdir_new();
    struct stat st;

    ASSERT_EQ(chmod(dir, 02770), 0);
    (void)side_new(dir);
    ASSERT_EQ(stat(side_path(dir, "table"), &st), 0);
    ASSERT_EQ(st.st_mode & 07777, 0660);
    (void)side_new(dir);
}

TEST(directory, with_a_table_that_is_a_link_or_shared_or_open_is_refused)
{
    const char *dir = tempdir_new();
    char url[512];
    hf_error err;

    (void)snprintf(url, sizeof(url), "local://%s", dir);
    ASSERT_EQ(symlink("/etc/passwd", side_path(dir, "table")), 0);
    ASSERT_RC(try_open(url, &err), HF_ECONFIG, &err);
    ASSERT_EQ(unlink(side_path(dir, "table")), 0);
    (void)side_new(dir);
    ASSERT_EQ(link(side_path(dir, "table"), side_path(dir, "copy")), 0);
    ASSERT_RC(try_open(url, &err), HF_ECONFIG, &err);
    ASSERT_EQ(unlink(side_path(dir, "copy")), 0);
    ASSERT_EQ(chmod(side_path(dir, "table"), 0666), 0);
    ASSERT_RC(try_open(url, &err), HF_ECONFIG, &err);
    ASSERT_HAS(err.text, "chmod 0600");
    ASSERT_EQ(chmod(side_path(dir, "table"), 0600), 0);
    ASSERT_EQ(unlink(side_path(dir, "table")), 0);
    ASSERT_EQ(mkfifo(side_path(dir, "table"), 0600), 0);
    ASSERT_RC(try_open(url, &err), HF_ECONFIG, &err);
}

static void hold_the_lock(struct proc *self, void *arg)
{
    struct hf__place place = {.fd = -1};
    int fd;

    (void)snprintf(place.path, sizeof(place.path), "%s", (const char *)arg);
    ASSERT_OK(hf__place_open(&place, NULL), NULL);
    ASSERT_OK(hf__place_lock(&place, &fd, NULL), NULL);
    proc_tell(self, "locked");
    (void)proc_hear(self);
}

static int looks;

static void count_look(_Atomic uint32_t *word, uint32_t value, uint32_t who,
                       int64_t until_ns)
{
    looks++;
    hf__world_real.park(word, value, who, until_ns);
}

TEST(directory, that_somebody_is_opening_is_waited_for_and_not_for_ever)
{
    static char dir[512];
    struct proc *child;
    hf_error err;

    looks = 0;
    side_world()->park = count_look;

    (void)snprintf(dir, sizeof(dir), "%s", tempdir_new());
    child = proc_start(hold_the_lock, dir);
    proc_expect(child, "locked");
    ASSERT_RC(try_open(side_url(dir), &err), HF_EUNAVAILABLE, &err);
    ASSERT_GE(looks, 1);
    ASSERT_LE(looks, 10); /* a hundred of us would leave it no time */
    proc_kill(child);
    (void)side_new(dir);
}

TEST(directory, on_a_network_is_known)
{
    int fd = open("/proc", O_RDONLY | O_DIRECTORY);

    ASSERT_NULL(hf__place_network(fd));
    ASSERT_EQ(close(fd), 0);
    ASSERT_NULL(hf__place_network(-1));
}

TEST(doctor, finds_nothing_wrong_with_a_good_store)
{
    struct side *a = side_new(tempdir_new());
    struct rows rows;

    (void)side_take(a, "jobs");
    ASSERT_OK(side_doctor(a, &rows), NULL);
    ASSERT_GE(rows.findings, 5);
    for (uint32_t i = 0; i < rows.findings; i++)
        ASSERT_EQ(rows.found[i][0], '0');
}

/* ---- which one by default ---------------------------------------------- */

static struct hf__place_roots roots;

static void restore_roots(void *arg)
{
    hf__place_roots = arg;
}

/* A machine of its own: a /run/lock for everybody, a home, no /run/holdfast. */
static const char *machine(void)
{
    const char *dir = tempdir_new();

    test_defer(restore_roots, (void *)(uintptr_t)hf__place_roots);
    ASSERT_EQ(chmod(dir, 0755), 0);
    roots = (struct hf__place_roots){
        .system = side_path(dir, "system"),
        .everybody = side_path(dir, "lock"),
        .system_state = side_path(dir, "state"),
        .home = side_path(dir, "home"),
        .administrator = geteuid(),
    };
    ASSERT_EQ(mkdir(roots.home, 0700), 0);
    ASSERT_EQ(mkdir(roots.everybody, 0700), 0);
    ASSERT_EQ(chmod(roots.everybody, 01777), 0);
    hf__place_roots = &roots;
    return dir;
}

/* The same, for tests that root alone can do. */
static bool machine_of_root(void)
{
    if (!is_root())
        return false;
    (void)machine();
    return true;
}

/* In a forked test: go on as nobody, whose home that of the machine is. */
static void become_nobody(void)
{
    ASSERT_EQ(chown(roots.home, NOBODY, NOBODY), 0);
    ASSERT_EQ(setgroups(0, NULL), 0);
    ASSERT_EQ(setgid(NOBODY), 0);
    ASSERT_EQ(setuid(NOBODY), 0);
}

static const char *default_path(hf_error *err)
{
    struct side *side = side_prepare("local:");

    ASSERT_OK(side_connect(side, err), err);
    return side->local->place.path;
}

TEST_FORKED(default_directory, depends_on_the_user_alone)
{
    const char *dir = machine();
    char path[600];
    hf_error err;

    (void)snprintf(path, sizeof(path), "%s/holdfast-%u", roots.everybody,
                   (unsigned)geteuid());
    ASSERT_STREQ(default_path(&err), path);
    ASSERT_EQ(setenv("XDG_RUNTIME_DIR", dir, 1), 0);
    ASSERT_EQ(setenv("XDG_STATE_HOME", dir, 1), 0);
    ASSERT_EQ(setenv("TMPDIR", dir, 1), 0);
    ASSERT_EQ(setenv("HOME", dir, 1), 0);
    ASSERT_STREQ(default_path(&err), path);
    ASSERT_EQ(access(side_path(dir, "holdfast"), F_OK), -1);
    ASSERT_EQ(chmod(roots.everybody, 0755), 0);
    (void)snprintf(path, sizeof(path), "%s/.local/state/holdfast", roots.home);
    ASSERT_STREQ(default_path(&err), path);
    ASSERT_EQ(access(side_path(dir, ".local"), F_OK), -1);
}

TEST(default_directory, is_the_administrators_if_he_made_one)
{
    struct stat st;
    hf_error err;

    (void)machine();
    ASSERT_EQ(mkdir(roots.system, 0700), 0);
    ASSERT_STREQ(default_path(&err), roots.system);
    ASSERT_EQ(chmod(roots.system, 02770), 0);
    ASSERT_STREQ(default_path(&err), roots.system);
    ASSERT_EQ(stat(roots.system_state, &st), 0);
}

TEST_FORKED(default_directory, of_another_user_is_his_own)
{
    char path[600];
    struct side *side;
    hf_error err;

    if (!machine_of_root())
        return;
    ASSERT_EQ(mkdir(roots.system, 0700), 0); /* root's, and not for nobody */
    become_nobody();
    side = side_prepare("local:");
    ASSERT_OK(side_connect(side, &err), &err);
    ASSERT_STREQ(side->local->place.path,
                 side_path(roots.everybody, "holdfast-65534"));
    (void)snprintf(path, sizeof(path), "%s/.local/state/holdfast", roots.home);
    ASSERT_STREQ(side->local->place.state_path, path);
    (void)side_take(side, "jobs");
    ASSERT_GT(hf__mark_read(&side->local->store.mark), 0);
}

TEST_FORKED(default_directory, of_a_group_is_shared_by_its_members)
{
    hf_error err;

    if (!machine_of_root())
        return;
    ASSERT_EQ(mkdir(roots.system, 0700), 0);
    ASSERT_EQ(chown(roots.system, 0, NOBODY), 0);
    ASSERT_EQ(chmod(roots.system, 02770), 0);
    become_nobody();
    ASSERT_STREQ(default_path(&err), roots.system);
}

static void expect_refusal(const char *whose)
{
    hf_error err;

    ASSERT_RC(try_open("local:", &err), HF_ECONFIG, &err);
    ASSERT_HAS(err.text, whose);
}

/* A directory in the place of nobody's; NULL: we are not root. */
static const char *squatted(void)
{
    const char *squat;

    if (!is_root())
        return NULL;
    (void)machine();
    squat = side_path(roots.everybody, "holdfast-65534");
    ASSERT_EQ(mkdir(squat, 0700), 0);
    return squat;
}

/* Whatever mallory does, nobody is told, and locks nowhere else. */
TEST_FORKED(default_directory, that_somebody_squats_is_an_error)
{
    const char *squat = squatted();

    if (!squat)
        return;
    own(squat, 0777, MALLORY);
    become_nobody();
    expect_refusal("belongs to user 65533");
    ASSERT_EQ(access(side_path(roots.home, ".local"), F_OK), -1);
}

TEST_FORKED(default_directory, that_a_group_or_list_opens_to_us_is_an_error)
{
    const char *squat = squatted();

    if (!squat)
        return;
    ASSERT_EQ(chown(squat, MALLORY, NOBODY), 0);
    ASSERT_EQ(chmod(squat, 02770), 0);
    if (!list_user(squat, "system.posix_acl_access", NOBODY))
        return;
    become_nobody();
    expect_refusal("belongs to user 65533");
}

TEST_FORKED(default_directory, that_root_made_for_a_user_is_an_error)
{
    const char *squat = squatted();

    if (!squat)
        return;
    own(squat, 0700, 0);
    ASSERT_EQ(chown(squat, 0, NOBODY), 0);
    ASSERT_EQ(chmod(squat, 02770), 0);
    become_nobody();
    expect_refusal("belongs to user 0 (root)");
}

TEST_FORKED(default_directory, of_the_system_that_mallory_owns_is_an_error)
{
    if (!machine_of_root())
        return;
    ASSERT_EQ(mkdir(roots.system, 0700), 0);
    own(roots.system, 0777, MALLORY);
    become_nobody();
    expect_refusal("belongs to user 65533");
}

TEST(default_directory, that_others_may_write_is_refused)
{
    const char *path;
    hf_error err;

    (void)machine();
    path = default_path(&err);
    ASSERT_EQ(chmod(path, 02770), 0);
    expect_refusal("chmod 0700");
    ASSERT_EQ(chmod(path, 0700), 0);
    (void)default_path(&err);
}

TEST(default_directory, is_not_in_a_run_lock_that_anybody_may_rename_in)
{
    char path[600];
    hf_error err;

    (void)machine();
    ASSERT_EQ(chmod(roots.everybody, 0777), 0); /* not sticky */
    (void)snprintf(path, sizeof(path), "%s/.local/state/holdfast", roots.home);
    ASSERT_STREQ(default_path(&err), path);
    ASSERT_EQ(rmdir(roots.everybody), 0);
    ASSERT_EQ(symlink(roots.home, roots.everybody), 0);
    ASSERT_STREQ(default_path(&err), path);
}

TEST_FORKED(default_directory, of_a_user_without_a_home_must_be_named)
{
    hf_error err;

    if (!machine_of_root())
        return;
    ASSERT_EQ(chmod(roots.everybody, 0755), 0);
    ASSERT_EQ(setenv("HOME", roots.home, 1), 0);
    become_nobody();
    roots.home = NULL; /* the passwd database: /nonexistent */
    ASSERT_RC(try_open("local:", &err), HF_ECONFIG, &err);
    ASSERT_HAS(err.text, "/nonexistent/.local/state/holdfast");
}

TEST_FORKED(default_directory, of_a_user_whom_no_database_knows_must_be_named)
{
    hf_error err;

    if (!machine_of_root())
        return;
    ASSERT_EQ(chmod(roots.everybody, 0755), 0);
    roots.home = NULL;
    ASSERT_EQ(setuid(MALLORY), 0);
    ASSERT_RC(try_open("local:", &err), HF_ECONFIG, &err);
    ASSERT_HAS(err.text, "has no home directory");
    ASSERT_HAS(err.text, "local:///dir");
}

/* ---- other users ------------------------------------------------------- */

TEST_FORKED(directory, that_we_may_not_write_is_told_as_such)
{
    const char *dir;
    hf_error err;

    if (!is_root())
        return;
    dir = machine();
    become_nobody();
    ASSERT_RC(try_open(side_url(dir), &err), HF_EAUTH, &err);
    ASSERT_RC(try_open(side_url(side_path(dir, "new")), &err), HF_EAUTH, &err);
    ASSERT_HAS(err.text, "that you may write");
}

TEST(directory, takes_no_host_no_user_and_no_lock_that_is_a_link)
{
    const char *dir = tempdir_new();
    hf_error err;

    ASSERT_RC(try_open("local://me@here/tmp/x", &err), HF_ECONFIG, &err);
    ASSERT_EQ(symlink("/etc/passwd", side_path(dir, "lock")), 0);
    ASSERT_RC(try_open(side_url(dir), &err), HF_ECONFIG, &err);
}
