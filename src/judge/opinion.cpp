#include "judge/opinion.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/error.h"
#include "util/text.h"

namespace assay::judge {
namespace {

using Json = nlohmann::ordered_json;

void set_text(Json& object, const char* key, const std::string& text) {
  if (!text.empty()) object[key] = text;
}

Json json_of(const RawReply& reply) {
  Json json{{"content", reply.content}};
  set_text(json, "reasoning", reply.reasoning);
  set_text(json, "refusal", reply.refusal);
  set_text(json, "finish_reason", reply.finish_reason);
  set_text(json, "id", reply.id);
  set_text(json, "model", reply.model);
  if (reply.tokens_in) json["tokens_in"] = *reply.tokens_in;
  if (reply.tokens_out) json["tokens_out"] = *reply.tokens_out;
  return json;
}

std::optional<std::int64_t> stored_count(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end()) return {};
  return found->get<std::int64_t>();
}

RawReply reply_from(const Json& json) {
  RawReply reply;
  reply.content = json.at("content").get<std::string>();
  reply.reasoning = json.value("reasoning", "");
  reply.refusal = json.value("refusal", "");
  reply.finish_reason = json.value("finish_reason", "");
  reply.id = json.value("id", "");
  reply.model = json.value("model", "");
  reply.tokens_in = stored_count(json, "tokens_in");
  reply.tokens_out = stored_count(json, "tokens_out");
  return reply;
}

Json json_of(const OpinionSample& sample) {
  Json json{{"sample", sample.number},
            {"date", sample.date},
            {"seconds", sample.seconds},
            {"reply", json_of(sample.reply)}};
  if (!sample.problem.empty()) {
    json["problem"] = sample.problem;
    return json;
  }
  for (const Mark& m : sample.marks)
    json["marks"][m.key] = {{"mark", m.value}, {"reason", m.reason}};
  return json;
}

OpinionSample sample_from(const Json& json, const Rubric& rubric) {
  OpinionSample sample;
  sample.number = json.at("sample").get<unsigned>();
  sample.date = json.at("date").get<std::string>();
  sample.seconds = json.at("seconds").get<double>();
  sample.reply = reply_from(json.at("reply"));
  sample.problem = json.value("problem", "");
  if (!sample.problem.empty()) return sample;
  for (const Criterion& c : rubric.criteria) {
    const Json& mark = json.at("marks").at(c.key);
    sample.marks.push_back(
        {c.key, mark.at("mark").get<double>(), mark.at("reason").get<std::string>()});
    const double value = sample.marks.back().value;
    if (!(value >= kLowestMark && value <= kHighestMark))
      throw Error(fmt::format("the mark of '{}' is out of range", c.key));
  }
  return sample;
}

CellKey key_from(const Json& json) {
  const std::string device = json.at("device").get<std::string>();
  const auto known = device_from(device);
  if (!known) throw Error("no device '" + printable(device, 1, 40) + "'");
  return {json.at("model").get<std::string>(), json.at("challenge").get<std::string>(),
          json.value("attempt", ""), *known};
}

Opinion opinion_from(const Json& json) {
  if (json.at("schema") != Opinion::kSchema)
    throw Error(fmt::format("schema {} instead of {}", json.at("schema").dump(), Opinion::kSchema));
  Opinion o;
  o.version = json.at("assay").get<std::string>();
  o.judge = json.at("judge").get<std::string>();
  o.key = key_from(json.at("answer"));
  o.source_hash = json.at("answer").at("source_hash").get<std::string>();
  o.rubric = rubric_from(json.at("rubric"));
  o.settings = json.at("settings");
  o.prompt = {json.at("prompt").at("system").get<std::string>(),
              json.at("prompt").at("user").get<std::string>()};
  if (json.at("prompt").at("sha256") != o.prompt.sha256())
    throw Error("the prompt is not the one of its hash");
  for (const Json& sample : json.at("samples")) o.samples.push_back(sample_from(sample, o.rubric));
  return o;
}

template <class Of>
std::optional<double> mean_over(const std::vector<OpinionSample>& samples, Of of) {
  double sum = 0;
  std::size_t count = 0;
  for (const OpinionSample& s : samples) {
    if (s.marks.empty()) continue;
    sum += of(s);
    ++count;
  }
  if (count == 0) return {};
  return sum / static_cast<double>(count);
}

}  // namespace

const OpinionSample* Opinion::find(unsigned number) const {
  const auto found = std::ranges::find(samples, number, &OpinionSample::number);
  return found == samples.end() ? nullptr : &*found;
}

std::size_t Opinion::counted() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(samples, [](const OpinionSample& s) { return !s.marks.empty(); }));
}

std::optional<double> Opinion::mark(const std::string& criterion) const {
  return mean_over(samples, [&](const OpinionSample& s) {
    return std::ranges::find(s.marks, criterion, &Mark::key)->value;
  });
}

std::optional<double> Opinion::value() const {
  return mean_over(samples, [&](const OpinionSample& s) { return overall(s.marks, rubric); });
}

bool is_same_question(const Opinion& a, const Opinion& b) {
  return a.key == b.key && a.source_hash == b.source_hash && a.prompt == b.prompt;
}

std::string difference_of_terms(const Opinion& before, const Opinion& now) {
  std::string text;
  const auto add = [&](const std::string& what) { text += (text.empty() ? "" : "; ") + what; };
  if (before.rubric.sha256 != now.rubric.sha256) {
    add(fmt::format("the rubric was {} {} and is {} {}", before.rubric.name, before.rubric.version,
                    now.rubric.name, now.rubric.version));
  }
  for (const auto& [key, value] : now.settings.items()) {
    const auto there = before.settings.find(key);
    if (there == before.settings.end()) {
      add(fmt::format("{} was not given and is {}", key, value.dump()));
    } else if (*there != value) {
      add(fmt::format("{} was {} and is {}", key, there->dump(), value.dump()));
    }
  }
  for (const auto& [key, value] : before.settings.items())
    if (!now.settings.contains(key)) add(fmt::format("{} was {}", key, value.dump()));
  return printable(text, 1, 400);
}

std::string opinion_text(const Opinion& o) {
  Json answer{{"model", o.key.model}, {"challenge", o.key.challenge}};
  set_text(answer, "attempt", o.key.attempt);
  answer["device"] = to_string(o.key.device);
  answer["source_hash"] = o.source_hash;
  Json json{
      {"schema", Opinion::kSchema},
      {"assay", o.version},
      {"judge", o.judge},
      {"answer", answer},
      {"rubric", to_json(o.rubric)},
      {"settings", o.settings},
      {"prompt",
       {{"sha256", o.prompt.sha256()}, {"system", o.prompt.system}, {"user", o.prompt.user}}}};
  json["samples"] = Json::array();
  for (const OpinionSample& s : o.samples) json["samples"].push_back(json_of(s));
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Opinion parse_opinion(const std::string& text, const std::string& file) {
  const auto fail = [&](const std::string& cause) {
    return Error(
        fmt::format("{}: not an opinion that `assay judge` wrote: {}: move the file away, and "
                    "`assay judge` asks again",
                    file, cause));
  };
  try {
    return opinion_from(Json::parse(text));
  } catch (const nlohmann::json::exception& e) {
    throw fail(printable(e.what(), 1, 160));
  } catch (const Error& e) {
    throw fail(e.what());
  }
}

}  // namespace assay::judge
