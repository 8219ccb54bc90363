#include "ask/chat.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "assay/error.h"
#include "util/loopback.h"
#include "util/text.h"

namespace assay::ask {
namespace {

constexpr std::size_t kErrorColumns = 300;

// The member of an object, or null if the value is not an object or lacks it.
const nlohmann::json* member(const nlohmann::json* object, const char* key) {
  if (object == nullptr || !object->is_object()) return nullptr;
  const auto found = object->find(key);
  return found == object->end() ? nullptr : &*found;
}

std::string text_member(const nlohmann::json* object, const char* key) {
  const nlohmann::json* value = member(object, key);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

std::optional<std::int64_t> count_member(const nlohmann::json* object, const char* key) {
  constexpr std::int64_t kMost = std::int64_t{1} << 50;
  const nlohmann::json* value = member(object, key);
  if (value == nullptr || !value->is_number()) return {};
  const double number = value->get<double>();
  if (!(number >= 0 && number < static_cast<double>(kMost))) return {};
  return static_cast<std::int64_t>(number);
}

// The content: a text, or the "text" parts of a list of parts.
std::string content_member(const nlohmann::json* message) {
  const nlohmann::json* content = member(message, "content");
  if (content == nullptr || !content->is_array()) return text_member(message, "content");
  std::string text;
  for (const nlohmann::json& part : *content) {
    const std::string type = text_member(&part, "type");
    if (type == "text" || type == "output_text") text += text_member(&part, "text");
  }
  return text;
}

// Adds a message, or a stream's delta of one.
void add_message(const nlohmann::json* message, Reply& reply) {
  reply.content += content_member(message);
  // Two names for the same field; a server that sends both repeats the text.
  std::string thoughts = text_member(message, "reasoning_content");
  if (thoughts.empty()) thoughts = text_member(message, "reasoning");
  reply.reasoning += thoughts;
  reply.refusal += text_member(message, "refusal");
  const nlohmann::json* calls = member(message, "tool_calls");
  reply.called_tools |= calls != nullptr && calls->is_array() && !calls->empty();
}

void add_usage(const nlohmann::json* usage, Reply& reply) {
  if (const auto n = count_member(usage, "prompt_tokens")) reply.tokens_in = n;
  if (const auto n = count_member(usage, "completion_tokens")) reply.tokens_out = n;
  const nlohmann::json* details = member(usage, "completion_tokens_details");
  if (const auto n = count_member(details, "reasoning_tokens")) reply.tokens_reasoning = n;
}

// Adds the first choice; no others were requested.
void add_choice(const nlohmann::json& document, const char* message, Reply& reply) {
  const nlohmann::json* choices = member(&document, "choices");
  if (choices == nullptr || !choices->is_array()) return;
  for (const nlohmann::json& choice : *choices) {
    if (count_member(&choice, "index").value_or(0) != 0) continue;
    reply.has_choice = true;
    add_message(member(&choice, message), reply);
    if (const std::string why = text_member(&choice, "finish_reason"); !why.empty())
      reply.finish_reason = printable(why, 1, 40);
    return;
  }
}

std::string without_line_ends(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  return text;
}

// What a document that reports an error says, "" if it is in none of the usual places.
std::string message_in(const nlohmann::json& document) {
  std::string text = text_member(member(&document, "error"), "message");
  for (const char* name : {"error", "message", "detail"})
    if (text.empty()) text = text_member(&document, name);
  return text;
}

std::string shown_error(std::string text) {
  text = without_line_ends(std::move(text));
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == std::string::npos) return {};
  text.erase(0, begin);
  text.erase(text.find_last_not_of(" .") + 1);  // more text may be appended
  return printable(text, 1, kErrorColumns);
}

void add_document(const nlohmann::json& document, const char* message, Reply& reply) {
  if (const nlohmann::json* error = member(&document, "error"); error && !error->is_null()) {
    const std::int64_t code = count_member(error, "code").value_or(500);
    // Never the document itself: nested deep enough, writing it would overflow the stack.
    const std::string said = shown_error(message_in(document));
    throw EndpointFault("the endpoint reports: " + (said.empty() ? "an error" : said),
                        code >= 400 && code < 600 ? static_cast<int>(code) : 500);
  }
  if (reply.id.empty()) reply.id = printable(text_member(&document, "id"), 1, 200);
  if (reply.model.empty()) reply.model = printable(text_member(&document, "model"), 1, 200);
  add_choice(document, message, reply);
  add_usage(member(&document, "usage"), reply);
}

// Moves thoughts out of the content: some servers leave them there, before the answer.
void part_thoughts(Reply& reply) {
  constexpr std::string_view kBegin = "<think>", kEnd = "</think>";
  const std::size_t begin = reply.content.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos || reply.content.compare(begin, kBegin.size(), kBegin) != 0)
    return;
  const std::size_t end = reply.content.find(kEnd, begin);
  const std::size_t inner = begin + kBegin.size();
  if (end == std::string::npos) {  // cut off within the thoughts
    reply.reasoning += reply.content.substr(inner);
    reply.content.clear();
    return;
  }
  reply.reasoning += reply.content.substr(inner, end - inner);
  reply.content.erase(0, end + kEnd.size());
}

struct UrlParts {
  std::string scheme, authority, path;
};

UrlParts parts_of(const std::string& url) {
  const std::size_t colon = url.find("://");
  UrlParts parts;
  if (colon == std::string::npos) return parts;
  parts.scheme = url.substr(0, colon);
  std::ranges::transform(parts.scheme, parts.scheme.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::size_t end = url.find_first_of("/?#", colon + 3);
  parts.authority = url.substr(colon + 3, end == std::string::npos ? end : end - colon - 3);
  if (end != std::string::npos) parts.path = url.substr(end);
  return parts;
}

// The URL is stored with each answer.
void refuse_keys_in(std::string_view query) {
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    const std::string_view name = pair.substr(0, pair.find('='));
    if (names_a_key(name)) {
      throw Error(
          fmt::format("the URL holds '{}', which would be stored: put the key into an environment "
                      "variable and name that with --key-env",
                      name));
    }
    query.remove_prefix(std::min(pair.size() + 1, query.size()));
  }
}

}  // namespace

