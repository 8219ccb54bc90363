#include "ask/ask.h"

#include <fmt/format.h>

#include <exception>
#include <map>
#include <mutex>

#include "assay/error.h"
#include "numerics/jobs.h"
#include "util/files.h"
#include "util/sha256.h"
#include "util/stop.h"
#include "util/temporary_folder.h"
#include "util/text.h"

namespace assay::ask {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kHashDigits = 12;

// Received data could not be stored in its place; the message says where it is.
struct DiskFailed {
  std::string message;
};

std::string sample_name(const Sample& sample, const AskOptions& options, std::size_t turn) {
  std::string name = fmt::format("{} ({}) sample {}", sample.challenge,
                                 language_name(sample.language), sample.number);
  if (options.turns > 1) name += fmt::format(", turn {}", turn + 1);
  return name;
}

// Saves data that the journal's disk does not accept to a new folder elsewhere; returns the file.
fs::path rescued(const Journal& journal, const std::string& line) {
  std::error_code missing;
  std::string text = fs::exists(journal.path(), missing) ? read_file(journal.path()) : "";
  text.resize(text.rfind('\n') + 1);  // npos + 1 is 0
  std::string problem;
  for (const std::string& place :
       {fs::temp_directory_path(missing).string(), std::string("/tmp"), std::string("/var/tmp")}) {
    if (place.empty()) continue;
    fs::path folder;
    try {
      folder = make_new_folder(place, "assay-answer-");
      fs::path file = folder / journal.path().filename();
      write_file_atomically(file, text + line + "\n");
      return file;
    } catch (const Error& e) {
      problem = e.what();
      fs::remove(folder, missing);  // it is empty
    }
  }
  throw Error(problem);
}

[[noreturn]] void disk_failed(const Journal& journal, const NotStored& lost) {
  fs::path file;
  try {
    file = rescued(journal, lost.line());
  } catch (const std::exception& e) {
    throw DiskFailed{fmt::format("{}; nor is there room elsewhere: {}", lost.what(), e.what())};
  }
  throw DiskFailed{fmt::format(
      "{}; what was received lies in {}: `mv {} {}` and the same command once more take it in",
      lost.what(), file.string(), file.string(), journal.path().string())};
}

class Asker {
 public:
  Asker(const std::vector<Sample>& samples, const AskOptions& options, AskWorld& world)
      : samples_(samples),
        options_(options),
        world_(world),
        requester_(options, world.transport, world.clock, world.note),
        slots_(samples.size()) {}

  AskResult run() {
    for_each_job(samples_.size(), options_.parallel, [this](std::size_t i) { work(i); });
    AskResult result;
    for (Slot& slot : slots_) result.outcomes.push_back(std::move(slot.outcome));
    result.spent = requester_.spent();
    return result;
  }

 private:
  struct Slot {
    bool over = false;     // nothing more will be asked
    bool settled = false;  // stored, or known to have nothing to store
    std::unique_ptr<Journal> journal;
    Outcome outcome;
  };

  void work(std::size_t i);
  void converse(const Sample&, Journal&);
  Found found_in(const Sample&, const Turn&);
  Feedback feedback_on(const Sample&, const Turn&);
  void settle_ready();
  void settle(std::size_t i);
  // `all`: no other sample can be asked either. `told`: also if that was known already.
  void fail(std::size_t i, const std::string& message, bool all, bool told = false);

  const std::vector<Sample>& samples_;
  const AskOptions& options_;
  AskWorld& world_;
  Requester requester_;

  std::mutex mutex_;  // guards everything below
  std::vector<Slot> slots_;
  std::string all_failed_;  // why asking has stopped

  std::mutex storing_;
};

void Asker::work(std::size_t i) {
  check_stop();
  {
    const std::lock_guard lock(mutex_);
    if (!all_failed_.empty()) {
      slots_[i].outcome.reason = all_failed_;
      slots_[i].over = slots_[i].settled = true;
      return;
    }
  }
  const Sample& sample = samples_[i];
  try {
    auto journal =
        std::make_unique<Journal>(journal_path(options_, sample), head_of(options_, sample));
    try {
      converse(sample, *journal);
    } catch (const NotStored& lost) {
      disk_failed(*journal, lost);
    }
    const std::lock_guard lock(mutex_);
    slots_[i].journal = std::move(journal);
    slots_[i].over = true;
  } catch (const RequestFailed& failed) {
    fail(i, failed.message, concerns_all(failed.fault));
  } catch (const DiskFailed& failed) {
    fail(i, failed.message, true, true);
  } catch (const Error& e) {
    fail(i, e.what(), false);
  }
  settle_ready();
}

void Asker::fail(std::size_t i, const std::string& message, bool all, bool told) {
  const std::lock_guard lock(mutex_);
  Slot& slot = slots_[i];
  slot.over = slot.settled = true;
  // Several requests were in flight when it happened.
  if (all && !told && !all_failed_.empty()) {
    slot.outcome = {Ending::not_asked, all_failed_, {}};
    return;
  }
  slot.outcome = {Ending::failed, message, {}};
  if (all) all_failed_ = message;
  world_.finished(fmt::format("{}: failed: {}", sample_name(samples_[i], options_, 0), message));
}

void Asker::converse(const Sample& sample, Journal& journal) {
  for (;;) {
    const std::vector<Turn>& turns = journal.conversation().turns;
    if (!turns.empty()) {
      if (turns.size() >= options_.turns || !why_no_answer(turns.back().reply).empty()) return;
      if (!turns.back().feedback) {
        const auto shown =
            world_.begin(sample_name(sample, options_, turns.size() - 1) + ": checking");
        journal.add_feedback(feedback_on(sample, turns.back()));
      }
      if (turns.back().feedback->passed) return;
    }
    const auto shown = world_.begin(sample_name(sample, options_, turns.size()));
    journal.add_request(next_request(options_, sample, journal.conversation()));
    const Answered answered =
        requester_.ask(next_request(options_, sample, journal.conversation()),
                       sample_name(sample, options_, turns.size()),
                       [&](const Fault& fault, double seconds, std::optional<double> wait) {
                         journal.add_failure(fault, seconds, wait);
                       });
    journal.add_reply(answered.reply, answered.seconds);
  }
}

Found Asker::found_in(const Sample& sample, const Turn& turn) {
  if (std::string why = why_no_answer(turn.reply); !why.empty()) {
    Found none;
    none.problem = std::move(why);
    return none;
  }
  return world_.find(sample, turn.reply.content);
}

Feedback Asker::feedback_on(const Sample& sample, const Turn& turn) {
  const Found found = found_in(sample, turn);
  if (!found.files.empty()) return world_.check(sample, found.files);
  return {false, fmt::format("No answer was found in your reply: {}\n\nReply with the whole of {} "
                             "in one fenced code block.",
                             found.problem, main_file(sample.language))};
}

// Stores finished samples, for each challenge in the order of its samples.
void Asker::settle_ready() {
  const std::lock_guard storing(storing_);
  std::map<std::string, bool> blocked;
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    bool& waits = blocked[samples_[i].challenge];
    {
      const std::lock_guard lock(mutex_);
      if (slots_[i].settled) continue;
      if (!slots_[i].over) waits = true;
      if (waits) continue;
    }
    try {
      settle(i);
    } catch (const Error& e) {
      fail(i, fmt::format("{}; the answer is kept, and the same command stores it", e.what()),
           true);
    }
  }
}

