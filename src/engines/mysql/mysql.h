/* SPDX-License-Identifier: MIT */
/*
 * mysql.h - the parts of the MariaDB engine to each other.
 *
 *   mysql.c       the engine's table: open, connect, close, the timer
 *   connection.c  one connection: looking up, greeting, ending
 *   calls.c       calls and their answers, in order
 *   errors.c      what the server's error numbers mean for a lock
 *   statements.c  the SQL, and how values get into it
 *   tickets.c     which tickets the server may know
 *   row.c         what locks share that are a row
 *   table.c       mode=table
 *   dialect.c     dialect=shedlock, dialect=spring
 *   by_hand.c     dialect=row
 *   session.c     mode=get_lock, mode=for_update
 *   lease.c       how long such a session may be silent
 *   pooled.c      the connections that these need beside the main one
 *   listen.c      the end of a session that holds is heard
 *   inspect.c     list, check, break, versions        doctor.c
 */
#ifndef HF_MYSQL_MYSQL_H
#define HF_MYSQL_MYSQL_H

#include "base/buf.h"
#include "engines/engine.h"
#include "engines/mysql/library.h"
#include "engines/sql/dialect.h"
#include "engines/sql/pool.h"
#include "net/resolve.h"

/* How long the server keeps a session that has no lease. */
enum { HF__MYSQL_IDLE_S = 86400 };

struct hf__mysql;
struct hf__mysql_call;
struct hf__mysql_connection;

enum {
    HF__MYSQL_BATCH = 64,
    HF__MYSQL_BUCKETS = 1024,
    HF__MYSQL_GHOSTS = 16,
    HF__MYSQL_PARAMS = 8,  /* of a prepared statement */
    HF__MYSQL_PREPARED = 8 /* on one connection */
};

/* What a server may say to one call. */
enum {
    HF__MYSQL_COLUMNS = 16,
    HF__MYSQL_ROWS = 1 << 17,
    HF__MYSQL_BYTES = 16 << 20,
};

/* A field of a row; ends with a NUL that is not counted. */
struct hf__mysql_field {
    const char *text; /* NULL: NULL */
    size_t len;
};

/* What the server said to one call. */
struct hf__mysql_reply {
    unsigned code;  /* its error number; 0: none */
    char text[200]; /* and its words */
    uint32_t n;     /* statements that were carried out */
    uint64_t affected[HF__MYSQL_BATCH];
    uint64_t number;         /* a prepared statement's LAST_INSERT_ID() */
    bool was_in_transaction; /* after the first of them */
    bool in_transaction;     /* after the last of them */
    /* The one result with rows that a call may have. */
    unsigned columns; /* 0: there was none */
    uint32_t rows;
    struct hf__buf bytes; /* of each field its length, and it */
    size_t at;            /* what hf__mysql_row() reads next */
};

/* @reply is NULL when the connection was lost before it came. */
typedef void hf__mysql_done_fn(struct hf__mysql *mysql,
                               struct hf__mysql_call *call,
                               struct hf__mysql_reply *reply);

/* A value that goes beside a prepared statement. */
struct hf__mysql_param {
    bool is_number;
    uint64_t number;
    size_t at; /* where its bytes are, in the call's sql */
    unsigned long len;
};

/* One text of statements, or one prepared statement, from being queued to being
 * answered. */
struct hf__mysql_call {
    struct hf__list link;
    struct hf__mysql_connection *connection;
    hf__mysql_done_fn *done;
    uint64_t ticket;         /* its id; 0: none. A pointer might outlive it */
    struct hf__query *query; /* lives until it is answered */
    size_t n;                /* of @tickets */
    uint64_t *tickets;       /* of a batch */
    int64_t sent_ns;
    int64_t wait_ms; /* the server may take so much longer than io_timeout */
    bool again;      /* the tables have been made for it already */
    bool kept;       /* somebody has it: do not free it when it is answered */
    struct hf__mysql_call *then; /* what waits for the tables */
    const char *text;            /* prepared; NULL: @sql is the text */
    unsigned n_params;
    struct hf__mysql_param params[HF__MYSQL_PARAMS];
    struct hf__buf sql;
};

