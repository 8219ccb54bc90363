// OpenAI's chat-completions protocol, as many servers speak it: makes requests, and reads replies,
// plain or streamed.
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

// Everything that determines a model's answer, except the messages. Absent values are left to the
// endpoint.
struct ChatSettings {
  std::string model;  // as the endpoint names it
  std::optional<double> temperature;
  std::optional<std::int64_t> max_tokens, seed;
  nlohmann::json more = nlohmann::json::object();  // further members of the request
  bool stream = true;
};

// The body of a request. Equal arguments give the same bytes.
nlohmann::ordered_json request_of(const ChatSettings&, const std::vector<Message>&);

// Whether a parameter of this name is likely to be a key: "api_key", "token", "sig".
bool names_a_key(std::string_view parameter);

// The URL for chat completions; `url` is either that or the API's base ("https://host/v1"). Throws
// Error if it is not an HTTP or HTTPS URL, or contains a user name or password.
std::string completions_url(const std::string& url);
// Whether the URL's host is this machine, see util/loopback.h.
bool goes_to_loopback(const std::string& url);

struct Reply {
  std::string content;        // the model's text, without thoughts
  std::string reasoning;      // thoughts, if the endpoint shows them
  std::string refusal;        // the model's own text when it refuses
  std::string finish_reason;  // "" if the endpoint gave none
  std::string id, model;      // as reported by the endpoint
  bool has_choice = false;    // the response contained a choice
  bool called_tools = false;
  std::optional<std::int64_t> tokens_in, tokens_out, tokens_reasoning;
};

// Why a reply contains no answer (a refusal, a filter, empty), "" if it may contain one.
std::string why_no_answer(const Reply&);

// A malformed or incomplete reply.
class BadReply : public Error {
 public:
  using Error::Error;
};
// An error that the endpoint reports within a response of status 200.
class EndpointFault : public BadReply {
 public:
  EndpointFault(const std::string& message, int status) : BadReply(message), status_(status) {}
  int status() const { return status_; }  // an HTTP status; 500 if none is given

 private:
  int status_;
};

// Takes the bytes of one response, in arbitrary pieces. Everything in them is untrusted.
class ReplyReader {
 public:
  static constexpr std::size_t kLargest = std::size_t{32} << 20;  // bytes of a response

  // Throws BadReply if the response is too large, or if an event of a stream violates the protocol.
  void feed(std::string_view bytes, bool event_stream);
  // True once all the model's text has arrived, whatever happens to the rest of the transfer.
  bool is_complete() const { return done_ || !reply_.finish_reason.empty(); }
  // True once the stream's last event has arrived.
  bool is_over() const { return done_; }
  bool is_stream() const { return events_ != nullptr; }
  // Call once all bytes have been fed. Throws BadReply if they are not a reply, or only part of
  // one.
  Reply finish();

  const std::string& raw() const { return raw_; }  // body of a plain or error response
  std::size_t size() const { return size_; }

 private:
  void take_event(const std::string& data);

  std::size_t size_ = 0;
  std::string raw_;
  std::unique_ptr<EventParser> events_;
  Reply reply_;
  bool done_ = false;
};

// The message in the body of a failed response, as one short line that is safe to print: its
// "error", or the text itself. "" if there is none.
std::string error_text(std::string_view body);

}  // namespace assay::ask
