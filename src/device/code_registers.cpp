#include "device/code_registers.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

namespace assay::device {
namespace {

// The parts of ELF64 needed here (System V ABI, "Object Files").
struct Header {
  char ident[16];
  std::uint16_t type, machine;
  std::uint32_t version;
  std::uint64_t entry, segments, sections;
  std::uint32_t flags;
  std::uint16_t bytes, segment_bytes, segment_count, section_bytes, section_count, section_names;
};
struct Section {
  std::uint32_t name, type;
  std::uint64_t flags, address, offset, bytes;
  std::uint32_t link, info;
  std::uint64_t alignment, entry_bytes;
};
struct Symbol {
  std::uint32_t name;
  std::uint8_t info, other;
  std::uint16_t section;
  std::uint64_t value, bytes;
};
// An entry of .nv.info: four bytes and, if `format` is kSized, `bytes` more.
struct Attribute {
  std::uint8_t format, kind;
  std::uint16_t bytes;
};
struct RegisterCount {
  std::uint32_t symbol, registers;
};

constexpr std::uint32_t kSymbols = 2;          // section type
constexpr std::uint8_t kSized = 4;             // attribute format
constexpr std::uint8_t kRegisterCount = 0x2f;  // EIATTR_REGCOUNT

template <class T>
std::optional<T> read(std::string_view from, std::uint64_t at) {
  if (at > from.size() || from.size() - at < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, from.data() + at, sizeof value);
  return value;
}

std::string_view part(std::string_view of, std::uint64_t at, std::uint64_t bytes) {
  if (at > of.size() || of.size() - at < bytes) return {};
  return of.substr(at, bytes);
}

std::string_view text(std::string_view table, std::uint64_t at) {
  if (at >= table.size()) return {};
  const std::string_view rest = table.substr(at);
  return rest.substr(0, rest.find('\0'));
}

struct Sections {
  std::string_view information, symbols, symbol_names;
  std::uint64_t variable_bytes = 0;
};

Sections sections_of(std::string_view code) {
  Sections found;
  const auto header = read<Header>(code, 0);
  if (!header || header->section_bytes != sizeof(Section)) return found;
  std::vector<Section> all;
  for (std::uint64_t i = 0; i < header->section_count; ++i) {
    const auto section = read<Section>(code, header->sections + i * sizeof(Section));
    if (!section) return found;
    all.push_back(*section);
  }
  if (header->section_names >= all.size()) return found;
  const auto contents = [&](const Section& s) { return part(code, s.offset, s.bytes); };
  const std::string_view names = contents(all[header->section_names]);
  for (const Section& s : all) {
    if (s.type == kSymbols && s.link < all.size()) {
      found.symbols = contents(s);
      found.symbol_names = contents(all[s.link]);
    } else if (text(names, s.name) == ".nv.info") {
      found.information = contents(s);
    } else if (text(names, s.name).starts_with(".nv.global")) {
      found.variable_bytes += std::min(s.bytes, ~found.variable_bytes);
    }
  }
  return found;
}

}  // namespace

bool is_machine_code(std::string_view image) {
  return image.starts_with(
      "\x7f"
      "ELF");
}

std::uint64_t variable_bytes_of(std::string_view code) { return sections_of(code).variable_bytes; }

std::map<std::string, std::uint32_t> registers_of(std::string_view code) {
  std::map<std::string, std::uint32_t> registers;
  const Sections sections = sections_of(code);
  for (std::uint64_t at = 0; const auto attribute = read<Attribute>(sections.information, at);) {
    at += sizeof(Attribute);
    if (attribute->format != kSized) continue;
    const auto count = read<RegisterCount>(sections.information, at);
    at += attribute->bytes;
    if (attribute->kind != kRegisterCount || !count || attribute->bytes != sizeof *count) continue;
    const auto symbol =
        read<Symbol>(sections.symbols, std::uint64_t{count->symbol} * sizeof(Symbol));
    if (!symbol) continue;
    const std::string_view name = text(sections.symbol_names, symbol->name);
    if (!name.empty()) registers[std::string(name)] = count->registers;
  }
  return registers;
}

}  // namespace assay::device
