#include "compare/published.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "assay/error.h"
#include "records/documents.h"
#include "records/strict_json.h"
#include "spec/json_schema.h"
#include "util/text.h"

namespace assay::compare {
namespace {

using nlohmann::json;

constexpr std::array<std::pair<const char*, double>, 13> kGradePoints{{{"A+", 4.0},
                                                                       {"A", 4.0},
                                                                       {"A-", 3.7},
                                                                       {"B+", 3.3},
                                                                       {"B", 3.0},
                                                                       {"B-", 2.7},
                                                                       {"C+", 2.3},
                                                                       {"C", 2.0},
                                                                       {"C-", 1.7},
                                                                       {"D+", 1.3},
                                                                       {"D", 1.0},
                                                                       {"D-", 0.7},
                                                                       {"F", 0.0}}};

std::optional<double> number_from_text(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc() || stop != end || !std::isfinite(value)) return {};
  return value;
}

[[noreturn]] void reject_grade(const std::string& place, const std::string& text) {
  throw Error(fmt::format("{}: \"{}\" is no grade: a letter from A+ to F, or points from 0 to 100",
                          place, text));
}

PublishedGrade grade_from_text(const std::string& text, const std::string& place) {
  if (const auto point = grade_point(text)) return {text, *point};
  const auto points = number_from_text(text);
  if (!points || *points < 0 || *points > 100) reject_grade(place, text);
  return {"", *points};
}

// Letters and points do not average.
void settle_kind(Published& p, const std::string& file) {
  bool any_letter = false, any_points = false;
  for (const auto& [model, grades] : p.grades) {
    for (const auto& [challenge, grade] : grades)
      (grade.letter.empty() ? any_points : any_letter) = true;
  }
  if (any_letter && any_points)
    throw Error(
        fmt::format("{}: some grades are letters and some are points: give one kind", file));
  if (!any_letter && !any_points) throw Error(fmt::format("{}: holds no grade", file));
  p.letters = any_letter;
}

void require_source(const Published& p, const std::string& file) {
  if (!p.source.empty()) return;
  throw Error(
      fmt::format("{}: does not say where the grades are from: add \"source\", or name it "
                  "with --source",
                  file));
}

// --- JSON --------------------------------------------------------------------

void read_grades(const StrictObject& document, Published& p) {
  const json& models = document.value("grades");
  if (!models.is_object()) document.fail("grades", "expected an object");
  for (const auto& [model, grades] : models.items()) {
    const std::string place = document.place("grades") + "/" + model;
    if (!grades.is_object() || model.empty())
      throw Error(fmt::format("at {}: expected an object of challenges", place));
    for (const auto& [challenge, grade] : grades.items()) {
      const std::string at = fmt::format("at {}/{}", place, challenge);
      if (!grade.is_string() && !grade.is_number()) reject_grade(at, grade.dump());
      p.grades[model][challenge] = grade_from_text(
          grade.is_string() ? grade.get<std::string>() : fmt::format("{}", grade.get<double>()),
          at);
    }
  }
}

void read_ranking(const StrictObject& document, Published& p) {
  if (!document.has("ranking")) return;
  document.each("ranking", [&](const json& j, const std::string& place) {
    const StrictObject o(j, place, {"rank", "model"}, {"average", "challenges"});
    PublishedPlace entry;
    constexpr std::int64_t kMost = 1'000'000;
    if (o.count("rank") < 1 || o.count("rank") > kMost) o.fail("rank", "expected 1 or more");
    entry.rank = static_cast<int>(o.count("rank"));
    entry.model = o.name("model");
    entry.average = o.optional_text("average");
    entry.challenges = o.optional_text("challenges");
    if (!entry.average.empty() && !average_value(entry.average))
      o.fail("average", "expected a letter, two such as A-/B+, or points");
    p.ranking.push_back(std::move(entry));
  });
  std::ranges::stable_sort(p.ranking, {}, &PublishedPlace::rank);
}

Published from_json(const std::string& text, const std::string& file) {
  const json j = parse_json(text, file);
  require_schema(j, Published::kSchema);
  const StrictObject o(j, "", {"schema", "kind", "source", "grades"}, {"ranking"});
  if (o.text("kind") != "published_grades") o.fail("kind", "expected \"published_grades\"");
  Published p;
  p.source = o.text("source");
  read_grades(o, p);
  read_ranking(o, p);
  return p;
}

// --- CSV ---------------------------------------------------------------------

// The records of a CSV text (RFC 4180), each with the line on which it begins.
std::vector<std::pair<std::size_t, std::vector<std::string>>> csv_records(const std::string& text) {
  std::vector<std::pair<std::size_t, std::vector<std::string>>> records;
  std::vector<std::string> fields{""};
  std::size_t line = 1, began = 1;
  bool quoted = false, any = false;
  const auto end_record = [&] {
    if (any) records.emplace_back(began, fields);
    fields = {""};
    any = false;
    began = line + 1;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
        fields.back() += '"';
        ++i;
      } else if (c == '"') {
        quoted = false;
      } else {
        fields.back() += c;
      }
    } else if (c == '"' && fields.back().empty()) {
      quoted = any = true;
    } else if (c == ',') {
      fields.emplace_back();
      any = true;
    } else if (c == '\n') {
      end_record();
    } else if (c != '\r') {
      fields.back() += c;
      any = true;
    }
    if (c == '\n') ++line;
  }
  end_record();
  return records;
}

