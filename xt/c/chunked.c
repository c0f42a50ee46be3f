/* chunked: what is decoded and what is refused, whole and in every split. */
#include "feed.h"

#define MARK "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
#define END "0\r\n\r\n"

enum { DONE = 0, MORE = -1 }; /* or the status of the refusal */

typedef struct body {
    const char *name;
    int want;
    uint64_t size; /* body bytes, when it is DONE */
    const char *at;
    size_t len;
} body;
#define BODY(name, size, bytes)                                                                              \
    {                                                                                                        \
        name, DONE, size, bytes, sizeof(bytes) - 1                                                           \
    }
#define BAD(name, bytes)                                                                                     \
    {                                                                                                        \
        name, 400, 0, bytes, sizeof(bytes) - 1                                                               \
    }
#define PART(name, bytes)                                                                                    \
    {                                                                                                        \
        name, MORE, 0, bytes, sizeof(bytes) - 1                                                              \
    }
#define SIZE(name, line) BAD(name, line "hello\r\n" END)
#define EXT_OK(name, ext) BODY(name, 5, "5" ext "\r\nhello\r\n" END)
#define EXT(name, ext) BAD(name, "5" ext "\r\nhello\r\n" END)
#define TRAILER_OK(name, field) BODY(name, 0, "0\r\n" field "\r\n\r\n")
#define TRAILER(name, field) BAD(name, "0\r\n" field "\r\n\r\n")

static const body bodies[] = {
    BODY("empty", 0, END),
    BODY("one chunk", 5, "5\r\nhello\r\n" END),
    BODY("three", 8, "5\r\nhello\r\n1\r\n \r\n2\r\nab\r\n" END),
    BODY("hex, both cases", 26, "a\r\n0123456789\r\nA\r\n0123456789\r\n6\r\nabcdef\r\n" END),
    BODY("CRLF in the data", 4, "4\r\n\r\n\r\n\r\n" END),
    BODY("leading zeros", 5, "0000000000000005\r\nhello\r\n" END),
    BODY("zeros only", 0, "0000000000000000\r\n\r\n"),
    PART("nothing", ""),
    PART("no last CRLF", "5\r\nhello\r\n0\r\n"),
    PART("no last LF", "5\r\nhello\r\n0\r\n\r"),
    PART("S31 the end is missing", "5\r\nhel"),
    PART("the largest chunk", "7FFFFFFFFFFFFFFF\r\nhello"),
    SIZE("S25 0x", "0x5\r\n"),
    SIZE("S25 a space behind", "5 \r\n"),
    SIZE("S25 a space before", " 5\r\n"),
    SIZE("S25 plus", "+5\r\n"),
    SIZE("S25 minus", "-5\r\n"),
    SIZE("S25 an underscore", "5_0\r\n"),
    SIZE("S25 nothing", "\r\n"),
    SIZE("S25 no hex", "g\r\n"),
    SIZE("S25 S29 a bare LF", "5\n"),
    SIZE("S25 a bare CR", "5\r"),
    SIZE("a comma", "5,\r\n"),
    SIZE("S26 64 bits", "FFFFFFFFFFFFFFFF\r\n"),
    SIZE("one more than 63 bits", "8000000000000000\r\n"),
    SIZE("S26 17 digits", "10000000000000005\r\n"),
    SIZE("S26 23 digits", "00000000000000000000005\r\n"),
    BAD("S28 no CRLF behind the data", "5\r\nhello0\r\n\r\n"),
    BAD("S28 more data than said", "5\r\nhelloXX0\r\n\r\n"),
    BAD("S28 webrick 133", "3\r\nABCall-this\r\n" END),
    BAD("a bare LF behind the data", "5\r\nhello\n" END),
    BAD("a bare CR behind the data", "5\r\nhello\r" END),
    BAD("less data than said", "6\r\nhello\r\n" END),
    BAD("a second end", "5\r\nhello\r\n\r\n" END),
};

