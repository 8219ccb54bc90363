// Machine code that holds only register counts: an ELF file without code.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace assay::device::testing {

template <class T>
void append(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// For kernels, given with their register counts. Sections: none, names, symbols, names of symbols,
// .nv.info.
inline std::string machine_code(const std::vector<std::pair<std::string, std::uint32_t>>& kernels) {
  std::string symbol_names(1, '\0'), symbols(24, '\0'), information;
  append(information, std::uint32_t{0x00011201});  // an attribute without a value
  for (std::uint32_t i = 0; i < kernels.size(); ++i) {
    append(symbols, static_cast<std::uint32_t>(symbol_names.size()));
    symbols.append(20, '\0');
    symbol_names += kernels[i].first + '\0';
    append(information, std::uint32_t{0x00081104});  // EIATTR_FRAME_SIZE
    append(information, i + 1);
    append(information, std::uint32_t{512});
    append(information, std::uint32_t{0x00082f04});  // EIATTR_REGCOUNT
    append(information, i + 1);
    append(information, kernels[i].second);
  }
  const std::string names("\0.nv.info\0", 10);
  struct Part {
    std::string contents;
    std::uint32_t name, type, link;
  };
  const std::vector<Part> parts{{"", 0, 0, 0},
                                {names, 0, 3, 0},
                                {symbols, 0, 2, 3},
                                {symbol_names, 0, 3, 0},
                                {information, 1, 0x70000000, 2}};
  std::string body, table;
  for (const Part& part : parts) {
    append(table, part.name);
    append(table, part.type);
    append(table, std::uint64_t{0});
    append(table, std::uint64_t{0});
    append(table, std::uint64_t{64 + body.size()});
    append(table, std::uint64_t{part.contents.size()});
    append(table, part.link);
    table.append(20, '\0');
    body += part.contents;
  }
  std::string header(
      "\x7f"
      "ELF\x02\x01",
      6);
  header.resize(40, '\0');
  append(header, std::uint64_t{64 + body.size()});  // offset of the section table
  header.resize(64, '\0');
  const std::uint16_t counts[] = {64, static_cast<std::uint16_t>(parts.size()), 1};
  std::memcpy(header.data() + 58, counts, sizeof counts);
  return header + body + table;
}

}  // namespace assay::device::testing
