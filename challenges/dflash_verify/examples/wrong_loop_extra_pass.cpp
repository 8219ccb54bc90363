// fails: golden_200 multi_cycle_3 generate_chain
// Runs the model once more in every cycle to obtain the token after the accepted ones, which the first
// pass had computed already.
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
  const std::int32_t status = m->verify(m->user, n, token, pos, ldm, bits, logits);
  if (status != ASSAY_OK) return status;
  m->commit(m->user, 0, nullptr);
  return m->verify(m->user, n, token, pos, ldm, bits, logits);
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
