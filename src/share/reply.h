#ifndef SR_REPLY_H
#define SR_REPLY_H
/*
 * reply: what the records in a ring mean (ring.h). A reply consists of any number of INTERIM, then FIELDS as
 * often as needed, one HEAD, then DATA or one FILE, then END or CUT. HEAD and END may be one record, and HEAD
 * may contain the beginning of the body, so that most replies are one record.
 *
 * Fields are lines, "Name: value\r\n", in the order of the application. The worker checks them, and the edge
 * checks them again. The edge adds framing, Date and Connection, and everything that depends on the version
 * of HTTP.
 *
 * What the application publishes stands between these records, at any place.
 */
#include <stdint.h>

typedef enum sr_reply_kind {
    SR_REPLY_INTERIM = 1, /* sr_reply_head with a status of 1xx, then fields */
    SR_REPLY_FIELDS,      /* fields of the HEAD that follows */
    SR_REPLY_HEAD,        /* sr_reply_head, fields, the beginning of the body */
    SR_REPLY_DATA,        /* bytes of the body; none: is the client still there? */
    SR_REPLY_FILE,        /* sr_reply_file: the whole body; its descriptor was sent before (door.h) */
    SR_REPLY_END,         /* the reply is complete */
    SR_REPLY_CUT,         /* the reply can't be completed: the client must notice */
    SR_REPLY_UNREAD,      /* int32_t, an errno: the worker could not read the request, and has not begun */
    SR_REPLY_TAKEN,       /* the application continues on its own with the socket: there is no reply */
    SR_REPLY_HOLD, /* before HEAD: Grip fields as lines, as which the response is to be held (http/grip.h) */
    SR_REPLY_HELD, /* in place of END, with HOLD: the response goes on without the worker */
    SR_REPLY_LOG,  /* any time before END: values of its line in the access log, see below */
    SR_REPLY_PUBLISH, /* a part of an item (item.h); about no request: number 0, slot SR_REPLY_NO_SLOT */
} sr_reply_kind;

#define SR_REPLY_NO_SLOT UINT32_MAX

enum {                     /* flags of a record */
       SR_REPLY_LAST = 1,  /* HEAD: it is END as well */
       SR_REPLY_CLOSE = 2, /* HEAD: the application wants the connection closed */
       SR_REPLY_MORE = 1,  /* PUBLISH: the next PUBLISH continues the item */
       /* HEAD: an error of the server's own: not behind what the application has written to psgix.io */
       SR_REPLY_OWN = 4,
       SR_REPLY_STAYS = 8, /* HEAD: HELD comes in place of END */
};

#define SR_REPLY_LENGTH_UNKNOWN UINT64_MAX

typedef struct sr_reply_head {
    uint64_t length;     /* of the body, or SR_REPLY_LENGTH_UNKNOWN */
    uint64_t app_length; /* the application's Content-Length, or SR_REPLY_LENGTH_UNKNOWN */
    int64_t began;       /* monotonic ns: when the application was called */
    uint32_t fields;     /* bytes of fields in this record */
    uint16_t status;
    uint16_t unused;
} sr_reply_head;

typedef struct sr_reply_file {
    uint64_t offset, length;
    uint64_t leased; /* not 0: its descriptor has a lease (net/lease.h) */
} sr_reply_file;

/*
 * The payloads of all LOG records of a request form one run of bytes: the id of the format (log/format.h,
 * 8 bytes), then, for each item whose value differs from that of the request itself, an sr_reply_value and
 * the value.
 */
enum { SR_REPLY_FIELDS_MAX = 16 * 1024 * 1024 }; /* bytes of the fields of one head */
enum { SR_REPLY_LOG_MAX = 64 * 1024 };           /* bytes of that run; values beyond it are left out */
#define SR_REPLY_NO_VALUE UINT32_MAX

typedef struct sr_reply_value {
    uint32_t item; /* index of the item in the format */
    uint32_t len;  /* SR_REPLY_NO_VALUE: the item has no value */
} sr_reply_value;

#endif
