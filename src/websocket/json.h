#ifndef SR_JSON_H
#define SR_JSON_H
/*
 * json: reads an object or a list of JSON (RFC 8259), member by member. Strict: what is invalid is refused,
 * also inside a value that nobody asks for, and so is text that is not UTF-8. Values inside values are
 * checked and skipped.
 *
 * Owner: the caller, with the bytes. Texts are valid as long as those, and as the scratch.
 * Failure: SR_JSON_BAD. Pure; any thread.
 */
#include "../base/bytes.h"

typedef enum sr_json_kind {
    SR_JSON_STRING,
    SR_JSON_NUMBER,
    SR_JSON_TRUE,
    SR_JSON_FALSE,
    SR_JSON_NULL,
    SR_JSON_LIST,
    SR_JSON_OBJECT,
} sr_json_kind;

typedef struct sr_json_value {
    sr_json_kind kind;
    sr_bytes text; /* of a string: without quotes and escapes; of all others: as it is written */
} sr_json_value;

typedef enum sr_json_result { SR_JSON_NEXT, SR_JSON_END, SR_JSON_BAD } sr_json_result;

typedef struct sr_json {
    const char *at, *end;
    char *to; /* where the next string with an escape goes */
    bool begun;
} sr_json;

/* `kind`: SR_JSON_OBJECT or SR_JSON_LIST. `scratch`: as many bytes as `in` has. False: it is none. */
bool sr_json_begin(sr_json *j, sr_bytes in, char *scratch, sr_json_kind kind);

/* The next member of an object. END: there is none, and nothing follows. */
sr_json_result sr_json_member(sr_json *j, sr_bytes *name, sr_json_value *value);

/* The next of a list. */
sr_json_result sr_json_element(sr_json *j, sr_json_value *value);

#endif