/* A statement that the server has parsed, on one connection. */
struct hf__mysql_prepared {
    const char *text; /* which one: a text of statements.c, by its address */
    MYSQL_STMT *handle;
    bool ready;
    struct hf__buf sql; /* while it is being prepared */
};

enum hf__mysql_step {
    HF__MYSQL_CLOSED,
    HF__MYSQL_WANTED, /* the timer will begin */
    HF__MYSQL_RESOLVING,
    HF__MYSQL_CONNECTING,
    HF__MYSQL_IDLE,
    HF__MYSQL_QUERY,
    HF__MYSQL_FETCH,
    HF__MYSQL_NEXT,
    HF__MYSQL_PREPARE,
    HF__MYSQL_EXECUTE
};

/* What the server knows a connection by. */
struct hf__mysql_session {
    uint64_t serial; /* which connection of this client; 0: none */
    uint64_t id;     /* the server's number */
    uint16_t port;   /* of our end */
    uint16_t looks;  /* for it to have ended */
    bool ending;     /* the next look is under way */
};

struct hf__mysql_connection {
    struct hf__sql_link link;
    struct hf__mysql *mysql;
    MYSQL *handle;
    uint8_t step; /* enum hf__mysql_step */
    bool greeted; /* its first packet was looked at */
    bool broken;  /* found while sending: the timer will tell */
    bool early;   /* answered while sending */
    int early_rc;
    struct hf__io io;
    uint32_t events;
    struct hf__resolve *resolving;
    struct addrinfo *addresses;
    struct addrinfo *next; /* to be tried */
    char address[64];      /* being tried */
    int64_t since_ns;      /* connecting since */
    struct hf__list calls; /* the first is under way unless IDLE */
    struct hf__mysql_reply reply;
    MYSQL_RES *result; /* being read */
    MYSQL_ROW row;     /* of it */
    struct hf__mysql_prepared prepared[HF__MYSQL_PREPARED];
    struct hf__mysql_prepared *current; /* being carried out */
    struct hf__mysql_session session;
    uint64_t ticket; /* whose it is, of the pool's; 0: nobody's */
    bool lent;       /* to the caller: hands off */
    int64_t lease_s; /* its wait_timeout; 0: a long one */
    int64_t free_ns; /* since when it holds nothing */
    uint32_t round;  /* of the timer that has looked at it */
    /* The greeting was answered: calls may follow. */
    void (*opened)(struct hf__mysql_connection *connection);
    /* CLOSED now, and every call was told; it may be freed. */
    void (*closed)(struct hf__mysql_connection *connection,
                   const hf_error *err);
};

/* Our bytes of every ticket. */
struct hf__mysql_ticket {
    struct hf__ticket *next; /* in mysql->tickets */
    bool known;
    bool asking;     /* an acquire has not been reported yet */
    bool waiting;    /* in line */
    bool polling;    /* a question about its place is under way */
    bool leaving;    /* withdraw() or release() was called */
    bool releasing;  /* it was release() */
    bool in_row;     /* it has, or may have, a row in holdfast_ticket */
    bool trying;     /* the first question has not been answered */
    bool has_row;    /* dialect=row: we have made it */
    bool held;       /* a session or transaction holds it */
    bool lent;       /* the caller has had the transaction */
    bool unsure;     /* a commit of the caller's was not answered; of a row: an
                        acquire before this one */
    bool exorcising; /* the ghost is being ended */
    struct hf__mysql_session ghost;  /* lost, and may hold it or wait */
    struct hf__mysql_connection *on; /* the session; NULL: none */
    const struct hf__mysql_lock_texts *texts; /* of a session's lock */
    struct hf__mysql *mysql;
    struct hf__ticket *self;
    struct hf__sql_want want;
    uint64_t token;  /* of a row, as it was granted; 0: it was not */
    int64_t poll_ns; /* look again then; 0: not now */
};

