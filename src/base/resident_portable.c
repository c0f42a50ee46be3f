#ifdef SR_PORTABLE
#include "resident.h"

void sr_resident_open(sr_resident *r)
{
    *r = (sr_resident){.fd = -1};
}

void sr_resident_close(sr_resident *r)
{
    (void)r;
}

uint64_t sr_resident_bytes(const sr_resident *r)
{
    (void)r;
    return 0;
}
#endif
