#include "cells/test_library.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <random>
#include <set>

#include "assay/abi.h"
#include "assay/error.h"
#include "assay/random.h"
#include "util/characters.h"
#include "util/file_lock.h"
#include "util/files.h"

namespace assay::cells {
namespace fs = std::filesystem;
namespace {

using Names = std::set<std::string, std::less<>>;

bool in_a_name(char c) { return is_word(c) || c == '.' || c == '$'; }

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool is_directive(std::string_view line, std::string_view name) {
  if (!line.starts_with('\t')) return false;
  line.remove_prefix(1);
  return line.starts_with(name) && (line.size() == name.size() || !in_a_name(line[name.size()]));
}

// The operand of the directive, up to a comma.
std::string_view operand(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(" \t", line.find_first_of(" \t", 1));
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_first_of(", \t", begin) - begin);
}

// The "name" of "name:"; empty for other lines.
std::string_view label_of(std::string_view line) {
  const auto end =
      static_cast<std::size_t>(std::ranges::find_if_not(line, in_a_name) - line.begin());
  const bool is_label = end > 0 && end < line.size() && line[end] == ':';
  return is_label ? line.substr(0, end) : std::string_view{};
}

Names defined_in(const std::vector<std::string_view>& lines) {
  Names names;
  for (const std::string_view line : lines) {
    if (const auto label = label_of(line); !label.empty()) names.emplace(label);
    if (is_directive(line, ".set")) names.emplace(operand(line));
  }
  return names;
}

bool holds_text(std::string_view line) {
  const auto is = [&](const char* name) { return is_directive(line, name); };
  return is(".string") || is(".ascii") || is(".asciz") || is(".file") || is(".ident");
}

// The line with the prefix put before every name in `from`.
std::string renamed(std::string_view line, const Names& from, const std::string& prefix) {
  std::string out;
  for_each_name(line, in_a_name, [&](std::string_view before, std::string_view name, auto) {
    out += before;
    if (from.contains(name)) out += prefix;
    out += name;
  });
  return out;
}

// Keeps the linker from merging a section with one of the same name in another file: an inline
// function of the same name in two implementations need not be the same code.
std::string not_merged(std::string line) {
  const std::size_t flags = line.find(",\"");
  const std::size_t end = flags == std::string::npos ? flags : line.find('"', flags + 2);
  if (end == std::string::npos) return line;
  const std::size_t group = line.substr(0, end).find('G', flags);
  if (group == std::string::npos) return line;
  line.erase(group, 1);
  for (int field = 0; field < 2; ++field) line.erase(line.rfind(','));  // group, comdat
  return line;
}

bool is_instruction(std::string_view line) {
  return line.size() > 1 && line[0] == '\t' && line[1] >= 'a' && line[1] <= 'z';
}

// An instruction prefix on its own line, which belongs to the next line.
bool is_prefix(std::string_view line) {
  constexpr std::array kPrefixes{"rex64", "data16", "lock", "rep", "repz", "repnz", "notrack"};
  return std::ranges::any_of(kPrefixes, [&](const char* p) { return is_directive(line, p); });
}

std::string idle_instruction(Random& random) {
  constexpr std::array kIdle{"nop",
                             "xchgw\t%ax, %ax",
                             "nopl\t(%rax)",
                             "nopl\t8(%rax)",
                             "nopw\t0(%rax,%rax,1)",
                             "nopl\t256(%rax)",
                             "leaq\t0(%rsi), %rsi",
                             "movq\t%rdi, %rdi"};
  const auto which = static_cast<std::size_t>(random.below(std::ssize(kIdle)));
  return fmt::format("\t{}\n", kIdle[which]);
}

std::string idle_instructions(Random& random, std::int64_t most) {
  std::string text;
  for (std::int64_t i = random.below(most + 1); i > 0; --i) text += idle_instruction(random);
  return text;
}

// Whether the line only makes one of these names visible in other files.
bool shares(std::string_view line, const Names& own) {
  const bool shows = is_directive(line, ".globl") || is_directive(line, ".weak") ||
                     is_directive(line, ".hidden") || is_directive(line, ".protected");
  return shows && own.contains(operand(line));
}

// The line, now `text`, without what would have the linker merge its section or its object with
// those of other files.
std::string kept_apart(std::string_view line, std::string text) {
  if (is_directive(line, ".section")) text = not_merged(std::move(text));
  constexpr std::string_view kUnique = "@gnu_unique_object";
  if (const std::size_t at = text.find(kUnique); at != std::string::npos && !holds_text(line))
    text.replace(at, kUnique.size(), "@object");
  return text;
}

std::string global_name(const std::string& name) {
  return fmt::format("\t.globl\t{0}\n\t.hidden\t{0}\n\t.type\t{0}, @function\n", name);
}

std::string stub(const std::string& name, const std::string& body, Random& random) {
  constexpr std::int64_t kLongest = 40;
  return "\t.text\n\t.p2align 4\n" + global_name(name) +
         fmt::format("{}:\n\t.cfi_startproc\n{}\tjmp\t{}\n\t.cfi_endproc\n\t.size\t{},.-{}\n", name,
                     idle_instructions(random, kLongest), body, name, name);
}

// Copies lines, inserting instructions without effect into code.
class Padder {
 public:
  explicit Padder(std::uint64_t seed) : random_(seed), one_in_(3 + random_.below(14)) {}

