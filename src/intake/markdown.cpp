#include "intake/markdown.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <span>

#include "assay/error.h"
#include "intake/blocks.h"
#include "intake/code.h"
#include "util/text.h"

namespace assay::intake {
namespace {

constexpr std::size_t kLargestAnswer = 16u << 20;

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

// The language of a block according to its fence.
enum class Fenced : std::uint8_t { cpp, cuda, undecided, other };

constexpr std::size_t kLongestInfo = 300;  // of a fence; what stands behind is not read

// ```cpp, ```{.cpp}, ```cpp:submission.cpp, ```C++,linenos
std::string language_word(const std::string& info) {
  const std::string word = lower(info.substr(0, kLongestInfo));
  const std::size_t begin = std::min(word.find_first_not_of("{."), word.size());
  return word.substr(begin, word.find_first_of(" \t:,;{}[]()=", begin) - begin);
}

Fenced fenced_as(const std::string& info) {
  const std::string word = language_word(info);
  if (is_one_of(word, {"cpp", "c++", "cxx", "cc", "c", "h", "hpp", "h++", "cplusplus", "c++20",
                       "cpp20", "c++17", "cpp17", "objective-c++"}))
    return Fenced::cpp;
  if (is_one_of(word, {"cuda", "cu", "cuh", "cuda-c", "cuda-c++", "cuda-cpp", "cudacpp", "nvcc"}))
    return Fenced::cuda;
  if (is_one_of(word, {"", "text", "txt", "plain", "plaintext", "code", "title", "filename", "file",
                       "name", "path"}))
    return Fenced::undecided;
  return file_names_in(word).empty() ? Fenced::other : Fenced::undecided;
}

// Blocks in these languages are never source files, even with a file name in the fence.
bool is_command_or_change(const std::string& info) {
  return is_one_of(language_word(info), {"diff", "patch", "sh", "bash", "shell", "zsh", "fish",
                                         "console", "terminal", "powershell", "ps1", "bat", "make",
                                         "makefile", "cmake", "python", "py", "json"});
}

bool is_diff(const std::string& text) {
  return text.starts_with("@@ -") || text.find("\n@@ -") != std::string::npos;
}

std::string first_line(const std::string& text) {
  const std::size_t from = text.find_first_not_of(" \t\n");
  if (from == std::string::npos) return "";
  return text.substr(from, text.find('\n', from) - from);
}

bool ends_with_any(const std::string& name, std::initializer_list<std::string_view> endings) {
  return std::ranges::any_of(endings, [&](std::string_view e) { return name.ends_with(e); });
}

// A block that may be a part of the answer.
struct Part {
  const Block* block = nullptr;
  std::string name;                    // a name allowed in a submission; "" if it names none
  std::string named;                   // where the name was: "in its fence"
  std::optional<Language> language;    // if known
  std::vector<std::string> defined{};  // entry points
  bool all_defined = false;
  bool tests = false;  // the submission's own tests

  bool defines() const { return !defined.empty(); }
};

struct Label {
  std::string name, where;
};
constexpr const char* kAbove = "in the line above";

Label label_of(const Block& block) {
  if (block.info.size() <= kLongestInfo) {
    const auto names = file_names_in(block.info);
    if (names.size() == 1) return {names.front(), "in its fence"};
  }
  if (std::string name = file_named_by_comment(first_line(block.text)); !name.empty())
    return {name, "in its first line"};
  if (std::string name = file_named_by(block.above); !name.empty()) return {name, kAbove};
  return {};
}

bool is_header(const std::string& name) {
  return ends_with_any(name, {".h", ".hpp", ".cuh", ".inl"});
}

// Whether the name indicates C or C++ code although it is not allowed in a submission.
bool is_other_code_name(const std::string& name) {
  return ends_with_any(lower(name), {".c", ".cxx", ".c++", ".hh", ".hxx"});
}

std::optional<Language> language_of(const Part& part, Fenced fenced, const std::string& bare) {
  if (ends_with_any(part.name, {".cu", ".cuh"})) return Language::cuda;
  if (ends_with_any(part.name, {".cpp", ".cc"})) return Language::cpp;
  if (fenced == Fenced::cuda || has_word(bare, "__global__")) return Language::cuda;
  if (fenced == Fenced::cpp) return Language::cpp;
  return std::nullopt;
}

class Extractor {
 public:
  Extractor(std::string_view text, std::optional<Language> language, const ExtractOptions& options)
      : chat_(read_chat(text)), wanted_(language), options_(options) {}

