#include "json.h"

#include "../http/token.h"
#include "utf8.h"

enum { DEPTH_MAX = 16 };

static bool value(sr_json *j, sr_json_value *v, unsigned depth);

static void space(sr_json *j)
{
    while (j->at < j->end && (*j->at == ' ' || *j->at == '\t' || *j->at == '\r' || *j->at == '\n'))
        j->at++;
}

static bool byte(sr_json *j, char c)
{
    if (j->at == j->end || *j->at != c)
        return false;
    j->at++;
    return true;
}

static bool literal(sr_json *j, sr_bytes word)
{
    if ((size_t)(j->end - j->at) < word.len || memcmp(j->at, word.at, word.len) != 0)
        return false;
    j->at += word.len;
    return true;
}

/* --- strings --- */

static bool unit(sr_json *j, uint32_t *code)
{
    *code = 0;
    for (int i = 0; i < 4; i++) {
        int digit = j->at < j->end ? sr_hex_value((unsigned char)*j->at) : -1;
        if (digit < 0)
            return false;
        j->at++;
        *code = *code << 4 | (unsigned)digit;
    }
    return true;
}

static void put(sr_json *j, uint32_t code)
{
    if (code < 0x80) {
        *j->to++ = (char)code;
        return;
    }
    unsigned more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const unsigned char first[] = {0, 0xc0, 0xe0, 0xf0};
    *j->to++ = (char)(first[more] | code >> (6 * more));
    while (more--)
        *j->to++ = (char)(0x80 | (code >> (6 * more) & 0x3f));
}

/* After a backslash. What it stands for is never longer than the escape. */
static bool escape(sr_json *j)
{
    static const char names[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
    uint32_t code, low;
    if (j->at == j->end)
        return false;
    char c = *j->at++;
    const char *name = c ? strchr(names, c) : NULL;
    if (name) {
        *j->to++ = bytes[name - names];
        return true;
    }
    if (c != 'u' || !unit(j, &code))
        return false;
    if (code >= 0xd800 && code <= 0xdfff) {
        bool pair =
            code < 0xdc00 && literal(j, SR_BYTES("\\u")) && unit(j, &low) && low >= 0xdc00 && low <= 0xdfff;
        if (!pair)
            return false;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    put(j, code);
    return true;
}

static bool string(sr_json *j, sr_bytes *text)
{
    const char *from = j->at;
    char *to = j->to;
    if (!byte(j, '"'))
        return false;
    while (j->at < j->end && *j->at != '"') {
        unsigned char c = (unsigned char)*j->at++;
        if (c < 0x20 || (c == '\\' && !escape(j)))
            return false;
        if (c != '\\')
            *j->to++ = (char)c;
    }
    if (!byte(j, '"'))
        return false;
    *text = sr_bytes_of(to, (size_t)(j->to - to));
    if (text->len == (size_t)(j->at - from) - 2) { /* without an escape: as it is */
        j->to = to;
        *text = sr_bytes_of(from + 1, text->len);
    }
    return sr_is_utf8(*text);
}

/* --- others --- */

static bool digits(sr_json *j)
{
    const char *from = j->at;
    while (j->at < j->end && sr_char_is((unsigned char)*j->at, SR_CHAR_DIGIT))
        j->at++;
    return j->at > from;
}

static bool number(sr_json *j)
{
    byte(j, '-');
    if (!byte(j, '0') && !digits(j))
        return false;
    if (byte(j, '.') && !digits(j))
        return false;
    if (byte(j, 'e') || byte(j, 'E')) {
        if (!byte(j, '+'))
            byte(j, '-');
        return digits(j);
    }
    return true;
}

/* The rest of an object or a list, which is skipped. */
static bool inner(sr_json *j, char close, unsigned depth)
{
    char *to = j->to;
    sr_json_value v;
    sr_bytes name;
    space(j);
    if (byte(j, close))
        return true;
    do {
        space(j);
        if (close == '}') {
            if (!string(j, &name))
                return false;
            space(j);
            if (!byte(j, ':'))
                return false;
        }
        if (!value(j, &v, depth + 1))
            return false;
        j->to = to;
        space(j);
    } while (byte(j, ','));
    return byte(j, close);
}

static bool other(sr_json *j, sr_json_value *v, unsigned depth)
{
    if (depth > DEPTH_MAX)
        return false;
    switch (j->at < j->end ? *j->at : '\0') {
    case '{':
    case '[':
        v->kind = *j->at == '{' ? SR_JSON_OBJECT : SR_JSON_LIST;
        j->at++;
        return inner(j, v->kind == SR_JSON_OBJECT ? '}' : ']', depth);
    case 't':
        v->kind = SR_JSON_TRUE;
        return literal(j, SR_BYTES("true"));
    case 'f':
        v->kind = SR_JSON_FALSE;
        return literal(j, SR_BYTES("false"));
    case 'n':
        v->kind = SR_JSON_NULL;
        return literal(j, SR_BYTES("null"));
    default:
        v->kind = SR_JSON_NUMBER;
        return number(j);
    }
}

static bool value(sr_json *j, sr_json_value *v, unsigned depth)
{
    space(j);
    const char *from = j->at;
    v->kind = SR_JSON_STRING;
    if (j->at < j->end && *j->at == '"')
        return string(j, &v->text);
    bool valid = other(j, v, depth);
    v->text = sr_bytes_of(from, (size_t)(j->at - from));
    return valid;
}

/* --- members --- */

bool sr_json_begin(sr_json *j, sr_bytes in, char *scratch, sr_json_kind kind)
{
    *j = (sr_json){.at = in.at, .end = in.at + in.len, .to = scratch};
    space(j);
    return byte(j, kind == SR_JSON_LIST ? '[' : '{');
}

static sr_json_result next(sr_json *j, char close, sr_bytes *name, sr_json_value *v)
{
    space(j);
    if (byte(j, close)) {
        space(j);
        return j->at == j->end ? SR_JSON_END : SR_JSON_BAD;
    }
    if (j->begun && !byte(j, ','))
        return SR_JSON_BAD;
    j->begun = true;
    space(j);
    if (name) {
        if (!string(j, name))
            return SR_JSON_BAD;
        space(j);
        if (!byte(j, ':'))
            return SR_JSON_BAD;
    }
    return value(j, v, 1) ? SR_JSON_NEXT : SR_JSON_BAD;
}

sr_json_result sr_json_member(sr_json *j, sr_bytes *name, sr_json_value *v)
{
    return next(j, '}', name, v);
}

sr_json_result sr_json_element(sr_json *j, sr_json_value *v)
{
    return next(j, ']', NULL, v);
}
