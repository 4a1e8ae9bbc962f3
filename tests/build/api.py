#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""api.py JSON INCLUDE LIBRARY CC - hf_api.json says what the header says.

Every symbol that the library exports is in it, and no other; and a program made
from it compiles, in which the compiler compares each constant, field, callback
and function with the header's.
"""
import json
import re
import subprocess
import sys
import tempfile


def exported(library):
    names = subprocess.run(["nm", "-D", "--defined-only", library], check=True,
                           capture_output=True, text=True).stdout
    return set(re.findall(r" T (hf_\w+)", names))


def pointer(declared):
    """The type of a pointer to a function or callback."""
    parameters = ", ".join(p["type"] for p in declared["parameters"])
    return f"{declared['returns']} (*)({parameters or 'void'})"


def same(expression, kind):
    return ("_Static_assert(__builtin_types_compatible_p("
            f"__typeof__({expression}), __typeof__({kind})), \"{expression}\");")


def program(api):
    yield '#include "holdfast.h"'
    yield "#include <string.h>"
    for name, value in api["constants"].items():
        if isinstance(value, str):
            yield f'_Static_assert(sizeof({name}) == {len(value) + 1}, "{name}");'
        else:
            yield f'_Static_assert({name} == {value}, "{name}");'
    for error in api["errors"]:
        yield f'_Static_assert({error["name"]} == {error["value"]}, "");'
    for struct in api["structs"]:
        fields = struct["fields"]
        for field in fields:
            yield same(f"(({struct['name']} *)0)->{field['name']}",
                       field["type"])
        # No field is missing, neither between two nor at the end.
        ours = " ".join(
            f"__typeof__({f['type']}) {f['name']};" for f in fields)
        yield (f"struct our_{struct['name']} {{ {ours} }};"
               f"_Static_assert(sizeof(struct our_{struct['name']}) == "
               f"sizeof({struct['name']}), \"{struct['name']}\");")
    for callback in api["callbacks"]:
        yield same(f"({callback['name']} *)0", pointer(callback))
    for function in api["functions"]:
        yield same(f"&{function['name']}", pointer(function))
    for handle in api["handles"]:
        yield f"extern {handle} *handle_{handle};"


def header_constants(include):
    """What a reader finds by eye: macros without arguments, and enumerators."""
    with open(f"{include}/holdfast.h", encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    text = text.replace("\\\n", " ")
    macros = re.findall(r"^#define (HF_\w+) (?!__attribute__|\s*{)", text, re.M)
    enums = " ".join(re.findall(r"enum\s*\w*\s*{([^}]*)}", text))
    return (set(macros) | set(re.findall(r"\b(HF_\w+) =", enums))) - {"HF_OK"}


def main():
    path, include, library, compiler = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        api = json.load(file)
    declared = {function["name"] for function in api["functions"]}
    missing = exported(library) ^ declared
    if missing or len(declared) != len(api["functions"]):
        sys.exit(f"exported or declared, not both: {sorted(missing)}")
    missing = header_constants(include) ^ set(api["constants"])
    if missing:
        sys.exit(f"constants in one only: {sorted(missing)}")
    with tempfile.NamedTemporaryFile("w", suffix=".c") as file:
        file.write("\n".join(program(api)) + "\n")
        file.flush()
        subprocess.run([compiler, "-std=gnu11", "-Werror", f"-I{include}",
                        "-fsyntax-only", file.name], check=True)
    print(f"{len(declared)} functions, {len(api['constants'])} constants, "
          f"{len(api['structs'])} structs")


main()
