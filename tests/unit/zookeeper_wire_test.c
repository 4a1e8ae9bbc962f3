/* SPDX-License-Identifier: MIT */
/* ZooKeeper's wire format: what was written is read, and no length is believed. */
#include "engines/zookeeper/wire.h"
#include "test.h"

static struct hf__zk_wire reader(const struct hf__buf *buf)
{
    return (struct hf__zk_wire){buf->text, buf->text + buf->len, false};
}

TEST(wire, what_was_written_is_read)
{
    struct hf__buf out = {0};
    struct hf__zk_wire_text text;
    struct hf__zk_wire in;

    hf__zk_wire_put_bool(&out, true);
    hf__zk_wire_put_int(&out, INT32_MIN);
    hf__zk_wire_put_long(&out, INT64_C(-2));
    hf__zk_wire_put_text(&out, "caf\xc3\xa9", 5);
    hf__zk_wire_put_text(&out, "", 0);
    in = reader(&out);
    ASSERT_TRUE(hf__zk_wire_bool(&in));
    ASSERT_EQ(hf__zk_wire_int(&in), INT32_MIN);
    ASSERT_EQ(hf__zk_wire_long(&in), -2);
    text = hf__zk_wire_text(&in);
    ASSERT_EQ(text.len, 5);
    ASSERT_MEM_EQ(text.text, "caf\xc3\xa9", 5);
    ASSERT_EQ(hf__zk_wire_text(&in).len, 0);
    ASSERT_FALSE(in.bad);
    ASSERT_PTR_EQ(in.at, in.end);
    hf__buf_release(&out);
}

TEST(wire, numbers_are_in_network_order)
{
    struct hf__buf out = {0};

    hf__zk_wire_put_int(&out, 0x01020304);
    hf__zk_wire_patch_int(&out, 0, 0x0a0b0c0d);
    ASSERT_MEM_EQ(out.text, "\x0a\x0b\x0c\x0d", 4);
    hf__buf_release(&out);
}

TEST(wire, a_text_that_is_null_is_empty)
{
    struct hf__zk_wire in = {"\xff\xff\xff\xff", NULL, false};

    in.end = in.at + 4;
    ASSERT_EQ(hf__zk_wire_text(&in).len, 0);
    ASSERT_FALSE(in.bad);
}

TEST(wire, a_length_that_lies_makes_the_rest_bad)
{
    static const char longer[] = "\x00\x00\x00\x09short";
    static const char negative[] = "\xff\xff\xff\xfeshort";
    struct hf__zk_wire in = {longer, longer + sizeof(longer) - 1, false};

    ASSERT_EQ(hf__zk_wire_text(&in).len, 0);
    ASSERT_TRUE(in.bad);
    ASSERT_EQ(hf__zk_wire_int(&in), 0);
    in = (struct hf__zk_wire){negative, negative + sizeof(negative) - 1, false};
    ASSERT_EQ(hf__zk_wire_text(&in).len, 0);
    ASSERT_TRUE(in.bad);
}

TEST(wire, a_list_has_no_more_than_could_be_there)
{
    static const char many[] = "\x7f\xff\xff\xff\x00\x00\x00\x00";
    struct hf__zk_wire in = {many, many + 8, false};

    ASSERT_EQ(hf__zk_wire_count(&in, 4), 0);
    ASSERT_TRUE(in.bad);
}

TEST(wire, a_frame_is_whole_bounded_or_refused)
{
    ASSERT_EQ(hf__zk_wire_frame("\x00\x00", 2), -1);
    ASSERT_EQ(hf__zk_wire_frame("\x00\x00\x00\x10", 4), 16);
    ASSERT_EQ(hf__zk_wire_frame("\x00\x40\x00\x01", 4), -2);
    ASSERT_EQ(hf__zk_wire_frame("\xff\xff\xff\xff", 4), -2);
}

/* ---- transactions -------------------------------------------------------- */

static void put_stat(struct hf__buf *out)
{
    for (int i = 0; i < 4; i++)
        hf__zk_wire_put_long(out, 0);
    for (int i = 0; i < 3; i++)
        hf__zk_wire_put_int(out, 0);
    hf__zk_wire_put_long(out, 0);
    hf__zk_wire_put_int(out, 0);
    hf__zk_wire_put_int(out, 0);
    hf__zk_wire_put_long(out, 0);
}

static void put_result(struct hf__buf *out, int32_t type, int32_t error)
{
    hf__zk_wire_put_int(out, type);
    hf__zk_wire_put_bool(out, false);
    hf__zk_wire_put_int(out, error);
}

TEST(transaction, parts_are_read_one_after_the_other)
{
    struct hf__buf out = {0};
    struct hf__zk_wire_part part;
    struct hf__zk_wire in;

    put_result(&out, HF__ZK_CREATE_PLAIN, 0);
    hf__zk_wire_put_text(&out, "/a", 2);
    put_result(&out, HF__ZK_DELETE, 0);
    put_result(&out, HF__ZK_CHECK, 0);
    put_result(&out, HF__ZK_SET_DATA, 0);
    put_stat(&out);
    hf__zk_wire_put_part(&out, -1);
    in = reader(&out);
    ASSERT_TRUE(hf__zk_wire_part(&in, &part));
    ASSERT_EQ(part.type, HF__ZK_CREATE_PLAIN);
    ASSERT_EQ(part.path.len, 2);
    ASSERT_TRUE(hf__zk_wire_part(&in, &part));
    ASSERT_TRUE(hf__zk_wire_part(&in, &part));
    ASSERT_EQ(part.type, HF__ZK_CHECK);
    ASSERT_TRUE(hf__zk_wire_part(&in, &part));
    ASSERT_FALSE(hf__zk_wire_part(&in, &part));
    ASSERT_FALSE(in.bad);
    ASSERT_PTR_EQ(in.at, in.end);
    hf__buf_release(&out);
}

TEST(transaction, one_that_failed_says_which_part)
{
    struct hf__buf out = {0};
    struct hf__zk_wire_part part;
    struct hf__zk_wire in;

    put_result(&out, -1, 0);
    hf__zk_wire_put_int(&out, HF__ZK_NO_NODE);
    hf__zk_wire_put_part(&out, -1);
    in = reader(&out);
    ASSERT_TRUE(hf__zk_wire_part(&in, &part));
    ASSERT_EQ(part.error, HF__ZK_NO_NODE);
    ASSERT_FALSE(hf__zk_wire_part(&in, &part));
    hf__buf_release(&out);
}

TEST(transaction, that_is_cut_or_has_strange_parts_is_bad)
{
    struct hf__buf out = {0};
    struct hf__zk_wire_part part;
    struct hf__zk_wire in;

    put_result(&out, HF__ZK_SET_DATA, 0);
    put_stat(&out);
    for (size_t len = 0; len < out.len; len++) {
        in = (struct hf__zk_wire){out.text, out.text + len, false};
        ASSERT_FALSE(hf__zk_wire_part(&in, &part));
        ASSERT_TRUE(in.bad);
    }
    out.len = 0;
    put_result(&out, 77, 0);
    in = reader(&out);
    ASSERT_FALSE(hf__zk_wire_part(&in, &part));
    ASSERT_TRUE(in.bad);
    hf__buf_release(&out);
}
