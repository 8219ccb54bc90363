// fails: rope_base
// The base of the angles of longer contexts, 10^6, whatever the configuration says.
#include "with_pass.h"

struct Bug : Pass {
  Bug(assay_ctx* ctx, const Layout& layout) : Pass(ctx, wrong(layout)) {}
  static Layout wrong(Layout layout) {
    layout.c.theta = 1e6f;
    return layout;
  }
};

RUN_WITH(Bug)