  Extracted run() {
    if (chat_.blocks.size() > kMostBlocks)
      throw Error(fmt::format("the answer has more than {} fenced blocks", kMostBlocks));
    if (!options_.blocks.empty()) return chosen();
    for (const Block& block : chat_.blocks) consider(block);
    if (std::ranges::none_of(parts_, &Part::defines))
      std::ranges::move(doubted_, std::back_inserter(parts_));
    if (parts_.empty()) return without_blocks();
    settle_language();
    drop_copies();
    return has_main() ? by_names() : by_contents();
  }

 private:
  // --- what may be a part ------------------------------------------------------

  void consider(const Block& block) {
    const Fenced fenced = fenced_as(block.info);
    const Label label = label_of(block);
    const bool source = objection_to_name(label.name).empty() && is_source_name(label.name);
    if (is_diff(block.text)) return;
    if (fenced == Fenced::other && (!source || label.where != "in its fence")) return;
    if (is_command_or_change(block.info)) return;
    // The name is not a source's: a script, notes, or the interface, which the harness provides. But
    // a sentence before the answer may mention these too.
    const bool doubted =
        !label.name.empty() && !is_source_name(label.name) && !is_other_code_name(label.name);
    if (doubted && label.where != kAbove) return;
    Part part{.block = &block, .name = {}, .named = {}, .language = {}};
    if (source) {
      part.name = label.name;
      part.named = label.where;
    }
    const std::string bare = without_comments_and_literals(block.text);
    part.language = language_of(part, fenced, bare);
    part.defined = functions_defined(bare, options_.entry_points);
    part.all_defined = part.defines() && part.defined.size() == options_.entry_points.size();
    const bool unnamed_tests =
        part.name.empty() && !part.defines() && !functions_defined(bare, {kSelfTest}).empty();
    part.tests = is_tests_file(part.name) || unnamed_tests;
    if (unnamed_tests) part.name = tests_file(wanted_.value_or(Language::cpp));
    if (fenced == Fenced::undecided && part.name.empty() && !part.defines() &&
        !looks_like_code(bare))
      return;
    if (!doubted) {
      parts_.push_back(std::move(part));
    } else if (part.defines()) {
      doubted_.push_back(std::move(part));
    }
  }

  static bool looks_like_code(const std::string& bare) {
    return bare.find("#include") != std::string::npos || has_word(bare, "__global__") ||
           bare.find("extern \"") != std::string::npos;
  }

  // Drops parts known to be in the other language, unless nothing would be left that could be the
  // answer.
  void settle_language() {
    if (!wanted_) return;
    const auto other = [&](const Part& p) {
      return !p.tests && p.language && *p.language != *wanted_;
    };
    const bool any_defines = std::ranges::any_of(parts_, &Part::defines);
    const bool enough = std::ranges::any_of(parts_, [&](const Part& p) {
      return !p.tests && !other(p) && (p.defines() || !any_defines);
    });
    if (enough) std::erase_if(parts_, other);
  }

  // Keeps one of several identical texts, preferably a named one.
  void drop_copies() {
    std::vector<Part> kept;
    for (Part& part : parts_) {
      const auto same = std::ranges::find_if(kept, [&](const Part& other) {
        return other.block->text == part.block->text &&
               (other.name == part.name || other.name.empty() || part.name.empty());
      });
      if (same == kept.end()) {
        kept.push_back(std::move(part));
      } else if (same->name.empty() && !part.name.empty()) {
        *same = std::move(part);
      }
    }
    parts_ = std::move(kept);
  }

