# SPDX-License-Identifier: MIT
#
# hf_api.awk - holdfast.h as JSON, for programs that make bindings.
#
#     awk -f hf_api.awk holdfast.h > hf_api.json
#
# Reads the header as it is laid out here: no declaration is made by a macro,
# except the errors, and every value is a number, a text, or one bit. What it
# cannot read ends it with an error; tests/build/api.py compares the result with
# the compiler's view of the header and with the library.

function fail(what) {
    printf "hf_api.awk: %s: %s\n", FILENAME, what > "/dev/stderr"
    failed = 1
    exit 1
}

function trim(text) {
    gsub(/[ \t\n]+/, " ", text)
    sub(/^ /, "", text)
    sub(/ $/, "", text)
    return text
}

# A C type or declarator, spelt in one way: "const char *".
function spell(type) {
    type = trim(type)
    gsub(/ *\* */, "*", type)
    gsub(/\*/, " *", type)
    gsub(/\* \*/, "**", type)
    return type
}

function quote(text) {
    gsub(/\\/, "\\\\", text)
    gsub(/"/, "\\\"", text)
    gsub(/\n/, "\\n", text)
    gsub(/\t/, " ", text)
    return "\"" text "\""
}

# Without comments; the declarations of a struct or an enum have their own.
function bare(text,    at, end) {
    while ((at = index(text, "/*")) > 0) {
        end = index(substr(text, at), "*/")
        text = substr(text, 1, at - 1) " " substr(text, at + end + 1)
    }
    return text
}

# The words of a comment, without its frame.
function words(comment) {
    sub(/^\/\*\**/, "", comment)
    sub(/\**\/$/, "", comment)
    gsub(/\n[ \t]*\* ?/, "\n", comment)
    sub(/^[ \n]+/, "", comment)
    sub(/[ \n]+$/, "", comment)
    return comment
}

function add(list, item) {
    return list (list == "" ? "\n    " : ",\n    ") item
}

# The value of a constant, or "" if it is none.
function value_of(text,    bit) {
    text = trim(text)
    while (text ~ /^\(.*\)$/)
        text = trim(substr(text, 2, length(text) - 2))
    if (text ~ /^U?INT64_C\([0-9]+\)$/) {
        gsub(/[^0-9]/, "", text)
        return substr(text, 3) # the 64 of the macro's name
    }
    if (text ~ /^-?[0-9]+$/ || text ~ /^"[^"\\]*"$/)
        return text
    if (text ~ /^UINT64_C\(1\) << /) {
        sub(/.*<< /, "", text)
        if (!(text in known))
            fail("no bit " text)
        return sprintf("%.0f", 2 ^ known[text])
    }
    return text in known ? known[text] : ""
}

function constant(name, text,    value) {
    value = value_of(text)
    if (value == "")
        return
    known[name] = value
    constants = add(constants, quote(name) ": " value)
}

# "int a, const char *b" as a list of parameters.
function parameters(text,    part, n, i, list, name, type) {
    text = trim(text)
    if (text == "void" || text == "")
        return "[]"
    n = split(text, part, ",")
    for (i = 1; i <= n; i++) {
        type = trim(part[i])
        if (!match(type, /[A-Za-z_0-9]+$/))
            fail("parameter " type)
        name = substr(type, RSTART)
        type = spell(substr(type, 1, RSTART - 1))
        if (type == "")
            fail("parameter without a name in " text)
        list = list (i > 1 ? ", " : "") "{\"name\": " quote(name) \
            ", \"type\": " quote(type) "}"
    }
    return "[" list "]"
}

# "int hf_f(int a)": its name, what it returns, its parameters.
function prototype(text,    open, head, name) {
    open = index(text, "(")
    head = trim(substr(text, 1, open - 1))
    if (!match(head, /[A-Za-z_0-9]+$/))
        fail("no name in " text)
    name = substr(head, RSTART)
    head = spell(substr(head, 1, RSTART - 1))
    text = substr(text, open + 1)
    sub(/\)[^)]*$/, "", text)
    return "\"name\": " quote(name) ", \"returns\": " quote(head) \
        ", \"parameters\": " parameters(text)
}

# One field of a struct: "char text[248]", "void (*f)(int a)".
function field(text,    name, type, size) {
    text = trim(text)
    size = ""
    if (match(text, /\(\*[A-Za-z_0-9]+\)/)) {
        name = substr(text, RSTART + 2, RLENGTH - 3)
        type = trim(substr(text, 1, RSTART - 1)) " (*)" \
            trim(substr(text, RSTART + RLENGTH))
    } else {
        if (match(text, /\[[0-9]+\]$/)) {
            size = substr(text, RSTART)
            text = substr(text, 1, RSTART - 1)
        }
        match(text, /[A-Za-z_0-9]+$/)
        name = substr(text, RSTART)
        type = spell(substr(text, 1, RSTART - 1)) size
    }
    return "{\"name\": " quote(name) ", \"type\": " quote(type) "}"
}

