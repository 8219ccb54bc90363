// The trusted side: corpora, the exact block format, the fp64 model and the references.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "../worker/call.h"
#include "assay/challenge.h"
#include "assay/random.h"
#include "languages.h"
#include "projections.h"

namespace assay::ternary_training {

inline constexpr std::int64_t kBlockWeights = 128, kBlockBytes = 34, kDenseBytes = 28;
inline constexpr std::int64_t kCountsPerMatrix = 7;

struct Shape {
  Entry entry = kQuantize;
  Params call;                // what the adapter is given
  std::int64_t held_out = 0;  // documents of the harness
  std::int64_t foreign = 0;   // documents of another language
};

Shape shape_of(const CaseSpec&);

// Bytes of rows x cols weights in blocks; cols counts as rounded up to whole blocks.
std::int64_t block_bytes(std::int64_t rows, std::int64_t cols);
std::int64_t blob_size(const tt_config&);  // 0 for an invalid configuration

struct MatrixSize {
  std::int64_t rows = 0, cols = 0;
};
std::vector<MatrixSize> matrices_of(const tt_config&);  // in the blob's order
std::int64_t weight_count(const tt_config&);            // matrices and norms

// --- blocks, exactly as the format says

std::uint16_t half_bits(double);  // nearest, ties to even, straight from fp64
double half_value(std::uint16_t bits);
void quantize_block(const float* w, std::uint8_t* block);
// False for a forbidden code or scale; the legal weights are written anyway.
bool decode_block(const std::uint8_t* block, double* w);
// Converts a legal block to 28 bytes, and back.
void dense_block(const std::uint8_t* block, std::uint8_t* dense);
void undense_block(const std::uint8_t* dense, std::uint8_t* block);

// --- inputs

// The params of a case that makes a recorded call, and whether its inputs keep the task's promises.
std::optional<nlohmann::json> recorded_params(const RecordedCall&);
bool adopt_inputs(const CaseSpec&, BufferViews);

// Nothing that a worker sees depends on `judging`, or vice versa: what the worker is judged by is
// drawn from `judging`.
void generate(const CaseSpec&, std::uint64_t seed, std::uint64_t judging, BufferViews);

// --- the model

class Model {
 public:
  virtual ~Model() = default;
  // Logits [T, V] of one document in fp64.
  virtual void logits(const std::uint16_t* tokens, double* out) const = 0;
};
// Returns null and a reason if the blob is illegal. The bytes are not trusted.
std::unique_ptr<Model> decode_blob(const tt_config&, std::span<const std::uint8_t> blob,
                                   std::string& why_not);
// -log p of each token; the first token of a document costs nothing.
std::vector<double> token_costs(const Model&, const tt_config&,
                                std::span<const std::uint16_t> docs);

// --- references

struct Row {
  std::int64_t index = 0;
  std::vector<double> expected, plain, scale;
};

struct TernReference final : Reference {
  std::vector<std::uint8_t> bytes;       // tt_quantize, tt_pack_dense, tt_unpack_dense
  std::vector<std::int64_t> counts;      // tt_blob_statistics
  std::vector<float> weights;            // tt_dequantize
  std::vector<Row> y, dx, dw;            // tt_linear: the rows judged one by one
  Projections all_y, all_dx, all_dw;     // all rows, if not all are judged one by one
  std::vector<Row> loss, gradient;       // tt_distill_loss
  std::vector<double> logits, logits32;  // tt_logits: fp64, and the spread in fp32
  double usual_logit = 0;                // size of a logit whose terms do not cancel
  std::array<double, kKinds> floor{}, bigram{}, count{};  // tt_train: mean nats per token
};

std::unique_ptr<Reference> make_reference(const CaseSpec&, BufferViews);
void reference_logits(const Shape&, BufferViews, TernReference&);  // the model's part
CheckResult check_outputs(const CaseSpec&, const TernReference&, BufferViews);

}  // namespace assay::ternary_training
