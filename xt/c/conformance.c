/*
 * The rows of Http11Probe (github.com/MDA2AV/Http11Probe, MIT) that heads and chunked bodies decide: each
 * with the one answer we give: but for those of docs/PROTOCOL.md one that passes there.
 */
#include "feed.h"

enum { WAITS = 0, TAKEN = 200 }; /* or the status of the refusal */

typedef struct probe {
    const char *name;
    int want;
    const char *at;
    size_t len;
} probe;
#define PROBE(name, want, bytes)                                                                             \
    {                                                                                                        \
        name, want, bytes, sizeof(bytes) - 1                                                                 \
    }

static const probe probes[] = {
    PROBE("COMP-BASELINE", TAKEN, "GET / HTTP/1.1\r\nHost: localhost:8080\r\n\r\n"),
    PROBE("RFC9112-2.2-BARE-LF-REQUEST-LINE", 400, "GET / HTTP/1.1\nHost: localhost:8080\r\n\r\n"),
    PROBE("RFC9112-2.2-BARE-LF-HEADER", 400, "GET / HTTP/1.1\r\nHost: localhost:8080\nX-Test: value\r\n\r\n"),
    PROBE("RFC9112-5.1-OBS-FOLD", 400,
          "GET / HTTP/1.1\r\nHost: localhost:8080\r\nX-Test: value\r\n continued\r\n\r\n"),
    PROBE("RFC9110-5.6.2-SP-BEFORE-COLON", 400,
          "GET / HTTP/1.1\r\nHost: localhost:8080\r\nX-Test : value\r\n\r\n"),
    PROBE("RFC9112-3-MULTI-SP-REQUEST-LINE", 400, "GET  / HTTP/1.1\r\nHost: localhost:8080\r\n\r\n"),
    PROBE("RFC9112-7.1-MISSING-HOST", 400, "GET / HTTP/1.1\r\n\r\n"),
    PROBE("RFC9112-2.3-INVALID-VERSION", 505, "GET / HTTP/9.9\r\nHost: localhost:8080\r\n\r\n"),
    PROBE("RFC9112-5-EMPTY-HEADER-NAME", 400,
          "GET / HTTP/1.1\r\nHost: localhost:8080\r\n: empty-name\r\n\r\n"),
    PROBE("RFC9112-3-CR-ONLY-LINE-ENDING", 400, "GET / HTTP/1.1\rHost: localhost:8080\r\n\r\n"),
    PROBE("RFC9112-3-MISSING-TARGET", 400, "GET HTTP/1.1\r\nHost: localhost:8080\r\n\r\n"),
    PROBE("RFC9112-3.2-FRAGMENT-IN-TARGET", 400, "GET /path#frag HTTP/1.1\r\nHost: localhost:8080\r\n\r\n"),
    PROBE("RFC9112-2.3-HTTP09-REQUEST", 400, "GET /\r\n"),
    PROBE("RFC9112-5-INVALID-HEADER-NAME", 400,
          "GET / HTTP/1.1\r\nHost: localhost:8080\r\nBad[Name: value\r\n\r\n"),
    PROBE("RFC9112-5-HEADER-NO-COLON", 400, "GET / HTTP/1.1\r\nHost: localhost:8080\r\nNoColonHere\r\n\r\n"),
    PROBE("RFC9110-5.4-DUPLICATE-HOST", 400,
          "GET / HTTP/1.1\r\nHost: localhost:8080\r\nHost: other.example.com\r\n\r\n"),
    PROBE("RFC9112-6.1-CL-NON-NUMERIC", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: abc\r\n\r\n"),
    PROBE("RFC9112-6.1-CL-PLUS-SIGN", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: +5\r\n\r\nhello"),
    PROBE("COMP-WHITESPACE-BEFORE-HEADERS", 400, "GET / HTTP/1.1\r\n \r\nHost: localhost:8080\r\n\r\n"),
    PROBE("COMP-DUPLICATE-HOST-SAME", 400,
          "GET / HTTP/1.1\r\nHost: localhost:8080\r\nHost: localhost:8080\r\n\r\n"),
    PROBE("COMP-HOST-WITH-USERINFO", 400, "GET / HTTP/1.1\r\nHost: user@localhost:8080\r\n\r\n"),
    PROBE("COMP-HOST-WITH-PATH", 400, "GET / HTTP/1.1\r\nHost: localhost:8080/path\r\n\r\n"),
    PROBE("COMP-ASTERISK-WITH-GET", 400, "GET * HTTP/1.1\r\nHost: localhost:8080\r\n\r\n"),
    PROBE("COMP-OPTIONS-STAR", TAKEN, "OPTIONS * HTTP/1.1\r\nHost: localhost:8080\r\n\r\n"),
    PROBE("COMP-UNKNOWN-TE-501", 501,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: gzip\r\n\r\n"),
    PROBE("COMP-LEADING-CRLF", 400, "\r\n\r\nGET / HTTP/1.1\r\nHost: localhost:8080\r\n\r\n"),
    PROBE("COMP-ABSOLUTE-FORM", TAKEN, "GET http://localhost:8080/ HTTP/1.1\r\nHost: localhost:8080\r\n\r\n"),
    PROBE("COMP-METHOD-CASE", TAKEN, "get / HTTP/1.1\r\nHost: localhost:8080\r\n\r\n"),
    PROBE("COMP-POST-CL-BODY", TAKEN,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: 5\r\n\r\nhello"),
    PROBE("COMP-POST-CL-ZERO", TAKEN, "POST / HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: 0\r\n\r\n"),
    PROBE("COMP-POST-NO-CL-NO-TE", TAKEN, "POST / HTTP/1.1\r\nHost: localhost:8080\r\n\r\n"),
    PROBE("COMP-POST-CL-UNDERSEND", WAITS,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: 10\r\n\r\nhello"),
    PROBE("COMP-CHUNKED-BODY", TAKEN,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: "
          "chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
    PROBE("COMP-CHUNKED-MULTI", TAKEN,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n "
          "world\r\n0\r\n\r\n"),
    PROBE("COMP-CHUNKED-EMPTY", TAKEN,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    PROBE("COMP-CHUNKED-NO-FINAL", WAITS,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"),
    PROBE("COMP-UPGRADE-POST", TAKEN,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nConnection: Upgrade\r\nUpgrade: "
          "websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"),
    PROBE("COMP-UPGRADE-MISSING-CONN", TAKEN,
          "GET / HTTP/1.1\r\nHost: localhost:8080\r\nUpgrade: websocket\r\nSec-WebSocket-Key: "
          "dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"),
    PROBE("COMP-UPGRADE-UNKNOWN", TAKEN,
          "GET / HTTP/1.1\r\nHost: localhost:8080\r\nConnection: Upgrade\r\nUpgrade: "
          "totally-made-up/1.0\r\n\r\n"),
    PROBE("COMP-METHOD-CONNECT", 501, "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n"),
    PROBE("COMP-EXPECT-UNKNOWN", 417, "GET / HTTP/1.1\r\nHost: localhost:8080\r\nExpect: 200-ok\r\n\r\n"),
    PROBE("COMP-GET-WITH-CL-BODY", TAKEN,
          "GET / HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: 5\r\n\r\nhello"),
    PROBE("COMP-CHUNKED-EXTENSION", TAKEN,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: "
          "chunked\r\n\r\n5;ext=value\r\nhello\r\n0\r\n\r\n"),
    PROBE("COMP-UPGRADE-INVALID-VER", 426,
          "GET / HTTP/1.1\r\nHost: localhost:8080\r\nConnection: Upgrade\r\nUpgrade: "
          "websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 99\r\n\r\n"),
    PROBE("COMP-METHOD-TRACE", 501, "TRACE / HTTP/1.1\r\nHost: localhost:8080\r\n\r\n"),
    PROBE("COMP-HOST-EMPTY-VALUE", 400, "GET / HTTP/1.1\r\nHost: \r\n\r\n"),
    PROBE("COMP-REQUEST-LINE-TAB", 400, "GET\011/ HTTP/1.1\r\nHost: localhost:8080\r\n\r\n"),
    PROBE("COMP-VERSION-MISSING-MINOR", 400, "GET / HTTP/1\r\nHost: localhost:8080\r\n\r\n"),
    PROBE("COMP-VERSION-LEADING-ZEROS", 400, "GET / HTTP/01.01\r\nHost: localhost:8080\r\n\r\n"),
    PROBE("COMP-VERSION-WHITESPACE", 400, "GET / HTTP/ 1.1\r\nHost: localhost:8080\r\n\r\n"),
    PROBE("COMP-CONNECTION-CLOSE", TAKEN,
          "GET / HTTP/1.1\r\nHost: localhost:8080\r\nConnection: close\r\n\r\n"),
    PROBE("COMP-HTTP10-DEFAULT-CLOSE", TAKEN, "GET / HTTP/1.0\r\nHost: localhost:8080\r\n\r\n"),
    PROBE("COMP-HTTP10-NO-HOST", TAKEN, "GET / HTTP/1.0\r\n\r\n"),
    PROBE("COMP-HTTP12-VERSION", TAKEN, "GET / HTTP/1.2\r\nHost: localhost:8080\r\n\r\n"),
    PROBE("COMP-TRACE-WITH-BODY", 501,
          "TRACE / HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: 5\r\n\r\nhello"),
    PROBE("COMP-CHUNKED-TRAILER-VALID", TAKEN,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: "
          "chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Checksum: abc\r\n\r\n"),
    PROBE("COMP-CHUNKED-HEX-UPPERCASE", TAKEN,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: "
          "chunked\r\n\r\nA\r\nhelloworld\r\n0\r\n\r\n"),
    PROBE("COMP-RANGE-POST", TAKEN,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: 5\r\nRange: bytes=0-10\r\n\r\nhello"),
    PROBE("COMP-UPGRADE-HTTP10", TAKEN,
          "GET / HTTP/1.0\r\nHost: localhost:8080\r\nConnection: Upgrade\r\nUpgrade: "
          "websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"),
    PROBE("COMP-HEAD-NO-BODY", TAKEN, "HEAD / HTTP/1.1\r\nHost: localhost:8080\r\n\r\n"),
    PROBE("COMP-UNKNOWN-METHOD", TAKEN, "FOOBAR / HTTP/1.1\r\nHost: localhost:8080\r\n\r\n"),
    PROBE("COMP-405-ALLOW", TAKEN, "DELETE / HTTP/1.1\r\nHost: localhost:8080\r\n\r\n"),
    PROBE("COMP-DATE-HEADER", TAKEN, "GET / HTTP/1.1\r\nHost: localhost:8080\r\n\r\n"),
    PROBE("COMP-DATE-FORMAT", TAKEN, "GET / HTTP/1.1\r\nHost: localhost:8080\r\n\r\n"),
    PROBE(
        "COMP-NO-1XX-HTTP10", TAKEN,
        "POST / HTTP/1.0\r\nHost: localhost:8080\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello"),
    PROBE("COMP-NO-CL-IN-204", TAKEN, "OPTIONS / HTTP/1.1\r\nHost: localhost:8080\r\n\r\n"),
    PROBE("COMP-OPTIONS-ALLOW", TAKEN, "OPTIONS / HTTP/1.1\r\nHost: localhost:8080\r\n\r\n"),
    PROBE("COMP-CONTENT-TYPE", TAKEN, "GET / HTTP/1.1\r\nHost: localhost:8080\r\n\r\n"),
    PROBE("COMP-VERSION-CASE", 400, "GET / http/1.1\r\nHost: localhost:8080\r\n\r\n"),
    PROBE("COMP-SPACE-IN-TARGET", 400, "GET /pa th HTTP/1.1\r\nHost: localhost:8080\r\n\r\n"),
    PROBE("COMP-DUPLICATE-CT", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: 5\r\nContent-Type: "
          "text/plain\r\nContent-Type: text/html\r\n\r\nhello"),
    PROBE("COMP-TRACE-SENSITIVE", 501,
          "TRACE / HTTP/1.1\r\nHost: localhost:8080\r\nAuthorization: Bearer secret-token-123\r\n\r\n"),
    PROBE("COMP-RANGE-INVALID", TAKEN,
          "GET / HTTP/1.1\r\nHost: localhost:8080\r\nRange: bytes=abc-xyz\r\n\r\n"),
    PROBE("COMP-ACCEPT-NONSENSE", TAKEN,
          "GET / HTTP/1.1\r\nHost: localhost:8080\r\nAccept: application/x-nonsense\r\n\r\n"),
    PROBE("COMP-POST-UNSUPPORTED-CT", TAKEN,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: 5\r\nContent-Type: "
          "application/x-nonsense\r\n\r\nhello"),
    PROBE("SMUG-CL-TE-BOTH", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: 23\r\nTransfer-Encoding: "
          "chunked\r\n\r\nD\r\nhello-bananas\r\n0\r\n\r\n"),
    PROBE("SMUG-DUPLICATE-CL", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: 5\r\nContent-Length: "
          "10\r\n\r\nhelloworld"),
    PROBE("SMUG-CL-LEADING-ZEROS", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: 005\r\n\r\nhello"),
    PROBE("SMUG-TE-XCHUNKED", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: xchunked\r\nContent-Length: "
          "5\r\n\r\nhello"),
    PROBE("SMUG-TE-TRAILING-SPACE", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: chunked \r\nContent-Length: "
          "5\r\n\r\nhello"),
    PROBE("SMUG-TE-SP-BEFORE-COLON", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding : chunked\r\nContent-Length: "
          "5\r\n\r\nhello"),
    PROBE("SMUG-CL-NEGATIVE", 400, "POST / HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: -1\r\n\r\n"),
    PROBE("SMUG-CLTE-PIPELINE", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: 4\r\nTransfer-Encoding: "
          "chunked\r\n\r\n0\r\n\r\n"),
    PROBE("SMUG-TECL-PIPELINE", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: chunked\r\nContent-Length: "
          "30\r\n\r\n0\r\n\r\n"),
    PROBE("SMUG-CL-TRAILING-SPACE", TAKEN,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: 5 \r\n\r\nhello"),
    PROBE("SMUG-TE-DOUBLE-CHUNKED", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: chunked, chunked\r\nContent-Length: "
          "5\r\n\r\nhello"),
    PROBE("SMUG-CL-EXTRA-LEADING-SP", TAKEN,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length:  5\r\n\r\nhello"),
    PROBE("SMUG-TE-CASE-MISMATCH", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: Chunked\r\nContent-Length: "
          "5\r\n\r\nhello"),
    PROBE("SMUG-CL-COMMA-DIFFERENT", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: 5, 10\r\n\r\nhello"),
    PROBE("SMUG-TE-NOT-FINAL-CHUNKED", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n"),
    PROBE("SMUG-TE-HTTP10", 400,
          "POST / HTTP/1.0\r\nHost: localhost:8080\r\nTransfer-Encoding: chunked\r\nContent-Length: "
          "5\r\n\r\nhello"),
    PROBE("SMUG-CHUNK-BARE-SEMICOLON", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: "
          "chunked\r\n\r\n5;\r\nhello\r\n0\r\n\r\n"),
    PROBE("SMUG-CHUNK-EXT-INVALID-TOKEN", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: "
          "chunked\r\n\r\n5;bad[=x\r\nhello\r\n0\r\n\r\n"),
    PROBE("SMUG-BARE-CR-HEADER-VALUE", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: 5\r\nX-Test: val\rue\r\n\r\nhello"),
    PROBE("SMUG-CL-OCTAL", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: 0o5\r\n\r\nhello"),
    PROBE("SMUG-CHUNK-UNDERSCORE", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: chunked\r\n\r\n1_0\r\nhello "
          "world!!!!!\r\n0\r\n\r\n"),
    PROBE("SMUG-TE-EMPTY-VALUE", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: \r\nContent-Length: 5\r\n\r\nhello"),
    PROBE("SMUG-TE-LEADING-COMMA", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: , chunked\r\nContent-Length: "
          "5\r\n\r\nhello"),
    PROBE("SMUG-TE-DUPLICATE-HEADERS", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: "
          "identity\r\nContent-Length: 5\r\n\r\nhello"),
    PROBE("SMUG-CHUNK-HEX-PREFIX", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: "
          "chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n"),
    PROBE("SMUG-CHUNK-SIZE-PLUS", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: "
          "chunked\r\n\r\n+5\r\nhello\r\n0\r\n\r\n"),
    PROBE("SMUG-CHUNK-SIZE-TRAILING-OWS", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: chunked\r\n\r\n5 "
          "\r\nhello\r\n0\r\n\r\n"),
    PROBE("SMUG-CL-HEX-PREFIX", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: 0x5\r\n\r\nhello"),
    PROBE("SMUG-CL-INTERNAL-SPACE", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: 1 0\r\n\r\nhello12345"),
    PROBE("SMUG-CHUNK-LEADING-SP", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: chunked\r\n\r\n "
          "5\r\nhello\r\n0\r\n\r\n"),
    PROBE("SMUG-CHUNK-MISSING-TRAILING-CRLF", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello0\r\n\r\n"),
    PROBE("SMUG-CHUNK-EXT-LF", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: "
          "chunked\r\n\r\n5;\nhello\r\n0\r\n\r\n"),
    PROBE("SMUG-CHUNK-SPILL", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: "
          "chunked\r\n\r\n5\r\nhello!!\r\n0\r\n\r\n"),
    PROBE(
        "SMUG-CHUNK-LF-TERM", 400,
        "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\n0\r\n\r\n"),
    PROBE("SMUG-CHUNK-EXT-CTRL", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: "
          "chunked\r\n\r\n5;\000ext\r\nhello\r\n0\r\n\r\n"),
    PROBE("SMUG-CHUNK-EXT-CR", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: "
          "chunked\r\n\r\n5;a\rX\r\nhello\r\n0\r\n\r\n"),
    PROBE("SMUG-TE-VTAB", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: \013chunked\r\nContent-Length: "
          "5\r\n\r\nhello"),
    PROBE("SMUG-TE-FORMFEED", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: \014chunked\r\nContent-Length: "
          "5\r\n\r\nhello"),
    PROBE("SMUG-TE-NULL", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: chunked\000\r\nContent-Length: "
          "5\r\n\r\nhello"),
    PROBE(
        "SMUG-CHUNK-LF-TRAILER", 400,
        "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\n"),
    PROBE("SMUG-TE-IDENTITY", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: identity\r\nContent-Length: "
          "5\r\n\r\nhello"),
    PROBE("SMUG-CHUNK-NEGATIVE", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: "
          "chunked\r\n\r\n-1\r\nhello\r\n0\r\n\r\n"),
    PROBE("SMUG-TRANSFER_ENCODING", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer_Encoding: chunked\r\nContent-Length: "
          "5\r\n\r\nhello"),
    PROBE("SMUG-CL-COMMA-SAME", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: 5, 5\r\n\r\nhello"),
    PROBE("SMUG-CL-COMMA-TRIPLE", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: 5, 5, 5\r\n\r\nhello"),
    PROBE("SMUG-CHUNKED-WITH-PARAMS", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: chunked;ext=val\r\nContent-Length: "
          "5\r\n\r\nhello"),
    PROBE(
        "SMUG-EXPECT-100-CL", TAKEN,
        "POST / HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello"),
    PROBE("SMUG-TRAILER-CL", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: "
          "chunked\r\n\r\n5\r\nhello\r\n0\r\nContent-Length: 50\r\n\r\n"),
    PROBE("SMUG-TRAILER-TE", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: "
          "chunked\r\n\r\n5\r\nhello\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n"),
    PROBE("SMUG-TRAILER-HOST", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: "
          "chunked\r\n\r\n5\r\nhello\r\n0\r\nHost: evil.example.com\r\n\r\n"),
    PROBE("SMUG-TRAILER-AUTH", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: "
          "chunked\r\n\r\n5\r\nhello\r\n0\r\nAuthorization: Bearer evil\r\n\r\n"),
    PROBE("SMUG-HEAD-CL-BODY", TAKEN,
          "HEAD / HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: 5\r\n\r\nhello"),
    PROBE("SMUG-OPTIONS-CL-BODY", TAKEN,
          "OPTIONS / HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: 5\r\n\r\nhello"),
    PROBE("SMUG-CL-UNDERSCORE", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: 1_0\r\n\r\nhelloworld"),
    PROBE("SMUG-CL-NEGATIVE-ZERO", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: -0\r\n\r\n"),
    PROBE("SMUG-CL-DOUBLE-ZERO", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: 00\r\n\r\n"),
    PROBE("SMUG-TE-OBS-FOLD", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding:\r\n chunked\r\nContent-Length: "
          "5\r\n\r\nhello"),
    PROBE("SMUG-TE-TRAILING-COMMA", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: chunked,\r\nContent-Length: "
          "5\r\n\r\nhello"),
    PROBE("SMUG-TE-TAB-BEFORE-VALUE", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding:\011chunked\r\nContent-Length: "
          "5\r\n\r\nhello"),
    PROBE("SMUG-ABSOLUTE-URI-HOST-MISMATCH", TAKEN,
          "GET http://other.example.com/ HTTP/1.1\r\nHost: localhost:8080\r\n\r\n"),
    PROBE("SMUG-MULTIPLE-HOST-COMMA", 400,
          "GET / HTTP/1.1\r\nHost: localhost:8080, other.example.com\r\n\r\n"),
    PROBE(
        "SMUG-CHUNK-BARE-CR-TERM", 400,
        "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: chunked\r\n\r\n5\rhello\r\n0\r\n\r\n"),
    PROBE("SMUG-TRAILER-CONTENT-TYPE", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: "
          "chunked\r\n\r\n5\r\nhello\r\n0\r\nContent-Type: text/evil\r\n\r\n"),
    PROBE("MAL-NUL-IN-URL", 400, "GET /\000test HTTP/1.1\r\nHost: localhost:8080\r\n\r\n"),
    PROBE("MAL-CONTROL-CHARS-HEADER", 400,
          "GET / HTTP/1.1\r\nHost: localhost:8080\r\nX-Test: abc\007\010?f\r\n\r\n"),
    PROBE("MAL-INCOMPLETE-REQUEST", WAITS, "GET / HTTP/1.1\r\nHost: localhost:8080\r\nX-Test: value"),
    PROBE("MAL-EMPTY-REQUEST", WAITS, ""),
    PROBE("MAL-NON-ASCII-HEADER-NAME", 400,
          "GET / HTTP/1.1\r\nHost: localhost:8080\r\nX-T\303\253st: value\r\n\r\n"),
    PROBE("MAL-NON-ASCII-URL", TAKEN, "GET /caf\303\251 HTTP/1.1\r\nHost: localhost:8080\r\n\r\n"),
    PROBE("MAL-CL-OVERFLOW", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: 99999999999999999999\r\n\r\n"),
    PROBE("MAL-WHITESPACE-ONLY-LINE", 400, "   \r\n\r\n"),
    PROBE("MAL-NUL-IN-HEADER-VALUE", 400,
          "GET / HTTP/1.1\r\nHost: localhost:8080\r\nX-Test: val\000ue\r\n\r\n"),
    PROBE("MAL-CHUNK-SIZE-OVERFLOW", 400,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nTransfer-Encoding: "
          "chunked\r\n\r\nFFFFFFFFFFFFFFFF0\r\nhello\r\n0\r\n\r\n"),
    PROBE("MAL-H2-PREFACE", 505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    PROBE("MAL-CL-EMPTY", 400, "POST / HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: \r\n\r\n"),
    PROBE("MAL-CL-TAB-BEFORE-VALUE", TAKEN,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length:\0115\r\n\r\nhello"),
    PROBE("MAL-URL-BACKSLASH", 400, "GET /path\\file HTTP/1.1\r\nHost: localhost:8080\r\n\r\n"),
    PROBE("MAL-URL-OVERLONG-UTF8", TAKEN, "GET /\300\257 HTTP/1.1\r\nHost: localhost:8080\r\n\r\n"),
    PROBE("MAL-URL-PERCENT-NULL", 400, "GET /path%00.html HTTP/1.1\r\nHost: localhost:8080\r\n\r\n"),
    PROBE("MAL-URL-PERCENT-CRLF", 400,
          "GET /path%0d%0aX-Injected:%20true HTTP/1.1\r\nHost: localhost:8080\r\n\r\n"),
    PROBE("MAL-POST-CL-HUGE-NO-BODY", WAITS,
          "POST / HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: 999999999\r\n\r\n"),
    PROBE("NORM-UNDERSCORE-CL", 400,
          "POST /echo HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: 11\r\nContent_Length: "
          "99\r\n\r\nhello world"),
    PROBE("NORM-SP-BEFORE-COLON-CL", 400,
          "POST /echo HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: 11\r\nContent-Length : "
          "5\r\n\r\nhello world"),
    PROBE("NORM-TAB-IN-NAME", 400,
          "POST /echo HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: 11\r\nContent\011Length: "
          "99\r\n\r\nhello world"),
    PROBE("NORM-CASE-TE", 400,
          "POST /echo HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: 11\r\nTRANSFER-ENCODING: "
          "chunked\r\n\r\nhello world"),
    PROBE("NORM-UNDERSCORE-TE", 400,
          "POST /echo HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: 11\r\nTransfer_Encoding: "
          "chunked\r\n\r\nhello world"),
    PROBE("COOK-ECHO", TAKEN, "GET /echo HTTP/1.1\r\nHost: localhost:8080\r\nCookie: foo=bar\r\n\r\n"),
    PROBE("COOK-EMPTY", TAKEN, "GET /echo HTTP/1.1\r\nHost: localhost:8080\r\nCookie: \r\n\r\n"),
    PROBE("COOK-NUL", 400, "GET /echo HTTP/1.1\r\nHost: localhost:8080\r\nCookie: foo=\000bar\r\n\r\n"),
    PROBE("COOK-CONTROL-CHARS", 400,
          "GET /echo HTTP/1.1\r\nHost: localhost:8080\r\nCookie: foo=\001\002\003\r\n\r\n"),
    PROBE("COOK-MALFORMED", TAKEN, "GET /echo HTTP/1.1\r\nHost: localhost:8080\r\nCookie: ===;;;\r\n\r\n"),
    PROBE("COOK-MULTI-HEADER", TAKEN,
          "GET /echo HTTP/1.1\r\nHost: localhost:8080\r\nCookie: a=1\r\nCookie: b=2\r\n\r\n"),
    PROBE("COOK-PARSED-BASIC", TAKEN,
          "GET /cookie HTTP/1.1\r\nHost: localhost:8080\r\nCookie: foo=bar\r\n\r\n"),
    PROBE("COOK-PARSED-MULTI", TAKEN,
          "GET /cookie HTTP/1.1\r\nHost: localhost:8080\r\nCookie: a=1; b=2; c=3\r\n\r\n"),
    PROBE("COOK-PARSED-EMPTY-VAL", TAKEN,
          "GET /cookie HTTP/1.1\r\nHost: localhost:8080\r\nCookie: foo=\r\n\r\n"),
    PROBE("COOK-PARSED-SPECIAL", TAKEN,
          "GET /cookie HTTP/1.1\r\nHost: localhost:8080\r\nCookie: a=hello world; b=x=y\r\n\r\n"),
};

static int answer(const probe *p, bool *agree)
{
    static sr_request r;
    sr_parse result;
    *agree = splits_agree(&r, &result, &feed_limits, p->at, p->len);
    if (result != SR_PARSE_DONE)
        return result == SR_PARSE_MORE ? WAITS : r.status;
    const char *body = p->at + r.head_len;
    size_t len = p->len - r.head_len;
    if (r.framing == SR_BODY_NONE)
        return TAKEN;
    if (r.framing == SR_BODY_LENGTH)
        return len >= r.content_length ? TAKEN : WAITS;
    feed_body b;
    *agree &= chunked_splits_agree(&b, body, len);
    if (b.result != SR_CHUNKED_DONE)
        return b.result == SR_CHUNKED_MORE ? WAITS : b.c.status;
    return TAKEN;
}

int main(void)
{
    for (size_t i = 0; i < sizeof probes / sizeof *probes; i++) {
        bool agree;
        int got = answer(&probes[i], &agree);
        if (!ok(got == probes[i].want && agree, "%s: %d", probes[i].name, probes[i].want))
            printf("# got %d, splits %s\n", got, agree ? "agree" : "differ");
    }
    return done_testing();
}