function structure(text, doc,    open, body, part, n, i, name, list) {
    open = index(text, "{")
    body = bare(substr(text, open + 1))
    match(body, /\}[^}]*$/)
    name = trim(substr(body, RSTART + 1))
    body = substr(body, 1, RSTART - 1)
    n = split(body, part, ";")
    for (i = 1; i <= n; i++)
        if (trim(part[i]) != "")
            list = list (list == "" ? "" : ",") "\n        " field(part[i])
    structs = add(structs, "{\"name\": " quote(name) ", \"doc\": " \
        quote(words(doc)) ", \"fields\": [" list "]}")
}

function enumeration(text,    open, body, part, n, i, name, value, at) {
    if (text ~ /HF_ERROR_MAP/)
        return
    open = index(text, "{")
    body = bare(substr(text, open + 1))
    sub(/\}[^}]*$/, "", body)
    n = split(body, part, ",")
    value = -1
    for (i = 1; i <= n; i++) {
        name = trim(part[i])
        if (name == "")
            continue
        value++
        if ((at = index(name, "=")) > 0) {
            value = value_of(substr(name, at + 1))
            name = trim(substr(name, 1, at - 1))
        }
        constant(name, value)
    }
}

# X(EBUSY, -1, "another owner holds the lock")
function errors_of(text,    item, name, value, open) {
    while (match(text, /X\([A-Z]+, -[0-9]+, *"[^"]*"\)/)) {
        item = substr(text, RSTART + 2, RLENGTH - 3)
        text = substr(text, RSTART + RLENGTH)
        name = "HF_" substr(item, 1, index(item, ",") - 1)
        item = substr(item, index(item, ",") + 1)
        value = trim(substr(item, 1, index(item, ",") - 1))
        open = index(item, "\"")
        item = substr(item, open + 1, length(item) - open - 1)
        known[name] = value
        errors = add(errors, "{\"name\": " quote(name) ", \"value\": " value \
            ", \"text\": " quote(item) "}")
    }
}

function declaration(text, doc,    plain) {
    plain = trim(bare(text))
    if (plain ~ /^HF_API /)
        functions = add(functions, "{" prototype(substr(plain, 8)) \
            ",\n     \"doc\": " quote(words(doc)) "}")
    else if (plain ~ /^typedef struct [a-z_]+ [a-z_]+$/) {
        sub(/.* /, "", plain)
        handles = add(handles, quote(plain))
    } else if (plain ~ /^typedef struct/)
        structure(text, doc)
    else if (plain ~ /^enum/)
        enumeration(text)
    else if (plain ~ /^typedef .*\(.*\)$/)
        callbacks = add(callbacks, "{" prototype(substr(plain, 9)) \
            ", \"doc\": " quote(words(doc)) "}")
    else if (plain !~ /^extern "C" \{?$/ && plain != "")
        fail("cannot read: " plain)
}

# A line of the preprocessor, with those that continue it.
function directive(text,    name) {
    if (text !~ /^#define HF_/)
        return
    gsub(/\\\n/, " ", text)
    sub(/^#define /, "", text)
    match(text, /^[A-Za-z_0-9]+/)
    name = substr(text, 1, RLENGTH)
    text = substr(text, RLENGTH + 1)
    if (name == "HF_ERROR_MAP")
        errors_of(text)
    else if (text !~ /^\(/) # a macro with arguments is for C alone
        constant(name, bare(text))
}

{ header = header $0 "\n" }

END {
    if (failed)
        exit 1
    doc = ""
    while (header != "") {
        if (header ~ /^[ \t\n]/) {
            sub(/^[ \t\n]+/, "", header)
        } else if (header ~ /^\/\*/) {
            end = index(header, "*/") + 1
            doc = header ~ /^\/\*\*/ ? substr(header, 1, end) : ""
            header = substr(header, end + 1)
        } else if (header ~ /^#/) {
            line = ""
            do {
                end = index(header, "\n")
                line = line substr(header, 1, end)
                more = substr(header, end - 1, 1) == "\\"
                header = substr(header, end + 1)
            } while (more)
            directive(line)
            doc = ""
        } else if (header ~ /^(extern "C" \{|\})/) {
            sub(/^(extern "C" \{|\})/, "", header)
            doc = ""
        } else {
            # Up to the semicolon outside of braces and comments.
            text = ""
            depth = 0
            while (match(header, /[{};]|\/\*/)) {
                found = substr(header, RSTART, RLENGTH)
                if (found == "/*") {
                    end = index(header, "*/") + 1
                    text = text substr(header, 1, end)
                    header = substr(header, end + 1)
                    continue
                }
                text = text substr(header, 1, RSTART)
                header = substr(header, RSTART + 1)
                depth += found == "{" ? 1 : found == "}" ? -1 : 0
                if (found == ";" && depth == 0)
                    break
            }
            sub(/;$/, "", text)
            declaration(text, doc)
            doc = ""
        }
    }
    printf "{\n\"version\": %s,\n", known["HF_VERSION_TEXT"]
    printf "\"handles\": [%s],\n", handles
    printf "\"constants\": {%s},\n", constants
    printf "\"errors\": [%s],\n", errors
    printf "\"structs\": [%s],\n", structs
    printf "\"callbacks\": [%s],\n", callbacks
    printf "\"functions\": [%s]\n}\n", functions
}
