#ifndef SR_SHA1_H
#define SR_SHA1_H
/*
 * sha1: SHA-1 (RFC 3174) of a few bytes, for the answer to the opening request of a WebSocket. It protects
 * nothing there. OpenSSL has it, but a build without that speaks WebSocket as well. Pure; any thread.
 */
#include "../base/bytes.h"

enum { SR_SHA1_LEN = 20, SR_SHA1_MAX = 119 }; /* bytes: of the digest; that are digested */

void sr_sha1(char digest[SR_SHA1_LEN], sr_bytes s); /* s.len <= SR_SHA1_MAX */

#endif
