/* SPDX-License-Identifier: MIT */
/* zookeeper.c - an ensemble of three servers for all tests of a program. */
#include "zookeeper.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server.h"
#include "sockets.h"
#include "tempdir.h"

static struct {
    pid_t pid; /* 0: not running */
    int port;
    int peer_port;
    int election_port;
    bool stopped;
    struct proxy *links[2]; /* before the last two ports, or NULL */
} servers[SERVERS];

static char dir[] = "/tmp/holdfast-zk-XXXXXX";
static pid_t owner; /* who has made it */

/* ---- starting ----------------------------------------------------------- */

static void end_all(void)
{
    if (getpid() != owner)
        return;
    for (int i = 0; i < SERVERS; i++) {
        if (servers[i].pid != 0) {
            (void)kill(servers[i].pid, SIGKILL);
            (void)waitpid(servers[i].pid, NULL, 0);
        }
    }
    tempdir_remove(dir);
}

static void write_config(int server)
{
    char path[128];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/%d", dir, server);
    (void)mkdir(path, 0700);
    (void)snprintf(path, sizeof(path), "%s/%d/myid", dir, server);
    file = fopen(path, "we");
    ASSERT_NOT_NULL(file);
    (void)fprintf(file, "%d\n", server + 1);
    (void)fclose(file);
    (void)snprintf(path, sizeof(path), "%s/%d/zoo.cfg", dir, server);
    file = fopen(path, "we");
    ASSERT_NOT_NULL(file);
    (void)fprintf(file,
                  "tickTime=200\ninitLimit=50\nsyncLimit=10\n"
                  "minSessionTimeout=400\nmaxSessionTimeout=60000\n"
                  "dataDir=%s/%d\nclientPort=%d\n"
                  "clientPortAddress=127.0.0.1\nmaxClientCnxns=0\n"
                  "admin.enableServer=false\n4lw.commands.whitelist=*\n",
                  dir, server, servers[server].port);
    for (int i = 0; i < SERVERS; i++) {
        bool linked = i != server && servers[i].links[0];

        (void)fprintf(file, "server.%d=127.0.0.1:%d:%d\n", i + 1,
                      linked ? proxy_port(servers[i].links[0])
                             : servers[i].peer_port,
                      linked ? proxy_port(servers[i].links[1])
                             : servers[i].election_port);
    }
    (void)fclose(file);
}

/* Debian's ZooKeeper, or the one that ./dev matrix wants. */
static const char *classpath(void)
{
    const char *given = getenv("HOLDFAST_TEST_ZOOKEEPER_CLASSPATH");

    return given ? given
                 : "/usr/share/java/zookeeper.jar:"
                   "/usr/share/java/slf4j-simple.jar";
}

__attribute__((noreturn)) static void become(int server, pid_t parent)
{
    char config[128];
    char log[128];
    int fd;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(126);
    (void)snprintf(config, sizeof(config), "%s/%d/zoo.cfg", dir, server);
    (void)snprintf(log, sizeof(log), "%s/%d/log", dir, server);
    fd = open(log, O_CREAT | O_WRONLY | O_APPEND, 0600);
    (void)dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
    (void)dup2(fd, STDOUT_FILENO);
    (void)dup2(fd, STDERR_FILENO);
    (void)execlp("java", "java", "-Xmx128m", "-XX:+UseSerialGC",
                 "-XX:TieredStopAtLevel=1", "-Dzookeeper.forceSync=no",
                 "-Dznode.container.checkIntervalMs=200",
                 "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp",
                 classpath(),
                 "org.apache.zookeeper.server.quorum.QuorumPeerMain", config,
                 (char *)NULL);
    _exit(127);
}

static void start(int server)
{
    pid_t parent = getpid();

    servers[server].pid = fork();
    ASSERT_GE(servers[server].pid, 0);
    if (servers[server].pid == 0)
        become(server, parent);
}

/* The answer to a four-letter word, or "". */
static const char *word(int server, const char *text)
{
    static char answer[16384];
    struct timeval patience = {.tv_sec = 2};
    int fd = socket_dial(servers[server].port);
    size_t len = 0;
    ssize_t n = 1;

    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (send(fd, text, strlen(text), MSG_NOSIGNAL) > 0) {
        while (n > 0 && len < sizeof(answer) - 1) {
            n = recv(fd, answer + len, sizeof(answer) - 1 - len, 0);
            len += n > 0 ? (size_t)n : 0;
        }
    }
    (void)close(fd);
    answer[len] = '\0';
    return answer;
}

static bool serves(int server)
{
    return strstr(word(server, "srvr"), "Mode:") != NULL;
}

static void create(void)
{
    if (!mkdtemp(dir))
        FAIL("no directory: %s", strerror(errno));
    owner = getpid();
    (void)atexit(end_all);
    for (int i = 0; i < SERVERS; i++) {
        servers[i].port = server_free_port();
        servers[i].peer_port = server_free_port();
        servers[i].election_port = server_free_port();
    }
    for (int i = 0; i < SERVERS; i++)
        write_config(i);
}

