/* body: request bodies in memory and in files, with a length and in chunks, and what is refused */
#include "h1/decode.h"
#include "tap.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { SIZE = 300000 };

static char *data, *wire, *got;
static size_t wire_len;
static const sr_config config = {.max_body = 1 << 20, .body_memory = 65536, .tmpdir = "/tmp"};

static void chunks(size_t size, size_t each)
{
    wire_len = 0;
    for (size_t at = 0; at < size; at += each) {
        size_t n = size - at < each ? size - at : each;
        wire_len += (size_t)sprintf(wire + wire_len, "%zx%s\r\n", n, each < 1000 ? "" : ";a=b");
        memcpy(wire + wire_len, data + at, n);
        wire_len += n;
        memcpy(wire + wire_len, "\r\n", 2);
        wire_len += 2;
    }
    memcpy(wire + wire_len, "0\r\nX: y\r\n\r\n", 11);
    wire_len += 11;
}

static sr_body *body(bool chunked, uint64_t length)
{
    sr_request r = {.framing = chunked ? SR_BODY_CHUNKED : SR_BODY_LENGTH, .content_length = length};
    return sr_decode_new(&r);
}

/* Feeds wire and a following request in pieces; the last answer, *used counts all */
static sr_body_result feed(sr_body *b, const sr_config *c, size_t len, size_t piece, size_t *used)
{
    sr_body_result r = SR_BODY_MORE;
    *used = 0;
    for (size_t at = 0; at < len && r == SR_BODY_MORE; at = *used) {
        size_t n = 0, have = len - at < piece ? len - at : piece;
        r = sr_decode(b, c, sr_bytes_of(wire + at, have), &n);
        *used += n;
        if (r == SR_BODY_MORE && n != have) {
            ok(false, "MORE takes all");
            return SR_BODY_BAD;
        }
    }
    return r;
}

static bool is_stored(sr_body *b, size_t size)
{
    if (b->length != size)
        return false;
    if (!b->spooled)
        return b->fd == -1 && sr_buffer_len(&b->mem) == size &&
               memcmp(sr_buffer_at(&b->mem), data, size) == 0;
    return sr_buffer_len(&b->mem) == 0 && !b->mem.data && pread(b->fd, got, SIZE, 0) == (ssize_t)size &&
           memcmp(got, data, size) == 0;
}

/* In chunks of `each` bytes; 0: with a length. */
static void takes(size_t each, size_t size, size_t piece)
{
    bool chunked = each > 0;
    if (chunked) {
        chunks(size, each);
    } else {
        memcpy(wire, data, size);
        wire_len = size;
    }
    memcpy(wire + wire_len, "GET / HTTP/1.1", 14);
    sr_body *b = body(chunked, size);
    size_t used;
    sr_body_result r = feed(b, &config, wire_len + 14, piece, &used);
    ok(r == SR_BODY_DONE && used == wire_len && is_stored(b, size) &&
           b->spooled == (size > config.body_memory) && b->received == wire_len,
       "%zu bytes %s, %zu at a time", size, chunked ? "in chunks" : "with a length", piece);
    sr_body_free(b);
}

/* How many system calls this process has made so far that write. */
static long writes(void)
{
    long n = -1;
    char line[64];
    FILE *io = fopen("/proc/self/io", "r");
    while (io && fgets(line, sizeof line, io))
        sscanf(line, "syscw: %ld", &n);
    if (io)
        fclose(io);
    return n;
}

/* Whether in tiny chunks, or in TLS records or segments of a byte: the file gets blocks. */
static void tiny(size_t each, size_t piece)
{
    size_t size = 80000, used;
    if (each) {
        chunks(size, each);
    } else {
        memcpy(wire, data, size);
        wire_len = size;
    }
    sr_body *b = body(each, size);
    fflush(stdout);
    long before = writes();
    sr_body_result r = feed(b, &config, wire_len, piece, &used);
    long n = writes() - before;
    ok(r == SR_BODY_DONE && b->spooled && is_stored(b, size), "in chunks of %zu, %zu at a time: whole", each,
       piece);
    ok(n > 0 && n < 10, "by %ld system calls", n);
    sr_body_free(b);
}

