#ifndef SR_TARGET_H
#define SR_TARGET_H
/* target: the request-target and the authority (RFC 9112 3.2, RFC 3986 3.2). Pure; any thread. */
#include "request.h"

typedef enum sr_target_form {
    SR_FORM_ORIGIN,
    SR_FORM_ASTERISK,
    SR_FORM_AUTHORITY, /* CONNECT only */
    SR_FORM_ABSOLUTE,
} sr_target_form;

typedef struct sr_authority {
    size_t host_len;
    int port; /* -1: none, or nothing after the colon */
} sr_authority;

/* Parses host [":" port], without userinfo. False: it is not an authority. */
bool sr_authority_parse(sr_bytes s, sr_authority *out);

/*
 * Checks r->target; r->method_id is known. Sets form, path, query, has_query and, for absolute-form, host.
 * Returns NULL, or why it is refused, always with 400.
 */
const char *sr_target_parse(sr_request *r, const char *at);

/*
 * Percent-decodes a path that sr_target_parse has accepted into `out`, of path.len bytes. Returns the bytes
 * written.
 */
size_t sr_path_decode(char *out, sr_bytes path);

#endif