  void add(std::string_view original, const std::string& line, std::string& out) {
    follow(original);
    const bool code = in_code_ && !in_inline_assembly_ && is_instruction(original);
    if (code && after_instruction_ && random_.below(one_in_) == 0) out += idle_instruction(random_);
    after_instruction_ = code && !is_prefix(original);
    out += line;
    out += '\n';
  }

 private:
  void follow(std::string_view line) {
    if (line.starts_with("#APP")) in_inline_assembly_ = true;
    if (line.starts_with("#NO_APP")) in_inline_assembly_ = false;
    if (is_directive(line, ".text")) in_code_ = true;
    if (is_directive(line, ".data") || is_directive(line, ".bss")) in_code_ = false;
    if (is_directive(line, ".section")) in_code_ = operand(line).starts_with(".text");
  }

  Random random_;
  std::int64_t one_in_;
  bool in_code_ = true, in_inline_assembly_ = false, after_instruction_ = false;
};

constexpr std::size_t kMarkBytes = 32;

std::string mark_bytes(const std::string& mark) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < mark.size(); i += 2)
    bytes += static_cast<char>(std::stoi(mark.substr(i, 2), nullptr, 16));
  return bytes;
}

std::string new_secret() {
  std::random_device device;
  std::string text;
  for (int i = 0; i < 8; ++i) text += fmt::format("{:08x}", device());
  return text;
}

}  // namespace

std::vector<std::string> abi_functions(const ChallengeSpec& spec) {
  std::vector<std::string> functions = spec.required_symbols;
  functions.insert(functions.end(), spec.optional_symbols.begin(), spec.optional_symbols.end());
  return functions;
}

std::string test_secret(const fs::path& folder) {
  static const std::string of_this_process = new_secret();
  if (folder.empty()) return of_this_process;
  const fs::path file = folder / "own-tests.secret";
  const FileLock lock(folder / "own-tests.secret.lock");
  std::error_code ec;
  if (fs::exists(file, ec)) {
    if (std::string secret = read_file(file); secret.size() == of_this_process.size())
      return secret;
  }
  write_file_atomically(file, of_this_process, 0600);
  return of_this_process;
}

std::vector<bool> functions_in(std::string_view assembly,
                               const std::vector<std::string>& functions) {
  const Names names = defined_in(lines_of(assembly));
  std::vector<bool> has;
  for (const std::string& function : functions) has.push_back(names.contains(function));
  return has;
}

std::string disguised(std::string_view assembly, const std::vector<std::string>& functions,
                      const Disguise& disguise) {
  const std::vector<std::string_view> lines = lines_of(assembly);
  const Names defined = defined_in(lines), abi(functions.begin(), functions.end());
  Random random(disguise.seed);
  const std::string prefix = disguise.prefix + (disguise.through_stub ? "_body_" : "_");
  Padder padder(random.next());
  std::string out;
  for (const std::string_view line : lines) {
    if (shares(line, defined)) continue;
    std::string text = holds_text(line) ? std::string(line) : renamed(line, abi, prefix);
    padder.add(line, kept_apart(line, std::move(text)), out);
  }
  for (const std::string& function : functions) {
    if (!defined.contains(function)) continue;
    const std::string name = disguise.prefix + "_" + function;
    out += disguise.through_stub ? stub(name, prefix + function, random) : global_name(name);
  }
  return out;
}

