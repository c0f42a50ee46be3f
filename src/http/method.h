#ifndef SR_METHOD_H
#define SR_METHOD_H
/*
 * method: the registered methods (RFC 9110 9.3, RFC 5789). Case-sensitive (RFC 9110 9.1). Pure; any thread.
 */
#include "../base/bytes.h"

typedef enum sr_method {
    SR_METHOD_OTHER, /* any other token: PROPFIND, FOOBAR, patch */
    SR_METHOD_GET,
    SR_METHOD_HEAD,
    SR_METHOD_POST,
    SR_METHOD_PUT,
    SR_METHOD_PATCH,
    SR_METHOD_DELETE,
    SR_METHOD_OPTIONS,
    SR_METHOD_TRACE,
    SR_METHOD_CONNECT,
} sr_method;

sr_method sr_method_of(sr_bytes token);

#endif
