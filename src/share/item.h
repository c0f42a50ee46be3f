#ifndef SR_ITEM_H
#define SR_ITEM_H
/*
 * item: what is published to a channel, in one run of bytes: a struct, then its texts without a gap. Perl
 * makes it (lib/Sirius/Channel/Item.pm), and edges read it. Its parts are those of an item of GRIP:
 * http-stream, http-response, ws-message.
 *
 * It comes in records of a ring (reply.h), or in a file that the supervisor passes on (door.h).
 * Trust: none. sr_item_read checks all of it, except that a TEXT is UTF-8: a client that gets another one
 * closes its connection, to which the application could do the same otherwise. Pure functions; any thread.
 */
#include "../base/bytes.h"

enum {
    SR_ITEM_MAX = 1024 * 1024, /* bytes of the texts of one */
    SR_ITEM_CHANNEL_MAX = 255,
    SR_ITEM_ID_MAX = 255,
    SR_ITEM_SENDER_MAX = 255,
    SR_ITEM_REASON_MAX = 123, /* what a close frame has room for: RFC 6455 5.5 */
};

enum { /* bits of sr_item.has */
       SR_ITEM_STREAM = 1,
       SR_ITEM_STREAM_CLOSE = 2, /* not with STREAM */
       SR_ITEM_RESPONSE = 4,     /* status, fields, body */
       SR_ITEM_TEXT = 8,         /* of TEXT, BINARY and WS_CLOSE there is one at most */
       SR_ITEM_BINARY = 16,
       SR_ITEM_WS_CLOSE = 32, /* code; message is the reason */
       SR_ITEM_SAME = 64,     /* TEXT or BINARY have the content of STREAM, and message is empty here */
};

/* In the byte order of the machine. */
typedef struct sr_item {
    uint64_t number; /* of the publication, the same in all edges; not 0 */
    /* bytes of the texts, in this order: */
    uint32_t channel, id, prev_id;
    uint32_t stream;  /* content of http-stream */
    uint32_t fields;  /* of http-response, as lines "Name: value\r\n" */
    uint32_t body;    /* of http-response */
    uint32_t message; /* content of ws-message, or the reason of its close */
    uint16_t status, code;
    uint16_t has;
    uint16_t
        sender; /* bytes of the last text: who has published it, for those who want nothing of their own */
    uint16_t unused[2];
} sr_item;

enum { SR_ITEM_PACKED_MAX = SR_ITEM_MAX + sizeof(sr_item) };

/* The texts lie in the packed item, and live as long. What an item does not have is empty, or 0. */
typedef struct sr_item_view {
    uint64_t number;
    sr_bytes channel, id, prev_id, stream, fields, body, message, sender;
    uint16_t status, code, has;
} sr_item_view;

/* False: it is no item, or breaks a limit. Fields, names and codes are well-formed when it is true. */
bool sr_item_read(sr_bytes packed, sr_item_view *out);

#endif
