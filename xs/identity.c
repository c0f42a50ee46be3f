#include "identity.h"

#include <string.h>

enum { BODY, FIRST, GLOB, NAME, TEXT }; /* of sirius_identity.more */

#if PERL_VERSION >= 22
#define NEXT_SIBLING(op) OpSIBLING(op)
static const void *pads_of(const PADLIST *list)
{
    return list->xpadl_arr.xpadlarr_alloc;
}

static bool has_depth(const PADLIST *list, I32 depth)
{
    return depth >= 1 && depth <= list->xpadl_max;
}
#else /* there are no pads here: see sirius_known_has_pad */
#define NEXT_SIBLING(op) (op)->op_sibling
static const void *pads_of(const PADLIST *list)
{
    (void)list;
    return NULL;
}

static bool has_depth(const PADLIST *list, I32 depth)
{
    (void)list;
    (void)depth;
    return false;
}
#endif

static sirius_members members_of(sirius_kind kind, const sirius_raw *r)
{
    sirius_members is;
    memset(&is, 0, sizeof is);
    if (kind == SIRIUS_KIND_SUB) {
        const XPVCV *body = &r->sub.body;
        is.part[SIRIUS_SUB_BODY] = r->sub.head.sv_any;
        is.part[SIRIUS_SUB_STASH] = body->xcv_stash;
#ifdef CVf_NAMED
        is.part[SIRIUS_SUB_GLOB] = body->xcv_gv_u.xcv_gv;
        is.number[SIRIUS_SUB_FLAGS] = body->xcv_flags & (CVf_NAMED | CVf_ISXSUB | CVf_CLONED);
#else
        is.part[SIRIUS_SUB_GLOB] = body->xcv_gv;
        is.number[SIRIUS_SUB_FLAGS] = body->xcv_flags & (CVf_ISXSUB | CVf_CLONED);
#endif
        is.part[SIRIUS_SUB_START] = body->xcv_start_u.xcv_start;
        is.part[SIRIUS_SUB_ROOT] = body->xcv_root_u.xcv_root;
#if PERL_VERSION >= 22
        is.part[SIRIUS_SUB_PADS] = body->xcv_padlist_u.xcv_padlist;
#else
        is.part[SIRIUS_SUB_PADS] = body->xcv_padlist;
#endif
        is.part[SIRIUS_SUB_NAME] = r->sub.name.xiv_u.xivu_namehek;
        is.part[SIRIUS_SUB_PACKAGE] = r->sub.name.xnv_u.xgv_stash;
        is.part[SIRIUS_SUB_GLOB_BODY] = r->sub.glob.sv_any;
        is.number[SIRIUS_SUB_TYPE] = SvTYPE(&r->sub.head);
        /* All addresses may be those of a sub that was there before: */
        is.number[SIRIUS_SUB_SEQ] = r->sub.first.cop_seq;
        is.number[SIRIUS_SUB_HASH] = r->sub.text.hash;
    } else if (kind == SIRIUS_KIND_STATEMENT) {
        const COP *cop = &r->statement;
        is.number[SIRIUS_STATEMENT_TYPE] = cop->op_type;
        if (cop->op_type != OP_NEXTSTATE && cop->op_type != OP_DBSTATE)
            return is; /* it has no place; that of the compiler changes with each line */
        is.part[0] = cop->op_next;
#ifdef USE_ITHREADS
        is.part[1] = CopFILE(cop);
#else
        is.part[1] = CopFILEGV(cop);
#endif
        is.number[SIRIUS_STATEMENT_SEQ] = cop->cop_seq;
        is.number[SIRIUS_STATEMENT_LINE] = CopLINE(cop);
    } else if (kind == SIRIUS_KIND_PAD) {
        is.part[0] = pads_of(&r->pad.list);
        is.part[1] = r->pad.its;
    } else {
        const UNOP *op = &r->operation;
        is.part[0] = op->op_next;
        is.part[1] = (const void *)(uintptr_t)op->op_ppaddr;
        is.part[2] = NEXT_SIBLING(op);
        is.part[3] = op->op_first;
        is.number[0] = op->op_type;
        is.number[1] = (U32)op->op_targ;
    }
    return is;
}

/* What has to be read of it, as far as `more` is known. Returns how many pieces. */
static size_t pieces_of(sirius_kind kind, const void *at, const void *const more[], sirius_raw *r,
                        sirius_piece *to)
{
    size_t n = 1;
    if (kind == SIRIUS_KIND_SUB) {
        to[0] = (sirius_piece){&r->sub.head, at, sizeof r->sub.head};
        if (more[BODY])
            to[n++] = (sirius_piece){&r->sub.body, more[BODY], sizeof r->sub.body};
        if (more[FIRST])
            to[n++] = (sirius_piece){&r->sub.first, more[FIRST], sizeof r->sub.first};
        if (more[GLOB])
            to[n++] = (sirius_piece){&r->sub.glob, more[GLOB], sizeof r->sub.glob};
        if (more[NAME])
            to[n++] = (sirius_piece){&r->sub.name, more[NAME], sizeof r->sub.name};
        if (more[TEXT])
            to[n++] = (sirius_piece){&r->sub.text, more[TEXT], sizeof r->sub.text};
    } else if (kind == SIRIUS_KIND_PAD) {
        to[0] = (sirius_piece){&r->pad.list, at, sizeof r->pad.list};
        if (more[BODY])
            to[n++] = (sirius_piece){&r->pad.its, more[BODY], sizeof r->pad.its};
    } else if (kind == SIRIUS_KIND_STATEMENT) {
        to[0] = (sirius_piece){&r->statement, at, sizeof r->statement};
    } else {
        to[0] = (sirius_piece){&r->operation, at, sizeof r->operation};
    }
    return n;
}

