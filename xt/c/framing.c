/* framing: fields, and what they say about the message: what is refused, and with which status. */
#include "heads.h"

#define MARK "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
#define CHUNKED "Transfer-Encoding: chunked\r\n"
#define CL(name, want, value) GET(name, want, "Content-Length:" value "\r\n")
#define TE(name, want, value) GET(name, want, "Transfer-Encoding:" value "\r\n")
#define V10(name, want, fields) HEAD(name, want, "GET / HTTP/1.0\r\n" fields "\r\n")
#define WEBSOCKET "Connection: upgrade\r\nUpgrade: websocket\r\n"

static const head fields[] = {
    GET("an empty value", DONE, "A:\r\n"),
    GET("a value of white space", DONE, "A: \t \r\n"),
    GET("no white space", DONE, "A:b\r\n"),
    GET("HTAB in a value", DONE, "A: b\tc\r\n"),
    GET("HTAB in a long value", DONE, "A: bbbbbbbbbbbbbbbb\tc\r\n"),
    GET("UTF-8 in a value", DONE, "A: \xc3\xa9\xff\x80\r\n"),
    GET("every kind of tchar", DONE, "!#$%&'*+-.^`|~09aZ: b\r\n"),
    GET("no colon", 400, "A\r\n"),
    GET("an empty name", 400, ": a\r\n"),
    GET("S18 a space before the colon", 400, "A : b\r\n"),
    GET("a tab before the colon", 400, "A\t: b\r\n"),
    GET("a space in the name", 400, "A b: c\r\n"),
    GET("a bracket in the name", 400, "A[b: c\r\n"),
    GET("a bracket first", 400, "[b: c\r\n"),
    GET("UTF-8 in the name", 400, "X-T\xc3\xabst: a\r\n"),
    GET("NUL in the name", 400, "A\0b: c\r\n"),
    GET("NUL in a value", 400, "A: b\0c\r\n"),
    GET("NUL at the end of a value", 400, "A: b\0\r\n"),
    GET("DEL in a value", 400, "A: b\x7f\r\n"),
    GET("DEL in a long value", 400, "A: 01234567\x7f\r\n"),
    GET("ESC in a value", 400, "A: 0123\x1b[31m\r\n"),
    GET("VT around a value", 400, "A: \vb\r\n"),
    GET("S20 a bare CR", 400, "A: b\rTransfer-Encoding: chunked\r\n"),
    GET("S20 a bare LF", 400, "A: b\nTransfer-Encoding: chunked\r\n"),
    GET("CR CR LF", 400, "A: b\r\r\n"),
    GET("S19 a folded line", 400, "A: b\r\n c\r\n"),
    GET("S41 folded with a tab", 400, "A: 1\r\nB: 2\r\nA: 3\r\n\tcont\r\n"),
    HEAD("folded behind the request line", 400, "GET / HTTP/1.1\r\n " H "\r\n"),
    HEAD("a line of white space", 400, "GET / HTTP/1.1\r\n \r\n" H "\r\n"),
    GET("S19 a folded Transfer-Encoding", 400, "Transfer-Encoding:\r\n chunked\r\n"),
    GET("S43 names with '_'", DONE, "X_Forwarded_For: 6.6.6.6\r\nRemote_User: root\r\n"),
    GET("S43 Content_Length", 400, "Content_Length: 5\r\n"),
    GET("S17 Transfer_Encoding", 400, "Transfer_Encoding: chunked\r\n"),
    GET("TRANSFER_ENCODING", 400, "TRANSFER_ENCODING: chunked\r\n"),
    GET("as long as one", DONE, "Content_Lengtx: 5\r\nTransfer_Encodinx: a\r\n"),
    GET("a bad value under such a name", 400, "A_b: \x01\r\n"),
    GET("S43 Proxy", DONE, "Proxy: http://evil\r\n"),
    GET("as long as a known one", DONE,
        "Hosx: a\r\nExpecx: a\r\nUpgradx: a\r\nConnectiox: a\r\nProxx: a\r\n"),
    GET("two Content-Types", 400, "Content-Type: a/b\r\nContent-Type: a/b\r\n"),
    GET("Content-Typx twice", DONE, "Content-Typx: a\r\nContent-Typx: a\r\nSec-WebSocket-Versiox: 1\r\n"),
};

