#ifdef SR_PORTABLE
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* getentropy */
#endif
#include "random.h"

#include <unistd.h>
#ifdef __APPLE__
#include <sys/random.h>
#endif

bool sr_random(void *at, size_t len)
{
    return getentropy(at, len) == 0;
}

bool sr_random_now(void *at, size_t len)
{
    return sr_random(at, len);
}
#endif
