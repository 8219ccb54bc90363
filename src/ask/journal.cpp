#include "ask/journal.h"

#include <fmt/format.h>

#include <fstream>

#include "store/line_file.h"
#include "util/clock.h"
#include "util/files.h"

namespace assay::ask {
namespace fs = std::filesystem;
namespace {

constexpr int kJournalSchema = 1;

nlohmann::ordered_json head_line(const JournalHead& head) {
  return {{"kind", "begin"},
          {"schema", kJournalSchema},
          {"date", utc_now()},
          {"assay", head.version},
          {"name", head.name},
          {"challenge", head.challenge},
          {"language", language_name(head.language)},
          {"sample", head.number},
          {"settings_hash", head.settings_hash},
          {"settings", head.settings}};
}

std::optional<JournalHead> head_of(const std::string& line) {
  try {
    const auto json = nlohmann::ordered_json::parse(line);
    if (json.at("kind") != "begin" || json.at("schema") != kJournalSchema) return {};
    JournalHead head;
    head.version = json.at("assay").get<std::string>();
    head.name = json.at("name").get<std::string>();
    head.challenge = json.at("challenge").get<std::string>();
    head.language = json.at("language") == "cuda" ? Language::cuda : Language::cpp;
    head.number = json.at("sample").get<unsigned>();
    head.settings_hash = json.at("settings_hash").get<std::string>();
    head.settings = json.at("settings");
    return head;
  } catch (const nlohmann::json::exception&) {
    return {};
  }
}

void set_text(nlohmann::ordered_json& object, const char* key, const std::string& text) {
  if (!text.empty()) object[key] = text;
}

nlohmann::ordered_json json_of_reply(const Reply& reply) {
  nlohmann::ordered_json json;
  json["content"] = reply.content;
  set_text(json, "reasoning", reply.reasoning);
  set_text(json, "refusal", reply.refusal);
  set_text(json, "finish_reason", reply.finish_reason);
  set_text(json, "id", reply.id);
  set_text(json, "model", reply.model);
  json["has_choice"] = reply.has_choice;
  if (reply.called_tools) json["called_tools"] = true;
  if (reply.tokens_in) json["tokens_in"] = *reply.tokens_in;
  if (reply.tokens_out) json["tokens_out"] = *reply.tokens_out;
  if (reply.tokens_reasoning) json["tokens_reasoning"] = *reply.tokens_reasoning;
  return json;
}

std::optional<std::int64_t> stored_count(const nlohmann::json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end()) return {};
  return found->get<std::int64_t>();
}

Reply reply_of_json(const nlohmann::json& json) {
  Reply reply;
  reply.content = json.at("content").get<std::string>();
  reply.reasoning = json.value("reasoning", "");
  reply.refusal = json.value("refusal", "");
  reply.finish_reason = json.value("finish_reason", "");
  reply.id = json.value("id", "");
  reply.model = json.value("model", "");
  reply.has_choice = json.at("has_choice").get<bool>();
  reply.called_tools = json.value("called_tools", false);
  reply.tokens_in = stored_count(json, "tokens_in");
  reply.tokens_out = stored_count(json, "tokens_out");
  reply.tokens_reasoning = stored_count(json, "tokens_reasoning");
  return reply;
}

const char* fault_name(Fault::Kind kind) {
  switch (kind) {
    case Fault::Kind::unreachable: return "unreachable";
    case Fault::Kind::insecure: return "insecure";
    case Fault::Kind::timed_out: return "timed out";
    case Fault::Kind::cut: return "cut";
    case Fault::Kind::damaged: return "damaged";
    case Fault::Kind::status: return "status";
    case Fault::Kind::refused: return "refused";
  }
  return "";
}

}  // namespace

bool JournalHead::is_same_sample(const JournalHead& other) const {
  return name == other.name && challenge == other.challenge && language == other.language &&
         number == other.number && settings_hash == other.settings_hash;
}

std::optional<JournalHead> read_journal_head(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string line;
  if (!std::getline(in, line) || in.eof()) return {};  // its end was never written
  return head_of(line);
}

Journal::Journal(fs::path path, const JournalHead& head) : path_(std::move(path)) {
  const std::vector<std::string> lines = store::read_lines(path_).lines;
  if (lines.empty()) {
    create_folder(path_.parent_path());
    append(head_line(head));
    return;
  }
  const auto there = head_of(lines.front());
  if (!there || !there->is_same_sample(head)) {
    throw Error(
        fmt::format("{} is no conversation about this sample: move it away", path_.string()));
  }
  for (std::size_t i = 1; i < lines.size(); ++i) {
    try {
      replay(nlohmann::json::parse(lines[i]));
    } catch (const nlohmann::json::exception&) {
      throw Error(fmt::format("{}:{}: not a line of a conversation: move the file away",
                              path_.string(), i + 1));
    }
  }
}

void Journal::replay(const nlohmann::json& line) {
  const std::string kind = line.at("kind").get<std::string>();
  if (kind == "request") {
    asked_ = true;
  } else if (kind == "failure") {
    ++conversation_.failures;
  } else if (kind == "reply") {
    conversation_.turns.push_back(
        {reply_of_json(line.at("reply")), line.at("seconds").get<double>(), {}});
    asked_ = false;
  } else if (kind == "feedback" && !conversation_.turns.empty()) {
    conversation_.turns.back().feedback =
        Feedback{line.at("passed").get<bool>(), line.at("text").get<std::string>()};
  }
}

void Journal::append(nlohmann::ordered_json line) {
  const std::string text =
      line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  try {
    store::append_line(path_, text);
  } catch (const Error& e) {
    throw NotStored(e.what(), text);
  }
}

void Journal::add_request(const nlohmann::ordered_json& body) {
  if (asked_) return;
  append({{"kind", "request"},
          {"turn", conversation_.turns.size() + 1},
          {"date", utc_now()},
          {"body", body}});
  asked_ = true;
}

void Journal::add_failure(const Fault& fault, double seconds, std::optional<double> wait) {
  nlohmann::ordered_json line{{"kind", "failure"},        {"turn", conversation_.turns.size() + 1},
                              {"date", utc_now()},        {"fault", fault_name(fault.kind)},
                              {"message", fault.message}, {"seconds", seconds}};
  if (fault.status != 0) line["status"] = fault.status;
  if (wait) line["wait"] = *wait;
  append(std::move(line));
  ++conversation_.failures;
}

void Journal::add_reply(const Reply& reply, double seconds) {
  append({{"kind", "reply"},
          {"turn", conversation_.turns.size() + 1},
          {"date", utc_now()},
          {"seconds", seconds},
          {"reply", json_of_reply(reply)}});
  conversation_.turns.push_back({reply, seconds, {}});
  asked_ = false;
}

void Journal::add_feedback(const Feedback& feedback) {
  append({{"kind", "feedback"},
          {"turn", conversation_.turns.size()},
          {"passed", feedback.passed},
          {"text", feedback.text}});
  conversation_.turns.back().feedback = feedback;
}

}  // namespace assay::ask
