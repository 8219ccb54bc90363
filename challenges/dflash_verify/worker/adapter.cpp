#include <cstring>
#include <vector>

#include "assay/worker.h"
#include "call.h"

namespace assay::dflash_verify {
namespace {

using worker::Call;

std::int32_t run_mask(Call& call, const Params& p) {
  using namespace mask;
  return call.fn<decltype(dv_mask)>("dv_mask")(
      call.ctx(), p.B, call.as<std::int64_t>(kP), call.as<std::int64_t>(kCu),
      call.as<std::int32_t>(kParent), p.ldm, call.as<std::uint64_t>(kBits),
      call.as<std::int32_t>(kDepth), call.as<std::int64_t>(kPos));
}

std::int32_t run_full_mask(Call& call, const Params& p) {
  using namespace full_mask;
  return call.fn<decltype(dv_full_mask)>("dv_full_mask")(
      call.ctx(), p.P, p.n, call.as<std::int32_t>(kParent), call.as<std::uint8_t>(kM));
}

// A pointer per item into one buffer, row_bytes apart; all NULL if the case has no such buffer.
template <class Pointer>
std::vector<Pointer> item_pointers(Call& call, int rows_handle, int buffer,
                                   std::int64_t row_bytes) {
  std::vector<Pointer> pointers;
  const auto* rows = call.as<std::int64_t>(rows_handle);
  const std::size_t items = call.bytes(rows_handle) / sizeof(std::int64_t);
  auto* const first = call.as<char>(buffer);
  for (std::size_t b = 0; b + 1 < items; ++b) {
    pointers.push_back(first == nullptr ? nullptr : first + rows[b] * row_bytes);
  }
  return pointers;
}

std::int32_t run_attention(Call& call, const Params& p) {
  using namespace attention;
  const std::int64_t row_bytes = p.row_bytes;
  const auto k = item_pointers<const void*>(call, kRows, kK, row_bytes);
  const auto v = item_pointers<const void*>(call, kRows, kV, row_bytes);
  return call.fn<decltype(dv_attention)>("dv_attention")(
      call.ctx(), &p.fa, call.as<std::int64_t>(kP), call.as<std::int64_t>(kCu),
      call.as<std::int32_t>(kParent), call.buffer(kQ), k.data(), v.data(), call.buffer(kO),
      call.as<float>(kLse));
}

std::int32_t run_accept(Call& call, const Params& p) {
  using namespace accept;
  dv_sampling sampling = p.sampling;
  sampling.uniform = call.as<float>(kUniform);
  sampling.root_q = call.as<float>(kRootQ);
  sampling.node_q = call.as<float>(kNodeQ);
  return call.fn<decltype(dv_accept)>("dv_accept")(
      call.ctx(), p.B, p.V, call.as<std::int64_t>(kCu), call.as<std::int32_t>(kParent),
      call.as<std::int32_t>(kToken), call.as<float>(kRootLogits), call.as<float>(kNodeLogits),
      call.as<std::int32_t>(kEos), call.as<std::int32_t>(kBudget),
      p.null_sampling != 0 ? nullptr : &sampling, call.as<std::int32_t>(kAccNode),
      call.as<std::int32_t>(kNAcc), call.as<std::int32_t>(kBonus));
}

std::int32_t run_compact(Call& call, const Params& p) {
  using namespace compact;
  const auto kv = item_pointers<void*>(call, kRows, kKv, p.row_bytes);
  return call.fn<decltype(dv_compact)>("dv_compact")(
      call.ctx(), p.B, call.as<std::int64_t>(kP), call.as<std::int64_t>(kCu),
      call.as<std::int32_t>(kAccNode), call.as<std::int32_t>(kNAcc), p.row_bytes, p.caches,
      kv.data());
}

// The model that the submission sees: each function packs its arguments and asks the harness.
struct RemoteModel {
  Call* call;
  std::int32_t V, max_nodes;
  std::vector<std::byte> request, response;

  template <class T>
  void append(const T* data, std::int64_t n) {
    if (n == 0) return;
    const std::size_t at = request.size(), bytes = static_cast<std::size_t>(n) * sizeof(T);
    request.resize(at + bytes);
    std::memcpy(request.data() + at, data, bytes);
  }