nlohmann::ordered_json request_of(const ChatSettings& settings,
                                  const std::vector<Message>& messages) {
  nlohmann::ordered_json body;
  body["model"] = settings.model;
  body["messages"] = nlohmann::ordered_json::array();
  for (const Message& m : messages)
    body["messages"].push_back({{"role", m.role}, {"content", m.content}});
  if (settings.temperature) body["temperature"] = *settings.temperature;
  if (settings.max_tokens) body["max_tokens"] = *settings.max_tokens;
  if (settings.seed) body["seed"] = *settings.seed;
  if (settings.stream) {
    body["stream"] = true;
    body["stream_options"] = {{"include_usage", true}};
  }
  for (const auto& [key, value] : settings.more.items()) body[key] = value;
  return body;
}

bool names_a_key(std::string_view parameter) {
  constexpr std::array kNames{"key",    "apikey",   "token",        "accesstoken",
                              "secret", "password", "clientsecret", "authorization",
                              "sig",    "signature"};
  std::string plain;
  for (const char c : parameter) {
    if (c != '-' && c != '_')
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return std::ranges::find(kNames, plain) != kNames.end();
}

std::string completions_url(const std::string& url) {
  const UrlParts parts = parts_of(url);
  const std::string shown = printable(url, 1, 120);
  if ((parts.scheme != "http" && parts.scheme != "https") || parts.authority.empty()) {
    throw Error(fmt::format(
        "'{}' is not a URL of an endpoint: name its base, such as http://localhost:8000/v1",
        shown));
  }
  if (parts.authority.find('@') != std::string::npos) {
    throw Error(
        "the URL holds a user's name or password, which would be stored: put the key into an "
        "environment variable and name that with --key-env");
  }
  constexpr std::string_view kPath = "/chat/completions";
  const std::size_t query = parts.path.find_first_of("?#");
  if (query != std::string::npos) refuse_keys_in(parts.path.substr(query + 1));
  std::string path = parts.path.substr(0, query);
  while (path.ends_with('/')) path.pop_back();
  if (!path.ends_with(kPath)) path += kPath;
  const std::string rest = query == std::string::npos ? "" : parts.path.substr(query);
  return parts.scheme + "://" + parts.authority + path + rest;
}

bool goes_to_loopback(const std::string& url) {
  return is_loopback(host_of(parts_of(url).authority));
}

std::string why_no_answer(const Reply& reply) {
  if (!reply.has_choice) return "the reply holds no choice";
  if (!reply.content.empty()) return {};
  if (!reply.refusal.empty())
    return "the model refused: " + printable(without_line_ends(reply.refusal), 1, 160);
  if (reply.finish_reason == "content_filter") return "a filter of the endpoint kept it back";
  if (reply.finish_reason == "length")
    return "cut off at the limit on tokens before it began, while it was thinking";
  if (reply.called_tools) return "the model called a tool that was not offered";
  return "the reply is empty";
}

void ReplyReader::feed(std::string_view bytes, bool event_stream) {
  size_ += bytes.size();
  if (size_ > kLargest)
    throw BadReply(fmt::format("the reply is larger than {} MiB", kLargest >> 20));
  if (!event_stream) {
    raw_ += bytes;
    return;
  }
  if (events_ == nullptr) {
    events_ = std::make_unique<EventParser>([this](const std::string& data) { take_event(data); },
                                            kLargest);
  }
  events_->feed(bytes);
}

void ReplyReader::take_event(const std::string& data) {
  if (done_) return;
  if (data == "[DONE]") {
    done_ = true;
    return;
  }
  const nlohmann::json document = nlohmann::json::parse(data, nullptr, false);
  if (!document.is_object()) {
    throw BadReply(fmt::format("an event of the stream is not JSON of the protocol: {}",
                               printable(data, 1, 80)));
  }
  add_document(document, "delta", reply_);
}

Reply ReplyReader::finish() {
  if (events_ != nullptr) {
    if (!is_complete()) throw BadReply("the stream ended before the reply did");
  } else {
    const nlohmann::json document = nlohmann::json::parse(raw_, nullptr, false);
    if (!document.is_object()) {
      throw BadReply(fmt::format("the reply is not JSON of the protocol: {}",
                                 raw_.empty() ? "nothing" : printable(raw_, 1, 80)));
    }
    const nlohmann::json* choices = member(&document, "choices");
    if (document.find("error") == document.end() && (choices == nullptr || !choices->is_array()))
      throw BadReply("the reply has no 'choices': is this the endpoint of chat completions?");
    add_document(document, "message", reply_);
  }
  if (reply_.finish_reason == "error")
    throw EndpointFault("the endpoint reports an error as the reason of the end", 500);
  part_thoughts(reply_);
  return reply_;
}

std::string error_text(std::string_view body) {
  constexpr std::size_t kLooked = 65536;
  const std::string text = message_in(nlohmann::json::parse(body, nullptr, false));
  return shown_error(text.empty() ? std::string(body.substr(0, kLooked)) : text);
}

}  // namespace assay::ask
