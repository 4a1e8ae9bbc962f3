# SPDX-License-Identifier: MIT
#
# embed.cmake - make a C file of the Lua scripts.
#
#   cmake -D REDIS=src/engines/redis -D TO=directory -P embed.cmake
#
# Every HF__SCRIPT_NAME of scripts.h is lua/name.lua. Each is made twice: for a
# server alone, and for the nodes of a cluster. TO gets scripts.c, and both
# variants of each script for the tests to look at. In the Lua files,
#
#   --include FILE                is the text of FILE
#   --if cluster … --else … --end  is for clusters (… or for a server alone)
#   x.ttl                          is sub(x,51,63): a field of record.h
#   sub(text,TTL)                  is sub(text,51,63), for what is not a name
#   PUBLISH, CHANNEL               are the command and the channel of wake-ups
#
# Comments, indentation and empty lines do not reach the server. In a cluster
# channels are sharded: they are in the slot of the lock.

cmake_minimum_required(VERSION 3.25)

file(READ "${REDIS}/record.h" header)
string(REGEX MATCHALL "HF__FIELD\\([A-Z_]+, [0-9]+, [0-9]+\\)" fields
             "${header}")
file(READ "${REDIS}/scripts.h" header)
string(REGEX MATCHALL "HF__SCRIPT_[A-Z_]+" scripts "${header}")
list(REMOVE_DUPLICATES scripts)

# The text of a file, and of those it includes.
function(read_lua name ret_text)
    file(READ "${REDIS}/lua/${name}" text)
    string(REGEX MATCH "\n *--include ([a-z_.]+)" found "${text}")
    while(found)
        read_lua("${CMAKE_MATCH_1}" included)
        string(REPLACE "${found}\n" "\n${included}" text "${text}")
        string(REGEX MATCH "\n *--include ([a-z_.]+)" found "${text}")
    endwhile()
    set(${ret_text} "${text}" PARENT_SCOPE)
endfunction()

# Cut @mark and what follows off @text: in @ret_before and @ret_after.
function(cut text mark ret_before ret_after)
    string(FIND "${text}" "${mark}" at)
    if(at LESS 0)
        message(FATAL_ERROR "no ${mark} in: ${text}")
    endif()
    string(LENGTH "${mark}" len)
    math(EXPR behind "${at} + ${len}")
    string(SUBSTRING "${text}" 0 ${at} before)
    string(SUBSTRING "${text}" ${behind} -1 after)
    set(${ret_before} "${before}" PARENT_SCOPE)
    set(${ret_after} "${after}" PARENT_SCOPE)
endfunction()

function(choose_variant variant text ret_text)
    string(FIND "${text}" "--if cluster\n" at)
    while(NOT at LESS 0)
        cut("${text}" "--if cluster\n" before rest)
        cut("${rest}" "--end\n" cluster after)
        set(alone "")
        string(FIND "${cluster}" "--else\n" at)
        if(NOT at LESS 0)
            cut("${cluster}" "--else\n" cluster alone)
        endif()
        set(text "${before}${${variant}}${after}")
        string(FIND "${text}" "--if cluster\n" at)
    endwhile()
    set(${ret_text} "${text}" PARENT_SCOPE)
endfunction()

function(put_fields text ret_text)
    foreach(field IN LISTS fields)
        # Without what it is a field of: HF__RECORD_TTL is TTL.
        string(REGEX MATCH "\\([A-Z]+_([A-Z_]+), ([0-9]+), ([0-9]+)" found
                     "${field}")
        set(name "${CMAKE_MATCH_1}")
        math(EXPR first "${CMAKE_MATCH_2} + 1")
        math(EXPR last "${CMAKE_MATCH_2} + ${CMAKE_MATCH_3}")
        set(place "${first}")
        if(CMAKE_MATCH_3 GREATER 0)
            set(place "${first},${last}")
        endif()
        string(REPLACE ",${name})" ",${place})" text "${text}")
        string(TOLOWER "${name}" name)
        string(REGEX REPLACE "([a-z]+)\\.${name}([^a-z_])"
                             "sub(\\1,${place})\\2" text "${text}")
    endforeach()
    set(${ret_text} "${text}" PARENT_SCOPE)
endfunction()

function(minify text ret_text)
    string(REGEX REPLACE "\n *--[^\n]*" "" text "${text}")
    string(REGEX REPLACE "\n +" "\n" text "${text}")
    string(REGEX REPLACE "\n\n+" "\n" text "${text}")
    set(${ret_text} "${text}" PARENT_SCOPE)
endfunction()

set(publish_alone "'PUBLISH'")
set(channel_alone "'hf:i:'")
set(publish_cluster "'SPUBLISH'")
set(channel_cluster "KEYS[1]..':i:'")

set(c "/* Made of the files in lua/ by lua/embed.cmake. */\n")
string(APPEND c "#include \"engines/redis/scripts.h\"\n\n")
string(APPEND c
       "const struct hf__redis_script hf__redis_scripts[2][HF__SCRIPTS] = {\n")
foreach(variant IN ITEMS alone cluster)
    string(APPEND c "    {\n")
    foreach(script IN LISTS scripts)
        string(REPLACE "HF__SCRIPT_" "" name "${script}")
        string(TOLOWER "${name}.lua" name)
        read_lua("${name}" text)
        choose_variant(${variant} "${text}" text)
        string(REPLACE "(PUBLISH," "(${publish_${variant}}," text "${text}")
        string(REPLACE ",CHANNEL.." ",${channel_${variant}}.." text "${text}")
        put_fields("${text}" text)
        if(text MATCHES "(record|gate|holder|entry)\\.[a-z_]+"
           OR text MATCHES ",[A-Z][A-Z_]+\\)")
            message(FATAL_ERROR "${name}: no such field: ${CMAKE_MATCH_0}")
        endif()
        minify("${text}" text)
        file(WRITE "${TO}/${variant}/${name}" "${text}")
        string(SHA1 digest "${text}")
        string(LENGTH "${text}" len)
        string(REPLACE "\\" "\\\\" text "${text}")
        string(REPLACE "\"" "\\\"" text "${text}")
        string(REPLACE "\n" "\\n\"\n            \"" text "${text}")
        string(APPEND c "        [${script}] =\n            {\"${text}\",\n"
               "             ${len}, \"${digest}\"},\n")
    endforeach()
    string(APPEND c "    },\n")
endforeach()
string(APPEND c "};\n")
file(WRITE "${TO}/scripts.c" "${c}")