static const head lengths[] = {
    CL("a number", DONE, " 5"),
    CL("no space", DONE, "5"),
    CL("zero", DONE, " 0"),
    CL("the most 63 bits hold", DONE, " 9223372036854775807"),
    CL("S09 one more", 400, " 9223372036854775808"),
    CL("S09 twenty digits", 400, " 10000000000000000000"),
    CL("S09 forty digits", 400, " 1111111111111111111111111111111111111111"),
    CL("S10 a space behind it", DONE, " 5 "),
    CL("S10 a tab", DONE, "\t5"),
    CL("two spaces", DONE, "  5"),
    CL("a tab behind it", DONE, "5\t"),
    CL("SP and HTAB on both sides", DONE, " \t \t\t 5\t  \t"),
    CL("64 spaces", DONE,
       "                                                                5                             "),
    CL("VT", 400, " \v5"),
    CL("FF behind it", 400, " 5\f"),
    CL("NUL behind it", 400, " 5\0"),
    CL("a no-break space", 400,
       " \xa0"
       "5"),
    CL("a no-break space in UTF-8", 400,
       " \xc2\xa0"
       "5"),
    CL("a tab within", 400, " 1\t0"),
    CL("S11 empty", 400, ""),
    CL("S11 a space", 400, " "),
    CL("white space only", 400, " \t \t "),
    CL("S11 a comma first", 400, " ,5"),
    CL("S06 plus", 400, " +5"),
    CL("S07 minus", 400, " -1"),
    CL("minus zero", 400, " -0"),
    CL("S08 a fraction", 400, " 3.14"),
    CL("S08 an exponent", 400, " 1e3"),
    CL("S08 hex", 400, " 0x10"),
    CL("S08 two numbers", 400, " 5 5"),
    CL("S08 a list", 400, " 5,5"),
    CL("a list with a space", 400, " 5, 5"),
    CL("S08 a semicolon", 400, " 5;"),
    CL("S08 an underscore", 400, " 5_0"),
    CL("S08 an Arabic digit", 400, " \xd9\xa5"),
    CL("a leading zero", 400, " 05"),
    CL("two zeros", 400, " 00"),
    CL("letters", 400, " abc"),
    GET("S05 two", 400, "content-length: 3\r\ncontent-length: 9\r\n"),
    GET("two, the same", 400, "Content-Length: 3\r\nContent-Length: 3\r\n"),
    GET("another name as long", DONE, "Content-Lengtx: 3\r\nContent-Lengtx: a\r\n"),
    V10("in HTTP/1.0", DONE, "Content-Length: 3\r\n"),
};

