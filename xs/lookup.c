#include "lookup.h"

#include "naming.h"
#include "remote.h"
#include "window.h"

#include <stdio.h>
#include <string.h>

enum {
    KIDS_MAX = 64,   /* of an operation: its arguments */
    SUB_MAX = 20000, /* operations of a sub that are looked at */
    SUB_PAGES = 400,
    CLIMB_MAX = 100000, /* operations between a statement and its sub */
    CLIMB_PAGES = 3000, /* of their memory, of 1 us each: 7,000 long statements, or 25,000 short ones */
};

/* Each eval of a string has a number, by which equal stacks would differ */
static void drop_number(sr_buffer *text, size_t before)
{
    static const char eval[] = "(eval ";
    size_t len = sr_buffer_len(text) - before, at = sizeof eval - 1;
    char *from = sr_buffer_at(text) + before;
    if (len < sizeof eval || memcmp(from, eval, at) != 0)
        return;
    while (at < len && from[at] >= '0' && from[at] <= '9')
        at++;
    if (at >= len || from[at] != ')')
        return;
    memmove(from + sizeof eval - 2, from + at, len - at); /* the space goes as well */
    text->end -= at - (sizeof eval - 2);
}

/* "FILE:LINE" of a statement */
static bool add_place(pTHX_ pid_t pid, sr_buffer *text, const COP *cop)
{
    char line[32];
    size_t before = sr_buffer_len(text);
    if ((cop->op_type != OP_NEXTSTATE && cop->op_type != OP_DBSTATE) || !CopLINE(cop))
        return false;
    if (!sirius_naming_file(aTHX_ pid, text, cop))
        return false;
    drop_number(text, before);
    int n = snprintf(line, sizeof line, ":%lu", (unsigned long)CopLINE(cop));
    return sr_buffer_add(text, line, (size_t)n);
}

static bool is_anonymous(const sr_buffer *text, size_t before)
{
    static const char name[] = "::__ANON__";
    size_t len = sr_buffer_len(text), its = sizeof name - 1;
    return len - before >= its && memcmp(sr_buffer_at(text) + len - its, name, its) == 0;
}

static bool starts_with(const sr_buffer *text, size_t at, const char *with)
{
    return sr_buffer_len(text) - at >= strlen(with) &&
           memcmp(sr_buffer_at(text) + at, with, strlen(with)) == 0;
}

/*
 * "[app.psgi:12]", where it begins: all subs of a package that have no name would be one, and routes are such
 * subs
 */
static void add_beginning(pTHX_ pid_t pid, sr_buffer *text, const COP *at)
{
    COP cop;
    size_t before = sr_buffer_len(text);
    if (at && sirius_remote_copy(pid, &cop, at, sizeof cop) && sr_buffer_add(text, "[", 1) &&
        add_place(aTHX_ pid, text, &cop)) {
        char *from = sr_buffer_at(text) + before + 1;
        size_t len = sr_buffer_len(text) - before - 1;
        const char *slash = sr_bytes_last(sr_bytes_of(from, len), '/');
        if (slash) {
            size_t folder = (size_t)(slash + 1 - from);
            memmove(from, from + folder, len - folder);
            text->end -= folder;
        }
        if (sr_buffer_add(text, "]", 1))
            return;
    }
    text->end = text->from + before;
}

/* Whether there is a goto in it; or it has no end that is soon found */
static bool has_goto(pid_t pid, const OP *root)
{
#if PERL_VERSION >= 26
    UNOP op;
    const OP *at = root;
    sirius_window w;
    sirius_window_open(&w, pid, SUB_PAGES);
    for (int i = 0; i < SUB_MAX && sirius_window_copy(&w, &op, at, sizeof op); i++) {
        if (op.op_type == OP_GOTO)
            return true;
        if (op.op_flags & OPf_KIDS && op.op_first) {
            at = op.op_first;
            continue;
        }
        while (!op.op_moresib && at != root && i++ < SUB_MAX) { /* up */
            at = op.op_sibparent;
            if (!sirius_window_copy(&w, &op, at, sizeof op))
                return true;
        }
        if (at == root)
            return false;
        at = op.op_sibparent;
    }
#else
    (void)pid, (void)root;
#endif
    return true;
}

void sirius_lookup_sub(pTHX_ pid_t pid, sr_buffer *text, const sirius_raw *r, bool by_code, sirius_finding *f)
{
    const XPVCV *body = &r->sub.body;
    size_t before = sr_buffer_len(text);
    const sirius_name_at given = {r->sub.name.xnv_u.xgv_stash, r->sub.name.xiv_u.xivu_namehek, r->sub.text};
    f->xs = (body->xcv_flags & CVf_ISXSUB) != 0;
    f->found = by_code ? sirius_naming_code(pid, text, body) : sirius_naming_sub(pid, text, body, &given);
    if (f->xs)
        return;
    f->start = (const COP *)body->xcv_start_u.xcv_start;
    f->root = body->xcv_root_u.xcv_root;
    f->goes = has_goto(pid, f->root);
    f->closure = f->found && is_anonymous(text, before);
    if (!f->closure)
        return;
    size_t name = sr_buffer_len(text);
    add_beginning(aTHX_ pid, text, f->start);
    f->of_text = starts_with(text, name, "[(eval)");
}

