#ifdef SR_PORTABLE
#include "sandbox.h"

/* Nothing is restricted: a portable build is for development, and the documents say so. */
int sr_sandbox_files(const sr_sandbox *s)
{
    (void)s;
    return 0;
}

int sr_sandbox_calls(const sr_sandbox *s)
{
    (void)s;
    return 0;
}
#endif