static const head codings[] = {
    TE("chunked", DONE, " chunked"),
    TE("S16 case", DONE, " cHuNkEd"),
    TE("S12 OWS", DONE, "\tchunked \t"),
    TE("S11 empty", 400, ""),
    TE("S13 gzip, chunked", 501, " gzip, chunked"),
    TE("S13 chunked, gzip", 400, " chunked, gzip"),
    TE("S13 chunked twice", 400, " chunked, chunked"),
    TE("gzip between", 400, " chunked, gzip, chunked"),
    TE("S13 identity", 501, " identity"),
    TE("gzip", 501, " gzip"),
    TE("S13 a comma behind", 400, " chunked,"),
    TE("a comma before", 400, " , chunked"),
    TE("a comma only", 400, ","),
    TE("S15 xchunked", 501, " xchunked"),
    TE("S15 a parameter", 400, " chunked;q=1"),
    TE("S15 quoted", 400, " \"chunked\""),
    TE("a comma in quotes", 400, " \"a,chunked"),
    TE("an escape in quotes", 400, " \"a\\\",\", chunked"),
    TE("S15 UTF-8", 400,
       " chunk\xc3\xa9"
       "d"),
    TE("S15 VT", 400, " \vchunked"),
    TE("S15 NUL", 400, " chunked\0"),
    TE("a space within", 400, " chu nked"),
    GET("S14 chunked, then identity", 400, CHUNKED "Transfer-Encoding: identity\r\n"),
    GET("S14 identity, then chunked", 400, "Transfer-Encoding: identity\r\n" CHUNKED),
    GET("S18 a space before the colon", 400, "Transfer-Encoding : chunked\r\n"),
    V10("S21 in HTTP/1.0", 400, CHUNKED),
    GET("S01 with a length", 400, "content-length: 12\r\n" CHUNKED),
    GET("S02 the other way round", 400, CHUNKED "Content-Length: 5\r\n"),
    GET("S04 with a length of 0", 400, "Content-Length: 0\r\n" CHUNKED),
    GET("S23 unknown, with a length", 400, "Transfer-Encoding: xchunked\r\nContent-Length: 0\r\n"),
    GET("another name as long", DONE, "Transfer-Encodinx: identity\r\n"),
};

static const head expectations[] = {
    GET("S52 100-continue", DONE, "Expect: 100-Continue\r\n"),
    GET("S52 another", 417, "Expect: 1\r\n"),
    GET("empty", DONE, "Expect:\r\n"),
    GET("empty elements", DONE, "Expect: , 100-continue,,\r\n"),
    GET("a list with another", 417, "Expect: 100-continue, a\r\n"),
    GET("another first", 417, "Expect: a, 100-continue\r\n"),
    GET("a parameter", 417, "Expect: 100-continue;q=1\r\n"),
    GET("twice", DONE, "Expect: 100-continue\r\nExpect: 100-continue\r\n"),
    GET("another, then it", 417, "Expect: a\r\nExpect: 100-continue\r\n"),
    GET("OWS", DONE, "Expect:\t 100-continue \t\r\n"),
    V10("any in HTTP/1.0", DONE, "Expect: a\r\n"),
    GET("framing is judged first", 400, "Expect: a\r\nContent-Length: 5\r\n" CHUNKED),
    GET("a coding is judged first", 501, "Expect: a\r\nTransfer-Encoding: gzip\r\n"),
    HEAD("so is the method", 501, "TRACE / HTTP/1.1\r\n" H "Expect: a\r\n\r\n"),
    GET("WebSocket 13", DONE, WEBSOCKET "Sec-WebSocket-Version: 13\r\n"),
    GET("WebSocket 99", 426, WEBSOCKET "Sec-WebSocket-Version: 99\r\n"),
    GET("WebSocket 8 and 13", 426, "Sec-WebSocket-Version: 8, 13\r\n" WEBSOCKET),
    GET("WebSocket without a version", DONE, WEBSOCKET),
    GET("no upgrade in Connection", DONE, "Upgrade: websocket\r\nSec-WebSocket-Version: 99\r\n"),
    GET("an upgrade to something else", DONE,
        "Connection: upgrade\r\nUpgrade: h2c\r\nSec-WebSocket-Version: 99\r\n"),
    V10("no upgrade in HTTP/1.0", DONE, WEBSOCKET "Sec-WebSocket-Version: 99\r\n"),
};

int main(void)
{
    static const group groups[] = {GROUP(fields), GROUP(lengths), GROUP(codings), GROUP(expectations)};
    check_groups(groups, sizeof groups / sizeof *groups);

    /* What follows a head is none of its business, whatever it is. */
    static sr_request r;
    static const char with_body[] = "POST / HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabc" MARK;
    sr_parse p;
    ok(splits_agree(&r, &p, &feed_limits, with_body, sizeof with_body - 1) && p == SR_PARSE_DONE &&
           r.head_len == sizeof with_body - 1 - 3 - (sizeof MARK - 1),
       "S24 the head ends where it ends");
    return done_testing();
}