  // --- the answer --------------------------------------------------------------

  static bool is_main(const Part& p) {
    return p.name == main_file(Language::cpp) || p.name == main_file(Language::cuda);
  }
  bool has_main() const { return std::ranges::any_of(parts_, is_main) && !main_is_of_another(); }

  // The main file is named for the other language, but its contents are in the wanted one.
  bool main_is_of_another() const {
    return wanted_ && std::ranges::none_of(
                          parts_, [&](const Part& p) { return p.name == main_file(*wanted_); });
  }

  Extracted by_names() {
    std::vector<const Part*> taken = named_parts({});
    const bool defined = std::ranges::any_of(taken, [](const Part* p) { return p->defines(); });
    if (!defined) {
      std::vector<const Part*> rivals;
      for (const Part& p : parts_) {
        if ((p.name.empty() && p.defines()) || is_main(p)) rivals.push_back(&p);
      }
      if (std::ranges::any_of(rivals, [](const Part* p) { return p->defines(); }))
        ambiguous(rivals, "names say one thing and contents another");
    }
    return assemble(taken, wanted_.value_or(language_by_main(taken)));
  }

  static Language language_by_main(const std::vector<const Part*>& taken) {
    const bool cpp = std::ranges::any_of(
        taken, [](const Part* p) { return p->name == main_file(Language::cpp); });
    return cpp ? Language::cpp : Language::cuda;
  }

  // One part for each name, including tests, except the name `except`. Of several with the same
  // name, the one that defines entry points.
  std::vector<const Part*> named_parts(const std::string& except) {
    std::map<std::string, std::vector<const Part*>> by_name;
    for (const Part& p : parts_) {
      if (!p.name.empty() && p.name != except) by_name[p.name].push_back(&p);
    }
    std::vector<const Part*> taken;
    for (auto& [name, same] : by_name)
      taken.push_back(same.size() == 1 ? same.front() : best(same));
    return taken;
  }

  const Part* best(const std::vector<const Part*>& parts) {
    const auto only = [&](auto has) -> const Part* {
      const auto n = std::ranges::count_if(parts, has);
      return n == 1 ? *std::ranges::find_if(parts, has) : nullptr;
    };
    if (const Part* p = only([](const Part* q) { return q->all_defined; })) return p;
    const bool any_whole = std::ranges::any_of(parts, [](const Part* p) { return p->all_defined; });
    if (const Part* p = any_whole ? nullptr : only([](const Part* q) { return q->defines(); }))
      return p;
    std::vector<const Part*> rivals = parts;
    if (any_whole) std::erase_if(rivals, [](const Part* p) { return !p->all_defined; });
    ambiguous(rivals, parts.front()->name.empty() || parts.front()->name != parts.back()->name
                          ? "several blocks could be the answer"
                          : fmt::format("several blocks are {}", parts.front()->name));
  }

  Extracted by_contents() {
    std::vector<const Part*> candidates;
    for (const Part& p : parts_) {
      if (!p.tests && !is_header(p.name)) candidates.push_back(&p);
    }
    const auto used = [&](const Part& header) {
      return std::ranges::any_of(candidates, [&](const Part* p) {
        return p->block->text.find(header.name) != std::string::npos;
      });
    };
    if (std::ranges::none_of(candidates, &Part::defines)) {
      // A header may contain everything, or only be what the line above speaks of.
      std::vector<const Part*> headers;
      for (const Part& p : parts_) {
        if (is_header(p.name) && !p.tests && (candidates.empty() || (p.defines() && !used(p))))
          headers.push_back(&p);
      }
      if (!headers.empty()) candidates = std::move(headers);
    }
    if (candidates.empty()) throw NoAnswer("it holds tests, and nothing that they could test");
    const Part* main = candidates.size() == 1 ? candidates.front() : best(candidates);
    why_main_ = candidates.size() == 1
                    ? "the only one with code"
                    : fmt::format("the only one that defines {}", defined_by(*main));
    std::vector<const Part*> taken = named_parts(main->name);
    std::erase_if(taken, [&](const Part* p) { return is_main(*p); });
    taken.insert(taken.begin(), main);
    main_ = main;
    return assemble(taken, wanted_.value_or(main->language.value_or(Language::cpp)));
  }

