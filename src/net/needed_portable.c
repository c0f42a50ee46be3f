#ifdef SR_PORTABLE
#include "needed.h"

#include <stddef.h>

const char *sr_needed_missing(int *err)
{
    *err = 0;
    return NULL;
}
#endif