  void start(CallHeader header) {
    request.clear();
    append(&header, 1);
  }

  std::int32_t ask(CallKind kind, std::size_t response_bytes) {
    if (request.size() > worker::kCallbackBytes || response_bytes > worker::kCallbackBytes) {
      return ASSAY_EINVAL;
    }
    response.resize(response_bytes);
    return call->callback(kind, request.data(), request.size(), response.data(), response_bytes);
  }
};

// Sizes beyond any payload are refused before they are multiplied.
bool reasonable(std::int64_t n) {
  return n >= 0 && n <= static_cast<std::int64_t>(worker::kCallbackBytes);
}

std::int32_t draft(void* user, std::int64_t n_prefix, const std::int32_t* prefix, std::int32_t* n,
                   std::int32_t* parent, std::int32_t* token) {
  auto& model = *static_cast<RemoteModel*>(user);
  if (!reasonable(n_prefix)) return ASSAY_EINVAL;
  model.start({n_prefix, 0});
  model.append(prefix, n_prefix);
  const auto room = static_cast<std::size_t>(model.max_nodes);
  const std::int32_t status = model.ask(kDraft, sizeof(std::int32_t) * (1 + 2 * room));
  if (status != ASSAY_OK) return status;
  const std::byte* from = model.response.data();
  std::memcpy(n, from, sizeof *n);
  const std::size_t bytes = sizeof(std::int32_t) * static_cast<std::size_t>(*n);
  std::memcpy(parent, from + sizeof *n, bytes);
  std::memcpy(token, from + sizeof *n + room * sizeof(std::int32_t), bytes);
  return ASSAY_OK;
}

std::int32_t verify(void* user, std::int64_t n, const std::int32_t* token, const std::int64_t* pos,
                    std::int64_t ldm, const std::uint64_t* bits, float* logits) {
  auto& model = *static_cast<RemoteModel*>(user);
  if (!reasonable(n) || !reasonable(ldm) || !reasonable(n * ldm)) return ASSAY_EINVAL;
  if (!reasonable(n * model.V)) return ASSAY_EINVAL;
  model.start({n, ldm});
  model.append(pos, n);
  model.append(bits, n * ldm);
  model.append(token, n);
  const std::size_t bytes = sizeof(float) * static_cast<std::size_t>(n * model.V);
  const std::int32_t status = model.ask(kVerify, bytes);
  if (status == ASSAY_OK) model.call->copy(logits, model.response.data(), bytes);
  return status;
}

std::int32_t commit(void* user, std::int64_t n, const std::int64_t* keep) {
  auto& model = *static_cast<RemoteModel*>(user);
  if (!reasonable(n)) return ASSAY_EINVAL;
  model.start({n, 0});
  model.append(keep, n);
  return model.ask(kCommit, 0);
}

std::int32_t run_generate(Call& call, const Params& p) {
  using namespace generate;
  RemoteModel remote{&call, p.V, p.max_nodes, {}, {}};
  const dv_model model{sizeof(dv_model), p.V, p.max_nodes, &remote, &draft, &verify, &commit};
  const dv_loop loop{sizeof(dv_loop), p.eos, p.n_prompt, call.as<std::int32_t>(kPrompt), p.max_new};
  return call.fn<decltype(dv_generate)>("dv_generate")(
      call.ctx(), &loop, &model, call.as<std::int32_t>(kOut), call.as<std::int64_t>(kNOut));
}

std::int32_t run(Call& call) {
  const auto& params = call.params_as<Params>();
  switch (call.entry()) {
    case kMask: return run_mask(call, params);
    case kFullMask: return run_full_mask(call, params);
    case kAttention: return run_attention(call, params);
    case kAccept: return run_accept(call, params);
    case kCompact: return run_compact(call, params);
    case kGenerate: return run_generate(call, params);
    default: return ASSAY_EINTERNAL;
  }
}

}  // namespace
}  // namespace assay::dflash_verify

ASSAY_ADAPTER(dflash_verify, dflash_verify::run)
