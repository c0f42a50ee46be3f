#include "wscontrol.h"

#include "../base/base64.h"

enum { NAME_MAX = 255, TIMEOUT_MAX = 24 * 3600 };

static const struct kind {
    sr_bytes name;
    sr_wscontrol_kind kind;
} kinds[] = {
    {{"subscribe", 9}, SR_WSCONTROL_SUBSCRIBE}, {{"unsubscribe", 11}, SR_WSCONTROL_UNSUBSCRIBE},
    {{"detach", 6}, SR_WSCONTROL_DETACH},       {{"keep-alive", 10}, SR_WSCONTROL_KEEP_ALIVE},
    {{"set-meta", 8}, SR_WSCONTROL_SET_META},   {{"session", 7}, SR_WSCONTROL_OTHER},
};

static bool take_kind(sr_wscontrol *c, const sr_json_value *v)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (v->kind == SR_JSON_STRING && sr_bytes_equal(v->text, kinds[i].name)) {
            c->kind = kinds[i].kind;
            return true;
        }
    return false;
}

static bool take_message(sr_wscontrol *c, const sr_json_value *v)
{
    if (v->kind != SR_JSON_STRING)
        return false;
    bool known = true;
    if (sr_bytes_equal(v->text, SR_BYTES("text")))
        c->message = SR_WSFRAME_TEXT;
    else if (sr_bytes_equal(v->text, SR_BYTES("binary")))
        c->message = SR_WSFRAME_BINARY;
    else if (sr_bytes_equal(v->text, SR_BYTES("ping")))
        c->message = SR_WSFRAME_PING;
    else if (sr_bytes_equal(v->text, SR_BYTES("pong")))
        c->message = SR_WSFRAME_PONG;
    else
        known = false;
    return known;
}

/* A number of seconds, from 1 on. */
static bool take_timeout(sr_wscontrol *c, const sr_json_value *v)
{
    uint32_t n = 0;
    if (v->kind != SR_JSON_NUMBER)
        return false;
    for (size_t i = 0; i < v->text.len; i++) {
        if (v->text.at[i] < '0' || v->text.at[i] > '9')
            return false;
        n = n > TIMEOUT_MAX ? n : n * 10 + (uint32_t)(v->text.at[i] - '0');
    }
    c->timeout = n > TIMEOUT_MAX ? TIMEOUT_MAX : n;
    return n > 0;
}

static bool take_filters(sr_wscontrol *c, const sr_json_value *v, char *scratch)
{
    sr_json list;
    sr_json_value one;
    if (v->kind != SR_JSON_LIST || !sr_json_begin(&list, v->text, scratch, SR_JSON_LIST))
        return false;
    while (sr_json_element(&list, &one) == SR_JSON_NEXT) {
        if (one.kind != SR_JSON_STRING || c->n_filters == SR_WSCONTROL_FILTERS_MAX)
            return false;
        c->filters[c->n_filters++] = one.text;
    }
    return true;
}

static bool take_text(sr_bytes *to, const sr_json_value *v, size_t most)
{
    *to = v->text.len ? v->text : sr_bytes_of("", 0);
    return v->kind == SR_JSON_STRING && v->text.len <= most;
}

/* In place if the text lies in the scratch, which has no room for both. */
static bool take_binary(sr_wscontrol *c, const sr_json_value *v, sr_json *j)
{
    if (v->kind != SR_JSON_STRING)
        return false;
    if (v->text.at + v->text.len == j->to)
        j->to -= v->text.len;
    c->content = sr_bytes_of(j->to, sr_base64_read(j->to, v->text));
    if (c->content.len == SIZE_MAX)
        return false;
    j->to += c->content.len;
    return true;
}

/* What is said by a member that GRIP does not have is left out. */
static const char *member(sr_wscontrol *c, sr_json *j, sr_bytes name, const sr_json_value *v)
{
    if (sr_bytes_equal(name, SR_BYTES("type")))
        return take_kind(c, v) ? NULL : "has a type that is not known";
    if (sr_bytes_equal(name, SR_BYTES("channel")))
        return take_text(&c->channel, v, NAME_MAX) && c->channel.len ? NULL : "has an invalid channel";
    if (sr_bytes_equal(name, SR_BYTES("prev-id")))
        return take_text(&c->prev_id, v, NAME_MAX) ? NULL : "has an invalid prev-id";
    if (sr_bytes_equal(name, SR_BYTES("filters"))) {
        bool valid = take_filters(c, v, j->to);
        j->to += v->text.len; /* of a list, which has taken nothing of the scratch so far */
        if (!valid)
            c->wrong_subscribe = "has invalid filters, or more than 8";
        return NULL;
    }
    if (sr_bytes_equal(name, SR_BYTES("timeout"))) {
        if (!take_timeout(c, v))
            c->wrong_alive = "has an invalid timeout";
        return NULL;
    }
    if (sr_bytes_equal(name, SR_BYTES("content")) || sr_bytes_equal(name, SR_BYTES("value")))
        return take_text(&c->content, v, SIZE_MAX) ? NULL : "has a content that is no string";
    if (sr_bytes_equal(name, SR_BYTES("content-bin")))
        return take_binary(c, v, j) ? NULL : "has a content-bin that is not base64";
    if (sr_bytes_equal(name, SR_BYTES("message-type")) && !take_message(c, v))
        c->wrong_alive = "has a message-type that is not known";
    else if (sr_bytes_equal(name, SR_BYTES("mode")))
        c->interval = sr_bytes_equal(v->text, SR_BYTES("interval"));
    else if (sr_bytes_equal(name, SR_BYTES("name")))
        return take_text(&c->name, v, NAME_MAX) && c->name.len ? NULL : "has an invalid name";
    return NULL;
}

static const char *lacks(const sr_wscontrol *c)
{
    bool of_channel = c->kind == SR_WSCONTROL_SUBSCRIBE || c->kind == SR_WSCONTROL_UNSUBSCRIBE;
    bool small = c->message == SR_WSFRAME_TEXT || c->message == SR_WSFRAME_BINARY;
    if (c->kind == SR_WSCONTROL_KEEP_ALIVE && c->wrong_alive)
        return c->wrong_alive;
    if (c->kind == SR_WSCONTROL_SUBSCRIBE && c->wrong_subscribe)
        return c->wrong_subscribe;
    if (of_channel && !c->channel.len)
        return "has no channel";
    if (c->kind == SR_WSCONTROL_SET_META && !c->name.len)
        return "has no name";
    return !small && c->content.len > SR_WSFRAME_CONTROL_MAX ? "has more than 125 bytes of content" : NULL;
}

bool sr_wscontrol_read(sr_wscontrol *c, sr_bytes json, char *scratch, const char **why)
{
    sr_json j;
    sr_json_value v;
    sr_bytes name;
    sr_json_result r = SR_JSON_BAD;
    bool has_kind = false;
    *c = (sr_wscontrol){.message = SR_WSFRAME_TEXT, .timeout = SR_WSCONTROL_TIMEOUT};
    *why = "is no object of JSON";
    if (!sr_json_begin(&j, json, scratch, SR_JSON_OBJECT))
        return false;
    while ((r = sr_json_member(&j, &name, &v)) == SR_JSON_NEXT) {
        has_kind = has_kind || sr_bytes_equal(name, SR_BYTES("type"));
        const char *wrong = member(c, &j, name, &v);
        if (wrong) {
            *why = wrong;
            return false;
        }
    }
    if (r != SR_JSON_END)
        return false;
    *why = has_kind ? lacks(c) : "has no type";
    return !*why;
}
