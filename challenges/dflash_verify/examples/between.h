// For examples whose dv_generate is the right one, but speaks to the model through something that
// changes what is said.
#pragma once

#define dv_generate naive_dv_generate
#include "naive.cpp"
#undef dv_generate

namespace {

// Passes everything on as it is; mistakes replace parts of it.
struct Between {
  virtual ~Between() = default;

  virtual std::int32_t verify(std::int64_t n, const std::int32_t* token, const std::int64_t* pos,
                              std::int64_t ldm, const std::uint64_t* bits, float* logits) const {
    return model->verify(model->user, n, token, pos, ldm, bits, logits);
  }
  virtual std::int32_t commit(std::int64_t n, const std::int64_t* keep) const {
    return model->commit(model->user, n, keep);
  }

  const dv_model* model = nullptr;
  assay_ctx* ctx = nullptr;
};

const Between& between(void* user) { return *static_cast<const Between*>(user); }

std::int32_t draft_through(void* user, std::int64_t n_prefix, const std::int32_t* prefix,
                           std::int32_t* n, std::int32_t* parent, std::int32_t* token) {
  const dv_model* m = between(user).model;
  return m->draft(m->user, n_prefix, prefix, n, parent, token);
}

std::int32_t verify_through(void* user, std::int64_t n, const std::int32_t* token,
                            const std::int64_t* pos, std::int64_t ldm, const std::uint64_t* bits,
                            float* logits) {
  return between(user).verify(n, token, pos, ldm, bits, logits);
}

std::int32_t commit_through(void* user, std::int64_t n, const std::int64_t* keep) {
  return between(user).commit(n, keep);
}

template <class Bug>
int generate_through(assay_ctx* ctx, const dv_loop* loop, const dv_model* model, int32_t* out,
                     int64_t* n_out) {
  if (model == nullptr) return ASSAY_EINVAL;
  Bug changes;
  changes.model = model;
  changes.ctx = ctx;
  const dv_model changed{sizeof(dv_model), model->V,        model->max_nodes, &changes,
                         &draft_through,   &verify_through, &commit_through};
  return naive_dv_generate(ctx, loop, &changed, out, n_out);
}

}  // namespace

// At the end of the file.
#define GENERATE_THROUGH(Bug)                                                            \
  extern "C" int dv_generate(assay_ctx* ctx, const dv_loop* loop, const dv_model* model, \
                             int32_t* out, int64_t* n_out) {                             \
    return generate_through<Bug>(ctx, loop, model, out, n_out);                          \
  }
