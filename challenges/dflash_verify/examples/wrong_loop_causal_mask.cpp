// fails: multi_cycle_3 pos_rope
// Sends the tree through the model with a plain causal mask.
#define dv_generate naive_dv_generate
#include "naive.cpp"
#undef dv_generate

namespace {

// Stands between the loop and the model.
struct Between {
  const dv_model* model;
  assay_ctx* ctx;
};

std::int32_t draft(void* user, std::int64_t n_prefix, const std::int32_t* prefix, std::int32_t* n,
                   std::int32_t* parent, std::int32_t* token) {
  const dv_model* m = static_cast<Between*>(user)->model;
  return m->draft(m->user, n_prefix, prefix, n, parent, token);
}

std::int32_t verify(void* user, std::int64_t n, const std::int32_t* token, const std::int64_t* pos,
                    std::int64_t ldm, const std::uint64_t* bits, float* logits) {
  const auto* between = static_cast<Between*>(user);
  const dv_model* m = between->model;
  const Scratch<std::uint64_t> causal(between->ctx, n * ldm);
  std::fill_n(causal.data(), n * ldm, 0);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j <= i; ++j) causal[i * ldm + j / 64] |= std::uint64_t{1} << (j % 64);
  }
  static_cast<void>(bits);
  return m->verify(m->user, n, token, pos, ldm, causal.data(), logits);
}

std::int32_t commit(void* user, std::int64_t n, const std::int64_t* keep) {
  const dv_model* m = static_cast<Between*>(user)->model;
  return m->commit(m->user, n, keep);
}

}  // namespace

extern "C" int dv_generate(assay_ctx* ctx, const dv_loop* loop, const dv_model* model, int32_t* out,
                           int64_t* n_out) {
  if (model == nullptr) return ASSAY_EINVAL;
  Between between{model, ctx};
  const dv_model changed{sizeof(dv_model), model->V, model->max_nodes, &between,
                         &draft,           &verify,  &commit};
  return naive_dv_generate(ctx, loop, &changed, out, n_out);
}
