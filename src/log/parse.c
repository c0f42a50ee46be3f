#include "program.h"

#include "time.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct parser {
    sr_logformat *f;
    sr_bytes in;
    size_t at;
    char *free; /* index of the first unused byte of f->bytes; enough, as no text is longer than its source */
    sr_logletters own;
    sr_logformat_error *err;
} parser;

static const struct preset {
    const char *name;
    bool json;
    sr_bytes text;
} presets[] = {
    {"common", false, SR_BYTES("%h %l %u %t \"%r\" %>s %b")},
    {"combined", false, SR_BYTES("%h %l %u %t \"%r\" %>s %b \"%{Referer}i\" \"%{User-agent}i\"")},
    {"ltsv", false,
     SR_BYTES("time:%t\thost:%h\tuser:%u\tmethod:%m\turi:%{uri}r\tprotocol:%H\tstatus:%>s\tsize:%b\t"
              "referer:%{Referer}i\tua:%{User-Agent}i\tvhost:%V\treqtime_microsec:%D\t"
              "queuetime_microsec:%{queue}D\tapptime_microsec:%{app}D\tconnection:%X\tnth:%k\tpid:%P")},
    {"json", true,
     SR_BYTES("{\"time\":%{%FT%T.%6N%:z}t,\"host\":%h,\"user\":%u,\"method\":%m,\"uri\":%{uri}r,"
              "\"protocol\":%H,\"status\":%>s,\"size\":%b,\"referer\":%{Referer}i,\"ua\":%{User-Agent}i,"
              "\"vhost\":%V,\"reqtime_microsec\":%D,\"queuetime_microsec\":%{queue}D,"
              "\"apptime_microsec\":%{app}D,\"connection\":%X,\"nth\":%k,\"pid\":%P}")},
};

/*
 * Letters of Apache::LogFormat::Compiler keep their meaning; additional letters can be redefined by the
 * caller.
 */
static const struct single {
    char letter;
    bool extra;
    sr_logkind kind;
    int64_t unit;
} singles[] = {
    {'h', false, SR_LOG_REMOTE_ADDR, 0}, {'u', false, SR_LOG_USER, 0},
    {'t', false, SR_LOG_TIME, 0},        {'r', false, SR_LOG_REQUEST_LINE, 0},
    {'s', false, SR_LOG_STATUS, 0},      {'b', false, SR_LOG_SIZE, 0},
    {'T', false, SR_LOG_DURATION, 1e9},  {'D', false, SR_LOG_DURATION, 1e3},
    {'v', false, SR_LOG_SERVER_NAME, 0}, {'V', false, SR_LOG_HOST, 0},
    {'p', false, SR_LOG_PORT, 0},        {'P', false, SR_LOG_PID, 0},
    {'m', false, SR_LOG_METHOD, 0},      {'U', false, SR_LOG_PATH, 0},
    {'q', false, SR_LOG_QUERY, 0},       {'H', false, SR_LOG_PROTOCOL, 0},
    {'a', true, SR_LOG_REMOTE_ADDR, 0},  {'B', true, SR_LOG_BODY_BYTES, 0},
    {'O', true, SR_LOG_BYTES, 0},        {'X', true, SR_LOG_CONNECTION, 0},
    {'k', true, SR_LOG_NTH, 0},
};

static const struct block {
    char letter;
    bool extra;
    const char *name; /* NULL: the format is unknown */
    sr_logkind kind;
    int64_t unit;
} blocks[] = {
    {'i', false, NULL, SR_LOG_IN, 0},
    {'o', false, NULL, SR_LOG_OUT, 0},
    {'t', false, NULL, SR_LOG_TIME, 0},
    {'e', true, NULL, SR_LOG_ENV, 0},
    {'r', true, "uri", SR_LOG_URI, 0},
    {'x', true, "request-id", SR_LOG_REQUEST_ID, 0},
    {'x', true, "cut-by", SR_LOG_CUT_BY, 0},
    {'x', true, "stream", SR_LOG_STREAM, 0},
    {'x', true, "traceparent", SR_LOG_TRACEPARENT, 0},
    {'x', true, "refused", SR_LOG_REFUSED, 0},
    {'x', true, "refused-by", SR_LOG_REFUSED_BY, 0},
    {'x', true, "messages", SR_LOG_MESSAGES, 0},
    {'x', true, NULL, SR_LOG_TLS, 0},
    {'T', true, "s", SR_LOG_DURATION, 1e9},
    {'T', true, "ms", SR_LOG_DURATION, 1e6},
    {'T', true, "us", SR_LOG_DURATION, 1e3},
    {'D', true, "queue", SR_LOG_QUEUE, 1e3},
    {'D', true, "app", SR_LOG_APP, 1e3},
    {'D', true, "held", SR_LOG_HELD, 1e3},
};

