// fails: exact_ties exact_ties_coarse greedy_K1
// Of equal tokens the last one comes first: the search is that of a model whose vocabulary runs
// backwards.
#include "around_search.cuh"

struct Reverse {
  __device__ void operator()(float* row, std::int32_t V) const {
    for (std::int32_t v = 0; v < V / 2; ++v) {
      const float other = row[V - 1 - v];
      row[V - 1 - v] = row[v];
      row[v] = other;
    }
  }
};

static int answer(const Search& call) {
  if (!call.has_items()) return call.naive();
  const std::int32_t last = call.lm->V - 1;
  bs_params reversed = *call.p;
  if (reversed.eos >= 0) reversed.eos = last - reversed.eos;
  Search other = call;
  other.p = &reversed;
  const auto with_tokens = [last](const assay_lm& lm, Step step) {
    std::vector<std::int32_t> tokens(step.token, step.token + step.n);
    for (std::int32_t& token : tokens) token = last - token;
    step.token = tokens.data();
    const int status = step.ask(lm);
    change_rows<Reverse><<<static_cast<unsigned>((step.n + kThreads - 1) / kThreads), kThreads, 0,
                           static_cast<cudaStream_t>(step.ctx->stream)>>>(step.n, lm.V, step.out);
    return status;
  };
  const int status = with_model(other, with_tokens);
  const std::int64_t places = std::int64_t{call.p->B} * call.p->K * call.p->max_new;
  for (std::int64_t i = 0; status == ASSAY_OK && i < places; ++i)
    call.seq[i] = call.seq[i] < 0 ? -1 : last - call.seq[i];
  return status;
}
