#include "ask/ask.h"

#include <fmt/format.h>

#include <cstdlib>
#include <exception>
#include <map>
#include <mutex>

#include "numerics/jobs.h"
#include "util/clock.h"
#include "util/files.h"
#include "util/redact.h"
#include "util/sha256.h"
#include "util/stop.h"
#include "util/temporary_folder.h"
#include "util/text.h"

namespace assay::ask {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kLargestError = 65536;  // bytes that are read of a failed response
constexpr std::size_t kHashDigits = 12;
constexpr std::size_t kShortestSecret = 8;  // "none" and "EMPTY" are keys of servers without any

// A sample cannot be had.
struct SampleFailed {
  Fault fault;
  std::string message;  // with the remedy
};

// What was received could not be kept where it belongs; the message says where it is.
struct DiskFailed {
  std::string message;
};

std::string sample_name(const Sample& sample, const AskOptions& options, std::size_t turn) {
  std::string name = fmt::format("{} ({}) sample {}", sample.challenge,
                                 language_name(sample.language), sample.number);
  if (options.turns > 1) name += fmt::format(", turn {}", turn + 1);
  return name;
}

// How to go on after a fault, for people.
std::string with_remedy(const Fault& fault, const AskOptions& options) {
  std::string start = fmt::format("{}: {}", options.url, fault.message);
  switch (fault.kind) {
    case Fault::Kind::unreachable: return start + ": is the server running, and is --url right?";
    case Fault::Kind::insecure:
      return start + ": SSL_CERT_FILE names further certificates to trust";
    case Fault::Kind::timed_out:
      return start + fmt::format(" ({:g} s, --timeout)", options.timeout);
    case Fault::Kind::refused:
    case Fault::Kind::cut:
    case Fault::Kind::damaged: return start;
    case Fault::Kind::status: break;
  }
  switch (fault.status) {
    case 401:
    case 403:
      if (options.key.empty()) {
        return start + fmt::format(
                           "; no key was sent: put it into {}, or name its variable with "
                           "--key-env",
                           options.key_variable);
      }
      return start + fmt::format("; the key comes from {}: is it right, and may it use this model?",
                                 options.key_variable);
    case 402: return start + "; the account has no credit";
    case 404:
      return start + fmt::format(
                         "; does the model '{}' exist there (--model), and is --url the base "
                         "of the interface, such as https://host/v1?",
                         printable(options.chat.model, 1, 80));
    case 429: return start + "; run the same command again later: it goes on where this ended";
    default: return start;
  }
}

std::string status_message(const HttpResponse& response, const std::string& body) {
  std::string message = fmt::format("HTTP status {}", response.status);
  if (response.status / 100 == 3 && !response.location.empty())
    return message + ": it redirects to " + printable(response.location, 1, 200);
  if (const std::string text = error_text(body); !text.empty()) message += ": " + text;
  return message;
}

Fault::Kind kind_of(Delivery delivery) {
  switch (delivery) {
    case Delivery::unreachable: return Fault::Kind::unreachable;
    case Delivery::insecure: return Fault::Kind::insecure;
    case Delivery::timed_out: return Fault::Kind::timed_out;
    case Delivery::refused: return Fault::Kind::refused;
    case Delivery::cut:
    case Delivery::whole: break;
  }
  return Fault::Kind::cut;
}

// Keeps what the journal's disk does not take in a folder of its own elsewhere; returns the file.
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
      fs::remove(folder, missing);  // nothing is in it
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
      : samples_(samples), options_(options), world_(world), slots_(samples.size()) {
    std::vector<std::string> secrets{options.key};
    for (const Header& h : options.headers) secrets.push_back(h.value);
    secrets_ = Redactor(std::move(secrets));
    // A reply may be kept: only what was sent is taken out of it, not what looks like a secret.
    if (options.key.size() >= kShortestSecret) sent_secret_ = options.key;
  }