/*
 * Up the tree of operations: the last of several knows the one above them. NULL: it is unknown. *type: of
 * operation
 */
static const OP *root_of(pid_t pid, const COP *statement, unsigned *type)
{
#if PERL_VERSION >= 26
    const OP *at = statement->op_sibparent;
    sirius_window w;
    sirius_window_open(&w, pid, CLIMB_PAGES);
    for (int i = 0; i < CLIMB_MAX && at; i++) {
        OP op;
        if (!sirius_window_copy(&w, &op, at, sizeof op))
            return NULL;
        *type = op.op_type;
        const OP *up = op.op_sibparent;
        if (!up && op.op_type == OP_SUBSTCONT) { /* the code of s///e, by which the substitution goes on */
            LOGOP goes_on;
            if (!sirius_window_copy(&w, &goes_on, at, sizeof goes_on))
                return NULL;
            up = goes_on.op_other;
        }
        if (!up)
            return at;
        at = up;
    }
#else
    (void)pid, (void)statement, (void)type;
#endif
    return NULL;
}

void sirius_lookup_statement(pTHX_ pid_t pid, sr_buffer *text, const sirius_raw *r, sirius_finding *f)
{
    unsigned type = OP_NULL;
    f->found = add_place(aTHX_ pid, text, &r->statement);
    const OP *root = f->found ? root_of(pid, &r->statement, &type) : NULL;
    if (type == OP_LEAVESUB || type == OP_LEAVESUBLV || type == OP_LEAVEWRITE)
        f->root = root;
    else if (type == OP_LEAVEEVAL)
        f->eval = root;
    f->main = root && type == OP_LEAVE;
}

/* Whether perl spends its own time in it: system calls, regular expressions, sort ... */
static bool is_slow(unsigned type)
{
    switch (type) {
    case OP_GLOB:
    case OP_READLINE:
    case OP_REGCOMP:
    case OP_MATCH:
    case OP_SUBST:
    case OP_TRANS:
    case OP_SPRINTF:
    case OP_CRYPT:
    case OP_UNPACK:
    case OP_PACK:
    case OP_SPLIT:
    case OP_JOIN:
    case OP_SORT:
    case OP_REVERSE:
        return true;
    default:
        return (type >= OP_OPEN && type <= OP_SEMCTL) || (type >= OP_GHBYNAME && type <= OP_SYSCALL);
    }
}

/* ->name, ->SUPER::name, ->Class::name */
static bool is_named_method(unsigned type)
{
    return type == OP_METHOD_NAMED || type == OP_METHOD_SUPER || type == OP_METHOD_REDIR ||
           type == OP_METHOD_REDIR_SUPER;
}

/* What an entersub calls: the last of its kids, as far as it is known without running the others */
void sirius_lookup_call(pid_t pid, const UNOP *call, sirius_finding *f)
{
#if PERL_VERSION >= 26
    const OP *at = call->op_first;
    UNOP op;
    union {
        METHOP method;
        SVOP constant;
        PADOP pad;
    } callee;
    if (!at || !sirius_remote_copy(pid, &op, at, sizeof op))
        return;
    if (!OpHAS_SIBLING(&op) && (op.op_flags & OPf_KIDS)) { /* a list around them */
        at = op.op_first;
        if (!at || !sirius_remote_copy(pid, &op, at, sizeof op))
            return;
    }
    for (int i = 0; OpHAS_SIBLING(&op); i++) {
        at = op.op_sibparent;
        if (i == KIDS_MAX || !at || !sirius_remote_copy(pid, &op, at, sizeof op))
            return;
    }
    if (op.op_type == OP_NULL && op.op_flags & OPf_KIDS) { /* it was the rv2cv */
        at = op.op_first;
        if (!at || !sirius_remote_copy(pid, &op, at, sizeof op))
            return;
    }
    if ((op.op_type != OP_GV && !is_named_method(op.op_type)) ||
        !sirius_remote_copy(pid, &callee, at, sizeof callee))
        return;
    f->leaf = op.op_type == OP_GV ? SIRIUS_LEAF_SUB : SIRIUS_LEAF_METHOD;
#ifdef USE_ITHREADS
    f->in_pad = op.op_type == OP_GV ? callee.pad.op_padix : callee.method.op_targ;
    f->at = NULL;
    if (!f->in_pad && op.op_type != OP_GV)
        f->at = callee.method.op_u.op_meth_sv;
#else
    f->at = op.op_type == OP_GV ? callee.constant.op_sv : callee.method.op_u.op_meth_sv;
#endif
    f->found = f->in_pad || f->at;
#else
    (void)pid, (void)call, (void)f;
#endif
}

void sirius_lookup_operation(pid_t pid, sr_buffer *text, const sirius_raw *r, sirius_finding *f)
{
    const UNOP *op = &r->operation;
    if (op->op_type == OP_ENTERSUB) {
        sirius_lookup_call(pid, op, f);
    } else if (is_slow(op->op_type)) {
        const char *name = PL_op_name[op->op_type];
        f->found = sr_buffer_add(text, "CORE::", 6) && sr_buffer_add(text, name, strlen(name));
        f->leaf = SIRIUS_LEAF_PERL;
    }
}
