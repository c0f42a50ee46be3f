#include "proxyline.h"

#include "../http/token.h"

/* --- version 1: "PROXY TCP4 192.0.2.1 192.0.2.2 56324 443" CRLF --- */

static const char v1_start[] = "PROXY ";

/* Returns the next word, and moves `line` past the space that ends it. at is NULL when no word is left. */
static sr_bytes word(sr_bytes *line)
{
    sr_bytes all = *line;
    const char *space = all.at && all.len ? memchr(all.at, ' ', all.len) : NULL;
    if (!space) {
        *line = sr_bytes_of(NULL, 0);
        return all;
    }
    size_t len = (size_t)(space - all.at);
    *line = sr_bytes_of(space + 1, all.len - len - 1);
    return sr_bytes_of(all.at, len);
}

/* Parses 0 to 65535 without leading zeros. -1: s is no such number. */
static int port_parse(sr_bytes s)
{
    int n = 0;
    if (!s.len || s.len > 5 || (s.len > 1 && *s.at == '0') || !sr_all_are(s, SR_CHAR_DIGIT))
        return -1;
    for (size_t i = 0; i < s.len; i++)
        n = n * 10 + (s.at[i] - '0');
    return n <= 65535 ? n : -1;
}

static bool address_parse(sr_bytes s, bool six, sr_peer *out)
{
    return s.len && (memchr(s.at, ':', s.len) != NULL) == six && sr_peer_parse(out, s);
}

/* Parses what is between "PROXY " and CRLF. */
static bool v1_line(sr_proxyline *out, sr_bytes line)
{
    sr_bytes protocol = word(&line);
    if (sr_bytes_equal(protocol, SR_BYTES("UNKNOWN")))
        return true;
    bool six = sr_bytes_equal(protocol, SR_BYTES("TCP6"));
    if (!six && !sr_bytes_equal(protocol, SR_BYTES("TCP4")))
        return false;
    sr_peer server;
    if (!address_parse(word(&line), six, &out->peer) || !address_parse(word(&line), six, &server))
        return false;
    int port = port_parse(word(&line)), server_port = port_parse(word(&line));
    if (port < 0 || server_port < 0 || line.at)
        return false;
    out->peer.port = (uint16_t)port;
    out->named = true;
    return true;
}

static sr_proxyline_result v1_feed(sr_proxyline *out, sr_bytes view)
{
    size_t start = sizeof v1_start - 1, i = start;
    if (memcmp(view.at, v1_start, view.len < start ? view.len : start) != 0)
        return SR_PROXYLINE_BAD;
    while (i < view.len && i < SR_PROXYLINE_V1_MAX - 1 && view.at[i] != '\r' && view.at[i] != '\n')
        i++;
    if (i == SR_PROXYLINE_V1_MAX - 1)
        return SR_PROXYLINE_BAD; /* no room is left for CRLF */
    if (i >= view.len)
        return SR_PROXYLINE_MORE;
    if (view.at[i] == '\n')
        return SR_PROXYLINE_BAD;
    if (i + 1 == view.len)
        return SR_PROXYLINE_MORE;
    if (view.at[i + 1] != '\n' || !v1_line(out, sr_bytes_of(view.at + start, i - start)))
        return SR_PROXYLINE_BAD;
    out->len = i + 2;
    return SR_PROXYLINE_DONE;
}

/* --- version 2 --- */

/* the offsets of the parts; additional fields (TLV) follow the addresses */
enum { SIGNATURE = 12, COMMAND = 12, FAMILY = 13, LENGTH = 14, ADDRESSES = 16 };
enum { LOCAL, PROXY };
enum { UNSPECIFIED, INET, INET6, UNIX, FAMILIES };
enum { PROTOCOLS = 3 }; /* unspecified, stream, datagram */

static const char signature[] = "\r\n\r\n\0\r\nQUIT\n"; /* and a NUL, which is not part of it */
static const uint8_t addresses_len[FAMILIES] = {[INET] = 12, [INET6] = 36, [UNIX] = 216};

static unsigned number16(const uint8_t *at)
{
    return (unsigned)at[0] << 8 | at[1];
}

/* The order is: client address, server address, client port, server port. */
static void v2_addresses(sr_proxyline *out, unsigned family, const uint8_t *at)
{
    if (family == INET)
        sr_peer_set(&out->peer, 4, at, (uint16_t)number16(at + 8));
    else
        sr_peer_set(&out->peer, 6, at, (uint16_t)number16(at + 32));
    out->named = true;
}

static sr_proxyline_result v2_feed(sr_proxyline *out, sr_bytes view)
{
    const uint8_t *at = (const uint8_t *)view.at;
    if (memcmp(view.at, signature, view.len < SIGNATURE ? view.len : SIGNATURE) != 0)
        return SR_PROXYLINE_BAD;
    if (view.len <= COMMAND)
        return SR_PROXYLINE_MORE;
    bool local = at[COMMAND] == (0x20 | LOCAL); /* the specification says to ignore the family of LOCAL */
    if (!local && at[COMMAND] != (0x20 | PROXY))
        return SR_PROXYLINE_BAD;
    if (view.len <= FAMILY)
        return SR_PROXYLINE_MORE;
    unsigned family = at[FAMILY] >> 4, protocol = at[FAMILY] & 0xf;
    if (!local && (family >= FAMILIES || protocol >= PROTOCOLS))
        return SR_PROXYLINE_BAD;
    if (view.len < ADDRESSES)
        return SR_PROXYLINE_MORE;
    size_t len = number16(at + LENGTH);
    bool speaks = !local && family != UNSPECIFIED && protocol != UNSPECIFIED;
    if (ADDRESSES + len > SR_PROXYLINE_V2_MAX || (speaks && len < addresses_len[family]))
        return SR_PROXYLINE_BAD;
    if (view.len < ADDRESSES + len)
        return SR_PROXYLINE_MORE;
    if (speaks && family != UNIX)
        v2_addresses(out, family, at + ADDRESSES);
    out->len = ADDRESSES + len;
    return SR_PROXYLINE_DONE;
}

sr_proxyline_result sr_proxyline_feed(sr_proxyline *out, sr_bytes view)
{
    memset(out, 0, sizeof *out);
    if (!view.len)
        return SR_PROXYLINE_MORE;
    return *view.at == v1_start[0] ? v1_feed(out, view) : v2_feed(out, view);
}
