// Shared by the attention challenges on the trusted side: the terms of their cases, inputs, and the
// fp64 arithmetic of one head. Softmax attention as in Vaswani et al. 2017, bottom-right aligned.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "assay/attention.h"
#include "assay/challenge.h"
#include "assay/size.h"

namespace assay::attention {

using RowsD = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using RowsF = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// A case's params in spec.json: the fields of fa_params by name, and
//   layout   "bhnd" (default), "bshd", or "padded": bhnd with gaps between rows, heads and items;
//            "far_rows", "far_heads", "far_items": these lie `far` elements apart, 2^31 + 8 by
//            default, in sparse buffers
//   strides  {"q": [b, h, n], ...} of q, k, v and o, instead of those of a layout
//   softcap, alibi, sink, kv_len: the extras; kv_len is a list of B lengths
//   q_len, k_len: lists of lengths of packed sequences, instead of B, Nq and Nk
//   bias     [B, Hq, Nq, Nk], each 0 for the full size or 1; bias_poison: NaN where the pair is
//            masked
//   fp8      true: q, k and v are e4m3 with a scale each, dtype is that of o
//   data     {"kind": ..., "q_sigma": ...}, see fill_qkv
struct Problem {
  fa_params p{};  // true sizes and strides
  float softcap = 0;
  bool alibi = false, sink = false;
  std::vector<std::int64_t> kv_len;        // empty: Nk for all
  std::vector<std::int64_t> q_len, k_len;  // of packed sequences; empty: not packed
  bool bias = false, bias_poison = false, fp8 = false;
  bool sparse = false;  // nothing exists between the rows
  fa_bias bias_shape{};
  nlohmann::json data;

