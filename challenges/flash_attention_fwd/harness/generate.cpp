#include "assay/error.h"
#include "trusted.h"

namespace assay::flash_attention_fwd {

void generate_inputs(const CaseSpec& spec, const attention::Problem& problem, const Seeds& seeds,
                     BufferViews buffers) {
  const std::uint64_t seed = seeds.inputs;
  if (spec.expect_status == ASSAY_OK &&
      problem.p.Hq % std::max<std::int64_t>(problem.p.Hkv, 1) != 0) {
    throw Error("flash_attention_fwd: case '" + spec.name + "': Hq is not a multiple of Hkv");
  }
  attention::fill_qkv(problem, seed, buffers[kQ], buffers[kK], buffers[kV], buffers[kScales]);
  attention::fill_extras(problem, seed, buffers[kAlibi], buffers[kSink], buffers[kKvLen]);
  attention::fill_lengths(problem, buffers[kCuQ], buffers[kCuK]);
  attention::fill_bias(problem, seed, buffers[kBias]);
  buffers[kSecret].as<std::uint64_t>()[0] = seeds.judging;
}

}  // namespace assay::flash_attention_fwd
