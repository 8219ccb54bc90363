#include "assay/witness.h"

#include <cstring>
#include <vector>

#include "implementation.h"
#include "worker/call.h"

ASSAY_WITNESS()

namespace assay::beam_search {
namespace {

using witness::Journal;

constexpr std::int64_t kMostTokens = 1 << 20;  // of prompts, or of banned sequences

// The tests' model, and where its answers are recorded.
struct Watched {
  const assay_lm* model;
  Journal* journal;
  std::int64_t most_rows;
  std::size_t row_bytes;
};

template <class T>
void append(std::vector<unsigned char>& packet, const T* data, std::size_t count) {
  const std::size_t at = packet.size();
  packet.resize(at + count * sizeof(T));
  std::memcpy(packet.data() + at, data, count * sizeof(T));
}

// For a step that failed, records only the question, and not even that if it cannot be read.
void record_step(const Watched& w, std::int32_t n, std::int32_t status, const std::int32_t* item,
                 const std::int64_t* parent, const std::int32_t* token, const void* out,
                 const std::int64_t* state) {
  const bool readable = n >= 1 && n <= w.most_rows && item != nullptr && parent != nullptr &&
                        token != nullptr && out != nullptr && state != nullptr;
  const RecordedStep head{readable ? n : 0, status};
  std::vector<unsigned char> packet;
  append(packet, &head, 1);
  if (readable) {
    const auto rows = static_cast<std::size_t>(n);
    append(packet, parent, rows);
    append(packet, item, rows);
    append(packet, token, rows);
    if (status == ASSAY_OK) {
      append(packet, state, rows);
      append(packet, static_cast<const unsigned char*>(out), rows * w.row_bytes);
    }
  }
  w.journal->add(kSteps, packet.data(), static_cast<std::int64_t>(packet.size()));
}

int step(void* user, assay_ctx* ctx, std::int32_t n, const std::int32_t* item,
         const std::int64_t* parent, const std::int32_t* token, float* out, std::int64_t* state) {
  const auto& w = *static_cast<const Watched*>(user);
  const int status = w.model->step(w.model->user, ctx, n, item, parent, token, out, state);
  record_step(w, n, status, item, parent, token, out, state);
  return status;
}

struct Outputs {
  const void *seq, *len, *acc, *score, *finished, *n_out;
};

// Joins arrays of different lengths; false if they cannot be read.
bool join(std::int32_t count, const std::int32_t* length, const std::int32_t* const* each,
          std::int32_t least, std::vector<std::int32_t>& all) {
  if (count < 0 || count > kMostTokens) return false;
  if (count > 0 && (length == nullptr || each == nullptr)) return false;
  for (std::int32_t i = 0; i < count; ++i) {
    const std::int32_t n = length[i];
    if (n < least || (n > 0 && each[i] == nullptr)) return false;
    if (n > kMostTokens - static_cast<std::int64_t>(all.size())) return false;
    all.insert(all.end(), each[i], each[i] + n);
  }
  return true;
}

// Records NULL if the array of arrays is NULL, but not merely because they are all empty.
void add(Journal& journal, Handle handle, const void* arrays,
         const std::vector<std::int32_t>& all) {
  const void* const data = all.empty() ? arrays : static_cast<const void*>(all.data());
  journal.add(handle, data, static_cast<std::int64_t>(all.size() * sizeof(std::int32_t)));
}

// search(model) makes the call.
template <class Search>
int watch(Entry entry, const bs_params* p, const bs_options* o, const assay_lm* lm,
          const Outputs& to, Search search) {
  std::vector<std::int32_t> prompts, bad;
  const bool readable = p != nullptr && p->size == sizeof(bs_params) && lm != nullptr &&
                        lm->size == sizeof(assay_lm) && lm->step != nullptr && p->K >= 1 &&
                        lm->V >= 1 && join(p->B, p->prompt_len, p->prompt, 0, prompts) &&
                        (entry == kPlain || (o != nullptr && o->size == sizeof(bs_options) &&
                                             join(o->n_bad, o->bad_len, o->bad, 1, bad)));
  if (!readable) {
    witness::Record(entry).strange();
    return search(lm);
  }
  Params params;
  params.search = *p;
  params.search.prompt_len = nullptr;
  params.search.prompt = nullptr;
  params.V = lm->V;
  params.kind = lm->kind;
  if (entry == kWithOptions) {
    params.options = *o;
    params.options.bad_len = nullptr;
    params.options.bad = nullptr;
  }
  Journal journal(entry);
  journal.params(params);
  journal.add(kPromptLen, p->prompt_len, std::int64_t{p->B} * 4);
  add(journal, kPrompt, p->prompt, prompts);
  if (entry == kWithOptions) {
    journal.add(kBadLen, o->bad_len, std::int64_t{o->n_bad} * 4);
    add(journal, kBad, o->bad, bad);
  }
  journal.add(kSeq, to.seq, 0);
  journal.add(kLen, to.len, 0);
  journal.add(kAcc, to.acc, 0);
  journal.add(kScore, to.score, 0);
  journal.add(kFinished, to.finished, 0);
  journal.add(kNOut, to.n_out, 0);
  const bool half = entry == kWithOptions && o->row_dtype != ASSAY_F32;
  Watched watched{lm, &journal, std::int64_t{p->B} * p->K,
                  static_cast<std::size_t>(lm->V) * (half ? 2 : 4)};
  assay_lm model = *lm;
  model.user = &watched;
  model.step = &step;
  return search(&model);
}

}  // namespace
}  // namespace assay::beam_search

using namespace assay::beam_search;

extern "C" int beam_search(assay_ctx* ctx, const bs_params* p, const assay_lm* lm, int32_t* seq,
                           int32_t* len, double* acc, double* score, int32_t* finished,
                           int32_t* n_out) {
  return watch(kPlain, p, nullptr, lm, {seq, len, acc, score, finished, n_out},
               [&](const assay_lm* model) {
                 return ASSAY_IMPLEMENTATION(beam_search)(ctx, p, model, seq, len, acc, score,
                                                          finished, n_out);
               });
}

extern "C" int beam_search_with_options(assay_ctx* ctx, const bs_params* p, const bs_options* o,
                                        const assay_lm* lm, int32_t* seq, int32_t* len, double* acc,
                                        double* score, int32_t* finished, int32_t* n_out) {
  return watch(kWithOptions, p, o, lm, {seq, len, acc, score, finished, n_out},
               [&](const assay_lm* model) {
                 return ASSAY_IMPLEMENTATION(beam_search_with_options)(ctx, p, o, model, seq, len,
                                                                       acc, score, finished, n_out);
               });
}