/* How the ways to lock differ. */
struct hf__mysql_mode {
    const char *name;
    uint64_t caps;
    int (*acquire)(struct hf__mysql *mysql, struct hf__ticket *ticket,
                   hf_error *err);
    /* Release and withdraw: @releasing. */
    int (*leave)(struct hf__mysql *mysql, struct hf__ticket *ticket,
                 bool releasing, hf_error *err);
    int (*renew)(struct hf__mysql *mysql, struct hf__ticket **tickets, size_t n,
                 hf_error *err);
    /* Where a lock is a row: the text that renews it. */
    const char *(*renewal)(const struct hf__mysql *mysql,
                           const struct hf__ticket *ticket);
    int (*downgrade)(struct hf__mysql *mysql, struct hf__ticket *ticket,
                     hf_error *err); /* NULL: cannot */
    /* Look after those who wait; returns when the next one is due. */
    int64_t (*attend)(struct hf__mysql *mysql, int64_t now_ns);
    /* The main connection was lost; it is up again. */
    void (*lost)(struct hf__mysql *mysql);
    void (*regained)(struct hf__mysql *mysql);
};

extern const struct hf__mysql_mode hf__mysql_table;
extern const struct hf__mysql_mode hf__mysql_in_dialect;
extern const struct hf__mysql_mode hf__mysql_by_hand;
extern const struct hf__mysql_mode hf__mysql_get_lock;
extern const struct hf__mysql_mode hf__mysql_for_update;

/* What is said in a dialect, with the name of its table. */
enum hf__mysql_dialect_text {
    HF__MYSQL_MAKE, /* the table, if it is not there; NULL: not ours to make */
    HF__MYSQL_TAKE, /* → is it ours, is the row the name's, who has it */
    HF__MYSQL_KEEP,
    HF__MYSQL_LEAVE,
    HF__MYSQL_SHOW,  /* as hf__mysql_show */
    HF__MYSQL_LIST,  /* as hf__mysql_list, with keys for names */
    HF__MYSQL_BREAK, /* as hf__mysql_break */
    HF__MYSQL_TRY,   /* every right that a lock needs, and nothing stays */
    HF__MYSQL_DIALECT_TEXTS
};

struct hf__mysql {
    struct hf__engine base;
    const struct hf__mysql_mode *mode;
    const struct hf__sql_dialect *dialect; /* NULL: our own tables */
    char *dialect_texts[HF__MYSQL_DIALECT_TEXTS];
    struct hf__sql_pool pool;
    uint32_t round;      /* of the timer */
    int64_t sweep_ns;    /* look for rows of the dead then; 0: not now */
    uint32_t held;       /* tickets that a session or transaction holds */
    int64_t held_ns;     /* since when there is one */
    bool listening;      /* … so long that the end of its session is heard */
    uint32_t main_users; /* tickets that ask, or hold, on the main session */
    bool proven;         /* the last answer about a row was one; dialect=row:
                            the column is unique */
    struct hf__mysql_connection main;
    bool up;
    struct hf__mysql_session old;                      /* the main one before */
    struct hf__mysql_session ghosts[HF__MYSQL_GHOSTS]; /* lost; newest first */
    bool own_row;            /* for_update: rows of the application's table */
    bool own_versions;       /* … and versions in its column */
    bool is_mariadb;         /* else MySQL */
    char server[80];         /* its version */
    char server_comment[80]; /* and its maker */
    uint64_t serials;
    struct hf__timer timer;
    struct hf__ticket *tickets[HF__MYSQL_BUCKETS];
    struct hf__buf scratch;
    const char *database; /* of the URL */
    char schema[260];     /* as the server calls it */
    char peer[280];       /* for people: "mysql db1:3306" */
    int port;
    bool tls;
};

/* ---- connection.c ------------------------------------------------------ */

/* Once; the owner then sets opened and closed. */
void hf__mysql_connection_init(struct hf__mysql_connection *connection,
                               struct hf__mysql *mysql);
/* Begin to connect; ends in opened() or closed(). */
int hf__mysql_connection_start(struct hf__mysql_connection *connection,
                               hf_error *err);
/* Forget it; nothing is reported. */
void hf__mysql_connection_stop(struct hf__mysql_connection *connection,
                               bool forked);
/* It cannot be trusted any more: tell every call, then closed(). */
void hf__mysql_connection_fail(struct hf__mysql_connection *connection,
                               const hf_error *err);