  AskResult run() {
    for_each_job(samples_.size(), options_.parallel, [this](std::size_t i) { work(i); });
    AskResult result;
    for (Slot& slot : slots_) result.outcomes.push_back(std::move(slot.outcome));
    result.spent = spent_;
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
  void ask_for_turn(const Sample&, Journal&);
  std::optional<Fault> attempt(const HttpRequest&, Reply&);
  Fault fault_of(const HttpResponse&, const std::string& body, const ReplyReader&);
  void wait_for_gate();
  Found found_in(const Sample&, const Turn&);
  Feedback feedback_on(const Sample&, const Turn&);
  void settle_ready();
  void settle(std::size_t i);
  void fail(std::size_t i, const std::string& message, bool all);
  std::string without_key(std::string text) const;

  const std::vector<Sample>& samples_;
  const AskOptions& options_;
  AskWorld& world_;
  Redactor secrets_;
  std::string sent_secret_;

  std::mutex mutex_;  // of all below
  std::vector<Slot> slots_;
  Spent spent_;
  bool reached_ = false;    // the endpoint gave a response
  double not_before_ = 0;   // when it may be asked again
  std::string all_failed_;  // why no more is asked

  std::mutex storing_;
};

std::string Asker::without_key(std::string text) const {
  if (sent_secret_.empty()) return text;
  for (std::size_t at = 0; (at = text.find(sent_secret_, at)) != std::string::npos;)
    text.replace(at, sent_secret_.size(), kRedacted);
  return text;
}

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
  } catch (const SampleFailed& failed) {
    fail(i, failed.message, concerns_all(failed.fault));
  } catch (const DiskFailed& failed) {
    fail(i, failed.message, true);
  } catch (const Error& e) {
    fail(i, e.what(), false);
  }
  settle_ready();
}

void Asker::fail(std::size_t i, const std::string& message, bool all) {
  const std::lock_guard lock(mutex_);
  Slot& slot = slots_[i];
  slot.over = slot.settled = true;
  if (all && !all_failed_.empty()) {  // several were under way when it began
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
    ask_for_turn(sample, journal);
  }
}

void Asker::ask_for_turn(const Sample& sample, Journal& journal) {
  HttpRequest request;
  request.url = options_.url;
  request.timeout = options_.timeout;
  if (!options_.key.empty()) request.headers.push_back({"Authorization", "Bearer " + options_.key});
  for (const Header& h : options_.headers) request.headers.push_back(h);
  request.body = next_request(options_, sample, journal.conversation())
                     .dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  for (unsigned failures = 0;;) {
    wait_for_gate();
    Reply reply;
    const double begin = world_.clock.now();
    const std::optional<Fault> fault = attempt(request, reply);
    const double seconds = world_.clock.now() - begin;
    if (!fault) {
      {
        const std::lock_guard lock(mutex_);
        ++spent_.replies;
        spent_.seconds += seconds;
        spent_.tokens_in += reply.tokens_in.value_or(0);
        spent_.tokens_out += reply.tokens_out.value_or(0);
        if (!reply.tokens_in || !reply.tokens_out) ++spent_.replies_without_usage;
      }
      journal.add_reply(reply, seconds);
      return;
    }
    bool reached = false;
    {
      const std::lock_guard lock(mutex_);
      ++spent_.failures;
      reached = reached_;
    }
    ++failures;
    const auto wait =
        wait_before_retry(options_.retry, *fault, failures, reached, world_.clock.jitter());
    journal.add_failure(*fault, seconds, wait);
    if (!wait) {
      std::string message = with_remedy(*fault, options_);
      if (failures > 1) message += fmt::format(" (tried {} times)", failures);
      throw SampleFailed{*fault, message};
    }
    world_.note(fmt::format("{}: {}; once more in {:.1f} s",
                            sample_name(sample, options_, journal.conversation().turns.size()),
                            fault->message, *wait));
    if (fault->retry_after) {  // who asks to be left alone means all requests
      const std::lock_guard lock(mutex_);
      not_before_ = std::max(not_before_, world_.clock.now() + *wait);
    }
    world_.clock.sleep(*wait);
  }
}

void Asker::wait_for_gate() {
  for (;;) {
    double left = 0;
    {
      const std::lock_guard lock(mutex_);
      left = not_before_ - world_.clock.now();
    }
    if (left <= 0) return;
    world_.clock.sleep(left);
  }
}

