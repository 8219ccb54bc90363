// The chat-completions protocol of OpenAI, as many servers speak it: what is asked, and what is
// made of a reply, plain or streamed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ask/sse.h"
#include "assay/error.h"

namespace assay::ask {

struct Message {
  std::string role, content;  // "system", "user" or "assistant"
};

// All that decides what a model answers, but for the messages. Absent: the endpoint's own choice.
struct ChatSettings {
  std::string model;  // as the endpoint names it
  std::optional<double> temperature;
  std::optional<std::int64_t> max_tokens, seed;
  nlohmann::json more = nlohmann::json::object();  // further members of the request
  bool stream = true;
};

// The body of a request. Of equal arguments it is equal, byte for byte.
nlohmann::ordered_json request_of(const ChatSettings&, const std::vector<Message>&);

// Where chat completions are asked for: `url` is that already, or the base of the interface
// ("https://host/v1"). Throws Error when it is no URL of HTTP or HTTPS, or holds a user's name or
// password.
std::string completions_url(const std::string& url);
// Whether the URL's host is this machine, see util/loopback.h.
bool goes_to_loopback(const std::string& url);

struct Reply {
  std::string content;        // what the model says; thoughts are not in it
  std::string reasoning;      // thoughts, where the endpoint shows them
  std::string refusal;        // why the model would not, in its own words
  std::string finish_reason;  // "" where the endpoint gave none
  std::string id, model;      // as the endpoint says
  bool has_choice = false;    // it held one
  bool called_tools = false;
  std::optional<std::int64_t> tokens_in, tokens_out, tokens_reasoning;
};

// Why a reply holds no answer, "" when it may hold one: a refusal, a filter, nothing at all.
std::string why_no_answer(const Reply&);

// A reply that is no reply: not the protocol, or not all of it.
class BadReply : public Error {
 public:
  using Error::Error;
};
// What the endpoint reports within a response whose status was 200.
class EndpointFault : public BadReply {
 public:
  EndpointFault(const std::string& message, int status) : BadReply(message), status_(status) {}
  int status() const { return status_; }  // as HTTP counts them; 500 where none is told

 private:
  int status_;
};

// Takes the bytes of one response, cut anywhere. Everything in them is untrusted.
class ReplyReader {
 public:
  static constexpr std::size_t kLargest = std::size_t{32} << 20;  // bytes of a response

  // Throws BadReply when it is too large, or when an event of a stream is not of the protocol.
  void feed(std::string_view bytes, bool event_stream);
  // All that the model said is there, whatever becomes of the rest of the transfer.
  bool is_complete() const { return done_ || !reply_.finish_reason.empty(); }
  // Nothing more is due: the stream's last event was there.
  bool is_over() const { return done_; }
  bool is_stream() const { return events_ != nullptr; }
  // Once all bytes are there. Throws BadReply when they are no reply, or only a part of one.
  Reply finish();

  const std::string& raw() const { return raw_; }  // of a plain response, or of an error
  std::size_t size() const { return size_; }

 private:
  void take_event(const std::string& data);

  std::size_t size_ = 0;
  std::string raw_;
  std::unique_ptr<EventParser> events_;
  Reply reply_;
  bool done_ = false;
};

// What an endpoint says in the body of a response that failed, in one short line that is safe to
// print: its "error", or the text itself. "" when there is nothing.
std::string error_text(std::string_view body);

}  // namespace assay::ask
