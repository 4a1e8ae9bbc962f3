/* SPDX-License-Identifier: MIT */
/*
 * completion.c - holdfast completion: what a shell needs to complete us.
 *
 * The scripts are made from the tables that also parse the command line, so
 * they cannot fall behind. Names of locks are asked of the engine, quietly.
 */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "options.h"
#include "secret.h"

static const char help[] =
    "Usage: holdfast completion bash|zsh|fish\n"
    "Print the completion script of a shell. For this shell only:\n"
    "  bash:  . <(holdfast completion bash)\n"
    "  zsh:   . <(holdfast completion zsh)\n"
    "  fish:  holdfast completion fish | source\n"
    "For good, write it to:\n"
    "  bash:  ~/.local/share/bash-completion/completions/holdfast\n"
    "  zsh:   _holdfast in a directory of $fpath\n"
    "  fish:  ~/.config/fish/completions/holdfast.fish\n";

static const struct option *const tables[] = {NULL};

static void each_option(const struct verb *verb,
                        void (*print)(const struct verb *verb,
                                      const struct option *option))
{
    for (size_t t = 0;; t++) {
        const struct option *row =
            verb->options[t] ? verb->options[t] : options_global;

        for (; row->name; row++)
            print(verb, row);
        if (!verb->options[t])
            return;
    }
}

static bool has_names(const struct verb *verb)
{
    return strstr(verb->arguments, "NAME") || strstr(verb->arguments, "PREFIX");
}

static bool has_command(const struct verb *verb)
{
    return strstr(verb->arguments, "CMD") != NULL;
}

static const char *fixed_words(const struct verb *verb)
{
    if (verb == &verb_config)
        return "check show import";
    return verb == &verb_completion ? "bash zsh fish" : "";
}

static void print_word(const struct verb *verb, const struct option *option)
{
    (void)verb;
    if (option->letter)
        printf(" -%c", option->letter);
    printf(" --%s", option->name);
}

/* Between single quotes of a shell that writes one itself as @quote. */
static void print_quoted(const char *text, const char *quote)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs(quote, stdout);
        else
            putchar(*text);
    }
}

static void print_verbs(void)
{
    for (size_t i = 0; cli_verbs[i]; i++)
        printf("%s%s", i ? " " : "", cli_verbs[i]->name);
}

/*
 * Names of locks are other people's bytes: what a script reads from "holdfast
 * ls --names" it compares and quotes, and never lets the shell expand. compgen
 * -W expands its words, so it is not used. A name that "ls" has to escape has
 * a backslash and cannot be typed back: it is left out.
 */
static void print_bash(void)
{
    printf("# bash completion for holdfast\n"
           "_holdfast() {\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} verb= i word quoted\n"
           "    local -a words=() names=()\n"
           "    COMPREPLY=()\n"
           "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
           "        case ${COMP_WORDS[i]} in\n"
           "        --) mapfile -t COMPREPLY < <(compgen -c -- \"$cur\")\n"
           "            return ;;\n"
           "        -*) ;;\n"
           "        *) [ -n \"$verb\" ] || verb=${COMP_WORDS[i]} ;;\n"
           "        esac\n"
           "    done\n"
           "    case $verb in\n"
           "    '') words=(");
    print_verbs();
    printf(") ;;\n");
    for (size_t i = 0; cli_verbs[i]; i++) {
        printf("    %s) words=(%s)", cli_verbs[i]->name,
               fixed_words(cli_verbs[i]));
        if (has_names(cli_verbs[i]))
            printf("\n        [[ $cur == -* ]] || mapfile -t names < "
                   "<(holdfast ls --names 2>/dev/null)");
        printf("\n        [[ $cur != -* ]] || words=(");
        each_option(cli_verbs[i], print_word);
        printf(")");
        printf(" ;;\n");
    }
    printf("    esac\n"
           "    for word in \"${words[@]}\" \"${names[@]}\"; do\n"
           "        [[ $word != *\\\\* ]] || continue\n"
           "        printf -v quoted %%q \"$word\"\n"
           "        [[ $word != \"$cur\"* && $quoted != \"$cur\"* ]] ||\n"
           "            COMPREPLY+=(\"$quoted\")\n"
           "    done\n"
           "}\n"
           "complete -o default -F _holdfast holdfast\n");
}

