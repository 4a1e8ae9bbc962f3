# SPDX-License-Identifier: MIT
#
# embed.cmake - make a C file of an engine's SQL.
#
#   cmake -D ENGINE=mysql -D FROM=src/engines/mysql -D TO=sql.c -P embed.cmake
#
# FROM/sql/NAME.sql becomes hf__ENGINE_sql_NAME, which FROM/sql.h declares.
# sql/fragments.sql has what several texts share:
#
#   --fragment gate
#   gate=~0*EXISTS(SELECT 1 FROM holdfast_ticket WHERE name={1})
#
# In a text, and in a fragment, {gate:$N} is that, with $N for {1}. Several
# values stand apart by " | ". Comments ("--" at the beginning of a line) do not
# reach the server, nor do the line breaks: one is a space, or nothing beside a
# bracket, a comma or a semicolon.

cmake_minimum_required(VERSION 3.25)

# @text without comments and line breaks.
function(join_lines text ret_text)
    string(REGEX REPLACE "\n *--[^\n]*" "" text "\n${text}\n")
    string(REGEX REPLACE "([(,;\n])\n+ *" "\\1" text "${text}")
    string(REGEX REPLACE "\n+ *\\)" ")" text "${text}")
    string(REGEX REPLACE "\n+ *" " " text "${text}")
    string(STRIP "${text}" text)
    set(${ret_text} "${text}" PARENT_SCOPE)
endfunction()

# Each --fragment NAME is fragment_NAME from here on.
set(rest "")
if(EXISTS "${FROM}/sql/fragments.sql")
    file(READ "${FROM}/sql/fragments.sql" rest)
endif()
string(FIND "${rest}" "--fragment " at)
while(NOT at LESS 0)
    string(SUBSTRING "${rest}" ${at} -1 rest)
    string(REGEX MATCH "^--fragment ([a-z_]+)\n" head "${rest}")
    set(name "${CMAKE_MATCH_1}")
    string(LENGTH "${head}" at)
    string(SUBSTRING "${rest}" ${at} -1 rest)
    string(FIND "${rest}" "--fragment " at)
    string(SUBSTRING "${rest}" 0 ${at} text)
    join_lines("${text}" fragment_${name})
endwhile()

# @text with its fragments put in, the innermost first.
function(put_fragments file text ret_text)
    while(text MATCHES "{([a-z_]+)(:([^{}]*))?}")
        set(found "${CMAKE_MATCH_0}")
        set(values "${CMAKE_MATCH_3}")
        if(NOT DEFINED fragment_${CMAKE_MATCH_1})
            message(FATAL_ERROR "${file}: no such fragment: ${found}")
        endif()
        set(part "${fragment_${CMAKE_MATCH_1}}")
        set(i 1)
        string(FIND "${values}" " | " at)
        while(NOT at LESS 0)
            string(SUBSTRING "${values}" 0 ${at} value)
            string(REPLACE "{${i}}" "${value}" part "${part}")
            math(EXPR at "${at} + 3")
            string(SUBSTRING "${values}" ${at} -1 values)
            math(EXPR i "${i} + 1")
            string(FIND "${values}" " | " at)
        endwhile()
        string(REPLACE "{${i}}" "${values}" part "${part}")
        string(REPLACE "${found}" "${part}" text "${text}")
    endwhile()
    if(text MATCHES "{[0-9]}")
        message(FATAL_ERROR "${file}: a fragment has no value for it: ${text}")
    endif()
    set(${ret_text} "${text}" PARENT_SCOPE)
endfunction()

file(READ "${FROM}/sql.h" header)
set(c "/* Made of the files in sql/ by engines/sql/embed.cmake. */\n")
string(APPEND c "#include \"engines/${ENGINE}/sql.h\"\n")
file(GLOB files "${FROM}/sql/*.sql")
list(FILTER files EXCLUDE REGEX "/fragments[.]sql$")
foreach(file IN LISTS files)
    get_filename_component(name "${file}" NAME_WE)
    set(symbol "hf__${ENGINE}_sql_${name}")
    string(FIND "${header}" " ${symbol}[]" at)
    if(at LESS 0)
        message(FATAL_ERROR "${file}: ${FROM}/sql.h does not declare ${symbol}")
    endif()
    file(READ "${file}" text)
    put_fragments("${file}" "${text}" text)
    join_lines("${text}" text)
    string(REPLACE "\\" "\\\\" text "${text}")
    string(REPLACE "\"" "\\\"" text "${text}")
    string(APPEND c "\nconst char ${symbol}[] =\n    \"${text}\";\n")
endforeach()
file(WRITE "${TO}" "${c}")
