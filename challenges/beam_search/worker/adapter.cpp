#include <cstring>
#include <vector>

#include "assay/worker.h"
#include "call.h"

namespace assay::beam_search {
namespace {

using worker::Call;

// The model that the submission sees: packs its arguments and asks the harness.
struct RemoteModel {
  Call* call;
  std::int32_t V;
  std::size_t element;  // bytes of a value
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
  const std::size_t bulk = rows * static_cast<std::size_t>(model.V) * model.element;
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
  const bool half = call.entry() == kWithOptions && params.options.row_dtype != ASSAY_F32;
  RemoteModel remote{&call, params.V, half ? 2u : 4u, {}};
  const assay_lm lm{sizeof(assay_lm), params.V, params.kind, &remote,
                    params.null_step != 0 ? nullptr : &step};
  const assay_lm* const model = params.null_lm != 0 ? nullptr : &lm;
  auto* const seq = call.as<std::int32_t>(kSeq);
  auto* const len = call.as<std::int32_t>(kLen);
  auto* const acc = call.as<double>(kAcc);
  auto* const score = call.as<double>(kScore);
  auto* const finished = call.as<std::int32_t>(kFinished);
  auto* const n_out = call.as<std::int32_t>(kNOut);
  if (call.entry() == kPlain) {
    return call.fn<decltype(::beam_search)>("beam_search")(call.ctx(), &search, model, seq, len,
                                                           acc, score, finished, n_out);
  }
  auto* const f = call.fn<decltype(beam_search_with_options)>("beam_search_with_options");
  if (f == nullptr) return ASSAY_ENOTSUP;
  bs_options options = params.options;
  std::vector<const std::int32_t*> bad;
  const auto* token = call.as<std::int32_t>(kBad);
  const auto* const bad_len = call.as<std::int32_t>(kBadLen);
  for (std::size_t i = 0; i < call.bytes(kBadLen) / sizeof(std::int32_t); ++i) {
    bad.push_back(token);
    token += bad_len[i];
  }
  options.bad_len = bad_len;
  options.bad = bad_len == nullptr ? nullptr : bad.data();
  return f(call.ctx(), &search, &options, model, seq, len, acc, score, finished, n_out);
}

}  // namespace
}  // namespace assay::beam_search

ASSAY_ADAPTER(beam_search, beam_search::run)
