// Inputs: matrices that catch single mistakes, random blobs, and corpora of exactly known entropy.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "assay/error.h"
#include "assay/parallel.h"
#include "assay/size.h"
#include "real_text.h"
#include "trusted.h"

namespace assay::ternary_training {
namespace {

using nlohmann::json;

// --- training data

void write_documents(const Language& language, std::uint64_t seed, std::int64_t T,
                     const BufferView& tokens, float* cost, std::uint8_t* kind) {
  const auto n = static_cast<std::int64_t>(tokens.span<std::uint16_t>().size()) / T;
  parallel_for(n, 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      Random random(substream(seed, static_cast<std::uint64_t>(i)));
      language.write(random, {{tokens.as<std::uint16_t>() + i * T, to_size(T)},
                              cost != nullptr ? cost + i * T : nullptr,
                              kind != nullptr ? kind + i * T : nullptr});
    }
  });
}

void fill_train(const CaseSpec& spec, const Shape& s, std::uint64_t seed, std::uint64_t judging,
                BufferViews buffers) {
  using namespace train;
  if (s.call.config.T < 1 || s.held_out == 0) return;
  if (!text_file(spec).empty()) return fill_text(spec, s, seed, buffers);
  const json corpus = spec.params.value("corpus", json::object());
  const std::int64_t T = s.call.config.T;
  const auto language = make_language(corpus, s.call.config, substream(seed, 1));
  write_documents(*language, substream(seed, 2), T, buffers[kDocs], nullptr, nullptr);
  write_documents(*language, substream(judging, 3), T, buffers[kHeldOut],
                  buffers[kCost].as<float>(), buffers[kKind].as<std::uint8_t>());
  if (s.foreign == 0) return;
  const auto foreign = foreign_language(corpus, s.call.config, *language, substream(judging, 4));
  write_documents(*foreign, substream(judging, 5), T, buffers[kForeign], nullptr, nullptr);
}

// --- matrices for the unit entries

float with_sign(float magnitude, Random& random) {
  return random.next() & 1 ? magnitude : -magnitude;
}

// A mean just above a tie of binary16, which is a tie after rounding to fp32, or exactly a tie,
// between neighbours of which the lower or the upper one is even. r is an even binary16.
void half_way_block(std::size_t index, double r, double ulp, std::span<float> w) {
  const std::size_t which = index % 3;
  const double tie = r + ulp / 2 + (which == 2 ? ulp : 0);
  for (float& v : w) v = std::copysign(static_cast<float>(tie), v);
  if (which == 0) w[5] = std::copysign(static_cast<float>(tie + 0x1p-23), w[5]);
}

// One block per rule, by its index; r is a random binary16 in [1, 2), ulp the distance to its
// neighbour.
void special_block(const std::string& kind, std::size_t index, Random& random, std::span<float> w) {
  const double r = 1 + static_cast<double>(2 * random.below(500) + 2) / 1024, ulp = 0x1p-10;
  const auto fill_signed = [&](double magnitude) {
    for (float& v : w) v = with_sign(static_cast<float>(magnitude), random);
  };
  if (kind == "golden") {
    for (std::size_t j = 0; j < w.size(); ++j)
      w[j] = static_cast<float>(static_cast<int>((j * j + j / 3) % 3) - 1);
    w[0] = 1;
  } else if (kind == "tie") {  // mean exactly 1, half of the weights exactly s / 2
    for (std::size_t j = 0; j < w.size(); ++j)
      w[j] = with_sign(random.next() % 2 ? 0.5f : 1.5f, random);
    for (std::size_t j = 0; j < w.size(); ++j) w[j] = std::copysign(j % 2 == 0 ? 0.5f : 1.5f, w[j]);
  } else if (kind == "rounded_scale") {  // s is below the mean: 40 weights lie between the two
                                         // halves
    const double delta = 0.35 * ulp / r, close = r / 2 * (1 + delta / 2);
    fill_signed((128 * r * (1 + delta) - 40 * close) / 88);
    for (std::size_t j = 0; j < 40; ++j)
      w[3 * j] = std::copysign(static_cast<float>(close), w[3 * j]);
  } else if (kind == "half_way") {
    half_way_block(index, r, ulp, w);
  } else if (kind == "zero") {
    fill_signed(0);
  } else if (kind == "outlier") {
    fill_signed(1);
    w[to_size(random.below(128))] = 50;
  } else {
    throw Error(fmt::format("ternary_training: unknown weights '{}'", kind));
  }
}

