/* SPDX-License-Identifier: MIT */
/*
 * import_test.c - holdfast config import reads what Java programs have.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "command.h"
#include "test.h"

/* Import @text, and see that what comes out is a configuration. */
static struct command *import(const char *name, const char *text)
{
    static char path[512];
    struct command *command;

    snprintf(path, sizeof(path), "%s", command_path(name));
    file_write(path, text);
    command = FINISH(0, "config", "import", path);
    ASSERT_STREQ(command_err(command), "");
    snprintf(path, sizeof(path), "%s", command_path("out.conf"));
    file_write(path, command_out(command));
    ASSERT_EQ(chmod(path, 0600), 0);
    FINISH(0, "config", "check", path);
    return command;
}

static void assert_lines(const struct command *command,
                         const char *const *lines)
{
    for (; *lines; lines++) {
        char line[512];

        snprintf(line, sizeof(line), "\n%s\n", *lines);
        ASSERT_HAS(command_out(command), line);
    }
}
#define ASSERT_LINES(command, ...)                                             \
    assert_lines(command, (const char *const[]){__VA_ARGS__, NULL})

TEST(import, spring_yaml_becomes_ours)
{
    struct command *command = import(
        "application.yml", "server:\n  port: 8080\n"
                           "spring:\n"
                           "  application:\n    name: 'it''s'\n"
                           "  data:\n    redis:\n"
                           "      host: ${REDIS_HOST:redis.example}\n"
                           "      port: 6380   # the other one\n"
                           "      database: 2\n"
                           "      timeout: 2000ms\n"
                           "      connect-timeout: 1s\n"
                           "      ssl:\n        enabled: true\n"
                           "      lettuce:\n        pool:\n"
                           "          max-active: 8\n          maxWait: -1ms\n"
                           "          min-idle: 0\n");

    ASSERT_LINES(command, "url = rediss://redis.example:6380/2",
                 "io_timeout = 2000ms", "connect_timeout = 1s", "pool.max = 8",
                 "pool.wait = forever",
                 "# server.port (line 2): no meaning here",
                 "# spring.application.name (line 5): no meaning here");
    ASSERT_HAS(command_out(command),
               "# spring.data.redis.lettuce.pool.min-idle (line 19): no "
               "meaning here\n");
}

TEST(import, redissons_own_file_becomes_ours)
{
    struct command *command =
        import("redisson.yaml",
               "singleServerConfig:\n"
               "  connectTimeout: 10000\n  timeout: 3000\n"
               "  retryAttempts: 3\n  password: null\n"
               "  address: \"redis://127.0.0.1:6379\"\n  database: 1\n"
               "threads: 16\n"
               "codec: !<org.redisson.codec.Kryo5Codec> {}\n"
               "lockWatchdogTimeout: 30000\n");

    ASSERT_LINES(command, "url = redis://127.0.0.1:6379/1",
                 "dialect = redisson", "connect_timeout = 10000ms",
                 "io_timeout = 3000ms", "ttl = 30000ms",
                 "# singleServerConfig.retryAttempts (line 4): no meaning here",
                 "# codec (line 9): no meaning here");
    ASSERT_NULL(strstr(command_out(command), "password ="));

    command = import("cluster.yaml", "clusterServersConfig:\n"
                                     "  nodeAddresses:\n"
                                     "  - \"rediss://10.0.0.1:7004\"\n"
                                     "  - rediss://10.0.0.2:7001\n");
    ASSERT_LINES(command, "url = rediss-cluster://10.0.0.1:7004,10.0.0.2:7001",
                 "dialect = redisson");
    /* Inside of Spring's, as a text. */
    command = import("nested.yml",
                     "spring:\n  redis:\n    redisson:\n      config: |\n"
                     "        sentinelServersConfig:\n"
                     "          masterName: m\n"
                     "          sentinelAddresses: [\"redis://a:26379\", "
                     "redis://b:26379]\n");
    ASSERT_LINES(command, "url = redis-sentinel://a:26379,b:26379/m",
                 "dialect = redisson");
}

/* The settings that an article about locks on ZooKeeper gives. */
TEST(import, zookeeper_settings_become_ours)
{
    struct command *command =
        import("zk.yml", "zk-lock:\n"
                         "  address: 127.0.0.1:2181\n"
                         "  connection-timeout: 1500000000\n"
                         "  session-timeout: 600000\n"
                         "  retry-policy: retry-forever #\n"
                         "  retry_forever:\n"
                         "    retry-interval-ms: 3000\n"
                         "job:\n  lockName: nightly\n"
                         "  lockType: MUTEX_LOCK\n"
                         "  requireTime: 3\n");

    ASSERT_LINES(command, "url = zk://127.0.0.1:2181",
                 "session_timeout = 600000ms", "retry.policy = forever",
                 "retry.interval = 3000ms", "[lock nightly]", "wait = 3s");
    ASSERT_HAS(command_out(command), "# connect_timeout: ");
    ASSERT_HAS(command_out(command), "too long");
    command = import("curator.properties",
                     "curator.connect-string=zk1:2181,zk2:2181/app\n"
                     "curator.retry-policy=ExponentialBackoffRetry\n"
                     "curator.base-sleep-time-ms=1000\n"
                     "curator.max-retries=3\n");
    ASSERT_LINES(command, "url = zk://zk1:2181,zk2:2181/app",
                 "retry.policy = exponential", "retry.base = 1000ms",
                 "retry.max_attempts = 3");
}