  // "forward and backward", "create, destroy, append and 13 more"
  static std::string defined_by(const Part& part) {
    constexpr std::size_t kShown = 3;
    const auto shown = std::span(part.defined).first(std::min(kShown, part.defined.size()));
    if (part.defined.size() > kShown)
      return fmt::format("{} and {} more", fmt::join(shown, ", "), part.defined.size() - kShown);
    return fmt::format("{}", fmt::join(shown, " and "));
  }

  Extracted assemble(const std::vector<const Part*>& taken, Language language) {
    Extracted result;
    result.language = language;
    std::vector<std::string> origins;
    for (const Part* part : taken) {
      std::string name = part == main_ ? main_file(language) : part->name;
      // Unnamed tests are in the language of the code they test.
      if (part->tests && part->named.empty()) name = tests_file(language);
      result.files.push_back({name, part->block->text});
      origins.push_back(origin(*part, name));
      result.cut_off = result.cut_off || !part->block->closed;
    }
    std::ranges::stable_sort(result.files, {},
                             [&](const SourceFile& f) { return f.name != main_file(language); });
    result.how = fmt::format("{}{}", fmt::join(origins, "; "), cut_off_text(result));
    return result;
  }

  std::string origin(const Part& part, const std::string& name) const {
    const std::string why = &part == main_       ? why_main_
                            : part.named.empty() ? "which defines " + std::string(kSelfTest)
                                                 : "named " + part.named;
    return fmt::format("{}: the fenced block at line {}, {}", name, part.block->line, why);
  }

  // --- other ways ----------------------------------------------------------------

  // Takes exactly the chosen blocks: named ones are those files, all others the main file.
  Extracted chosen() {
    Extracted result;
    std::vector<std::string> origins;
    std::optional<Language> language = wanted_;
    std::map<std::string, std::string> files;  // "": without a name
    for (const std::size_t number : options_.blocks) {
      if (number < 1 || number > chat_.blocks.size())
        throw Error(
            fmt::format("there is no block {}: the answer has {}", number, chat_.blocks.size()));
      const Block& block = chat_.blocks[number - 1];
      Part part{.block = &block, .name = label_of(block).name, .named = {}, .language = {}};
      if (!objection_to_name(part.name).empty() || !is_source_name(part.name)) part.name.clear();
      const bool decides = !is_tests_file(part.name) && !is_header(part.name) && !wanted_;
      const auto own =
          language_of(part, fenced_as(block.info), without_comments_and_literals(block.text));
      if (decides && own && language != Language::cuda) language = own;
      if (is_main(part)) part.name.clear();
      files[part.name] += block.text;
      result.cut_off = result.cut_off || !block.closed;
      origins.push_back(fmt::format("{} at line {}", number, block.line));
    }
    result.language = language.value_or(Language::cpp);
    if (!files.contains("")) {
      const auto others =
          std::ranges::count_if(files, [](const auto& f) { return !is_tests_file(f.first); });
      if (others != 1) throw Error("of the chosen blocks none is the main file: choose one more");
      const auto main =
          std::ranges::find_if(files, [](const auto& f) { return !is_tests_file(f.first); });
      files[""] = std::move(main->second);
      files.erase(main);
    }
    for (auto& [name, text] : files)
      result.files.push_back({name.empty() ? main_file(result.language) : name, std::move(text)});
    result.how =
        fmt::format("as chosen, from the fenced block{} {}{}", origins.size() > 1 ? "s" : "",
                    fmt::join(origins, ", "), cut_off_text(result));
    return result;
  }

