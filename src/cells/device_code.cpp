#include "cells/device_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>

#include "assay/error.h"
#include "assay/random.h"
#include "util/characters.h"

namespace assay::cells {
namespace {

using Renamed = std::map<std::string, std::string, std::less<>>;

bool in_a_ptx_name(char c) { return is_word(c) || c == '$'; }

std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

// --- PTX

// The line, with each mangled name replaced by its new one.
std::string renamed(std::string_view line, const std::string& prefix, Renamed& names) {
  std::string out;
  for_each_name(line, in_a_ptx_name, [&](std::string_view before, std::string_view name, auto) {
    out += before;
    if (!name.starts_with("_Z")) {
      out += name;
      return;
    }
    out += names.try_emplace(std::string(name), fmt::format("{}_{}", prefix, names.size()))
               .first->second;
  });
  return out;
}

constexpr int kIdleRegisters = 4;

std::string idle_instruction(Random& random) {
  return fmt::format("\tmov.b32 \t%idle{}, {};\n", random.below(kIdleRegisters),
                     random.below(1 << 30));
}

// True for instructions after which execution can continue. Nothing is added after one that always
// leaves.
bool goes_on(std::string_view line) {
  const bool instruction = line.size() > 2 && line[0] == '\t' && line.ends_with(';') &&
                           ((line[1] >= 'a' && line[1] <= 'z') || line[1] == '@');
  if (!instruction || line[1] == '@') return instruction;
  return std::ranges::none_of(
      std::initializer_list<std::string_view>{"\tret", "\tbra", "\tbrx", "\texit", "\ttrap"},
      [&](std::string_view leaves) { return line.starts_with(leaves); });
}

// --- the numbers

constexpr std::string_view kBegin = "\nfatbinData:\n", kQuad = ".quad";
constexpr std::size_t kContainerHeader = 16;

template <class T>
T load(const std::string& bytes, std::size_t at) {
  T value{};
  if (at + sizeof value > bytes.size()) throw Error("nvcc's device code is cut off");
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

template <class T>
void store(std::string& bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

std::string bytes_of(std::string_view quads) {
  std::string bytes;
  while (!quads.empty()) {
    std::string_view line = take_line(quads);
    if (!line.starts_with(kQuad)) throw Error("nvcc's device code has not the form of nvcc 13");
    for (std::size_t at = line.find("0x"); at != std::string_view::npos; at = line.find("0x")) {
      line.remove_prefix(at + 2);
      std::uint64_t value = 0;
      std::from_chars(line.data(), line.data() + line.size(), value, 16);
      bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
  }
  return bytes;
}

std::string quads_of(const std::string& bytes) {
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t))
    text += fmt::format("{} {:#018x}\n", kQuad, load<std::uint64_t>(bytes, at));
  return text;
}

// Replaces the text in a container whose only entry is PTX. sim/runtime/fat_binary.h describes the
// format.
std::string with_ptx_disguised(const std::string& container, const Disguise& disguise,
                               Renamed& names) {
  constexpr std::uint16_t kPtx = 1;
  const std::size_t entry = kContainerHeader;
  const auto header = load<std::uint32_t>(container, entry + 4);
  const auto payload = load<std::uint64_t>(container, entry + 8);
  const bool alone = load<std::uint32_t>(container, 0) == 0xba55ed50 &&
                     load<std::uint16_t>(container, entry) == kPtx &&
                     load<std::uint64_t>(container, 8) == header + payload &&
                     entry + header + payload <= container.size();
  if (!alone) throw Error("nvcc's device code is not one PTX, as it is asked for");
  const std::string_view whole = std::string_view(container).substr(entry + header, payload);
  std::string text = disguised_ptx(whole.substr(0, whole.find('\0')), disguise, names);
  text.resize((text.size() / 8 + 1) * 8);  // ends with a NUL
  std::string made = container.substr(0, entry + header) + text;
  store<std::uint64_t>(made, entry + 8, text.size());
  store<std::uint64_t>(made, 8, header + text.size());
  return made;
}

// Renames the strings by which host code registers names.
std::string with_names(std::string_view host, const Renamed& names) {
  constexpr std::string_view kText = "\t.string\t\"";
  std::string out;
  while (!host.empty()) {
    const std::string_view line = take_line(host);
    const bool text = line.starts_with(kText) && line.ends_with('"');
    const auto found =
        text ? names.find(line.substr(kText.size(), line.size() - kText.size() - 1)) : names.end();
    out += found == names.end() ? std::string(line) : fmt::format("{}{}\"", kText, found->second);
    out += '\n';
  }
  return out;
}

}  // namespace

std::string disguised_ptx(std::string_view ptx, const Disguise& disguise, Renamed& names) {
  Random random(disguise.seed);
  const std::int64_t one_in = 3 + random.below(14);
  std::string out;
  int depth = 0;
  while (!ptx.empty()) {
    const std::string_view line = take_line(ptx);
    const int before = depth;
    depth += static_cast<int>(std::ranges::count(line, '{') - std::ranges::count(line, '}'));
    out += renamed(line, disguise.prefix, names) + "\n";
    if (before == 0 && line == "{")
      out += fmt::format("\t.reg .b32 \t%idle<{}>;\n", kIdleRegisters);
    if (before == 1 && depth == 1 && goes_on(line) && random.below(one_in) == 0)
      out += idle_instruction(random);
  }
  return out;
}

std::string with_disguised_device_code(std::string_view assembly, const Disguise& disguise) {
  const std::size_t begin = assembly.find(kBegin);
  if (begin == std::string_view::npos) return std::string(assembly);
  const std::size_t first = begin + kBegin.size(), end = assembly.find("\n.text", first);
  if (end == std::string_view::npos) throw Error("nvcc's device code has no end");
  Renamed names;
  const std::string container =
      with_ptx_disguised(bytes_of(assembly.substr(first, end - first)), disguise, names);
  return std::string(assembly.substr(0, first)) + quads_of(container) +
         with_names(assembly.substr(end + 1), names);
}

}  // namespace assay::cells