/* Begin to connect, which must not happen inside a call down. */
void hf__mysql_connection_begin(struct hf__mysql_connection *connection);
/* Is something overdue, or broken? If not, when would it be. */
int64_t hf__mysql_connection_check(struct hf__mysql_connection *connection,
                                   int64_t now_ns);
/* It is of no use any more; the timer will tell. */
void hf__mysql_connection_break(struct hf__mysql_connection *connection);
/* What went wrong, in the words of the library or ours: fail. */
void hf__mysql_connection_lost(struct hf__mysql_connection *connection,
                               const char *words);
/* The text that ends a lost session, or finds that it has ended. */
void hf__mysql_end_session(const struct hf__mysql *mysql,
                           struct hf__mysql_session *session,
                           struct hf__buf *to);
/* What the server said to it: nothing is left; soon, ask again. */
bool hf__mysql_is_ended(const struct hf__mysql_reply *reply);
bool hf__mysql_is_ending(const struct hf__mysql_session *session,
                         const struct hf__mysql_reply *reply);

/* ---- calls.c ----------------------------------------------------------- */

/* A call to fill in; NULL without memory. */
struct hf__mysql_call *hf__mysql_call_new(hf__mysql_done_fn *done,
                                          hf_error *err);
void hf__mysql_call_free(struct hf__mysql_call *call);
/* Send it, or when its turn comes; takes @call in every case. */
int hf__mysql_call_send(struct hf__mysql_connection *connection,
                        struct hf__mysql_call *call, hf_error *err);
/* Send a text of statements.c with the values of @ticket; @wait_ms: so much
 * longer than io_timeout may it take. */
int hf__mysql_ask(struct hf__mysql_connection *connection,
                  struct hf__ticket *ticket, const char *text,
                  hf__mysql_done_fn *done, int64_t wait_ms, hf_error *err);
/* The same for one statement that is prepared, where we can. */
int hf__mysql_ask_prepared(struct hf__mysql_connection *connection,
                           struct hf__ticket *ticket, const char *text,
                           hf__mysql_done_fn *done, int64_t wait_ms,
                           hf_error *err);
/* The one under way; NULL: none. */
struct hf__mysql_call *hf__mysql_call_first(
    const struct hf__mysql_connection *connection);
/* The connection is closed: forget every call, or tell it. */
void hf__mysql_calls_end(struct hf__mysql_connection *connection, bool told);
/* Go on: the descriptor is ready; the answer came while sending. */
void hf__mysql_calls_ready(struct hf__mysql_connection *connection, int ready);
void hf__mysql_calls_early(struct hf__mysql_connection *connection);
void hf__mysql_prepared_free(struct hf__mysql_connection *connection);
/* Watch for the end of the session; for what the library waits for; not at
 * all. */
void hf__mysql_watch_idle(struct hf__mysql_connection *connection);
void hf__mysql_watch_for(struct hf__mysql_connection *connection,
                         int waits_for);
void hf__mysql_unwatch(struct hf__mysql_connection *connection);
int hf__mysql_ready_of(uint32_t events);
/* The next row of @columns fields; false at the end, or where the answer has
 * another number of columns. The fields, of which each may be NULL, live as long
 * as the reply. */
bool hf__mysql_row(struct hf__mysql_reply *reply, unsigned columns,
                   struct hf__mysql_field row[]);
/* A field that is a number; 0 if it is none. */
uint64_t hf__mysql_number(struct hf__mysql_field field);

extern const char hf__mysql_strange[];

/* ---- errors.c ---------------------------------------------------------- */

/* What an error of the server means, in our words. */
int hf__mysql_explain(const struct hf__mysql *mysql,
                      const struct hf__mysql_reply *reply, hf_error *err);
int hf__mysql_explain_lost(const struct hf__mysql *mysql, hf_error *err);
/* A deadlock, a lock that took too long, a table that was changed meanwhile:
 * nothing was done, ask again. */
bool hf__mysql_is_collision(const struct hf__mysql_reply *reply);
bool hf__mysql_is_no_table(const struct hf__mysql_reply *reply);
/* A prepared statement that takes what is free found that it is not. */
bool hf__mysql_is_refused(const struct hf__mysql_reply *reply);

/* ---- lease.c ----------------------------------------------------------- */