void Asker::settle(std::size_t i) {
  const Sample& sample = samples_[i];
  const Journal& journal = *slots_[i].journal;
  const std::vector<Turn>& turns = journal.conversation().turns;
  // Use the last turn with an answer: asked for a correction, a model may reply with a question.
  Finished finished{sample, journal.conversation(), turns.size() - 1, {}, journal.path()};
  Found unclear;
  std::size_t unclear_turn = 0;
  for (std::size_t turn = turns.size(); turn-- > 0;) {
    Found found = found_in(sample, turns[turn]);
    if (!found.files.empty()) {
      finished.turn = turn;
      finished.found = std::move(found);
      break;
    }
    if (found.ambiguous && !unclear.ambiguous) {
      unclear = found;
      unclear_turn = turn;
    }
    if (turn + 1 == turns.size()) finished.found = std::move(found);
  }
  Outcome outcome;
  std::string line = sample_name(sample, options_, finished.turn) + ": ";
  if (finished.found.files.empty() && unclear.ambiguous) {
    const fs::path text = fs::path(journal.path()).replace_extension(".md");
    write_file_atomically(text, turns[unclear_turn].reply.content);
    outcome = {Ending::unclear, unclear.problem, text};
    line += "it is not clear which block is the answer";
  } else {
    const bool answered = !finished.found.files.empty();
    outcome.ending = answered ? Ending::answered : Ending::no_answer;
    outcome.reason = answered ? "" : finished.found.problem;
    outcome.where = world_.store(finished);
    std::error_code kept;  // the answer is stored: the next call removes what is left
    fs::remove(journal.path(), kept);
    line += answered ? "answered" : "no answer: " + printable(outcome.reason, 1, 160);
    line += fmt::format(", {:.1f} s", journal.conversation().seconds());
    if (const auto tokens = journal.conversation().tokens_out())
      line += fmt::format(", {} tokens", *tokens);
    line += " -> " + outcome.where.string();
  }
  world_.finished(line);
  const std::lock_guard lock(mutex_);
  slots_[i].outcome = std::move(outcome);
  slots_[i].settled = true;
}

}  // namespace

nlohmann::ordered_json settings_of(const AskOptions& options, const Sample& sample) {
  nlohmann::ordered_json settings = settings_of(static_cast<const Endpoint&>(options));
  if (!options.system.empty()) settings["system"] = options.system;
  settings["turns"] = options.turns;
  settings["prompt_sha256"] = sha256_hex(sample.prompt);
  return settings;
}

JournalHead head_of(const AskOptions& options, const Sample& sample) {
  JournalHead head;
  head.name = options.name;
  head.challenge = sample.challenge;
  head.language = sample.language;
  head.number = sample.number;
  head.settings = settings_of(options, sample);
  head.settings_hash = sha256_hex(head.settings.dump()).substr(0, kHashDigits);
  head.version = options.version;
  return head;
}

fs::path journal_path(const AskOptions& options, const Sample& sample) {
  return options.folder / options.name /
         fmt::format("{}.{}.{}.{}.jsonl", sample.challenge, language_name(sample.language),
                     head_of(options, sample).settings_hash, sample.number);
}

nlohmann::ordered_json next_request(const AskOptions& options, const Sample& sample,
                                    const Conversation& conversation) {
  ChatSettings chat = options.chat;
  if (chat.seed) *chat.seed += sample.number - 1;
  return request_of(chat, messages_of(options.system, sample.prompt, conversation));
}

AskResult ask_all(const std::vector<Sample>& samples, const AskOptions& options, AskWorld& world) {
  return Asker(samples, options, world).run();
}

}  // namespace assay::ask
