#include "ask/requester.h"

#include <fmt/format.h>

#include <algorithm>

#include "util/clock.h"
#include "util/text.h"

namespace assay::ask {
namespace {

constexpr std::size_t kLargestError = 65536;  // bytes read from a failed response
constexpr std::size_t kShortestSecret = 8;    // keyless servers use "none" or "EMPTY"

// The fault with its remedy, for people.
std::string with_remedy(const Fault& fault, const Endpoint& endpoint) {
  std::string start = fmt::format("{}: {}", endpoint.url, fault.message);
  switch (fault.kind) {
    case Fault::Kind::unreachable: return start + ": is the server running, and is --url right?";
    case Fault::Kind::insecure:
      return start + ": SSL_CERT_FILE names further certificates to trust";
    case Fault::Kind::timed_out:
      return start + fmt::format(" ({:g} s, --timeout)", endpoint.timeout);
    case Fault::Kind::refused:
    case Fault::Kind::cut:
    case Fault::Kind::damaged: return start;
    case Fault::Kind::status: break;
  }
  switch (fault.status) {
    case 401:
    case 403:
      if (endpoint.key.empty()) {
        return start + fmt::format(
                           "; no key was sent: put it into {}, or name its variable with "
                           "--key-env",
                           endpoint.key_variable);
      }
      return start + fmt::format("; the key comes from {}: is it right, and may it use this model?",
                                 endpoint.key_variable);
    case 402: return start + "; the account has no credit";
    case 404:
      return start + fmt::format(
                         "; does the model '{}' exist there (--model), and is --url the base "
                         "of the interface, such as https://host/v1?",
                         printable(endpoint.chat.model, 1, 80));
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

}  // namespace

nlohmann::ordered_json settings_of(const Endpoint& endpoint) {
  const ChatSettings& chat = endpoint.chat;
  nlohmann::ordered_json settings{{"url", endpoint.url}, {"model", chat.model}};
  if (chat.temperature) settings["temperature"] = *chat.temperature;
  if (chat.max_tokens) settings["max_tokens"] = *chat.max_tokens;
  if (chat.seed) settings["seed"] = *chat.seed;
  if (!chat.more.empty()) settings["more"] = chat.more;
  return settings;
}

Requester::Requester(const Endpoint& endpoint, Transport& transport, AskClock& clock,
                     std::function<void(const std::string&)> note)
    : endpoint_(endpoint), transport_(transport), clock_(clock), note_(std::move(note)) {
  std::vector<std::string> secrets{endpoint.key};
  for (const Header& h : endpoint.headers) secrets.push_back(h.value);
  secrets_ = Redactor(std::move(secrets));
  // Replies are stored, so only the key actually sent is removed from them, not everything that
  // looks like a secret.
  if (endpoint.key.size() >= kShortestSecret) sent_secret_ = endpoint.key;
}

Spent Requester::spent() const {
  const std::lock_guard lock(mutex_);
  return spent_;
}

std::string Requester::without_key(std::string text) const {
  if (sent_secret_.empty()) return text;
  for (std::size_t at = 0; (at = text.find(sent_secret_, at)) != std::string::npos;)
    text.replace(at, sent_secret_.size(), kRedacted);
  return text;
}

Answered Requester::ask(const nlohmann::ordered_json& body, const std::string& name,
                        const OnFailure& failed) {
  HttpRequest request;
  request.url = endpoint_.url;
  request.timeout = endpoint_.timeout;
  if (!endpoint_.key.empty())
    request.headers.push_back({"Authorization", "Bearer " + endpoint_.key});
  for (const Header& h : endpoint_.headers) request.headers.push_back(h);
  request.body = body.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  for (unsigned failures = 0;;) {
    wait_for_gate();
    Answered answered;
    const double begin = clock_.now();
    const std::optional<Fault> fault = attempt(request, answered.reply);
    answered.seconds = clock_.now() - begin;
    bool reached = false;
    {
      const std::lock_guard lock(mutex_);
      if (fault) {
        ++spent_.failures;
      } else {
        const Reply& reply = answered.reply;
        ++spent_.replies;
        spent_.seconds += answered.seconds;
        spent_.tokens_in += reply.tokens_in.value_or(0);
        spent_.tokens_out += reply.tokens_out.value_or(0);
        if (!reply.tokens_in || !reply.tokens_out) ++spent_.replies_without_usage;
      }
      reached = reached_;
    }
    if (!fault) return answered;
    ++failures;
    const auto wait =
        wait_before_retry(endpoint_.retry, *fault, failures, reached, clock_.jitter());
    failed(*fault, answered.seconds, wait);
    if (!wait) {
      std::string message = with_remedy(*fault, endpoint_);
      if (failures > 1) message += fmt::format(" (tried {} times)", failures);
      throw RequestFailed{*fault, message};
    }
    note_(fmt::format("{}: {}; once more in {:.1f} s", name, fault->message, *wait));
    if (fault->retry_after) {  // the endpoint's wish to wait applies to all requests
      const std::lock_guard lock(mutex_);
      not_before_ = std::max(not_before_, clock_.now() + *wait);
    }
    clock_.sleep(*wait);
  }
}

void Requester::wait_for_gate() {
  for (;;) {
    double left = 0;
    {
      const std::lock_guard lock(mutex_);
      left = not_before_ - clock_.now();
    }
    if (left <= 0) return;
    clock_.sleep(left);
  }
}

std::optional<Fault> Requester::attempt(const HttpRequest& request, Reply& reply) {
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
      transport_.post(request, [&](const HttpResponse& so_far, std::string_view bytes) {
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
      // A stream without its final event was cut, even if the connection closed cleanly.
      if (bad->kind == Fault::Kind::damaged && reader.is_stream()) bad->kind = Fault::Kind::cut;
    }
  }
  Fault fault = bad ? *bad : fault_of(response, error_body, reader);
  fault.message = secrets_.redacted(fault.message);
  return fault;
}

Fault Requester::fault_of(const HttpResponse& response, const std::string& body,
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

}  // namespace assay::ask
