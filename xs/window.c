#include "window.h"

#include "remote.h"

#include <string.h>

void sirius_window_open(sirius_window *w, pid_t pid, int pages)
{
    w->pid = pid;
    w->left = pages;
    w->next = 0;
    memset(w->at, 0, sizeof w->at);
}

static const char *page_at(sirius_window *w, uintptr_t at)
{
    for (int i = 0; i < SIRIUS_WINDOW_PAGES; i++)
        if (w->at[i] == at && at)
            return w->bytes[i];
    if (w->left-- <= 0)
        return NULL;
    unsigned i = w->next++ % SIRIUS_WINDOW_PAGES;
    w->at[i] = 0;
    if (!sirius_remote_copy(w->pid, w->bytes[i], (const void *)at, SIRIUS_WINDOW_SIZE))
        return NULL;
    w->at[i] = at;
    return w->bytes[i];
}

bool sirius_window_copy(sirius_window *w, void *to, const void *from, size_t len)
{
    uintptr_t at = (uintptr_t)from;
    char *into = to;
    while (len) {
        size_t skip = at % SIRIUS_WINDOW_SIZE, some = SIRIUS_WINDOW_SIZE - skip;
        const char *page = page_at(w, at - skip);
        if (!page)
            return false;
        some = some < len ? some : len;
        memcpy(into, page + skip, some);
        into += some;
        at += some;
        len -= some;
    }
    return true;
}
