#include <cstring>
#include <vector>

#include "assay/worker.h"
#include "beam.h"

namespace assay::beam_search {
namespace {

using worker::Call;

// The model that the submission sees: packs its arguments and asks the harness.
struct RemoteModel {
  Call* call;
  std::int32_t V;
  std::vector<std::byte> request;

  template <class T>
  void append(const T* data, std::size_t n) {
    const std::size_t at = request.size();
    request.resize(at + n * sizeof(T));
    std::memcpy(request.data() + at, data, n * sizeof(T));
  }
};

int step(void* user, assay_ctx*, std::int32_t n, const std::int32_t* item,
         const std::int64_t* parent, const std::int32_t* token, float* out, std::int64_t* state) {
  auto& model = *static_cast<RemoteModel*>(user);
  const auto rows = static_cast<std::size_t>(n);
  const std::size_t bulk = rows * static_cast<std::size_t>(model.V) * sizeof(float);
  const std::size_t most = worker::kCallbackBytes - rows * sizeof(std::int64_t);
  if (n < 1 || rows > worker::kCallbackBytes / 64 || bulk > most) return ASSAY_EINVAL;
  const StepHeader header{n};
  model.request.clear();
  model.append(&header, 1);
  model.append(parent, rows);
  model.append(item, rows);
  model.append(token, rows);
  return model.call->callback(kStep, model.request.data(), model.request.size(), state,
                              rows * sizeof(std::int64_t), out, bulk);
}

std::int32_t run(Call& call) {
  const auto& params = call.params_as<Params>();
  bs_params search = params.search;
  std::vector<const std::int32_t*> prompts;
  const std::size_t items = call.bytes(kPromptStart) / sizeof(std::int64_t);
  for (std::size_t b = 0; b < items; ++b) {
    prompts.push_back(call.as<std::int32_t>(kPrompt) + call.as<std::int64_t>(kPromptStart)[b]);
  }
  search.prompt_len = call.as<std::int32_t>(kPromptLen);
  search.prompt = call.buffer(kPrompt) == nullptr ? nullptr : prompts.data();
  RemoteModel remote{&call, params.V, {}};
  const assay_lm lm{sizeof(assay_lm), params.V, params.kind, &remote,
                    params.null_step != 0 ? nullptr : &step};
  return call.fn<decltype(::beam_search)>("beam_search")(
      call.ctx(), &search, params.null_lm != 0 ? nullptr : &lm, call.as<std::int32_t>(kSeq),
      call.as<std::int32_t>(kLen), call.as<double>(kAcc), call.as<double>(kScore),
      call.as<std::int32_t>(kFinished), call.as<std::int32_t>(kNOut));
}

}  // namespace
}  // namespace assay::beam_search

ASSAY_ADAPTER(beam_search, beam_search::run)