// Whether a scale that is off in the last bits, or not yet rounded to binary16, makes no
// difference. Plain blocks are checked for that; trap blocks are made so that it does.
bool rounding_is_immaterial(std::span<const float> w) {
  constexpr double kBinary16 = 1e-3, kMean = 1e-5;  // relative; binary16 rounds by up to 2^-11
  double mean = 0;
  for (const float v : w) mean += std::abs(static_cast<double>(v)) / kBlockWeights;
  return half_bits(mean * (1 - kMean)) == half_bits(mean * (1 + kMean)) &&
         std::ranges::none_of(w, [&](float v) {
           return std::abs(std::abs(static_cast<double>(v)) - mean / 2) < kBinary16 * mean;
         });
}

void fill_weights(const json& params, std::int64_t cols, std::uint64_t seed, std::span<float> w) {
  if (w.empty() || cols % kBlockWeights != 0) return;
  const std::string kind = params.value("weights", "normal");
  const float sigma = params.value("sigma", 1.0f);
  fill_normal(w, seed, 0, sigma);
  Random random(substream(seed, 9));
  for (std::size_t at = 0; at < w.size(); at += kBlockWeights) {
    const auto block = w.subspan(at, kBlockWeights);
    if (kind == "graded") {  // every block has a different scale
      while (!rounding_is_immaterial(block)) fill_normal(block, random.next(), 0, sigma);
      const auto factor = static_cast<float>(std::exp2(random.below(16) - 8));
      for (float& v : block) v *= factor;
    } else if (kind != "normal") {
      special_block(kind, at / kBlockWeights, random, block);
    }
  }
}

// Random legal blocks whose weights have about the given deviation.
void random_blocks(Random& random, double sigma, std::span<std::uint8_t> out) {
  for (std::size_t at = 0; at + kBlockBytes <= out.size(); at += kBlockBytes) {
    const std::uint16_t s = half_bits(sigma * random.uniform(0.8, 1.6));
    std::uint8_t* block = out.data() + at;
    block[0] = static_cast<std::uint8_t>(s);
    block[1] = static_cast<std::uint8_t>(s >> 8);
    for (int i = 0; i < 32; ++i) {
      unsigned byte = 0;
      for (int k = 0; k < 8; k += 2) byte |= static_cast<unsigned>(random.below(3)) << k;
      block[2 + i] = static_cast<std::uint8_t>(byte);
    }
  }
}

// Gives each row its own magnitude, from 1/4 to 4, so that no fixed point suits them all.
void draw_magnitudes(Random& random, std::int64_t width, std::span<float> rows) {
  for (; !rows.empty(); rows = rows.subspan(to_size(width))) {
    const auto factor = static_cast<float>(std::exp2(random.uniform(-2, 2)));
    for (float& x : rows.first(to_size(width))) x *= factor;
  }
}

void fill_linear(const CaseSpec& spec, const Shape& s, std::uint64_t seed, std::uint64_t judging,
                 BufferViews buffers) {
  using namespace linear;
  *buffers[kSecret].as<std::uint64_t>() = judging;
  Random random(substream(seed, 2));
  random_blocks(random, spec.params.value("sigma", 1.0), buffers[kBlocks].span<std::uint8_t>());
  if (s.entry == kLinearBf16) {
    fill_normal_bf16(buffers[kX].span<std::uint16_t>(), substream(seed, 3));
    return fill_normal_bf16(buffers[kDy].span<std::uint16_t>(), substream(seed, 4));
  }
  fill_normal(buffers[kX].span<float>(), substream(seed, 3));
  fill_normal(buffers[kDy].span<float>(), substream(seed, 4), 0,
              spec.params.value("dy_sigma", 1.0f));
  if (!spec.params.value("levels", false)) return;
  draw_magnitudes(random, s.call.cols, buffers[kX].span<float>());
  draw_magnitudes(random, s.call.rows, buffers[kDy].span<float>());
}

