#include "judge/marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "util/text.h"

namespace assay::judge {
namespace {

// Limits, large enough for any rubric, so that a reply of nothing but braces does not take long to
// read.
constexpr std::size_t kLongestReply = std::size_t{256} << 10;  // bytes
constexpr std::size_t kMostObjects = 64;                       // '{' examined
constexpr int kDeepest = 32;                                   // levels within one object

// The position after the '}' of the object that begins at `begin`; 0 if it does not end.
std::size_t end_of_object(const std::string& text, std::size_t begin) {
  int depth = 0;
  bool in_text = false;
  for (std::size_t i = begin; i < text.size(); ++i) {
    const char c = text[i];
    if (in_text) {
      if (c == '\\') ++i;
      in_text = c != '"';
    } else if (c == '"') {
      in_text = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kDeepest) return 0;
    } else if (c == '}' || c == ']') {
      if (--depth == 0) return i + 1;
    }
  }
  return 0;
}

struct FoundObject {
  nlohmann::json json;
  bool repeats = false;  // has a repeated member, maybe with another value
};

// The value is discarded if the text is not JSON.
FoundObject parsed(std::string_view text) {
  FoundObject found;
  std::vector<std::set<std::string>> members;
  using Event = nlohmann::json::parse_event_t;
  const auto watch = [&](int, Event event, nlohmann::json& value) {
    if (event == Event::object_start) members.emplace_back();
    if (event == Event::object_end) members.pop_back();
    if (event == Event::key && !members.back().insert(value.get<std::string>()).second)
      found.repeats = true;
    return true;
  };
  found.json = nlohmann::json::parse(text, watch, false);
  return found;
}

struct FoundObjects {
  std::vector<FoundObject> all;
  bool more = false;  // braces after these were not read
};

// The outermost JSON objects in the text.
FoundObjects objects_in(const std::string& text) {
  FoundObjects objects;
  std::size_t at = 0;
  for (std::size_t seen = 0;; ++seen) {
    at = text.find('{', at);
    if (at == std::string::npos) break;
    if (seen == kMostObjects) {
      objects.more = true;
      break;
    }
    const std::size_t end = end_of_object(text, at);
    FoundObject found;
    if (end != 0) found = parsed(std::string_view(text).substr(at, end - at));
    if (end == 0 || !found.json.is_object()) {
      ++at;
      continue;
    }
    objects.all.push_back(std::move(found));
    at = end;
  }
  return objects;
}

// The beginning of the reply, on one line.
std::string begin_of(const std::string& reply) {
  constexpr std::size_t kColumns = 80;
  std::string text = reply.substr(0, 2 * kColumns);
  std::ranges::replace_if(
      text, [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  return printable(text, 1, kColumns);
}

ReadMarks no_marks(std::string problem) { return {{}, std::move(problem)}; }

ReadMarks marks_of(const nlohmann::json& object, const Rubric& rubric) {
  ReadMarks read;
  for (const Criterion& c : rubric.criteria) {
    const auto found = object.find(c.key);
    if (found == object.end()) return no_marks(fmt::format("no member '{}'", c.key));
    if (!found->is_object() || !found->contains("mark"))
      return no_marks(fmt::format("'{}' is no object with a mark", c.key));
    const nlohmann::json& mark = found->at("mark");
    if (!mark.is_number()) return no_marks(fmt::format("the mark of '{}' is no number", c.key));
    const double value = mark.get<double>();
    if (!(value >= kLowestMark && value <= kHighestMark)) {
      return no_marks(fmt::format("the mark of '{}' is {:g}, which is not from {:g} to {:g}", c.key,
                                  value, kLowestMark, kHighestMark));
    }
    const auto reason = found->find("reason");
    if (reason == found->end() || !reason->is_string() ||
        reason->get_ref<const std::string&>().find_first_not_of(" \t\r\n") == std::string::npos)
      return no_marks(fmt::format("'{}' has no reason", c.key));
    read.marks.push_back({c.key, value, reason->get<std::string>()});
  }
  return read;
}

bool names_a_criterion(const nlohmann::json& object, const Rubric& rubric) {
  return std::ranges::any_of(rubric.criteria,
                             [&](const Criterion& c) { return object.contains(c.key); });
}

}  // namespace

ReadMarks read_marks(const std::string& reply, const Rubric& rubric) {
  if (reply.size() > kLongestReply)
    return no_marks(fmt::format("the reply is longer than {} KiB", kLongestReply >> 10));
  auto [objects, more] = objects_in(reply);
  std::erase_if(objects, [&](const FoundObject& o) { return !names_a_criterion(o.json, rubric); });
  if (objects.empty()) {
    return no_marks("no JSON object with a criterion of the rubric in the reply: " +
                    begin_of(reply));
  }
  if (more) return no_marks("too many braces to read: other marks may follow");
  for (const FoundObject& o : objects) {
    if (o.repeats)
      return no_marks("a JSON object has a member twice: which one counts is not clear");
    if (o.json != objects.front().json)
      return no_marks("several JSON objects with different marks: which one counts is not clear");
  }
  return marks_of(objects.front().json, rubric);
}

double overall(const std::vector<Mark>& marks, const Rubric& rubric) {
  double sum = 0, weights = 0;
  for (const Criterion& c : rubric.criteria) {
    sum += c.weight * std::ranges::find(marks, c.key, &Mark::key)->value;
    weights += c.weight;
  }
  return sum / weights;
}

}  // namespace assay::judge
