#ifndef SR_REPLY_H
#define SR_REPLY_H
/*
 * reply: what the records of a ring say (ring.h). A reply is any number of INTERIM, then FIELDS as often as they need, one
 * HEAD, then DATA or one FILE, then END or CUT. HEAD and END may be one record, and HEAD may bring the first of the body:
 * an answer as small as most are is one record.
 *
 * Fields are lines, "Name: value\r\n", in the order of the application and checked by the worker; the edge checks them again.
 * Framing, Date, Connection and what belongs to a version of HTTP are the edge's.
 */
#include "ring.h"

typedef enum sr_reply_kind {
    SR_REPLY_INTERIM = 1, /* sr_reply_head with a status of 1xx, then fields */
    SR_REPLY_FIELDS,      /* fields, for the HEAD that follows */
    SR_REPLY_HEAD,        /* sr_reply_head, fields, the first of the body */
    SR_REPLY_DATA,        /* body */
    SR_REPLY_FILE, /* sr_reply_file; its descriptor was passed by the line before (door.h): the whole body */
    SR_REPLY_END,  /* the reply is whole */
    SR_REPLY_CUT,  /* it can't be completed: the client must see that */
    SR_REPLY_UNREAD, /* int32_t, an errno: its worker could not get at the request, and has not begun with it */
    SR_REPLY_TAKEN, /* the application goes on alone with the socket that it has borrowed: there is no reply */
    SR_REPLY_LOG,   /* at any time before END: values of its line in the access log, see below */
} sr_reply_kind;

enum {                     /* flags of a record */
       SR_REPLY_LAST = 1,  /* HEAD: END is said with it */
       SR_REPLY_CLOSE = 2, /* HEAD: the application wants the connection closed */
};

#define SR_REPLY_LENGTH_UNKNOWN UINT64_MAX

typedef struct sr_reply_head {
    uint64_t length;     /* of the body, or SR_REPLY_LENGTH_UNKNOWN */
    uint64_t app_length; /* the application's Content-Length, or SR_REPLY_LENGTH_UNKNOWN */
    int64_t began;       /* monotonic ns: when the application was called */
    uint32_t fields;     /* bytes of them in this record */
    uint16_t status;
    uint16_t unused;
} sr_reply_head;

typedef struct sr_reply_file {
    uint64_t offset, length;
} sr_reply_file;

/*
 * The payloads of all LOG records of a request are one run of bytes: the id of the format (http/logformat.h), 8 bytes of it,
 * then for each item whose value is another than that of the request itself an sr_reply_value and the value.
 */
enum { SR_REPLY_LOG_MAX = 64 * 1024 }; /* bytes of that run; what does not fit is left out */
#define SR_REPLY_NO_VALUE UINT32_MAX

typedef struct sr_reply_value {
    uint32_t item;
    uint32_t len; /* SR_REPLY_NO_VALUE: there is none, and no bytes follow */
} sr_reply_value;

#endif
