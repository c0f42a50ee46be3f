/* item: one of each kind, then each of its numbers and texts made wrong. */
#include "../../src/share/item.h"

#include "guard.h"
#include "tap.h"

/* As in xt/unit/channel_item.t, which makes it, on a machine with the lowest byte first. */
static const char golden[] = "\x01\x02\x03\x04\x05\x06\x07\x08"
                             "\x03\0\0\0\x02\0\0\0\x01\0\0\0"
                             "\x05\0\0\0\x06\0\0\0\x04\0\0\0\0\0\0\0"
                             "\xc9\0\0\0\x4d\0\3\0\0\0\0\0"
                             "newi2phelloA: b\r\nbodybob";

static char bytes[SR_ITEM_PACKED_MAX + 64];
static size_t len;
static sr_item made;

static void put(const char *text, uint32_t n)
{
    memcpy(bytes + len, text, n);
    len += n;
}

/* Packs `made` with these texts, whose lengths are set. */
static sr_bytes packed(const char *channel, const char *stream, const char *fields, const char *message)
{
    made.number = 7;
    made.channel = (uint32_t)strlen(channel);
    made.stream = (uint32_t)strlen(stream);
    made.fields = (uint32_t)strlen(fields);
    made.message = (uint32_t)strlen(message);
    len = sizeof made;
    memcpy(bytes, &made, sizeof made);
    put(channel, made.channel);
    put(stream, made.stream);
    put(fields, made.fields);
    put(message, made.message);
    return sr_bytes_of(bytes, len);
}

static bool reads(sr_bytes s)
{
    sr_item_view v;
    return sr_item_read(sr_bytes_of(guarded(s.at, s.len), s.len), &v);
}

static void kind(uint16_t has, uint16_t status, uint16_t code)
{
    made = (sr_item){.has = has, .status = status, .code = code};
}

static void agreed(void)
{
    sr_item_view v;
    sr_bytes s = {golden, sizeof golden - 1};
    const uint16_t one = 1;
    if (*(const char *)&one != 1) {
        ok(true, "another byte order");
        return;
    }
    ok(sr_item_read(s, &v), "what Perl packs is read");
    ok(v.number == 0x0807060504030201, "number");
    is_bytes(v.channel.at, v.channel.len, "new", "channel");
    is_bytes(v.id.at, v.id.len, "i2", "id");
    is_bytes(v.prev_id.at, v.prev_id.len, "p", "prev_id");
    is_bytes(v.stream.at, v.stream.len, "hello", "stream");
    is_bytes(v.fields.at, v.fields.len, "A: b\r\n", "fields");
    is_bytes(v.body.at, v.body.len, "body", "body");
    is_bytes(v.message.at, v.message.len, "hello", "message, which is the same as stream");
    is_bytes(v.sender.at, v.sender.len, "bob", "sender");
    is_int(v.status, 201, "status");
    is_int(v.has, SR_ITEM_STREAM | SR_ITEM_RESPONSE | SR_ITEM_TEXT | SR_ITEM_SAME, "has");
    for (size_t i = 0; i < s.len; i++)
        if (reads(sr_bytes_of(golden, i)))
            ok(false, "an item that ends after %zu bytes is read", i);
}

static void kinds(void)
{
    kind(SR_ITEM_STREAM, 0, 0);
    ok(reads(packed("a", "x", "", "")) && reads(packed("a", "", "", "")), "http-stream, empty as well");
    ok(!reads(packed("a", "x", "", "m")), "not with a message");
    ok(!reads(packed("a", "x", "A: b\r\n", "")), "nor with fields");
    ok(!reads(packed("", "x", "", "")), "nor without a channel");
    ok(!reads(packed("a\n", "x", "", "")) && reads(packed("a b\xc3\xa9", "x", "", "")),
       "bytes of a channel: no control characters");
    kind(0, 0, 0);
    ok(!reads(packed("a", "", "", "")), "nothing at all");
    kind(2 * SR_ITEM_SAME, 0, 0);
    ok(!reads(packed("a", "", "", "")), "an unknown part");
    kind(SR_ITEM_STREAM_CLOSE, 0, 0);
    ok(reads(packed("a", "", "", "")) && !reads(packed("a", "x", "", "")), "close has no content");
    kind(SR_ITEM_STREAM | SR_ITEM_STREAM_CLOSE, 0, 0);
    ok(!reads(packed("a", "x", "", "")), "one action at a time");
    static const uint16_t statuses[] = {200, 204, 999}, others[] = {0, 100, 199, 1000, 65535};
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        kind(SR_ITEM_RESPONSE, statuses[i], 0);
        ok(reads(packed("a", "", "", "")), "status %d", statuses[i]);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        kind(SR_ITEM_RESPONSE, others[i], 0);
        ok(!reads(packed("a", "", "", "")), "status %d", others[i]);
    }
    kind(SR_ITEM_STREAM, 200, 0);
    ok(!reads(packed("a", "x", "", "")), "a status without http-response");
}

