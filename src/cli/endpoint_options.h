// Options of the commands that ask a model behind an endpoint, and the settings made from them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ask/requester.h"

namespace CLI {
class App;
}

namespace assay::cli {

struct EndpointOptions {
  std::string url, model, as, key_variable = "OPENAI_API_KEY";
  std::vector<std::string> headers, parameters;
  std::optional<double> temperature, price_in, price_out;
  std::optional<std::int64_t> max_tokens, seed;
  unsigned retries = 6;
  std::size_t parallel = 4;
  double timeout = 1800, retry_wait = 1;
  bool no_stream = false, dry_run = false;
};

// The first declares --url, --model and --as, the second all other options.
void add_endpoint(CLI::App&, EndpointOptions&);
void add_request_options(CLI::App&, EndpointOptions&);

// Throws Error for an unusable URL, header, parameter or key, or if no key is set for an endpoint
// on another machine; a dry run needs no key.
ask::Endpoint endpoint_from(const EndpointOptions&);

// The model's name in assay: --as, or one made from --model. Throws Error if it is not a valid
// folder name.
std::string own_name(const EndpointOptions&);

// Warns if the key would be sent unencrypted.
void warn_of_plain_key(const ask::Endpoint&);

// "assay COMMAND --url URL --model MODEL ..." quoted for a shell; without secrets: it omits header
// values.
std::string command_line(const char* command, const EndpointOptions&, const ask::Endpoint&);

inline constexpr double kBytesPerToken = 4;  // roughly, for English and code
double tokens_estimated(std::size_t bytes);

// Prints a request for a dry run. `ascii`: escapes everything that is not ASCII.
void print_request(const ask::Endpoint&, const nlohmann::ordered_json& body, bool ascii = false);
// "Estimated, at 4 bytes a token: 900 tokens of prompts; ...": the possible cost of all requests.
std::string estimate(const EndpointOptions&, double tokens_in, std::size_t replies);

// The cost in dollars, if both prices and both counts are known.
std::optional<double> cost_of(const EndpointOptions&, std::optional<std::int64_t> in,
                              std::optional<std::int64_t> out);
std::string dollars(double amount);
// One line: "3 replies, 0 requests failed, 1.2 s; 100 tokens in, 20 out".
std::string account_of(const EndpointOptions&, const ask::Spent&, double seconds);

class RealAskClock : public ask::AskClock {
 public:
  double now() override;
  void sleep(double seconds) override;
  double jitter() override;
};

}  // namespace assay::cli