  bool has_extra() const { return softcap > 0 || alibi || sink || !kv_len.empty(); }
  std::int64_t group() const { return p.Hq / p.Hkv; }
  bool packed() const { return !q_len.empty(); }
  // Rows of item b in q and k, and the first of them; the keys that its queries may see.
  std::int64_t queries_of(std::int64_t b) const { return packed() ? q_len[to_size(b)] : p.Nq; }
  std::int64_t key_rows_of(std::int64_t b) const { return packed() ? k_len[to_size(b)] : p.Nk; }
  std::int64_t keys_of(std::int64_t b) const {
    return kv_len.empty() ? key_rows_of(b) : kv_len[to_size(b)];
  }
  std::int64_t first_query(std::int64_t b) const;
  std::int64_t first_key(std::int64_t b) const;
  // Offset in elements of row i of item b's query head h (key head h) in an array with these
  // strides.
  std::int64_t query_at(const assay_stride& s, std::int64_t b, std::int64_t h,
                        std::int64_t i) const {
    return b * s.b + h * s.h + (first_query(b) + i) * s.n;
  }
  std::int64_t key_at(const assay_stride& s, std::int64_t b, std::int64_t h, std::int64_t j) const {
    return b * s.b + h * s.h + (first_key(b) + j) * s.n;
  }
  // The same in lse: [B, Hq, Nq], or [Hq, total] for packed sequences.
  std::int64_t lse_at(std::int64_t b, std::int64_t h, std::int64_t i) const;
  // The row of the bias for a query, and the column for a key.
  std::int64_t bias_row(std::int64_t b, std::int64_t h, std::int64_t i) const {
    const fa_bias& s = bias_shape;
    return (b % s.B * s.Hq + h % s.Hq) * s.Nq + i % s.Nq;
  }
  std::int64_t bias_column(std::int64_t j) const { return j % bias_shape.Nk; }
  // The problem as one item, with the packed sequences joined.
  Problem flat() const;
};

Problem problem_of(const CaseSpec&);

// A draw's params. Its axes are those of a case with these differences:
//   group    query heads to a key head; Nk may be "Nq", Dv "D", scale null for the usual one
//   data     rows to spoil are "first", "middle" or "last", as is one_hot's key
//   extra    "" for none, an object of params, "kv_len" or "varlen": lengths that follow from Nk
//            (and Nq) and B
//   invalid  {}, an override (Hkv may be "Hq+1"), or {"null": array}
// Absent if the values do not go together, or if the problem takes more than `most_products`.
std::optional<DrawnCase> drawn_problem(const nlohmann::json& draw, std::int64_t most_products);

// A recorded call apart from its arrays. Handles are those of the case's buffers, -1 for buffers
// that its function does not have.
struct RecordedForm {
  fa_params p{};
  bool extra = false;
  float softcap = 0;
  std::int32_t alibi = -1, sink = -1, kv_len = -1;
  std::int32_t cu_q = -1, cu_k = -1;  // of packed sequences
  std::int64_t total_q = 0, total_k = 0;
  std::optional<fa_bias> bias{};
};
// The params of a case that makes the call; absent if it is illegal or too large to be judged.
std::optional<nlohmann::json> recorded_problem(const RecordedCall&, const RecordedForm&);

// Whether the rows of an array with these strides are free of NaN and Inf; one form checks a whole
// array.
bool finite_rows(const Problem&, const assay_stride&, std::int64_t H, std::int64_t N,
                 std::int64_t D, const BufferView&);
bool finite_values(const BufferView& floats);

// What the submission is told: the problem's params with the case's "override" on top.
fa_params told_params(const CaseSpec&, const Problem&);

// Elements of the buffer that an array with these strides needs.
std::int64_t span_of(const assay_stride&, std::int64_t B, std::int64_t H, std::int64_t N,
                     std::int64_t D);

// The pieces of such an array that exist in a sparse problem; empty for other problems.
std::vector<Piece> pieces_of(const Problem&, const assay_stride&, std::int64_t H, std::int64_t N,
                             std::int64_t D);

Dtype dtype_of(const Problem&);

// Visible keys of query i among L keys: [lo, hi), empty if lo >= hi.
struct Range {
  std::int64_t lo = 0, hi = 0;
};
Range visible(const Problem&, std::int64_t i, std::int64_t Nq, std::int64_t L);

// Pairs of a query and a key that it sees, over all heads and items.
double visible_pairs(const Problem&);

// Fills q, k and v by data.kind:
//   normal       N(0, sigma^2), q by q_sigma, k by k_sigma
//   rising, falling   scores rise (fall) steadily over the keys by about `span`
//   low          all scores lie in [-2000, -1000]
//   one_hot      key `key` scores `score` above the others
//   zero_q       q = 0
//   constant_k, constant_v   all keys (values) of a head agree
//   alternating_v   v = +-1e4 by the parity of the key, plus N(0, 1)
// and then sets the query rows `nan_q`, key rows `nan_k` and value rows `nan_v` to NaN, the last
// elements of the value rows `nan_v_end` too, and key rows `huge_k` to 1e30, in every head. Rows of
// packed sequences are counted through. `scales` [3] is filled for fp8.
void fill_qkv(const Problem&, std::uint64_t seed, const BufferView& q, const BufferView& k,
              const BufferView& v, const BufferView& scales = {});
// N(0, sigma^2) into an array with o's shape and strides; fills the gaps too.
void fill_array(const Problem&, std::uint64_t seed, const BufferView&, float sigma);
void fill_extras(const Problem&, std::uint64_t seed, const BufferView& alibi,
                 const BufferView& sink, const BufferView& kv_len);
void fill_lengths(const Problem&, const BufferView& cu_q, const BufferView& cu_k);
void fill_bias(const Problem&, std::uint64_t seed, const BufferView& bias);

// fp8 e4m3: 4 bits of exponent, 3 of fraction, largest 448, one NaN, no infinity; rounds to nearest
// even, saturates.
float e4m3_to_float(std::uint8_t x);
std::uint8_t float_to_e4m3(float f);
inline constexpr double kEpsE4m3 = 0.0625;  // unit roundoff, 2^-4

// N rows of an array starting at element `at`, `step` apart, widened to fp32 (exact for every
// dtype).
RowsF head_rows(std::int32_t dtype, const void* data, std::int64_t at, std::int64_t step,
                std::int64_t N, std::int64_t D);

double widen(std::int32_t dtype, const void* data, std::int64_t at);
float round_like(std::int32_t dtype, float x);
// Unit roundoff of results stored in dtype, 0 for fp32: what tolerances add for storage.
double storage_eps(std::int32_t dtype);

// Inputs other than q, k and v; NULL if a case has none.
struct Extras {
  const float *alibi = nullptr, *sink = nullptr, *bias = nullptr, *scales = nullptr;
};

// One query head of one item.
struct Head {
  const Problem* problem = nullptr;
  std::int64_t b = 0, h = 0, queries = 0, keys = 0;
  RowsF q, k, v;  // [queries, D], [keys, D], [keys, Dv]
  float slope = 0, sink = 0;
  const float* bias = nullptr;
  bool finite = true;  // q, k and v hold no NaN or Inf, and no values whose products overflow
};
Head load_head(const Problem&, std::int64_t b, std::int64_t h, BufferViews qkv, const Extras&);

// Scores of the query rows [first, first + rows) against the keys [lo, hi) that any of them sees,
// turned into weights; what a row does not see has weight 0. If the inputs are not finite, a tile
// is a single row, so that nothing masked enters any arithmetic.
struct Tile {
  std::int64_t first = 0, rows = 0, lo = 0, hi = 0;
  RowsD p;      // e^(s - lse)
  RowsF p32;    // the plain implementation's e^(s - max), not normalised; or e^(s - lse)
  RowsD slope;  // d(score)/d(scale q.k): 1 without softcap
  std::vector<double> lse, lse32, sum32,
      conditioning;  // conditioning: max_visible sum of |terms of s|
  std::vector<Range> range;
};
// `lse` [queries] of the head: given to the plain implementation instead of the maximum; or NULL.
void make_tile(const Head&, std::int64_t first, std::int64_t rows, const float* lse, Tile&);

// Whether it holds no NaN or Inf, and no values whose products overflow.
bool tame(const RowsF&);

// Fails the result if an element between the rows of a strided output lost the poison (a NaN
// pattern in every half-word, see CasePlan) that it held before the call.
void check_gaps(const Problem&, const assay_stride&, std::int64_t H, std::int64_t N, std::int64_t D,
                const BufferView& output, const char* name, CheckResult&);

// For tables, e.g. "B=1 Hq=8 N=1024 D=64 causal".
std::string shape_text(const Problem&);

inline constexpr std::int64_t kTileRows = 64;
inline std::int64_t tile_rows(const Head& head) { return head.finite ? kTileRows : 1; }

}  // namespace assay::attention
