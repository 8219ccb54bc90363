// Shared by the trusted parts of this challenge.
#pragma once

#include <memory>
#include <vector>

#include "../worker/call.h"
#include "shared/attention.h"

namespace assay::flash_attention_fwd {

void generate_inputs(const CaseSpec&, const attention::Problem&, const Seeds&, BufferViews);

// Some query rows of one head; `o`, `scale` and `plain_o` are [rows, Dv].
struct TileReference {
  std::int64_t b = 0, h = 0, first = 0, rows = 0;
  attention::RowsD o, scale, plain_o;
  std::vector<double> lse, plain_lse, conditioning;
  std::vector<std::int64_t> keys;  // visible to each row
};

struct ForwardReference final : Reference {
  std::vector<TileReference> tiles;
};

// All tiles, or about one in `sample` of them if the params in spec.json say so.
std::unique_ptr<ForwardReference> make_reference(const CaseSpec&, const attention::Problem&,
                                                 BufferViews);

CheckResult check_outputs(const attention::Problem&, const ForwardReference&, BufferViews);

}  // namespace assay::flash_attention_fwd
