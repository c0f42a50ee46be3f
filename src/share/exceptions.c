#include "exceptions.h"

#include "sequence.h"

enum {
    MESSAGE_MAX = SR_EXCEPTION_MAX - SR_EXCEPTION_PLACE_MAX,
    RAW_MAX = 4096 /* bytes of the first line that are looked at */
};

/* --- text --- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static size_t words_end(sr_bytes s, size_t i)
{
    while (i < s.len && (is_word(s.at[i]) || (s.at[i] == '-' && i + 1 < s.len && is_word(s.at[i + 1]))))
        i++;
    return i;
}

/* C0, DEL; and as UTF-8 C1, which has two bytes. */
static size_t control(sr_bytes s, size_t i)
{
    unsigned char c = (unsigned char)s.at[i];
    if (c < 0x20 || c == 0x7f)
        return 1;
    return c == 0xc2 && i + 1 < s.len && ((unsigned char)s.at[i + 1] & 0xe0) == 0x80 ? 2 : 0;
}

/* Without what would leave a part of a character at the end. */
static size_t whole(const char *text, size_t len)
{
    size_t i = len;
    while (i && len - i < 3 && ((unsigned char)text[i - 1] & 0xc0) == 0x80)
        i--;
    unsigned char lead = i ? (unsigned char)text[i - 1] : 0;
    size_t want = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 0;
    return want > len - i + 1 ? i - 1 : len;
}

/* Appends what fits. */
static void add(char *out, size_t cap, size_t *len, sr_bytes s)
{
    size_t n = s.len < cap - *len ? s.len : cap - *len;
    memcpy(out + *len, s.at, n);
    *len += n;
}

/* The first line with something in it, without spaces at its ends and "[...]" in front. */
static sr_bytes first_line(sr_bytes raw)
{
    size_t from = 0, to;
    while (from < raw.len && ((unsigned char)raw.at[from] <= ' '))
        from++;
    for (to = from; to < raw.len && to - from < RAW_MAX && raw.at[to] != '\n' && raw.at[to] != '\r';)
        to++;
    sr_bytes line = {raw.at + from, to - from};
    while (line.len && *line.at == '[') {
        const char *end = memchr(line.at, ']', line.len);
        size_t n = end ? (size_t)(end - line.at) + 1 : line.len;
        while (n < line.len && line.at[n] == ' ')
            n++;
        if (n == line.len)
            break;
        line = sr_bytes_of(line.at + n, line.len - n);
    }
    while (line.len && (unsigned char)line.at[line.len - 1] <= ' ')
        line.len--;
    return line;
}

/* Where " line 42" ends that begins there; 0: it does not. */
static size_t line_number(sr_bytes s, size_t i)
{
    static const char word[] = " line ";
    size_t n = sizeof word - 1, end = i + n;
    if (s.len - i <= n || memcmp(s.at + i, word, n) != 0 || !is_digit(s.at[end]))
        return 0;
    while (end < s.len && is_digit(s.at[end]))
        end++;
    return end;
}

/* The last " at FILE line 42", and what is before it; what is behind it does not count. */
static sr_bytes place_of(sr_bytes line, sr_bytes *before)
{
    for (size_t i = line.len; i-- > 0;) {
        if (line.len - i <= 4 || memcmp(line.at + i, " at ", 4) != 0)
            continue;
        for (size_t j = i + 4; j < line.len; j++) {
            size_t end = line_number(line, j);
            if (!end)
                continue;
            *before = sr_bytes_of(line.at, i);
            return sr_bytes_of(line.at + i, end - i);
        }
    }
    *before = line;
    return sr_bytes_of(NULL, 0);
}

static void add_message(char out[SR_EXCEPTION_MAX], size_t *len, sr_bytes s)
{
    for (size_t i = 0; i < s.len;) {
        size_t end = words_end(s, i), n = control(s, i);
        sr_bytes word = {s.at + i, end - i};
        if (word.len > 2 && word.at[0] == '0' && word.at[1] == 'x')
            add(out, MESSAGE_MAX, len, SR_BYTES("0x..."));
        else if (word.len && sr_fold_is_id(word))
            add(out, MESSAGE_MAX, len, SR_BYTES("N"));
        else if (word.len)
            add(out, MESSAGE_MAX, len, word);
        else if (n)
            add(out, MESSAGE_MAX, len, SR_BYTES(" "));
        else
            add(out, MESSAGE_MAX, len, sr_bytes_of(s.at + i, 1));
        i = word.len ? end : i + (n ? n : 1);
    }
    *len = whole(out, *len);
}

/* " at FILE line 42"; evals of strings are numbered, which does not count. Of a long name the end. */
static void add_place(char out[SR_EXCEPTION_MAX], size_t *len, sr_bytes s)
{
    static const char cut[] = " at ...", eval[] = "(eval ";
    size_t begin = *len, cap = begin + SR_EXCEPTION_PLACE_MAX, i = 0;
    if (s.len > SR_EXCEPTION_PLACE_MAX) {
        add(out, cap, len, SR_BYTES(cut));
        i = s.len - (SR_EXCEPTION_PLACE_MAX - (sizeof cut - 1));
        while (((unsigned char)s.at[i] & 0xc0) == 0x80)
            i++;
    }
    while (i < s.len) {
        size_t c = control(s, i), n = sizeof eval - 1;
        add(out, cap, len, c ? SR_BYTES(" ") : sr_bytes_of(s.at + i, 1));
        i += c ? c : 1;
        if (*len - begin < n || memcmp(out + *len - n, eval, n) != 0 || i == s.len || !is_digit(s.at[i]))
            continue;
        add(out, cap, len, SR_BYTES("N"));
        while (i < s.len && is_digit(s.at[i]))
            i++;
    }
}