static void messages(void)
{
    kind(SR_ITEM_BINARY, 0, 0);
    ok(reads(packed("a", "", "", "m")) && reads(packed("a", "", "", "")), "ws-message, empty as well");
    kind(SR_ITEM_BINARY, 0, 1000);
    ok(!reads(packed("a", "", "", "m")), "a code without close");
    kind(SR_ITEM_TEXT | SR_ITEM_BINARY, 0, 0);
    ok(!reads(packed("a", "", "", "m")), "text and binary");
    kind(SR_ITEM_TEXT | SR_ITEM_WS_CLOSE, 0, 1000);
    ok(!reads(packed("a", "", "", "m")), "text and close");
    kind(SR_ITEM_STREAM | SR_ITEM_TEXT | SR_ITEM_SAME, 0, 0);
    ok(reads(packed("a", "x", "", "")) && !reads(packed("a", "x", "", "m")), "the same, or a message");
    kind(SR_ITEM_TEXT | SR_ITEM_SAME, 0, 0);
    ok(!reads(packed("a", "", "", "")), "the same as nothing");
    kind(SR_ITEM_STREAM | SR_ITEM_SAME, 0, 0);
    ok(!reads(packed("a", "x", "", "")), "nothing that is the same");
    for (unsigned code = 0; code <= UINT16_MAX; code++) {
        bool right = (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
                     (code >= 3000 && code <= 4999);
        kind(SR_ITEM_WS_CLOSE, 0, (uint16_t)code);
        if (reads(packed("a", "", "", "why")) != right)
            ok(false, "close code %u", code);
    }
    kind(SR_ITEM_WS_CLOSE, 0, 1001);
    char reason[SR_ITEM_REASON_MAX + 2];
    memset(reason, 'r', sizeof reason);
    reason[SR_ITEM_REASON_MAX + 1] = '\0';
    ok(!reads(packed("a", "", "", reason)), "a reason that is too long");
    reason[SR_ITEM_REASON_MAX] = '\0';
    ok(reads(packed("a", "", "", reason)), "one that is not");
}

static void fields(void)
{
    static const char *const right[] = {"", "A: b\r\n", "A:\r\n", "A:b\r\nC: d e\t\xff\r\n"};
    static const char *const wrong[] = {"A: b",           "A: b\r",      "A: b\n",        "\r\n",
                                        "A: b\r\n\r\n",   ": b\r\n",     "A b\r\n",       "A : b\r\n",
                                        "A: b\rC: d\r\n", "A: \x01\r\n", "A: b\r\nC\r\n", "A: b\nC: d\r\n"};
    kind(SR_ITEM_RESPONSE, 200, 0);
    for (size_t i = 0; i < sizeof right / sizeof *right; i++)
        ok(reads(packed("a", "", right[i], "")), "fields %zu", i);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ok(!reads(packed("a", "", wrong[i], "")), "wrong fields %zu", i);
}

static void limits(void)
{
    sr_item_view v;
    kind(SR_ITEM_STREAM, 0, 0);
    packed("a", "", "", "");
    made.stream = SR_ITEM_MAX - 1;
    memcpy(bytes, &made, sizeof made);
    ok(sr_item_read(sr_bytes_of(bytes, SR_ITEM_PACKED_MAX), &v) && v.stream.len == SR_ITEM_MAX - 1,
       "as large as it may be");
    made.stream++;
    memcpy(bytes, &made, sizeof made);
    ok(!sr_item_read(sr_bytes_of(bytes, SR_ITEM_PACKED_MAX + 1), &v), "a byte more");
    made.stream = UINT32_MAX;
    made.body = 2;
    memcpy(bytes, &made, sizeof made);
    ok(!sr_item_read(sr_bytes_of(bytes, sizeof made + 2), &v), "lengths that wrap");
    for (uint32_t n = 254; n <= 256; n++) {
        kind(SR_ITEM_STREAM_CLOSE, 0, 0);
        packed("a", "", "", "");
        memset(bytes + sizeof made, 'a', 3 * n);
        made.channel = n;
        memcpy(bytes, &made, sizeof made);
        ok(sr_item_read(sr_bytes_of(bytes, sizeof made + n), &v) == (n < 256), "a channel of %u bytes", n);
        made.channel = 1;
        made.id = n;
        memcpy(bytes, &made, sizeof made);
        ok(sr_item_read(sr_bytes_of(bytes, sizeof made + 1 + n), &v) == (n < 256), "an id of %u bytes", n);
        made.id = 0;
        made.prev_id = n;
        memcpy(bytes, &made, sizeof made);
        ok(sr_item_read(sr_bytes_of(bytes, sizeof made + 1 + n), &v) == (n < 256), "a prev_id of %u", n);
        made.prev_id = 0;
        made.sender = (uint16_t)n;
        memcpy(bytes, &made, sizeof made);
        ok(sr_item_read(sr_bytes_of(bytes, sizeof made + 1 + n), &v) == (n < 256), "a sender of %u", n);
        ok(!sr_item_read(sr_bytes_of(bytes, sizeof made + n), &v), "and one that is cut");
    }
    kind(SR_ITEM_STREAM, 0, 0);
    packed("a", "x", "", "");
    memset(bytes, 0, sizeof made.number);
    ok(!reads(sr_bytes_of(bytes, len)), "no number");
}

int main(void)
{
    agreed();
    kinds();
    messages();
    fields();
    limits();
    return done_testing();
}
