#include "target.h"

#ifdef SR_PORTABLE
#include <errno.h>

int sirius_target_at(pTHX_ sirius_target *t, pid_t pid, uintptr_t base)
{
    PERL_UNUSED_CONTEXT;
    PERL_UNUSED_VAR(t);
    PERL_UNUSED_VAR(pid);
    PERL_UNUSED_VAR(base);
    errno = ENOTSUP;
    return -1;
}
#else
#include "remote.h"

#include <errno.h>
#include <link.h>
#include <string.h>

#ifdef MULTIPLICITY
#define IN_PERL PL_curinterp
#else
#define IN_PERL PL_curstackinfo
#endif

enum { SEGMENTS_MAX = 32, PIECE = 65536 };

/* The program or library that the code of perl is in, in this process */
typedef struct module {
    uintptr_t bias; /* added to the addresses in the file */
    uintptr_t start;
    size_t n;
    ElfW(Phdr) segments[SEGMENTS_MAX];
} module;

typedef struct search {
    uintptr_t variable;
    module found;
} search;

static int look(struct dl_phdr_info *info, size_t size, void *with)
{
    search *s = with;
    bool has = false;
    uintptr_t start = 0;
    (void)size;
    if (info->dlpi_phnum > SEGMENTS_MAX)
        return 0;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type != PT_LOAD)
            continue;
        uintptr_t at = info->dlpi_addr + p->p_vaddr;
        if (p->p_offset == 0)
            start = at;
        has = has || (s->variable >= at && s->variable - at < p->p_memsz);
    }
    if (!has || !start)
        return 0;
    s->found.bias = info->dlpi_addr;
    s->found.start = start;
    s->found.n = info->dlpi_phnum;
    memcpy(s->found.segments, info->dlpi_phdr, info->dlpi_phnum * sizeof info->dlpi_phdr[0]);
    return 1;
}

/* 1, 0 and -1 as sirius_target_at */
static int same_bytes(pid_t pid, uintptr_t ours, uintptr_t its, size_t len)
{
    char piece[PIECE];
    for (size_t at = 0; at < len; at += sizeof piece) {
        size_t some = len - at < sizeof piece ? len - at : sizeof piece;
        if (!sirius_remote_copy(pid, piece, (const void *)(its + at), some))
            return errno == EFAULT ? 0 : -1;
        if (memcmp(piece, (const void *)(ours + at), some) != 0)
            return 0;
    }
    return 1;
}

int sirius_target_at(pTHX_ sirius_target *t, pid_t pid, uintptr_t base)
{
    search s = {.variable = (uintptr_t)&IN_PERL};
    if (!dl_iterate_phdr(look, &s)) {
        errno = ENOEXEC;
        return -1;
    }
    const module *m = &s.found;
    uintptr_t moved = base - m->start; /* how much further its copy lies than ours */
    const ElfW(Ehdr) *head = (const ElfW(Ehdr) *)m->start;
    int same = same_bytes(pid, m->start, base, sizeof *head);
    if (same > 0)
        same = same_bytes(pid, m->start + head->e_phoff, base + head->e_phoff, m->n * sizeof m->segments[0]);
    for (size_t i = 0; same > 0 && i < m->n; i++) {
        const ElfW(Phdr) *p = &m->segments[i];
        if (p->p_type == PT_LOAD && p->p_flags & PF_X && !(p->p_flags & PF_W))
            same = same_bytes(pid, m->bias + p->p_vaddr, m->bias + p->p_vaddr + moved, p->p_filesz);
    }
    if (same <= 0)
        return same;
    t->pid = pid;
    t->away = moved;
#ifdef MULTIPLICITY
    PerlInterpreter *its;
    if (!sirius_remote_at(pid, &its, &PL_curinterp, moved, sizeof its))
        return -1;
    t->away = (uintptr_t)its - (uintptr_t)my_perl;
    return its ? 1 : 0;
#else
    return 1;
#endif
}
#endif