TEST(import, jedis_properties_become_ours)
{
    struct command *command = import(
        "application.properties",
        "# address\nredis.host=127.0.0.1\nredis.port : 6379\n"
        "redis.password=null\nredis.timeout 30000\nredis.maxTotal=30\n"
        "redis.maxIdle=\\\n   10\nredis.maxWaitMillis=1500\n"
        "redis.testOnBorrow=true\nredis.blockWhenExhausted=false\n"
        "redis.JmxEnabled=true\n#---\n"
        "spring.config.activate.on-profile=prod\nspring.redis.host=r.prod\n");

    ASSERT_LINES(command, "url = redis://127.0.0.1:6379",
                 "io_timeout = 30000ms", "pool.max = 30", "pool.max_idle = 10",
                 "pool.wait = 1500ms", "pool.check = on",
                 "pool.exhausted = fail",
                 "# redis.JmxEnabled (line 12): no meaning here", "[prod]",
                 "url = redis://r.prod");
    ASSERT_NULL(strstr(command_out(command), "password ="));
}

TEST(import, secrets_go_to_the_output_alone_and_under_a_warning)
{
    struct command *command =
        import("application.yml", "spring:\n"
                                  "  datasource:\n    password: other1\n"
                                  "  redis:\n"
                                  "    url: redis://me:hunt%er2@h:6379\n");

    ASSERT_HAS(command_out(command), "WARNING: a secret");
    ASSERT_LINES(command, "user = me", "password = hunt%er2",
                 "url = redis://h:6379");
    ASSERT_NULL(strstr(command_out(command), "other1"));

    file_write(command_path("bad.yml"),
               "spring:\n  redis:\n    password: hunter2\n   host: x\n");
    command = FINISH(78, "config", "import", command_path("bad.yml"));
    ASSERT_STREQ(command_out(command), "");
    ASSERT_HAS(command_err(command), "bad.yml:4: ");
    ASSERT_NULL(strstr(command_err(command), "hunter2"));
}

TEST(import, placeholder_without_a_default_is_said)
{
    struct command *command =
        import("application.yml", "spring:\n  redis:\n    host: h\n"
                                  "    password: ${REDIS_PASSWORD}\n"
                                  "    username: ENC(abc)\n");

    ASSERT_HAS(command_out(command), "# spring.redis.password (line 4): a "
                                     "placeholder without a default");
    ASSERT_HAS(command_out(command), "# spring.redis.username (line 5): ");
}

/* Line by line: what is not understood is an error, never a guess. */
TEST(import, what_is_not_understood_is_an_error_with_its_line)
{
    static const char *const texts[][2] = {
        {"a: &x 1\n", ":1: anchors"},
        {"a: 1\nb: *x\n", ":2: anchors"},
        {"a: {b: 1}\n", ":1: a map in braces"},
        {"a: >\n  x\n", ":1: a value cannot begin so"},
        {"a: 'x\n", ":1: the quote does not end"},
        {"a: \"x\\q\"\n", ":1: this escape"},
        {"a: x\n  y\n", ":2: "},
        {"a: [x,\n", ":1: a list in brackets"},
        {"a: b: c\n", ":1: a key inside of a value"},
        {"a: 1\na: 2\n", ":2: this key is here twice"},
        {"a:\n\tb: 1\n", ":2: a tab"},
        {"- - a\n", ":1: a list inside of a list"},
        {"just text\n", ":1: a line is"},
        {"a: \001\n", ":1: a control character"},
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct command *command;

        file_write(command_path("bad.yml"), texts[i][0]);
        command = FINISH(78, "config", "import", command_path("bad.yml"));
        ASSERT_HAS(command_err(command), texts[i][1]);
        ASSERT_STREQ(command_out(command), "");
    }
}

TEST(import, depth_and_size_have_bounds)
{
    enum { LEVELS = 40, LINES = 5000 };
    char *text = calloc(1, LINES * 16 + LEVELS * LEVELS);
    char *at = text;

    ASSERT_NOT_NULL(text);
    for (int i = 0; i < LEVELS; i++)
        at += sprintf(at, "%*sa:\n", i, "");
    file_write(command_path("deep.yml"), text);
    ASSERT_HAS(
        command_err(FINISH(78, "config", "import", command_path("deep.yml"))),
        "deeper than");
    at = text;
    for (int i = 0; i < LINES; i++)
        at += sprintf(at, "k%d: 1\n", i);
    file_write(command_path("many.yml"), text);
    ASSERT_HAS(
        command_err(FINISH(78, "config", "import", command_path("many.yml"))),
        "more than 4096");
    free(text);
    ASSERT_HAS(command_err(FINISH(78, "config", "import", "/dev/zero")),
               "larger than");
    FINISH(78, "config", "import", "/no/such.yml");
    FINISH(64, "config", "import");
}

TEST(import, file_without_an_engine_is_said)
{
    struct command *command;

    file_write(command_path("application.yml"), "server:\n  port: 80\n");
    command = FINISH(1, "config", "import", command_path("application.yml"));
    ASSERT_HAS(command_err(command), "says nothing about a Redis");
    ASSERT_HAS(command_out(command), "# server.port (line 2)");
}
