#include "buffer.h"

#include <stdlib.h>

void sr_buffer_free(sr_buffer *b)
{
    free(b->data);
    sr_buffer_init(b);
}

bool sr_buffer_grow(sr_buffer *b, size_t more)
{
    size_t len = sr_buffer_len(b);
    if (more > SIZE_MAX / 4 - len)
        return false;
    /* there is room at the front, and little to move */
    if (b->from > 0 && b->cap - len >= more && b->from >= len) {
        memcpy(b->data, b->data + b->from, len);
        b->from = 0;
        b->end = len;
        return true;
    }
    size_t cap = b->cap ? b->cap : 256;
    while (cap < len + more)
        cap *= 2;
    char *data = malloc(cap);
    if (!data)
        return false;
    if (len)
        memcpy(data, b->data + b->from, len);
    free(b->data);
    *b = (sr_buffer){.data = data, .end = len, .cap = cap};
    return true;
}
