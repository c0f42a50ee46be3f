#include "method.h"

static const sr_bytes registered[] = {
    [SR_METHOD_GET] = {"GET", 3},         [SR_METHOD_HEAD] = {"HEAD", 4},
    [SR_METHOD_POST] = {"POST", 4},       [SR_METHOD_PUT] = {"PUT", 3},
    [SR_METHOD_PATCH] = {"PATCH", 5},     [SR_METHOD_DELETE] = {"DELETE", 6},
    [SR_METHOD_OPTIONS] = {"OPTIONS", 7}, [SR_METHOD_TRACE] = {"TRACE", 5},
    [SR_METHOD_CONNECT] = {"CONNECT", 7},
};

sr_method sr_method_of(sr_bytes token)
{
    for (unsigned m = SR_METHOD_GET; m <= SR_METHOD_CONNECT; m++)
        if (sr_bytes_equal(registered[m], token))
            return (sr_method)m;
    return SR_METHOD_OTHER;
}
