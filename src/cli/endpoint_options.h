// The options of the commands that ask a model behind an endpoint, and what is made of them.
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

// --url, --model and --as; then all the others.
void add_endpoint(CLI::App&, EndpointOptions&);
void add_request_options(CLI::App&, EndpointOptions&);

// Throws Error on a URL, header, parameter or key that cannot be used, and where no key is set for
// an endpoint that is not on this machine; a dry run needs none.
ask::Endpoint endpoint_from(const EndpointOptions&);

// The name of the model here: --as, or one made from --model. Throws Error when no folder can have
// it.
std::string own_name(const EndpointOptions&);

// Warns where the key would be readable on its way.
void warn_of_plain_key(const EndpointOptions&, const ask::Endpoint&);

// "assay COMMAND --url URL --model MODEL ..." as a shell takes it; without secrets: values of
// headers are not in it.
std::string command_line(const char* command, const EndpointOptions&, const ask::Endpoint&);

inline constexpr double kBytesPerToken = 4;  // of English and of code, roughly
double tokens_estimated(std::size_t bytes);

// A request as a dry run shows it. `ascii`: whatever is not ASCII is escaped.
void print_request(const ask::Endpoint&, const nlohmann::ordered_json& body, bool ascii = false);
// "Estimated, at 4 bytes a token: 900 tokens of prompts; ...": what all requests may cost.
std::string estimate(const EndpointOptions&, double tokens_in, std::size_t replies);

// Dollars, where both prices and both counts are known.
std::optional<double> cost_of(const EndpointOptions&, std::optional<std::int64_t> in,
                              std::optional<std::int64_t> out);
std::string dollars(double amount);
// "3 replies, 0 requests failed, 1.2 s; 100 tokens in, 20 out": a line.
std::string account_of(const EndpointOptions&, const ask::Spent&, double seconds);

class RealAskClock : public ask::AskClock {
 public:
  double now() override;
  void sleep(double seconds) override;
  double jitter() override;
};

}  // namespace assay::cli
