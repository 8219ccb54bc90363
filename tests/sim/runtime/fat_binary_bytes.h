// Handmade fat binaries.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::sim {

class FatBinaryBytes {
 public:
  FatBinaryBytes() {
    put(0, std::uint32_t{0xba55ed50});
    put(4, std::uint16_t{1});
    put(6, std::uint16_t{16});
    put(8, std::uint64_t{0});
  }

  FatBinaryBytes& add(std::uint16_t kind, std::uint32_t architecture, std::string_view text,
                      std::uint64_t flags = 0x11) {
    const std::size_t at = bytes.size();
    put(at, kind);
    put(at + 2, std::uint16_t{0x101});
    put(at + 4, std::uint32_t{64});
    put(at + 8, std::uint64_t{text.size() + 3});
    put(at + 28, architecture);
    put(at + 40, flags);
    bytes.resize(at + 64);
    for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
    bytes.resize(bytes.size() + 3);  // padding
    put(8, std::uint64_t{bytes.size() - 16});
    return *this;
  }

  template <class T>
  void put(std::size_t at, T value) {
    if (bytes.size() < at + sizeof value) bytes.resize(at + sizeof value);
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }

  std::vector<std::byte> bytes;
};

// What nvcc's code registers. It points to a container that must outlive it.
struct FatBinaryWrapper {
  std::uint32_t magic = 0x466243b1, version = 1;
  const void* data = nullptr;
  void* unused = nullptr;
};

}  // namespace assay::sim