size_t sr_exception_text(sr_bytes raw, char out[SR_EXCEPTION_MAX])
{
    sr_bytes message, place = place_of(first_line(raw), &message);
    size_t len = 0;
    add_message(out, &len, message);
    if (place.len)
        add_place(out, &len, place);
    return len;
}

/* --- a table --- */

static uint64_t load(const _Atomic uint64_t *n)
{
    return atomic_load_explicit(n, memory_order_relaxed);
}

static int64_t when(const _Atomic int64_t *t)
{
    return atomic_load_explicit(t, memory_order_relaxed);
}

/* That with this text; else a free one, or that which has not occurred for the longest time. */
static sr_exception *find(sr_exceptions *all, const char *text, size_t len)
{
    sr_exception *oldest = &all->at[0];
    char other[SR_EXCEPTION_MAX];
    for (size_t i = 0; i < SR_EXCEPTIONS_MAX; i++) {
        sr_exception *e = &all->at[i];
        uint32_t n = atomic_load_explicit(&e->len, memory_order_relaxed);
        if (n == len) {
            sr_sequence_read(other, e->text, len);
            if (memcmp(other, text, len) == 0)
                return e;
        }
        uint32_t its = atomic_load_explicit(&oldest->len, memory_order_relaxed);
        if (its && (!n || when(&e->last) < when(&oldest->last)))
            oldest = e;
    }
    return oldest;
}

void sr_exceptions_add(sr_exceptions *all, sr_bytes raw, sr_bytes path, int64_t now)
{
    char text[SR_EXCEPTION_MAX] = {0}, of[SR_FOLD_MAX] = {0}, was[SR_EXCEPTION_MAX];
    size_t len = sr_exception_text(raw, text), path_len = path.len ? sr_fold(path, of) : 0;
    if (!len)
        return;
    sr_exception *e = find(all, text, len);
    uint32_t sequence = sr_sequence_begin(&e->sequence),
             n = atomic_load_explicit(&e->len, memory_order_relaxed);
    bool same = n == len;
    if (same) {
        sr_sequence_read(was, e->text, len);
        same = memcmp(was, text, len) == 0;
    }
    if (!same) {
        if (n)
            atomic_store_explicit(&all->other, load(&all->other) + load(&e->count), memory_order_relaxed);
        atomic_store_explicit(&e->count, 0, memory_order_relaxed);
        atomic_store_explicit(&e->first, now, memory_order_relaxed);
        atomic_store_explicit(&e->len, (uint32_t)len, memory_order_relaxed);
        sr_sequence_write(e->text, text, len);
    }
    atomic_store_explicit(&e->count, load(&e->count) + 1, memory_order_relaxed);
    atomic_store_explicit(&e->last, now, memory_order_relaxed);
    atomic_store_explicit(&e->path, (uint32_t)path_len, memory_order_relaxed);
    sr_sequence_write(e->of, of, path_len);
    sr_sequence_end(&e->sequence, sequence);
}

/* --- sums --- */

/* Workers can write the table. */
static void make_harmless(char *text, size_t len)
{
    for (size_t i = 0, n; i < len; i += n ? n : 1)
        if ((n = control(sr_bytes_of(text, len), i)))
            memset(text + i, ' ', n);
}

static bool read_one(const sr_exception *e, sr_exception_sum *out)
{
    for (int i = 0; i < SR_SEQUENCE_TRIES; i++) {
        uint32_t sequence = sr_sequence_look(&e->sequence);
        out->len = atomic_load_explicit(&e->len, memory_order_relaxed);
        out->path_len = atomic_load_explicit(&e->path, memory_order_relaxed);
        if (!out->len)
            return false;
        if (out->len > SR_EXCEPTION_MAX || out->path_len > SR_FOLD_MAX)
            continue;
        sr_sequence_read(out->text, e->text, out->len);
        sr_sequence_read(out->path, e->of, out->path_len);
        out->count = load(&e->count);
        out->first = when(&e->first);
        out->last = when(&e->last);
        if (!sr_sequence_holds(&e->sequence, sequence))
            continue;
        make_harmless(out->text, out->len);
        make_harmless(out->path, out->path_len);
        return true;
    }
    return false;
}

/* What was in the list of the same kind joins it. */
static void take_out(sr_exception_sums *sums, sr_exception_sum *one)
{
    for (size_t i = 0; i < sums->n; i++) {
        sr_exception_sum *it = &sums->at[i];
        if (it->len != one->len || memcmp(it->text, one->text, one->len) != 0)
            continue;
        one->count += it->count;
        one->first = it->first < one->first ? it->first : one->first;
        if (it->last >= one->last) {
            one->last = it->last;
            one->path_len = it->path_len;
            memcpy(one->path, it->path, it->path_len);
        }
        memmove(it, it + 1, (--sums->n - i) * sizeof *it);
        return;
    }
}

static void insert(sr_exception_sums *sums, const sr_exception_sum *one)
{
    size_t at = 0;
    while (at < sums->n && sums->at[at].last >= one->last)
        at++;
    if (at == SR_EXCEPTIONS_SUMMED)
        return;
    sums->n -= sums->n == SR_EXCEPTIONS_SUMMED;
    memmove(&sums->at[at + 1], &sums->at[at], (sums->n++ - at) * sizeof *one);
    sums->at[at] = *one;
}

void sr_exceptions_sum(sr_exception_sums *sums, const sr_exceptions *table)
{
    sums->count += load(&table->other);
    for (size_t i = 0; i < SR_EXCEPTIONS_MAX; i++) {
        sr_exception_sum one;
        if (!read_one(&table->at[i], &one))
            continue;
        sums->count += one.count;
        take_out(sums, &one);
        insert(sums, &one);
    }
}
