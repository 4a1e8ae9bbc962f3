/* SPDX-License-Identifier: MIT */
/* doctor.c - findings that several engines have. */
#include "engines/common/doctor.h"

int hf__doctor_add_clock(struct hf__query *query, const char *whose,
                         int64_t ahead_s, const char *fix)
{
    bool far = ahead_s > 60 || ahead_s < -60;

    return hf__query_add_finding(
        query, far ? HF_FINDING_WARN : HF_FINDING_OK, "clock", far ? fix : "",
        "%s clock is %lld s from ours", whose, (long long)ahead_s);
}