static const body extensions[] = {
    EXT_OK("a name", ";a"),
    EXT_OK("a value", ";ext=value"),
    EXT_OK("three", ";a=b;c;d=\"e\""),
    EXT_OK("all kinds of tchar", ";!#$%&'*+-.^_`|~09aZ=!#$%&'*+-.^_`|~09aZ"),
    EXT_OK("quoted", ";a=\"b;, \t=\xc3\xa9\""),
    EXT_OK("escapes", ";a=\"\\\"\\\\\\ \""),
    EXT_OK("an empty quoted string", ";a=\"\""),
    BODY("one behind the last chunk", 0, "0;a=b\r\n\r\n"),
    EXT("a bare semicolon", ";"),
    EXT("a semicolon at the end", ";a;"),
    EXT("two semicolons", ";;a"),
    EXT("no name", ";=a"),
    EXT("no value", ";a="),
    EXT("two values", ";a=b=c"),
    EXT("no token", ";bad[=x"),
    EXT("no token in the value", ";a=b[c"),
    EXT("no token first in the value", ";a=[c"),
    EXT_OK("a space before", " ;a"),
    EXT_OK("a tab before", "\t;a"),
    EXT_OK("a space behind the semicolon", "; a"),
    EXT_OK("a space behind the name", ";a =b"),
    EXT_OK("a space before the value", ";a= b"),
    EXT_OK("white space wherever it may be", " \t; \ta\t =  \"b\"\t ;\t c ; d = e"),
    EXT("a space behind the size", " "),
    EXT("a tab behind the size", "\t"),
    EXT("a space behind a name", ";a "),
    EXT("a space behind the value", ";a=b "),
    EXT("a space behind a quoted value", ";a=\"b\" "),
    EXT("a space and a second name", ";a b"),
    EXT("a space and a second value", ";a=b c"),
    EXT("a space and an =", " =a"),
    EXT("white space and no name", "; "),
    EXT("white space and no value", ";a= "),
    EXT("VT before", "\v;a"),
    EXT("a LF in white space", " \n;a"),
    EXT("a bare CR in white space", " \r;a"),
    EXT("junk behind a quoted string", ";a=\"b\"c"),
    EXT("a quoted string that does not end", ";a=\"b"),
    EXT("a CRLF in a quoted string", ";a=\"b\r\n\""),
    EXT("an escaped CR", ";a=\"\\\r\n\""),
    EXT("NUL in a quoted string", ";a=\"\0\""),
    EXT("NUL", ";\0ext"),
    EXT("a control byte in a value", ";a=b\x01"),
    EXT("S27 a bare CR", ";a\rX"),
    EXT("UTF-8", ";\xc3\xa9"),
    BAD("S27 a bare LF", "5;\nxx\r\nhello\r\n" END),
    BAD("S27 TERM.EXT", "2;\nxx\r\n10\r\n1f\r\nAAAABBBBCCCC\r\n0\r\n\r\nDDDDEEEEFFFF\r\n" END),
};

static const body trailers[] = {
    TRAILER_OK("one", "X-Checksum: abc"),
    TRAILER_OK("without a space", "A:b"),
    TRAILER_OK("an empty value", "A:"),
    TRAILER_OK("two", "A: b\r\nC: d\te\xc3\xa9"),
    TRAILER_OK("the start of a forbidden name", "content-lengt: 5"),
    TRAILER_OK("more than a forbidden name", "content-length-x: 5"),
    TRAILER_OK("a name of 32 bytes", "abcdefghijklmnopqrstuvwxyz-01234: a"),
    TRAILER_OK("a name of 33 bytes", "abcdefghijklmnopqrstuvwxyz-012345: a"),
    TRAILER("S32 Content-Length", "Content-Length: 5\r\nX-Admin: 1"),
    TRAILER("behind another", "A: b\r\nContent-Length: 5"),
    TRAILER("transfer-encoding", "transfer-encoding: chunked"),
    TRAILER("Content_Length", "Content_Length: 5"),
    TRAILER("HOST", "HOST: evil"),
    TRAILER("Authorization", "Authorization: Bearer evil"),
    TRAILER("Content-Type", "Content-Type: text/evil"),
    TRAILER("TE", "TE: a"),
    TRAILER("If-Unmodified-Since", "If-Unmodified-Since: a"),
    TRAILER("Cookie", "Cookie: a=b"),
    TRAILER("no colon", "A"),
    TRAILER("no name", ": a"),
    TRAILER("a space before the colon", "A : b"),
    TRAILER("a space first", " A: b"),
    TRAILER("folded", "A: b\r\n c"),
    TRAILER("no token", "A[: b"),
    TRAILER("NUL in the value", "A: \0"),
    TRAILER("a control byte", "A: \x07"),
    TRAILER("a bare LF", "A: b\nC: d"),
    TRAILER("a bare CR", "A: b\rC: d"),
    BAD("a bare LF at the end", "0\r\n\n"),
    BAD("a bare CR at the end", "0\r\n\rX"),
    BAD("a request in their place", "0\r\n" MARK),
};

static void check(const char *group, const body *b)
{
    feed_body f;
    bool agree = chunked_splits_agree(&f, b->at, b->len);
    int got = f.result == SR_CHUNKED_BAD ? f.c.status : f.result == SR_CHUNKED_DONE ? DONE : MORE;
    bool right = got == b->want && (got != DONE || (f.size == b->size && f.used == b->len));
    if (!ok(right && agree, "%s: %s: %d", group, b->name, b->want))
        printf("# got %d (%s), %zu used, %llu of body, splits %s\n", got, f.c.why ? f.c.why : "", f.used,
               (unsigned long long)f.size, agree ? "agree" : "differ");
}

/* ---- limits, and other things a table does not hold ---- */

static char long_body[100000];
static size_t len;