std::string with_local_names(std::string_view assembly, const std::vector<std::string>& shared) {
  const std::vector<std::string_view> lines = lines_of(assembly);
  Names own = defined_in(lines);
  for (const std::string& name : shared) own.erase(name);
  std::string out;
  for (const std::string_view line : lines) {
    if (!shares(line, own)) out += kept_apart(line, std::string(line)) + '\n';
  }
  return out;
}

std::vector<std::string> foreign_names(std::string_view assembly) {
  const std::vector<std::string_view> lines = lines_of(assembly);
  const Names own = defined_in(lines);
  Names foreign;
  for (const std::string_view line : lines) {
    if (holds_text(line)) continue;
    for_each_name(line, in_a_name, [&](auto, std::string_view name, std::string_view behind) {
      const bool linked = behind.starts_with("@PLT") || behind.starts_with("@GOT") ||
                          behind.starts_with("@tls") || behind.starts_with("@gottpoff");
      if (linked && !own.contains(name)) foreign.emplace(name);
    });
  }
  return {foreign.begin(), foreign.end()};
}

std::string switchboard(const std::vector<std::string>& functions,
                        const std::vector<TestSlot>& slots, const std::string& mark) {
  const std::string bytes = mark_bytes(mark), board = "board_" + mark;
  std::string text = "\t.text\n";
  text += fmt::format("\t.p2align 4\nabsent:\n\tmovl\t${}, %eax\n\tret\n",
                      static_cast<int>(ASSAY_ENOTSUP));
  for (std::size_t i = 0; i < functions.size(); ++i) {
    text += fmt::format(
        "\t.p2align 4\n\t.globl\t{0}\n\t.type\t{0}, @function\n{0}:\n\tleaq\t{1}+{2}(%rip), %r11\n"
        "\tmovslq\t(%r11), %r10\n\taddq\t%r10, %r11\n\tjmp\t*%r11\n\t.size\t{0},.-{0}\n",
        functions[i], board, kMarkBytes + 4 * i);
  }
  text += "\t.data\n\t.p2align 5\n" + board + ":\n";
  for (const char c : bytes) text += fmt::format("\t.byte\t{}\n", static_cast<unsigned char>(c));
  text += fmt::format("\t.zero\t{}\n", 4 * functions.size());
  for (const TestSlot& slot : slots) {
    for (std::size_t i = 0; i < functions.size(); ++i) {
      const std::string name = slot.has[i] ? slot.prefix + "_" + functions[i] : "absent";
      if (slot.has[i]) text += fmt::format("\t.hidden\t{}\n", name);
      text += fmt::format("\t.long\t{} - .\n", name);
    }
  }
  return text + "\t.section\t.note.GNU-stack,\"\",@progbits\n";
}

std::string switched(std::string library, const std::string& mark, std::size_t functions,
                     std::size_t slots, std::size_t slot) {
  const std::string bytes = mark_bytes(mark);
  const std::size_t board = library.find(bytes), active = board + kMarkBytes,
                    table = active + 4 * functions, end = table + 4 * functions * slots;
  if (board == std::string::npos || library.find(bytes, board + 1) != std::string::npos ||
      end > library.size() || slot >= slots)
    throw Error("a library of tests has not the form that it was given");
  for (std::size_t i = 0; i < functions; ++i) {
    // Each entry is relative to its own position.
    const std::size_t from = table + 4 * (slot * functions + i), to = active + 4 * i;
    std::int32_t distance = 0;
    std::memcpy(&distance, library.data() + from, sizeof distance);
    distance += static_cast<std::int32_t>(from - to);
    std::memcpy(library.data() + to, &distance, sizeof distance);
  }
  std::memset(library.data() + board, 0, kMarkBytes);
  std::memset(library.data() + table, 0, end - table);
  return library;
}

}  // namespace assay::cells
