#include "h1.h"

#include "end.h"
#include "put.h"
#include "read.h"
#include "refuse.h"

const sr_protocol sr_h1 = {
    .read = sr_h1_read,
    .taken = sr_h1_taken,
    .writable = sr_h1_writable,
    .head = sr_h1_head,
    .piece = sr_h1_piece,
    .file = sr_h1_file,
    .output = sr_h1_output,
    .settle = sr_h1_settle,
    .end = sr_h1_end,
    .cut = sr_h1_cut,
    .refuse = sr_h1_refuse,
};
