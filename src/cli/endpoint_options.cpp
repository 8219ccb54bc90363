#include "cli/endpoint_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <random>

#include "assay/error.h"
#include "cli/conventions.h"
#include "cli/output.h"
#include "submission/submission.h"
#include "util/clock.h"
#include "util/shell.h"
#include "util/stop.h"
#include "util/text.h"

namespace assay::cli {
namespace {

// A folder name that resembles the model's name.
std::string name_from_model(const std::string& model) {
  std::string name;
  for (const char c : model) {
    const bool plain =
        std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
    name += plain ? c : '-';
  }
  name.erase(0, name.find_first_not_of("-._"));
  if (name.empty()) throw Error("--model leaves no name for a folder: give one with --as");
  return name;
}

// "K=V" as a header; neither part may contain a line break.
ask::Header header_from(const std::string& text) {
  const std::size_t equals = text.find('=');
  ask::Header header{text.substr(0, equals), ""};
  if (equals != std::string::npos) header.value = text.substr(equals + 1);
  const bool plain = !header.name.empty() && std::ranges::all_of(header.name, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_';
  });
  const bool one_line =
      std::ranges::none_of(header.value, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  if (equals != std::string::npos && plain && one_line) return header;
  throw Error(
      fmt::format("--header {}: expected NAME=VALUE, in one line", printable(header.name, 1, 60)));
}

// "K=V": V is JSON, or else plain text.
void add_parameter(nlohmann::json& more, const std::string& text) {
  constexpr std::array kOwn{"model", "messages", "stream", "stream_options", "n"};
  const std::size_t equals = text.find('=');
  const std::string key = text.substr(0, equals);
  if (equals == std::string::npos || key.empty())
    throw Error(fmt::format("--param {}: expected NAME=VALUE", printable(text, 1, 60)));
  if (std::ranges::find(kOwn, key) != kOwn.end())
    throw Error(fmt::format("--param {}: that member of the request is assay's own", key));
  if (ask::names_a_key(key)) {
    throw Error(
        fmt::format("--param {}: it would be stored with each answer: put the key into an "
                    "environment variable and name that with --key-env",
                    printable(key, 1, 60)));
  }
  const std::string value = text.substr(equals + 1);
  nlohmann::json parsed = nlohmann::json::parse(value, nullptr, false);
  more[key] = parsed.is_discarded() ? nlohmann::json(value) : parsed;
}

std::string key_from(const EndpointOptions& c) {
  if (c.key_variable.empty()) return {};
  const char* value = std::getenv(c.key_variable.c_str());
  std::string key = value != nullptr ? value : "";
  while (!key.empty() && std::isspace(static_cast<unsigned char>(key.back())) != 0) key.pop_back();
  if (std::ranges::any_of(key, [](unsigned char byte) { return byte <= 0x20 || byte == 0x7f; })) {
    throw Error(
        fmt::format("the value of {} is no key: there are blanks or control characters in "
                    "it",
                    c.key_variable));
  }
  if (key.empty() && !ask::goes_to_loopback(c.url) && !c.dry_run) {
    throw Error(fmt::format(
        "{} is not set: put the endpoint's key into it, or name another variable with --key-env; "
        "--key-env '' sends none",
        c.key_variable));
  }
  return key;
}

}  // namespace

void add_endpoint(CLI::App& command, EndpointOptions& o) {
  command.add_option("--url", o.url, "of an OpenAI-compatible endpoint: https://host/v1")
      ->required();
  command.add_option("--model", o.model, "as the endpoint names it")->required();
  command.add_option("--as", o.as, "its name here (default: made from --model)");
}

void add_request_options(CLI::App& command, EndpointOptions& o) {
  command.add_option("--parallel", o.parallel, "requests at a time")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  may_be_empty(command.add_option("--key-env", o.key_variable,
                                  "environment variable that holds the key; '' for none"))
      ->capture_default_str();
  command.add_option("--header", o.headers, "further header NAME=VALUE; values are not stored")
      ->allow_extra_args(false);
  command.add_option("--temperature", o.temperature, "of sampling")->check(CLI::Range(0.0, 5.0));
  command.add_option("--max-tokens", o.max_tokens, "of an answer")->check(CLI::PositiveNumber);
  command.add_option("--seed", o.seed, "of the first sample; each next has one more");
  command.add_option("--param", o.parameters, "further member of the request: NAME=JSON or text")
      ->allow_extra_args(false);
  command.add_flag("--no-stream", o.no_stream, "ask for the reply in one piece");
  command.add_option("--timeout", o.timeout, "seconds for one reply")
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str();
  command.add_option("--retries", o.retries, "of a request that failed in passing")
      ->check(CLI::Range(0, 100))
      ->capture_default_str();
  command.add_option("--retry-wait", o.retry_wait, "seconds before the first, then doubled")
      ->check(CLI::Range(0.0, 600.0))
      ->capture_default_str();
  command.add_option("--price-in", o.price_in, "dollars for a million tokens of prompts")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--price-out", o.price_out, "dollars for a million tokens of answers")
      ->check(CLI::NonNegativeNumber);
  command.add_flag("--dry-run", o.dry_run, "print what would be sent, and what it may cost");
}

std::string own_name(const EndpointOptions& o) {
  std::string name = o.as.empty() ? name_from_model(o.model) : o.as;
  if (const std::string objection = objection_to_model(name); !objection.empty()) {
    throw Error(
        fmt::format("--as {}: no model can have that name: {}", printable(name, 1, 80), objection));
  }
  return name;
}

ask::Endpoint endpoint_from(const EndpointOptions& o) {
  ask::Endpoint endpoint;
  endpoint.url = ask::completions_url(o.url);
  endpoint.key_variable = o.key_variable;
  endpoint.key = key_from(o);
  for (const std::string& h : o.headers) endpoint.headers.push_back(header_from(h));
  endpoint.chat.model = o.model;
  endpoint.chat.temperature = o.temperature;
  endpoint.chat.max_tokens = o.max_tokens;
  endpoint.chat.seed = o.seed;
  endpoint.chat.stream = !o.no_stream;
  for (const std::string& p : o.parameters) add_parameter(endpoint.chat.more, p);
  endpoint.timeout = o.timeout;
  endpoint.retry.retries = o.retries;
  endpoint.retry.first_wait = o.retry_wait;
  return endpoint;
}

void warn_of_plain_key(const ask::Endpoint& endpoint) {
  const bool open = endpoint.url.starts_with("http://") && !ask::goes_to_loopback(endpoint.url);
  if (open && !endpoint.key.empty())
    tell("assay: warning: the key goes over http:// unencrypted, readable on its way\n");
}

std::string command_line(const char* command, const EndpointOptions& o,
                         const ask::Endpoint& endpoint) {
  std::string line =
      fmt::format("assay {} --url {} --model {}", command, quoted(endpoint.url), quoted(o.model));
  if (o.temperature) line += fmt::format(" --temperature {:g}", *o.temperature);
  if (o.max_tokens) line += fmt::format(" --max-tokens {}", *o.max_tokens);
  if (o.seed) line += fmt::format(" --seed {}", *o.seed);
  for (const std::string& p : o.parameters) line += " --param " + quoted(p);
  return line;
}

double tokens_estimated(std::size_t bytes) { return static_cast<double>(bytes) / kBytesPerToken; }

std::string dollars(double amount) { return fmt::format("{:.4f} USD", amount); }

void print_request(const ask::Endpoint& endpoint, const nlohmann::ordered_json& body, bool ascii) {
  fmt::print("POST {}\nContent-Type: application/json\n", endpoint.url);
  if (!endpoint.key.empty()) fmt::print("Authorization: Bearer ${}\n", endpoint.key_variable);
  for (const ask::Header& h : endpoint.headers) fmt::print("{}: (not shown)\n", h.name);
  fmt::print("\n{}\n\n",
             body.dump(2, ' ', ascii, nlohmann::ordered_json::error_handler_t::replace));
}

std::string estimate(const EndpointOptions& o, double tokens_in, std::size_t replies) {
  std::string text = fmt::format("Estimated, at {:g} bytes a token: {:.0f} tokens of prompts",
                                 kBytesPerToken, tokens_in);
  if (o.price_in) text += ", " + dollars(tokens_in * *o.price_in * 1e-6);
  if (o.max_tokens) {
    const double out = static_cast<double>(*o.max_tokens) * static_cast<double>(replies);
    text += fmt::format("; at most {:.0f} tokens of answers", out);
    if (o.price_out) text += ", " + dollars(out * *o.price_out * 1e-6);
  }
  return text;
}

std::optional<double> cost_of(const EndpointOptions& o, std::optional<std::int64_t> in,
                              std::optional<std::int64_t> out) {
  if (!o.price_in || !o.price_out || !in || !out) return {};
  const double millionths =
      static_cast<double>(*in) * *o.price_in + static_cast<double>(*out) * *o.price_out;
  return std::round(millionths * 100) * 1e-8;
}

std::string account_of(const EndpointOptions& o, const ask::Spent& spent, double seconds) {
  std::string text = fmt::format("{} replies, {} requests failed, {:.1f} s", spent.replies,
                                 spent.failures, seconds);
  if (spent.replies > spent.replies_without_usage) {
    text += fmt::format("; {} tokens in, {} out", spent.tokens_in, spent.tokens_out);
    if (const auto cost = cost_of(o, spent.tokens_in, spent.tokens_out))
      text += ", " + dollars(*cost);
  }
  if (spent.replies_without_usage > 0)
    text += fmt::format("; {} replies did not tell their tokens", spent.replies_without_usage);
  return text + "\n";
}

double RealAskClock::now() { return steady_seconds(); }

void RealAskClock::sleep(double seconds) { wait_or_stop(seconds); }

double RealAskClock::jitter() {
  thread_local std::mt19937 random(std::random_device{}());
  return std::uniform_real_distribution<double>(0, 1)(random);
}

}  // namespace assay::cli