static void dear(void)
{
    size_t used;
    sr_body *b = body(true, 0);
    chunks(1000, 1);
    feed(b, &config, 2000, 2000, &used);
    ok(b->dear, "chunks of a byte take long");
    wire_len = (size_t)sprintf(wire, "%x\r\n", 10000);
    sr_body_free(b);
    b = body(true, 0);
    feed(b, &config, wire_len + 5000, 5000, &used);
    ok(!b->dear, "large ones do not");
    sr_body_free(b);
}

static void refused(bool chunked, size_t len, const sr_config *c, int status, const char *name)
{
    for (size_t piece = 1; piece <= len; piece = piece == 1 ? 37 : piece == 37 ? 4099 : len + 1) {
        sr_body *b = body(chunked, len);
        size_t used;
        sr_body_result r = feed(b, c, len, len > 100000 && piece == 1 ? 1000 : piece, &used);
        ok(r == SR_BODY_BAD && b->status == status && b->why, "%s: %d (%s)", name, status,
           b->why ? b->why : "no reason");
        sr_body_free(b);
    }
}

static void limits(void)
{
    sr_config small = config;
    small.max_body = 1000;
    chunks(1001, 100);
    refused(true, wire_len, &small, 413, "one byte more than max-body, in chunks");
    chunks(2000, 2000);
    sr_body *b = body(true, 0);
    size_t used;
    is_int(feed(b, &small, 6, 6, &used), SR_BODY_MORE, "a part of a chunk's size");
    sr_body_free(b);
    b = body(true, 0);
    is_int(feed(b, &small, 10, 10, &used), SR_BODY_BAD,
           "a chunk that is too large is refused before it comes");
    is_int(b->status, 413, "with 413");
    sr_body_free(b);
    chunks(1000, 100);
    b = body(true, 0);
    is_int(feed(b, &small, wire_len, 17, &used), SR_BODY_DONE, "as many as are allowed");
    sr_body_free(b);
    strcpy(wire, "zz\r\n");
    refused(true, 4, &config, 400, "no chunk");
    small.body_memory = 0;
    memcpy(wire, data, 1);
    b = body(false, 1);
    ok(feed(b, &small, 1, 1, &used) == SR_BODY_DONE && b->spooled && is_stored(b, 1),
       "without memory all is spooled");
    sr_body_free(b);
}

static void no_disk(void)
{
    sr_config bad = config;
    memcpy(wire, data, 200000);
    bad.tmpdir = "/proc/nonexistent";
    refused(false, 200000, &bad, 500, "no such folder");
    struct rlimit old, few;
    getrlimit(RLIMIT_FSIZE, &old);
    few = old;
    few.rlim_cur = 100000;
    signal(SIGXFSZ, SIG_IGN);
    fflush(stdout);
    sr_body *b = body(false, 200000);
    size_t used;
    setrlimit(RLIMIT_FSIZE, &few);
    sr_body_result r = feed(b, &config, 200000, 1000, &used);
    setrlimit(RLIMIT_FSIZE, &old);
    ok(r == SR_BODY_BAD && b->status == 507, "a full disk: 507");
    sr_body_free(b);
    b = body(false, 100001);
    setrlimit(RLIMIT_FSIZE, &few);
    r = feed(b, &config, 100001, 1000, &used);
    setrlimit(RLIMIT_FSIZE, &old);
    ok(r == SR_BODY_BAD && b->status == 507 && used == 100001, "full at the last byte: 507");
    sr_body_free(b);
    sr_body_free(NULL);
}

int main(void)
{
    data = malloc(SIZE);
    got = malloc(SIZE);
    wire = malloc(4 * SIZE);
    for (size_t i = 0; i < SIZE; i++)
        data[i] = (char)(i * 13 + i / 977);
    static const size_t sizes[] = {1, 2, 4999, 5000, 65535, 65536, 65537, 299999};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t each = 0; each <= 5000; each += 5000) {
            takes(each, sizes[i], 3 * SIZE);
            takes(each, sizes[i], 1021);
            takes(each, sizes[i], sizes[i] > 5000 ? 65536 : 1);
        }
    static const size_t ways[][2] = {{1, 131072}, {2, 1000}, {3, 7}, {100, 131072}, {0, 1}, {0, 100}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        tiny(ways[i][0], ways[i][1]);
    dear();
    limits();
    no_disk();
    free(data);
    free(got);
    free(wire);
    return done_testing();
}
