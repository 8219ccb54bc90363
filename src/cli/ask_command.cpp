// assay ask: a model behind an endpoint -> attempts.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include "agent/process_tree.h"
#include "ask/ask.h"
#include "ask/curl_transport.h"
#include "assay/error.h"
#include "cli/context.h"
#include "cli/endpoint_options.h"
#include "cli/output.h"
#include "cli/pipeline.h"
#include "cli/progress.h"
#include "intake/attempt.h"
#include "intake/markdown.h"
#include "spec/public_cases.h"
#include "task/task.h"
#include "util/file_lock.h"
#include "util/files.h"
#include "util/shell.h"
#include "util/stop.h"
#include "util/temporary_folder.h"
#include "util/text.h"
#include "version.h"

namespace assay::cli {
namespace {
namespace fs = std::filesystem;

constexpr const char* kConversation = "conversation.jsonl";

struct AskCommand : EndpointOptions {
  std::string language = "cpp", system, submissions;
  std::vector<std::string> challenges;
  unsigned samples = 1, turns = 1;
  bool mixed = false, hints = false;
};

std::vector<Language> asked_languages(const std::string& name) {
  if (name == "cuda") return {Language::cuda};
  if (name == "both") return {Language::cpp, Language::cuda};
  return {Language::cpp};
}

ask::AskOptions options_from(const Context& context, const AskCommand& c) {
  ask::AskOptions o;
  static_cast<ask::Endpoint&>(o) = endpoint_from(c);
  o.name = own_name(c);
  if (!c.system.empty()) o.system = read_file(c.system);
  o.turns = c.turns;
  o.parallel = c.parallel;
  o.version = kVersion;
  const fs::path submissions =
      c.submissions.empty() ? context.submissions() : fs::path(c.submissions);
  o.folder = submissions / ".asking";
  return o;
}

// The conversations behind this model's attempts, and the unfinished ones.
std::vector<ask::JournalHead> conversations_of(const fs::path& submissions,
                                               const ask::AskOptions& o) {
  std::vector<ask::JournalHead> heads;
  const auto add = [&](const fs::path& file) {
    if (const auto head = ask::read_journal_head(file); head && head->name == o.name)
      heads.push_back(*head);
  };
  std::error_code none;
  for (const auto& challenge : fs::directory_iterator(submissions / o.name, none)) {
    std::error_code no_folder;
    for (const auto& attempt : fs::directory_iterator(challenge.path(), no_folder))
      add(attempt.path() / "original" / kConversation);
  }
  return heads;
}

std::vector<ask::JournalHead> unfinished_conversations(const ask::AskOptions& o) {
  std::vector<ask::JournalHead> heads;
  std::error_code none;
  for (const auto& file : fs::directory_iterator(o.folder / o.name, none)) {
    if (file.path().extension() != ".jsonl") continue;
    if (const auto head = ask::read_journal_head(file.path())) heads.push_back(*head);
  }
  return heads;
}

struct AskPlan {
  std::vector<ask::Sample> samples;  // still to be asked or stored
  std::size_t answered = 0;          // before
};

// Requires equal settings: any difference between samples other than chance would be attributed to
// the model. Only the prompt is another for another challenge or language.
void require_same_settings(const ask::AskOptions& o, const ask::Sample& sample,
                           const std::vector<ask::JournalHead>& known) {
  const ask::JournalHead wanted = head_of(o, sample);
  for (const ask::JournalHead& head : known) {
    const bool of_another = head.challenge != sample.challenge || head.language != sample.language;
    const auto compared = [&](nlohmann::ordered_json settings) {
      if (of_another) settings.erase("prompt_sha256");
      return settings;
    };
    if (compared(head.settings) == compared(wanted.settings)) continue;
    std::string differences;
    for (const auto& [key, value] : wanted.settings.items()) {
      const auto there = head.settings.find(key);
      if (there != head.settings.end() && *there == value) continue;
      if (of_another && key == "prompt_sha256") continue;
      if (key == "prompt_sha256" || key == "system") {
        differences += fmt::format("; another {}", key == "system" ? "system message" : "prompt");
      } else {
        differences +=
            fmt::format("; {} was {} and is {}", key,
                        there == head.settings.end() ? "not given" : there->dump(), value.dump());
      }
    }
    for (const auto& [key, value] : head.settings.items())
      if (!wanted.settings.contains(key))
        differences += fmt::format("; {} was {}", key, value.dump());
    throw Error(fmt::format(
        "{} has samples of {} ({}) with other settings{}: give these a name of their own with "
        "--as, or add them to the same with --mixed",
        o.name, head.challenge, ask::language_name(head.language), printable(differences, 1, 400)));
  }
}

// Handles a sample that was unclear and has been decided by a person since: `assay add` stored the
// reply that lies beside the conversation, so the conversation joins that attempt. Returns whether
// it did.
bool joined_attempt(const ask::AskOptions& o, const ask::Sample& sample) {
  const fs::path journal = ask::journal_path(o, sample),
                 reply = fs::path(journal).replace_extension(".md");
  std::error_code none;
  if (!fs::exists(journal, none) || !fs::exists(reply, none)) return false;
  const std::string text = read_file(reply);
  const fs::path attempts = o.folder.parent_path() / o.name / sample.challenge;
  for (const auto& attempt : fs::directory_iterator(attempts, none)) {
    const fs::path original = attempt.path() / "original", kept = original / reply.filename();
    std::error_code absent;
    if (!fs::is_regular_file(kept, absent) || read_file(kept) != text) continue;
    if (fs::exists(original / kConversation, absent)) continue;
    fs::rename(journal, original / kConversation);
    fs::remove(reply);
    return true;
  }
  return false;
}

AskPlan plan_of(const Context& context, const AskCommand& c, const ask::AskOptions& o) {
  const fs::path submissions = o.folder.parent_path();
  std::vector<ask::JournalHead> known = conversations_of(submissions, o);
  const std::size_t stored = known.size();
  std::ranges::copy(unfinished_conversations(o), std::back_inserter(known));
  AskPlan plan;
  for (const ChallengeSpec& spec : load_specs(context, c.challenges)) {
    for (const Language language : asked_languages(c.language)) {
      const PublicCases published = load_public_cases(spec);
      ask::Sample sample{spec.name, language, 1,
                         task::prompt_of({context.root, spec, challenge_of(spec), published},
                                         {{language}, c.hints})};
      if (!c.mixed) require_same_settings(o, sample, known);
      for (; sample.number <= c.samples; ++sample.number) {
        const ask::JournalHead head = head_of(o, sample);
        const bool there =
            std::any_of(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(stored),
                        [&](const ask::JournalHead& k) { return k.is_same_sample(head); });
        if (!there && (c.dry_run || !joined_attempt(o, sample))) {
          plan.samples.push_back(sample);
          continue;
        }
        ++plan.answered;
        if (c.dry_run) continue;
        // A kill struck between storing the attempt and removing the journal.
        std::error_code gone;
        fs::remove(ask::journal_path(o, sample), gone);
      }
    }
  }
  return plan;
}

int print_dry_run(const AskCommand& c, const ask::AskOptions& o, const AskPlan& plan) {
  double in = 0;
  for (std::size_t i = 0; i < plan.samples.size(); ++i) {
    const ask::Sample& sample = plan.samples[i];
    const auto body = next_request(o, sample, {});
    std::size_t bytes = sample.prompt.size() + o.system.size();
    in += tokens_estimated(bytes);
    fmt::print("# {} ({}) sample {}: about {:.0f} tokens\n", sample.challenge,
               ask::language_name(sample.language), sample.number, tokens_estimated(bytes));
    print_request(o, body);
  }
  fmt::print("{} requests, {} samples there already. Nothing was sent.\n", plan.samples.size(),
             plan.answered);
  fmt::print("{}", estimate(c, in, c.turns * plan.samples.size()));
  fmt::print(".{}\n",
             c.turns > 1 ? " Later turns repeat what was said before, and cost more." : "");
  return kDone;
}

ask::Found find_answer(const std::vector<ChallengeSpec>& specs, const ask::Sample& sample,
                       const std::string& reply) {
  const auto spec = std::ranges::find(specs, sample.challenge, &ChallengeSpec::name);
  ask::Found found;
  try {
    intake::Extracted extracted =
        intake::extract(reply, sample.language, {spec->required_symbols, {}});
    found.files = std::move(extracted.files);
    found.how = extracted.how;
    found.cut_off = extracted.cut_off;
  } catch (const intake::Ambiguous& e) {
    found.ambiguous = true;
    found.problem = e.what();
  } catch (const Error& e) {
    found.problem = e.what();
  }
  return found;
}

// Runs `assay check` in a separate process, because it loads a model's code.
ask::Feedback checked(const Context& context, const ask::Sample& sample,
                      const std::vector<SourceFile>& files) {
  constexpr double kCheckLimit = 1800;  // seconds
  const TemporaryFolder folder("assay-check-");
  const fs::path answer = folder.path() / "answer", errors = folder.path() / "errors";
  fs::create_directory(answer);
  for (const SourceFile& f : files) write_file_atomically(answer / f.name, f.contents);
  agent::Program program;
  // Standard output is JSON; stderr is kept apart.
  program.command = {"/bin/sh",
                     "-c",
                     "exec \"$@\" 2>errors",
                     "sh",
                     fs::read_symlink("/proc/self/exe").string(),
                     "--root",
                     context.root.string(),
                     "check",
                     answer.string(),
                     "--challenge",
                     sample.challenge,
                     "--json"};
  program.folder = folder.path();
  program.time_limit = kCheckLimit;
  std::string output;
  const agent::Ended ended =
      agent::run_program(program, [&](std::string_view bytes) { output += bytes; });
  check_stop();
  const nlohmann::json report = nlohmann::json::parse(output, nullptr, false);
  const bool told = ended.how == agent::Ended::How::exited && ended.status <= kCheckFailed &&
                    report.is_object() && report.contains("feedback") &&
                    report["feedback"].is_string();
  if (!told) {
    throw Error(
        fmt::format("the answer could not be checked: {}", printable(read_file(errors), 3, 300)));
  }
  return {ended.status == kDone, report["feedback"].get<std::string>()};
}

std::string ask_command_line(const AskCommand& c, const ask::AskOptions& o) {
  std::string line = command_line("ask", c, o);
  if (c.turns > 1) line += fmt::format(" --turns {}", c.turns);
  if (c.hints) line += " --hints";
  return line;
}

fs::path store_sample(const AskCommand& c, const ask::AskOptions& o, const ask::Finished& f) {
  const std::vector<ask::Turn>& turns = f.conversation.turns;
  intake::Answer answer;
  answer.files = f.found.files;
  answer.original.push_back({kConversation, read_file(f.journal)});
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const std::string name = turns.size() == 1 ? "answer.md" : fmt::format("turns/{}.md", i + 1);
    if (!turns[i].reply.content.empty()) answer.original.push_back({name, turns[i].reply.content});
  }
  AttemptRecord record;
  record.turns = static_cast<std::int64_t>(f.turn + 1);
  record.tokens_in = f.conversation.tokens_in();
  record.tokens_out = f.conversation.tokens_out();
  record.seconds = f.conversation.seconds();
  record.cost_usd = cost_of(c, record.tokens_in, record.tokens_out);
  record.finish_reason = turns[f.turn].reply.finish_reason;
  record.command = ask_command_line(c, o);
  record.version = kVersion;
  record.hints = f.turn > 0;
  record.prompt_sha256 = task::version_of(f.sample.prompt);
  record.prompt_hints = c.hints;
  record.language = ask::language_name(f.sample.language);
  record.how = f.found.how;
  record.cut_off = f.found.cut_off || record.finish_reason == "length";
  if (answer.files.empty()) record.no_answer = f.found.problem;
  return intake::store_attempt(o.folder.parent_path(), o.name, f.sample.challenge, answer, record);
}

void print_totals(const AskCommand& c, const AskPlan& plan, const ask::AskResult& result,
                  double seconds) {
  std::map<ask::Ending, std::size_t> count;
  for (const ask::Outcome& o : result.outcomes) ++count[o.ending];
  fmt::print("{} answered, {} without an answer", count[ask::Ending::answered],
             count[ask::Ending::no_answer]);
  if (count[ask::Ending::unclear] > 0) fmt::print(", {} unclear", count[ask::Ending::unclear]);
  const std::size_t left = count[ask::Ending::failed] + count[ask::Ending::not_asked];
  if (left > 0) fmt::print(", {} not obtained", left);
  if (plan.answered > 0) fmt::print("; {} were there before", plan.answered);
  fmt::print("\n{}", account_of(c, result.spent, seconds));
}

// Tells the user what to do by hand.
void tell_unclear(const AskCommand& c, const ask::AskOptions& o, const AskPlan& plan,
                  const ask::AskResult& result) {
  for (std::size_t i = 0; i < plan.samples.size(); ++i) {
    const ask::Outcome& outcome = result.outcomes[i];
    if (outcome.ending != ask::Ending::unclear) continue;
    tell(fmt::format(
        "{} ({}) sample {}: {}\nit lies in {}: choose with `assay add {} {} {} --language {}{} "
        "--block N`\n",
        plan.samples[i].challenge, ask::language_name(plan.samples[i].language),
        plan.samples[i].number, outcome.reason, outcome.where.string(), quoted(o.name),
        plan.samples[i].challenge, quoted(outcome.where.string()),
        ask::language_name(plan.samples[i].language),
        c.submissions.empty() ? "" : " --submissions " + quoted(c.submissions)));
  }
}

int status_of(const ask::AskResult& result) {
  int status = kDone;
  for (const ask::Outcome& o : result.outcomes) {
    if (o.ending == ask::Ending::failed || o.ending == ask::Ending::not_asked)
      return kUsageOrHarnessError;
    if (o.ending == ask::Ending::unclear) status = kCheckFailed;
  }
  return status;
}

int ask_model(const Context& context, const AskCommand& c) {
  const ask::AskOptions o = options_from(context, c);
  if (c.dry_run) return print_dry_run(c, o, plan_of(context, c, o));
  ask::CurlTransport transport(fmt::format("assay/{}", kVersion));
  warn_of_plain_key(o);
  create_folder(o.folder / o.name);
  const fs::path lock_file = o.folder / (o.name + ".lock");
  const auto lock = FileLock::if_free(lock_file);
  if (!lock) {
    throw Error(fmt::format("another `assay ask` asks as {}: wait for it, or use --as", o.name));
  }
  const AskPlan plan = plan_of(context, c, o);
  const std::vector<ChallengeSpec> specs = load_specs(context, c.challenges);
  RealAskClock clock;
  ask::AskResult result;
  const double begin = clock.now();
  {
    Progress progress(plan.samples.size());
    std::mutex checking;  // checks need no quiet machine, but each uses all of it
    ask::AskWorld world{transport,
                        clock,
                        [&](const ask::Sample& s, const std::string& reply) {
                          return find_answer(specs, s, reply);
                        },
                        [&](const ask::Sample& s, const std::vector<SourceFile>& files) {
                          const std::lock_guard one(checking);
                          return checked(context, s, files);
                        },
                        [&](const ask::Finished& f) { return store_sample(c, o, f); },
                        [&](const std::string& activity) { return progress.begin(activity); },
                        [&](const std::string& line) { progress.finished(line); },
                        [&](const std::string& line) { progress.note(line); }};
    try {
      result = ask_all(plan.samples, o, world);
    } catch (const Stopped&) {
      progress.note("stopped: what was answered is kept; the same command goes on");
      throw;
    }
  }
  std::error_code not_empty;
  fs::remove(o.folder / o.name, not_empty);  // fails if conversations are left in it
  print_totals(c, plan, result, clock.now() - begin);
  tell_unclear(c, o, plan, result);
  const int status = status_of(result);
  if (status == kUsageOrHarnessError)
    tell("assay: not every sample could be had: the same command asks for what is missing\n");
  return status;
}

}  // namespace