std::optional<Fault> Asker::attempt(const HttpRequest& request, Reply& reply) {
  ReplyReader reader;
  std::string error_body;
  std::optional<Fault> bad;
  const auto note_bad = [&](const BadReply& e) {
    const auto* told = dynamic_cast<const EndpointFault*>(&e);
    const bool too_large = reader.size() > ReplyReader::kLargest;
    bad = Fault{told        ? Fault::Kind::status
                : too_large ? Fault::Kind::refused
                            : Fault::Kind::damaged,
                told ? told->status() : 0, e.what()};
  };
  const HttpResponse response =
      world_.transport.post(request, [&](const HttpResponse& so_far, std::string_view bytes) {
        if (so_far.status != 200) {
          error_body += bytes.substr(0, kLargestError - std::min(kLargestError, error_body.size()));
          return;
        }
        try {
          reader.feed(bytes, so_far.content_type.starts_with("text/event-stream"));
        } catch (const BadReply& e) {
          note_bad(e);
          throw;
        }
        if (reader.is_over()) throw Error("the reply is complete");  // ends the transfer
      });
  if (response.status != 0) {
    const std::lock_guard lock(mutex_);
    reached_ = true;
  }
  const bool arrived = response.delivery == Delivery::whole || reader.is_complete();
  if (!bad && response.status == 200 && arrived) {
    try {
      reply = reader.finish();
      for (std::string* text : {&reply.content, &reply.reasoning, &reply.refusal})
        *text = without_key(std::move(*text));
      return {};
    } catch (const BadReply& e) {
      note_bad(e);
      // A stream without its end was cut, though the connection was closed in order.
      if (bad->kind == Fault::Kind::damaged && reader.is_stream()) bad->kind = Fault::Kind::cut;
    }
  }
  Fault fault = bad ? *bad : fault_of(response, error_body, reader);
  fault.message = secrets_.redacted(fault.message);
  return fault;
}

Fault Asker::fault_of(const HttpResponse& response, const std::string& body,
                      const ReplyReader& reader) {
  Fault fault;
  if (response.status != 0 && response.status != 200 && response.delivery == Delivery::whole) {
    fault.kind = Fault::Kind::status;
    fault.status = response.status;
    fault.message = status_message(response, body);
    fault.retry_after = retry_after_seconds(response.retry_after, seconds_since_1970());
    return fault;
  }
  fault.kind = kind_of(response.delivery);
  fault.status = response.status == 200 ? 0 : response.status;
  fault.message = response.problem.empty() ? "the connection ended" : response.problem;
  if (fault.kind == Fault::Kind::cut)
    fault.message = fmt::format("cut off after {} bytes: {}", reader.size(), fault.message);
  return fault;
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

// Stores what is over, of each challenge in the order of its samples.
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
  // The last turn with an answer: who is asked for a correction may reply with a question.
  Finished finished{sample, journal.conversation(), turns.size() - 1, {}, journal.path()};
  Found unclear;
  for (std::size_t turn = turns.size(); turn-- > 0;) {
    Found found = found_in(sample, turns[turn]);
    if (!found.files.empty()) {
      finished.turn = turn;
      finished.found = std::move(found);
      break;
    }
    if (found.ambiguous && !unclear.ambiguous) unclear = found;
    if (turn + 1 == turns.size()) finished.found = std::move(found);
  }
  Outcome outcome;
  std::string line = sample_name(sample, options_, finished.turn) + ": ";
  if (finished.found.files.empty() && unclear.ambiguous) {
    const fs::path text = fs::path(journal.path()).replace_extension(".md");
    write_file_atomically(text, turns.back().reply.content);
    outcome = {Ending::unclear, unclear.problem, text};
    line += "it is not clear which block is the answer";
  } else {
    const bool answered = !finished.found.files.empty();
    outcome.ending = answered ? Ending::answered : Ending::no_answer;
    outcome.reason = answered ? "" : finished.found.problem;
    outcome.where = world_.store(finished);
    fs::remove(journal.path());
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
  nlohmann::ordered_json settings{{"url", options.url}, {"model", options.chat.model}};
  if (options.chat.temperature) settings["temperature"] = *options.chat.temperature;
  if (options.chat.max_tokens) settings["max_tokens"] = *options.chat.max_tokens;
  if (options.chat.seed) settings["seed"] = *options.chat.seed;
  if (!options.chat.more.empty()) settings["more"] = options.chat.more;
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