void random_tokens(Random& random, std::int64_t V, std::span<std::uint16_t> tokens) {
  for (auto& t : tokens) t = static_cast<std::uint16_t>(random.below(V));
}

// A legal model; `layers` is the deviation of the matrices after embedding and head.
void random_blob(Random& random, const tt_config& c, double layers, std::span<std::uint8_t> blob) {
  const std::size_t norms = to_size(c.L) * to_size(2 * c.d + 2 * c.hd) + to_size(c.d);
  const std::size_t matrices = blob.size() - 4 * norms;
  const auto embeddings = to_size((2 - c.tied) * block_bytes(c.V, c.d));
  random_blocks(random, 0.1, blob.first(embeddings));
  random_blocks(random, layers, blob.first(matrices).subspan(embeddings));
  for (std::size_t i = 0; i < norms; ++i) {
    const auto w = static_cast<float>(random.uniform(0.5, 2.0));
    std::memcpy(blob.data() + matrices + 4 * i, &w, 4);
  }
}

void set_code(std::uint8_t* block, std::int64_t j, unsigned code) {
  std::uint8_t& byte = block[2 + j / 4];
  byte = static_cast<std::uint8_t>((byte & ~(3u << (j % 4 * 2))) | code << (j % 4 * 2));
}

// A scale of any magnitude, 0 in the first block.
void draw_scale(Random& random, std::int64_t at, std::uint8_t* block) {
  const auto scale = static_cast<std::uint16_t>(at == 0 ? 0 : random.below(0x7c00));
  block[0] = static_cast<std::uint8_t>(scale);
  block[1] = static_cast<std::uint8_t>(scale >> 8);
}

void fill_dequantize(const json& params, Random& random, std::span<std::uint8_t> blocks) {
  random_blocks(random, 1.0, blocks);
  if (!params.value("any_scale", false)) return;
  for (std::size_t b = 0; (b + 1) * kBlockBytes <= blocks.size(); ++b)
    draw_scale(random, static_cast<std::int64_t>(b), blocks.data() + b * kBlockBytes);
}

// Random codes, or ("every_byte") codes whose bytes count from 0 to 242 through the blocks; scales
// of all magnitudes, including 0.
void fill_dense(const Shape& s, const json& params, Random& random, BufferViews buffers) {
  const bool packing = s.entry == kPackDense;
  const std::int64_t n = block_bytes(s.call.rows, s.call.cols) / kBlockBytes;
  if (buffers[dense::kFrom].bytes == 0) return;
  std::vector<std::uint8_t> blocks(to_size(n * kBlockBytes));
  random_blocks(random, 1.0, blocks);
  for (std::int64_t b = 0; b < n; ++b) {
    std::uint8_t* block = blocks.data() + b * kBlockBytes;
    draw_scale(random, b, block);
    if (!params.value("every_byte", false)) continue;
    for (std::int64_t j = 0; j < 120; ++j) {
      const std::int64_t in = j < 80 ? j % 16 : 16 + (j - 80) % 8,
                         digit = j < 80 ? j / 16 : (j - 80) / 8;
      std::int64_t number = (b * 24 + in) % 243;
      for (std::int64_t i = digit; i < 4; ++i) number /= 3;
      set_code(block, j, static_cast<unsigned>(number % 3));
    }
  }
  std::uint8_t* const out = buffers[dense::kFrom].as<std::uint8_t>();
  if (packing) std::copy(blocks.begin(), blocks.end(), out);
  for (std::int64_t b = 0; b < n && !packing; ++b)
    dense_block(blocks.data() + b * kBlockBytes, out + b * kDenseBytes);
}

