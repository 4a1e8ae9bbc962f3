/* SPDX-License-Identifier: MIT */
/* main.c - main() of a program of tests that has none of its own. */
#include "test.h"

int main(int argc, char **argv)
{
    return test_main(argc, argv);
}
