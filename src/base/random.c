#ifndef SR_PORTABLE
#include "random.h"

#include <sys/random.h>
#include <sys/types.h>

bool sr_random(void *at, size_t len)
{
    return getrandom(at, len, 0) == (ssize_t)len;
}

bool sr_random_now(void *at, size_t len)
{
    return getrandom(at, len, GRND_NONBLOCK) == (ssize_t)len;
}
#endif