// Two related models: rows and columns without weights, blocks of scale 0 whose codes are not zero,
// and changes.
void fill_statistics(const Shape& s, Random& random, BufferViews buffers) {
  using namespace statistics;
  const auto blob = buffers[kBlob].span<std::uint8_t>();
  random_blob(random, s.call.config, 0.1, blob);
  std::uint8_t* at = blob.data();
  for (const MatrixSize& m : matrices_of(s.call.config)) {
    const std::int64_t across = m.cols / kBlockWeights, dead_column = random.below(m.cols);
    for (std::int64_t row = 0; row < m.rows; ++row) {
      const std::int64_t what = random.below(12);
      for (std::int64_t b = 0; b < across; ++b, at += kBlockBytes) {
        if (dead_column / kBlockWeights == b) set_code(at, dead_column % kBlockWeights, 1);
        if (what == 0) std::fill_n(at + 2, 32, std::uint8_t{0x55});
        if (what == 1 || (what == 2 && b == 0)) at[0] = at[1] = 0;
      }
    }
  }
  const auto before = buffers[kBefore].span<std::uint8_t>();
  if (before.empty()) return;
  std::copy(blob.begin(), blob.end(), before.begin());
  for (std::uint8_t* block = before.data(); block != before.data() + (at - blob.data());
       block += kBlockBytes) {
    for (std::int64_t j = 0; j < kBlockWeights; ++j) {
      if (random.below(9) == 0) set_code(block, j, static_cast<unsigned>(random.below(3)));
    }
    if (random.below(9) == 0) block[0] = block[1] = 0;
    // A changed magnitude does not count as a change.
    if (random.below(3) == 0 && block[1] > 0) --block[1];
  }
}

}  // namespace

void generate(const CaseSpec& spec, std::uint64_t seed, std::uint64_t judging,
              BufferViews buffers) {
  const Shape s = shape_of(spec);
  Random random(substream(seed, 7));
  switch (s.entry) {
    case kQuantize:
      return fill_weights(spec.params, s.call.cols, seed, buffers[quantize::kW].span<float>());
    case kDequantize:
      return fill_dequantize(spec.params, random,
                             buffers[dequantize::kBlocks].span<std::uint8_t>());
    case kLinear:
    case kLinearBf16: return fill_linear(spec, s, seed, judging, buffers);
    case kBlobBytes: return;
    case kTrain:
    case kTrainPart: return fill_train(spec, s, seed, judging, buffers);
    case kLogits:
      random = Random(seed);
      random_tokens(random, s.call.config.V, buffers[logits::kDocs].span<std::uint16_t>());
      return random_blob(random, s.call.config, 0.1, buffers[logits::kBlob].span<std::uint8_t>());
    case kPackDense:
    case kUnpackDense: return fill_dense(s, spec.params, random, buffers);
    case kGenerate:
      random_tokens(random, s.call.config.V, buffers[generation::kTokens].span<std::uint16_t>());
      random_tokens(random, s.call.config.V,
                    buffers[generation::kMoreTokens].span<std::uint16_t>());
      // Wide enough that the layers dominate the residual stream, instead of the token repeating
      // itself.
      return random_blob(random, s.call.config, 0.5,
                         buffers[generation::kBlob].span<std::uint8_t>());
    case kDistill: {
      const float sigma = spec.params.value("sigma", 3.0f), mean = spec.params.value("mean", 0.0f);
      fill_normal(buffers[distill::kTeacher].span<float>(), substream(seed, 3), mean, sigma);
      return fill_normal(buffers[distill::kStudent].span<float>(), substream(seed, 4), mean, sigma);
    }
    case kStatistics: return fill_statistics(s, random, buffers);
  }
}

}  // namespace assay::ternary_training
