#include "serve/grade_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <utility>

#include "assay/error.h"
#include "grade/gpu.h"
#include "intake/received.h"
#include "serve/api_error.h"
#include "serve/limits.h"
#include "submission/assemble.h"
#include "util/sha256.h"
#include "util/text.h"

namespace assay::serve {
namespace {

constexpr std::initializer_list<const char*> kKeys = {
    "challenge", "language", "device", "files",    "chat",       "stages", "seed",
    "quick",     "gpu",      "client", "priority", "deadline_s", "cache"};

// An object of a request; every error names the key.
class Reader {
 public:
  Reader(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json_.is_object()) refuse("a request is a JSON object");
    for (const auto& [key, value] : json_.items()) {
      if (std::ranges::find(kKeys, key) == kKeys.end())
        refuse(unknown_name("key", printable(key, 1, 80), {kKeys.begin(), kKeys.end()}));
    }
  }

  [[noreturn]] void refuse(const std::string& why) const {
    throw ApiError(422, "invalid_request", where_ + why);
  }
  const Json* find(const char* key) const {
    const auto at = json_.find(key);
    return at == json_.end() || at->is_null() ? nullptr : &*at;
  }
  std::string text(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) return "";
    if (!value->is_string()) refuse(fmt::format("{}: expected a text", key));
    return value->get<std::string>();
  }
  bool flag(const char* key, bool otherwise) const {
    const Json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) refuse(fmt::format("{}: expected true or false", key));
    return value->get<bool>();
  }
  std::optional<double> number(const char* key, double most) const {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number() || !(value->get<double>() >= 0 && value->get<double>() <= most))
      refuse(fmt::format("{}: expected a number from 0 to {}", key, most));
    return value->get<double>();
  }
  // A number, or the string of digits that grades hold, since JSON numbers lose large seeds.
  std::optional<std::uint64_t> seed() const {
    const Json* value = find("seed");
    if (value == nullptr) return std::nullopt;
    if (value->is_number_unsigned() ||
        (value->is_number_integer() && value->get<std::int64_t>() >= 0))
      return value->get<std::uint64_t>();
    if (value->is_string()) {
      const auto& digits = value->get_ref<const std::string&>();
      std::uint64_t seed = 0;
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), seed);
      if (error == std::errc() && end == digits.data() + digits.size()) return seed;
    }
    refuse("seed: expected a whole number below 2^64, or a string of its digits");
  }

 private:
  const Json& json_;
  std::string where_;
};

std::optional<Language> read_language(const Reader& reader) {
  const std::string language = reader.text("language"), device = reader.text("device");
  std::optional<Language> said;
  if (language == "cpp" || device == "cpu") said = Language::cpp;
  if (language == "cuda" || device == "sim") said = Language::cuda;
  if (!language.empty() && language != "cpp" && language != "cuda")
    reader.refuse("language: expected cpp or cuda");
  if (!device.empty() && device != "cpu" && device != "sim")
    reader.refuse("device: expected cpu or sim");
  if (!language.empty() && !device.empty() && (language == "cpp") != (device == "cpu"))
    reader.refuse("language and device: cpp runs on the cpu, cuda on sim; one of them will do");
  return said;
}

bool has_file(const std::vector<SourceFile>& files, Language language) {
  return std::ranges::find(files, main_file(language), &SourceFile::name) != files.end();
}

Language settle_language(const Reader& reader, const std::vector<SourceFile>& files,
                         std::optional<Language> said) {
  const bool cpp = has_file(files, Language::cpp), cuda = has_file(files, Language::cuda);
  if (said) {
    if (!has_file(files, *said))
      reader.refuse(fmt::format("files: {} is missing", main_file(*said)));
    return *said;
  }
  if (cpp && cuda) reader.refuse("files: there are two answers: say which with language");
  if (!cpp && !cuda) reader.refuse("files: submission.cpp or submission.cu is missing");
  return cpp ? Language::cpp : Language::cuda;
}

Submission read_files(const Reader& reader, const Json& named, std::optional<Language> said) {
  if (!named.is_object()) reader.refuse("files: expected an object, name to contents");
  if (named.size() > kMostSources)
    reader.refuse(fmt::format("files: an answer has at most {}", kMostSources));
  std::vector<SourceFile> files;
  for (const auto& [name, contents] : named.items()) {
    const std::string shown = printable(name, 1, 80);
    if (const std::string objection = objection_to_name(name); !objection.empty())
      reader.refuse(fmt::format("files: '{}': {}", shown, objection));
    if (!is_source_name(name))
      reader.refuse(
          fmt::format("files: '{}': an answer's files end in .cpp, .cc, .cu, .cuh, .h, "
                      ".hpp or .inl, and abi.h is not among them",
                      shown));
    if (!contents.is_string()) reader.refuse(fmt::format("files: '{}': expected a text", shown));
    if (contents.get_ref<const std::string&>().size() > kLargestSource)
      reader.refuse(fmt::format("files: '{}' is larger than {} MiB", shown, kLargestSource >> 20));
    files.push_back({name, contents.get<std::string>()});
  }
  const Language language = settle_language(reader, files, said);
  return submission_from(std::move(files), language);
}

