#include "page.h"

#include "../base/decimal.h"
#include "status.h"

#define TYPE "Content-Type: text/plain\r\n"

static sr_bytes fields_of(int status)
{
    switch (status) {
    case 426:
        return SR_BYTES(TYPE "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n");
    case 503:
        return SR_BYTES(TYPE "Retry-After: 1\r\n");
    default:
        return SR_BYTES(TYPE);
    }
}

void sr_page_make(sr_page *p, int status)
{
    char digits[SR_DECIMAL_MAX], *to = p->text;
    sr_bytes number = sr_decimal(digits + sizeof digits, (unsigned)status), reason = sr_status_reason(status);
    memcpy(to, number.at, number.len);
    to += number.len;
    *to++ = ' ';
    memcpy(to, reason.at, reason.len);
    to += reason.len;
    *to++ = '\n';
    p->text_len = (size_t)(to - p->text);
    p->head = (sr_head){.status = status,
                        .fields = fields_of(status),
                        .length = p->text_len,
                        .app_length = SR_LENGTH_UNKNOWN};
}
