#ifndef SR_PATH_H
#define SR_PATH_H
/*
 * path: from the path of a URL to the path of a file below a folder. What is returned has been decoded once,
 * and has only plain names in it, so that no file system and no decoder after this one can read anything else
 * in it. Pure; any thread.
 */
#include "../base/bytes.h"

enum { SR_PATH_MAX = 4096 }; /* bytes, with the NUL at the end: PATH_MAX of Linux */

#define SR_PATH_NO_MATCH SIZE_MAX

typedef enum sr_path_kind {
    SR_PATH_BAD,    /* nothing is served under such a path */
    SR_PATH_NAME,   /* of a file, or of a folder without the slash at its end. "": the folder of the prefix */
    SR_PATH_FOLDER, /* there was a slash at its end, which is left out. "": the folder of the prefix */
} sr_path_kind;

/*
 * Whether `path`, percent-encoded as it came, is `prefix` (decoded, without a slash at its end; "" is the
 * prefix of all), or below it. Returns the number of bytes of `path` that are the prefix. An encoded slash is
 * not a slash here.
 */
size_t sr_path_below(sr_bytes path, sr_bytes prefix);

/*
 * Decodes the rest of the path: nothing, or "/" and more. Bad are: a name that begins with a dot, so also "."
 * and ".."; an empty name ("//"); an encoded slash; a backslash, a control character or DEL, encoded or not;
 * a '%' without two hex digits; and what is longer than a path can be.
 */
sr_path_kind sr_path_decode_rest(char out[SR_PATH_MAX], sr_bytes rest);

#endif