/* A session that will hold @ticket is ended if it is silent for its lease. */
int hf__mysql_need_lease(struct hf__mysql_connection *connection,
                         const struct hf__ticket *ticket, hf_error *err);
/* It holds nothing any more. */
void hf__mysql_rest(struct hf__mysql_connection *connection);
/* What the timer does about it; when to come again. */
int64_t hf__mysql_relax(struct hf__mysql *mysql, int64_t now_ns);

/* ---- listen.c ---------------------------------------------------------- */

/* A session or transaction holds the ticket, or not any more. */
void hf__mysql_set_held(struct hf__mysql *mysql, struct hf__mysql_ticket *mine,
                        bool held);
/* Begin to listen if it is time; when to come again. */
int64_t hf__mysql_listen(struct hf__mysql *mysql, int64_t now_ns);

/* ---- statements.c ------------------------------------------------------ */

/* What is put in the place of a '$' and a letter. */
struct hf__mysql_values {
    /* N name, T number, R record, H both, L lease in µs, M mode, S slots,
     * W may wait, F how a row is locked, D what GET_LOCK calls it */
    const struct hf__ticket *ticket;
    const char *name;  /* N, where there is no ticket; Z its length; P as it is
                          in our own tables */
    const char *owner; /* O; and G is the region of the settings, C a collation
                          by bytes, V where the server's variables are. Of
                          the application's: 1 table, 2 key, 3 owner_column,
                          4 version_table, 5 column */
    uint64_t token;    /* K */
};
/* A waiter that has not asked for so long is forgotten: A. */
enum { HF__MYSQL_LIFE_US = 3000000 };
void hf__mysql_statement(struct hf__mysql *mysql, struct hf__buf *to,
                         const char *text,
                         const struct hf__mysql_values *values);
/* @text to be prepared, and the values that go beside it. */
void hf__mysql_put_template(struct hf__buf *to, const char *text);
void hf__mysql_put_params(struct hf__mysql *mysql, struct hf__mysql_call *call,
                          const char *text,
                          const struct hf__mysql_values *values);

/* How the lock of a session is asked for, waited for and freed. */
struct hf__mysql_lock_texts {
    const char *try;
    const char *wait;
    const char *leave;
};
const struct hf__mysql_lock_texts *hf__mysql_lock_texts(
    const struct hf__mysql *mysql, const struct hf__ticket *ticket);

extern const char hf__mysql_make_tables[];
extern const char hf__mysql_take[];
extern const char hf__mysql_who[];
extern const char hf__mysql_acquire_slow[];
extern const char hf__mysql_look[];
extern const char hf__mysql_leave_fast[];
extern const char hf__mysql_leave_slow[];
extern const char hf__mysql_sweep[];
extern const char hf__mysql_renew_exclusive[];
extern const char hf__mysql_renew_row[];
extern const char hf__mysql_downgrade[];
extern const char hf__mysql_list[];
extern const char hf__mysql_doctor[];
extern const char hf__mysql_show[];
extern const char hf__mysql_check[];
extern const char hf__mysql_break[];
extern const char hf__mysql_for_update_make[];
extern const char hf__mysql_for_update_begin[];
extern const char hf__mysql_for_update_leave[];
extern const char hf__mysql_for_update_undo[];
extern const char hf__mysql_version_read[];
extern const char hf__mysql_version_commit[];
/* … on tables of the application's. */
extern const char hf__mysql_own_begin[];
extern const char hf__mysql_own_doctor[];
extern const char hf__mysql_own_version_read[];
extern const char hf__mysql_own_version_commit[];

/* ---- mysql.c ----------------------------------------------------------- */

/* Be woken no later than @due_ns. */
void hf__mysql_wake(struct hf__mysql *mysql, int64_t due_ns);
/* May calls be sent on the main connection? If not, 0 is not returned. */
int hf__mysql_is_up(const struct hf__mysql *mysql, hf_error *err);

/* ---- tickets.c --------------------------------------------------------- */

