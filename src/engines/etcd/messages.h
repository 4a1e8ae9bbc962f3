/* SPDX-License-Identifier: MIT */
/*
 * messages.h - of etcd's messages (rpc.proto, kv.proto), the numbers of those
 * fields that we write or read, and the calls.
 */
#ifndef HF_ETCD_MESSAGES_H
#define HF_ETCD_MESSAGES_H

#define HF__CALL_RANGE "/etcdserverpb.KV/Range"
#define HF__CALL_PUT "/etcdserverpb.KV/Put"
#define HF__CALL_TXN "/etcdserverpb.KV/Txn"
#define HF__CALL_WATCH "/etcdserverpb.Watch/Watch"
#define HF__CALL_GRANT "/etcdserverpb.Lease/LeaseGrant"
#define HF__CALL_REVOKE "/etcdserverpb.Lease/LeaseRevoke"
#define HF__CALL_KEEPALIVE "/etcdserverpb.Lease/LeaseKeepAlive"
#define HF__CALL_STATUS "/etcdserverpb.Maintenance/Status"
#define HF__CALL_ALARM "/etcdserverpb.Maintenance/Alarm"
#define HF__CALL_MEMBERS "/etcdserverpb.Cluster/MemberList"
#define HF__CALL_AUTHENTICATE "/etcdserverpb.Auth/Authenticate"

enum {
    /* every answer */
    HF__ANSWER_HEADER = 1,
    HF__HEADER_REVISION = 3,

    /* Range, Put, DeleteRange, and a watch that is made */
    HF__OF_KEY = 1,
    HF__OF_RANGE_END = 2,
    HF__RANGE_LIMIT = 3,
    HF__RANGE_ORDER = 5,
    HF__RANGE_TARGET = 6,
    HF__RANGE_KEYS_ONLY = 8,
    HF__RANGE_MAX_CREATED = 13,
    HF__RANGE_KVS = 2, /* answer */
    HF__PUT_VALUE = 2,
    HF__PUT_LEASE = 3,
    HF__PUT_KEEPS_VALUE = 5,
    HF__PUT_KEEPS_LEASE = 6,

    /* values */
    HF__ASCEND = 1,
    HF__DESCEND = 2,
    HF__BY_CREATED = 2,

    /* a key with its value */
    HF__KV_KEY = 1,
    HF__KV_CREATED = 2,
    HF__KV_MODIFIED = 3,
    HF__KV_VALUE = 5,
    HF__KV_LEASE = 6,

    /* Txn, its comparisons, requests and answers */
    HF__TXN_COMPARE = 1,
    HF__TXN_SUCCESS = 2,
    HF__TXN_FAILURE = 3,
    HF__TXN_SUCCEEDED = 2, /* answer */
    HF__TXN_RESPONSES = 3, /* answer */
    HF__COMPARE_TARGET = 2,
    HF__COMPARE_KEY = 3,
    HF__COMPARE_CREATED = 5,
    HF__COMPARE_MODIFIED = 6,
    HF__COMPARE_RANGE_END = 64,
    HF__TARGET_CREATED = 1, /* values of COMPARE_TARGET */
    HF__TARGET_MODIFIED = 2,
    HF__OP_RANGE = 1, /* of a request, and of its answer */
    HF__OP_PUT = 2,
    HF__OP_DELETE = 3,

    /* Watch */
    HF__WATCH_CREATE = 1,
    HF__WATCH_FROM = 3,
    HF__WATCH_FILTERS = 5,
    HF__WATCH_NO_PUT = 0,  /* value */
    HF__WATCH_CREATED = 3, /* answers */
    HF__WATCH_CANCELED = 4,
    HF__WATCH_EVENTS = 11,
    HF__EVENT_KV = 2, /* of an event */

    /* leases: what is asked, and what is answered */
    HF__GRANT_TTL = 1,
    HF__LEASE_ID = 1,
    HF__LEASE_GIVEN_ID = 2,
    HF__LEASE_GIVEN_TTL = 3,

    /* Status, MemberList, Alarm, Authenticate: answers but for the last two */
    HF__STATUS_VERSION = 2,
    HF__STATUS_LEADER = 4,
    HF__STATUS_TERM = 6,
    HF__MEMBERS = 2,
    HF__ALARMS = 2,
    HF__ALARM_KIND = 2,
    HF__ALARM_NOSPACE = 1, /* value */
    HF__TOKEN = 2,
    HF__USER_NAME = 1,
    HF__USER_PASSWORD = 2
};

#endif