void ensemble(void)
{
    if (owner == 0)
        create();
    for (int i = 0; i < SERVERS; i++) {
        if (servers[i].stopped)
            ensemble_continue(i);
        if (servers[i].pid == 0)
            start(i);
    }
    for (int i = 0; i < SERVERS; i++)
        EVENTUALLY(serves(i));
}

int ensemble_port(int server)
{
    return servers[server].port;
}

static int find_leader(void)
{
    for (int i = 0; i < SERVERS; i++) {
        if (servers[i].pid != 0 && !servers[i].stopped &&
            strstr(word(i, "srvr"), "Mode: leader"))
            return i;
    }
    return -1;
}

int ensemble_leader(void)
{
    int leader = -1;

    EVENTUALLY((leader = find_leader()) >= 0);
    return leader;
}

const char *ensemble_ephemerals(void)
{
    return word(ensemble_leader(), "dump");
}

void ensemble_kill(int server)
{
    (void)kill(servers[server].pid, SIGKILL);
    (void)waitpid(servers[server].pid, NULL, 0);
    servers[server].pid = 0;
}

void ensemble_stop(int server)
{
    ASSERT_EQ(kill(servers[server].pid, SIGSTOP), 0);
    /* Until all of its threads have stopped: one may still answer. */
    ASSERT_EQ(waitpid(servers[server].pid, NULL, WUNTRACED),
              servers[server].pid);
    servers[server].stopped = true;
}

void ensemble_continue(int server)
{
    ASSERT_EQ(kill(servers[server].pid, SIGCONT), 0);
    servers[server].stopped = false;
}

/* ---- links -------------------------------------------------------------- */

/* The next ensemble() starts them with what is configured then. */
static void end_servers(void)
{
    for (int i = 0; i < SERVERS; i++) {
        if (servers[i].pid != 0)
            ensemble_kill(i);
        servers[i].stopped = false;
    }
    for (int i = 0; i < SERVERS; i++)
        write_config(i);
}

static void unlink_servers(void *arg)
{
    (void)arg;
    for (int i = 0; i < SERVERS; i++)
        servers[i].links[0] = servers[i].links[1] = NULL;
    end_servers();
}

void ensemble_linked(void)
{
    if (owner == 0)
        create();
    for (int i = 0; i < SERVERS; i++) {
        servers[i].links[0] = proxy_start(servers[i].peer_port);
        servers[i].links[1] = proxy_start(servers[i].election_port);
    }
    test_defer(unlink_servers, NULL);
    end_servers();
    ensemble();
}

void ensemble_cut(int server)
{
    for (int link = 0; link < 2; link++) {
        for (int i = 0; i < SERVERS; i++) {
            if (i != server)
                proxy_refuse_process(servers[i].links[link],
                                     servers[server].pid);
        }
        proxy_refuse(servers[server].links[link], true);
        proxy_reset(servers[server].links[link]);
    }
}

/* ---- URLs --------------------------------------------------------------- */

static const char *url_of(const int ports[SERVERS], const char *query)
{
    static char urls[4][512];
    static int at;
    char *url = urls[at++ % 4];

    (void)snprintf(url, sizeof(urls[0]),
                   "zk://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d/locks?%s",
                   ports[0], ports[1], ports[2], query);
    return url;
}

const char *ensemble_url(const char *query)
{
    int ports[SERVERS] = {servers[0].port, servers[1].port, servers[2].port};

    return url_of(ports, query);
}

void detour_start(struct detour *detour)
{
    for (int i = 0; i < SERVERS; i++)
        detour->proxies[i] = proxy_start(servers[i].port);
}

const char *detour_url(const struct detour *detour, const char *query)
{
    int ports[SERVERS] = {proxy_port(detour->proxies[0]),
                          proxy_port(detour->proxies[1]),
                          proxy_port(detour->proxies[2])};

    return url_of(ports, query);
}

static int find_server(const struct detour *detour)
{
    for (int i = 0; i < SERVERS; i++) {
        if (proxy_connections(detour->proxies[i]) > 0)
            return i;
    }
    return -1;
}

int detour_server(const struct detour *detour)
{
    int server = -1;

    EVENTUALLY((server = find_server(detour)) >= 0);
    return server;
}

/* ---- clients ------------------------------------------------------------ */

static int read_nodes(const hf_finding *finding, void *ctx)
{
    const char *has = strstr(finding->detail, " has ");

    if (strcmp(finding->check, "root") == 0)
        *(int *)ctx = has ? atoi(has + 5) : 0;
    return 0;
}

int zk_nodes(hf_client *client)
{
    int nodes = -1;

    return hf_doctor(client, read_nodes, &nodes, NULL) == 0 ? nodes : -1;
}