// A chat answer without code, or with several candidates, becomes an answer that scores 0: someone
// training a model needs its reward, not an error.
Submission read_chat(const std::string& chat, std::optional<Language> said,
                     const ChallengeSpec& spec, std::string& known_by) {
  Submission none;
  none.language = said.value_or(Language::cpp);
  try {
    intake::Received received =
        intake::take_chat(chat, "answer.md", said, {.entry_points = spec.required_symbols});
    known_by = received.how;
    return submission_from(std::move(received.answer.files), received.language);
  } catch (const intake::NoAnswer& e) {
    known_by = "a chat answer without code";
    none.no_answer = e.what();
  } catch (const intake::Ambiguous& e) {
    known_by = "a chat answer with several candidates";
    none.no_answer = e.what();
  } catch (const Error& e) {
    known_by = "a chat answer that cannot be taken in";
    none.no_answer = e.what();
  }
  return none;
}

std::vector<check::Stage> read_stages(const Reader& reader) {
  std::vector<check::Stage> stages;
  const Json* names = reader.find("stages");
  if (names == nullptr) return stages;
  if (!names->is_array() || names->empty())
    reader.refuse("stages: expected a list of names; leave it out for the whole grade");
  for (const Json& name : *names) {
    const auto stage = name.is_string() ? check::stage_from(name.get<std::string>()) : std::nullopt;
    if (!stage)
      reader.refuse("stages: expected some of build, core, all, findings, tests and time");
    if (std::ranges::find(stages, *stage) == stages.end()) stages.push_back(*stage);
  }
  std::ranges::sort(stages);
  return stages;
}

const ChallengeSpec& find_challenge(const std::string& name, std::span<const ChallengeSpec> specs,
                                    const Reader& reader, const std::string& where) {
  if (name.empty()) reader.refuse("challenge: the name of one is missing");
  const auto spec = std::ranges::find(specs, name, &ChallengeSpec::name);
  if (spec != specs.end()) return *spec;
  std::vector<std::string> known;
  for (const ChallengeSpec& s : specs) known.push_back(s.name);
  throw ApiError(404, "unknown_challenge",
                 where + unknown_name("challenge", printable(name, 1, 80), known));
}

void read_settings(const Reader& reader, GradeRequest& request) {
  request.stages = read_stages(reader);
  request.seed = reader.seed();
  request.quick = reader.flag("quick", false);
  request.use_cache = reader.flag("cache", true);
  request.gpu = reader.find("gpu") == nullptr ? kDefaultGpu : reader.text("gpu");
  const std::vector<std::string> gpus = gpu_names();
  if (std::ranges::find(gpus, request.gpu) == gpus.end())
    reader.refuse(unknown_name("gpu", printable(request.gpu, 1, 80), gpus));
  request.client = reader.text("client");
  if (request.client.size() > kLongestClientName ||
      printable(request.client, 1, kLongestClientName) != request.client)
    reader.refuse(
        fmt::format("client: expected plain text of at most {} bytes", kLongestClientName));
  const double priority = reader.number("priority", kHighestPriority).value_or(0);
  if (priority != std::floor(priority)) reader.refuse("priority: expected a whole number");
  request.priority = static_cast<int>(priority);
  request.deadline_s = reader.number("deadline_s", kLongestDeadline);
}

}  // namespace

Json parse_body(std::string_view body) {
  // `depth`: how many lists and objects enclose the value that begins. Throwing stops the parser at
  // once, so a body full of brackets costs no memory.
  // An object looks each new key up among all others.
  std::vector<std::size_t> keys;  // of the objects around
  const auto watch = [&keys](int depth, Json::parse_event_t event, Json&) {
    const bool object = event == Json::parse_event_t::object_start;
    const bool begins = object || event == Json::parse_event_t::array_start;
    if (object) keys.push_back(0);
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && ++keys.back() > kMostKeys)
      throw ApiError(400, "too_many_keys",
                     fmt::format("an object in the body has more than {} keys", kMostKeys));
    if (begins && depth >= kDeepestJson)
      throw ApiError(400, "json_too_deep",
                     fmt::format("the body is nested deeper than {} levels", kDeepestJson));
    return true;
  };
  try {
    return Json::parse(body, watch);
  } catch (const Json::exception& e) {
    throw ApiError(400, "invalid_json", "the body is not valid JSON: " + printable(e.what(), 1));
  }
}

GradeRequest read_request(const Json& json, std::span<const ChallengeSpec> specs,
                          const std::string& where) {
  const Reader reader(json, where);
  GradeRequest request;
  const ChallengeSpec& spec = find_challenge(reader.text("challenge"), specs, reader, where);
  const std::optional<Language> language = read_language(reader);
  const Json* files = reader.find("files");
  if ((files == nullptr) == (reader.find("chat") == nullptr))
    reader.refuse("expected either files or chat, the answer");
  if (files != nullptr) {
    request.answer = read_files(reader, *files, language);
    request.known_by = "as asked";
  } else {
    request.answer = read_chat(reader.text("chat"), language, spec, request.known_by);
  }
  request.answer.challenge = spec.name;
  read_settings(reader, request);
  return request;
}

std::string cache_key(const GradeRequest& request, const ChallengeSpec& spec,
                      const std::string& grader) {
  Json stages = Json::array();
  for (const check::Stage stage : request.stages) stages.push_back(to_string(stage));
  const Json key{{"grader", grader},
                 {"challenge", spec.name},
                 {"spec", spec.hash},
                 {"language", main_file(request.answer.language)},
                 {"source", source_hash(request.answer)},
                 {"stages", stages},
                 {"seed", request.seed ? Json(std::to_string(*request.seed)) : Json(nullptr)},
                 {"quick", request.quick},
                 {"gpu", request.answer.language == Language::cuda ? request.gpu : ""}};
  return sha256_hex(key.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace assay::serve