#define EACH(table, entry) (size_t entry = 0; entry < sizeof table / sizeof *table; entry++)

static bool is_letter(sr_bytes s, size_t i)
{
    return i < s.len && (unsigned)((s.at[i] | 0x20) - 'a') < 26;
}

static bool is_digit(sr_bytes s, size_t i)
{
    return i < s.len && (unsigned)(s.at[i] - '0') < 10;
}

static bool is_byte(sr_bytes s, size_t i, char c)
{
    return i < s.len && s.at[i] == c;
}

__attribute__((format(printf, 3, 4))) static bool fail(parser *p, size_t offset, const char *why, ...)
{
    va_list args;
    va_start(args, why);
    vsnprintf(p->err->message, sizeof p->err->message, why, args);
    va_end(args);
    p->err->offset = offset;
    return false;
}

/* Adds text to f->bytes. Two backslashes become one, as in Apache::LogFormat::Compiler. */
static sr_bytes keep(parser *p, size_t from, size_t end)
{
    char *at = p->free;
    while (from < end) {
        from += is_byte(p->in, from, '\\') && from + 1 < end && p->in.at[from + 1] == '\\';
        *p->free++ = p->in.at[from++];
    }
    return sr_bytes_of(at, (size_t)(p->free - at));
}

static sr_logitem *add(parser *p, sr_logkind kind)
{
    sr_logitem *item = &p->f->items[p->f->count++];
    *item = (sr_logitem){.kind = kind};
    p->f->kinds |= UINT64_C(1) << kind;
    return item;
}

/* Adjacent texts become one, whatever they were made from. */
static void add_text(parser *p, sr_bytes kept)
{
    sr_logitem *last = p->f->count ? &p->f->items[p->f->count - 1] : NULL;
    if (!kept.len)
        return;
    if (!last || last->kind != SR_LOG_TEXT)
        add(p, SR_LOG_TEXT)->name = kept;
    else
        last->name.len += kept.len;
}

static void add_char(parser *p, char c)
{
    *p->free++ = c;
    add_text(p, sr_bytes_of(p->free - 1, 1));
}

static bool add_time(parser *p, size_t offset, sr_bytes format)
{
    sr_logitem *item = add(p, SR_LOG_TIME);
    item->name = format;
    item->time = malloc(sizeof *item->time);
    if (!item->time)
        return fail(p, offset, "out of memory");
    sr_logtime_init(item->time, format);
    return true;
}

static bool is_own(const char *letters, char letter)
{
    return letters && strchr(letters, letter);
}

static bool single(parser *p, size_t offset)
{
    char letter = p->in.at[p->at++];
    const struct single *known = NULL;
    for
        EACH(singles, i)
    if (singles[i].letter == letter)
        known = &singles[i];
    if (letter == '%' || letter == 'l') {
        add_char(p, letter == 'l' ? '-' : '%');
    } else if ((!known || known->extra) && is_own(p->own.chars, letter)) {
        add(p, SR_LOG_CUSTOM)->letter = letter;
    } else if (!known) {
        return fail(p, offset, "unknown item %%%c", letter);
    } else if (known->kind == SR_LOG_TIME) {
        return add_time(p, offset, SR_BYTES("%d/%b/%Y:%H:%M:%S %z"));
    } else {
        add(p, known->kind)->unit = known->unit;
    }
    return true;
}

static bool add_checked_time(parser *p, size_t offset, size_t from, size_t end)
{
    sr_bytes which;
    const char *why = sr_logtime_check(sr_bytes_of(p->in.at + from, end - from), &which);
    if (why)
        return fail(p, (size_t)(which.at - p->in.at), "%s %.*s", why, (int)which.len, which.at);
    return add_time(p, offset, keep(p, from, end));
}

/* *of_letter: true if blocks with this letter exist, though not with this name */
static const struct block *find_block(sr_bytes name, char letter, bool *of_letter)
{
    *of_letter = false;
    for
        EACH(blocks, i)
        {
            const struct block *b = &blocks[i];
            if (b->letter != letter)
                continue;
            *of_letter = true;
            if (!b->name || sr_bytes_equal(name, sr_bytes_of(b->name, strlen(b->name))))
                return b;
        }
    return NULL;
}

