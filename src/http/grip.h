#ifndef SR_GRIP_H
#define SR_GRIP_H
/*
 * grip: the fields by which an application leaves a connection with the server, as the GRIP convention of
 * Pushpin and Fanout has them:
 *
 *   Grip-Hold: stream                  the response goes on, with what is published to its channels
 *   Grip-Hold: response                the client waits for the response, which is what is published; or this
 *   one at a timeout Grip-Channel: NAME; prev-id=ID     several, each with a field of its own or with commas
 *   between them Grip-Keep-Alive: CONTENT; format=raw|cstring|base64; timeout=SECONDS; mode=idle|interval
 *   Grip-Timeout: SECONDS              of Grip-Hold: response Grip-Set-Meta: user=NAME           whose client
 *   it is
 *
 * The one filter is "; filter=skip-self" behind the name of a channel: nothing comes of that user.
 *
 * Pure; any process.
 */
#include "../base/buffer.h"

enum {
    SR_GRIP_CHANNEL_MAX = 255,       /* bytes of a name, likewise of an id, and of a user */
    SR_GRIP_CHANNELS = 128,          /* of one connection */
    SR_GRIP_SECONDS_MAX = 24 * 3600, /* of a timeout */
    SR_GRIP_CONTENT_MAX = 4096,      /* bytes of what keeps a connection alive */
    SR_GRIP_LINES_MAX = 12 * 1024,   /* bytes of all these fields as lines */
    SR_GRIP_TIMEOUT = 55,            /* seconds, unless the application says something else, as in Pushpin */
    SR_GRIP_KEEP_ALIVE = 55,
};

typedef enum sr_grip_hold { SR_GRIP_NONE, SR_GRIP_STREAM, SR_GRIP_RESPONSE } sr_grip_hold;

typedef struct sr_grip {
    sr_grip_hold hold;
    uint32_t channels;   /* how many: sr_grip_next */
    uint32_t timeout;    /* seconds */
    uint32_t keep_alive; /* seconds; 0: nothing is sent */
    bool interval;       /* also when something else was sent */
    sr_bytes content;    /* of Grip-Keep-Alive, encoded as: */
    enum { SR_GRIP_RAW, SR_GRIP_CSTRING, SR_GRIP_BASE64 } format;
    sr_bytes user;  /* len 0: none is named */
    sr_bytes lines; /* all of the fields */
} sr_grip;

typedef struct sr_grip_channel {
    sr_bytes name;
    sr_bytes prev_id; /* len 0: it has none */
    bool skips_self;
} sr_grip_channel;

/* Whether the name of a field begins with "Grip-". */
bool sr_grip_is(sr_bytes name);

/* Reads fields as lines ("Name: value\r\n"), which *out refers to. NULL, or what is wrong: static. */
const char *sr_grip_read(sr_bytes lines, sr_grip *out);

/*
 * The next channel of lines that were read without a fault. `at` begins as those lines. False: there is no
 * other.
 */
bool sr_grip_next(sr_bytes *at, sr_bytes *value, sr_grip_channel *out);

/* Appends what keeps the connection alive. False: no memory. */
bool sr_grip_content(const sr_grip *g, sr_buffer *out);

#endif
