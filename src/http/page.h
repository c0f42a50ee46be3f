#ifndef SR_PAGE_H
#define SR_PAGE_H
/*
 * page: a response of the server's own: a status, and a short text that names it. All that the server itself
 * says begins here: refusals, 502 for a worker that has died, redirects, and files that are not there.
 *
 * Owner: the caller; head.fields point to static text until the caller replaces them, text lies in the
 * struct. Pure; any thread.
 */
#include "response.h"

enum { SR_PAGE_TEXT_MAX = 64 }; /* "405 Method Not Allowed\n" */

typedef struct sr_page {
    sr_head head;
    char text[SR_PAGE_TEXT_MAX];
    size_t text_len;
} sr_page;

/*
 * Content-Type is text/plain; 426 has Upgrade and Sec-WebSocket-Version: 13 (RFC 6455 4.4, RFC 9110 15.5.22),
 * 503 has Retry-After: an overload is over soon, or another server answers.
 */
void sr_page_make(sr_page *p, int status);

static inline sr_bytes sr_page_text(const sr_page *p)
{
    return sr_bytes_of(p->text, p->text_len);
}

#endif