/*
 * The glob that a sub has its name from, if it may have been given it: then others may come and go there.
 * NULL: there is none, or it is one of a package: it has this sub, or the one that has replaced it, as a
 * method that is wrapped.
 */
static const void *glob_of(pid_t pid, const XPVCV *body)
{
    GV gv;
    const GP *gp;
    const CV *its;
#ifdef CVf_NAMED
    const GV *of = body->xcv_flags & CVf_NAMED ? NULL : body->xcv_gv_u.xcv_gv;
#else
    const GV *of = body->xcv_gv;
#endif
    if (!of || body->xcv_flags & CVf_CLONED)
        return of;
    if (!sirius_remote_copy(pid, &gv, of, sizeof gv) || SvTYPE(&gv) != SVt_PVGV)
        return of;
    gp = gv.sv_u.svu_gp;
    return gp && sirius_remote_at(pid, &its, gp, STRUCT_OFFSET(GP, gp_cv), sizeof its) && its ? NULL : of;
}

/*
 * What has to be read beside what was read at its address, as far as that says so: of a sub, its body, and
 * what that leads to; of a pad, its place in the list. False: it is not what it should be.
 */
static bool leads_to(sirius_kind kind, const sirius_raw *r, I32 depth, const void *more[])
{
    if (kind == SIRIUS_KIND_SUB) {
        more[BODY] = r->sub.head.sv_any;
        return (SvTYPE(&r->sub.head) == SVt_PVCV || SvTYPE(&r->sub.head) == SVt_PVFM) && more[BODY];
    }
    if (kind == SIRIUS_KIND_PAD) {
        uintptr_t pads = (uintptr_t)pads_of(&r->pad.list);
        more[BODY] = (const void *)(pads + (size_t)depth * sizeof r->pad.its);
        return pads && has_depth(&r->pad.list, depth);
    }
    return true;
}

static const void *first_of(const XPVCV *body)
{
    return body->xcv_flags & CVf_ISXSUB ? NULL : body->xcv_start_u.xcv_start;
}

static bool copy(pid_t pid, void *to, const void *from, size_t len)
{
    return !from || sirius_remote_copy(pid, to, from, len);
}

/* What the body of a sub leads to. A closure may be gone by now: its code and its glob are not. */
static bool read_rest(pid_t pid, sirius_raw *r, const void *more[])
{
    more[FIRST] = first_of(&r->sub.body);
    more[GLOB] = glob_of(pid, &r->sub.body);
    if (!copy(pid, &r->sub.first, more[FIRST], sizeof r->sub.first) ||
        !copy(pid, &r->sub.glob, more[GLOB], sizeof r->sub.glob))
        return false;
    more[NAME] = SvTYPE(&r->sub.glob) == SVt_PVGV ? r->sub.glob.sv_any : NULL;
    if (!copy(pid, &r->sub.name, more[NAME], sizeof r->sub.name))
        return false;
    more[TEXT] = r->sub.name.xiv_u.xivu_namehek;
    return copy(pid, &r->sub.text, more[TEXT], sizeof r->sub.text);
}

bool sirius_identity_read(pid_t pid, sirius_kind kind, const void *at, I32 depth, sirius_raw *r,
                          sirius_identity *is)
{
    sirius_piece pieces[SIRIUS_IDENTITY_PIECES];
    const void *more[SIRIUS_IDENTITY_MORE] = {NULL};
    memset(is, 0, sizeof *is);
    memset(r, 0, sizeof *r);
    is->kind = kind;
    is->at = at;
    if (!sirius_remote_pieces(pid, pieces, pieces_of(kind, at, is->more, r, pieces)) ||
        !leads_to(kind, r, depth, is->more))
        return false;
    if (is->more[BODY] && (!sirius_remote_pieces(pid, pieces, pieces_of(kind, at, is->more, r, pieces)) ||
                           !leads_to(kind, r, depth, more) || more[BODY] != is->more[BODY]))
        return false;
    if (kind == SIRIUS_KIND_SUB && !read_rest(pid, r, is->more))
        return false;
    is->members = members_of(kind, r);
    return true;
}

size_t sirius_identity_pieces(const sirius_identity *is, sirius_raw *r, sirius_piece *to)
{
    memset(r, 0, sizeof *r); /* not all of it is read */
    return pieces_of(is->kind, is->at, is->more, r, to);
}

static void drop_name(sirius_members *m)
{
    m->part[SIRIUS_SUB_GLOB] = m->part[SIRIUS_SUB_GLOB_BODY] = m->part[SIRIUS_SUB_NAME] =
        m->part[SIRIUS_SUB_PACKAGE] = NULL;
    m->number[SIRIUS_SUB_HASH] = 0;
}

void sirius_identity_drop_name(sirius_identity *is)
{
    is->by_code = true;
    drop_name(&is->members);
}

bool sirius_identity_has_name(const sirius_identity *is)
{
    return is->kind == SIRIUS_KIND_SUB && is->more[TEXT] && !is->by_code &&
           (is->members.number[SIRIUS_SUB_FLAGS] & CVf_CLONED);
}

bool sirius_identity_is_given(const sirius_identity *is)
{
    return is->kind == SIRIUS_KIND_SUB && is->more[GLOB] && !is->by_code;
}

bool sirius_identity_still(const sirius_identity *is, const sirius_raw *r)
{
    sirius_members now = members_of(is->kind, r);
    if (is->by_code)
        drop_name(&now);
    return memcmp(&now, &is->members, sizeof now) == 0;
}

bool sirius_identity_same(const sirius_identity *a, const sirius_identity *b)
{
    return memcmp(&a->members, &b->members, sizeof a->members) == 0;
}