Published from_csv(const std::string& text, const std::string& file) {
  const auto records = csv_records(text);
  if (records.empty()) throw Error(fmt::format("{}: is empty", file));
  const auto& header = records.front().second;
  const auto column = [&](const char* name) {
    const auto found = std::ranges::find(header, name);
    if (found == header.end()) {
      throw Error(fmt::format("{}:1: no column '{}': the header needs model, challenge and grade",
                              file, name));
    }
    return static_cast<std::size_t>(found - header.begin());
  };
  const std::size_t model = column("model"), challenge = column("challenge"),
                    grade = column("grade");
  Published p;
  for (std::size_t i = 1; i < records.size(); ++i) {
    const auto& [line, fields] = records[i];
    const std::string place = fmt::format("{}:{}", file, line);
    if (fields.size() != header.size()) {
      throw Error(
          fmt::format("{}: {} fields, the header has {}", place, fields.size(), header.size()));
    }
    if (fields[model].empty() || fields[challenge].empty())
      throw Error(fmt::format("{}: a grade without a model or a challenge", place));
    for (const std::string* name : {&fields[model], &fields[challenge]}) {
      if (printable(*name, 1, name->size() + 1) != *name)
        throw Error(fmt::format("{}: a name that is not plain text in UTF-8", place));
    }
    const bool first = p.grades[fields[model]]
                           .emplace(fields[challenge], grade_from_text(fields[grade], place))
                           .second;
    if (!first) {
      throw Error(
          fmt::format("{}: a second grade of {} for {}", place, fields[model], fields[challenge]));
    }
  }
  return p;
}

// --- what they come to -------------------------------------------------------

double mean_of(const std::map<std::string, PublishedGrade>& grades) {
  double sum = 0;
  for (const auto& [challenge, grade] : grades) sum += grade.value;
  return sum / static_cast<double>(grades.size());
}

std::string figure(const Published& p, double value) {
  return p.letters ? fmt::format("{:.2f} ({})", value, nearest_letter(value))
                   : fmt::format("{:.1f}", value);
}

struct Common {
  std::size_t challenges = 0;
  double a = 0, b = 0;  // means
};

Common common_of(const Published& p, const std::string& a, const std::string& b) {
  Common common;
  for (const auto& [challenge, grade] : p.grades.at(a)) {
    const auto other = p.grades.at(b).find(challenge);
    if (other == p.grades.at(b).end()) continue;
    ++common.challenges;
    common.a += grade.value;
    common.b += other->second.value;
  }
  if (common.challenges == 0) return common;
  common.a /= static_cast<double>(common.challenges);
  common.b /= static_cast<double>(common.challenges);
  return common;
}

void check_places(const Published& p, std::vector<std::string>& out) {
  for (const PublishedPlace& place : p.ranking) {
    const auto grades = p.grades.find(place.model);
    if (grades == p.grades.end()) {
      out.push_back(fmt::format("{} is ranked {} and has no grade.", place.model, place.rank));
      continue;
    }
    const std::size_t slash = place.challenges.find('/');
    const auto claimed = number_from_text(place.challenges.substr(0, slash));
    const auto count = static_cast<double>(grades->second.size());
    if (claimed && *claimed != count) {
      out.push_back(fmt::format("{} is said to have {} challenges; it has {} grades.", place.model,
                                place.challenges, grades->second.size()));
    }
    const auto average = average_value(place.average);
    const double step = p.letters ? kStep : 1;
    const double mean = mean_of(grades->second);
    if (average && std::abs(*average - mean) > step) {
      out.push_back(fmt::format("{} is said to average {}; its {} grades average {}.", place.model,
                                place.average, grades->second.size(), figure(p, mean)));
    }
  }
  for (const auto& [model, grades] : p.grades) {
    if (!p.ranking.empty() &&
        std::ranges::find(p.ranking, model, &PublishedPlace::model) == p.ranking.end())
      out.push_back(fmt::format("{} has {} grades and no rank.", model, grades.size()));
  }
}

