#ifndef SR_LAYOUT_H
#define SR_LAYOUT_H
/*
 * layout: how this build lays out what processes share, as a text that can be passed on and compared. When
 * another version is installed over the one that runs, programs of both may be started: the process that
 * starts the edge tells its layouts, and the edge ends with a line if they are not its own.
 *
 * Pure functions.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SR_LAYOUT_TEXT = 256, SR_LAYOUT_WHY = 256 };

/* "queue:7.123,scoreboard:16.1408,..." */
void sr_layout_text(char out[SR_LAYOUT_TEXT]);

/*
 * Whether `theirs`, such a text, has another value somewhere. Then `why` says where, with both values:
 * "queue 7.123 there, 8.123 here". A part that only one of the two has is not compared.
 */
bool sr_layout_differs(const char *theirs, char why[SR_LAYOUT_WHY]);

/* The two parts of a number that is a layout: "7.123" */
void sr_layout_number(uint32_t layout, char out[24]);

#endif
