#include "task/task.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "assay/error.h"
#include "build/builder.h"
#include "spec/spec.h"
#include "spec/tests_in_cuda.h"
#include "task/flatten.h"
#include "task/grading_text.h"
#include "task/public_text.h"
#include "task/skeleton.h"
#include "util/files.h"
#include "util/sha256.h"

namespace assay::task {
namespace fs = std::filesystem;
namespace {

std::string ending_in_newline(std::string text) {
  if (!text.empty() && text.back() != '\n') text += '\n';
  return text;
}

constexpr char kInterfaceHeading[] =
    "\n## abi.h\n\nThe whole interface. It needs no other file.\n\n";
constexpr char kBuildHeading[] =
    "\n## Build\n\nThis compiles an answer as it will be compiled, in a folder with `abi.h`:\n\n";

std::string block(const char* language, const std::string& text) {
  return fmt::format("```{}\n{}```\n", language, ending_in_newline(text));
}

std::string shared_text(const Source& source, const char* name) {
  return ending_in_newline(read_file(source.root / "challenges" / "shared" / name));
}

Device device_of(Language language) {
  return language == Language::cpp ? Device::cpu : Device::sim;
}

std::string own_text(const Source& source, const char* name) {
  return ending_in_newline(read_file(fs::path(source.spec.directory) / name));
}

// The file that explains own tests in a language.
const char* tests_text(const ChallengeSpec& spec, Language language) {
  if (language == Language::cpp) return "prompt_tests.md";
  return has_tests_in_cuda(spec) ? "prompt_tests_cuda.md" : "prompt_no_tests_cuda.md";
}

// The challenge's text speaks of C++ on a CPU. Whoever is asked for CUDA alone reads so at once.
std::string challenge_text(const Source& source, const std::vector<Language>& languages) {
  constexpr const char* kInCuda =
      "Your answer is in CUDA C++: `submission.cu`. This text speaks of C++ and of a CPU; the "
      "section \"In CUDA\" says what differs.\n\n";
  std::string text = own_text(source, "prompt.md");
  const std::size_t behind_title = text.find("\n\n") + 2;
  if (std::ranges::find(languages, Language::cpp) == languages.end())
    text.insert(behind_title, kInCuda);
  return text;
}

// The section, whose heading names the language where the prompt is for several.
std::string headed(std::string section, Language language, const std::vector<Language>& languages) {
  if (languages.size() > 1)
    section.insert(section.find('\n'), language == Language::cpp ? " in C++" : " in CUDA");
  return section;
}

std::string prompt_with(const Source& source, const std::string& interface,
                        const Handout& handout) {
  const std::vector<Language>& languages = handout.languages;
  std::string text = challenge_text(source, languages);
  if (handout.hints) text += "\n" + own_text(source, "hints.md");
  text += "\n" + shared_text(source, "prompt_rules.md");
  std::string commands;
  for (const Language language : languages) {
    if (language == Language::cuda) text += "\n" + shared_text(source, "prompt_cuda.md");
    commands += public_command(language) + "\n";
  }
  for (const Language language : languages) {
    const ChallengeSpec graded = spec_for(device_of(language), source.spec);
    text += "\n" + headed(grading_text(graded, source.challenge, language), language, languages);
  }
  for (const Language language : languages)
    text += "\n" + shared_text(source, tests_text(source.spec, language));
  const ChallengeSpec handed_out = public_spec(source.spec, source.published);
  for (const Language language : languages) {
    text += "\n" + headed(public_text(spec_for(device_of(language), handed_out), source.challenge,
                                      source.published, language),
                          language, languages);
  }
  return text + kInterfaceHeading + block("c", interface) + kBuildHeading + block("sh", commands);
}

std::string interface_of(const Source& source) {
  return flattened(fs::path(source.spec.directory) / "abi.h", source.root / "include");
}

constexpr char kScripts[] =
    "\n`./build.sh` does that. `./check.sh` runs `assay check` on this folder, with whatever "
    "options "
    "it is given.\n";

// If assay is not installed, the script says so and what can be done without it.
std::string check_script(const std::string& challenge, const CheckProgram& assay) {
  return fmt::format(
      "#!/bin/sh\n"
      "# Compiles the answer and runs it, isolated, on the public cases that PROMPT.md lists. "
      "Options\n"
      "# go to `assay check`: --json, --device sim. The variable ASSAY names another assay.\n"
      "cd \"$(dirname \"$0\")\" || exit 2\n"
      "if [ -n \"${{ASSAY:-}}\" ]; then\n"
      "  exec \"$ASSAY\" check . --challenge {0} \"$@\"\n"
      "elif [ -x {1} ]; then\n"
      "  exec {1}{2} check . --challenge {0} \"$@\"\n"
      "fi\n"
      "echo 'check.sh: assay is no longer where it was: set ASSAY to the program. Without it,' "
      ">&2\n"
      "echo './build.sh compiles the answer, and PROMPT.md lists the public cases.' >&2\n"
      "exit 2\n",
      challenge, assay.program, assay.options);
}

void write_script(const fs::path& file, const std::string& text) {
  write_file_atomically(file, text);
  fs::permissions(file, fs::perms(0755));
}

void require_nothing_there(const fs::path& folder) {
  std::error_code ec;
  if (!fs::exists(fs::symlink_status(folder, ec))) return;
  if (fs::is_directory(folder) && fs::is_empty(folder)) return;
  throw Error(fmt::format("{} is there already: name another model, or another folder with --into",
                          folder.string()));
}

}  // namespace

std::string prompt_of(const Source& source, const Handout& handout) {
  return prompt_with(source, interface_of(source), handout);
}

std::string version_of(const std::string& prompt) { return sha256_hex(prompt); }

bool is_current(const Source& source, const std::string& version) {
  const std::string interface = interface_of(source);
  const std::vector<std::vector<Language>> all{
      {Language::cpp}, {Language::cuda}, {Language::cpp, Language::cuda}};
  const bool has_hints = fs::exists(fs::path(source.spec.directory) / "hints.md");
  return std::ranges::any_of(all, [&](const std::vector<Language>& languages) {
    return version_of(prompt_with(source, interface, {languages, false})) == version ||
           (has_hints && version_of(prompt_with(source, interface, {languages, true})) == version);
  });
}

std::string deploy(const Source& source, const Handout& handout, const fs::path& folder,
                   const CheckProgram& assay) {
  require_nothing_there(folder);
  const std::string interface = interface_of(source);
  const std::string prompt = prompt_with(source, interface, handout);
  std::string version = version_of(prompt);
  // In the format of challenges/entrant.schema.json.
  const nlohmann::ordered_json record{{"prompt_sha256", version}, {"prompt_hints", handout.hints}};
  std::error_code ec;
  fs::create_directories(folder, ec);
  if (ec) throw Error(fmt::format("cannot make {}: {}", folder.string(), ec.message()));
  write_file_atomically(folder / "PROMPT.md", prompt + kScripts);
  write_file_atomically(folder / "attempt.json", record.dump(2) + "\n");
  write_file_atomically(folder / "abi.h", interface);
  std::string script = "#!/bin/sh\n# Compiles the answer as it will be compiled.\nset -e\n";
  for (const Language language : handout.languages) {
    write_file_atomically(folder / main_file(language),
                          skeleton(interface, source.spec.required_symbols, language));
    script += public_command(language) + "\n";
  }
  write_script(folder / "build.sh", script);
  write_script(folder / "check.sh", check_script(source.spec.name, assay));
  return version;
}

}  // namespace assay::task