void check_order(const Published& p, std::vector<std::string>& out) {
  constexpr double kEqual = 1e-9;
  for (std::size_t i = 0; i < p.ranking.size(); ++i) {
    for (std::size_t j = i + 1; j < p.ranking.size(); ++j) {
      const PublishedPlace &high = p.ranking[i], &low = p.ranking[j];
      if (high.rank >= low.rank || !p.grades.contains(high.model) || !p.grades.contains(low.model))
        continue;
      const double above = mean_of(p.grades.at(high.model)),
                   below = mean_of(p.grades.at(low.model));
      if (below <= above + kEqual) continue;
      const Common common = common_of(p, high.model, low.model);
      std::string text =
          fmt::format("{} is ranked {}, above {} ({}), but averages {} against {}", high.model,
                      high.rank, low.model, low.rank, figure(p, above), figure(p, below));
      if (common.challenges > 0) {
        text += fmt::format("; over the {} that both have, {} against {}", common.challenges,
                            figure(p, common.a), figure(p, common.b));
      }
      out.push_back(text + ".");
    }
  }
}

}  // namespace

std::optional<double> grade_point(const std::string& letter) {
  for (const auto& [name, point] : kGradePoints) {
    if (letter == name) return point;
  }
  return {};
}

std::string nearest_letter(double point) {
  std::pair<const char*, double> nearest = kGradePoints.back();
  for (const auto& grade : kGradePoints) {
    const double away = std::abs(grade.second - point), least = std::abs(nearest.second - point);
    // A+ has the same grade point as A.
    if (away < least && std::string_view(grade.first) != "A+") nearest = grade;
  }
  return nearest.first;
}

std::optional<double> average_value(const std::string& text) {
  if (const auto point = grade_point(text)) return point;
  const std::size_t slash = text.find('/');
  if (slash != std::string::npos) {
    const auto a = grade_point(text.substr(0, slash)), b = grade_point(text.substr(slash + 1));
    if (a && b) return (*a + *b) / 2;
    return {};
  }
  return number_from_text(text);
}

Published parse_published(const std::string& given, const std::string& file,
                          const std::string& source) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";  // spreadsheets begin UTF-8 with it
  const std::string text = given.substr(given.starts_with(kMark) ? kMark.size() : 0);
  return reading(file, [&] {
    const std::size_t start = text.find_first_not_of(" \t\r\n");
    const bool is_json = start != std::string::npos && text[start] == '{';
    Published p = is_json ? from_json(text, file) : from_csv(text, file);
    if (!source.empty()) p.source = source;
    require_source(p, file);
    settle_kind(p, file);
    return p;
  });
}

std::string published_text(const Published& p) {
  nlohmann::ordered_json j{{"schema", Published::kSchema},
                           {"kind", "published_grades"},
                           {"source", p.source},
                           {"grades", nlohmann::ordered_json::object()}};
  for (const auto& [model, grades] : p.grades) {
    for (const auto& [challenge, grade] : grades) {
      auto& place = j["grades"][model][challenge];
      if (p.letters) {
        place = grade.letter;
      } else {
        place = grade.value;
      }
    }
  }
  if (!p.ranking.empty()) j["ranking"] = nlohmann::ordered_json::array();
  for (const PublishedPlace& place : p.ranking) {
    nlohmann::ordered_json entry{{"rank", place.rank}, {"model", place.model}};
    if (!place.average.empty()) entry["average"] = place.average;
    if (!place.challenges.empty()) entry["challenges"] = place.challenges;
    j["ranking"].push_back(std::move(entry));
  }
  return j.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

Recomputed recompute(const Published& p) {
  Recomputed all;
  constexpr double kEqual = 1e-9;
  for (const auto& [model, grades] : p.grades)
    all.places.push_back({.model = model,
                          .average = mean_of(grades),
                          .challenges = grades.size(),
                          .rank = 1,
                          .published_rank = 0,
                          .published_average = ""});
  for (Recomputed::Place& place : all.places) {
    for (const Recomputed::Place& other : all.places)
      place.rank += other.average > place.average + kEqual ? 1 : 0;
    const auto said = std::ranges::find(p.ranking, place.model, &PublishedPlace::model);
    if (said == p.ranking.end()) continue;
    place.published_rank = said->rank;
    place.published_average = said->average;
  }
  std::ranges::stable_sort(all.places, {}, &Recomputed::Place::rank);
  check_order(p, all.contradictions);
  check_places(p, all.contradictions);
  return all;
}

}  // namespace assay::compare