static inline struct hf__mysql_ticket *hf__mysql_ticket(
    const struct hf__mysql *mysql, struct hf__ticket *ticket)
{
    return hf__engine_ticket(&mysql->base, ticket);
}
static inline struct hf__mysql_values hf__mysql_values_of(
    const struct hf__mysql *mysql, struct hf__ticket *ticket)
{
    return (struct hf__mysql_values){
        .ticket = ticket, .token = hf__mysql_ticket(mysql, ticket)->token};
}
void hf__mysql_ticket_know(struct hf__mysql *mysql, struct hf__ticket *ticket);
struct hf__ticket *hf__mysql_ticket_find(const struct hf__mysql *mysql,
                                         uint64_t id);
void hf__mysql_ticket_forget(struct hf__mysql *mysql,
                             struct hf__ticket *ticket);

/* ---- row.c ------------------------------------------------------------- */

/* If the tables were not there: make them, and ask again. True: it is done. */
bool hf__mysql_remake(struct hf__mysql_call *call,
                      const struct hf__mysql_reply *reply);
/* What became of an acquire. Not granted: an error, so it did nothing. */
void hf__mysql_row_granted(struct hf__mysql *mysql, struct hf__ticket *ticket,
                           uint64_t token, int64_t sent_ns);
void hf__mysql_row_busy(struct hf__mysql *mysql, struct hf__ticket *ticket,
                        const char *holder);
void hf__mysql_row_not_granted(struct hf__mysql *mysql,
                               struct hf__ticket *ticket,
                               const struct hf__mysql_reply *reply);
void hf__mysql_row_unknown(struct hf__mysql *mysql, struct hf__ticket *ticket);
/* It could not be sent, for @rc; the server may know it of before. What the
 * acquire returns. */
int hf__mysql_row_not_asked(struct hf__mysql *mysql, struct hf__ticket *ticket,
                            bool known, int rc);
void hf__mysql_row_left(struct hf__mysql *mysql, struct hf__ticket *ticket,
                        bool held);
/* Tells what an error means; false if there is none. A deadlock is no reason
 * to give up: nothing was done. */
bool hf__mysql_row_not_left(struct hf__mysql *mysql, struct hf__ticket *ticket,
                            const struct hf__mysql_reply *reply);
int hf__mysql_row_renew(struct hf__mysql *mysql, struct hf__ticket **tickets,
                        size_t n, hf_error *err);
void hf__mysql_row_regained(struct hf__mysql *mysql);

/* ---- by_hand.c --------------------------------------------------------- */

const char *const *hf__mysql_by_hand_texts(const struct hf__mysql *mysql);

/* ---- dialect.c --------------------------------------------------------- */

int hf__mysql_dialect_open(struct hf__mysql *mysql, hf_error *err);
void hf__mysql_dialect_close(struct hf__mysql *mysql);

/* ---- session.c --------------------------------------------------------- */

/* @connection is gone: whose it was, or NULL; then, when it is freed, tell. */
struct hf__ticket *hf__mysql_session_gone(
    struct hf__mysql_connection *connection);
void hf__mysql_session_tell(struct hf__mysql *mysql, struct hf__ticket *ticket);
hf__engine_query_fn hf__mysql_connection_op;

/* ---- pooled.c ---------------------------------------------------------- */

static inline struct hf__mysql_connection *hf__mysql_connection_of(
    struct hf__sql_link *link)
{
    return HF_CONTAINER_OF(link, struct hf__mysql_connection, link);
}
void hf__mysql_pooled_open(struct hf__mysql *mysql);
void hf__mysql_pooled_close(struct hf__mysql *mysql, bool forked);
/* What the timer does for all of them. */
void hf__mysql_pooled_attend(struct hf__mysql *mysql, int64_t now_ns);
/* Close one that a ticket had, and free it. */
void hf__mysql_pooled_drop(struct hf__mysql_connection *connection);

/* ---- inspect.c --------------------------------------------------------- */

hf__engine_query_fn hf__mysql_list_locks;
hf__engine_query_fn hf__mysql_check_token;
hf__engine_query_fn hf__mysql_break_lock;
hf__engine_query_fn hf__mysql_version_read_op;
hf__engine_query_fn hf__mysql_version_commit_op;

/* ---- doctor.c ---------------------------------------------------------- */

hf__engine_query_fn hf__mysql_examine;

#endif