static void print_zsh(void)
{
    printf("#compdef holdfast\n"
           "_holdfast() {\n"
           "    local -a verbs names\n"
           "    verbs=(\n");
    for (size_t i = 0; cli_verbs[i]; i++) {
        printf("        '%s:", cli_verbs[i]->name);
        print_quoted(cli_verbs[i]->summary, "'\\''");
        printf("'\n");
    }
    printf("    )\n"
           "    if (( CURRENT == 2 )); then\n"
           "        _describe verb verbs\n"
           "        return\n"
           "    fi\n"
           "    if (( ${words[(I)--]} )) && (( ${words[(I)--]} < CURRENT )); "
           "then\n"
           "        shift ${words[(I)--]} words\n"
           "        (( CURRENT = ${#words} ))\n"
           "        _normal\n"
           "        return\n"
           "    fi\n"
           "    names=(\"${(@f)$(holdfast ls --names 2>/dev/null)}\")\n"
           "    names=(\"${(@)names:#*\\\\*}\")\n"
           "    case ${words[2]} in\n");
    for (size_t i = 0; cli_verbs[i]; i++) {
        printf("    %s) if [[ $PREFIX == -* ]]; then compadd --",
               cli_verbs[i]->name);
        each_option(cli_verbs[i], print_word);
        printf("; else compadd -- %s%s; fi ;;\n", fixed_words(cli_verbs[i]),
               has_names(cli_verbs[i]) ? " \"${(@)names:#}\"" : "");
    }
    printf("    esac\n"
           "}\n"
           "compdef _holdfast holdfast\n");
}

static void print_fish_option(const struct verb *verb,
                              const struct option *option)
{
    printf("complete -c holdfast -n '__fish_seen_subcommand_from %s' -l %s",
           verb->name, option->name);
    if (option->letter)
        printf(" -s %c", option->letter);
    if (option->value)
        printf(" -r");
    printf("\n");
}

static void print_fish(void)
{
    printf("# fish completion for holdfast\n"
           "function __holdfast_names\n"
           "    holdfast ls --names 2>/dev/null |\n"
           "        string match --invert --regex '\\\\\\\\'\n"
           "end\n"
           "complete -c holdfast -f\n");
    for (size_t i = 0; cli_verbs[i]; i++) {
        const struct verb *verb = cli_verbs[i];

        printf("complete -c holdfast -n __fish_use_subcommand -a %s -d '",
               verb->name);
        print_quoted(verb->summary, "\\'");
        printf("'\n");
        if (*fixed_words(verb))
            printf("complete -c holdfast -n '__fish_seen_subcommand_from %s' "
                   "-a '%s'\n",
                   verb->name, fixed_words(verb));
        if (has_names(verb))
            printf("complete -c holdfast -n '__fish_seen_subcommand_from %s' "
                   "-a '(__holdfast_names)'\n",
                   verb->name);
        if (has_command(verb))
            printf("complete -c holdfast -n '__fish_seen_subcommand_from %s' "
                   "-xa '(__fish_complete_subcommand "
                   "--fcs-skip=3)'\n",
                   verb->name);
        each_option(verb, print_fish_option);
    }
}

static int completion_main(const struct verb *verb, int argc, char **argv)
{
    struct words words = {.wanted = 1, .needed = 1};
    int rc = options_parse(verb, argc, argv, &words);

    if (rc != 0)
        return rc;
    if (strcmp(words.word[0], "bash") == 0)
        print_bash();
    else if (strcmp(words.word[0], "zsh") == 0)
        print_zsh();
    else if (strcmp(words.word[0], "fish") == 0)
        print_fish();
    else
        return cli_usage("bash, zsh or fish, not \"%s\"",
                         secret_shown(words.word[0]));
    return CLI_DONE;
}

VERB(completion, "bash|zsh|fish", "print the completion script of a shell");
