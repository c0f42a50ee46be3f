#include "descriptors.h"

#include <sys/resource.h>

uint64_t sr_descriptors_raise(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 1024; /* what the kernel starts with */
    struct rlimit wanted = {limit.rlim_max, limit.rlim_max};
    if (limit.rlim_cur < limit.rlim_max && setrlimit(RLIMIT_NOFILE, &wanted) == 0)
        limit = wanted;
    return limit.rlim_cur;
}