static bool add_block(parser *p, size_t offset, size_t from, size_t end, char letter)
{
    bool of_letter;
    sr_bytes name = sr_bytes_of(p->in.at + from, end - from);
    const struct block *known = find_block(name, letter, &of_letter);
    sr_logitem *item;
    if ((!known || known->extra) && is_own(p->own.blocks, letter)) {
        item = add(p, SR_LOG_CUSTOM);
        item->letter = letter;
        item->name = keep(p, from, end);
        return true;
    }
    if (known && known->kind == SR_LOG_TIME)
        return add_checked_time(p, offset, from, end);
    const char *brace = memchr(name.at, '}', name.len);
    if (brace)
        return fail(p, (size_t)(brace - p->in.at), "} without a letter after it");
    if (!known)
        return fail(p, offset, of_letter ? "unknown name in %%{...}%c" : "unknown item %%{...}%c", letter);
    item = add(p, known->kind);
    item->unit = known->unit;
    item->name = keep(p, from, end);
    return true;
}

/*
 * The name ends at the first } that has a letter after it: the format of a time, or the argument of a
 * caller's block, may contain a }.
 */
static bool block(parser *p, size_t offset)
{
    sr_bytes in = p->in;
    size_t from = p->at + 1, end = from;
    while (end < in.len && in.at[end] != '\n' && !(in.at[end] == '}' && is_letter(in, end + 1)))
        end++;
    if (end == in.len || in.at[end] == '\n')
        return fail(p, offset, "%%{ without } and a letter");
    if (end == from)
        return fail(p, offset, "%%{}%c without a name", in.at[end + 1]);
    p->at = end + 2;
    return add_block(p, offset, from, end, in.at[end + 1]);
}

/* %400,501{Referer}i and %!200s of Apache are errors: taking them as text would surprise */
static bool is_condition(sr_bytes in, size_t i)
{
    i += is_byte(in, i, '!');
    if (!is_digit(in, i))
        return false;
    while (is_digit(in, i) || is_byte(in, i, ','))
        i++;
    return is_letter(in, i) || is_byte(in, i, '{');
}

/* p->at is at a %. */
static bool item(parser *p)
{
    size_t offset = p->at++;
    bool redirected = is_byte(p->in, p->at, '<') || is_byte(p->in, p->at, '>');
    if (is_letter(p->in, p->at + redirected) || is_byte(p->in, p->at + redirected, '%')) {
        p->at += redirected;
        return single(p, offset);
    }
    if (redirected)
        return fail(p, offset, "%%%c without a letter", p->in.at[p->at]);
    if (is_byte(p->in, p->at, '{'))
        return block(p, offset);
    if (is_condition(p->in, p->at))
        return fail(p, offset, "conditions on the status are not supported; %%%% is a percent sign");
    add_char(p, '%');
    return true;
}

static bool parse(parser *p)
{
    while (p->at < p->in.len) {
        const char *at = p->in.at + p->at, *percent = memchr(at, '%', p->in.len - p->at);
        size_t end = percent ? (size_t)(percent - p->in.at) : p->in.len;
        add_text(p, keep(p, p->at, end));
        p->at = end;
        if (percent && !item(p))
            return false;
    }
    return true;
}

sr_logformat *sr_logformat_new(const char *text, size_t len, const sr_logletters *own,
                               sr_logformat_error *err)
{
    parser p = {.in = sr_bytes_of(text, len), .err = err, .f = calloc(1, sizeof *p.f)};
    bool json = false;
    if (own)
        p.own = *own;
    for
        EACH(presets, i)
    if (strlen(presets[i].name) == len && !memcmp(presets[i].name, text, len)) {
        p.in = presets[i].text;
        json = presets[i].json;
    }
    size_t items = 1; /* at most one item for each %, a text before each, and a text at the end */
    for (size_t i = 0; i < p.in.len; i++)
        items += p.in.at[i] == '%' ? 2 : 0;
    if (p.f) {
        p.f->json = json;
        p.f->items = calloc(items, sizeof *p.f->items);
        p.free = p.f->bytes = calloc(1, p.in.len + 1 + SR_LOG_PAD);
    }
    if (!p.f || !p.f->items || !p.f->bytes)
        fail(&p, 0, "out of memory");
    else if (!p.in.len)
        fail(&p, 0, "the format is empty");
    else if (parse(&p))
        return p.f;
    sr_logformat_free(p.f);
    return NULL;
}

void sr_logformat_free(sr_logformat *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->count; i++) {
        if (f->items[i].time)
            sr_logtime_free(f->items[i].time);
        free(f->items[i].time);
    }
    free(f->items);
    free(f->bytes);
    free(f);
}
