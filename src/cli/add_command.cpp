// assay add: stores an answer as the next attempt.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "assay/error.h"
#include "cli/context.h"
#include "cli/output.h"
#include "intake/received.h"
#include "submission/submission.h"
#include "util/files.h"
#include "util/shell.h"
#include "util/stop.h"
#include "util/text.h"

namespace assay::cli {
namespace {
namespace fs = std::filesystem;

struct AddCommand {
  std::string model, challenge, language = "auto", submissions;
  std::vector<std::string> paths;
  std::vector<std::size_t> blocks;
  AttemptRecord record;
  bool dry_run = false;
};

std::optional<Language> language_named(const std::string& name) {
  if (name == "auto") return std::nullopt;
  return name == "cuda" ? Language::cuda : Language::cpp;
}

// Reads standard input, up to the largest possible answer.
std::string read_standard_input() {
  constexpr std::size_t kLargest = (16u << 20) + 1, kPiece = 1u << 16;
  std::string text;
  for (;;) {
    check_stop();
    const std::size_t before = text.size();
    text.resize(before + kPiece);
    const ssize_t n = ::read(STDIN_FILENO, text.data() + before, kPiece);
    text.resize(before + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_with_errno("read", "standard input");
    if (n == 0 || text.size() > kLargest) return text;
  }
}

intake::Received receive(const AddCommand& c, const ChallengeSpec& spec) {
  const intake::ExtractOptions options{spec.required_symbols, c.blocks};
  const std::optional<Language> language = language_named(c.language);
  if (std::ranges::find(c.paths, "-") != c.paths.end()) {
    if (c.paths.size() > 1) throw Error("'-' is a whole answer: name nothing beside it");
    return intake::take_chat(read_standard_input(), "answer.md", language, options);
  }
  return intake::take_paths({c.paths.begin(), c.paths.end()}, language, options);
}

void print_files(const intake::Received& received) {
  for (const SourceFile& file : received.answer.files)
    fmt::print("  {:<20} {:>8} bytes\n", file.name, file.contents.size());
  fmt::print("how: {}\n", received.how);
  if (!received.ignored.empty())
    fmt::print("not part of the answer: {}\n", some_of(received.ignored));
  if (!received.not_kept.empty()) {
    tell(fmt::format("warning: not kept of what was received: {}\n", some_of(received.not_kept)));
  }
  if (received.cut_off) tell("warning: the answer was cut off: its last block is not closed\n");
}

// Stores an attempt without an answer.
int add_no_answer(const AddCommand& c, const fs::path& submissions) {
  if (!c.paths.empty()) throw Error("--no-answer says that there is no answer: name no PATH");
  AttemptRecord record = c.record;
  if (c.language != "auto") record.language = c.language;
  if (c.dry_run) {
    fmt::print("no answer: {}\n", printable(record.no_answer, 1));
    return kDone;
  }
  const fs::path folder = intake::store_attempt(submissions, c.model, c.challenge, {}, record);
  fmt::print("{}\n", folder.string());
  return kDone;
}

std::string described(const AddCommand& c) {
  return c.paths.size() == 1 && c.paths.front() != "-" ? c.paths.front() : "the answer";
}

int add_answer(const Context& context, const AddCommand& c) {
  const ChallengeSpec spec = load_specs(context, {c.challenge}).front();
  const fs::path submissions =
      c.submissions.empty() ? context.submissions() : fs::path(c.submissions);
  if (const std::string objection = objection_to_model(c.model); !objection.empty())
    throw Error(fmt::format("no model can have the name '{}': {}", c.model, objection));
  if (!c.record.no_answer.empty()) return add_no_answer(c, submissions);
  if (c.paths.empty()) throw Error("name the answer: a file, a folder, or - for standard input");
  intake::Received received;
  try {
    received = receive(c, spec);
  } catch (const intake::NoAnswer& e) {
    throw Error(fmt::format(
        "{}: no answer: {}. To count it as an attempt: assay add {} {} "
        "--no-answer {}",
        described(c), e.what(), quoted(c.model), quoted(c.challenge), quoted(e.what())));
  } catch (const intake::Ambiguous& e) {
    throw Error(fmt::format("{}: {}", described(c), e.what()));
  }
  AttemptRecord record = c.record;
  record.language = received.language == Language::cuda ? "cuda" : "cpp";
  record.prompt_sha256 = received.prompt_sha256;
  record.prompt_hints = received.prompt_hints;
  record.how = received.how;
  record.cut_off = received.cut_off;
  record.not_kept = received.not_kept;
  check_stop();
  if (c.dry_run) {
    print_files(received);
    return kDone;
  }
  const fs::path folder =
      intake::store_attempt(submissions, c.model, spec.name, received.answer, record);
  fmt::print("{}\n", folder.string());
  print_files(received);
  return kDone;
}

void add_record_options(CLI::App& command, AttemptRecord& record) {
  const CLI::Validator from_zero(
      [](const std::string& value) {
        const bool fits = value.find_first_not_of("0123456789.eE+-") == std::string::npos &&
                          !value.starts_with('-');
        return fits ? std::string() : "expected a number, 0 or more";
      },
      "");
  command.add_option("--turns", record.turns, "answers of the model until this one")
      ->check(from_zero);
  command.add_option("--tokens-in", record.tokens_in, "over all turns")->check(from_zero);
  command.add_option("--tokens-out", record.tokens_out, "over all turns")->check(from_zero);
  command.add_option("--seconds", record.seconds, "that the model took")->check(from_zero);
  command.add_option("--cost", record.cost_usd, "in US dollars")->check(from_zero);
  command.add_option("--finish-reason", record.finish_reason,
                     "as the endpoint said: stop, length ...");
  command.add_option("--asked-by", record.command, "what asked, such as a command line");
  command.add_option("--asked-by-version", record.version, "of that");
  command
      .add_option_function<std::string>(
          "--hints", [&record](const std::string& answer) { record.hints = answer == "yes"; },
          "whether it was told what was wrong with an earlier answer")
      ->check(CLI::IsMember({"yes", "no"}));
}

}  // namespace

void add_add(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("add", "Take an answer in: a chat answer, files, or a folder");
  auto c = std::make_shared<AddCommand>();
  command->add_option("MODEL", c->model, "a name for who answered")->required();
  command->add_option("CHALLENGE", c->challenge, "see assay list challenges")->required();
  command->add_option("PATH", c->paths,
                      "a chat answer (.md, .txt, or - for standard input), source files, or a\n"
                      "folder");
  command
      ->add_option("--block,-b", c->blocks,
                   "of a chat answer this fenced block, counted from 1; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--language", c->language, "of the answer; found out by default")
      ->check(CLI::IsMember({"auto", "cpp", "cuda"}))
      ->capture_default_str();
  command->add_option("--no-answer", c->record.no_answer,
                      "store that the attempt gave no answer, and why: it scores 0");
  add_record_options(*command, c->record);
  command->add_option("--submissions", c->submissions,
                      "folder of models (default: WORK/submissions)");
  command->add_flag("--dry-run", c->dry_run, "show what would be taken, and write nothing");
  command->footer(
      R"(
Stores the answer as MODEL/CHALLENGE/N/ in the folder of models, N being the next
attempt: what is graded, what was received in original/, and attempt.json with what is
known of it. An answer that lies in MODEL/CHALLENGE itself is the first. Nothing there is
changed, and nothing is run.

Of a chat answer that is the blocks that names tell apart (in the fence, in the first line
or in the line above), or the only block that defines the challenge's functions. Thoughts
(<think>), diffs and shell commands are none. Where several blocks could be the answer they
are listed, and --block decides. Of a folder it is the source files; the rest is kept, and
no part of the answer.

Exit status: 0 stored, 2 nothing was stored: no answer, an ambiguous one, or another error.

Examples:
  assay add my-model CHALLENGE answer.md
  your-model < task.md | assay add my-model CHALLENGE - --tokens-out 5120 --seconds 61
  assay add my-model CHALLENGE answer.md --block 3 --language cuda
  assay add my-agent CHALLENGE /tmp/worked-here/
  assay add my-model CHALLENGE kernel.cu helper.cuh
  assay add my-model CHALLENGE --no-answer 'refused'
)");
  command->callback(
      [&action, c] { action = [c](const Context& context) { return add_answer(context, *c); }; });
}

}  // namespace assay::cli