static void put(const char *s)
{
    memcpy(long_body + len, s, strlen(s));
    len += strlen(s);
}
static void fill(char c, size_t count)
{
    memset(long_body + len, c, count);
    len += count;
}
static void is_answer(int want, const char *name)
{
    feed_body f;
    bool agree = chunked_splits_agree(&f, long_body, len);
    int got = f.result == SR_CHUNKED_BAD ? f.c.status : f.result == SR_CHUNKED_DONE ? DONE : MORE;
    if (!ok(agree && got == want, "%s: %d", name, want))
        printf("# got %d (%s)\n", got, f.c.why ? f.c.why : "");
    len = 0;
}

static void size_lines(void)
{
    for (size_t more = 0; more < 2; more++) {
        put("0;a=");
        fill('b', SR_CHUNK_LINE_MAX - strlen("0;a=\r\n") + more);
        put("\r\n\r\n");
        is_answer(more ? 400 : DONE, more ? "one byte more" : "a size line at the limit");
    }
    put("5;ext=");
    fill('a', 65536);
    put("\r\nhello\r\n" END);
    is_answer(400, "MAL-CHUNK-EXT-64K");
    for (int i = 0; i < 17; i++) {
        put("1;a=");
        fill('b', 1024);
        put("\r\na\r\n");
    }
    is_answer(400, "S30 extensions of many chunks");
    for (int i = 0; i < 15; i++) {
        put("1;a=");
        fill('b', 1024);
        put("\r\na\r\n");
    }
    put(END);
    is_answer(DONE, "some are allowed");
}

static void trailer_sections(void)
{
    for (int more = 0; more < 2; more++) {
        put("0\r\n");
        for (int i = 0; i < SR_CHUNK_TRAILERS_MAX + more; i++)
            put("A: b\r\n");
        put("\r\n");
        is_answer(more ? 431 : DONE, more ? "S32 one more" : "as many trailers as allowed");
    }
    for (size_t more = 0; more < 2; more++) {
        put("0\r\nA: ");
        fill('b', SR_CHUNK_TRAILER_MAX - strlen("A: \r\n\r\n") + more);
        put("\r\n\r\n");
        is_answer(more ? 431 : DONE, more ? "one byte more" : "a trailer section at the limit");
    }
    put("0\r\n");
    fill('A', 20000);
    is_answer(431, "a name without end");
}

static void small_chunks(void)
{
    for (int i = 0; i < 1500; i++)
        put("1\r\na\r\n");
    put(END);
    is_answer(DONE, "many small chunks");
}

static void used_bytes(void)
{
    static const char two[] = "3\r\nabc\r\n" END MARK;
    feed_body f;
    feed_chunked(&f, two, sizeof two - 1, sizeof two - 1, 0);
    ok(f.result == SR_CHUNKED_DONE && f.used == strlen("3\r\nabc\r\n" END),
       "what follows the end is not used");
    size_t used;
    sr_bytes data;
    is_int(sr_chunked_feed(&f.c, SR_BYTES(END), &used, &data), SR_CHUNKED_DONE, "S33 done stays done");
    is_int((long long)used, 0, "and uses nothing");

    feed_chunked(&f, "x", 1, 1, 0);
    is_int(sr_chunked_feed(&f.c, SR_BYTES(END), &used, &data), SR_CHUNKED_BAD, "bad stays bad");
    ok(used == 0 && f.c.status == 400 && f.c.why, "and says why");

    feed_chunked(&f, "7fffffff\r\nab", 12, 12, 0);
    is_int((long long)sr_chunked_announced(&f.c), 0x7fffffff - 2, "what a chunk still announces");
    feed_chunked(&f, "7fff", 4, 4, 0);
    is_int((long long)sr_chunked_announced(&f.c), 0, "nothing while the size may grow");
    is_int(sr_chunked_feed(&f.c, sr_bytes_of(NULL, 0), &used, &data), SR_CHUNKED_MORE, "no bytes");
}

/* 1 GiB, told as such: no byte of it is looked at. */
static void gigabyte(void)
{
    sr_chunked c;
    size_t used;
    sr_bytes data;
    sr_chunked_init(&c);
    is_int(sr_chunked_feed(&c, SR_BYTES("40000000\r\n"), &used, &data), SR_CHUNKED_MORE, "1 GiB begins");
    uint64_t left = 1 << 30;
    while (left > 0 &&
           sr_chunked_feed(&c, sr_bytes_of(long_body, sizeof long_body), &used, &data) == SR_CHUNKED_DATA)
        left -= data.len;
    is_int((long long)left, 0, "and ends");
    is_int(sr_chunked_feed(&c, SR_BYTES("\r\n" END), &used, &data), SR_CHUNKED_DONE, "with CRLF");
}

int main(void)
{
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        check("body", &bodies[i]);
    for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++)
        check("extension", &extensions[i]);
    for (size_t i = 0; i < sizeof trailers / sizeof *trailers; i++)
        check("trailer", &trailers[i]);
    size_lines();
    trailer_sections();
    small_chunks();
    used_bytes();
    gigabyte();
    return done_testing();
}
