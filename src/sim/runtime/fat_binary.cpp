#include "sim/runtime/fat_binary.h"

#include <fmt/format.h>

#include <cstring>
#include <optional>

namespace assay::sim {
namespace {

constexpr std::uint32_t kWrapperMagic = 0x466243b1, kContainerMagic = 0xba55ed50;
constexpr std::size_t kContainerHeader = 16, kEntryHeader = 48;  // at least
constexpr std::uint16_t kPtx = 1, kElf = 2;
constexpr std::uint64_t kCompressed = 0x2000 /* LZ4 */ | 0x8000 /* Zstandard */;

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

struct Entry {
  std::uint16_t kind;
  std::uint32_t architecture;
  std::uint64_t flags;
  std::span<const std::byte> payload;
};

// Removes and returns the first entry of `rest`.
Entry take_entry(std::span<const std::byte>& rest) {
  if (rest.size() < kEntryHeader)
    throw FatBinaryError("the fat binary ends within an entry's header");
  const auto header = load<std::uint32_t>(rest.data() + 4);
  const auto payload = load<std::uint64_t>(rest.data() + 8);
  if (header < kEntryHeader || header > rest.size() || payload > rest.size() - header) {
    throw FatBinaryError(fmt::format(
        "an entry of the fat binary is longer ({} + {} bytes) than what is left of it ({})", header,
        payload, rest.size()));
  }
  const Entry entry{load<std::uint16_t>(rest.data()), load<std::uint32_t>(rest.data() + 28),
                    load<std::uint64_t>(rest.data() + 40), rest.subspan(header, payload)};
  rest = rest.subspan(header + payload);
  return entry;
}

std::string_view text_of(const Entry& entry) {
  if ((entry.flags & kCompressed) != 0) {
    throw FatBinaryError(
        "the PTX in the fat binary is compressed: compile with nvcc --no-compress");
  }
  const std::string_view text(reinterpret_cast<const char*>(entry.payload.data()),
                              entry.payload.size());
  return text.substr(0, text.find('\0'));  // padded with NULs
}

// The part after the header.
std::span<const std::byte> entries_of(std::span<const std::byte> container) {
  if (container.size() < kContainerHeader ||
      load<std::uint32_t>(container.data()) != kContainerMagic) {
    throw FatBinaryError("this is no fat binary of nvcc: its magic number is missing");
  }
  const auto header = load<std::uint16_t>(container.data() + 6);
  const auto payload = load<std::uint64_t>(container.data() + 8);
  if (header < kContainerHeader || header > container.size() ||
      payload > container.size() - header) {
    throw FatBinaryError("the fat binary is cut off");
  }
  return container.subspan(header, payload);
}

}  // namespace

PtxImage find_ptx(std::span<const std::byte> container, std::uint32_t newest) {
  std::span<const std::byte> rest = entries_of(container);
  std::optional<Entry> best;
  std::uint32_t lowest = ~0u;
  while (!rest.empty()) {
    const Entry entry = take_entry(rest);
    if (entry.kind != kPtx) continue;
    lowest = std::min(lowest, entry.architecture);
    if (entry.architecture > newest) continue;
    if (!best || entry.architecture > best->architecture) best = entry;
  }
  if (best) return {best->architecture, text_of(*best)};
  if (lowest != ~0u) {
    throw FatBinaryError(
        fmt::format("the fat binary has PTX for compute_{} and later only; the simulated device is "
                    "sm_{}: compile with -arch=compute_80 -code=compute_80",
                    lowest, newest));
  }
  throw FatBinaryError("the fat binary has no PTX: compile with -arch=compute_80 -code=compute_80");
}

std::string_view find_code(std::span<const std::byte> container, std::uint32_t architecture) {
  std::span<const std::byte> rest = entries_of(container);
  while (!rest.empty()) {
    const Entry entry = take_entry(rest);
    if (entry.kind != kElf || entry.architecture != architecture) continue;
    if ((entry.flags & kCompressed) != 0) continue;
    return {reinterpret_cast<const char*>(entry.payload.data()), entry.payload.size()};
  }
  return {};
}

std::span<const std::byte> container_of(const void* wrapper) {
  if (wrapper == nullptr ||
      load<std::uint32_t>(static_cast<const std::byte*>(wrapper)) != kWrapperMagic) {
    throw FatBinaryError("the program registered something that is no fat binary of nvcc");
  }
  const auto* data = load<const std::byte*>(static_cast<const std::byte*>(wrapper) + 8);
  if (data == nullptr || load<std::uint32_t>(data) != kContainerMagic) {
    throw FatBinaryError("the program registered a fat binary without its magic number");
  }
  return {data, load<std::uint16_t>(data + 6) + load<std::uint64_t>(data + 8)};
}

}  // namespace assay::sim
