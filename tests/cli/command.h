/* SPDX-License-Identifier: MIT */
/*
 * command.h - the command under test: started, talked to, looked at.
 *
 *     struct command *first = COMMAND("run", "x", "--", "cat");
 *     …
 *     command_close_input(first);
 *     ASSERT_EQ(command_wait(first), 0);
 *
 * Every test has a store of its own (HOLDFAST_URL), an empty home and a plain
 * environment. Whatever still runs when a test is over is killed.
 */
#ifndef HF_TESTS_CLI_COMMAND_H
#define HF_TESTS_CLI_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

enum { COMMAND_PATIENCE_MS = 60000 };

struct command;

/* Start the command with these arguments; its streams are pipes. */
struct command *command_start(const char *const *arguments);
#define COMMAND(...) command_start((const char *const[]){__VA_ARGS__, NULL})
/* Start any program in the same way: the arguments begin with its name. */
struct command *program_start(const char *const *arguments);
#define PROGRAM(...) program_start((const char *const[]){__VA_ARGS__, NULL})
/* Start it on a terminal of its own, as a session leader. */
struct command *terminal_start(const char *const *arguments);
#define TERMINAL(...) terminal_start((const char *const[]){__VA_ARGS__, NULL})

/* A variable for the commands that start from here on; NULL removes it. */
void command_variable(const char *name, const char *value);
/* The directory of the running test, and the URL of its store. */
const char *command_dir(void);
const char *command_url(void);
/* The same store behind the fault engine with this script. */
const char *command_faulty_url(const char *script);
/* As if an ancestor had held @name, and its lock were gone. */
void command_bereave(const char *name);
/* dir/NAME; a few of them live at a time. */
const char *command_path(const char *name);

pid_t command_pid(const struct command *command);
/* Everything it wrote so far. */
const char *command_out(const struct command *command);
const char *command_err(const struct command *command);
/* Read until @text stands in its output (of a terminal: on the screen). */
void command_expect(struct command *command, const char *text);
/* The same for stderr. */
void command_expect_err(struct command *command, const char *text);
/* Read what comes within @ms. */
void command_read(struct command *command, int ms);
/* Forget what was read, so that command_expect() finds only what is new. */
void command_forget(struct command *command);
/* The number behind @label in its output, once there is a whole line. */
long command_number(struct command *command, const char *label);
/* A run of @name that holds it until its input is closed; it is held. */
struct command *command_holder(const char *name, const char *note);
/* The token of such a run; valid until the next call. */
const char *command_token(struct command *holder);
/* Take the lock @name from @holder, which prints its token likewise. */
void command_break(struct command *holder, const char *name);
void command_type(struct command *command, const char *text);
void command_close_input(struct command *command);
void command_signal(struct command *command, int signo);
/* Its exit code; 1000 + n if signal n ended it. Reads all output first. */
int command_wait(struct command *command);
/* COMMAND(), to its end. */
struct command *command_finish(const char *const *arguments, int wanted);
#define FINISH(wanted, ...)                                                    \
    command_finish((const char *const[]){__VA_ARGS__, NULL}, wanted)

/* True as soon as @pid has ended; false if it still lives after @ms. */
bool process_ends(pid_t pid, int ms);
/* True until somebody has seen its end. */
bool process_exists(pid_t pid);
/* True while @pid lives. */
bool process_lives(pid_t pid);
/* Milliseconds, for what has to be quick. */
long now_ms(void);
/* How many lines there are. */
int lines_in(const char *text);
/* The whole file, valid until the next call. */
const char *file_text(const char *path);
void file_write(const char *path, const char *text);

#endif
