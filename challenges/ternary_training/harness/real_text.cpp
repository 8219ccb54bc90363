#include "real_text.h"

#include <fmt/format.h>
#include <lzma.h>

#include <algorithm>
#include <numbers>
#include <vector>

#include "assay/error.h"
#include "assay/size.h"
#include "util/files.h"

namespace assay::ternary_training {
namespace {

std::size_t compressed_bytes(const std::string& text) {
  std::vector<std::uint8_t> out(lzma_stream_buffer_bound(text.size()));
  std::size_t size = 0;
  const lzma_ret status =
      lzma_easy_buffer_encode(6 | LZMA_PRESET_EXTREME, LZMA_CHECK_NONE, nullptr,
                              reinterpret_cast<const std::uint8_t*>(text.data()), text.size(),
                              out.data(), &size, out.size());
  if (status != LZMA_OK)
    throw Error(fmt::format("xz cannot compress the text: error {}", int{status}));
  return size;
}

// Documents of T bytes from `text`, each at place(i).
template <class Place>
void copy_documents(const std::string& text, std::int64_t T, const BufferView& docs, Place place) {
  const auto tokens = docs.span<std::uint16_t>();
  for (std::size_t i = 0; i < tokens.size() / to_size(T); ++i) {
    const auto at = static_cast<std::ptrdiff_t>(place(static_cast<std::int64_t>(i)));
    std::transform(text.begin() + at, text.begin() + at + T,
                   tokens.begin() + static_cast<std::ptrdiff_t>(i) * T, [](char c) {
                     return static_cast<std::uint16_t>(static_cast<unsigned char>(c));
                   });
  }
}

}  // namespace

std::string text_file(const CaseSpec& spec) { return spec.params.value("file", ""); }

double xz_bits_per_byte(const std::string& seen, const std::string& held_out) {
  const auto more = static_cast<double>(compressed_bytes(seen + held_out) - compressed_bytes(seen));
  return 8 * more / static_cast<double>(held_out.size());
}

void fill_text(const CaseSpec& spec, const Shape& s, std::uint64_t seed, BufferViews buffers) {
  using namespace train;
  const std::string text = read_file(text_file(spec));
  const std::int64_t T = s.call.config.T, held_out = s.held_out * T;
  const auto size = static_cast<std::int64_t>(text.size());
  const std::int64_t seen = size - std::max(size / 10, held_out);
  if (seen < 8 * held_out) {
    throw Error(fmt::format("{} has {} bytes; training on text needs {} at least", text_file(spec),
                            size, 9 * held_out));
  }
  Random random(substream(seed, 21));
  copy_documents(text, T, buffers[kDocs], [&](std::int64_t) { return random.below(seen - T + 1); });
  const std::int64_t first = seen + random.below(size - seen - held_out + 1);
  copy_documents(text, T, buffers[kHeldOut], [&](std::int64_t i) { return first + i * T; });
  const double bits = xz_bits_per_byte(text.substr(0, to_size(seen)),
                                       text.substr(to_size(first), to_size(held_out)));
  std::ranges::fill(buffers[kCost].span<float>(), static_cast<float>(bits * std::numbers::ln2));
}

}  // namespace assay::ternary_training