void add_ask(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("ask", "Ask a model behind an endpoint for answers");
  auto c = std::make_shared<AskCommand>();
  add_endpoint(*command, *c);
  command->add_option("--challenge,-c", c->challenges, "only these")->allow_extra_args(false);
  command->add_option("--language", c->language, "of the answers")
      ->check(CLI::IsMember({"cpp", "cuda", "both"}))
      ->capture_default_str();
  command->add_option("--samples", c->samples, "answers to each task, those that exist included")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  add_hints_option(*command, c->hints);
  command->add_option("--turns", c->turns, "answers of a sample, each after what was wrong")
      ->check(CLI::Range(1, 50))
      ->capture_default_str();
  add_request_options(*command, *c);
  command->add_option("--system", c->system, "file with a system message (default: none)");
  command->add_flag("--mixed", c->mixed, "add samples to others with other settings");
  command->add_option("--submissions", c->submissions,
                      "folder of models (default: WORK/submissions)");
  command->footer(
      R"(
Each answer becomes an attempt, submissions/NAME/CHALLENGE/N, with the whole exchange in
original/conversation.jsonl. The key is read from the variable, and neither stored nor
printed. Replies are streamed. Busy servers (429, 5xx), time-outs and connections that end
too soon are asked again, later each time, or when Retry-After says.

The same command again asks for what is missing, and for nothing that was answered, also
after a kill. --samples 3 after --samples 1 adds two. Samples with other settings (URL,
model, temperature, prompt ...) need a name of their own, or --mixed.

With --turns T, what assay check finds is said to the model after each answer but the last,
until it finds nothing. The attempt is the last turn with code; original/turns/ keeps all.

A refusal, or a reply without code, is an attempt without an answer. A reply of which it
is not clear which block is the answer is kept for assay add.

Exit status: 0 every sample is there, 1 some are to be decided by hand, 2 some could not be
had, or another error, 130 stopped.

Examples:
  assay ask --url http://localhost:8000/v1 --model my-model --challenge CHALLENGE
  assay ask --url https://api.openai.com/v1 --model MODEL --samples 3 --dry-run
  assay ask --url https://host/v1 --key-env HOST_KEY --model org/model --as model \
    --language both --turns 3 --temperature 0.6 --price-in 0.5 --price-out 2
)");
  command->callback(
      [&action, c] { action = [c](const Context& context) { return ask_model(context, *c); }; });
}

}  // namespace assay::cli
