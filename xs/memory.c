#include "memory.h"

#include "sirius.h"
#include "turn.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static bool no_memory;

/*
 * Perl itself exits with status 1 when it gets no memory. Later errno is another one, and END blocks may not
 * run for lack of memory, so the generation is told here.
 */
void sirius_memory_look(pTHX_ void *unused)
{
    sirius *s = sirius_current;
    struct stat st;
    char text[64];
    PERL_UNUSED_VAR(unused);
    if (errno == ENOMEM && PL_statusvalue == 1)
        no_memory = true; /* a scope further out has another errno */
    if (!no_memory || !s || s->memory.report < 0 || sirius_forked(s) || fstat(s->memory.report, &st) != 0 ||
        !S_ISFIFO(st.st_mode)) /* an application may have closed it */
        return;
    int len = snprintf(text, sizeof text, "%ld done perl ran out of memory\n", (long)getpid());
    ssize_t n = write(s->memory.report, text, (size_t)len);
    PERL_UNUSED_VAR(n);
}

bool sirius_memory_over(void)
{
    return no_memory;
}
