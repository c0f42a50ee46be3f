#include "naming.h"

#include "log/text.h"
#include "remote.h"

#include <string.h>

enum {
    NAME_MAX_BYTES = 200, /* of a package, a sub; of a file the last ones */
    FILE_MAX_BYTES = 1024,
};

/* Plack loads app.psgi in a package of its own, made of the path, which stands behind it anyway. */
static const char sandbox[] = "Plack::Sandbox::";

/*
 * Without spaces, which stand between the name of a sub and its place: Try::Tiny names its blocks "Shop::try
 * {...} "
 */
static bool add_escaped(sr_buffer *out, sr_bytes name)
{
    const char *space;
    while (name.len && (space = memchr(name.at, ' ', name.len))) {
        size_t n = (size_t)(space - name.at);
        if (!sr_logtext_add(out, sr_bytes_of(name.at, n)) || !sr_buffer_add(out, "\\x20", 4))
            return false;
        name = sr_bytes_of(space + 1, name.len - n - 1);
    }
    return sr_logtext_add(out, name);
}

/* The name of which the head was read before: with another one, it is another name. */
static bool add_that_name(pid_t pid, sr_buffer *out, const HEK *at, sirius_name_head head)
{
    sirius_name_head now;
    char name[NAME_MAX_BYTES];
    if (!at || head.len <= 0)
        return false;
    size_t len = head.len < (I32)sizeof name ? (size_t)head.len : sizeof name;
    const sirius_piece pieces[] = {
        {name, (const void *)((uintptr_t)at + STRUCT_OFFSET(HEK, hek_key)), len},
        {&now, at, sizeof now},
    };
    if (!sirius_remote_pieces(pid, pieces, sizeof pieces / sizeof pieces[0]) ||
        memcmp(&now, &head, sizeof now) != 0 || memchr(name, 0, len))
        return false;
    if (len > sizeof sandbox - 1 && memcmp(name, sandbox, sizeof sandbox - 1) == 0)
        return sr_buffer_add(out, "main", 4);
    return add_escaped(out, sr_bytes_of(name, len)) && ((I32)len == head.len || sr_buffer_add(out, "...", 3));
}

static bool add_name(pid_t pid, sr_buffer *out, const HEK *at)
{
    sirius_name_head head;
    return at && sirius_remote_copy(pid, &head, at, sizeof head) && add_that_name(pid, out, at, head);
}

static bool add_package(pid_t pid, sr_buffer *out, const HV *at)
{
    HV hv;
    struct xpvhv_aux aux;
    const HEK *name;
    if (!at || !sirius_remote_copy(pid, &hv, at, sizeof hv) || SvTYPE(&hv) != SVt_PVHV || !SvOOK(&hv))
        return false;
#if PERL_VERSION >= 36
    if (!sirius_remote_at(pid, &aux, hv.sv_any, STRUCT_OFFSET(struct xpvhv_with_aux, xhv_aux), sizeof aux))
        return false;
#else
    XPVHV body;
    if (!sirius_remote_copy(pid, &body, hv.sv_any, sizeof body) ||
        !sirius_remote_at(pid, &aux, hv.sv_u.svu_hash, (body.xhv_max + 1) * sizeof(HE *), sizeof aux))
        return false;
#endif
    name = aux.xhv_name_u.xhvnameu_name;
    if (aux.xhv_name_count && !sirius_remote_copy(pid, &name, aux.xhv_name_u.xhvnameu_names, sizeof name))
        return false;
    return add_name(pid, out, name);
}

/* Where the name of a sub is that was not given one */
static bool find_name(pid_t pid, const XPVCV *body, sirius_name_at *is)
{
    const GV *of;
    is->package = body->xcv_stash;
#ifdef CVf_NAMED
    bool named = (body->xcv_flags & CVf_NAMED) != 0;
    is->name = named ? body->xcv_gv_u.xcv_hek : NULL;
    of = named ? NULL : body->xcv_gv_u.xcv_gv;
#else
    of = body->xcv_gv;
#endif
    if (of) {
        GV gv;
        XPVGV its;
        if (!sirius_remote_copy(pid, &gv, of, sizeof gv) || SvTYPE(&gv) != SVt_PVGV ||
            !sirius_remote_copy(pid, &its, gv.sv_any, sizeof its))
            return false;
        is->package = its.xnv_u.xgv_stash;
        is->name = its.xiv_u.xivu_namehek;
    }
    return is->name && sirius_remote_copy(pid, &is->head, is->name, sizeof is->head);
}

bool sirius_naming_sub(pid_t pid, sr_buffer *out, const XPVCV *body, const sirius_name_at *given)
{
    sirius_name_at is = *given;
    size_t before = out->end;
    if ((is.name || find_name(pid, body, &is)) && add_package(pid, out, is.package) &&
        sr_buffer_add(out, "::", 2) && add_that_name(pid, out, is.name, is.head))
        return true;
    out->end = before;
    return false;
}

bool sirius_naming_code(pid_t pid, sr_buffer *out, const XPVCV *body)
{
    static const char none[] = "::__ANON__";
    return add_package(pid, out, body->xcv_stash) && sr_buffer_add(out, none, sizeof none - 1);
}

bool sirius_naming_file(pTHX_ pid_t pid, sr_buffer *out, const COP *cop)
{
    char file[FILE_MAX_BYTES];
    size_t len = sirius_remote_file(aTHX_ pid, cop, file, sizeof file);
    if (!len)
        return false;
    size_t from = len > NAME_MAX_BYTES ? len - NAME_MAX_BYTES : 0;
    return (!from || sr_buffer_add(out, "...", 3)) &&
           sr_logtext_add(out, sr_bytes_of(file + from, len - from));
}
