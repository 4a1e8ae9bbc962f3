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