  static const char* cut_off_text(const Extracted& result) {
    return result.cut_off ? "; the answer was cut off: its last block is not closed" : "";
  }

  // Takes code outside any fence.
  Extracted without_blocks() {
    const std::string_view spoken = trimmed(chat_.spoken);
    if (spoken.empty()) {
      throw NoAnswer(chat_.ends_in_thought ? "it ends within its thoughts" : "it is empty");
    }
    if (!chat_.blocks.empty()) {
      throw NoAnswer(
          fmt::format("none of its {} fenced blocks holds C++ or CUDA", chat_.blocks.size()));
    }
    const std::string bare = without_comments_and_literals(spoken);
    const bool defines = !functions_defined(bare, options_.entry_points).empty();
    if (!defines && bare.find("#include") == std::string::npos) {
      throw NoAnswer(chat_.ends_in_thought ? "it ends within its thoughts"
                                           : "it holds no fenced block and no code");
    }
    if (!begins_like_code(first_line(std::string(spoken)))) {
      throw Ambiguous(
          "code stands between prose, in no fenced block: put the code alone into a file and add "
          "that");
    }
    Extracted result;
    result.language =
        wanted_.value_or(has_word(bare, "__global__") ? Language::cuda : Language::cpp);
    result.files.push_back({main_file(result.language), std::string(spoken) + "\n"});
    result.how =
        fmt::format("{}: the whole text, which has no fenced block", main_file(result.language));
    return result;
  }

  static bool begins_like_code(std::string_view line) {
    constexpr std::array<std::string_view, 14> kBeginnings{
        "#include",   "#pragma", "#define",  "#if",     "//",      "/*",       "extern ",
        "namespace ", "using ",  "template", "static ", "struct ", "typedef ", "__global__"};
    return std::ranges::any_of(kBeginnings, [&](auto b) { return line.starts_with(b); });
  }

  [[noreturn]] void ambiguous(const std::vector<const Part*>& parts, const std::string& what) {
    constexpr std::size_t kShown = 20, kColumns = 50;
    TextTable table({"block", "line", "fence", "file", "bytes", "functions", "first line"});
    for (std::size_t i = 0; i < std::min(parts.size(), kShown); ++i) {
      const Part& p = *parts[i];
      const auto shown = [](const std::string& s, std::size_t columns) {
        return s.empty() ? std::string("-") : printable(s, 1, columns);
      };
      table.add({std::to_string(p.block->number), std::to_string(p.block->line),
                 shown(p.block->info, 24), shown(p.name, kColumns),
                 std::to_string(p.block->text.size()),
                 fmt::format("{} of {}", p.defined.size(), options_.entry_points.size()),
                 shown(first_line(p.block->text), kColumns)});
    }
    std::string text = fmt::format(
        "{}: choose one with --block N, or several, which are joined\n{}", what, table.str());
    if (parts.size() > kShown) text += fmt::format("and {} more\n", parts.size() - kShown);
    text.pop_back();
    throw Ambiguous(text);
  }

  const Chat chat_;
  const std::optional<Language> wanted_;
  const ExtractOptions& options_;
  std::vector<Part> parts_;
  std::vector<Part> doubted_;   // the answer only if no part is
  const Part* main_ = nullptr;  // set if chosen by its contents, whatever its name
  std::string why_main_;
};

}  // namespace

Extracted extract(std::string_view markdown, std::optional<Language> language,
                  const ExtractOptions& options) {
  if (markdown.size() > kLargestAnswer)
    throw Error(fmt::format("the answer is larger than {} MiB", kLargestAnswer >> 20));
  Extracted result = Extractor(markdown, language, options).run();
  if (result.files.size() > kMostSources)
    throw Error(fmt::format("the answer has more than {} files", kMostSources));
  for (const SourceFile& file : result.files) {
    if (file.contents.size() > kLargestSource)
      throw Error(fmt::format("{} would be larger than {} MiB", file.name, kLargestSource >> 20));
  }
  return result;
}

}  // namespace assay::intake
